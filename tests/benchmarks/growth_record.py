"""Makes a running campaign with votes in its record: `python -m tests.benchmarks.growth_record VOTES PEOPLE`.

It prints what `load_campaign` prints of one.
"""

import json
import sys

_MORE_STEPS, _BUDGET = 5000, 2


def main(votes: int, people: int) -> None:
    import django

    django.setup()
    from prefmh_web.accounts.roles import make_researcher
    from prefmh_web.campaigns.models import Invitation
    from prefmh_web.campaigns.tasks import sweep
    from tests.benchmarks.export_record import make_record
    from tests.benchmarks.load_campaign import session_of_somebody_new

    campaign = make_record(votes, _BUDGET, more_steps=_MORE_STEPS)
    campaign.owner.username = "ada"
    campaign.owner.save()
    make_researcher(campaign.owner)
    invitation = Invitation.objects.create(campaign=campaign)
    keys = [session_of_somebody_new(invitation) for _ in range(people)]
    sweep.delay()
    print(json.dumps({"number": campaign.pk, "path": invitation.get_absolute_url(), "keys": keys}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
