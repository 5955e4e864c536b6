"""What is fixed once a campaign has started, and why: a sentence for each field that somebody tries to change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Campaign

JUDGED_BY = "it is part of what people judge by, so the votes before and after would be of two judges"
LAW = "the chains would sample another law from there on"
CROWD = "it decides who votes and how much each gives, so the votes before and after would be of two crowds"


@dataclass(frozen=True)
class Fixed:
    """A field that does not change any more.

    Args:
        label: what it is called on the pages.
        why: what would go wrong.
    """

    label: str
    why: str

    @property
    def sentence(self) -> str:
        """What somebody reads who tries to change it."""
        return f"“{self.label}” cannot change after the start: {self.why}."


SETUP = {
    "question": Fixed("Question", JUDGED_BY),
    "order": Fixed("Which object is shown first?", JUDGED_BY),
    "votes": Fixed("Votes on a pair, at most", LAW),
    "source": Fixed("Who answers?", JUDGED_BY),
    "instructions": Fixed("Instructions for voters", JUDGED_BY),
    "lease_seconds": Fixed("Time to answer, in seconds", JUDGED_BY),
    "language": Fixed("Language of the voters' pages", JUDGED_BY),
    "layout": Fixed("How the two objects stand", JUDGED_BY),
    "space": Fixed("What is compared?", LAW),
    "kernel": Fixed("How the next object is proposed", LAW),
    "rule": Fixed("Rule", LAW),
    "chains": Fixed("Chains at the start", LAW),
    "max_chains": Fixed("Chains at most", LAW),
    "steps": Fixed("Steps per chain", f"{LAW}; “Extend” on the campaign's page adds steps to all chains"),
    "burn_in": Fixed("First steps that are left out", "the record declares it beforehand"),
    # Before the seed itself: of one that was drawn, no answer says whether a guess was right.
    "is_seed_typed": Fixed("Seed of all random numbers", LAW),
    "seed": Fixed("Seed of all random numbers", LAW),
    "suspend_after_skips": Fixed("Set a step aside after so many skips", LAW),
    "suspend_after_reports": Fixed("Set a step aside after so many reports", LAW),
    "scorer_names": Fixed("Scorers", "the objects before and after would be measured otherwise"),
}
"""Of the setup: what the form calls each of them. `question` to `source` are those of every judge."""
_COLUMNS = {field.name for field in Campaign._meta.concrete_fields}
_OF_JUDGES = ("question", "order", "votes", "source")


def demand_unchanged(fields: Mapping[str, Fixed], before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Demand that whatever is fixed stays as it was.

    Raises:
        NotPossible: something does not; the message names it, and says why.
    """
    for name, each in fields.items():
        if name in after and after[name] != before[name]:
            raise NotPossible(f"{each.sentence} Nothing was saved.")


def demand_same_setup(campaign: Campaign, fields: Mapping[str, Any]) -> None:
    """Demand that the setup of a started campaign stays as it was.

    Args:
        fields: columns of a campaign; those that are left out stay.

    Raises:
        NotPossible: it does not; the message names what would change, and says why it cannot.
    """
    now = {name: getattr(campaign, name) for name in _COLUMNS}
    demand_unchanged(SETUP, _described(campaign), _described(Campaign(**now | dict(fields))))


def _described(campaign: Campaign) -> dict[str, Any]:
    config = campaign.config
    of_judges = {name: [getattr(judge, name) for judge in config.judges] for name in _OF_JUDGES}
    # One that is asked in both orders stands there twice.
    of_judges["question"] = list(dict.fromkeys(of_judges["question"]))
    others = SETUP.keys() - of_judges.keys()
    return of_judges | {name: getattr(campaign if name in _COLUMNS else config, name) for name in others}
