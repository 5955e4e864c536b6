"""Agreeing, refusing, changing one's mind, and withdrawing."""

import re
import zipfile

import pytest
from django.test import Client
from django.urls import reverse

from prefmh_web.campaigns.models import Annotator, Lease, Vote
from prefmh_web.participants import consent
from prefmh_web.participants.models import Participation
from tests.support.campaigns import (
    CODES,
    IN_EVERY_ARCHIVE,
    assert_record_is_whole,
    assert_replay_passes,
    everything_in,
    export_to,
    happened,
    invitation_path,
    page_of,
    pair_of,
    prolific,
    recruited_campaign,
    set_study,
    table,
    vote,
    wait_until_idle,
)

TEXT = "# Consent\n\nYou compare *texts*. You may stop at any time."
ALL_CODES = CODES | {"no-consent": "N0", "withdrawn": "W1THDREW", "ended": "ENDED"}


@pytest.fixture
def study(researcher):
    return recruited_campaign(researcher, consent=TEXT, codes=ALL_CODES)


def come(campaign, person: str = "anna") -> Client:
    browser = Client()
    browser.get(invitation_path(campaign), prolific(person))
    return browser


def answer(browser, campaign, said: str, text: str = TEXT):
    return browser.post(invitation_path(campaign), {"consent": said, "version": consent.version_of(text)})


@pytest.mark.parametrize(
    "fields", [{}, {"consent": "maybe"}, {"consent": "agree"}, {"consent": "agree", "version": "0" * 64}]
)
def test_nobody_starts_without_agreeing_to_the_text_of_now(study, fields):
    browser = come(study)
    assert browser.post(invitation_path(study), fields).url == invitation_path(study)
    assert browser.get(f"{invitation_path(study)}vote/").url == invitation_path(study)
    assert not Annotator.objects.exists()


def test_who_refuses_stores_that_alone_and_may_change_their_mind(study):
    browser = come(study)
    assert answer(browser, study, "refuse").url == invitation_path(study)
    page = page_of(browser, study, "")
    assert "You did not agree" in page
    assert "cc=N0" in page
    part = Participation.objects.get()
    assert (part.outcome, part.code) == ("no-consent", "N0")
    assert not Lease.objects.exists()
    # On another device it is the same person, and may not vote without agreeing.
    assert come(study).post(invitation_path(study)).url == invitation_path(study)
    assert answer(browser, study, "agree").url.endswith("/vote/")
    part.refresh_from_db()
    assert (part.outcome, part.code, part.finished_at) == ("", "", None)
    assert pair_of(browser, study) is not None
    assert [given["agreed"] for given in part.consents] == [False, True]


def test_what_was_agreed_to_and_when_is_in_the_record(study, tmp_path):
    for person, said in (("anna-id", "agree"), ("ben-id", "refuse")):
        answer(come(study, person), study, said)
    export = export_to(study, tmp_path)
    assert_replay_passes(export)
    version = consent.version_of(TEXT)
    assert happened(export, "consent-asked", "consent-answered") == [
        ("consent-asked", {"version": version, "wording": TEXT}),
        ("consent-answered", {"version": version, "agreed": True}),
        ("consent-answered", {"version": version, "agreed": False}),
    ]
    answered = [row["voter"] for row in table(export, "events.csv") if row["kind"] == "consent-answered"]
    assert answered == ["1", "2"]
    outcomes = [(row["voter"], row["outcome"]) for row in table(export, "voters.csv")]
    assert outcomes == [("1", ""), ("2", "no-consent")]
    assert "anna-id" not in everything_in(export)


def test_a_campaign_without_a_platform_has_the_files_it_had(campaign, tmp_path):
    with zipfile.ZipFile(export_to(campaign, tmp_path)) as archive:
        assert set(archive.namelist()) == IN_EVERY_ARCHIVE


