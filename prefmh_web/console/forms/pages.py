"""Small forms of a campaign's pages: its name, length, caps and copies, the steps shown, what its votes come to; and
its people: which are shown and in what order; how a part is ended, a bonus, and forgetting them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Annotated, Any

from django import forms
from pydantic import BaseModel, ValidationError, create_model

import sampler
from prefmh_web.campaigns.frozen import StartedCampaign
from prefmh_web.campaigns.models import Campaign, EndReason
from prefmh_web.campaigns.monitoring.steps import STANDINGS
from prefmh_web.config import CampaignConfig, Caps, Outcome
from prefmh_web.console.forms.fields import field_of
from prefmh_web.participants.erasure import Scope
from prefmh_web.participants.models import Stage
from prefmh_web.participants.people import Person
from prefmh_web.setup.apply import MOST_PEOPLE, MOST_VOTES_EACH
from prefmh_web.setup.files import MAX_FILE_BYTES, NAME

_MOST_WORDS = 500


def _field(model: type[BaseModel], name: str, *, required: bool = False) -> forms.Field:
    """Return the field of a declared value, with its title, help and bounds."""
    field = field_of(name, model.model_fields[name])
    field.required = field.widget.is_required = required
    return field


class NameForm(forms.Form):
    """Another name, also after the start."""

    name = _field(CampaignConfig, "name", required=True)


class ExtensionFields(forms.Form):
    """How many steps each chain walks more."""

    steps = forms.IntegerField(
        min_value=1,
        max_value=sampler.LONGEST_CHAIN,
        label="Further steps of each chain",
        help_text="The chains go on from where they stand, as if the setup had asked for so many steps from the start.",
    )


class CapFields(forms.Form):
    """Both may be left empty; with both, the first to be reached counts."""

    cost = _field(Caps, "cost")
    requests = _field(Caps, "requests")

    @classmethod
    def of(cls, campaign: Campaign) -> CapFields:
        """Return the form filled in with a campaign's caps."""
        caps = campaign.config.caps
        return cls(initial={name: getattr(caps, name) for name in cls.base_fields}, auto_id="caps_%s")


class EndForm(forms.Form):
    """The researcher's reason."""

    words = forms.CharField(
        max_length=_MOST_WORDS,
        widget=forms.Textarea(attrs={"rows": 2}),
        label="Why this chain ends here",
        help_text="It becomes part of the export. Name nobody.",
    )


class SetupFileForm(forms.Form):
    """One file; `setup.files` says what is wrong with it."""

    file = forms.FileField(
        label="Your file",
        help_text=f"A {NAME} alone, or a ZIP with {NAME} and the list that it names, as “Download the setup” gives it. "
        f"At most {MAX_FILE_BYTES // 2**20} MiB.",
        widget=forms.FileInput(attrs={"accept": ".yaml,.yml,.zip"}),
    )


class PilotForm(forms.Form):
    """How many people come to it, and how much each of them gives."""

    people = forms.IntegerField(min_value=1, max_value=MOST_PEOPLE, initial=5, label="People of the pilot")
    votes_each = forms.IntegerField(min_value=1, max_value=MOST_VOTES_EACH, initial=30, label="Votes each")


_LARGEST = 2**31 - 1


class StepsForm(forms.Form):
    """Limits of the list of steps; an empty field sets none."""

    chain = forms.IntegerField(min_value=0, max_value=_LARGEST, required=False)
    standing = forms.ChoiceField(
        choices=[("", "all"), *((name, called) for name, (called, _) in STANDINGS.items())],
        required=False,
        label="Verdict",
    )
    judge = forms.TypedChoiceField(coerce=int, empty_value=None, required=False, label="Votes of")
    person = forms.IntegerField(min_value=1, max_value=_LARGEST, required=False, label="Voted by person")
    seconds = forms.FloatField(
        min_value=0,
        max_value=10**8,
        required=False,
        label="At least, in seconds",
    )

    def __init__(self, *args: Any, started: StartedCampaign, **kwargs: Any) -> None:
        kwargs.setdefault("auto_id", "show_%s")
        super().__init__(*args, **kwargs)
        if started.config.rule.evidence != "votes":
            # Ratings and scores belong to objects; nobody votes on a step.
            del self.fields["judge"], self.fields["person"]
            return
        panelists = (
            f"{judge.question} (panelist {judge.panelist})" if judge.panelist else judge.question
            for judge in started.judges
        )
        judges = self.fields["judge"]
        assert isinstance(judges, forms.TypedChoiceField)
        judges.choices = [("", "all questions"), *enumerate(panelists)]


