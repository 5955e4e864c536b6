"""What an `Installation` has done by a process of its own: campaigns made, started and checked, somebody signed in."""

import json
import sys
from pathlib import Path


def _owner():
    from django.contrib.auth import get_user_model

    from prefmh_web.accounts.roles import make_researcher

    owner, _ = get_user_model().objects.get_or_create(username="ada")
    make_researcher(owner)
    return owner


def _register(endpoints: list[dict]) -> None:
    from prefmh_web.endpoints.models import Endpoint
    from tests.support.campaigns import TRUE_LAW

    owner = _owner()
    for fields in endpoints:
        Endpoint.objects.create(
            owner=owner, model="m", dialect="vllm", profile=TRUE_LAW, samples_plainly=True, **fields
        )


def _make(configs: list[dict], start: bool) -> list[tuple[int, str]]:
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


def _study(config: dict, recruitment: dict) -> tuple[int, str]:
    from tests.participants.test_arrival import TEXT
    from tests.support.campaigns import WHOLE, invitation_path, make_config, recruited_campaign

    owner = _owner()
    before = [question for question in WHOLE["questions"] if not question.get("is_last")]
    protocol = WHOLE | {"questions": before, "check_share": 0.5, "checks_may_fail": 0}
    study = recruited_campaign(owner, config=make_config(**config), consent=TEXT, protocol=protocol, **recruitment)
    return study.pk, invitation_path(study)


def _crowd(people: int, texts: int, config: dict) -> tuple[str, list[str]]:
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


def _check(folder: Path, campaigns: list[int]) -> None:
    from django.db import connection, transaction

    from prefmh_web.campaigns.models import Campaign
    from tests.support.campaigns import assert_record_is_whole, assert_replay_passes, export_to

    for number in campaigns:
        with transaction.atomic(), connection.cursor() as cursor:
            # People go on voting: all that is looked at is of one moment.
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            campaign = Campaign.objects.get(pk=number)
            assert_record_is_whole(campaign)
        assert_replay_passes(export_to(campaign, folder))


def _start(campaign: int) -> None:
    from prefmh_web.campaigns import lifecycle
    from prefmh_web.campaigns.models import Campaign

    lifecycle.start(Campaign.objects.get(pk=campaign))


def _sign_in_path() -> str:
    from django.contrib.auth import get_user_model

    from prefmh_web.accounts.roles import sign_in_path

    return sign_in_path(get_user_model().objects.get(username="ada"))


def _main(wanted: str, *arguments: str) -> None:
    """Do, in a process of the installation, what a method of `Installation` asks for."""
    import django

    django.setup()
    if wanted == "make":
        print(json.dumps(_make(json.loads(arguments[0]), "start" in arguments)))
    elif wanted == "crowd":
        print(json.dumps(_crowd(*json.loads(arguments[0]))))
    elif wanted == "register":
        _register(json.loads(arguments[0]))
    elif wanted == "study":
        print(json.dumps(_study(*json.loads(arguments[0]))))
    elif wanted == "start":
        _start(int(arguments[0]))
    elif wanted == "sign-in":
        print(_sign_in_path())
    else:
        _check(Path(arguments[0]), [int(number) for number in arguments[1:]])


if __name__ == "__main__":
    _main(*sys.argv[1:])
