"""A list of the researcher's own: objects from a file."""

from collections.abc import Sequence
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError

import sampler
from prefmh_web.campaigns.models import Campaign, Catalog
from prefmh_web.console.forms.kept_files import KeptFileInput
from prefmh_web.console.forms.spaces.space_form import (
    SpaceForm,
    fresh_share_of,
    mixture,
    move_of,
)
from prefmh_web.console.forms.spaces.walks import WalkFields, walk_fields_of, walk_line
from prefmh_web.console.unstored import Sample
from prefmh_web.objects import OBJECT_KINDS

MAX_UPLOAD_BYTES = 512 * 2**20

MOVES = {
    "mixture": "Both: usually a similar object, sometimes a fresh draw",
    "independent": "A fresh draw from the whole list",
    "neighbours": "An object similar to the current one",
}
# Which column of a CSV file holds the objects.
HOLDERS = {"texts": "text", "markdown": "text", "molecules": "smiles"}
OBJECTS = {
    "texts": "Texts: a CSV with a column “text”",
    "markdown": "Markdown: a CSV with a column “text”, shown with its headings, lists, tables and code",
    "molecules": "Molecules: a CSV with a column “smiles”",
    "images": "Images: a ZIP of PNG, JPEG, WebP, GIF or BMP files",
    "audio": "Audio: a ZIP of WAV, FLAC, AIFF, MP3 or Ogg files",
}


