"""The spaces a researcher can choose, one form each. To add one: copy a file, and list its form here."""

from prefmh_web.campaigns.models import Campaign
from prefmh_web.console.forms.spaces.catalog import CatalogForm
from prefmh_web.console.forms.spaces.images import ImagesForm
from prefmh_web.console.forms.spaces.model_images import ModelImagesForm
from prefmh_web.console.forms.spaces.model_texts import ModelTextsForm
from prefmh_web.console.forms.spaces.molecules import MoleculesForm
from prefmh_web.console.forms.spaces.space_form import SpaceForm
from prefmh_web.console.forms.spaces.texts import TextsForm

SPACE_FORMS: dict[str, type[SpaceForm]] = {
    form.kind: form for form in (TextsForm, ModelTextsForm, MoleculesForm, ImagesForm, ModelImagesForm, CatalogForm)
}


def offered_forms(campaign: Campaign | None = None) -> dict[str, type[SpaceForm]]:
    """Return the forms of the spaces that this site offers, and of the one that a draft has already."""
    kept = campaign.config.space.kind if campaign else None
    return {kind: form for kind, form in SPACE_FORMS.items() if form.is_offered() or kind == kept}


__all__ = ["SPACE_FORMS", "SpaceForm", "offered_forms"]
