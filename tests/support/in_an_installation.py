"""What a `Program` has done by a process of its own: campaigns made, started and checked, somebody signed in."""
# ruff: noqa: E402 - models can be imported only once Django is set up

import json
import sys
from pathlib import Path

import django

django.setup()

from django.contrib.auth import get_user_model
from django.contrib.sessions.backends.db import SessionStore
from django.core.management import call_command
from django.db import connection, transaction

from prefmh_web.accounts.models import make_researcher
from prefmh_web.accounts.models import sign_in_path as sign_in_path_of
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.models import Campaign
from prefmh_web.celery import InProcessTask
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.voting import admission
from tests.support import campaigns, people, records
from tests.support.campaigns import create_draft, invitation_path, make_config, make_draft, started_now


def _owner(username: str = "ada"):
    owner, _ = get_user_model().objects.get_or_create(username=username)
    make_researcher(owner)
    return owner


def register(endpoints: list[dict], username: str = "ada") -> None:
    owner = _owner(username)
    usual = {"model": "m", "dialect": "vllm", "profile": campaigns.TRUE_DISTRIBUTION, "samples_untruncated": True}
    for fields in endpoints:
        Endpoint.objects.create(owner=owner, **usual | fields)


def prepare(endpoints: list[dict]) -> None:
    """Make the tables, and the account that `manage.py experiment` asks for, with endpoints."""
    call_command("migrate", verbosity=0)
    register(endpoints, "researcher")


def make(configs: list[dict], start: bool) -> list[tuple[int, str]]:
    owner = _owner()
    if not start:
        return [(make_draft(owner, config=make_config(**changes)).pk, "") for changes in configs]
    made = [_started(owner, make_config(**changes)) for changes in configs]
    return [(campaign.pk, invitation_path(campaign)) for campaign in made]


def _started(owner, config: dict) -> Campaign:
    if config["space"]["kind"] == "catalog":
        return campaigns.make_campaign(owner, config=config)
    return started_now(create_draft(owner=owner, config=config))


def leave(config: dict, scorers: str, endpoints: list[dict]) -> None:
    """Prepare a folder and start a campaign in it, but leave what there is to do to a server."""
    prepare(endpoints)
    InProcessTask.apply_async = lambda *args, **options: None
    lifecycle.start(create_draft(owner=_owner("researcher"), config=make_config(**config), scorer_names=scorers))


def study(config: dict, recruitment: dict) -> tuple[int, str]:
    """Make a campaign of twelve texts that Prolific sends people to, with consent and every stage."""
    before = [question for question in people.WHOLE["questions"] if not question.get("is_last")]
    protocol = people.WHOLE | {"questions": before, "check_share": 0.5, "checks_may_fail": 0}
    whole = {"config": make_config(**config), "consent": "# Consent\n\nYou compare *texts*.", "protocol": protocol}
    made = people.recruited_campaign(_owner(), **whole, **recruitment)
    return made.pk, invitation_path(made)


def crowd(people: int, texts: int, config: dict) -> tuple[str, list[str]]:
    """Start a campaign, and let people join it; return its invitation's path and the keys of their sessions."""
    lines = [f"On day {day} the sea was grey and nobody came to the house.\n" for day in range(texts)]
    draft = make_draft(_owner(), file="text\n" + "".join(lines), config=make_config(steps=5000, **config))
    invitation = started_now(draft).invitations.get()
    sessions = [SessionStore() for _ in range(people)]
    for session in sessions:
        admission.join(session, invitation)
        session.save()
    return invitation.get_absolute_url(), [session.session_key for session in sessions]


def check(folder: str, numbers: list[int]) -> None:
    """Look at the records of campaigns, export them, and replay the exports."""
    for number in numbers:
        with transaction.atomic(), connection.cursor() as cursor:
            # People go on voting: all that is looked at is of one moment.
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            campaign = Campaign.objects.get(pk=number)
            records.assert_record_is_whole(campaign)
        records.assert_replay_passes(records.export_to(campaign, Path(folder)))


def start(campaign: int) -> None:
    lifecycle.start(Campaign.objects.get(pk=campaign))


def sign_in_path() -> str:
    return sign_in_path_of(_owner())


if __name__ == "__main__":
    function, arguments = sys.argv[1:]
    print(json.dumps(globals()[function](*json.loads(arguments))))
