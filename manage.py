#!/usr/bin/env python
"""Django's command line: `manage.py demo`, `manage.py serve`, `manage.py replay EXPORT.zip`, ..."""

import gc
import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import DatabaseError

if __name__ == "__main__":
    # What is loaded at the start stays. To look through it for garbage every 700 objects takes a fifth of the start.
    gc.set_threshold(50_000)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "prefmh_web.settings")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(str(error))
    except DatabaseError as error:
        # As SQLite and PostgreSQL say it.
        if any(said in str(error) for said in ("connection", "failed to resolve host")):
            sys.exit(f"The database in DATABASE_URL cannot be used: {error}")
        if any(said in str(error) for said in ("not a database", "disk", "unable to open", "readonly")):
            fix = "Look at its disk and its permissions, or put a backup in its place."
            sys.exit(f"The database in PREFMH_DATA cannot be used: {error}. {fix}")
        if not any(said in str(error) for said in ("no such table", "does not exist", "no such column")):
            raise
        sys.exit("The database is not made, or older than this program. Run: manage.py migrate")
