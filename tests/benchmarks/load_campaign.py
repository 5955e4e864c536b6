"""Makes the campaigns that people vote in, and the people: a script for the Python of an installation.

    python - '[{"people": 150, "chains": 150, "texts": 1000, "judges": [...], "lease_seconds": 120}]' <load_campaign.py

It prints JSON: for each campaign the path of its invitation and the session keys of its people.
"""

import json
import sys


def make(owner, people: int, texts: int, lease_seconds: int, **config: object) -> dict:
    """Start a campaign and let people join it."""
    from prefmh_web.campaigns import lifecycle
    from tests.support.campaigns import make_config, make_draft

    config = make_config(steps=5000, **config)
    lines = [f"On day {day} the sea was grey and nobody came to the house.\n" for day in range(texts)]
    campaign = make_draft(owner, file="text\n" + "".join(lines), config=config, lease_seconds=lease_seconds)
    lifecycle.start(campaign)
    invitation = campaign.invitations.get()
    keys = [session_of_somebody_new(invitation) for _ in range(people)]
    return {"path": invitation.get_absolute_url(), "keys": keys}


def session_of_somebody_new(invitation) -> str:
    """Join as a new person; return the session's key."""
    from django.contrib.sessions.backends.db import SessionStore

    from prefmh_web.annotate import admission

    session = SessionStore()
    admission.join(session, invitation)
    session.save()
    return session.session_key


def main(wanted: list[dict]) -> None:
    import django

    django.setup()
    from django.contrib.auth import get_user_model

    owner = get_user_model().objects.create(username="ada")
    print(json.dumps([make(owner, **each) for each in wanted]))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
