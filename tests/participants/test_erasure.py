"""Forgetting people: nothing that they or others have written about them is found afterwards, wherever one looks; the
record stays whole, and those beside them stay who they are.
"""

from functools import partial
from pathlib import Path

import pytest
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.urls import reverse

from prefmh_web.campaigns.models import Campaign, Event, Lease, Vote, Voter, number_of
from prefmh_web.participants import erasure, limits, payments
from prefmh_web.participants.erasure import Scope
from prefmh_web.participants.models import AttentionCheck, Participant, Participation
from prefmh_web.tasks import settle_parts
from prefmh_web.voting import admission
from tests.security.test_limits import all_at_once
from tests.security.world import browser_of
from tests.support.campaigns import invitation_path, panel_campaign, sit_down
from tests.support.people import (
    KINDS,
    bytes_of_all,
    come,
    found_in,
    pair_of,
    payments_of,
    person_in,
    prolific,
    study_of,
    values_of,
    version_now,
    vote,
    write_about,
)
from tests.support.process import wait_until_idle
from tests.support.records import assert_record_is_whole, checked_export, export_to, happened, table


@pytest.fixture
def other_owner(django_user_model):
    return django_user_model.objects.create_user("otto")


def test_nothing_of_them_is_found_anywhere_and_others_stay(researcher, other_owner, tmp_path):
    study, second, foreign = study_of(researcher), study_of(researcher), study_of(other_owner)
    anna, ben, abroad = values_of("anna"), values_of("ben"), values_of("anna") | {"id": "zzidabroadzz"}
    abroad = {kind: value.replace("of", "abroad") for kind, value in abroad.items()}
    for where, who in ((study, anna), (study, ben), (foreign, abroad)):
        come(where, who)
        write_about(where, who)
    come(second, anna)
    write_about(second, anna)
    everything = (study, second, foreign)
    Vote.objects.update(layout="stacked", is_translated=True)
    # The control: what is looked for is found as long as it is there.
    before = bytes_of_all(*everything)
    assert all(found_in(before, who) == set(KINDS) for who in (anna, ben, abroad))
    votes, leases = Vote.objects.count(), Lease.objects.count()
    answered = AttentionCheck.objects.exclude(chosen_side="").count()
    person = person_in(study, anna)
    assert erasure.erase(person, Scope.PARTICIPANT, is_forced=False)
    after = bytes_of_all(*everything)
    assert found_in(after, anna) == set()
    assert found_in(after, ben) == found_in(after, abroad) == set(KINDS)
    # What stays, under the number.
    assert (Vote.objects.count(), Lease.objects.count()) == (votes, leases)
    assert AttentionCheck.objects.exclude(chosen_side="").count() == answered
    assert [given["agreed"] for given in Participation.objects.get(voter=person).consents] == [True]
    assert_record_is_whole(study)
    path = checked_export(study, tmp_path)
    number = str(number_of(person))
    for name in ("votes.csv", "leases.csv", "checks.csv", "events.csv", "voters.csv"):
        assert number in {row["voter"] for row in table(path, name)}
    pages = {(row["voter"] == number, row["layout"], row["translated"]) for row in table(path, "votes.csv")}
    assert pages == {(True, "", ""), (False, "stacked", "1")}
    reported = {row["voter"] for row in table(path, "events.csv") if row["kind"] == "reported"}
    assert number not in reported
    said = {"people": 1, "removed": "answers reports reasons parameters pages ids sessions"}
    assert happened(path, "erased") == [("erased", said)]


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL overwrites at its next vacuum")
def test_nothing_of_them_can_be_read_in_the_files_of_the_database(researcher):
    study, anna = study_of(researcher), values_of("anna")
    come(study, anna)
    write_about(study, anna)
    assert found_in(_files(), anna) >= {"id", "session", "answer"}
    # What the log had is in the database by now, and would stay in its free places.
    erasure.empty()
    erasure.erase(person_in(study, anna), Scope.PARTICIPANT, is_forced=False)
    assert found_in(_files(), anna) == set()


