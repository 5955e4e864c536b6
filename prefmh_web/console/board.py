"""What a campaign's page shows now: a draft's file, or a started campaign's progress and whether it is running well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from django.conf import settings
from django.template.loader import render_to_string

import sampler
from prefmh_web.campaigns import dispatch
from prefmh_web.campaigns.model_judges.frozen_judges import frozen_prompt
from prefmh_web.campaigns.models import Campaign, Catalog, Judge, State, Vote
from prefmh_web.campaigns.monitoring.judging import Costs, Judging, ScorerStanding, costs_of, judging_of, standing_of
from prefmh_web.campaigns.monitoring.panel import PanelPrice, price_of
from prefmh_web.campaigns.monitoring.progress import ChainHead, Progress, heads_of, progress_of
from prefmh_web.campaigns.monitoring.results import follow, is_cut_short, main_property
from prefmh_web.campaigns.monitoring.steps import last_reasoned
from prefmh_web.campaigns.monitoring.trajectories import Trajectories, trajectories_of
from prefmh_web.config.campaign import LAYOUTS
from prefmh_web.console.estimates import Estimate, asks_models, estimates_of
from prefmh_web.console.plots import Line, Plot, traces
from prefmh_web.console.previews import versions_of
from prefmh_web.console.sandbox import ShownPair, first_pair_of
from prefmh_web.console.words import ANSWERS, AnswerWords, duration, in_words
from prefmh_web.participants.limits import supply_of
from prefmh_web.participants.recruiting import terms_of
from prefmh_web.settings.languages import SOURCE
from sampler.judges import prompt_version

_PREVIEW = 6
MOST_HEADS = 6
# Enough to see where chains are; the tab Convergence draws more.
_MOST_POINTS = 1_000
# Reasons. Of more there is a last line, which says how many more there were.
_MOST_KEPT = 1_000


@dataclass(frozen=True)
class Board:
    """One campaign as its owner sees it."""

    campaign: Campaign
    progress: Progress | None
    preview: list[State]
    objects: int
    scorers: list[ScorerStanding]

    @property
    def is_ready(self) -> bool:
        """True when nothing stands in the way of starting: there is no file to be read, or it has been."""
        return self.catalog is None or self.catalog.status == Catalog.Status.READY

    @property
    def catalog(self) -> Catalog | None:
        """The file that the objects come from; None where the chains make them."""
        return None if self.campaign.config.generates else self.campaign.catalog

    @property
    def first_pair(self) -> ShownPair | None:
        """Of a draft: the first pair as voters will see it; None before its list is read, and where none is asked."""
        is_shown = self.campaign.is_draft and self.is_ready
        return first_pair_of(self.campaign) if is_shown else None

    @property
    def answers(self) -> AnswerWords:
        """What decides the steps, in words."""
        return ANSWERS[self.campaign.config.rule.evidence]

    @property
    def deciding_scorers(self) -> tuple[str, ...]:
        """The scorers whose numbers decide, if such decide."""
        return self.campaign.config.rule.scorers

    @property
    def asks_judges(self) -> bool:
        """False where nobody answers questions."""
        return self.campaign.config.rule.asks_judges

    @property
    def price(self) -> PanelPrice | None:
        """What the panel of a draft will cost; None where there is none, or once it has started."""
        return price_of(self.campaign) if self.campaign.is_draft else None

    @property
    def estimates(self) -> list[Estimate]:
        """What the models will take; empty where none is asked."""
        return estimates_of(self.campaign)

    @property
    def costs(self) -> Costs | None:
        """What the models have taken; None before the start, and where none has been asked."""
        return costs_of(self.campaign) if asks_models(self.campaign) and not self.campaign.is_draft else None

    @property
    def models(self) -> list[tuple[Judge, str]]:
        """The models of a started campaign, each with the version of the prompt that it was frozen with, if it was."""
        standing = self.progress.models if self.progress else None
        return [
            (judge, prompt_version(frozen_prompt(judge)) if judge.frozen else "")
            for judge in (standing.judges if standing else ())
        ]

    @property
    def judging(self) -> list[Judging]:
        """How models vote; empty before the start, and where ratings decide."""
        progress, evidence = self.progress, self.campaign.config.rule.evidence
        return judging_of(progress.judges) if progress and evidence == "votes" else []

    @property
    def has_reasons(self) -> bool:
        """True once started where it is kept what the models thought."""
        sources = [judge.source for judge in self.campaign.config.judges]
        return not self.campaign.is_draft and any(getattr(source, "reasons", False) for source in sources)

    @property
    def reasoned(self) -> Sequence[Vote]:
        """The last votes of models that told what they thought."""
        return last_reasoned(self.campaign)

    @property
    def prompts(self) -> list[tuple[int, str, str]]:
        """Of a draft: each judge that can be tried, with its question and the version of its prompt."""
        return versions_of(self.campaign) if self.campaign.is_draft else []

    @property
    def stopped_because(self) -> str:
        """Why a campaign that is under way was paused, or is about to be; empty if a researcher paused it."""
        return self.campaign.paused_because if self.campaign.is_under_way else ""

    @property
    def is_panel(self) -> bool:
        """True where named people judge, each for themselves."""
        return self.campaign.config.panelists != ()

    @property
    def is_elastic(self) -> bool:
        """True where chains open while the campaign runs."""
        return self.campaign.config.is_elastic

    @property
    def refusals(self) -> int:
        """How many rows or files gave no object of their own."""
        refusals = self.catalog.refusals if self.catalog else []
        if len(refusals) <= _MOST_KEPT:
            return len(refusals)
        _, _, more = refusals[-1]
        return len(refusals) - 1 + int(more)

    @property
    def setup(self) -> list[tuple[str, str]]:
        """What starting freezes, in the researcher's words."""
        config = self.campaign.config
        judges = list(dict.fromkeys(_judge_line(judge, config) for judge in config.judges))
        return [
            ("What is compared", in_words(config.space)),
            *([("Objects", self._list)] if not config.generates else []),
            ("Proposals", in_words(config.kernel)),
            ("Rule", in_words(config.rule)),
            *([("Questions", "\n".join(judges))] if judges else []),
            ("The chains sample", self.campaign.target_law.replace("; ", "\n")),
            ("Chains", f"{_chains(config)}, {config.steps} steps each"),
            *([("Burn-in, in steps", str(config.burn_in))] if config.burn_in else []),
            *([("Language of the voters' pages", self._language)] if config.language != SOURCE else []),
            *([("How the two objects stand", LAYOUTS[config.layout])] if config.layout else []),
            ("Time to answer, in seconds", str(config.answering.seconds)),
            ("A step is suspended", self._suspension),
            *([("Cap on models", self._caps)] if self._caps else []),
            *([("Scorers", ", ".join(config.all_scorers))] if config.all_scorers else []),
            ("Seed", self._seed),
            ("Instructions", config.instructions or "none"),
        ]

    @property
    def _list(self) -> str:
        catalog, count = self.campaign.catalog, self.campaign.states.count()
        kept = f"; further columns: {', '.join(catalog.columns)}" if catalog.columns else ""
        return f"{count} {self.campaign.object_kind.nouns} from {catalog.filename}{kept}"

    @property
    def _seed(self) -> str:
        if self.campaign.hides_seed:
            return f"told once the campaign has ended; its hash is {self.campaign.seed_hash}"
        if self.campaign.is_draft:
            return f"{'typed' if self.campaign.is_seed_typed else 'drawn at the start'}, told at the end"
        return str(self.campaign.seed)

    @property
    def _suspension(self) -> str:
        answering = self.campaign.config.answering
        skips, reports = answering.suspend_after_skips, answering.suspend_after_reports
        people = "1 person reports" if reports == 1 else f"{reports} people report"
        after = f"after {skips} skip{'' if skips == 1 else 's'}, or " if skips else ""
        return f"{after}when {people} that an object is not shown"

    @property
    def _caps(self) -> str:
        cost, requests = self.campaign.cost_cap, self.campaign.request_cap
        return "\n".join(
            [*([] if cost is None else [f"{cost:.2f}"]), *([] if requests is None else [f"{requests} requests"])]
        )

    @property
    def _language(self) -> str:
        language = self.campaign.config.language
        return str(dict(settings.LANGUAGES).get(language, language))

    @cached_property
    def outlook(self) -> Outlook:
        """Whether a started campaign is running well, and when it is done.

        Raises:
            ValueError: it has not started.
        """
        if self.progress is None:
            raise ValueError("a draft has no outlook")
        return outlook_of(self.campaign, self.progress)

    @cached_property
    def heads(self) -> list[ChainHead]:
        """The chains that the first screen shows; the others have a page of their own."""
        return heads_of(self.campaign, self.progress.chains[:MOST_HEADS]) if self.progress else []

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
        chains = [(place, numbers) for place, numbers in followed.chains if len(numbers)]
        if not chains:
            return None
        lines = [Line(f"chain {place}", 0, numbers, place) for place, numbers in chains]
        return traces(f"Trace of {followed.label}", lines, followed.label, most_points=_MOST_POINTS)

    def html(self) -> str:
        """Return the whole fragment, which the page swaps in by its id."""
        return render_to_string("console/_board.html", {"board": self})

    def part(self, name: str) -> str:
        """Return one part of a started campaign's fragment, by the name of its template."""
        return render_to_string(f"console/board/{name}.html", {"board": self})


