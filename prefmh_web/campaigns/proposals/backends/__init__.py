"""Where proposals come from: one file for each source, registered in `BACKENDS` under the name of `Campaign.backend`.

    kernel            the sampler alone, within milliseconds
    served_texts      texts that a language model writes, many in one call
    rendered_images   pictures that an image model makes of what the sampler draws, one at a time

To add one: write a file with a `Backend`, register it here, say in `Campaign.backend` which spaces it serves and in
`dispatch` which queue its worker reads.
"""

from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.proposals.backends.backend import Backend
from prefmh_web.campaigns.proposals.backends.rendered_images import RenderedImages
from prefmh_web.campaigns.proposals.backends.served_texts import ServedTexts

BACKENDS: dict[str, Backend] = {
    "kernel": Backend(),
    "served-texts": ServedTexts(),
    "own-texts": ServedTexts(),
    "rendered-images": RenderedImages(),
}


def backend_of(campaign: Campaign) -> Backend:
    """Return where a campaign's proposals come from."""
    return BACKENDS[campaign.backend]