def _files() -> bytes:
    name = Path(connection.settings_dict["NAME"])
    return b"".join(each.read_bytes() for each in name.parent.glob(f"{name.name}*"))


def test_of_one_participation_the_id_stays_where_it_is_needed(researcher):
    study, second = study_of(researcher), study_of(researcher)
    anna = values_of("anna")
    come(study, anna)
    write_about(study, anna)
    come(second, {kind: value if kind == "id" else f"second{value}" for kind, value in anna.items()})
    assert erasure.erase(person_in(study, anna), Scope.PARTICIPATION, is_forced=False)
    content = bytes_of_all(study, second)
    assert found_in(content, anna) == {"id", "session", "parameter", "answer", "report"}
    assert b"secondzzsessionofannazz" in content
    # Of the first one only the second's own strings are left.
    assert content.count(anna["answer"].encode()) == content.count(b"second" + anna["answer"].encode())
    assert Participant.objects.get().participations.get().campaign == second
    assert person_in(second, anna).removed_at is None


def test_what_is_on_its_way_is_refused_and_who_comes_back_with_the_same_id_is_somebody_new(researcher):
    study, anna = study_of(researcher), values_of("anna")
    browser, path = come(study, anna, votes=0), invitation_path(study)
    first, key, votes = person_in(study, anna), pair_of(browser, study), Vote.objects.count()
    erasure.erase(first, Scope.PARTICIPANT, is_forced=True)
    wait_until_idle()
    assert browser.post(f"{path}vote/", {"choice": "first", "lease": str(key)}).url == path
    assert browser.post(f"{path}report/{key}/", {"reason": "other", "words": anna["report"]}).url == path
    assert Vote.objects.count() == votes
    assert not Event.objects.filter(kind="reported").exists()
    # The pair goes to somebody else.
    assert Lease.objects.get(pk=key).ending == Lease.Ending.SKIPPED
    assert_record_is_whole(study)
    # Neither their browser nor their pair knows them, and another browser with the same id is a stranger's.
    assert browser.get(f"{path}vote/").url == path
    assert "no PROLIFIC_PID" in browser.get(path).content.decode()
    assert not Lease.objects.filter(voter=first, ended_at=None).exists()
    come(study, anna)
    assert person_in(study, anna).pk != first.pk
    assert Participation.objects.filter(campaign=study).count() == 2


@pytest.mark.django_db(transaction=True)
def test_a_vote_or_a_report_in_the_same_moment_leaves_nothing_behind(researcher):
    study = study_of(researcher, protocol={})
    for turn in range(6):
        said = values_of(f"anna{turn}")
        browser = Client()
        browser.get(invitation_path(study), prolific(said["id"], said["session"]) | {"city": said["parameter"]})
        browser.post(invitation_path(study), {"consent": "agree", "version": version_now()})
        person, key, path = person_in(study, said), pair_of(browser, study), invitation_path(study)
        cast = partial(browser.post, f"{path}vote/", {"choice": "first", "lease": str(key)})
        report = partial(browser.post, f"{path}report/{key}/", {"reason": "other", "words": said["report"]})
        all_at_once([cast, report, partial(erasure.erase, person, Scope.PARTICIPANT, is_forced=True)])
        assert Voter.objects.get(pk=person.pk).erased_at
        wait_until_idle()
        assert found_in(bytes_of_all(study), said) == set()
        assert Vote.objects.filter(voter=person).count() <= 1
        assert not Lease.objects.filter(voter=person, ended_at=None).exists()
    assert_record_is_whole(study)