_UNJUDGED = ("base", "score", "quest")


_SIZE = ("chains", "max_chains", "steps", "burn_in")
_VOTES = sampler.JudgeConfig.model_fields["votes"]
_of_size: Any = {name: (info.annotation, info) for name in _SIZE for info in [CampaignConfig.model_fields[name]]}
_Size: Any = create_model("_Size", votes=(tuple[Annotated[int, _VOTES], ...], ...), **_of_size)


def estimate_shown(values: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what one chain, those of the start and all that may open take; None if nobody votes or a field is wrong.

    Args:
        values: the fields of a setup, by the names that they have there.
    """
    votes: list[Any] = []
    for number in count():
        if (typed := values.get(f"judges.{number}.votes")) is None:
            break
        # In both orders a question stands for two judges.
        votes += [typed] * (1 + (values.get(f"judges.{number}.order") == "both"))
    given = {name: values[name] for name in _SIZE if values.get(name) not in (None, "")}
    try:
        size = _Size.model_validate(given | {"votes": votes})
    except ValidationError:
        return None
    if values.get("rule.kind") in _UNJUDGED or not size.votes:
        return None
    most = max(size.max_chains or 0, size.chains)
    one, start, all_of_them = (
        sampler.estimate(chains, size.steps, size.votes, burn_in=size.burn_in) for chains in (1, size.chains, most)
    )
    return {"chains": size.chains, "most": most, "one": one, "start": start, "all": all_of_them}


GOING_ON = "going-on"
"""In place of an outcome: there is none yet."""
LONGEST_TEXT = 2000


COLUMNS: dict[str, tuple[str, Callable[[Person], Any]]] = {
    "number": ("Person", lambda person: person.number),
    "stage": ("Stage", lambda person: person.stage and list(Stage).index(person.stage)),
    "outcome": ("Outcome", lambda person: person.outcome and person.outcome.label),
    "arrived": ("Arrived", lambda person: person.annotator.joined_at),
    "seen": ("Last seen", lambda person: person.seen_at),
    "votes": ("Votes", lambda person: person.votes),
    "skips": ("Skips", lambda person: person.skips),
    "time": ("Time a vote", lambda person: person.median_ms),
    "first": ("Object 1", lambda person: person.first_percent),
    "passed": ("Checks passed", lambda person: person.checks_passed),
    "failed": ("Checks failed", lambda person: person.checks_failed),
    "fast": ("Fast votes", lambda person: person.fast_votes),
}
"""The columns of the table of people, by the names that they have in addresses: the label, and by what people are
sorted; None comes last."""
_ORDERS = [
    (f"{sign}{name}", f"{label}, {way}")
    for name, (label, _) in COLUMNS.items()
    for sign, way in (("", "lowest first"), ("-", "highest first"))
]


class PeopleForm(forms.Form):
    """Which people are shown, and in what order. It comes with the address, so a page can be kept as a bookmark."""

    number = forms.IntegerField(min_value=1, required=False, label="Number in votes.csv")
    stage = forms.ChoiceField(choices=[("", "all"), *Stage.choices], required=False)
    outcome = forms.ChoiceField(choices=[("", "all"), (GOING_ON, "going on"), *Outcome.choices], required=False)
    sort = forms.ChoiceField(choices=_ORDERS, required=False, label="Order")
    flagged = forms.BooleanField(required=False, label="With fast votes only")

    def __init__(self, *args, **kwargs):
        kwargs.setdefault("auto_id", "show_%s")
        super().__init__(*args, **kwargs)

    @property
    def order(self) -> str:
        """What the people are sorted by; with “-” in front the highest come first."""
        return self.cleaned_data.get("sort") or "number"

    def shown(self, people: Iterable[Person]) -> list[Person]:
        """Return those who are asked for, in the order that is asked for; nobody if something else is asked."""
        if not self.is_valid():
            return []
        _, value = COLUMNS[self.order.removeprefix("-")]
        found = [person for person in people if self._is_asked_for(person)]
        empty = [person for person in found if value(person) is None]
        others = [person for person in found if value(person) is not None]
        return sorted(others, key=value, reverse=self.order.startswith("-")) + empty

    def _is_asked_for(self, person: Person) -> bool:
        asked, outcome = self.cleaned_data, person.outcome or GOING_ON
        return (
            asked["number"] in (None, person.number)
            and asked["stage"] in ("", person.stage)
            and asked["outcome"] in ("", outcome)
            and not (asked["flagged"] and not person.fast_votes)
        )

    @property
    def headers(self) -> list[tuple[str, str, str]]:
        """For each column its label, what a click on it sorts by, and how the table is sorted by it now."""
        now = self.order if self.is_valid() else ""
        how = {now: "ascending"} if not now.startswith("-") else {now[1:]: "descending"}
        return [
            (label, f"-{name}" if now == name else name, how.get(name, "none")) for name, (label, _) in COLUMNS.items()
        ]


class ExclusionForm(forms.Form):
    """Why somebody's part is ended, and whether they are paid."""

    reason = forms.ChoiceField(
        choices=[each for each in EndReason.choices if each[0] != EndReason.LINK], label="Reason"
    )
    text = forms.CharField(
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={"rows": 2}),
        label="The reason in your words",
        help_text="For payments.csv and your colleagues. The export has only the word above.",
    )
    is_paid = forms.ChoiceField(
        choices=[("yes", "yes, in full: they see the code for parts that you end"), ("no", "no: they see no code")],
        widget=forms.RadioSelect,
        label="Are they paid?",
    )
    with_link = forms.BooleanField(
        required=False,
        label="Also close the link that they joined with",
        help_text="Otherwise they can join again from another browser. People who joined with it can go on.",
    )

    def __init__(self, *args, person: Person, **kwargs):
        kwargs.setdefault("auto_id", "end_%s")
        super().__init__(*args, **kwargs)
        # Who came without a platform has no code of their own; who came with one comes back as the same person.
        del self.fields["with_link" if person.part else "is_paid"]


