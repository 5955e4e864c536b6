"""A list of the researcher's own: texts, molecules or images from a file."""

from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.console.forms.spaces.space_form import (
    SpaceForm,
    fresh_share_of,
    mixture,
    move_of,
)
from prefmh_web.console.forms.spaces.walks import WalkFields, walk_fields_of, walk_line

MAX_UPLOAD_BYTES = 512 * 2**20

MOVES = {
    "mixture": "Both: usually a similar object, sometimes a fresh draw",
    "independent": "A fresh draw from the whole list",
    "neighbours": "An object similar to the current one",
}
OBJECTS = {
    "texts": "Texts: a CSV with a column “text”",
    "molecules": "Molecules: a CSV with a column “smiles”",
    "images": "Images: a ZIP of PNG, JPEG, WebP, GIF or BMP files",
}


class CatalogForm(WalkFields, SpaceForm):
    """The file, and moves on a finite list."""

    kind = "catalog"
    title = "Your own list: texts, molecules or images from a file"
    field_of: ClassVar = {
        "space.objects": "objects",
        "space.neighbours": "neighbours",
        **WalkFields.walk_field_of,
        "kernel": "move",
    }

    objects = forms.ChoiceField(
        choices=OBJECTS, widget=forms.RadioSelect, label="What does the file contain?", initial="texts"
    )
    file = forms.FileField(
        label="Your file",
        help_text="An optional column “weight” (for images: a weights.csv with the columns file and weight inside "
        "the ZIP) says how likely each object is before anybody votes (p0). "
        f"At most {sampler.MAX_CATALOG_ITEMS:,} objects, with {sampler.MAX_CATALOG_CHARACTERS // 10**6} million "
        f"characters in all, in a file of at most {MAX_UPLOAD_BYTES // 2**20} MiB.",
        widget=forms.FileInput(attrs={"accept": ".csv,.zip"}),
    )
    move = forms.ChoiceField(choices=MOVES, widget=forms.RadioSelect, initial="mixture", label="What is proposed?")
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

    @property
    def upload(self):
        return self.cleaned_data.get("file")

    def clean_file(self):
        file = self.cleaned_data["file"]
        if file and file.size > MAX_UPLOAD_BYTES:
            raise ValidationError(f"The file is larger than {MAX_UPLOAD_BYTES // 2**20} MiB. Split it.")
        return file

    def space(self) -> dict:
        data = self.cleaned_data
        neighbours = 0 if data["move"] == "independent" else data["neighbours"]
        return {"kind": "catalog", "objects": data["objects"], "neighbours": neighbours}

    def kernel(self) -> dict:
        move, fresh = self.cleaned_data["move"], self.cleaned_data["fresh_share"]
        if move == "independent":
            return {"kind": move}
        fresh = fresh if move == "mixture" else 0
        kernel = mixture((fresh, {"kind": "independent"}), (1 - fresh, {"kind": "neighbours"}))
        return self.walked(kernel, self.cleaned_data["objects"])

    @classmethod
    def initial_of(cls, recipe: sampler.Recipe) -> dict:
        space: Any = recipe.space
        fields = {"objects": space.objects, "move": move_of(recipe).kind, **walk_fields_of(recipe)}
        if space.neighbours:
            fields["neighbours"] = space.neighbours
        if move_of(recipe).kind == "mixture":
            fields["fresh_share"] = fresh_share_of(recipe)
        return fields

    @classmethod
    def summary(cls, campaign: Campaign) -> list[tuple[str, str]]:
        recipe = campaign.readable_recipe
        space: Any = recipe.space
        move = MOVES[move_of(recipe).kind]
        if move_of(recipe).kind == "mixture":
            move += f"; {fresh_share_of(recipe):.0%} fresh draws"
        return [
            ("Objects", f"{campaign.states.count()} {campaign.object_kind.nouns} from {campaign.catalog.filename}"),
            ("Proposals", move),
            ("Neighbours per object", str(space.neighbours or "not used")),
            walk_line(recipe),
        ]
