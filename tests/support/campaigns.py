"""Campaigns through the real doors, and the people who vote in them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.sessions.backends.db import SessionStore
from django.core.files.base import ContentFile
from django.test import Client
from django.utils import timezone

import sampler
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import leases, transitions
from prefmh_web.campaigns.engine.locks import locked
from prefmh_web.campaigns.lifecycle import changes
from prefmh_web.campaigns.models import Campaign, Comparison, Invitation, Judge, Lease, Side, Vote, Voter
from prefmh_web.config import CampaignConfig, Caps, Study
from prefmh_web.demo.voters import SimulatedVoter
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.servers import Dialect
from prefmh_web.endpoints.truth import untruncated
from prefmh_web.tasks import sweep
from prefmh_web.voting import admission
from tests.support.models import TEXTS, Script, anything_else, chat_reply, is_vote, scripted_server
from tests.support.process import copied, wait_until_idle
from tests.support.sampling import mixture
from tests.support.uploads import archive, picture

# A hash that takes no time: a quarter of a second for each account of a test is a third of the suite's.


class QuickHasher(PBKDF2PasswordHasher):
    """The usual hash after one round. Processes without this class can check it, since it tells its rounds."""

    iterations = 1


MIXTURE = mixture((0.5, "independent"), (0.5, "neighbours"))


PICTURES = archive({f"{number}.png": picture((number * 20, 90, 30)) for number in range(4)})
OF_PICTURES = {"kind": "catalog", "objects": "images", "neighbours": 2}


def make_config(**changes) -> dict:
    """Return a config for twelve texts, with changes."""
    return {
        "space": {"kind": "catalog", "objects": "texts", "neighbours": 3},
        "kernel": MIXTURE,
        "judges": [{"question": "Which is darker?", "votes": 2}, {"question": "Which is better?", "votes": 1}],
        "chains": 3,
        "steps": 50,
        "seed": 20261121,
    } | changes


def whole_config(config, *, name: str = "Made", is_seed_typed: bool = True, filename: str = "", **fields):
    """Return the configuration of a campaign: the parts of `make_config`, and further fields by short names."""
    described = {key: value for key, value in dict(config).items() if key != "target"} | {"name": name}
    if not is_seed_typed:
        described.pop("seed", None)
    if filename:
        # As a browser's upload is named: without folders.
        described["file"] = {"name": filename.rpartition("/")[2]}
    answering = {"seconds": fields.pop("lease_seconds", 120)}
    answering |= {
        key: fields.pop(key) for key in ("suspend_after_skips", "suspend_after_reports", "undo") if key in fields
    }
    caps = {"cost": fields.pop("cost_cap", None), "requests": fields.pop("request_cap", None)}
    scorers = fields.pop("scorer_names", "").split()
    described |= {"answering": answering, "caps": caps, "scorers": scorers}
    return CampaignConfig.model_validate(described | fields)


def create_draft(*, owner, config, file=None, filename: str = "", **fields) -> Campaign:
    """Return a draft; see `whole_config`."""
    given = whole_config(config, filename=filename, **fields)
    return changes.create(owner=owner, config=given, file=file)


def set_study(campaign, fields, excluded=(), by=None) -> None:
    """Change what is asked of people, by the fields of a study."""
    config = Campaign.objects.get(pk=campaign.pk).typed_config
    described = config.study.model_dump() | dict(fields)
    if excluded:
        described["refused"] = [{"number": each.pk, "name": each.name} for each in excluded]
    described["codes"] = {key: code for key, code in described["codes"].items() if code}
    changes.apply(campaign, config.model_copy(update={"study": Study.model_validate(described)}), by)


def set_caps(campaign, by, *, cost_cap, request_cap) -> None:
    """Change the caps of a campaign."""
    config = Campaign.objects.get(pk=campaign.pk).typed_config
    caps = Caps(cost=cost_cap, requests=request_cap)
    changes.apply(campaign, config.model_copy(update={"caps": caps}), by)


def make_draft(owner, *, file: bytes | str = TEXTS, filename: str = "texts.csv", config=None, **fields) -> Campaign:
    """Return a draft whose file has been read; it starts under the seed of its config."""
    content = file.encode() if isinstance(file, str) else file
    fields = {"name": "Twelve texts", "instructions": "", "lease_seconds": 120, "is_seed_typed": True} | fields
    campaign = create_draft(
        owner=owner, file=ContentFile(content, filename), filename=filename, config=config or make_config(), **fields
    )
    wait_until_idle()
    campaign.catalog.refresh_from_db()
    return campaign


def make_campaign(owner, **options) -> Campaign:
    """Return a started campaign whose first comparisons are open."""
    return copied(owner, options, lambda: start_campaign(owner, **options))


def start_campaign(owner, **options) -> Campaign:
    """Return the same, made and started now, so that this process remembers all that a start leaves in memory."""
    return started_now(make_draft(owner, **options))


def started_now(campaign: Campaign) -> Campaign:
    """Start a draft, let all tasks come to rest, and return the campaign as it is then."""
    lifecycle.start(campaign)
    wait_until_idle()
    campaign.refresh_from_db()
    return campaign


def invitation_path(campaign: Campaign) -> str:
    return campaign.invitations.get().get_absolute_url()


def vote_until_finished(
    campaign: Campaign, voters: list[Voter], scores: dict[int, Callable[[int], float]], rng: np.random.Generator
) -> int:
    """Let people with hidden scores vote through their leases, in random order, until the campaign is finished.

    Between two votes all tasks come to rest, so the same generator always gives the same campaign.

    Args:
        scores: for each judge's index, the hidden score of each state's index.

    Returns:
        The number of votes cast.
    """
    judges = {index: sampler.BradleyTerry(score) for index, score in scores.items()}
    votes = 0
    while True:
        wait_until_idle()
        voter = voters[int(rng.integers(len(voters)))]
        lease = leases.take(voter)
        if lease is None:
            campaign.refresh_from_db()
            if campaign.status == Campaign.Status.FINISHED:
                return votes
            continue
        prefers_right = judges[lease.judge.index].vote(rng, lease.first.index, lease.second.index)
        leases.answer(lease.key, voter, Side.SECOND if prefers_right else Side.FIRST, 0)
        votes += 1


def voted_to_the_end(campaign: Campaign, people: int = 3) -> Campaign:
    """Let some people vote who like late objects by the first judge's question and early ones by the second's."""
    voters = [Voter.objects.create(campaign=campaign) for _ in range(people)]
    likes = {0: lambda index: index / 6, 1: lambda index: -index / 6}
    vote_until_finished(campaign, voters, likes, np.random.default_rng(5))
    return Campaign.objects.get(pk=campaign.pk)


def voted_campaign(owner, **options) -> Campaign:
    """Return a campaign whose last vote is cast, as `voted_to_the_end` does."""
    return copied(owner, ("voted", options), lambda: voted_to_the_end(start_campaign(owner, **options)))


def live_page(browser: Client, campaign: Campaign) -> str:
    """Return the campaign's own page."""
    return browser.get(campaign.get_absolute_url()).content.decode()


