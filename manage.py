#!/usr/bin/env python
"""Django's command line: `manage.py demo`, `manage.py serve`, `manage.py replay EXPORT.zip`, ..."""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "prefmh_web.settings")
    execute_from_command_line(sys.argv)
