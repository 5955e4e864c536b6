"""manage.py demo: three ready campaigns, their links, and everything served from this one process."""

import asyncio
import threading
from collections.abc import Iterator

import numpy as np
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand

from prefmh_web.accounts.roles import make_researcher
from prefmh_web.campaigns.models import Campaign
from prefmh_web.demo.campaigns import ensure_demo_campaigns, hidden_scores
from prefmh_web.demo.voters import Voter
from prefmh_web.embedded import serving
from prefmh_web.embedded.tasks import left_to_the_sweep


class Command(BaseCommand):
    """Prepares an embedded database and serves it; `--simulate K` lets K simulated people vote."""

    help = "Create three example campaigns (texts, molecules, images), print their links, and serve them."

    def add_arguments(self, parser):
        serving.add_arguments(parser)
        parser.add_argument(
            "--simulate",
            type=int,
            choices=range(101),
            default=0,
            metavar="K",
            help="let K simulated people vote in each campaign",
        )

    def handle(self, *args, address, port, url, simulate, **options):
        port = serving.free_port(address, port)
        site = serving.site_url(address, port, url)
        self.stdout.write("Preparing the database and three campaigns ...")
        serving.prepare_database()
        researcher, _ = get_user_model().objects.get_or_create(username="researcher")
        make_researcher(researcher)
        with left_to_the_sweep():
            campaigns = ensure_demo_campaigns(researcher)
        if simulate:
            # Their sockets wait until the server below listens.
            _start_voters(f"http://127.0.0.1:{port}" if address == "0.0.0.0" else site, campaigns, simulate)  # noqa: S104 - compared
            self.stdout.write(f"{simulate} simulated people vote in each campaign.")
        serving.serve(address, port, self.stdout, "\n".join(_links(site, campaigns)))


def _links(site: str, campaigns: list[Campaign]) -> Iterator[str]:
    yield "\nFor the researcher (this link signs you in and is valid for a day):"
    yield f"  {serving.sign_in_link(site, 'researcher')}"
    yield "\nFor voters (send them one of these links):"
    for campaign in campaigns:
        yield f"  {campaign.name:<24} {site}{campaign.invitations.earliest('pk').get_absolute_url()}"
    yield ""


def _start_voters(site: str, campaigns: list[Campaign], count: int) -> None:
    seeds = np.random.SeedSequence().spawn(count * len(campaigns))
    voters = [
        Voter(f"{site}{campaign.invitations.earliest('pk').get_absolute_url()}", hidden_scores(campaign), rng)
        for campaign in campaigns
        for rng in (np.random.default_rng(seeds.pop()) for _ in range(count))
    ]

    async def run_all() -> None:
        await asyncio.gather(*(voter.run() for voter in voters))

    threading.Thread(target=asyncio.run, args=(run_all(),), name="voters", daemon=True).start()
