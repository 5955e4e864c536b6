"""manage.py judges: asks model servers for votes and texts, many requests at a time."""

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from prefmh_web.campaigns.model_judges import scheduling
from prefmh_web.celery import app
from prefmh_web.endpoints.calls import many_at_once

_MOST_AT_ONCE = 1024
# Texts, and what opens chains: each of these asks for many texts at a time.
_OTHER_TASKS = 16


class Command(BaseCommand):
    """Runs the worker of the queue "endpoints", whose calls wait for servers and not for this machine.

    Turns of model judges are taken by a scheduler of its own, the other tasks by Celery's threads. Each call lends its
    database connection while the server is at work.
    """

    help = "Ask model servers: votes of model judges, and texts that models write. Stop with Ctrl-C."

    def add_arguments(self, parser):
        parser.add_argument("--calls", type=int, default=64, help="turns under way at a time (default: %(default)s)")

    def handle(self, *args, calls: int, **options):
        if settings.EMBEDDED:
            raise CommandError(
                "manage.py serve asks model servers by itself. This is for an installation of several processes."
            )
        if not 1 <= calls <= _MOST_AT_ONCE:
            raise CommandError(f"--calls must be from 1 to {_MOST_AT_ONCE}, not {calls}")
        if not settings.DATABASES["default"]["OPTIONS"].get("pool"):
            raise CommandError("Set DATABASE_POOL_SIZE=4: the calls share so many connections to the database.")
        gates = many_at_once()
        scheduler = scheduling.begin(calls, gates)
        worker = ["worker", "--queues=endpoints", "--pool=threads", f"--concurrency={_OTHER_TASKS}"]
        try:
            app.worker_main([*worker, "--without-gossip", "--without-mingle", "--hostname=judges@%h"])
        finally:
            scheduler.end()
            gates.end()