def test_it_waits_until_they_are_paid_and_the_sweep_does_it_then(researcher):
    study, anna = study_of(researcher, votes_per_person=1, protocol={}), values_of("anna")
    browser = Client()
    browser.get(invitation_path(study), prolific(anna["id"]))
    browser.post(invitation_path(study), {"consent": "agree", "version": version_now()})
    vote(browser, study)
    settle_parts()
    person, owner = person_in(study, anna), browser_of(researcher)
    path = reverse("console:erase", args=[study.pk, number_of(person)])
    sure = {"scope": "participant", "is_sure": "on"}
    assert "are deleted as soon as you say that they are paid" in owner.post(path, sure, follow=True).content.decode()
    # Whatever happens meanwhile: they are still to be paid.
    settle_parts()
    assert [row["external_id"] for row in payments_of(owner, study)] == [anna["id"]]
    assert payments.owed(study, [person.pk]) == {person.pk}
    page = owner.get(reverse("console:participants", args=[study.pk])).content.decode()
    assert "1 person wants their data deleted" in page
    owner.post(reverse("console:mark-person-paid", args=[study.pk, number_of(person)]))
    settle_parts()
    assert payments_of(owner, study) == []
    assert found_in(bytes_of_all(study), anna) == set()
    person.refresh_from_db()
    assert person.erased_at is not None
    settle_parts()
    assert study.events.filter(kind="erased").count() == 1


def test_forced_it_is_done_at_once_and_cannot_be_paid_any_more(researcher):
    study, anna = study_of(researcher, quota=1), values_of("anna")
    come(study, anna)
    person, owner = person_in(study, anna), browser_of(researcher)
    path = reverse("console:erase", args=[study.pk, number_of(person)])
    page = owner.get(reverse("console:person", args=[study.pk, number_of(person)])).content.decode()
    assert "What goes" in page
    assert "The pay cannot be settled afterwards" in page
    # Without the tick that says that it was read, nothing happens.
    assert "This field is required" in owner.post(path, {"scope": "participant"}).content.decode()
    assert not Voter.objects.filter(erasure_requested_at__isnull=False).exists()
    told = owner.post(path, {"scope": "participant", "is_forced": "on", "is_sure": "on"}, follow=True)
    assert f"Nothing says any more who person {number_of(person)} is." in told.content.decode()
    assert payments_of(owner, study) == []
    # A part that nobody can be paid for gives its place back.
    assert limits.held(study, study.config.study).count() == 0
    page = owner.get(reverse("console:person", args=[study.pk, number_of(person)])).content.decode()
    assert "Personal data" in page
    assert "Delete this person" not in page
    assert (
        "no bonus can be paid"
        in owner.post(
            reverse("console:bonus", args=[study.pk, number_of(person)]), {"bonus": "1"}, follow=True
        ).content.decode()
    )


@pytest.mark.parametrize(
    ("wish", "told", "is_gone"),
    [
        ({}, "You have withdrawn", False),
        ({"erase": "later"}, "as soon as the researcher has noted that you are paid", False),
        ({"erase": "now"}, "is deleted. Your votes stay under a number", True),
    ],
)
def test_who_withdraws_chooses_what_becomes_of_their_data(researcher, wish, told, is_gone):
    study, second, anna = study_of(researcher), study_of(researcher), values_of("anna")
    browser = come(study, anna)
    come(second, anna)
    path = f"{invitation_path(study)}withdraw/"
    assert "Delete it at once. Then I cannot be paid." in browser.get(path).content.decode()
    page = browser.post(path, wish | {"everywhere": "on"}).content.decode()
    assert told in page
    # Without pay there is no code, but the place to give back.
    assert ("W1THDREW" not in page) is ("return your submission" in page) is is_gone
    wait_until_idle()
    assert (found_in(bytes_of_all(study, second), anna) == set()) is is_gone
    assert person_removed(second) is bool(wish)
    payments.mark_paid(study)
    payments.mark_paid(second)
    settle_parts()
    assert (found_in(bytes_of_all(study, second), anna) == set()) is bool(wish)


@pytest.mark.parametrize("first", [{}, {"erase": "later"}])
def test_whoever_has_withdrawn_and_goes_back_to_choose_deletion_is_forgotten(researcher, first):
    study, anna = study_of(researcher), values_of("anna")
    browser, path = come(study, anna), f"{invitation_path(study)}withdraw/"
    browser.post(path, first)
    assert found_in(bytes_of_all(study), anna)
    assert "is deleted. Your votes stay under a number" in browser.post(path, {"erase": "now"}).content.decode()
    assert found_in(bytes_of_all(study), anna) == set()


def person_removed(study) -> bool:
    return Voter.objects.get(campaign=study).removed_at is not None


