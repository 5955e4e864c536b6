"""manage.py demo: three ready campaigns, their links, and everything served from this one process."""

from collections.abc import Iterator

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand

from prefmh_web import embedded
from prefmh_web.accounts.models import make_researcher
from prefmh_web.campaigns.models import Campaign
from prefmh_web.celery import left_to_the_sweep
from prefmh_web.demo.campaigns import ensure_demo_campaigns, start_company


class Command(BaseCommand):
    """Prepares an embedded database and serves it; `--simulate K` lets K simulated people vote in each campaign."""

    help = "Create three example campaigns (texts, molecules, images), print their links, and serve them."

    def add_arguments(self, parser):
        embedded.add_arguments(parser)
        parser.add_argument(
            "--simulate",
            type=int,
            choices=range(101),
            default=3,
            metavar="K",
            help="let K simulated people vote in each campaign while nobody else does (default: %(default)s)",
        )

    def handle(self, *args, address, port, url, simulate, **options):
        port = embedded.free_port(address, port)
        site = embedded.site_url(address, port, url)
        self.stdout.write("Preparing the database and three campaigns ...")
        embedded.prepare_database()
        researcher, _ = get_user_model().objects.get_or_create(username="researcher")
        make_researcher(researcher)
        with left_to_the_sweep():
            campaigns = ensure_demo_campaigns(researcher)
        if simulate:
            # Their sockets wait until the server below listens.
            start_company(f"http://127.0.0.1:{port}" if address == "0.0.0.0" else site, researcher, simulate)  # noqa: S104 - compared
            self.stdout.write(f"{simulate} simulated people vote in each campaign while nobody else does.")
        embedded.serve(address, port, self.stdout, "\n".join(_links(site, campaigns)))


def _links(site: str, campaigns: list[Campaign]) -> Iterator[str]:
    yield "\nFor the researcher (this link signs you in and is valid for a day):"
    yield f"  {embedded.sign_in_link(site, 'researcher')}"
    yield "  The page of a campaign shows its chains move as votes come in; its tab Results says what was found so far."
    yield "\nFor voters (send them one of these links):"
    for campaign in campaigns:
        invitation = campaign.invitations.filter(is_simulated=False).earliest("pk")
        yield f"  {campaign.name:<24} {site}{invitation.get_absolute_url()}"
    yield "  Press ← or → for the one that you prefer; the next pair is there at once.\n"
