"""An attention check in a real browser, and the end that a failed one leads to."""

from urllib.parse import urlencode

import pytest

from prefmh_web.campaigns.models import Vote
from prefmh_web.participants.models import Participation
from tests.participants.test_checks import MANY
from tests.participants.test_stages import CODES_OF_ALL
from tests.support.recruited import prolific, recruited_campaign
from tests.support.stack import invitation_path

pytestmark = pytest.mark.browser
MOST_VOTES = 40
# The page ignores keys for a moment after a new pair.
_A_LOOK_MS = 700


def test_who_fails_a_check_sees_at_once_how_the_part_ended(chromium, live_site, researcher):
    protocol = {"check_share": 0.5, "checks_may_fail": 0}
    study = recruited_campaign(researcher, protocol=protocol, codes=CODES_OF_ALL, **MANY)
    page = chromium.new_page(base_url=live_site.url)
    page.goto(f"{invitation_path(study)}?{urlencode(prolific('anna'))}")
    page.get_by_role("button", name="Start").click()
    question = page.locator("#question")
    for voted in range(MOST_VOTES):
        question.wait_for()
        page.wait_for_timeout(_A_LOOK_MS)
        if question.inner_text().startswith("Attention check"):
            break
        page.keyboard.press("ArrowLeft")
        page.get_by_text(f"You: {voted + 1} vote").wait_for()
    page.keyboard.press("ArrowRight" if "on the left" in question.inner_text() else "ArrowLeft")
    page.get_by_text("too many attention checks").wait_for()
    assert page.get_by_text("CHECKS", exact=True).is_visible()
    page.close()
    assert Participation.objects.get().outcome == "checks-failed"
    assert Vote.objects.count() == voted
