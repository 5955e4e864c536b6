"""manage.py doctor: what is stuck, why, and what fixes it."""

import sys

from django.core.management.base import BaseCommand

from prefmh_web.operations import probes


class Command(BaseCommand):
    """Prints findings; exits with 1 when there are any."""

    help = "List what does not progress, why, and what to do: chains, pairs, files, queues, the database."
    # The database may lack migrations, which is a finding and no reason to stop.
    requires_migrations_checks = False
    # Those look at the code, for which `manage.py check` is; whoever calls the doctor is in a hurry.
    requires_system_checks = ()

    def handle(self, *args, **options):
        # Asked while the rest is loaded: servers that stand still are waited for.
        probes.start_probes(workers=True)
        from prefmh_web.operations import doctor

        found = doctor.findings()
        for finding in found:
            self.stdout.write(self.style.WARNING(f"- {finding.what}"))
            self.stdout.write(f"    {finding.fix}")
        if found:
            sys.exit(1)
        self.stdout.write("No problems found.")
