"""What a campaign's page shows now: a draft's file, or a started campaign's progress and whether it is running well;
what the card of each shows on the list of campaigns; and the socket, which sends a part of the page again when
something has changed.

A page that is left open all day must not fill somebody's line, however many chains there are and however fast people
vote. Each group of parts has a bucket of bytes that fills up evenly. A part is sent while there is something in the
bucket, which it may overdraw; so in any minute a group takes at most its capacity, a minute's filling and one part.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.db.models import Count, Q, Sum
from django.template.loader import render_to_string

import sampler
from prefmh_web.campaigns import dispatch
from prefmh_web.campaigns.frozen import limits_of
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.model_judges.judges import frozen_prompt
from prefmh_web.campaigns.models import Campaign, Catalog, Chain, Event, Judge, State, Vote, Voter
from prefmh_web.campaigns.monitoring.judging import costs_of, judging_of, panel_price_of, scorers_of
from prefmh_web.campaigns.monitoring.progress import Progress, progress_of, with_heads
from prefmh_web.campaigns.monitoring.results import Trajectories, follow, main_property, trajectories_of
from prefmh_web.campaigns.monitoring.steps import last_reasoned
from prefmh_web.campaigns.record.export import kept_verdict
from prefmh_web.console.plots import Plot, traces
from prefmh_web.console.preview import asks_models, estimates_of, first_pair_of, versions_of
from prefmh_web.console.words import duration, in_words, value_in_words
from prefmh_web.participants.limits import supply_of
from prefmh_web.transport import sockets
from prefmh_web.transport.sockets import NOT_ALLOWED, LiveConsumer, set_within

MAX_HEADS = 6
# Enough to see where chains are; the tab Convergence draws more.
_MAX_POINTS = 1_000
# Reasons. Of more there is a last line, which says how many more there were.
_MAX_KEPT = 1_000


class Board:
    """One campaign as its owner sees it. What a page shows of it is computed once, when the page asks for it.

    Args:
        campaign: a readable one.
    """

    def __init__(self, campaign: Campaign):
        self.campaign = campaign

    @cached_property
    def progress(self) -> Progress | None:
        """How far a started campaign is; None of a draft."""
        return None if self.campaign.is_draft else progress_of(self.campaign)

    @cached_property
    def scorers(self) -> list[dict[str, Any]]:
        """How the scorers of a started campaign are getting on."""
        return [] if self.campaign.is_draft else scorers_of(self.campaign)

    @property
    def is_ready(self) -> bool:
        """True when nothing stands in the way of starting: there is no file to be read, or it has been."""
        return self.catalog is None or self.catalog.status == Catalog.Status.READY

    @property
    def catalog(self) -> Catalog | None:
        """The file that the objects come from; None where the chains make them."""
        return None if self.campaign.config.generates else self.campaign.catalog

    @property
    def first_pair(self) -> dict[str, Any] | None:
        """Of a draft: the first pair as voters will see it; None before its list is read, and where none is asked."""
        is_shown = self.campaign.is_draft and self.is_ready
        return first_pair_of(self.campaign) if is_shown else None

    @property
    def noun(self) -> str:
        """One of what decides the steps; empty where there is nothing to count."""
        evidence = self.campaign.config.rule.evidence
        return "" if evidence == "none" else evidence.removesuffix("s")

    @property
    def price(self) -> dict[str, Any] | None:
        """What the panel of a draft will cost; None where there is none, or once it has started."""
        return panel_price_of(self.campaign) if self.campaign.is_draft else None

    @cached_property
    def estimates(self) -> list[dict[str, Any]]:
        """What the models will take; empty where none is asked."""
        return list(estimates_of(self.campaign))

    @property
    def costs(self) -> dict[str, Any] | None:
        """What the models have taken; None before the start, and where none has been asked."""
        return costs_of(self.campaign) if asks_models(self.campaign) and not self.campaign.is_draft else None

    @property
    def models(self) -> list[tuple[Judge, str]]:
        """The models of a started campaign, each with the version of the prompt that it was frozen with, if it was."""
        models = self.progress.models if self.progress else None
        return [
            (judge, frozen_prompt(judge).template.version if judge.frozen else "")
            for judge in (models["judges"] if models else ())
        ]

    @property
    def judging(self) -> list[dict[str, Any]]:
        """How models vote; empty before the start, and where ratings decide."""
        progress, evidence = self.progress, self.campaign.config.rule.evidence
        return judging_of(progress.judges) if progress and evidence == "votes" else []

    @property
    def reasoned(self) -> Sequence[Vote] | None:
        """The last votes of models that told what they thought; None where that is not kept."""
        sources = [judge.source for judge in self.campaign.config.judges]
        is_kept = any(isinstance(source, sampler.ModelSource) and source.reasons for source in sources)
        return last_reasoned(self.campaign) if is_kept and not self.campaign.is_draft else None

    @property
    def prompts(self) -> list[tuple[int, str, str]]:
        """Of a draft: each judge that can be tried, with its question and the version of its prompt."""
        return versions_of(self.campaign) if self.campaign.is_draft else []

    @property
    def refusals(self) -> int:
        """How many rows or files gave no object of their own."""
        refusals = self.catalog.refusals if self.catalog else []
        if len(refusals) <= _MAX_KEPT:
            return len(refusals)
        _, _, more = refusals[-1]
        return len(refusals) - 1 + int(more)

    @property
    def setup(self) -> list[tuple[str, str]]:
        """What starting freezes, in the researcher's words; values that are empty are of no use to this campaign."""
        config, catalog = self.campaign.config, self.catalog
        columns = f"; further columns: {', '.join(catalog.columns)}" if catalog and catalog.columns else ""
        objects = f"{self.campaign.states.count():,} {self.campaign.object_kind.nouns}"
        chains = f"{config.chains} to {config.max_chains}" if config.opens_on_demand else str(config.chains)
        questions = dict.fromkeys(map(in_words, config.judges))
        return [
            ("What is compared", in_words(config.space)),
            ("Objects", f"{objects} from {catalog.filename}{columns}" if catalog else ""),
            ("Proposals", in_words(config.kernel)),
            ("Rule", in_words(config.rule)),
            ("Questions", "\n".join(questions)),
            ("Panel", f"{len(config.panelists)} people, one answer of each" if config.panelists else ""),
            ("The chains sample", self.campaign.config.target_distribution.replace("; ", "\n")),
            ("Chains", f"{chains}, {config.steps:,} step{'' if config.steps == 1 else 's'} each"),
            ("Burn-in, in steps", str(config.burn_in or "")),
            ("Language of the voters' pages", str(dict(settings.LANGUAGES).get(config.language, config.language))),
            ("How the two objects stand", value_in_words(config, "layout")),
            ("Answers", in_words(config.answering, whole=True)),
            ("Caps on models", in_words(config.caps)),
            ("Scorers", ", ".join(config.all_scorers)),
            ("Seed", self._seed),
            ("Instructions", config.instructions or "none"),
        ]

    @property
    def _seed(self) -> str:
        if self.campaign.hides_seed:
            return f"shown after the end of the campaign; its hash is {self.campaign.seed_hash}"
        if self.campaign.is_draft:
            return f"{'typed' if self.campaign.is_seed_typed else 'drawn at the start'}, revealed at the end"
        return str(self.campaign.seed)

    @property
    def trouble(self) -> str:
        """What of a running campaign needs the researcher, in few words; the notices below have the rest."""
        progress = self.progress
        if progress is None or not self.campaign.is_running:
            return ""
        found = [
            (len(progress.suspended), "Steps are suspended."),
            (len(progress.waits), "Chains wait for a model."),
            (progress.models["suspended"] if progress.models else 0, "A model needs you."),
            (progress.models and progress.models["waiting"] and not progress.lately, "A model does not answer."),
            (sum(map(self._is_missed, self.scorers)), "A scorer needs you."),
            (len(progress.held_up), "A panelist holds up chains."),
            (1, _lack_of_places(self.campaign)),
            (progress.people_needed > 0 and not progress.people_online, "Nobody is online."),
            (progress.lacks_people, "Too few people are online."),
        ]
        return next((words for count, words in found if count and words), "")

    def _is_missed(self, told: dict[str, Any]) -> bool:
        """Say whether steps may wait for numbers that a scorer does not give."""
        scorer = told["scorer"]
        return scorer.name in self.campaign.config.needed_scorers and bool(scorer.stopped_because or told["without"])

    @property
    def time_left(self) -> str:
        """How long the steps that are left take; empty where nothing tells."""
        left = self.progress.minutes_left if self.progress else None
        return "" if left is None else duration(60 * left)

    @property
    def rated_over(self) -> str:
        """Over how long the rate of the answers was measured."""
        return duration(60 * self.progress.minutes) if self.progress else ""

    @property
    def ended(self) -> int:
        """How many chains were ended at a suspended step."""
        return self.campaign.chains.filter(ended_at__isnull=False).count()

    @cached_property
    def heads(self) -> Sequence[tuple[Chain, str]]:
        """The chains that the first screen shows, each with what is measured of its object; the others have a page of
        their own.
        """
        return with_heads(self.campaign, self.progress.chains[:MAX_HEADS]) if self.progress else []

    @cached_property
    def trajectories(self) -> Trajectories:
        """Where the chains of a started campaign have been."""
        return trajectories_of(self.campaign)

    @property
    def trace(self) -> Plot | None:
        """The main property along the chains; None as long as nothing is measured."""
        trajectories = self.trajectories
        if trajectories.unmeasured:
            dispatch.measure(self.campaign)
        followed = follow(trajectories, main_property(self.campaign), 1)
        return traces(followed.label, followed.chains, _MAX_POINTS)

    def part(self, name: str) -> str:
        """Return one part of a started campaign's fragment, by the name of its template."""
        return render_to_string(f"console/board/{name}.html", {"board": self})


