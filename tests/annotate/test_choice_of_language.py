"""A campaign in several languages: each person chooses one, reads all in it, and keeps it from their first vote on."""

import json
import zipfile

import pytest
from django.test import Client
from django.urls import reverse

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Annotator
from prefmh_web.participants import consent, recruiting, wording
from prefmh_web.participants.models import Consent, Participation
from tests.participants.test_practice import PAIRS
from tests.participants.test_stages import ABOUT, READ, UNDERSTOOD, WHOLE, go_on, page_of
from tests.support.record import assert_replay_passes, export_to, table
from tests.support.recruited import CODES, prolific, vote
from tests.support.stack import invitation_path, make_campaign, make_draft, make_recipe, wait_until_idle

QUESTION = "Which is better?"
ONE = make_recipe(judges=[{"question": QUESTION, "budget": 2}])
ENGLISH, ARABIC = "Do you agree to **this**?", "هل توافق على **هذا**؟"
PROTOCOL = WHOLE | {"practice": PAIRS[:1]}


def translated(campaign, *languages: str) -> None:
    """Give every text of a draft in these languages: the text itself, in brackets with the language."""
    texts = wording.texts_of(campaign, recruiting.recruitment_of(campaign).parsed_protocol)
    given = {code: {each.text: f"[{code}] {each.text}" for each in texts} for code in languages}
    wording.set_translations(campaign, given)


@pytest.fixture
def campaign(researcher):
    """A campaign in English, German and Arabic, for anybody with the link."""
    draft = make_draft(researcher, recipe=ONE, more_languages="de ar", instructions="Read both.")
    translated(draft, "de", "ar")
    return begun(draft)


@pytest.fixture
def study(researcher):
    """A study in English and Arabic whose people a platform sends."""
    draft = make_draft(researcher, recipe=ONE, more_languages="ar")
    fields = {"recruiter": "prolific", "codes": CODES, "consent": ENGLISH, "consents": {"ar": ARABIC}, "votes_each": 1}
    recruiting.set_up(draft, fields | {"protocol": PROTOCOL}, ())
    translated(draft, "ar")
    return begun(draft)


def begun(draft):
    lifecycle.start(draft)
    wait_until_idle()
    return draft


def first_page(browser, campaign) -> str:
    return browser.get(invitation_path(campaign)).content.decode()


def choose(browser, campaign, language: str) -> str:
    return browser.post(invitation_path(campaign), {"language": language}, follow=True).content.decode()


@pytest.mark.parametrize(
    ("asked", "language"),
    [("ar,en;q=0.5", "ar"), ("de-AT,xx;q=0.9", "de"), ("fr;;,nonsense", "en")],
)
def test_the_first_page_is_in_the_language_that_the_browser_asks_for(campaign, asked, language):
    browser = Client(headers={"accept-language": asked})
    assert f'<html lang="{language}"' in first_page(browser, campaign)
    browser.post(invitation_path(campaign))
    assert Annotator.objects.get().language == language


def test_a_choice_stands_before_what_the_browser_asks_for_and_stores_nothing_yet(campaign):
    browser = Client(headers={"accept-language": "de"})
    page = choose(browser, campaign, "ar")
    assert '<html lang="ar" dir="rtl">' in page
    assert "[ar] Read both." in page
    assert f"[ar] {QUESTION}" in page
    assert '<strong lang="ar">العربيّة</strong>' in page
    assert '<button name="language" value="de" lang="de">Deutsch</button>' in page
    assert not Annotator.objects.exists()
    browser.post(invitation_path(campaign))
    assert f"[ar] {QUESTION}" in browser.get(f"{invitation_path(campaign)}vote/").content.decode()


def test_the_language_can_be_changed_up_to_the_first_vote(campaign):
    browser = Client()
    browser.post(invitation_path(campaign))
    assert f"[de] {QUESTION}" in choose(browser, campaign, "de")
    vote(browser, campaign)
    assert 'name="language"' not in first_page(browser, campaign)
    choose(browser, campaign, "ar")
    assert Annotator.objects.get().language == "de"
    assert f"[de] {QUESTION}" in browser.get(f"{invitation_path(campaign)}vote/").content.decode()


@pytest.mark.parametrize("language", ["fr", "en de"])
def test_a_language_that_the_campaign_does_not_offer_changes_nothing(study, language):
    browser = Client()
    assert '<html lang="en">' in choose(browser, study, language)
    assert not browser.cookies.get("prefmh_language")
    assert not Annotator.objects.exists()


def test_a_campaign_with_one_language_offers_no_choice(researcher):
    campaign, browser = make_campaign(researcher), Client(headers={"accept-language": "ar"})
    assert 'name="language"' not in first_page(browser, campaign)
    assert '<html lang="en">' in choose(browser, campaign, "ar")
    browser.post(invitation_path(campaign))
    assert Annotator.objects.get().language == ""


