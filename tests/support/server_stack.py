"""Run tests on PostgreSQL, Redis and a Celery worker instead of the embedded engines:

    python -m tests.support.server_stack tests/annotate tests/campaigns tests/console tests/flows

starts a PostgreSQL and a Redis of this run's own, names them in the environment, and calls pytest with the rest of
the line. With `DATABASE_URL` and `REDIS_URL` set by hand, plain `pytest` does the same on those servers: in a new
database there, and in the Redis database named, which is flushed.
"""

import os
import secrets
import subprocess
import sys
from collections.abc import Mapping

from tests.support.engines import Postgres, Redis


def environment(database_url: str, redis_url: str, site_url: str = "http://localhost") -> dict[str, str]:
    """Return what a process in server mode needs to know."""
    return {
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "SITE_URL": site_url,
        "SECRET_KEY": secrets.token_urlsafe(50),
        "LOG_LEVEL": "WARNING",
    }


def without_ours(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which nothing speaks of an installation yet."""
    names = [
        "DATABASE_URL",
        "DATABASE_POOL_SIZE",
        "REDIS_URL",
        "CELERY_BROKER_URL",
        "SITE_URL",
        "SECRET_KEY",
        "STATIC_ROOT",
    ]
    # Five processes that each compile every library anew take half a minute to start; and what lets Playwright's
    # tests ask the database is no part of a deployment.
    names += ["PYTHONDONTWRITEBYTECODE", "DJANGO_ALLOW_ASYNC_UNSAFE"]
    return {name: value for name, value in environ.items() if name not in names}


def main(arguments: list[str]) -> int:
    postgres, redis = Postgres(), Redis()
    try:
        postgres.start()
        redis.start()
        servers = environment(postgres.create("prefmh"), redis.url)
        # Threads of sockets end with their test's event loop and leave their connections to the garbage collector.
        leniently = ("-W", "ignore::pytest.PytestUnraisableExceptionWarning")
        # One process: there is one Redis, and each run flushes it.
        command = [sys.executable, "-m", "pytest", "-n", "0", *leniently, *arguments]
        return subprocess.call(command, env={**os.environ, **servers})
    finally:
        redis.remove()
        postgres.remove()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
