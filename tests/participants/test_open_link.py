"""One link for everyone, and the whole way: each browser is a participant without an id."""

import pytest
from django.test import Client
from django.urls import reverse

from prefmh_web.campaigns.models import Annotator, Campaign, Vote
from prefmh_web.campaigns.voters import number_of
from prefmh_web.participants import consent
from prefmh_web.participants.models import Participant, Participation
from tests.participants.test_stages import ABOUT, READ, UNDERSTOOD
from tests.security.world import browser_of
from tests.support.campaigns import (
    WHOLE,
    assert_replay_passes,
    everything_in,
    export_to,
    go_on,
    invitation_path,
    make_draft,
    page_of,
    payments_of,
    recruited_campaign,
    vote,
)

TEXT = "Do you *agree*?"
AGREE = {"consent": "agree", "version": consent.version_of(TEXT)}
CODES = {"completed": "DONE", "no-consent": "N0"}


@pytest.fixture
def study(researcher):
    fields = {"consent": TEXT, "codes": CODES, "protocol": WHOLE, "way_back": "", "places": 2, "votes_each": 1}
    return recruited_campaign(researcher, recruiter="open", **fields)


def stranger(campaign) -> Client:
    """Open the link in a fresh browser."""
    browser = Client()
    assert TEXT[:5] in browser.get(invitation_path(campaign)).content.decode()
    return browser


def test_a_stranger_passes_every_stage_up_to_the_code(study, tmp_path):
    browser = stranger(study)
    assert not Participation.objects.exists()
    assert browser.post(invitation_path(study), AGREE).url.endswith("/vote/")
    assert "What are you?" in page_of(browser, study, "vote/")
    assert 'id="question"' in go_on(browser, study, ABOUT, READ, UNDERSTOOD)
    vote(browser, study)
    page_of(browser, study, "vote/")
    assert "DONE" in go_on(browser, study, {"stage": "last-questions"})
    # Whoever comes back in the same browser reads the code again, and is nobody new.
    assert "DONE" in browser.get(invitation_path(study)).content.decode()
    assert "DONE" in browser.post(invitation_path(study), AGREE, follow=True).content.decode()
    person = Participant.objects.get()
    [row] = payments_of(browser_of(study.owner), study)
    assert (row["external_id"], row["session_id"], row["outcome"], row["code"]) == ("", "", "completed", "DONE")
    path = export_to(study, tmp_path)
    assert person.external_id not in everything_in(path)
    assert_replay_passes(path)


def test_each_browser_is_a_participant_and_each_gets_a_place_once(study):
    browsers = [stranger(study) for _ in range(3)]
    ends = []
    for browser in browsers:
        browser.post(invitation_path(study), AGREE)
        # The button pressed twice, and the page opened again in between.
        browser.get(invitation_path(study))
        browser.post(invitation_path(study), AGREE)
        go_on(browser, study, ABOUT, READ, UNDERSTOOD)
        ends.append("All places of this study are taken" in browser.get(invitation_path(study)).content.decode())
    assert ends == [False, False, True]
    assert Participation.objects.count() == Annotator.objects.count() == 2
    vote(browsers[0], study)
    assert Vote.objects.get().annotator == Annotator.objects.order_by("pk")[0]


@pytest.mark.parametrize("erase", [{}, {"erase": "later"}])
def test_who_withdraws_has_left_for_good_and_once_forgotten_is_somebody_new(study, erase):
    browser = stranger(study)
    browser.post(invitation_path(study), AGREE)
    go_on(browser, study, ABOUT, READ, UNDERSTOOD)
    vote(browser, study)
    assert "You have withdrawn" in browser.post(f"{invitation_path(study)}withdraw/", erase).content.decode()
    page = browser.get(invitation_path(study)).content.decode()
    assert ("Your part has ended" in page) is not bool(erase)
    browser.post(invitation_path(study), AGREE)
    assert (Annotator.objects.count(), Participant.objects.count()) == (2 if erase else 1, 1)


def test_what_stands_in_the_address_names_nobody(study):
    browser = Client()
    page = browser.get(invitation_path(study), {"PROLIFIC_PID": "anna", "participant": "anna"})
    assert page.status_code == 200
    browser.post(invitation_path(study), AGREE)
    assert Participant.objects.get().external_id != "anna"


def test_a_finished_campaign_takes_nobody_new(study):
    Campaign.objects.filter(pk=study.pk).update(status=Campaign.Status.FINISHED)
    answer = Client().get(invitation_path(study))
    assert answer.status_code == 403
    assert "nothing left to do.<" in answer.content.decode()


def test_an_open_link_is_set_up_with_a_protocol_and_without_ids(researcher):
    draft, owner = make_draft(researcher), browser_of(researcher)
    path = reverse("console:participants", args=[draft.pk])
    fields = {"recruiter": "open", "consent": TEXT, "places": "5"}
    wrong = owner.post(path, fields | {"way_back": "https://x.org/?id={external_id}"}).content.decode()
    assert "{external_id} is not known. Use {code}." in wrong
    assert "Not saved: some fields need to be corrected." in wrong
    right = {"way_back": "https://x.org/?c={code}", "codes.completed": "C"}
    assert "Saved" in owner.post(path, fields | right, follow=True).content.decode()


def test_the_page_of_people_shows_no_id(study):
    browser = stranger(study)
    browser.post(invitation_path(study), AGREE)
    owner, drawn = browser_of(study.owner), Participant.objects.get().external_id
    for path in ("people/", f"people/{number_of(Annotator.objects.get())}/", "participants/"):
        assert drawn not in owner.get(f"{study.get_absolute_url()}{path}").content.decode()
