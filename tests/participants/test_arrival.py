"""People sent by a platform: who they are, on which device, and what is stored of them."""

import threading

import pytest
from django.contrib.sessions.models import Session
from django.test import Client

from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.models import Annotator
from prefmh_web.participants.models import Participant, Participation
from prefmh_web.voting import views
from tests.security.test_limits import all_at_once
from tests.support.campaigns import arrive, invitation_path, pair_of, prolific, recruited_campaign, vote


@pytest.fixture
def study(researcher):
    return recruited_campaign(researcher)


def stored() -> list[int]:
    return [model.objects.count() for model in (Participant, Participation, Annotator, Session)]


def annotators() -> list[int]:
    return list(Annotator.objects.order_by("pk").values_list("pk", flat=True))


def test_the_address_is_cleaned_and_nothing_is_stored_before_the_first_button(study):
    browser, path = Client(), invitation_path(study)
    for _ in range(2):
        answer = browser.get(path, prolific("anna"))
        assert (answer.status_code, answer.url) == (302, path)
        page = browser.get(path)
        assert page.status_code == 200
        assert "anna" not in page.content.decode()
    assert stored() == [0, 0, 0, 0]
    assert browser.cookies[views.COOKIE]["httponly"]
    assert browser.cookies[views.COOKIE]["path"] == path
    browser.post(path)
    assert stored() == [1, 1, 1, 1]
    part = Participation.objects.get()
    assert (part.participant.owner, part.participant.recruiter) == (study.owner, "prolific")
    [visit] = part.visits
    assert (visit["session_id"], visit["parameters"]) == ("s1", {"STUDY_ID": "study"})


@pytest.mark.parametrize("lacking", ["PROLIFIC_PID", "SESSION_ID"])
def test_a_link_without_an_id_gets_a_page_that_says_what_is_missing(study, lacking):
    query = {name: value for name, value in prolific("anna").items() if name != lacking}
    answer = Client().get(invitation_path(study), query)
    assert answer.status_code == 400
    assert f"The link has no {lacking}" in answer.content.decode()
    assert stored() == [0, 0, 0, 0]


def test_a_link_without_any_parameter_lets_nobody_in(study):
    for send in (Client().get, Client().post):
        answer = send(invitation_path(study))
        assert answer.status_code == 403
        assert "The address has no PROLIFIC_PID" in answer.content.decode()
    assert stored() == [0, 0, 0, 0]


def test_the_preview_of_mturk_stores_nothing(researcher):
    study = recruited_campaign(researcher, "mturk-toolkit")
    query = {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE", "hitId": "h", "workerId": ""}
    assert "This is a preview" in Client().get(invitation_path(study), query).content.decode()
    assert stored() == [0, 0, 0, 0]


def test_the_same_id_is_the_same_person_on_every_device_and_sees_the_same_pair(study):
    laptop = arrive(study, prolific("anna"))
    pair = pair_of(laptop, study)
    phone = arrive(study, prolific("anna", session="s2"))
    assert pair_of(phone, study) == pair
    vote(phone, study)
    assert pair_of(laptop, study) == pair_of(phone, study) != pair
    assert len(annotators()) == 1
    visits = Participation.objects.get().visits
    assert [visit["session_id"] for visit in visits] == ["s1", "s2"]
    assert Participation.objects.get().paid_visit["session_id"] == "s2"


def test_another_id_in_the_same_browser_is_another_person_at_once(study):
    browser = arrive(study, prolific("anna"))
    pair = pair_of(browser, study)
    path = invitation_path(study)
    browser.get(path, prolific("ben"))
    # Not Anna any more, although Ben has not pressed the button yet.
    assert browser.get(f"{path}vote/").url == path
    browser.post(path)
    assert pair_of(browser, study) != pair
    assert len(annotators()) == 2


def test_a_forged_cookie_is_nobody(study):
    browser, path = Client(), invitation_path(study)
    browser.cookies[views.COOKIE] = "eyJleHRlcm5hbF9pZCI6ImFubmEifQ:1x:forged"
    assert browser.post(path).status_code == 403
    assert stored() == [0, 0, 0, 0]


def test_a_closed_link_lets_those_go_on_who_have_joined(study):
    arrive(study, prolific("anna"))
    access.revoke(study.invitations.get())
    arrive(study, prolific("anna"))
    stranger, path = Client(), invitation_path(study)
    stranger.get(path, prolific("ben"))
    # Only the button tells: by looking, nobody finds out who takes part.
    assert stranger.get(path).status_code == 200
    assert stranger.post(path).status_code == 403
    assert len(annotators()) == 1


def test_a_removed_person_does_not_come_back_from_another_device(study):
    arrive(study, prolific("anna"))
    access.remove(Annotator.objects.get())
    phone, path = Client(), invitation_path(study)
    phone.get(path, prolific("anna"))
    assert "ended your part" in phone.post(path).content.decode()
    assert len(annotators()) == 1


def test_people_of_named_campaigns_may_not_come_again(study, researcher):
    arrive(study, prolific("anna"))
    second = recruited_campaign(researcher, excluded=(study,))
    third = recruited_campaign(researcher)
    browser, path = Client(), invitation_path(second)
    browser.get(path, prolific("anna"))
    answer = browser.post(path)
    assert answer.status_code == 403
    assert "earlier study" in answer.content.decode()
    arrive(second, prolific("ben"))
    arrive(third, prolific("anna"))
    assert Participant.objects.count() == 2
    assert Participation.objects.count() == 3


def test_of_many_pages_that_bring_one_person_at_once_all_are_that_person(study):
    path, ready, statuses = invitation_path(study), threading.Barrier(8), []

    def come() -> None:
        browser = Client()
        browser.get(path, prolific("anna"))
        ready.wait()
        statuses.append(browser.post(path).status_code)

    all_at_once([come] * 8)
    assert statuses == [302] * 8
    assert [Participant.objects.count(), Participation.objects.count(), Annotator.objects.count()] == [1, 1, 1]


def test_where_nobody_is_sent_parameters_of_the_address_do_nothing(campaign):
    page = Client().get(invitation_path(campaign), prolific("anna"))
    assert page.status_code == 200
    assert not Participant.objects.exists()