def _chains(config: sampler.ChainConfig) -> str:
    return f"{config.chains} to {config.max_chains}" if config.is_elastic else str(config.chains)


def _judge_line(judge: sampler.JudgeConfig, config: sampler.ChainConfig) -> str:
    words, source = [_votes(judge.votes, config.rule.evidence)], judge.source
    if isinstance(source, sampler.PanelistSource):
        words = [f"a panel of {len(config.panelists)}, one answer of each panelist"]
    if (order := judge.order) != "random":
        words.append(f"{order.replace('-', ' ')} on the screen" if order.startswith("proposal") else order)
    if isinstance(source, sampler.ModelSource):
        how = "ratings" if config.rule.evidence == "ratings" else source.votes
        words.append(f"{how} by {source.endpoint} at temperature {source.temperature:g}")
        words += ["asked before people"] if source.first else []
        words += ["reasons kept"] if source.reasons else []
        words += _seen(source.vision)
        words += [f"in your own words, prompt {source.prompt.version}"] if source.prompt else []
    return f"{judge.question} ({'; '.join(words)})"


def _votes(most: int, evidence: str) -> str:
    plural = "" if most == 1 else "s"
    return f"{most} rating{plural} of an object" if evidence == "ratings" else f"at most {most} vote{plural} on a pair"


