"""campaign.yaml of the record: the setup without what would let people pass, or be paid, who did not take part."""

from __future__ import annotations

from collections.abc import Iterator

from prefmh_web.campaigns.models import Campaign
from prefmh_web.setup import export, left_out
from prefmh_web.setup.files import NAME


def texts(campaign: Campaign) -> Iterator[tuple[str, str]]:
    """Yield the file's name and what it says."""
    setup = export.setup_of(campaign, needs_file=False)
    is_finished = campaign.status == Campaign.Status.FINISHED
    described = left_out.hide(setup.model_dump(mode="json"), hides_answers=not is_finished)
    yield NAME, export.text_of(described)
