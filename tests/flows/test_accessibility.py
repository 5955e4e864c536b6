"""Every page passes axe-core's rules of WCAG 2.1 A and AA, light and dark."""

from urllib.parse import urlencode

import pytest
from axe_playwright_python.sync_playwright import Axe

from prefmh_web.accounts.links import sign_in_path
from tests.support.recruited import prolific, recruited_campaign
from tests.support.stack import invitation_path, make_campaign, make_draft, make_recipe

pytestmark = pytest.mark.browser
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}
MOLECULES = "smiles\nCCO\nc1ccccc1O\nCC(=O)O\nCCN\nno molecule\n"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible(chromium, live_site, researcher, scheme):
    texts = make_campaign(researcher)
    space = {"kind": "catalog", "objects": "molecules", "neighbours": 2}
    molecules = make_campaign(researcher, file=MOLECULES, filename="m.csv", recipe=make_recipe(space=space))
    draft = make_draft(researcher, file=MOLECULES, filename="m.csv", recipe=make_recipe(space=space))
    context = chromium.new_context(base_url=live_site.url, color_scheme=scheme)
    page = context.new_page()
    broken = []

    def check(path: str) -> None:
        page.goto(path)
        page.wait_for_load_state("networkidle")
        found = Axe().run(page, options=RULES)
        broken.extend(
            (path, violation["id"], violation["nodes"][0]["html"][:120]) for violation in found.response["violations"]
        )

    check("/accounts/sign-in/")
    check(sign_in_path(researcher))
    for path in ("/campaigns/new/", *(campaign.get_absolute_url() for campaign in (texts, molecules, draft))):
        check(path)
    for campaign in (texts, molecules):
        path = invitation_path(campaign)
        check(path)
        page.get_by_role("button", name="Start").click()
        check(f"{path}vote/")
    study = recruited_campaign(researcher, consent="# Consent\n\nDo you agree to *this*?", votes_each=1)
    check(f"{study.get_absolute_url()}participants/")
    check(f"{invitation_path(study)}?PROLIFIC_PID=anna")
    check(f"{invitation_path(study)}?{urlencode(prolific('anna'))}")
    page.get_by_role("button", name="I do not agree").click()
    check(invitation_path(study))
    page.get_by_text("I have changed my mind").click()
    page.get_by_role("button", name="I agree: start").click()
    for path in ("vote/", "withdraw/", "vote/"):
        check(f"{invitation_path(study)}{path}")
    page.keyboard.press("ArrowLeft")
    page.get_by_text("Your part is complete").wait_for()
    check(f"{invitation_path(study)}vote/")
    context.close()
    assert not broken
