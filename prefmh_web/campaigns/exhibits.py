"""An object as a model sees it: words, and the picture where the model takes pictures."""

from prefmh_web.campaigns.models import State
from prefmh_web.campaigns.pictures import Look, picture
from prefmh_web.endpoints.models import Endpoint
from sampler.judges import Exhibit, Picture


def exhibit(state: State, endpoint: Endpoint) -> Exhibit:
    """Return a text; a SMILES, drawn as well if the endpoint takes images; or an image."""
    kind = state.campaign.objects_kind
    if kind == "texts" or (kind == "molecules" and not endpoint.can_images):
        # A model may write the empty text.
        return Exhibit(text=state.content if state.content.strip() else "(an empty text)")
    data, media_type = picture(state, Look(raster=True))
    return Exhibit(text=state.content if kind == "molecules" else "", picture=Picture(media_type, data))
