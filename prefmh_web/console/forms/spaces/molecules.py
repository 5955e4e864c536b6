"""Molecules that grow and shrink by fragments."""

from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.console.forms.kept_files import KeptFileInput
from prefmh_web.console.forms.spaces.space_form import SpaceForm, move_of
from prefmh_web.console.forms.spaces.walks import WalkFields, walk_fields_of, walk_line
from prefmh_web.console.unstored import Sample

MAX_LIST_BYTES = 2**20
ALERTS = {"PAINS": "PAINS", "BRENK": "Brenk", "NIH": "NIH", "ZINC": "ZINC"}
CONVENTIONS = {
    "exact": "exact",
    "paper": "1, as in the published experiment: not exact, samples from another distribution",
}


class MoleculesForm(WalkFields, SpaceForm):
    """Start, fragments, and the law of sizes with its filters."""

    kind = "molecules"
    title = "Molecules built from fragments"
    about = "Molecules that grow and shrink from a start. Nothing to prepare."
    samples = (Sample("molecules"),)
    main = ("start",)
    field_of: ClassVar = {
        "space.start": "start",
        "space.elements": "elements",
        "space.alerts": "alerts",
        "space.vocabulary": "fragments",
        "space.size_log_weights": "sizes",
        **WalkFields.walk_field_of,
        "kernel": "add",
    }

    start = forms.CharField(max_length=300, initial="CC", label="Start molecule (SMILES)")
    add = forms.FloatField(
        min_value=0.01, max_value=0.99, initial=0.5, label="Share of additions", help_text="The rest are deletions."
    )
    votes_saved = "On our benchmark of small molecules, an independent sample costs 15 votes instead of 97."
    alerts = forms.MultipleChoiceField(
        choices=ALERTS,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label="Exclude molecules with alerts from",
        help_text="Part of p0: such molecules have probability 0.",
    )
    elements = forms.CharField(
        max_length=100,
        required=False,
        label="Elements allowed",
        help_text="For example: C N O F S Cl. Leave empty to allow all elements of the fragments.",
    )
    fragments = forms.FileField(
        required=False,
        label="Your own fragments",
        widget=KeptFileInput,
        help_text="Leave empty to use the 1,000 of prefmh. Create a file with: python -m sampler vocabulary",
    )
    sizes = forms.FileField(
        required=False,
        label="Your own distribution of sizes",
        widget=KeptFileInput,
        help_text="Belongs to your fragments. Create a file with: python -m sampler pilot",
    )
    convention = forms.ChoiceField(choices=CONVENTIONS, initial="exact", label="Hastings ratio")

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        before = self._space_before
        if before and before.vocabulary != "default":
            self.fields["fragments"].help_text = "Leave empty to keep those of the draft."
        if before and before.size_log_weights:
            self.fields["sizes"].help_text = "Leave empty to keep that of the draft."

    @property
    def _space_before(self) -> Any:
        """The space of the draft that is changed; None if there is none, or it is another."""
        return self.before.config.space if self.before else None

    def clean_fragments(self):
        if text := _text_of(self.cleaned_data["fragments"]):
            return [arm for arm, _ in _parsed(sampler.parse_arms, text)]
        return self._space_before.vocabulary if self._space_before else "default"

    def clean_sizes(self):
        if text := _text_of(self.cleaned_data["sizes"]):
            weights = _parsed(sampler.parse_size_log_weights, text)
            return [weight if weight > float("-inf") else None for weight in weights]
        return self._space_before.size_log_weights if self._space_before else None

    def clean_elements(self):
        return self.cleaned_data["elements"].replace(",", " ").split() or None

    def clean(self):
        is_exact = self.cleaned_data.get("convention") == "exact"
        self.demand_walkable(is_exact, "A walk needs the exact Hastings ratio.")

    def space(self) -> dict:
        data = self.cleaned_data
        return {
            "kind": "molecules",
            "start": data["start"],
            "vocabulary": data["fragments"],
            "size_log_weights": data["sizes"],
            "elements": data["elements"],
            "alerts": data["alerts"],
        }

    def kernel(self) -> dict:
        data = self.cleaned_data
        kernel = {"kind": "fragments", "add": data["add"], "convention": data["convention"]}
        return self.walked(kernel, "molecules")

    @classmethod
    def initial_of(cls, config: sampler.ChainConfig) -> dict:
        space: Any = config.space
        kernel = move_of(config)
        return {
            "start": space.start,
            "elements": " ".join(space.elements or ()),
            "alerts": list(space.alerts),
            "add": kernel.add,
            "convention": kernel.convention,
            **walk_fields_of(config),
        }

    @classmethod
    def summary(cls, campaign: Campaign) -> list[tuple[str, str]]:
        config = campaign.config
        space: Any = config.space
        kernel = move_of(config)
        own = space.vocabulary != "default"
        filters = [f"only {' '.join(space.elements)}"] if space.elements else []
        filters += [f"no {ALERTS[name]} alerts" for name in space.alerts]
        return [
            ("Objects", f"molecules built from fragments, starting at {space.start}"),
            ("Fragments", f"{len(space.vocabulary)}, your own" if own else "the 1,000 of prefmh"),
            ("Distribution of sizes", "your own" if space.size_log_weights else "the one of prefmh"),
            ("Filters", "; ".join(filters) or "none"),
            ("Proposals", f"{kernel.add:.0%} additions, the rest deletions"),
            walk_line(config),
            ("Hastings ratio", CONVENTIONS[kernel.convention]),
        ]


def _text_of(file) -> str:
    if not file:
        return ""
    if file.size > MAX_LIST_BYTES:
        raise ValidationError(f"The file is larger than {MAX_LIST_BYTES // 2**20} MiB. It should be a short list.")
    try:
        return file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValidationError("The file is not UTF-8 text.") from error


def _parsed(parse, text: str):
    try:
        return parse(text)
    except ValueError as error:
        raise ValidationError(f"{error}.") from error
