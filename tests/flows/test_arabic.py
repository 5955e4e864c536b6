"""A campaign in Arabic, from the list to the export: pages run from right to left, and so do pairs."""

import re

import pytest
from playwright.sync_api import expect

from prefmh_web.campaigns.models import Vote
from tests.flows.test_object_kinds import check_look
from tests.support import uploads
from tests.support.campaigns import invitation_path, make_campaign, make_config
from tests.support.installations import lease_on, press_and_wait
from tests.support.records import checked_export, table

pytestmark = pytest.mark.browser
QUESTION = "أيّ النصّين أجمل؟"
# With vowel marks, digits and names in Latin letters, a mark of direction, and one that has many lines.
TEXTS = [
    "قِفا نَبكِ مِن ذِكرى حَبيبٍ ومَنزِلِ",
    "وقف البيت القديم على التلّ، والمطر ينزل على الحقول منذ ٣ أيام.",
    "قرأت رواية Frankenstein في 1984 ثم نسيتها.",
    "\u200fكتبت رسائل لا يقرؤها أحد \u200e(مرّتين)\u200f في غرفة لها أبواب كثيرة.",
    "Once, في مدينة بعيدة، عاش رجل اسمه «سليم».",
    "نزل المطر على الحقول وبقيت وحدها في البيت. " * 120,
]


@pytest.fixture
def campaign(researcher):
    judges = [{"question": QUESTION, "votes": 1}]
    return make_campaign(
        researcher,
        language="ar",
        instructions="اقرأ النصّين ثم اختر أجملهما.",
        file=uploads.spreadsheet([["text"], *([text] for text in TEXTS)]),
        config=make_config(judges=judges, chains=1, steps=40),
    )


def test_an_arabic_campaign_is_voted_on_and_its_texts_come_back_unchanged(open_page, campaign, tmp_path):
    page = open_page(invitation_path(campaign))
    expect(page.locator("html")).to_have_attribute("dir", "rtl")
    check_look(page, "arabic-welcome")
    page.get_by_role("button", name="ابدأ").click()
    page.wait_for_url("**/vote/")
    expect(page.locator("#question")).to_have_text(QUESTION)
    expect(page.locator("#skip")).to_contain_text("تخطّي هذا الزوج")
    check_look(page, "arabic-pair")
    for key, side in [("ArrowLeft", "second"), ("ArrowRight", "first"), ("1", "first"), ("2", "second")]:
        width = 360 if key == "2" else 1280
        page.set_viewport_size({"width": width, "height": 800})
        shown = [page.locator(f".option[value={each}]").bounding_box() for each in ("first", "second")]
        assert shown[0]["x"] > shown[1]["x"] if width > 640 else shown[0]["y"] < shown[1]["y"]
        lease = lease_on(page)
        press_and_wait(page, key)
        assert Vote.objects.get(key=lease).chosen_side == side
    for text in page.locator(".option .text").all():
        is_latin = re.match("[A-Za-z]", text.text_content() or "") is not None
        expect(text).to_have_css("direction", "ltr" if is_latin else "rtl")
    states = {row["content"] for row in table(checked_export(campaign, tmp_path), "states.csv")}
    assert states == {text.strip() for text in TEXTS}