class CatalogForm(WalkFields, SpaceForm):
    """The file, and moves on a finite list."""

    kind = "catalog"
    title = "Your own list: objects from a file"
    about = "People compare objects that you bring."
    samples = tuple(Sample(kind) for kind in OBJECT_KINDS)
    carded = "objects"
    main = ("file",)
    field_of: ClassVar = {
        "space.objects": "objects",
        "space.context": "context",
        "space.neighbours": "neighbours",
        **WalkFields.walk_field_of,
        "kernel": "move",
    }

    objects = forms.ChoiceField(
        choices=OBJECTS, widget=forms.RadioSelect, label="What does the file contain?", initial="texts"
    )
    file = forms.FileField(
        label="Your file",
        help_text="An optional column “weight” (for images and audio: a weights.csv with the columns file and weight "
        "inside the ZIP) says how likely each object is before anybody votes (p0). "
        f"At most {sampler.MAX_CATALOG_ITEMS:,} objects, with {sampler.MAX_CATALOG_CHARACTERS // 10**6} million "
        f"characters in all, in a file of at most {MAX_UPLOAD_BYTES // 2**20} MiB.",
        widget=KeptFileInput(attrs={"accept": ".csv,.zip"}),
    )
    context = forms.CharField(
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 3, "placeholder": "prompt: What was asked for"}),
        label="Shown with each pair",
        help_text="Further columns of the file that people and models see: one in each line, after a colon what is "
        "written beside it. Empty: none is shown.",
    )
    move = forms.ChoiceField(
        choices=MOVES, widget=forms.RadioSelect, initial="mixture", label="What is compared with the current object?"
    )
    fresh_share = forms.FloatField(
        min_value=0.01, max_value=0.99, initial=0.3, label="Share of fresh draws", help_text="Used with “Both”."
    )
    neighbours = forms.IntegerField(
        min_value=1,
        max_value=50,
        initial=8,
        label="Neighbours per object",
        help_text="The minimum; neighbours are always mutual.",
    )
    votes_saved = (
        "On our benchmark, a list of 400 objects, an independent sample costs 4 to 32 votes instead of 790 to 3,700 if "
        "only similar objects are proposed."
    )

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.before:
            self.fields["file"].required = False
            self.fields["file"].help_text = f"Leave empty to keep {self.before.catalog.filename}."
            if kept := self.before.catalog.columns:
                self.fields["context"].help_text += f" Columns of {self.before.catalog.filename}: {', '.join(kept)}."

    @property
    def upload(self):
        return self.cleaned_data.get("file")

    def clean_file(self):
        file = self.cleaned_data["file"]
        if file and file.size > MAX_UPLOAD_BYTES:
            raise ValidationError(f"The file is larger than {MAX_UPLOAD_BYTES // 2**20} MiB. Split it.")
        return file

    def clean_context(self) -> list[dict[str, str]]:
        return context_in(self.cleaned_data["context"])

    def clean(self):
        super().clean()
        columns = self._columns_of_file()
        for number, shown in enumerate(self.cleaned_data.get("context", ()), start=1):
            if columns is not None and shown["column"] not in columns:
                found = ", ".join(f"“{name}”" for name in columns) or "no further columns"
                self.add_error("context", f"Column {number}: the file has no “{shown['column']}”. It has {found}.")
                return

    def _columns_of_file(self) -> Sequence[str] | None:
        """Return the further columns of the file; None where that is told only once it has been read."""
        file, holder = self.cleaned_data.get("file"), HOLDERS.get(self.cleaned_data.get("objects", ""))
        if file and holder:
            try:
                return sampler.extra_columns_of(file, holder)
            except sampler.CatalogError:
                # The reading says what is wrong with the file.
                return None
            finally:
                file.seek(0)
        catalog = self.before.catalog if self.before and not file else None
        return catalog.columns if catalog and catalog.status == Catalog.Status.READY else None

    def space(self) -> dict:
        data = self.cleaned_data
        neighbours = 0 if data["move"] == "independent" else data["neighbours"]
        context = {"context": data["context"]} if data["context"] else {}
        return {"kind": "catalog", "objects": data["objects"], "neighbours": neighbours, **context}

    def kernel(self) -> dict:
        move, fresh = self.cleaned_data["move"], self.cleaned_data["fresh_share"]
        if move == "independent":
            return {"kind": move}
        fresh = fresh if move == "mixture" else 0
        kernel = mixture((fresh, {"kind": "independent"}), (1 - fresh, {"kind": "neighbours"}))
        return self.walked(kernel, self.cleaned_data["objects"])

    @classmethod
    def initial_of(cls, config: sampler.ChainConfig) -> dict:
        space: Any = config.space
        fields = {"objects": space.objects, "move": move_of(config).kind, **walk_fields_of(config)}
        fields["context"] = "\n".join(f"{shown.column}: {shown.label}" for shown in space.context)
        if space.neighbours:
            fields["neighbours"] = space.neighbours
        if move_of(config).kind == "mixture":
            fields["fresh_share"] = fresh_share_of(config)
        return fields

    @classmethod
    def summary(cls, campaign: Campaign) -> list[tuple[str, str]]:
        config = campaign.config
        space: Any = config.space
        move = MOVES[move_of(config).kind]
        if move_of(config).kind == "mixture":
            move += f"; {fresh_share_of(config):.0%} fresh draws"
        return [
            ("Objects", f"{campaign.states.count()} {campaign.object_kind.nouns} from {campaign.catalog.filename}"),
            ("Proposals", move),
            ("Neighbours per object", str(space.neighbours or "not used")),
            walk_line(config),
            *_columns_line(campaign, config),
        ]


def context_in(text: str) -> list[dict[str, str]]:
    """Return the columns that are shown: of each line what stands before the first colon, with what stands after it,
    or the same once more, as its label.
    """
    lines = [line.partition(":") for line in text.splitlines() if line.strip()]
    parts = [(column.strip().lower(), label.strip()) for column, _, label in lines]
    return [{"column": column, "label": label or column} for column, label in parts]


def _columns_line(campaign: Campaign, config: sampler.ChainConfig) -> list[tuple[str, str]]:
    shown = ", ".join(f"{each.column} as “{each.label}”" for each in config.context)
    kept = ", ".join(campaign.catalog.columns)
    return [("Further columns", f"{kept}; shown with each pair: {shown or 'none'}")] if kept or shown else []
