#!/usr/bin/env python
"""Django's command line: `manage.py demo`, `manage.py serve`, `manage.py replay EXPORT.zip`, ..."""

import gc
import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    # What is loaded at the start stays. To look through it for garbage every 700 objects takes a fifth of the start.
    gc.set_threshold(50_000)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "prefmh_web.settings")
    execute_from_command_line(sys.argv)