def _seen(vision: sampler.Vision | None) -> list[str]:
    """Return how a model is shown pictures, in words; empty where they stay as they are."""
    if vision is None:
        return []
    words = [f"pictures of at most {vision.edge} pixels"] if vision.edge else []
    words += (
        [f"as {vision.format.upper()}" + (f" of quality {vision.quality}" if vision.quality else "")]
        if (vision.format)
        else []
    )
    words += [f"{vision.detail} detail"] if vision.detail else []
    shown = {"smiles": "SMILES", "picture": "drawings", "both": "SMILES and drawings"}
    return words + ([f"molecules as {shown[vision.molecules]}"] if vision.molecules else [])


def board_for(campaign: Campaign) -> Board:
    """Return what to show of a campaign."""
    return Board(
        campaign=campaign,
        progress=None if campaign.is_draft else progress_of(campaign),
        preview=list(campaign.states.all()[:_PREVIEW]) if campaign.is_draft else [],
        objects=campaign.states.count(),
        scorers=[] if campaign.is_draft else standing_of(campaign),
    )


def board_of_setup(campaign: Campaign) -> Board:
    """Return what to show of a campaign's setup, and nothing of how it is running."""
    return Board(campaign=campaign, progress=None, preview=[], objects=0, scorers=[])


CUT_SHORT = "The campaign was ended before its last step."