def test_other_sessions_and_what_else_a_session_holds_stay(researcher):
    study, second, anna, ben = study_of(researcher), study_of(researcher), values_of("anna"), values_of("ben")
    browser, other = come(study, anna), come(study, ben)
    # The same browser in another campaign, as somebody else.
    browser.get(invitation_path(second), prolific("zzthirdzz"))
    browser.post(invitation_path(second), {"consent": "agree", "version": version_now()})
    number = person_in(study, anna).pk
    erasure.erase(person_in(study, anna), Scope.PARTICIPANT, is_forced=True)
    held = [session.get_decoded() for session in Session.objects.all()]
    assert all(number not in session.values() for session in held)
    assert admission.voter_in(browser.session, second.pk) is not None
    assert admission.voter_in(other.session, study.pk) is not None


def test_what_fails_halfway_is_undone_whole_and_done_again(researcher, monkeypatch):
    study, anna = study_of(researcher), values_of("anna")
    come(study, anna)
    person = person_in(study, anna)

    def fail(*_) -> int:
        raise RuntimeError("the process dies here")

    monkeypatch.setattr(admission, "forget", fail)
    with pytest.raises(RuntimeError):
        erasure.erase(person, Scope.PARTICIPANT, is_forced=True)
    assert found_in(bytes_of_all(study), anna) >= {"id", "answer", "report"}
    assert not Voter.objects.filter(erasure_requested_at__isnull=False).exists()
    monkeypatch.undo()
    assert erasure.erase(person, Scope.PARTICIPANT, is_forced=True)
    assert found_in(bytes_of_all(study), anna) == set()


def test_a_whole_campaign_goes_through_the_same_door(researcher, tmp_path):
    study, names = study_of(researcher), [values_of("anna"), values_of("ben")]
    for said in names:
        come(study, said)
        write_about(study, said)
    before = limits.spent(study)
    Campaign.objects.filter(pk=study.pk).update(status=Campaign.Status.FINISHED)
    assert erasure.forget(study) == (2, 0)
    assert all(found_in(bytes_of_all(study), said) == set() for said in names)
    assert limits.spent(study) == before
    said = {"people": 2, "removed": "answers reports reasons parameters ids sessions"}
    assert happened(export_to(study, tmp_path), "erased") == [("erased", said)]
    assert erasure.forget(study) == (0, 0)


def test_of_a_panelist_the_name_goes_and_they_stay_the_panelist(researcher):
    panel = panel_campaign(researcher, names=("zzAdazz", "zzGracezz", "zzAlanzz"))
    ada = sit_down(panel, 1)
    content = bytes_of_all(panel)
    assert b"zzAdazz" in content
    owner = browser_of(researcher)
    page = owner.get(reverse("console:person", args=[panel.pk, number_of(ada)])).content.decode()
    assert "The name of panelist 1 is deleted" in page
    owner.post(reverse("console:erase", args=[panel.pk, number_of(ada)]), {"is_sure": "on"})
    content = bytes_of_all(panel)
    assert b"zzAdazz" not in content
    panel.refresh_from_db()
    distribution = panel.config.target_distribution
    assert panel.config.panelists == ("1", "zzGracezz", "zzAlanzz")
    assert panel.config.target_distribution == distribution
    # Nobody leaves a panel: who opens the link is still the same person.
    assert sit_down(panel, 1) == ada
    assert sit_down(panel, 1).removed_at is None


def test_without_a_platform_reports_go(researcher, campaign):
    browser = Client()
    browser.post(invitation_path(campaign))
    key = pair_of(browser, campaign)
    browser.post(f"{invitation_path(campaign)}report/{key}/", {"reason": "other", "words": "zzwordszz"})
    person = Voter.objects.get()
    assert b"zzwordszz" in bytes_of_all(campaign)
    browser_of(researcher).post(reverse("console:erase", args=[campaign.pk, number_of(person)]), {"is_sure": "on"})
    assert b"zzwordszz" not in bytes_of_all(campaign)
    browser.post(invitation_path(campaign))
    assert Voter.objects.count() == 2
