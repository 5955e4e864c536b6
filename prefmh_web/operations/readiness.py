"""Can this process do its work? Asked by whoever restarts processes or sends people to them, every few seconds.

Neither page needs a session, a cookie or TLS.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from prefmh_web.operations import queues

# Below this, the next upload or the embedded database's next page may find no room.
_LEAST_FREE_BYTES = 16 * 2**20


class NotReady(Exception):  # noqa: N818 - reads as the sentence it starts
    """The message says why, without anything a stranger should not read."""


def missing_migrations() -> list[str]:
    """Return the migrations that the database lacks.

    Raises:
        NotReady: the database does not answer.
    """
    with _database():
        executor = MigrationExecutor(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


def reasons() -> dict[str, str]:
    """Return, for each thing this process needs, "ok" or why it is not."""
    queues.look_ahead(workers=False)
    return {name: _outcome(check) for name, check in _CHECKS.items()}


def _database_answers() -> None:
    with _database(), connection.cursor() as cursor:
        cursor.execute("SELECT 1")


# What is complete stays complete while this process lives: migrations are only ever added by a newer version.
_is_migrated = False


def _is_up_to_date() -> None:
    global _is_migrated
    if _is_migrated:
        return
    if missing := missing_migrations():
        raise NotReady(f"{len(missing)} migrations are missing; run: manage.py migrate")
    _is_migrated = True


def _broker_answers() -> None:
    queues.lengths()


def _disk_has_room() -> None:
    """Write a little where uploads, pictures and the embedded database lie: quotas and faults show in no number."""
    try:
        free = shutil.disk_usage(settings.DATA_DIR).free
        with tempfile.TemporaryFile(dir=settings.DATA_DIR) as file:
            file.write(bytes(2**12))
    except OSError as error:
        raise NotReady(f"The disk cannot be written ({error.strerror or type(error).__name__}).") from error
    if free < _LEAST_FREE_BYTES:
        raise NotReady(f"The disk is full: {free // 2**20} MiB are free.")


def _outcome(check: Callable[[], None]) -> str:
    try:
        check()
    except (NotReady, queues.Unreachable) as reason:
        return str(reason)
    return "ok"


@contextmanager
def _database() -> Iterator[None]:
    try:
        yield
    except ImproperlyConfigured:
        raise
    except (DatabaseError, InterfaceError) as error:
        raise NotReady(f"The database does not answer ({type(error).__name__}).") from error


_CHECKS = {
    "database": _database_answers,
    "migrations": _is_up_to_date,
    "channel layer": queues.try_channel_layer,
    "broker": _broker_answers,
    "disk": _disk_has_room,
}


@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """This process is alive. Whoever restarts processes asks here: a restart mends no database."""
    return HttpResponse("alive\n", content_type="text/plain")


@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """This process can serve people: 200, or 503 with the reasons. Whoever sends people asks here."""
    found = reasons()
    return JsonResponse(found, status=200 if set(found.values()) == {"ok"} else 503)
