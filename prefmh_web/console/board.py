"""What a campaign's page shows now: a draft's file, or a started campaign's progress."""

from dataclasses import dataclass

from django.template.loader import render_to_string

from prefmh_web.campaigns.models import Campaign, Catalog, State
from prefmh_web.campaigns.monitoring.progress import Progress, progress_of
from prefmh_web.campaigns.recipes import target_of
from prefmh_web.console.forms.rule import rule_line
from prefmh_web.console.forms.spaces import SPACE_FORMS

_PREVIEW = 6


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
        return not self.campaign.has_catalog or self.campaign.catalog.status == Catalog.Status.READY

    @property
    def setup(self) -> list[tuple[str, str]]:
        """What starting freezes, in the researcher's words."""
        recipe = self.campaign.recipe
        judges = [_judge_line(judge, self.campaign.is_rated) for judge in recipe["judges"]]
        return [
            *SPACE_FORMS[self.campaign.space_kind].summary(self.campaign),
            ("Rule", rule_line(recipe.get("rule", {"kind": "n-vote"}))),
            ("Questions", "\n".join(judges)),
            ("The chains sample", target_of(self.campaign).replace("; ", "\n")),
            ("Chains", f"{recipe['chains']}, {recipe['steps']} steps each"),
            ("Time to answer, in seconds", str(self.campaign.lease_seconds)),
            ("Seed", str(recipe["seed"])),
            ("Instructions", self.campaign.instructions or "none"),
        ]

    def html(self) -> str:
        """Return the fragment that the page swaps in by its id."""
        return render_to_string("console/_board.html", {"board": self})


def _judge_line(judge: dict, is_rated: bool) -> str:
    words = [f"N = {judge['budget']}"]
    if (order := judge.get("order", "random")) != "random":
        words.append(f"{order.replace('-', ' ')} on the screen" if order.startswith("proposal") else order)
    source = judge.get("source", {"kind": "people"})
    if source["kind"] == "model":
        how = "ratings" if is_rated else source["votes"]
        words.append(f"{how} by {source['endpoint']} at temperature {source['temperature']:g}")
        words += ["asked before people"] if source["first"] else []
    return f"{judge['question']} ({'; '.join(words)})"


def board_for(campaign: Campaign) -> Board:
    """Return what to show of a campaign."""
    return Board(
        campaign=campaign,
        progress=None if campaign.is_draft else progress_of(campaign),
        preview=list(campaign.states.all()[:_PREVIEW]) if campaign.is_draft else [],
        objects=campaign.states.count(),
    )
