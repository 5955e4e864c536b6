"""The record of version 0.1.0 on PostgreSQL: brought up to date, read, exported, and voted on.

A program of its own, since the tests' process has its settings: `test_old_record_on_postgresql.py` runs it on a copy,
whose address stands in DATABASE_URL. There is neither Redis nor a worker: tasks run where their hints are given.
"""

import tempfile
from pathlib import Path

import django

django.setup()

from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402

from prefmh_web import celery_app  # noqa: E402
from prefmh_web.campaigns.engine import leases  # noqa: E402
from prefmh_web.campaigns.models import Campaign, Side  # noqa: E402
from prefmh_web.transport import publishing  # noqa: E402
from tests.released import checks, voting  # noqa: E402

GOES_ON = ("Texts, half through", "Openings, half through", "Unequal twins, half through")
SHOWN = ("Joint ratings, finished", "Written by a model, half through", "A lone order, draft")


def main() -> None:
    """Migrate and look.

    Raises:
        AssertionError: a campaign is not as it should be.
    """
    settings.ALLOWED_HOSTS.append("testserver")
    celery_app.conf.task_always_eager = True
    call_command("migrate", verbosity=0, interactive=False)
    campaigns = list(Campaign.objects.all())
    assert len(campaigns) == 19
    for campaign in campaigns:
        if campaign.name in (*GOES_ON, *SHOWN):
            checks.assert_pages_show(campaign)
        if not campaign.is_draft:
            with tempfile.TemporaryDirectory() as folder:
                checks.assert_replays(checks.assert_export_is_whole(campaign, Path(folder)))
    for name in GOES_ON:
        _vote_to_the_end(Campaign.objects.get(name=name))
    print(f"{len(campaigns)} campaigns read, {len(GOES_ON)} voted to their end")


def _vote_to_the_end(campaign: Campaign) -> None:
    voting.let_time_pass()
    leases.expire()
    crowd = voting.join(campaign, 8)
    while taken := [(person, lease) for person in crowd if (lease := leases.take(person))]:
        for person, lease in taken:
            leases.answer(lease.key, person, Side.LEFT, 1000)
        # A thread of its own gives the hints, and so opens the next comparisons here.
        assert publishing.wait_until_sent(60)
    campaign.refresh_from_db()
    assert campaign.status == Campaign.Status.FINISHED, f"{campaign} is {campaign.status}"


if __name__ == "__main__":
    main()