# Votes cast past the pages: each answers a lease of its own, as `transitions.cast_vote` wants.


def cast(
    comparison: Comparison, judge: Judge, voter: Voter, side: Side = Side.FIRST, key: uuid.UUID | None = None
) -> Vote:
    """Cast a vote whose proposal comes first; the same key again answers the same lease."""
    key = key or uuid.uuid4()
    with locked(comparison.pk) as comparison:
        now = timezone.now()
        given = {"comparison": comparison, "judge": judge, "voter": voter, "proposal_side": Side.FIRST}
        lease, _ = Lease.objects.get_or_create(key=key, defaults={**given, "issued_at": now, "expires_at": now})
        ballot = Vote(key=key, judge=judge, proposal_side=Side.FIRST, chosen_side=side, voter=voter)
        return transitions.cast_vote(comparison, ballot, lease)


# Panels: campaigns whose people are named, each with a link of their own.


def panel_judges(panelists: int, *questions: str, names: tuple[str, ...] = ()) -> list[dict]:
    """Return the judges of a panel; without names, each has their number for one."""
    return [
        {"question": question, "votes": 1, "source": {"kind": "panelist", "name": name}}
        for question in questions or ("Which is darker?",)
        for name in names or map(str, range(1, panelists + 1))
    ]


def panel_campaign(owner, panelists: int = 3, *, names: tuple[str, ...] = (), config=None, **options) -> Campaign:
    """Return a started campaign of a panel; `config` changes that of `make_config`."""
    described = make_config(**{"judges": panel_judges(panelists, names=names)} | (config or {}))
    return make_campaign(owner, config=described, **options)


def link_of(campaign: Campaign, panelist: int) -> Invitation:
    """Return the invitation of a panelist."""
    return campaign.invitations.get(panelist=panelist)


def sit_down(campaign: Campaign, panelist: int) -> Voter:
    """Open the link of a panelist and press the button; return who that is, as an engine reads them."""
    person = admission.join(SessionStore(), link_of(campaign, panelist))
    return Voter.objects.select_related("campaign").get(pk=person.pk)


# A scripted model that rates objects, the campaigns that it judges, and the fixtures of both.


TWO = [("How dark is it?", 3), ("How good is it?", 1)]
ONE = TWO[:1]


