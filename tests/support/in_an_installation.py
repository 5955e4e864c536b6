"""What a `Program` has done by a process of its own: campaigns made, started and checked, somebody signed in."""

import json
import sys
from pathlib import Path


def _owner(username: str = "ada"):
    from django.contrib.auth import get_user_model

    from prefmh_web.accounts.roles import make_researcher

    owner, _ = get_user_model().objects.get_or_create(username=username)
    make_researcher(owner)
    return owner


def register(endpoints: list[dict], username: str = "ada") -> None:
    from prefmh_web.endpoints.models import Endpoint
    from tests.support.campaigns import TRUE_LAW

    owner = _owner(username)
    usual = {"model": "m", "dialect": "vllm", "profile": TRUE_LAW, "samples_plainly": True}
    for fields in endpoints:
        Endpoint.objects.create(owner=owner, **usual | fields)


def prepare(endpoints: list[dict]) -> None:
    """Make the tables, and the account that `manage.py experiment` asks for, with endpoints."""
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    register(endpoints, "researcher")


def make(configs: list[dict], start: bool) -> list[tuple[int, str]]:
    from tests.support.campaigns import invitation_path, make_config, make_draft

    owner = _owner()
    if not start:
        return [(make_draft(owner, config=make_config(**changes)).pk, "") for changes in configs]
    made = [_started(owner, make_config(**changes)) for changes in configs]
    return [(campaign.pk, invitation_path(campaign)) for campaign in made]


def _started(owner, config: dict):
    from tests.support.campaigns import create_draft, make_campaign, started_now

    if config["space"]["kind"] == "catalog":
        return make_campaign(owner, config=config)
    return started_now(create_draft(owner=owner, config=config))


def leave(config: dict, scorers: str, endpoints: list[dict]) -> None:
    """Prepare a folder and start a campaign in it, but leave what there is to do to a server."""
    from prefmh_web.campaigns import lifecycle
    from prefmh_web.embedded.threads import InProcessTask
    from tests.support.campaigns import create_draft, make_config

    prepare(endpoints)
    InProcessTask.apply_async = lambda *args, **options: None
    lifecycle.start(create_draft(owner=_owner("researcher"), config=make_config(**config), scorer_names=scorers))


def study(config: dict, recruitment: dict) -> tuple[int, str]:
    """Make a campaign of twelve texts that Prolific sends people to, with consent and every stage."""
    from tests.participants.test_arrival import TEXT
    from tests.support.campaigns import WHOLE, invitation_path, make_config, recruited_campaign

    before = [question for question in WHOLE["questions"] if not question.get("is_last")]
    protocol = WHOLE | {"questions": before, "check_share": 0.5, "checks_may_fail": 0}
    made = recruited_campaign(_owner(), config=make_config(**config), consent=TEXT, protocol=protocol, **recruitment)
    return made.pk, invitation_path(made)


def crowd(people: int, texts: int, config: dict) -> tuple[str, list[str]]:
    """Start a campaign, and let people join it; return its invitation's path and the keys of their sessions."""
    from django.contrib.sessions.backends.db import SessionStore

    from prefmh_web.voting import admission
    from tests.support.campaigns import make_config, make_draft, started_now

    lines = [f"On day {day} the sea was grey and nobody came to the house.\n" for day in range(texts)]
    draft = make_draft(_owner(), file="text\n" + "".join(lines), config=make_config(steps=5000, **config))
    campaign = started_now(draft)
    invitation, sessions = campaign.invitations.get(), [SessionStore() for _ in range(people)]
    for session in sessions:
        admission.join(session, invitation)
        session.save()
    return invitation.get_absolute_url(), [session.session_key for session in sessions]


def check(folder: str, campaigns: list[int]) -> None:
    """Look at the records of campaigns, export them, and replay the exports."""
    from django.db import connection, transaction

    from prefmh_web.campaigns.models import Campaign
    from tests.support.campaigns import assert_record_is_whole, assert_replay_passes, export_to

    for number in campaigns:
        with transaction.atomic(), connection.cursor() as cursor:
            # People go on voting: all that is looked at is of one moment.
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            campaign = Campaign.objects.get(pk=number)
            assert_record_is_whole(campaign)
        assert_replay_passes(export_to(campaign, Path(folder)))


def start(campaign: int) -> None:
    from prefmh_web.campaigns import lifecycle
    from prefmh_web.campaigns.models import Campaign

    lifecycle.start(Campaign.objects.get(pk=campaign))


def sign_in_path() -> str:
    from prefmh_web.accounts.roles import sign_in_path as path_for

    return path_for(_owner())


if __name__ == "__main__":
    import django

    django.setup()
    function, arguments = sys.argv[1:]
    print(json.dumps(globals()[function](*json.loads(arguments))))
