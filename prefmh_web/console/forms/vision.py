"""How a model judge is shown pictures: the fields of a question that only models which see have a use for."""

from __future__ import annotations

from django import forms

import sampler

FORMATS = {"": "As they are", "png": "PNG", "jpeg": "JPEG"}
DETAILS = {"": "The server's own", "low": "Low", "high": "High", "auto": "Auto"}
MOLECULES = {
    "": "SMILES, with a drawing if the model sees pictures",
    "smiles": "SMILES only",
    "picture": "Drawing only",
    "both": "SMILES and drawing",
}


class VisionFields(forms.Form):
    """What may be set of pictures; a field that is left empty is not part of the config."""

    picture_edge = forms.IntegerField(
        min_value=32,
        max_value=4096,
        required=False,
        label="Longest side of a picture",
        help_text="In pixels. Larger pictures are made smaller. Empty for pictures as they are.",
    )
    picture_format = forms.ChoiceField(choices=FORMATS, required=False, label="Format of pictures")
    picture_quality = forms.IntegerField(
        min_value=1, max_value=100, required=False, label="JPEG quality", help_text="1 to 100; empty for 90."
    )
    picture_detail = forms.ChoiceField(
        choices=DETAILS,
        required=False,
        label="Detail",
        help_text="Only OpenAI's and Azure's servers have this field. The draft's page estimates the tokens.",
    )
    molecules = forms.ChoiceField(choices=MOLECULES, required=False, label="How molecules are shown")

    def vision(self) -> dict[str, object]:
        """Return what was set, as a part of a config's source; empty if nothing was."""
        data = self.cleaned_data
        names = {
            "edge": "picture_edge",
            "format": "picture_format",
            "quality": "picture_quality",
            "detail": "picture_detail",
            "molecules": "molecules",
        }
        found = {name: data[field] for name, field in names.items() if data.get(field)}
        return {"vision": found} if found else {}

    def clean(self) -> dict[str, object]:
        """Check that a quality goes with a JPEG."""
        data = super().clean() or self.cleaned_data
        if data.get("picture_quality") and data.get("picture_format") != "jpeg":
            self.add_error("picture_quality", "The quality is that of a JPEG. Choose JPEG, or leave it empty.")
        return data


def vision_fields_of(vision: sampler.Vision | None) -> dict[str, object]:
    """Return the fields' initial values."""
    if vision is None:
        return {}
    found = {f"picture_{name}": getattr(vision, name) for name in ("edge", "format", "quality", "detail")}
    return {name: value for name, value in {**found, "molecules": vision.molecules}.items() if value is not None}
