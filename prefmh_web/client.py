"""Campaigns from a program: a client of the API.

    from prefmh_web.client import Site

    site = Site("https://prefmh.example.org", token)
    campaign = site.create(Path("campaign.yaml").read_bytes(), once="pilot-1")
    campaign = site.start(campaign.number)
    for vote in site.rows(campaign.number, "votes"):
        print(vote["chain_index"], vote["step"], vote["for_proposal"])
    site.download(campaign.number, Path("record.zip"))

The API takes from here what it tells of a campaign, `CampaignOut`. Neither a database nor settings are needed. Each
method is one request; `campaigns`, `rows` and `wait_for` may be several.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import httpx
from pydantic import BaseModel, Field

from prefmh_web.config_yaml import Problem

Table = Literal["steps", "votes", "samples"]
_SECONDS = 60.0
_BUSY = 429


class Figures(BaseModel):
    """What a campaign has brought, as the page Results says it."""

    samples: int = Field(description="States after the decided steps of the sampling phase")
    accepted: int = Field(description="Of the proposals that differed")
    differed: int = Field(description="Decided steps of all phases whose proposal differed from the current object")
    votes: int = Field(description="Those that counted, of all phases")
    late: int = Field(description="Votes that came too late to count")
    people: int = Field(description="Who gave a vote that counted")


class CampaignOut(BaseModel):
    """A campaign as it stands."""

    number: int = Field(description="As the address of its page has it")
    name: str
    owner: str
    status: Literal["draft", "running", "paused", "finished", "deleting"]
    objects: str = Field(description="What is compared: texts, markdown, molecules, images or audio")
    chains: int = Field(description="That are open; of a draft, those that a start opens")
    steps: int = Field(description="Of each chain")
    steps_decided: int = Field(description="Of all chains together")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    trouble: str = Field(description="Why a start failed, or why the campaign was paused; empty where neither is so")
    starting: str = Field(description="What a start that is under way is doing; empty otherwise")


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


class Campaign(CampaignOut):
    """A campaign as it stood when the site answered; `created` and `warnings` are told of one that was just created."""

    figures: Figures | None = None
    created: bool | None = None
    warnings: list[str] = Field(default_factory=list)


class Site:
    """A prefmh site, as the owner of a token from the page “Tokens” sees it. What it refuses is an exception.

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
        return list(self._json("POST", "/campaigns", content=setup, params={"only_check": True})["warnings"])

    def create(self, setup: bytes, *, once: str = "") -> Campaign:
        """Create a draft from a setup; with a key in `once`, one campaign at most."""
        return self._campaign("POST", "/campaigns", content=setup, params={"once": once})

    def setup(self, number: int) -> bytes:
        """Return a campaign's setup: campaign.yaml, or a ZIP with it and the uploaded file."""
        return self._sent("GET", f"/campaigns/{number}/setup").content

    def config(self, number: int) -> dict[str, Any]:
        """Return a campaign's configuration; to others than its owner without what is hidden."""
        return dict(self._json("GET", f"/campaigns/{number}/config"))

    def change(self, number: int, config: bytes) -> Campaign:
        """Change a campaign's configuration: the whole of it, as YAML, JSON or a ZIP with the file."""
        return self._campaign("PUT", f"/campaigns/{number}/config", content=config)

    def start(self, number: int) -> Campaign:
        """Start a draft. `starting` is not empty while models are still being tested: see `wait_for`."""
        return self._campaign("POST", f"/campaigns/{number}", json={"action": "start"})

    def pause(self, number: int) -> Campaign:
        """Pause a campaign."""
        return self._campaign("POST", f"/campaigns/{number}", json={"action": "pause"})

    def resume(self, number: int) -> Campaign:
        """Resume a campaign."""
        return self._campaign("POST", f"/campaigns/{number}", json={"action": "resume"})

    def extend(self, number: int, steps: int) -> Campaign:
        """Let each chain walk so many steps more."""
        return self._campaign("POST", f"/campaigns/{number}", json={"action": "extend", "steps": steps})

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
        wanted: dict[str, Any] = {"limit": 500} | ({} if chain is None else {"chain_index": chain})
        is_last = False
        while not is_last:
            page = self._json("GET", f"/campaigns/{number}/{table}", params=wanted)
            yield from page["rows"]
            is_last, wanted["cursor"] = page["is_last"], page["cursor"]

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


def verify(record: Path) -> list[str]:
    """Return where a downloaded record differs from its hashes, its votes or its seed; empty if it is accepted.

    Raises:
        sampler.RecordError: the file is no record.
    """
    # Imported here: whoever only talks to a site need not wait for it.
    import sampler

    return [str(finding) for finding in sampler.verify(record).differs]


def _demand(response: httpx.Response) -> None:
    """Require that a request was not refused.

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