@dataclass(frozen=True)
class Outlook:
    """What the line says.

    Args:
        standing: whether it is running well.
        left: how long it will take from here, and under which assumption; empty once it is finished.
        is_well: true where nothing needs the researcher.
    """

    standing: str
    left: str
    is_well: bool


def outlook_of(campaign: Campaign, progress: Progress) -> Outlook:
    """Return the outlook of a started campaign."""
    if campaign.status == Campaign.Status.FINISHED:
        return Outlook("Finished.", _ending(campaign), is_well=True)
    steps = f"{progress.steps_left:,} step{' is' if progress.steps_left == 1 else 's are'} left"
    if not campaign.is_running:
        return Outlook("Paused.", f"Nobody is asked. {steps}.", is_well=False)
    noun = ANSWERS[campaign.config.rule.evidence].noun or "step"
    left = _left(progress, noun, steps)
    if trouble := _trouble(campaign, progress):
        return Outlook(trouble, left, is_well=False)
    return Outlook("Running well." if progress.lately else f"Waiting for {noun}s.", left, is_well=bool(progress.lately))


def _left(progress: Progress, noun: str, steps: str) -> str:
    """Return how long the rest takes at the rate of the votes, or of what else decides."""
    if not progress.lately:
        came = "was decided" if noun == "step" else "came"
        return f"No {noun} {came} in the last five minutes, so nothing tells how long it takes. {steps}."
    if progress.minutes_left is None:
        return f"It has just started, so nothing tells yet how long it takes. {steps}."
    each = "" if noun == "step" else f" if a step takes as many {noun}s as until now,"
    return (
        f"About {duration(60 * progress.minutes_left)} left,{each} at the rate of the last "
        f"{duration(60 * progress.minutes)}: {progress.answers_per_minute:,.1f} {noun}s a minute. {steps}."
    )


def _ending(campaign: Campaign) -> str:
    """Return why the chains of a finished campaign walk no further."""
    ended = campaign.chains.filter(ended_at__isnull=False).count()
    others = campaign.chains.count() - ended
    sentences = [_ended(ended, others)]
    if is_cut_short(campaign):
        sentences.append(CUT_SHORT)
    elif others:
        chains = _each_of(others, has_ended=bool(ended))
        sentences.append(f"{chains.capitalize()} has come to its last step.")
    return " ".join(sentence for sentence in sentences if sentence)


def _ended(ended: int, others: int) -> str:
    if not ended:
        return ""
    if not others:
        return "Every chain was ended at a suspended step."
    return f"{ended:,} chain{' was' if ended == 1 else 's were'} ended at a suspended step."


def _each_of(others: int, *, has_ended: bool) -> str:
    if not has_ended:
        return "every chain"
    return "the other chain" if others == 1 else "each of the other chains"


def _trouble(campaign: Campaign, progress: Progress) -> str:
    """Return what needs the researcher, in few words; the notices below have the rest."""
    found = [
        (len(progress.suspended), "Steps are suspended."),
        (len(progress.waits), "Chains wait for a model."),
        (progress.models.suspended if progress.models else 0, "A model needs you."),
        (len(progress.held_up), "A panelist holds up chains."),
        (1, _lack_of_places(campaign)),
        (progress.is_nobody_there, "Nobody is online."),
        (progress.lacks_people, "Too few people are online."),
    ]
    return next((words for count, words in found if count and words), "")


def _lack_of_places(campaign: Campaign) -> str:
    """Return that those who have a place do not bring the votes that are needed; empty where a place is free."""
    if not terms_of(campaign).recruiter.knows_people:
        return ""
    supply = supply_of(campaign, campaign.config.study)
    if supply is None or not (supply.is_full and supply.is_short):
        return ""
    return f"All places are taken: {supply.steps:,} steps still need {supply.wanted:,} votes."
