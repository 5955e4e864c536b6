"""Every page passes axe-core's rules of WCAG 2.2 A and AA, light and dark, and fits a narrow screen.

Every tab of a campaign: axe-core's rules of WCAG 2.2 A and AA in light and dark, a narrow screen, and the keyboard
alone. The tabs are those of the registry, so a new one is looked at without a line here.
"""

from urllib.parse import urlencode

import pytest
from django.urls import reverse

from prefmh_web.accounts.models import sign_in_path
from prefmh_web.campaigns.models import Voter
from prefmh_web.console.views.common import TABS
from tests.campaigns.engine.test_suspension import skip
from tests.console.test_participant_preview import STUDY
from tests.flows.test_keyboard import Keyboard
from tests.participants.test_stages import PAIRS
from tests.support.campaigns import (
    invitation_path,
    link_of,
    make_campaign,
    make_config,
    make_draft,
    panel_campaign,
    panel_judges,
    set_study,
    voted_to_the_end,
)
from tests.support.installations import WIDE, is_too_wide, press_and_wait, violations
from tests.support.people import CODES_OF_ALL, WHOLE, prolific, recruited_campaign

pytestmark = pytest.mark.browser
MOLECULES = "smiles\nCCO\nc1ccccc1O\nCC(=O)O\nCCN\nno molecule\n"


def test_pages_are_accessible(open_page, researcher):
    texts = make_campaign(researcher, suspend_after_skips=1)
    skip(texts)
    space = {"kind": "catalog", "objects": "molecules", "neighbours": 2}
    molecules = make_campaign(researcher, file=MOLECULES, filename="m.csv", config=make_config(space=space))
    draft = make_draft(researcher, file=MOLECULES, filename="m.csv", config=make_config(space=space))
    page, broken = open_page(), []

    def check(*paths: str, opened: bool = False, unfolded: bool = False) -> None:
        for path in paths:
            answer = page.goto(path)
            broken.extend([] if answer.ok else [(path, answer.status)])
            check_shown(path, opened=opened, unfolded=unfolded)

    def check_shown(path: str, *, opened: bool = False, unfolded: bool = False) -> None:
        page.wait_for_load_state("networkidle")
        if unfolded:
            page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
        if opened:
            page.locator("summary").first.click()
        broken.extend((path, *wrong) for wrong in violations(page))
        broken.extend([(path, "too wide")] if is_too_wide(page) else [])
        page.set_viewport_size(WIDE)

    def tell_about_themselves() -> None:
        page.get_by_label("student").check()
        page.get_by_label("How old are you?").fill("30")
        page.get_by_label("2", exact=True).check()
        page.get_by_role("button", name="Continue").click()

    check("/accounts/sign-in/", sign_in_path(researcher), "/tokens/", "/campaigns/new/", "/campaigns/import/")
    check(*(campaign.get_absolute_url() for campaign in (texts, molecules, draft)))
    page.goto("/campaigns/import/")
    wrong = {"name": "campaign.yaml", "mimeType": "application/yaml", "buffer": b"version: 1\nnam: x\n"}
    page.get_by_label("Your file").set_input_files(wrong)
    page.get_by_role("button", name="Import").click()
    page.get_by_text("Nothing was imported").wait_for()
    check_shown("a file that is refused")
    check("/campaigns/new/", f"{draft.get_absolute_url()}setup/", unfolded=True)
    check(f"{texts.get_absolute_url()}suspended/", opened=True)
    check(f"{texts.get_absolute_url()}chains/", f"{texts.get_absolute_url()}steps/0/1/")
    for campaign in (texts, molecules):
        path = invitation_path(campaign)
        check(path)
        page.get_by_role("button", name="Start").click()
        check(f"{path}vote/")
    panel = panel_campaign(researcher, 2, names=("Ada", "Grace"))
    check(f"{panel.get_absolute_url()}panel/", link_of(panel, 2).get_absolute_url())
    panel_draft = make_draft(researcher, config=make_config(judges=panel_judges(2, names=("Ada", "Grace"))))
    check(panel_draft.get_absolute_url(), f"{panel_draft.get_absolute_url()}setup/")
    money = {"budget": 450, "quota": 40, "full_pay": "1.50", "currency": "£"}
    study = recruited_campaign(researcher, consent="# Consent\n\nDo you agree to *this*?", votes_per_person=1, **money)
    check(f"{study.get_absolute_url()}participants/", f"{study.get_absolute_url()}people/")
    page.goto(f"{invitation_path(study)}?PROLIFIC_PID=anna")
    check_shown("an arrival that lacks a parameter")
    check(f"{invitation_path(study)}?{urlencode(prolific('anna'))}")
    page.get_by_role("button", name="I do not agree").click()
    check(invitation_path(study))
    page.get_by_text("I have changed my mind").click()
    page.get_by_role("button", name="I agree: start").click()
    check(*(f"{invitation_path(study)}{path}" for path in ("vote/", "withdraw/", "vote/")))
    press_and_wait(page, "ArrowLeft")
    page.get_by_text("Your part is complete").wait_for()
    check(f"{invitation_path(study)}vote/")
    guided = recruited_campaign(
        researcher, name="With stages", protocol=WHOLE | {"practice": PAIRS[:1]}, votes_per_person=1, codes=CODES_OF_ALL
    )
    check(f"{guided.get_absolute_url()}protocol/", f"{study.get_absolute_url()}people/")
    number = Voter.objects.filter(campaign=study).count()
    check(f"{study.get_absolute_url()}people/{number}/", opened=True)
    study_to_be = make_draft(researcher)
    set_study(study_to_be, STUDY, ())
    check(*(f"{study_to_be.get_absolute_url()}{part}/" for part in ("participants", "protocol")), unfolded=True)
    preview = f"{study_to_be.get_absolute_url()}preview/participant/"
    check(preview)
    page.get_by_role("button", name="I agree: start").click()
    check(preview)
    tell_about_themselves()
    page.get_by_role("button", name="I have read this").click()
    check(preview)
    page.get_by_role("button", name="Object 2: A bright day.").click()
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("both").check()
    page.get_by_role("button", name="Check my answers").click()
    page.locator("#question").wait_for()
    check(preview)
    page.goto(f"{invitation_path(guided)}?{urlencode(prolific('anna'))}")
    page.get_by_role("button", name="Start").click()
    check(f"{invitation_path(guided)}stage/")
    page.get_by_role("button", name="Continue").click()
    tell_about_themselves()
    check(f"{invitation_path(guided)}stage/")
    page.get_by_role("button", name="I have read this").click()
    check(f"{invitation_path(guided)}stage/")
    page.get_by_role("button", name="Object 2: A bright day.").press("Enter")
    page.get_by_text("Night is darker.").wait_for()
    check(f"{invitation_path(guided)}stage/")
    page.get_by_role("button", name="Continue").press("Enter")
    page.get_by_label("one").check()
    page.get_by_role("button", name="Check my answers").click()
    page.get_by_text("You may try once more").wait_for()
    page.get_by_label("both").check()
    page.get_by_role("button", name="Check my answers").click()
    page.locator("#question").wait_for()
    press_and_wait(page, "ArrowLeft")
    page.get_by_role("link", name="Continue").click()
    check(f"{invitation_path(guided)}stage/")
    page.get_by_role("button", name="Continue").click()
    page.get_by_text("Your part is complete").wait_for()
    check(invitation_path(guided))
    assert not broken


