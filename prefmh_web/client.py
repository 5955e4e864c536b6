"""Campaigns from a program: a client of the API.

    from prefmh_web.client import Site

    site = Site("https://prefmh.example.org", token)
    campaign = site.create(Path("campaign.yaml").read_bytes(), once="pilot-1")
    campaign = site.start(campaign.number)
    for vote in site.rows(campaign.number, "votes"):
        print(vote["chain"], vote["step"], vote["for_proposal"])
    site.download(campaign.number, Path("record.zip"))

A program that is itself a judge of a campaign has a token of its own:

    with Judge("https://prefmh.example.org", judge_token) as judge:
        for question in judge.questions():
            judge.answer(question, "first" if len(question.first.text) < len(question.second.text) else "second")

It needs neither a database nor settings. Each method is one request; `campaigns`, `rows`, `wait_for` and `questions`
may be several.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import httpx
from pydantic import BaseModel

Table = Literal["steps", "votes", "samples"]
Place = Literal["first", "second"]
_SECONDS = 60.0
_BUSY = 429
# Seconds before a judge sends a request again that was lost.
_PAUSES = (0.5, 1, 2, 4, 8)


class Problem(BaseModel):
    """One thing that was wrong with a request; `line` and `column` are in campaign.yaml, from 1."""

    message: str
    path: str = ""
    line: int | None = None
    column: int | None = None


class RequestRefused(Exception):  # noqa: N818 - reads as the sentence it starts
    """The site has refused a request; nothing was changed.

    Args:
        status: of HTTP.
        problems: why, in sentences.
    """

    def __init__(self, status: int, problems: list[Problem]) -> None:
        super().__init__("; ".join(each.message for each in problems) or f"status {status}")
        self.status = status
        self.problems = problems


class Campaign(BaseModel):
    """A campaign as it stood when the site answered; the fields are those of the API."""

    number: int
    name: str
    owner: str
    status: Literal["draft", "running", "paused", "finished", "deleting"]
    objects: str
    chains: int
    steps: int
    steps_decided: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    trouble: str
    starting: str
    created: bool | None = None
    warnings: list[str] = []


class JudgeAbout(BaseModel):
    """A judge of a campaign; the figures are null of one that is no program."""

    place: int
    question: str
    budget: int
    source: str
    name: str
    has_token: bool | None
    held: int | None
    skipped: int | None
    expired: int | None
    pairs: int | None
    pairs_alike: int | None


class Line(BaseModel):
    """One line that is shown with an object, or above both."""

    label: str
    text: str


class Shown(BaseModel):
    """One of the two objects: a text or a SMILES; of an image or a recording, the address of its file."""

    text: str
    picture: str
    sound: str = ""
    context: list[Line]


class Question(BaseModel):
    """A question that a judge holds until `expires_at`. Nothing in it tells which object is the proposal."""

    key: str
    question: str
    objects: str
    first: Shown
    second: Shown
    context: list[Line]
    expires_at: datetime


class Answer(BaseModel):
    """An answer as it was stored; it counts unless its chain was ended before it came."""

    key: str
    chosen: Place
    counted: bool


class _Connection:
    """What both kinds of programs share: requests with a token, sent again after 429, and refusals as exceptions.

    Args:
        url: of the site, such as https://prefmh.example.org.
        token: as the site has shown it, once.
        transport: what sends the requests; for tests.
    """

    def __init__(self, url: str, token: str, *, transport: httpx.BaseTransport | None = None) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=f"{url}/api", headers=headers, timeout=_SECONDS, transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _json(self, method: str, path: str, **sent: Any) -> Any:
        return self._sent(method, path, **sent).json()

    def _sent(self, method: str, path: str, **sent: Any) -> httpx.Response:
        response = self._http.request(method, path, **sent)
        if response.status_code == _BUSY:
            time.sleep(float(response.headers.get("Retry-After", 1)))
            response = self._http.request(method, path, **sent)
        _demand(response)
        return response


class Site(_Connection):
    """A prefmh site, as the owner of a token from the page “Tokens” sees it."""

    def campaigns(self) -> Iterator[Campaign]:
        """Yield every campaign that the token's owner can see, the newest first."""
        after: dict[str, Any] = {}
        while True:
            page = self._json("GET", "/campaigns", params=after)
            yield from map(Campaign.model_validate, page["campaigns"])
            if page["cursor"] is None:
                return
            after = {"after": page["cursor"]}

    def campaign(self, number: int) -> Campaign:
        """Return a campaign as it stands."""
        return self._campaign("GET", f"/campaigns/{number}")

    def check(self, setup: bytes) -> list[str]:
        """Return the warnings about a setup: campaign.yaml, or a ZIP with it. Creates nothing."""
        return list(self._json("POST", "/campaigns/check", content=setup))

    def create(self, setup: bytes, *, once: str = "") -> Campaign:
        """Create a draft from a setup; with a key in `once`, one campaign at most."""
        return self._campaign("POST", "/campaigns", content=setup, params={"once": once})

    def setup(self, number: int) -> bytes:
        """Return a campaign's setup: campaign.yaml, or a ZIP with it and the uploaded file."""
        return self._sent("GET", f"/campaigns/{number}/setup").content

    def start(self, number: int) -> Campaign:
        """Start a draft. `starting` is not empty while models are still being tested: see `wait_for`."""
        return self._campaign("POST", f"/campaigns/{number}/start")

    def pause(self, number: int) -> Campaign:
        """Pause a campaign."""
        return self._campaign("POST", f"/campaigns/{number}/pause")

    def resume(self, number: int) -> Campaign:
        """Resume a campaign."""
        return self._campaign("POST", f"/campaigns/{number}/resume")

    def extend(self, number: int, steps: int) -> Campaign:
        """Let each chain walk so many steps more."""
        return self._campaign("POST", f"/campaigns/{number}/extend", json={"steps": steps})

    def wait_for(self, number: int, is_so: Callable[[Campaign], bool], *, seconds: float, every: float = 2) -> Campaign:
        """Ask again until something is so, such as `lambda campaign: campaign.status == "finished"`.

        Raises:
            TimeoutError: it was not so within these seconds.
        """
        until = time.monotonic() + seconds
        while not is_so(found := self.campaign(number)):
            if time.monotonic() >= until:
                raise TimeoutError(f"campaign {number} is {found.status}, {found.steps_decided} steps are decided")
            time.sleep(every)
        return found

    def rows(self, number: int, table: Table, *, chain: int | None = None) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table, by the names of the columns of the record, up to the last decided step."""
        wanted: dict[str, Any] = {"limit": 500} | ({} if chain is None else {"chain": chain})
        is_last = False
        while not is_last:
            page = self._json("GET", f"/campaigns/{number}/{table}", params=wanted)
            yield from page["rows"]
            is_last, wanted["cursor"] = page["is_last"], page["cursor"]

    def judges(self, number: int) -> list[JudgeAbout]:
        """Return the judges of a started campaign; programs with what they hold, and how alike their answers are."""
        return [JudgeAbout.model_validate(each) for each in self._json("GET", f"/campaigns/{number}/judges")]

    def judge_token(self, number: int, place: int) -> str:
        """Make the token of a judge that is a program, for `Judge`; the one before is withdrawn."""
        return str(self._json("POST", f"/campaigns/{number}/judges/{place}/token")["token"])

    def withdraw_judge_token(self, number: int, place: int) -> None:
        """Let no program in by the token of a judge any more."""
        self._sent("DELETE", f"/campaigns/{number}/judges/{place}/token")

    def people(self, number: int) -> Iterator[dict[str, Any]]:
        """Yield who votes, by the numbers of the record, in the order in which they joined."""
        cursor: int | None = 0
        while cursor is not None:
            page = self._json("GET", f"/campaigns/{number}/people", params={"after": cursor, "limit": 500})
            yield from page["people"]
            cursor = page["cursor"]

    def download(self, number: int, file: Path) -> None:
        """Download the whole record to a file, which is there only once it is whole."""
        unfinished = file.with_name(f"{file.name}.part")
        with self._http.stream("GET", f"/campaigns/{number}/record.zip") as response, unfinished.open("wb") as out:
            _demand(response)
            out.writelines(response.iter_bytes())
        unfinished.replace(file)

    def _campaign(self, method: str, path: str, **sent: Any) -> Campaign:
        return Campaign.model_validate(self._json(method, path, **sent))


class Judge(_Connection):
    """A judge of one campaign, as its token lets a program be it. Several programs may be one judge at once.

    Whatever was lost on its way is sent again: nothing here happens twice.
    """

    def questions(self, worker: str = "") -> Iterator[Question]:
        """Yield question after question until the campaign is finished; wait while there is none.

        A question that is neither answered nor skipped stays held until its time is over.

        Args:
            worker: a name for this process, so that after a crash it gets the question again that it held.
        """
        while True:
            told = self._json("POST", "/judge/questions", json={"worker": worker})
            if told["question"] is not None:
                yield Question.model_validate(told["question"])
            elif told["status"] == "finished":
                return
            else:
                time.sleep(told["ask_again_s"])

    def answer(self, question: Question, chosen: Place) -> Answer:
        """Answer a question. Sent again, the same answer counts once.

        Raises:
            RequestRefused: its time is over, it was skipped, or it was answered otherwise.
        """
        sent = {"chosen": chosen}
        return Answer.model_validate(self._json("POST", f"/judge/questions/{question.key}/answer", json=sent))

    def skip(self, question: Question) -> None:
        """Give a question back; it comes again later."""
        self._sent("POST", f"/judge/questions/{question.key}/skip")

    def picture(self, question: Question, place: Place) -> bytes:
        """Return the image that stands first or second, or the drawing of a molecule."""
        return self._file(question, place)

    def sound(self, question: Question, place: Place) -> bytes:
        """Return the recording that stands first or second: FLAC or MP3."""
        return self._file(question, place)

    def _file(self, question: Question, place: Place) -> bytes:
        return self._sent("GET", f"/judge/questions/{question.key}/{place}").content

    def _sent(self, method: str, path: str, **sent: Any) -> httpx.Response:
        for pause in _PAUSES:
            try:
                return super()._sent(method, path, **sent)
            except httpx.TransportError:
                time.sleep(pause)
        return super()._sent(method, path, **sent)


def verify(record: Path) -> list[str]:
    """Return where a downloaded record differs from its hashes, its votes or its seed; empty if it is accepted.

    Raises:
        sampler.RecordError: the file is no record.
    """
    # Imported here: whoever only talks to a site need not wait for it.
    import sampler

    return [str(finding) for finding in sampler.verify(record).differs]


def _demand(response: httpx.Response) -> None:
    """Demand that a request was not refused.

    Raises:
        RequestRefused: it was.
    """
    if response.is_success:
        return
    response.read()
    try:
        told = [Problem.model_validate(each) for each in response.json()["problems"]]
    except (ValueError, KeyError, TypeError):
        # Not from the site itself, but perhaps from a proxy before it.
        told = [Problem(message=response.text[:500])]
    raise RequestRefused(response.status_code, told)
