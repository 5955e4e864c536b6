"""The application in this process, embedded, in a folder that goes when the benchmark ends."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator

_SERVERS = ("DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL", "SITE_URL")


@contextlib.contextmanager
def own_site() -> Iterator[None]:
    """Set Django up on an empty record, with leave to call model servers on this machine.

    Raises:
        RuntimeError: something of the application was imported before, and with it the settings of another record.
    """
    if "prefmh_web" in sys.modules:
        raise RuntimeError("prefmh_web must not be imported before its settings are made")
    with tempfile.TemporaryDirectory(prefix="prefmh-benchmark-") as folder:
        for name in _SERVERS:
            os.environ.pop(name, None)
        os.environ |= {
            "PREFMH_DATA": folder,
            "DJANGO_SETTINGS_MODULE": "prefmh_web.settings",
            "ENDPOINT_ALLOWED_HOSTS": "127.0.0.1",
            "ENDPOINT_ALLOW_PRIVATE": "127.0.0.1/32",
        }
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0)
        yield


def researcher():
    """Return the account that owns what the benchmark makes."""
    from django.contrib.auth import get_user_model

    from prefmh_web.accounts.roles import make_researcher

    owner = get_user_model().objects.create_user("ada")
    make_researcher(owner)
    return owner