MAX_STOPS = 400


@pytest.fixture(params=["running", "finished"])
def campaign(request, researcher, idle_tasks):
    """A campaign that has just started, or one that has its last vote."""
    steps = 60 if request.param == "running" else 12
    made = make_campaign(researcher, config=make_config(chains=2, steps=steps))
    if request.param == "finished":
        made = voted_to_the_end(made)
    assert made.status == request.param
    return made


@pytest.fixture
def desk(open_page, researcher):
    return open_page(sign_in_path(researcher))


def test_every_tab_can_be_read_and_walked_by_keyboard(desk, campaign):
    for label, (name, _) in TABS.items():
        # A page of its own, whose focus nobody has moved yet.
        page = desk.context.new_page()
        page.goto(reverse(name, args=[campaign.pk]))
        page.wait_for_load_state("networkidle")
        if campaign.status == "running":
            walk_by_keyboard(page)
        assert page.locator("nav.tabs [aria-current=page]").inner_text() == label
        assert (label, violations(page)) == (label, [])
        assert not is_too_wide(page), label
        page.close()


def walk_by_keyboard(page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    keyboard = Keyboard(page)
    stops = 0
    while keyboard.tab() is not None:
        stops += 1
        assert stops < MAX_STOPS, "the focus never leaves the page"
    assert stops > len(TABS)
    assert keyboard.lost == []
