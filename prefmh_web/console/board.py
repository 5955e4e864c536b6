"""What a campaign's page shows now: a draft's file, or a started campaign's progress."""

from dataclasses import dataclass

from django.conf import settings
from django.template.loader import render_to_string

import sampler
from prefmh_web.campaigns.models import Campaign, Catalog, State
from prefmh_web.campaigns.monitoring.progress import Progress, progress_of
from prefmh_web.campaigns.monitoring.seats import PanelPrice, price_of
from prefmh_web.console.answers import ANSWERS, AnswerWords
from prefmh_web.console.forms.rule import rule_line
from prefmh_web.console.forms.spaces import SPACE_FORMS
from prefmh_web.settings.languages import SOURCE

_PREVIEW = 6
# Reasons. Of more there is a last line, which says how many more there were.
_MOST_KEPT = 1_000


@dataclass(frozen=True)
class Board:
    """One campaign as its owner sees it."""

    campaign: Campaign
    progress: Progress | None
    preview: list[State]
    objects: int

    @property
    def is_ready(self) -> bool:
        """True when nothing stands in the way of starting: there is no file to be read, or it has been."""
        return self.catalog is None or self.catalog.status == Catalog.Status.READY

    @property
    def catalog(self) -> Catalog | None:
        """The file that the objects come from; None where the chains make them."""
        return None if self.campaign.readable_recipe.generates else self.campaign.catalog

    @property
    def answers(self) -> AnswerWords:
        """What decides the steps, in words."""
        return ANSWERS[self.campaign.readable_recipe.rule.evidence]

    @property
    def price(self) -> PanelPrice | None:
        """What the panel of a draft will cost; None where there is none, or once it has started."""
        return price_of(self.campaign) if self.campaign.is_draft else None

    @property
    def is_panel(self) -> bool:
        """True where named people judge, each for themselves."""
        return self.campaign.readable_recipe.seats > 0

    @property
    def is_elastic(self) -> bool:
        """True where chains open while the campaign runs."""
        return self.campaign.readable_recipe.is_elastic

    @property
    def refusals(self) -> int | None:
        """How many rows or files gave no object of their own; None where an earlier version has not kept it."""
        refusals = self.catalog.refusals if self.catalog else []
        if len(refusals) <= _MOST_KEPT:
            return len(refusals)
        _, _, *more = refusals[-1]
        return len(refusals) - 1 + more[0] if more else None

    @property
    def setup(self) -> list[tuple[str, str]]:
        """What starting freezes, in the researcher's words."""
        recipe = self.campaign.readable_recipe
        judges = list(dict.fromkeys(_judge_line(judge, recipe) for judge in recipe.judges))
        return [
            *SPACE_FORMS[recipe.space.kind].summary(self.campaign),
            ("Rule", rule_line(recipe)),
            ("Questions", "\n".join(judges)),
            ("The chains sample", self.campaign.target_law.replace("; ", "\n")),
            ("Chains", f"{_chains(recipe)}, {recipe.steps} steps each"),
            *([("Burn-in, in steps", str(recipe.burn_in))] if recipe.burn_in else []),
            *([("Language of the voters' pages", self._languages)] if self.campaign.languages != (SOURCE,) else []),
            ("Time to answer, in seconds", str(self.campaign.lease_seconds)),
            ("A step is parked", self._parking),
            ("Seed", str(recipe.seed)),
            ("Instructions", self.campaign.instructions or "none"),
        ]

    @property
    def _parking(self) -> str:
        skips, reports = self.campaign.park_after_skips, self.campaign.park_after_reports
        people = "1 person reports" if reports == 1 else f"{reports} people report"
        after = f"after {skips} skip{'' if skips == 1 else 's'}, or " if skips else ""
        return f"{after}when {people} that an object is not shown"

    @property
    def _languages(self) -> str:
        names = dict(settings.LANGUAGES)
        return "\n".join(names.get(code, code) for code in self.campaign.languages)

    def html(self) -> str:
        """Return the fragment that the page swaps in by its id."""
        return render_to_string("console/_board.html", {"board": self})


def _chains(recipe: sampler.Recipe) -> str:
    return f"{recipe.chains} to {recipe.most_chains}" if recipe.is_elastic else str(recipe.chains)


def _judge_line(judge: sampler.JudgeRecipe, recipe: sampler.Recipe) -> str:
    words, source = [f"N = {judge.budget}"], judge.source
    if isinstance(source, sampler.SeatSource):
        words = [f"a panel of {recipe.seats}, one answer of each seat"]
    if (order := judge.order) != "random":
        words.append(f"{order.replace('-', ' ')} on the screen" if order.startswith("proposal") else order)
    if isinstance(source, sampler.ModelSource):
        how = "ratings" if recipe.rule.evidence == "ratings" else source.votes
        words.append(f"{how} by {source.endpoint} at temperature {source.temperature:g}")
        words += ["asked before people"] if source.first else []
    return f"{judge.question} ({'; '.join(words)})"


def board_for(campaign: Campaign) -> Board:
    """Return what to show of a campaign."""
    return Board(
        campaign=campaign,
        progress=None if campaign.is_draft else progress_of(campaign),
        preview=list(campaign.states.all()[:_PREVIEW]) if campaign.is_draft else [],
        objects=campaign.states.count(),
    )