@dataclass(frozen=True)
class NoisyRater:
    """A model that likes some words, and gives each reply a point more or less, by its seed."""

    words: tuple[str, ...] = ("red", "dog", "the", "and")

    def __call__(self, body: dict) -> dict:
        if not is_vote(body):
            return anything_else(body)
        prompt = "".join(part["text"] for part in parts_of(body)).lower()
        noise = np.random.default_rng(body["seed"]).integers(-1, 2)
        rating = 4 + sum(prompt.count(word) for word in self.words) % 4 + noise
        return chat_reply(str(rating))


def parts_of(body: dict) -> list[dict]:
    content = body["messages"][-1]["content"]
    return [{"text": content}] if isinstance(content, str) else content


@pytest.fixture(name="script")
def rating_script() -> Iterator[Script]:
    with scripted_server(NoisyRater()) as script:
        script.strikes = is_vote
        yield script


# What *Test* keeps of a server whose votes are what it tells.
TRUE_DISTRIBUTION = {
    "requests": 1,
    "fields": [{"field": "truth", "effect": "obeyed", "evidence": "as often as it tells"}],
}


def registered(owner, url: str, settings, name: str = "A model", **fields) -> Endpoint:
    """Return an endpoint for a server on this machine, which may be called and has passed *Test*."""
    settings.ENDPOINT_ALLOWED_HOSTS = ["127.0.0.1"]
    settings.ENDPOINT_ALLOW_PRIVATE = ["127.0.0.0/8"]
    fields = {"model": "tiny", "dialect": Dialect.VLLM, "profile": TRUE_DISTRIBUTION} | fields
    made = Endpoint(owner=owner, name=name, base_url=url, **fields)
    made.samples_untruncated, made.sampling_evidence = untruncated(made)
    made.save()
    return made


@pytest.fixture(name="endpoint")
def rating_endpoint(researcher, script, settings) -> Endpoint:
    return registered(researcher, script.url, settings)


def rated_config(form: str = "separate", questions=TWO, **changes) -> dict:
    source = {"kind": "model", "endpoint": "A model", "temperature": 0.7}
    judges = [{"question": question, "votes": budget, "source": source} for question, budget in questions]
    return make_config(judges=judges, rule={"kind": "pointwise", "form": form}, chains=2, steps=10) | changes


def make(owner, *args, **changes) -> Campaign:
    return start_campaign(owner, config=rated_config(*args, **changes))


def swept(campaign: Campaign, times: int = 20) -> Campaign:
    """Sweep so many times, and no more once the campaign does not run; return it as it is then."""
    for _ in range(times):
        campaign.refresh_from_db()
        if not campaign.is_running:
            break
        sweep()
        wait_until_idle()
    campaign.refresh_from_db()
    return campaign


# People of the tests, who vote through real sockets.


@dataclass
class CarefulVoter(SimulatedVoter):
    """A voter who notes each vote once the server has answered it: those the person has seen acknowledged."""

    acknowledged: list[str] = field(default_factory=list)

    async def _decide(self, screen):
        # The page answers a vote with another screen; with the same pair again it has not been read yet.
        if self.sent and screen.values.get("lease") != self.sent[-1] and self.sent[-1] not in self.acknowledged:
            self.acknowledged.append(self.sent[-1])
        return await super()._decide(screen)


class AnyScore(dict):
    """Hidden scores for whatever is asked: what takes longer to say is liked a little more."""

    def __missing__(self, question: str):
        return lambda content: len(content) / 50


# Campaigns that find in a warm-up how far to walk: twelve texts of different lengths, in a ring of neighbours.


WARM_UP_TEXTS = "text,weight\n" + "".join(f"{'far ' * index}away,{1 + index % 3}\n" for index in range(12))
WARM_UP = {"steps": 6, "grid": [1, 3, 9], "properties": ["words"], "burn_in": 2, "patience_minutes": 5}


def warming_config(warm_up: dict | None = None, **changes) -> dict:
    """Return a config as it is stored, with changes of the warm-up and of the rest."""
    kernel = {"kind": "walk", "kernel": {"kind": "neighbours"}, "length": 5, "warm_up": WARM_UP | (warm_up or {})}
    judges = [{"question": "Which is darker?", "votes": 1}]
    config = {"version": 1} | make_config(kernel=kernel, judges=judges, chains=3, steps=12) | changes
    return sampler.parse_config(config).model_dump(mode="json")


def warming_campaign(owner, warm_up: dict | None = None, **changes) -> Campaign:
    """Return a started campaign with a warm-up."""
    return make_campaign(owner, file=WARM_UP_TEXTS, config=warming_config(warm_up, **changes))
