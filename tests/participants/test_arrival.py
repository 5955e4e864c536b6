"""People sent by a platform: who they are, on which device, and what is stored of them.

Agreeing, refusing, changing one's mind, and withdrawing.
"""

import re
import zipfile
from urllib.parse import parse_qs, quote, urlsplit

import numpy as np
import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse

from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.models import Lease, Vote, Voter
from prefmh_web.participants import completion, consent, joining
from prefmh_web.participants.joining import Arrival, NotFromThere
from prefmh_web.participants.models import LONGEST_ID, Participant, Participation
from prefmh_web.recruiters import PROLIFIC, RECRUITERS, SONA, recruiter_by
from prefmh_web.voting import views
from tests.security.test_limits import all_at_once
from tests.support.campaigns import invitation_path, set_study
from tests.support.people import CODES, arrive, page_of, pair_of, prolific, recruited_campaign, vote
from tests.support.process import wait_until_idle
from tests.support.records import (
    IN_EVERY_ARCHIVE,
    assert_record_is_whole,
    checked_export,
    everything_in,
    export_to,
    happened,
    table,
)


@pytest.fixture
def study(researcher):
    return recruited_campaign(researcher)


def stored() -> list[int]:
    return [model.objects.count() for model in (Participant, Participation, Voter, Session)]


def voters() -> list[int]:
    return list(Voter.objects.order_by("pk").values_list("pk", flat=True))


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
    assert len(voters()) == 1
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
    assert len(voters()) == 2


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
    assert len(voters()) == 1


def test_a_removed_person_does_not_come_back_from_another_device(study):
    arrive(study, prolific("anna"))
    access.remove(Voter.objects.get())
    phone, path = Client(), invitation_path(study)
    phone.get(path, prolific("anna"))
    assert "ended your part" in phone.post(path).content.decode()
    assert len(voters()) == 1


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
    path, browsers, statuses = invitation_path(study), [Client() for _ in range(8)], []
    for browser in browsers:
        browser.get(path, prolific("anna"))
    all_at_once([lambda browser=browser: statuses.append(browser.post(path).status_code) for browser in browsers])
    assert statuses == [302] * 8
    assert [Participant.objects.count(), Participation.objects.count(), Voter.objects.count()] == [1, 1, 1]


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
    query |= {f"other{index}": text[10 * index : 10 * index + 10] for index in range(40)}
    arrival = joining.read(PROLIFIC, query, checks_ids=False)
    assert len(arrival.parameters) > 5
    assert len(joining.sign(arrival, "token")) < 4000


@each_platform
def test_each_name_that_a_return_address_may_have_is_filled_in(platform):
    arrival = joining.read(platform, query_of(platform))
    participant = Participant(external_id=arrival.external_id)
    visit = {"session_id": arrival.session_id, "parameters": arrival.parameters}
    known = completion.fields_of(Participation(participant=participant, visits=[visit]), platform)
    for name in (*platform.parameters, *platform.appends):
        found = completion.return_address(f"https://x.example/{{{name}}}", known)
        assert found == f"https://x.example/{quote(query_of(platform)[name])}"


@pytest.mark.parametrize("pair", [("x", "\x00"), ("\x00", "x"), ("x", "a\nb")])
def test_what_no_database_stores_is_left_out(pair):
    arrival = joining.read(recruiter_by("link", "person"), {"person": "p", "kept": "1"} | dict([pair]))
    assert arrival.parameters == {"kept": "1"}


TEXT = "# Consent\n\nYou compare *texts*. You may stop at any time."
ALL_CODES = CODES | {"no-consent": "N0", "withdrawn": "W1THDREW", "ended": "ENDED"}


@pytest.fixture
def asking(researcher):
    """A study that asks for consent."""
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
def test_nobody_starts_without_agreeing_to_the_text_of_now(asking, fields):
    browser = come(asking)
    assert browser.post(invitation_path(asking), fields).url == invitation_path(asking)
    assert browser.get(f"{invitation_path(asking)}vote/").url == invitation_path(asking)
    assert not Voter.objects.exists()