def _lack_of_places(campaign: Campaign) -> str:
    """Return that those who have a place do not bring the votes that are needed; empty where a place is free."""
    if not limits_of(campaign).recruiter.knows_people:
        return ""
    supply = supply_of(campaign)
    if supply is None or not (supply["is_full"] and (supply["is_short"] or supply["lacks_people"])):
        return ""
    return f"All places are taken: {supply['steps']:,} steps still need {supply['wanted']:,} votes."


_NOTED_VERDICTS = (Event.Kind.FINISHED_NOW, Event.Kind.EXTENDED)


def cards_of(campaigns: Sequence[Campaign]) -> list[dict[str, Any]]:
    """Return the cards of some campaigns, in their order. More campaigns take no more statements.

    Each has the `campaign`; the object where its first chain is (`head`), None of a draft; how many steps all chains
    have decided (`step`), and how many there will be (`length`); how many `people` have joined, and how many of them
    are `simulated`; and of a finished campaign, whether its chains converged (`verdict`), empty where that is not known
    yet.
    """
    chains = Chain.objects.filter(campaign__in=campaigns).order_by()
    # A code is as long as a small picture, and no thumbnail needs it.
    heads = State.objects.filter(pk__in=chains.filter(index=0).values("head")).defer("code")
    head_of = {state.campaign_id: state for state in heads}
    sums: Any = chains.values("campaign").annotate(step=Sum("step"), length=Sum("length"))
    joined = Voter.objects.filter(campaign__in=campaigns).order_by().values("campaign")
    simulated = Count("pk", filter=Q(invitation__is_simulated=True))
    counts: Any = joined.annotate(people=Count("pk"), simulated=simulated)
    steps_of, people_of = ({each.pop("campaign"): each for each in found} for found in (sums, counts))
    noted = _noted_verdicts(campaigns)
    cards = []
    for campaign in campaigns:
        steps = steps_of.get(campaign.pk, {"step": 0, "length": 0})
        verdict = kept_verdict(campaign, steps["step"]) or noted.get(campaign.pk, "")
        card = {"campaign": campaign, "head": head_of.get(campaign.pk), "verdict": verdict}
        cards.append(card | steps | people_of.get(campaign.pk, {"people": 0, "simulated": 0}))
    return cards