class BonusForm(forms.Form):
    """What somebody is paid beside the pay."""

    bonus = forms.DecimalField(
        min_value=0,
        max_digits=8,
        decimal_places=2,
        required=False,
        label="Bonus",
        help_text="An amount for payments.csv, such as 1.50, also after the end. Leave empty for none.",
    )


class ForceForm(forms.Form):
    """Whether those are forgotten, too, who are still to be paid."""

    is_forced = forms.BooleanField(
        required=False,
        label="At once, although somebody is still to be paid",
        help_text="The pay cannot be settled afterwards: they are no longer in payments.csv, and they have no code.",
    )

    def __init__(self, *args, **kwargs):
        kwargs.setdefault("auto_id", "forget_%s")
        super().__init__(*args, **kwargs)


class ErasureForm(ForceForm):
    """Of what somebody is forgotten.

    Args:
        has_id: they came with an id, with which they may have come to other campaigns, too.
    """

    scope = forms.ChoiceField(
        choices=[
            (Scope.PARTICIPATION.value, "this campaign"),
            (Scope.PARTICIPANT.value, "all your campaigns to which they came with the same id"),
        ],
        initial=Scope.PARTICIPATION.value,
        widget=forms.RadioSelect,
        label="Delete their data of",
    )
    is_sure = forms.BooleanField(label="I have read what goes and what stays. It cannot be undone.")
    field_order = ("scope", "is_forced", "is_sure")

    def __init__(self, *args, has_id: bool, **kwargs):
        super().__init__(*args, **kwargs)
        self.fields["is_forced"].label = "At once, although they are still to be paid"
        if not has_id:
            del self.fields["scope"]
            del self.fields["is_forced"]
