"""People who are sent to a campaign by a platform: they come, vote, answer trials, and are forgotten."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import zipfile
from pathlib import Path

from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from prefmh_web.campaigns.models import Campaign, EndReason, Voter
from prefmh_web.campaigns.record import export
from prefmh_web.participants import completion, consent
from prefmh_web.participants.models import AttentionCheck, Participation
from tests.support.campaigns import invitation_path, make_config, make_draft, set_study, started_now
from tests.support.process import copied, wait_until_idle

CODES = {"completed": "C0MPLETE", "nothing-left": "N0THING"}
RETURN_ADDRESS = "https://app.prolific.com/submissions/complete?cc={code}"


PICTURE = "data:image/png;base64,iVBORw0KGgo="
WHOLE = {
    "questions": [
        {"name": "role", "text": "What are you?", "options": ["student", "other"], "eligible": ["student"]},
        {"name": "age", "text": "How old are you?", "kind": "number", "eligible_from": 18, "eligible_to": 65},
        {"name": "mood", "text": "How are you?", "kind": "scale", "least": 1, "most": 3, "options": ["bad", "good"]},
        {"name": "comment", "text": "Anything else?", "kind": "text", "is_required": False, "is_last": True},
    ],
    "instructions": f"Read *both*. ![a pair]({PICTURE})",
    "comprehension": [{"text": "What do you read?", "options": ["one", "both"], "right": "both"}],
    "tries": 2,
    "debriefing": "It was about **taste**.",
}
CODES_OF_ALL = CODES | {
    "not-eligible": "N0T",
    "full": "FULL",
    "not-understood": "UNCLEAR",
    "time-over": "LATE",
    "checks-failed": "CHECKS",
}


def recruited_campaign(owner, recruiter: str = "prolific", excluded: tuple[Campaign, ...] = (), **options) -> Campaign:
    """Return a started campaign; of `options`, those of a recruitment set it up."""
    names = ("parameter", "votes_per_person", "consent", "codes", "pay", "return_address", "protocol")
    names += ("quota", "max_minutes", "absent_minutes", "max_votes_per_minute", "budget", "full_pay", "currency")
    names += ("max_active_minutes", "checks_ids")
    # Tests send people under ids that read well.
    fields = {"recruiter": recruiter, "codes": CODES, "return_address": RETURN_ADDRESS, "checks_ids": False}
    fields |= {name: options.pop(name) for name in names if name in options}
    if fields.get("quota") == 1:
        # Then nobody else is needed for a pair.
        alone = [judge | {"votes": 1} for judge in make_config()["judges"]]
        options.setdefault("config", make_config(judges=alone))

    def make() -> Campaign:
        campaign = make_draft(owner, **options)
        set_study(campaign, fields, excluded)
        return started_now(campaign)

    return copied(owner, (fields, options), make)


def prolific(person: str, session: str = "s1") -> dict[str, str]:
    """Return the parameters with which Prolific sends somebody."""
    return {"PROLIFIC_PID": person, "STUDY_ID": "study", "SESSION_ID": session}


def arrive(campaign: Campaign, query: dict[str, str], client: Client | None = None) -> Client:
    """Open the link as a platform gives it, and press the button; return the browser."""
    browser = client or Client()
    path = invitation_path(campaign)
    assert browser.get(path, query).url == path
    assert browser.post(path).url == f"{path}vote/"
    return browser


def pair_of(browser: Client, campaign: Campaign):
    """Return the key of the pair on somebody's page, or None."""
    lease = browser.get(f"{invitation_path(campaign)}vote/").context["screen"].lease
    return lease and lease.key


def payments_of(browser: Client, campaign: Campaign) -> list[dict[str, str]]:
    """Download payments.csv and return its rows."""
    answer = browser.get(reverse("console:payments", args=[campaign.pk]))

    return list(csv.DictReader(io.StringIO(content_of(answer).decode("utf-8-sig"), newline="")))


def content_of(answer) -> bytes:
    """Return what an answer holds, also one that streams."""
    if not answer.streaming:
        return answer.content

    async def read() -> bytes:
        return b"".join([part if isinstance(part, bytes) else part.encode() async for part in answer])

    return asyncio.run(read())


def cookies_of(browser: Client) -> str:
    """Return a browser's cookies as it sends them."""
    return "; ".join(f"{name}={morsel.value}" for name, morsel in browser.cookies.items())


class PageSocket:
    """The socket of somebody's page, on the event loop of whoever uses it.

    Args:
        path: of the page.
    """

    def __init__(self, browser: Client, path: str) -> None:
        from prefmh_web.asgi import application

        headers = {b"host": b"localhost", b"origin": b"http://localhost", b"cookie": cookies_of(browser).encode()}
        scope = {"type": "websocket", "path": f"/ws{path}", "query_string": b"", "subprotocols": []}
        self.socket = ApplicationCommunicator(application, scope | {"headers": list(headers.items())})

    async def open(self) -> str:
        """Connect, and return the first screen."""
        await self.socket.send_input({"type": "websocket.connect"})
        assert (await self.socket.receive_output(10))["type"] == "websocket.accept"
        return await self.screen()

    async def send(self, **fields: str) -> str:
        """Send a response, and return the next screen."""
        await self.socket.send_input({"type": "websocket.receive", "text": json.dumps(fields)})
        return await self.screen()

    async def screen(self, seconds: float = 10) -> str:
        return (await self.socket.receive_output(seconds))["text"]

    async def close(self) -> None:
        await self.socket.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.socket.wait(10)


