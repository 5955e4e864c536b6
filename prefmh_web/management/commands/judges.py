"""manage.py judges: asks model servers for votes and texts, many requests at a time."""

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from prefmh_web.campaigns.model_judges import asker
from prefmh_web.celery import app

# Texts, and what opens chains: each of these asks for many texts at a time.
_OTHER_TASKS = 16


class Command(BaseCommand):
    """Runs the worker of the queue "endpoints", whose calls wait for servers and not for this machine.

    Turns of model judges are taken by one event loop and one thread that has the database, the other tasks by Celery's
    threads, which give their database connection to others while a server is at work.
    """

    help = "Ask model servers: votes of model judges, and texts that models write. Stop with Ctrl-C."

    def handle(self, *args, **options):
        if settings.EMBEDDED:
            raise CommandError(
                "manage.py serve asks model servers by itself. This is for an installation of several processes."
            )
        if not settings.DATABASES["default"]["OPTIONS"].get("pool"):
            raise CommandError("Set DATABASE_POOL_SIZE=4: the calls share so many connections to the database.")
        turns = asker.begin()
        worker = ["worker", "--queues=endpoints", "--pool=threads", f"--concurrency={_OTHER_TASKS}"]
        try:
            app.worker_main([*worker, "--without-gossip", "--without-mingle", "--hostname=judges@%h"])
        finally:
            turns.end()