def test_who_refuses_stores_that_alone_and_may_change_their_mind(asking):
    browser = come(asking)
    page = page_of(browser, asking, "")
    assert [each for each in ("<h2>Consent</h2>", "<em>texts</em>", "I do not agree") if each not in page] == []
    assert not Participation.objects.exists()
    assert answer(browser, asking, "refuse").url == invitation_path(asking)
    page = page_of(browser, asking, "")
    assert "You did not agree" in page
    assert "cc=N0" in page
    part = Participation.objects.get()
    assert (part.outcome, part.code) == ("no-consent", "N0")
    assert not Lease.objects.exists()
    # On another device it is the same person, and may not vote without agreeing.
    assert come(asking).post(invitation_path(asking)).url == invitation_path(asking)
    assert answer(browser, asking, "agree").url.endswith("/vote/")
    part.refresh_from_db()
    assert (part.outcome, part.code, part.finished_at) == ("", "", None)
    assert pair_of(browser, asking) is not None
    assert [given["agreed"] for given in part.consents] == [False, True]


def test_what_was_agreed_to_and_when_is_in_the_record(asking, tmp_path):
    for person, said in (("anna-id", "agree"), ("ben-id", "refuse")):
        answer(come(asking, person), asking, said)
    export = checked_export(asking, tmp_path)
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


def test_a_new_text_is_asked_again(asking):
    browser = come(asking)
    answer(browser, asking, "agree")
    new = f"{TEXT} And we record your screen."
    set_study(asking, {"consent": new}, ())
    assert browser.get(f"{invitation_path(asking)}vote/").url == invitation_path(asking)
    assert "record your screen" in page_of(browser, asking, "")
    # The old page, still open somewhere, does not agree to the new text.
    assert answer(browser, asking, "agree").url == invitation_path(asking)
    assert answer(browser, asking, "agree", new).url.endswith("/vote/")
    assert pair_of(browser, asking) is not None
    # Back to the first text, which is kept already.
    set_study(asking, {"consent": TEXT}, ())
    assert [event.data["wording"] for event in consent.texts(asking.pk)] == [TEXT, new]


def test_who_refuses_after_all_on_another_device_votes_no_more(asking):
    browser = come(asking)
    answer(browser, asking, "agree")
    vote(browser, asking)
    pair = pair_of(browser, asking)
    phone = come(asking)
    answer(phone, asking, "refuse")
    wait_until_idle()
    assert Participation.objects.get().outcome == "withdrawn"
    assert Lease.objects.get(key=pair).ended_at is not None
    for page in (page_of(browser, asking, ""), page_of(phone, asking, "")):
        assert "You have withdrawn" in page
    assert browser.get(f"{invitation_path(asking)}vote/").url == invitation_path(asking)
    assert Vote.objects.count() == 1


def test_looking_does_not_tell_who_takes_part(asking):
    answer(come(asking, "anna"), asking, "agree")
    pages = {re.sub(r'value="[^"]+"', "", page_of(come(asking, person), asking, "")) for person in ("anna", "ben")}
    assert len(pages) == 1


def withdraw(browser, campaign, **fields) -> str:
    path = reverse("voting:withdraw", args=[campaign.invitations.get().token])
    assert "cannot be taken back" in browser.get(path).content.decode()
    page = browser.post(path, fields).content.decode()
    wait_until_idle()
    return page


def test_who_withdraws_is_asked_no_more_and_their_votes_stay(asking):
    browser = come(asking)
    answer(browser, asking, "agree")
    vote(browser, asking)
    pair = pair_of(browser, asking)
    page = withdraw(browser, asking)
    assert "You have withdrawn" in page
    assert "cc=W1THDREW" in page
    assert Participation.objects.get().outcome == "withdrawn"
    assert Lease.objects.get(key=pair).ended_at is not None
    assert Vote.objects.count() == 1
    assert "You have withdrawn" in page_of(browser, asking, "")
    assert "You have withdrawn" in answer(come(asking), asking, "agree").content.decode()
    assert browser.get(f"{invitation_path(asking)}vote/").url == invitation_path(asking)
    # An answer that was on its way comes too late: access ended first.
    assert browser.post(f"{invitation_path(asking)}vote/", {"choice": "first", "lease": str(pair)}).status_code == 302
    assert Vote.objects.count() == 1
    assert_record_is_whole(asking)
    # The pair is asked of somebody else.
    other = come(asking, "ben")
    answer(other, asking, "agree")
    assert pair_of(other, asking) is not None


def test_without_a_platform_there_is_nothing_to_withdraw_from(client, campaign):
    client.post(invitation_path(campaign))
    token = campaign.invitations.get().token
    assert "Withdraw" not in client.get(f"{invitation_path(campaign)}vote/").content.decode()
    client.post(reverse("voting:withdraw", args=[token]))
    assert Voter.objects.get().removed_at is None
