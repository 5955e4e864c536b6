"""What a model judge is shown of pictures: their size and format, how closely it looks, and how molecules are shown.

Part of a config, where every field may be left out: then pictures go to the model as they are stored or drawn, and a
molecule as its SMILES, with its drawing for a model that sees pictures.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal, Self

from pydantic import (
    Field,
    model_validator,
)

from sampler.declared import Sparse, ui
from sampler.judges.prompts import SMILES_NOTE, Prompt

_MOLECULES = {
    "": "SMILES, with a drawing if the model sees pictures",
    "smiles": "SMILES only",
    "picture": "Drawing only",
    "both": "SMILES and drawing",
}
_DRAWN_NOTE = " Molecules are drawn."


class Vision(Sparse):
    """How a model judge is shown pictures.

    Args:
        edge: the longer side in pixels; larger pictures are made smaller, smaller ones stay.
        format: png (without loss) or jpeg.
        quality: of a jpeg, 1 to 100; 90 if it is not given.
        detail: how closely the model looks, where its server has such a field.
        molecules: shown as their SMILES, as a drawing, or as both.
    """

    unwritten: ClassVar[tuple[str, ...]] = ("edge", "format", "quality", "detail", "molecules")
    edge: int | None = Field(
        default=None,
        ge=32,
        le=4096,
        title="Longest side of a picture",
        description="In pixels. Larger pictures are made smaller. Empty for pictures as they are.",
    )
    format: Literal["png", "jpeg"] | None = Field(
        default=None,
        title="Format of pictures",
        json_schema_extra=ui(labels={"": "As they are", "png": "PNG", "jpeg": "JPEG"}),
    )
    quality: int | None = Field(default=None, ge=1, le=100, title="JPEG quality", description="1 to 100; empty for 90.")
    detail: Literal["low", "high", "auto"] | None = Field(
        default=None,
        title="Detail",
        description="Only OpenAI's and Azure's servers have this field. The draft's page estimates the tokens.",
        json_schema_extra=ui(labels={"": "The server's own", "low": "Low", "high": "High", "auto": "Auto"}),
    )
    molecules: Literal["smiles", "picture", "both"] | None = Field(
        default=None, title="How molecules are shown", json_schema_extra=ui(labels=_MOLECULES)
    )

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_dump():
            raise ValueError("must say something: leave it out where pictures are shown as they are")
        if self.quality is not None and self.format != "jpeg":
            raise ValueError("quality is that of a jpeg: set format to 'jpeg', or leave quality out")
        return self

    @property
    def changes_files(self) -> bool:
        """Whether pictures are encoded anew."""
        return self.edge is not None or self.format is not None

    def worded(self, prompt: Prompt) -> Prompt:
        """Return a prompt that does not speak of SMILES where there are none."""
        if self.molecules != "picture":
            return prompt
        return replace(prompt, system=prompt.system.replace(SMILES_NOTE, _DRAWN_NOTE))
