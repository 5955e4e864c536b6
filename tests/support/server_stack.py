"""Run tests on PostgreSQL, Redis and a Celery worker instead of the embedded engines:

    python -m tests.support.server_stack tests/annotate tests/campaigns tests/console tests/flows
    python -m tests.support.server_stack --processes -n 0 tests/flows/test_browser.py tests/flows/test_many_voters.py
    python -m tests.support.server_stack --rabbitmq -n 0 tests/campaigns/engine

starts a PostgreSQL and a Redis of this run's own, names them in the environment, and calls pytest with the rest of
the line. Server and worker are threads of the tests, whose settings and stand-ins hold for them; with `--processes`
they are two web processes, a worker and beat, which know no more than their environment and the record. With
`--rabbitmq`, a RabbitMQ of this run's own is the broker; it has one queue for all, so tests cannot run side by side.

With `DATABASE_URL`, `DATABASE_POOL_SIZE=20`, `REDIS_URL`, `SITE_URL` and `SECRET_KEY` set by hand, `pytest -n 0` does
the same on those servers: in a new database there, and in the Redis database named, which is flushed.
"""

import contextlib
import os
import secrets
import subprocess
import sys
from collections.abc import Mapping

from tests.support.engines import Postgres, Redis
from tests.support.rabbitmq import RabbitMQ

_RABBITMQ = "--rabbitmq"


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
        "REDIS_TIMEOUT_SECONDS",
        "BROKER_TIMEOUT_SECONDS",
        "SITE_URL",
        "SECRET_KEY",
        "STATIC_ROOT",
    ]
    # Five processes that each compile every library anew take half a minute to start; and what lets Playwright's
    # tests ask the database is no part of a deployment.
    names += ["PYTHONDONTWRITEBYTECODE", "DJANGO_ALLOW_ASYNC_UNSAFE"]
    return {name: value for name, value in environ.items() if name not in names}


def main(arguments: list[str]) -> int:
    with contextlib.ExitStack() as ends:
        postgres, redis = Postgres(), Redis()
        ends.callback(postgres.remove)
        ends.callback(redis.remove)
        postgres.start()
        redis.start()
        servers = environment(postgres.create("prefmh"), redis.url)
        # As web processes have it: the server on a thread has others for its requests, and they keep no connection.
        servers |= {"DATABASE_POOL_SIZE": "20"}
        # Server, worker and tests share one interpreter and a busy machine: whatever is alive may be slow to answer.
        servers |= {"REDIS_TIMEOUT_SECONDS": "10", "BROKER_TIMEOUT_SECONDS": "10"}
        if _RABBITMQ in arguments:
            broker = RabbitMQ()
            ends.callback(broker.remove)
            broker.start()
            servers |= {"CELERY_BROKER_URL": broker.url}
        rest = [argument for argument in arguments if argument != _RABBITMQ]
        command = [sys.executable, "-m", "pytest", "-p", "tests.support.own_redis", *rest]
        return subprocess.call(command, env={**os.environ, **servers})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