def test_a_new_text_is_asked_again(study):
    browser = come(study)
    answer(browser, study, "agree")
    new = f"{TEXT} And we record your screen."
    set_study(study, {"consent": new}, ())
    assert browser.get(f"{invitation_path(study)}vote/").url == invitation_path(study)
    assert "record your screen" in page_of(browser, study, "")
    # The old page, still open somewhere, does not agree to the new text.
    assert answer(browser, study, "agree").url == invitation_path(study)
    assert answer(browser, study, "agree", new).url.endswith("/vote/")
    assert pair_of(browser, study) is not None
    # Back to the first text, which is kept already.
    set_study(study, {"consent": TEXT}, ())
    assert [event.data["wording"] for event in consent.texts(study.pk)] == [TEXT, new]


def test_who_refuses_after_all_on_another_device_votes_no_more(study):
    browser = come(study)
    answer(browser, study, "agree")
    vote(browser, study)
    pair = pair_of(browser, study)
    phone = come(study)
    answer(phone, study, "refuse")
    wait_until_idle()
    assert Participation.objects.get().outcome == "withdrawn"
    assert Lease.objects.get(key=pair).ended_at is not None
    for page in (page_of(browser, study, ""), page_of(phone, study, "")):
        assert "You have withdrawn" in page
    assert browser.get(f"{invitation_path(study)}vote/").url == invitation_path(study)
    assert Vote.objects.count() == 1


def test_looking_does_not_tell_who_takes_part(study):
    answer(come(study, "anna"), study, "agree")
    pages = {re.sub(r'value="[^"]+"', "", page_of(come(study, person), study, "")) for person in ("anna", "ben")}
    assert len(pages) == 1


def withdraw(browser, campaign, **fields) -> str:
    path = reverse("voting:withdraw", args=[campaign.invitations.get().token])
    assert "cannot be taken back" in browser.get(path).content.decode()
    page = browser.post(path, fields).content.decode()
    wait_until_idle()
    return page


def test_who_withdraws_is_asked_no_more_and_their_votes_stay(study):
    browser = come(study)
    answer(browser, study, "agree")
    vote(browser, study)
    pair = pair_of(browser, study)
    page = withdraw(browser, study)
    assert "You have withdrawn" in page
    assert "cc=W1THDREW" in page
    assert Participation.objects.get().outcome == "withdrawn"
    assert Lease.objects.get(key=pair).ended_at is not None
    assert Vote.objects.count() == 1
    assert "You have withdrawn" in page_of(browser, study, "")
    assert "You have withdrawn" in answer(come(study), study, "agree").content.decode()
    assert browser.get(f"{invitation_path(study)}vote/").url == invitation_path(study)
    # An answer that was on its way comes too late: access ended first.
    assert browser.post(f"{invitation_path(study)}vote/", {"choice": "first", "lease": str(pair)}).status_code == 302
    assert Vote.objects.count() == 1
    assert_record_is_whole(study)
    # The pair is asked of somebody else.
    other = come(study, "ben")
    answer(other, study, "agree")
    assert pair_of(other, study) is not None


def test_without_a_platform_there_is_nothing_to_withdraw_from(client, campaign):
    client.post(invitation_path(campaign))
    token = campaign.invitations.get().token
    assert "Withdraw" not in client.get(f"{invitation_path(campaign)}vote/").content.decode()
    client.post(reverse("voting:withdraw", args=[token]))
    assert Annotator.objects.get().removed_at is None


def test_who_agrees_votes_and_what_they_agreed_to_is_kept(study):
    browser = come(study)
    page = page_of(browser, study, "")
    assert "<h2>Consent</h2>" in page
    assert "<em>texts</em>" in page
    assert "I do not agree" in page
    assert not Participation.objects.exists()
    assert answer(browser, study, "agree").url.endswith("/vote/")
    assert pair_of(browser, study) is not None
    [given] = Participation.objects.get().consents
    assert given["agreed"]
    [text] = consent.texts(study.pk)
    assert (text.data["version"], text.data["wording"]) == (given["version"], TEXT)
