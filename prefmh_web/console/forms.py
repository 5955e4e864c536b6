"""The form behind a campaign's setup: fields in, a checked recipe out."""

import secrets

from django import forms
from django.core.exceptions import ValidationError

import sampler
from prefmh_web.campaigns.models import Campaign

MAX_UPLOAD_BYTES = 512 * 2**20
_SEEDS = 2**53

MOVES = {
    "mixture": "Both: mostly similar objects, now and then a fresh draw",
    "independent": "A fresh draw from the whole list",
    "neighbours": "An object similar to the current one",
}
OBJECTS = {
    "texts": "Texts: a CSV with a column “text”",
    "molecules": "Molecules: a CSV with a column “smiles”",
    "images": "Images: a ZIP of PNG, JPEG, WebP, GIF or BMP files",
}
# Where the recipe's paths have their place in the form.
_FIELD_OF = {
    "space.objects": "objects",
    "space.neighbours": "neighbours",
    "kernel": "move",
    "chains": "chains",
    "steps": "steps",
    "seed": "seed",
}


class CampaignForm(forms.Form):
    """Everything about a campaign but its questions."""

    name = forms.CharField(max_length=120, help_text="Only you see it.")
    objects = forms.ChoiceField(
        choices=OBJECTS, widget=forms.RadioSelect, label="What do people compare?", initial="texts"
    )
    file = forms.FileField(
        label="Your file",
        help_text="An optional column “weight” (for images: a weights.csv with the columns file and weight inside "
        "the ZIP) says how likely each object is before anybody votes (p0).",
        widget=forms.FileInput(attrs={"accept": ".csv,.zip"}),
    )
    instructions = forms.CharField(
        max_length=4000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 4}),
        label="Instructions for the people who vote",
        help_text="Shown once, before the first pair.",
    )
    move = forms.ChoiceField(choices=MOVES, widget=forms.RadioSelect, initial="mixture", label="What is proposed?")
    fresh_share = forms.FloatField(
        min_value=0.01, max_value=0.99, initial=0.3, label="Share of fresh draws", help_text="Used with “Both”."
    )
    neighbours = forms.IntegerField(
        min_value=1,
        max_value=50,
        initial=8,
        label="Similar objects per object",
        help_text="At least; links go both ways.",
    )
    chains = forms.IntegerField(
        min_value=1, max_value=1000, initial=4, help_text="More chains let more people vote at once."
    )
    steps = forms.IntegerField(min_value=1, max_value=1_000_000, initial=100, label="Steps per chain")
    lease_seconds = forms.IntegerField(
        min_value=10,
        max_value=3600,
        initial=120,
        label="Seconds to answer",
        help_text="After that a pair goes to somebody else.",
    )
    seed = forms.IntegerField(
        min_value=0,
        max_value=_SEEDS - 1,
        required=False,
        help_text="Empty: one is drawn. Keep it from voters; with it and the file anybody can redraw the chain.",
    )

    def __init__(self, *args, campaign: Campaign | None = None, **kwargs):
        if campaign is not None:
            kwargs["initial"] = _fields_of(campaign)
        super().__init__(*args, **kwargs)
        self.fields["file"].required = campaign is None
        if campaign is not None:
            self.fields["file"].help_text = f"Empty: keep {campaign.catalog.filename}."

    def clean_file(self):
        file = self.cleaned_data["file"]
        if file and file.size > MAX_UPLOAD_BYTES:
            raise ValidationError(f"The file is larger than {MAX_UPLOAD_BYTES // 2**20} MiB. Split it.")
        return file

    def clean_seed(self) -> int:
        seed = self.cleaned_data["seed"]
        return secrets.randbelow(_SEEDS) if seed is None else seed

    def recipe(self, questions: "QuestionFormSet") -> dict | None:
        """Return the recipe of valid forms; None after adding the reasons to the forms when it is refused."""
        data = self.cleaned_data
        described = {
            "version": 1,
            "space": {
                "kind": "catalog",
                "objects": data["objects"],
                "neighbours": 0 if data["move"] == "independent" else data["neighbours"],
            },
            "kernel": _kernel(data["move"], data["fresh_share"]),
            "judges": questions.judges(),
            **{name: data[name] for name in ("chains", "steps", "seed")},
        }
        try:
            return sampler.parse_recipe(described).model_dump(mode="json")
        except sampler.RecipeError as error:
            for problem in error.problems:
                field = _FIELD_OF.get(problem.path)
                self.add_error(field, problem.message if field else f"{problem.path}: {problem.message}")
            return None


class QuestionForm(forms.Form):
    """One judge: a question and its budget N."""

    question = forms.CharField(
        max_length=300, widget=forms.TextInput(attrs={"placeholder": "Which one would you rather read on?"})
    )
    budget = forms.IntegerField(min_value=1, max_value=1000, initial=2, label="Votes (N)")


class _QuestionFormSet(forms.BaseFormSet):
    def judges(self) -> list[dict]:
        """Return the filled-in questions as the recipe's judges."""
        filled = (form.cleaned_data for form in self.forms if form.cleaned_data)
        return [{"question": data["question"], "budget": data["budget"]} for data in filled]


QuestionFormSet = forms.formset_factory(
    QuestionForm, formset=_QuestionFormSet, extra=0, min_num=1, validate_min=True, max_num=8, validate_max=True
)


def questions_of(campaign: Campaign) -> list[dict]:
    """Return a campaign's judges as the formset's initial values."""
    return [{"question": judge["question"], "budget": judge["budget"]} for judge in campaign.recipe["judges"]]


def _kernel(move: str, fresh_share: float) -> dict:
    if move != "mixture":
        return {"kind": move}
    return {
        "kind": "mixture",
        "parts": [
            {"weight": fresh_share, "kernel": {"kind": "independent"}},
            {"weight": 1 - fresh_share, "kernel": {"kind": "neighbours"}},
        ],
    }


def _fields_of(campaign: Campaign) -> dict:
    recipe = campaign.recipe
    fields = {
        "name": campaign.name,
        "instructions": campaign.instructions,
        "lease_seconds": campaign.lease_seconds,
        "objects": recipe["space"]["objects"],
        "move": recipe["kernel"]["kind"],
        **{name: recipe[name] for name in ("chains", "steps", "seed")},
    }
    if recipe["space"]["neighbours"]:
        fields["neighbours"] = recipe["space"]["neighbours"]
    if recipe["kernel"]["kind"] == "mixture":
        fields["fresh_share"] = recipe["kernel"]["parts"][0]["weight"]
    return fields
