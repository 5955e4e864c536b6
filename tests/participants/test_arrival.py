"""People sent by a platform: who they are, on which device, and what is stored of them."""

import threading
from urllib.parse import parse_qs, quote, urlsplit

import numpy as np
import pytest
from django.contrib.sessions.models import Session
from django.test import Client

from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.models import Annotator
from prefmh_web.participants import completion, joining
from prefmh_web.participants.joining import Arrival, NotFromThere
from prefmh_web.participants.models import LONGEST_ID, Participant, Participation
from prefmh_web.recruiters import PROLIFIC, RECRUITERS, SONA, recruiter_by
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


# What platforms' links say, over the registry of recruiters.


PLATFORMS = [recruiter_by(each.name, "person") for each in RECRUITERS.values() if each.person]
each_platform = pytest.mark.parametrize("platform", PLATFORMS, ids=lambda platform: platform.name)


IDS = {"prolific": "5f8c2a1b3d4e5f8c2a1b3d4e", "sona": "70012", "mturk-toolkit": "A20KZBL2PA6ZW", "link": "Ada 17"}


def query_of(platform) -> dict[str, str]:
    """Return what the platform's own link has once its placeholders are filled in."""
    values = {name: f"value-of-{name}" for name in (*platform.parameters, *platform.appends)}
    return values | {platform.person: IDS.get(platform.name, f"value-of-{platform.person}")}


@each_platform
def test_a_filled_in_link_names_the_person(platform):
    arrival = joining.read(platform, query_of(platform))
    assert arrival.external_id == query_of(platform)[platform.person]
    assert arrival.session_id == query_of(platform).get(platform.session, "")
    others = query_of(platform).keys() - {platform.person, platform.session}
    assert arrival.parameters == {name: f"value-of-{name}" for name in others}


@each_platform
def test_the_link_to_paste_has_a_placeholder_for_each_parameter(platform):
    link = platform.link("https://study.example/join/abc/")
    assert link.startswith("https://study.example/join/abc/")
    assert parse_qs(urlsplit(link).query) == {name: [value] for name, value in platform.parameters.items()}


@pytest.mark.parametrize("platform", [each for each in PLATFORMS if each.parameters], ids=lambda each: each.name)
def test_a_link_that_the_platform_has_not_filled_in_is_refused(platform):
    for value in (platform.parameters[platform.person], f"[{platform.person}]", f"<{platform.person}>"):
        with pytest.raises(NotFromThere, match="in place of your"):
            joining.read(platform, query_of(platform) | {platform.person: value})


@pytest.mark.parametrize(
    ("platform", "value"),
    [("prolific", "anna"), ("prolific", f"{IDS['prolific']}0"), ("sona", "7a"), ("mturk-toolkit", "worker 17")],
)
def test_an_id_that_the_platform_never_gives_is_refused_unless_that_is_switched_off(platform, value):
    recruiter = recruiter_by(platform)
    query = query_of(recruiter) | {recruiter.person: value}
    with pytest.raises(NotFromThere, match=f"{value} in the link is no {recruiter.person}"):
        joining.read(recruiter, query)
    assert joining.read(recruiter, query, checks_ids=False).external_id == recruiter.folded(value)


def test_the_case_of_a_letter_makes_nobody_else_of_somebody_where_the_platform_has_one_case():
    upper = query_of(PROLIFIC) | {"PROLIFIC_PID": IDS["prolific"].upper()}
    assert joining.read(PROLIFIC, upper).external_id == IDS["prolific"]
    own = recruiter_by("link", "person")
    assert joining.read(own, {"person": "Ada"}) != joining.read(own, {"person": "ada"})


@each_platform
@pytest.mark.parametrize("value", [None, "", " ", "x" * (LONGEST_ID + 1), "a\nb", "\x00"])
def test_without_a_usable_id_the_page_names_what_is_missing(platform, value):
    query = query_of(platform) | {platform.person: value}
    query = {name: text for name, text in query.items() if text is not None}
    with pytest.raises(NotFromThere, match=platform.person):
        joining.read(platform, query)


def test_sona_has_one_code_for_the_person_and_the_visit():
    assert joining.read(SONA, {"survey_code": "77"}) == Arrival("77", "77")


def test_other_parameters_are_kept_up_to_a_stated_size():
    query = {"person": "p", "first": "x" * 400, "second": "y" * 400, "third": "z" * 400}
    assert joining.read(recruiter_by("link", "person"), query).parameters.keys() == {"first", "second"}


def test_an_arrival_is_believed_only_as_signed_for_its_link():
    arrival = Arrival("p", "s", {"STUDY_ID": "x"})
    text = joining.sign(arrival, "token")
    assert joining.signed(text, "token") == arrival
    for forged in (text[:-1], "", "nonsense", f"x{text}"):
        assert joining.signed(forged, "token") is None
    assert joining.signed(text, "another") is None


def test_a_signed_arrival_fits_into_a_cookie():
    """Of letters that cannot be compressed, as many as there may be."""
    letters = np.random.default_rng(1).integers(0x4E00, 0x9FFF, size=2000)
    text = "".join(map(chr, letters))
    query = {"PROLIFIC_PID": text[:LONGEST_ID], "SESSION_ID": text[-LONGEST_ID:]}
    query |= {f"other{place}": text[10 * place : 10 * place + 10] for place in range(40)}
    arrival = joining.read(PROLIFIC, query, checks_ids=False)
    assert len(arrival.parameters) > 5
    assert len(joining.sign(arrival, "token")) < 4000


@each_platform
def test_each_name_that_a_way_back_may_have_is_filled_in(platform):
    arrival = joining.read(platform, query_of(platform))
    participant = Participant(external_id=arrival.external_id)
    visit = {"session_id": arrival.session_id, "parameters": arrival.parameters}
    known = completion.fields_of(Participation(participant=participant, visits=[visit]), platform)
    for name in (*platform.parameters, *platform.appends):
        found = completion.way_back(f"https://x.example/{{{name}}}", known)
        assert found == f"https://x.example/{quote(query_of(platform)[name])}"


@pytest.mark.parametrize("pair", [("x", "\x00"), ("\x00", "x"), ("x", "a\nb")])
def test_what_no_database_stores_is_left_out(pair):
    arrival = joining.read(recruiter_by("link", "person"), {"person": "p", "kept": "1"} | dict([pair]))
    assert arrival.parameters == {"kept": "1"}