def vote(browser: Client, campaign: Campaign, times: int = 1) -> None:
    """Answer the pair on somebody's page by form post."""
    for _ in range(times):
        path = f"{invitation_path(campaign)}vote/"
        answer = browser.post(path, {"choice": "first", "lease": str(pair_of(browser, campaign))})
        assert answer.status_code == 302
        wait_until_idle()


def stage_path(campaign) -> str:
    return f"{invitation_path(campaign)}stage/"


def page_of(browser, campaign, path: str = "stage/") -> str:
    return browser.get(f"{invitation_path(campaign)}{path}", follow=True).content.decode()


def go_on(browser, campaign, *pages: dict[str, str]) -> str:
    """Send the pages of one stage after another, and return what is seen then."""
    for fields in pages:
        shown = browser.post(stage_path(campaign), fields, follow=True).content.decode()
    return shown


def screen_of(browser, campaign):
    return browser.get(f"{invitation_path(campaign)}vote/").context["screen"]


def answer_check(browser, campaign, *, rightly: bool = True) -> None:
    check = screen_of(browser, campaign).check
    side = check.expected_side if rightly else {"first": "second", "second": "first"}[check.expected_side]
    fields = {"lease": str(check.key), "choice": side, "elapsed_ms": "900"}
    assert browser.post(f"{invitation_path(campaign)}vote/", fields).status_code == 302


def vote_until_check(browser, campaign) -> AttentionCheck:
    while (check := screen_of(browser, campaign).check) is None:
        vote(browser, campaign)
    return check


# All that an installation holds, as bytes: every row of every table, every file, and what stored sessions say.


def bytes_of_all(*campaigns: Campaign) -> bytes:
    """Return everything that is stored, and new exports of these campaigns, one after the other."""
    return b"\n".join([_tables(), _sessions(), _files(), *map(_archive, campaigns)])


def _tables() -> bytes:
    found: list[bytes] = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            found += [_cell(cell) for row in cursor.fetchall() for cell in row]
    return b"\n".join(found)


def _cell(cell: object) -> bytes:
    return bytes(cell) if isinstance(cell, (bytes, memoryview)) else str(cell).encode()


def _sessions() -> bytes:
    # Compressed and signed, as stored: read here as the server reads them.
    return json.dumps([session.get_decoded() for session in Session.objects.all()]).encode()


def _files() -> bytes:
    root = Path(settings.MEDIA_ROOT)
    return b"\n".join(path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file())


def _archive(campaign: Campaign) -> bytes:
    with zipfile.ZipFile(io.BytesIO(b"".join(export.archive(campaign)))) as archive:
        return b"\n".join(archive.read(name) for name in archive.namelist())


# People of a study who tell of themselves wherever they can, and what others write about them.


PROTOCOL = {
    "questions": [
        {"name": "home", "text": "Where do you live?", "kind": "text"},
        {"name": "comment", "text": "Anything else?", "kind": "text", "is_last": True},
    ],
    "practice": [
        {"first": "A dark night.", "second": "A bright day.", "answer": "first", "if_wrong": "Night is darker."},
    ],
    "check_share": 0.5,
}
TEXT = "You compare texts."
ALL_CODES = CODES | {"withdrawn": "W1THDREW", "ended": "ENDED1"}
KINDS = ("id", "session", "parameter", "answer", "comment", "report", "reason")


def values_of(name: str) -> dict[str, str]:
    """Return what somebody leaves, or others write about them: in each place another string."""
    return {kind: f"zz{kind}of{name}zz" for kind in KINDS}


def study_of(owner, **options) -> Campaign:
    one_judge = make_config(judges=[{"question": "Which is darker?", "votes": 1}], chains=3, steps=20)
    usual = {"codes": ALL_CODES, "config": one_judge, "protocol": PROTOCOL, "consent": TEXT}
    return recruited_campaign(owner, **usual | options)


def come(study, said: dict[str, str], votes: int = 1) -> Client:
    """Come as a platform sends somebody, and leave a string in every place up to the votes."""
    browser = Client()
    browser.get(invitation_path(study), prolific(said["id"], said["session"]) | {"city": said["parameter"]})
    agree = {"consent": "agree", "version": version_now()}
    assert browser.post(invitation_path(study), agree).status_code == 302
    go_on(browser, study, {"stage": "questions", "answer-home": said["answer"]})
    go_on(browser, study, {"stage": "practice", "answer-step": "0", "answer-choice": "first"})
    go_on(browser, study, {"stage": "practice", "answer-step": "0-answered"})
    vote_until_check(browser, study)
    answer_check(browser, study)
    key = pair_of(browser, study)
    report = {"reason": "other", "words": said["report"]}
    assert browser.post(f"{invitation_path(study)}report/{key}/", report).status_code == 302
    wait_until_idle()
    for _ in range(votes):
        if pair_of(browser, study):
            vote(browser, study)
    return browser


def version_now() -> str:
    return consent.version_of(TEXT)


def person_in(study, said) -> Voter:
    part = Participation.objects.get(campaign=study, participant__external_id=said["id"])
    return Voter.objects.select_related("campaign").get(pk=part.voter_id)


def write_about(study, said) -> Voter:
    """End somebody's part with a reason, and give them a comment of their own."""
    person = person_in(study, said)
    completion.exclude(person, study.owner, EndReason.CARELESS, said["reason"], is_paid=False)
    wait_until_idle()
    # As somebody does who comes to the last questions.
    part = part_of(person)
    part.answers["comment"] = {"answer": said["comment"], "at": timezone.now().isoformat()}
    part.save(update_fields=["answers"])
    return person


def part_of(person: Voter) -> Participation:
    return Participation.objects.get(voter=person)


def found_in(content: bytes, said: dict[str, str]) -> set[str]:
    return {kind for kind, value in said.items() if value.encode() in content}
