"""The spaces a researcher can choose, one form each. To add one: copy a file, and list its form here."""

from prefmh_web.console.spaces.catalog import CatalogForm
from prefmh_web.console.spaces.images import ImagesForm
from prefmh_web.console.spaces.model_texts import ModelTextsForm
from prefmh_web.console.spaces.molecules import MoleculesForm
from prefmh_web.console.spaces.space_form import SpaceForm
from prefmh_web.console.spaces.texts import TextsForm

SPACE_FORMS: dict[str, type[SpaceForm]] = {
    form.kind: form for form in (TextsForm, ModelTextsForm, MoleculesForm, ImagesForm, CatalogForm)
}

__all__ = ["SPACE_FORMS", "SpaceForm"]