def _noted_verdicts(campaigns: Sequence[Campaign]) -> Mapping[int, str]:
    """Return the verdicts that were noted when campaigns were ended; at most open pairs were decided since."""
    finished = [each.pk for each in campaigns if each.status == Campaign.Status.FINISHED]
    events = Event.objects.filter(campaign__in=finished, kind__in=_NOTED_VERDICTS).order_by("pk")
    newest = {campaign: (kind, data) for campaign, kind, data in events.values_list("campaign", "kind", "data")}
    # After an extension the chains have walked on: what was said then is out of date.
    return {
        campaign: data.get("verdict", "")
        for campaign, (kind, data) in newest.items()
        if kind == Event.Kind.FINISHED_NOW
    }


_AT_MOST_EVERY_S = 1
# Rates and presence fade without any event.
_AT_LEAST_EVERY_S = 10


class BoardConsumer(LiveConsumer):
    """The first page of a campaign, for those who may see the campaign. Of one that has started, only the parts that
    have changed are sent.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._changed = asyncio.Event()
        # What is read first has a bucket of its own, so that plots and pictures never hold it up.
        self._groups = [
            Group(12_000, 24_000, ("now",)),
            Group(10_000, 20_000, ("heads", "trace", "details")),
        ]

    async def connect(self):
        await self.accept()
        user, session_key = self.scope["user"], self.scope["session"].session_key
        if user is None or not user.is_authenticated or session_key is None:
            await self.close(NOT_ALLOWED)
            return
        campaign_id = self.scope["url_route"]["kwargs"]["campaign_id"]
        self._changed.set()
        await self.join(sockets.watchers(campaign_id), sockets.session(session_key))
        self.in_background(self._follow(campaign_id, session_key))

    async def refresh(self, event):
        """Answer a notification; many at once lead to one answer."""
        self._changed.set()

    async def _follow(self, campaign_id: int, session_key: str) -> None:
        sent = ""
        while True:
            await set_within(self._changed, _AT_LEAST_EVERY_S)
            self._changed.clear()
            # Asked every time: they may have signed out, or be a member no more.
            parts = await self._parts(campaign_id, await sockets.user_now(session_key))
            if parts is None:
                await self.close(NOT_ALLOWED)
                return
            if parts and parts != sent:
                await self.send(parts)
                sent = parts
            await asyncio.sleep(_AT_MOST_EVERY_S)

    @database_sync_to_async
    def _parts(self, campaign_id: int, user) -> str | None:
        """Return a draft's board, or what has changed; nothing where nothing has, or it has to wait. None for those who
        may not see the campaign.
        """
        campaign = access.campaigns_for(user).select_related("catalog").filter(pk=campaign_id).first()
        if campaign is None:
            return None
        board, now = Board(campaign), time.monotonic()
        if campaign.is_draft:
            return render_to_string("console/_board.html", {"board": board})
        return "\n".join(part for group in self._groups for part in group.due(board.part, now))


class DownloadConsumer(LiveConsumer):
    """Tells the page of a download how much of it is written, by the token that the page has drawn for it."""

    async def connect(self):
        await self.accept()
        if (user := self.scope["user"]) is None or not user.is_authenticated:
            await self.close(NOT_ALLOWED)
            return
        await self.join(sockets.download(self.scope["url_route"]["kwargs"]["token"]))

    async def download_share(self, event):
        """Pass on the share, from 0 to 1."""
        await self.send(str(event["share"]))


@dataclass
class Group:
    """Parts of a page that share a bucket of bytes, by their names. Whichever was not sent for longest comes first.

    Args:
        capacity: of the bucket, which is full at first, in bytes.
        a_minute: bytes that it fills up by.
    """

    capacity: float
    a_minute: float
    names: Sequence[str]
    _left: float = math.inf
    _at: float = 0.0
    _sent: dict[str, str] = field(default_factory=dict)
    _turns: dict[str, float] = field(default_factory=dict)

    def due(self, part: Callable[[str], str], now: float) -> list[str]:
        """Return what is to be sent now, in order.

        Args:
            part: renders one of them, and is asked for no other.
            now: in seconds of a clock that never goes back.
        """
        self._left = min(self.capacity, self._left + (now - self._at) * self.a_minute / 60)
        self._at = now
        found = []
        for name in sorted(self.names, key=lambda name: self._turns.get(name, float("-inf"))):
            if self._left <= 0:
                break
            html = part(name)
            if html == self._sent.get(name):
                continue
            self._left -= len(html.encode())
            self._sent[name], self._turns[name] = html, now
            found.append(html)
        return found