def test_every_text_of_a_study_is_read_in_the_language_chosen_on_every_device(study):
    browser = Client()
    browser.get(invitation_path(study), prolific("anna"))
    assert "هذا" in choose(browser, study, "ar")
    browser.post(invitation_path(study), {"consent": "agree", "version": consent.version_of(ARABIC)})
    assert Consent.objects.get().version == consent.version_of(ARABIC)
    page = page_of(browser, study, "vote/")
    assert "[ar] What are you?" in page
    assert "[ar] student" in page
    assert "2 · " not in page
    assert "1 · [ar] bad" in page
    assert "[ar] Read <em>both</em>" in go_on(browser, study, ABOUT)
    # Another device, whose browser asks for English: the same language, and consent is not asked again.
    phone = Client(headers={"accept-language": "en"})
    phone.get(invitation_path(study), prolific("anna", session="s2"))
    page = phone.post(invitation_path(study), follow=True).content.decode()
    assert '<html lang="ar" dir="rtl">' in page
    page = go_on(phone, study, READ, {"stage": "practice", "answer-step": "0", "answer-choice": "left"})
    assert "[ar] " in page
    assert "[ar] What do you read?" in go_on(phone, study, {"stage": "practice", "answer-step": "0-answered"})
    assert f"[ar] {QUESTION}" in go_on(phone, study, UNDERSTOOD)
    vote(phone, study)
    page_of(phone, study, "vote/")
    assert "[ar] Anything else?" in page_of(phone, study)
    assert "[ar] It was about" in go_on(phone, study, {"stage": "last-questions"})
    part = Participation.objects.get()
    # What was chosen is stored in the first language: eligibility and right answers do not depend on the reader's.
    assert (part.outcome, part.answers.get(name="role").answer) == ("completed", "student")


def test_a_text_of_consent_that_changes_asks_those_who_agreed_to_it(study, researcher):
    readers = {}
    for person, language, text in (("anna", "ar", ARABIC), ("bert", "en", ENGLISH)):
        readers[person] = browser = Client()
        browser.get(invitation_path(study), prolific(person))
        choose(browser, study, language)
        browser.post(invitation_path(study), {"consent": "agree", "version": consent.version_of(text)})
    recruiting.set_up(study, {"consent": ENGLISH, "consents": {"ar": f"{ARABIC}!"}}, ())
    asked = {
        person: browser.get(f"{invitation_path(study)}vote/").url.endswith("/stage/")
        for person, browser in readers.items()
    }
    assert asked == {"anna": False, "bert": True}


def test_start_is_refused_while_a_text_is_missing_and_names_it(researcher):
    draft = make_draft(researcher, recipe=ONE, more_languages="de ar", instructions="Read both.")
    translated(draft, "de", "ar")
    texts = {QUESTION: "…"}
    wording.set_translations(draft, {"ar": texts})
    with pytest.raises(NotPossible, match=r"العربيّة: “Read both\.” \(Instructions for voters\)"):
        lifecycle.start(draft)
    draft.refresh_from_db()
    assert draft.is_draft
    wording.set_translations(draft, {"ar": texts | {"Read both.": "…"}})
    lifecycle.start(draft)


def test_start_is_refused_while_consent_is_missing_in_a_language(researcher):
    draft = make_draft(researcher, recipe=ONE, more_languages="ar")
    recruiting.set_up(draft, {"recruiter": "prolific", "consent": ENGLISH}, ())
    translated(draft, "ar")
    with pytest.raises(NotPossible, match="Consent is missing in"):
        lifecycle.start(draft)


def test_the_record_says_who_judged_in_which_language_and_by_which_words(campaign, tmp_path):
    for language in ("ar", "de"):
        browser = Client(headers={"accept-language": language})
        browser.post(invitation_path(campaign))
        vote(browser, campaign)
    path = export_to(campaign, tmp_path)
    people = Annotator.objects.order_by("pk")
    assert table(path, "languages.csv") == [{"annotator": str(each.pk), "language": each.language} for each in people]
    assert {each.language for each in people} == {"ar", "de"}
    with zipfile.ZipFile(path) as archive:
        [judge] = json.loads(archive.read("judges.json"))
    assert judge["questions"] == {"en": QUESTION, "de": f"[de] {QUESTION}", "ar": f"[ar] {QUESTION}"}
    texts = {(row["language"], row["text"]): row["translation"] for row in table(path, "translations.csv")}
    assert texts[("ar", "Read both.")] == "[ar] Read both."
    assert_replay_passes(path)


def test_the_record_of_a_campaign_with_one_language_is_as_before(researcher, tmp_path):
    path = export_to(make_campaign(researcher), tmp_path)
    with zipfile.ZipFile(path) as archive:
        assert not {"languages.csv", "translations.csv"} & set(archive.namelist())
        assert "questions" not in json.loads(archive.read("judges.json"))[0]


def test_the_researcher_writes_each_text_once_for_each_language(client, researcher):
    draft = make_draft(researcher, recipe=ONE, more_languages="de", instructions="Read both.")
    client.force_login(researcher)
    path = reverse("console:languages", args=[draft.pk])
    page = client.get(path).content.decode()
    assert "2 texts still missing" in page
    names = {form_field.label: form_field.html_name for form_field in client.get(path).context["form"]}
    fields = {name: f"[de] {label}" for label, name in names.items()}
    assert "texts still missing" not in client.post(path, fields, follow=True).content.decode()
    lifecycle.start(draft)
    page = client.post(path, dict.fromkeys(fields, "changed"), follow=True).content.decode()
    assert "[de] “Read both.” in Deutsch" in client.get(path).content.decode()


def test_consent_is_entered_in_every_language_or_in_none(client, researcher):
    draft = make_draft(researcher, recipe=ONE, more_languages="ar")
    client.force_login(researcher)
    path = reverse("console:participants", args=[draft.pk])
    fields = {"recruiter": "prolific", "consent": ENGLISH, "way_back": "https://x.org/"}
    assert "Enter it in each of them" in client.post(path, fields).content.decode()
    assert "Saved" in client.post(path, fields | {"consent_ar": ARABIC}, follow=True).content.decode()
    assert recruiting.recruitment_of(draft).consents == {"ar": ARABIC}
