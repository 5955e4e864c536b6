"""manage.py serve: everything from one process, on the embedded database."""

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand

from prefmh_web import embedded
from prefmh_web.accounts.models import make_researcher
from prefmh_web.management.commands.researcher import new_account


class Command(BaseCommand):
    """Serves what is in the data folder; makes the folder's database first if it is new."""

    help = "Serve campaigns from one process. No other service is needed."

    def add_arguments(self, parser):
        embedded.add_arguments(parser)
        parser.add_argument(
            "--researcher",
            default="researcher",
            help="print a sign-in link for this account; it is created if it does not exist",
        )

    def handle(self, *args, address, port, url, researcher, **options):
        port = embedded.free_port(address, port)
        site = embedded.site_url(address, port, url)
        embedded.prepare_database()
        user = get_user_model().objects.filter(username=researcher).first() or new_account(researcher)
        user.save()
        make_researcher(user)
        link = f"Sign in as {researcher} (for a day): {embedded.sign_in_link(site, researcher)}"
        embedded.serve(address, port, self.stdout, link)
