"""Objects that cannot be measured, or hardly: a page shows what is known of them, and no measure takes for ever."""

import subprocess
import sys

import pytest

from tests.security.world import browser_of
from tests.support.campaigns import OF_PICTURES, PICTURES, make_campaign, make_config


def test_a_lost_picture_hides_no_campaign(researcher, idle_tasks):
    config = make_config(space=OF_PICTURES)
    campaign = make_campaign(researcher, file=PICTURES, filename="pictures.zip", config=config)
    head = campaign.chains.first().head
    head.picture.storage.delete(head.picture.name)
    browser = browser_of(researcher)
    assert "its picture cannot be read" in browser.get(campaign.get_absolute_url()).content.decode()
    assert browser.get(f"/campaigns/pictures/{head.pk}/").status_code == 404


@pytest.mark.parametrize("text", ["'.' * 400_000 + 'a'", "'.' * 100_000 + chr(34) * 300_000 + 'a'", "'?!' * 200_000"])
def test_a_text_of_marks_is_measured_before_anybody_gives_up(text):
    """Steps in proportion to its square, as there once were, would take half an hour."""
    command = [sys.executable, "-c", f"import sampler; print(sampler.describe_text({text}).words)"]
    try:
        words = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    except subprocess.TimeoutExpired:
        words = "still counting"
    assert words in ("1\n", "0\n")
