"""Makes the campaigns that people vote in, and the people: a script for the Python of an installation.

    python - '[{"people": 150, "chains": 150, "texts": 1000, "judges": [...], "lease_seconds": 120}]' <load_campaign.py

It reads standard input because the installation may be another revision's, whose checkout has its own `tests`, or none
of this name. It imports that revision's functions only, and prints JSON: for each campaign its number, the path of its
invitation and the session keys of its people.
"""

import importlib
import importlib.util
import json
import sys

# Where people join: at first in `people`.
JOINING = ("prefmh_web.annotate.admission", "prefmh_web.annotate.people")


def first_there(names: tuple[str, ...]):
    """Return the first of these modules that the revision has."""
    return importlib.import_module(next(name for name in names if importlib.util.find_spec(name)))


def make(owner, people: int, texts: int, lease_seconds: int, changes: dict, **recipe: object) -> dict:
    """Start a campaign and let people join it."""
    from prefmh_web.campaigns import lifecycle
    from tests.support.campaigns import make_draft, make_recipe

    recipe = make_recipe(steps=5000, **recipe) | changes
    if "space" in changes:
        from prefmh_web.campaigns.lifecycle import drafts

        campaign = drafts.create(
            owner=owner, is_seed_typed=True, name="Generated", recipe=recipe, lease_seconds=lease_seconds
        )
    else:
        lines = [f"On day {day} the sea was grey and nobody came to the house.\n" for day in range(texts)]
        campaign = make_draft(owner, file="text\n" + "".join(lines), recipe=recipe, lease_seconds=lease_seconds)
    lifecycle.start(campaign)
    invitation = campaign.invitations.get()
    keys = [session_of_somebody_new(invitation) for _ in range(people)]
    return {"number": campaign.pk, "path": invitation.get_absolute_url(), "keys": keys}


def session_of_somebody_new(invitation) -> str:
    """Join as a new person; return the session's key."""
    from django.contrib.sessions.backends.db import SessionStore

    session = SessionStore()
    first_there(JOINING).join(session, invitation)
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
