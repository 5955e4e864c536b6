"""The end of a part: after so many votes, or with the campaign; what is shown, settled and paid.

Waiting costs the participant nothing: after the declared time comes the paid end.
"""

import json
import zipfile
from datetime import timedelta
from functools import partial

import pytest
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import leases, locks
from prefmh_web.campaigns.lifecycle import access, changes
from prefmh_web.campaigns.models import Campaign, EndReason, Event, Lease, NotPossible, Vote, Voter, number_of
from prefmh_web.participants import completion, limits
from prefmh_web.participants.models import Participant, Participation
from prefmh_web.tasks import settle_parts
from prefmh_web.voting.responses import response_in
from prefmh_web.voting.screens import screen_after
from tests.security.test_limits import all_at_once
from tests.security.world import browser_of
from tests.support.campaigns import invitation_path, make_config, set_study
from tests.support.people import (
    CODES,
    RETURN_ADDRESS,
    arrive,
    page_of,
    pair_of,
    payments_of,
    prolific,
    recruited_campaign,
    screen_of,
    vote,
)
from tests.support.process import wait_until_idle
from tests.support.records import (
    assert_record_is_whole,
    assert_replay_passes,
    checked_export,
    everything_in,
    export_to,
    happened,
    table,
)

FEW = {"judges": [{"question": "Which is darker?", "votes": 1}], "chains": 1, "steps": 2}


def finish(campaign) -> None:
    Campaign.objects.filter(pk=campaign.pk).update(status=Campaign.Status.FINISHED)


def test_a_pair_on_the_screen_may_still_be_answered(researcher):
    """The vote on a second device reaches the number while the first shows a pair, which nobody takes away."""
    study = recruited_campaign(researcher, votes_per_person=1)
    browser = arrive(study, prolific("anna"))
    pair = pair_of(browser, study)
    # As if a vote on another device had reached the number meanwhile.
    Voter.objects.update(votes_cast=1)
    assert pair_of(browser, study) == pair
    vote(browser, study)
    assert Vote.objects.count() == 1
    assert "Your part is complete" in page_of(browser, study, "vote/")


def test_a_page_as_old_as_its_socket_gets_no_pair_beyond_the_number(researcher):
    """The last votes were given on another device, between the look at the votes and the lease."""
    study = recruited_campaign(researcher, votes_per_person=2)
    browser = arrive(study, prolific("anna"))
    # What a second page read when it was opened.
    old, page = (locks.person(Voter.objects.get().pk) for _ in range(2))
    vote(browser, study, times=2)
    assert screen_after(response_in({"choice": "continue"}), page).status == "done"
    assert leases.take(old, votes_per_person=2) is None
    assert not Lease.objects.filter(ended_at=None).exists()
    # The negative control: without the number there is a pair.
    assert leases.take(old) is not None


def test_outcome_and_code_are_settled_once(researcher):
    study = recruited_campaign(researcher, votes_per_person=1)
    browser = arrive(study, prolific("anna"))
    vote(browser, study)
    page_of(browser, study, "vote/")
    before = Participation.objects.values().get()
    set_study(study, {"codes": CODES | {"completed": "OTHER"}}, ())
    phone = arrive(study, prolific("anna"))
    assert "C0MPLETE" in page_of(phone, study, "vote/")
    assert "OTHER" not in page_of(browser, study, "vote/")
    assert Participation.objects.values().get() == before
    # Who has not seen theirs gets the new one.
    other = arrive(study, prolific("ben"))
    vote(other, study)
    assert "OTHER" in page_of(other, study, "vote/")


@pytest.mark.parametrize(("votes_per_person", "outcome"), [(10, "nothing-left"), (None, "completed")])
def test_when_the_campaign_is_finished_the_part_of_everybody_ends(researcher, votes_per_person, outcome):
    study = recruited_campaign(researcher, votes_per_person=votes_per_person, config=make_config(**FEW))
    browser = arrive(study, prolific("anna"))
    vote(browser, study, times=2)
    study.refresh_from_db()
    assert study.status == Campaign.Status.FINISHED
    assert CODES[outcome] in page_of(browser, study, "vote/")
    assert Participation.objects.get().outcome == outcome


@pytest.mark.parametrize("protocol", [{}, {"wait_minutes": 0}])
def test_whoever_has_finished_sees_the_code_again_and_no_pair_after_an_extension(researcher, protocol):
    study = recruited_campaign(researcher, config=make_config(**FEW), protocol=protocol)
    browser = arrive(study, prolific("anna"))
    while pair_of(browser, study):
        vote(browser, study)
    assert CODES["completed"] in page_of(browser, study, "vote/")
    changes.extend(study, 20)
    for go_on in (lambda: None, lambda: lifecycle.resume(study)):
        go_on()
        wait_until_idle()
        page = page_of(browser, study, "vote/")
        assert CODES["completed"] in page
        assert "Waiting for the next pair" not in page
        assert not Lease.objects.filter(ended_at=None).exists()
    # Somebody new goes on with it.
    assert pair_of(arrive(study, prolific("ben")), study)


def test_parts_of_people_who_have_gone_are_settled_by_the_sweep(researcher):
    study = recruited_campaign(researcher, votes_per_person=1)
    gone, going_on = arrive(study, prolific("anna")), arrive(study, prolific("ben"))
    removed = arrive(study, prolific("cleo"))
    arrive(study, prolific("dora"))
    vote(gone, study)
    vote(removed, study)
    pair_of(going_on, study)
    for voter in Voter.objects.order_by("pk")[2:]:
        access.remove(voter)
    settle_parts()
    found = dict(Participation.objects.values_list("participant__external_id", "outcome"))
    # Cleo had given all her votes before she was removed; Dora had not.
    assert found == {"anna": "completed", "ben": "", "cleo": "completed", "dora": "ended"}


def test_nobody_is_paid_for_nothing(researcher):
    """Neither who left before their first vote, nor who comes when the campaign is over."""
    study = recruited_campaign(researcher)
    arrive(study, prolific("anna"))
    finish(study)
    settle_parts()
    assert Participation.objects.get().outcome == ""
    late, path = Client(), invitation_path(study)
    late.get(path, prolific("ben"))
    # Said before anything is asked, to who looks and to who presses.
    for page in (late.get(path), late.post(path)):
        assert "This study is finished" in page.content.decode()
        assert "You cannot vote here" not in page.content.decode()
    assert Participation.objects.count() == 1


def test_a_code_that_was_not_there_yet_is_shown_when_it_is(researcher):
    study = recruited_campaign(researcher, votes_per_person=1, codes={})
    browser = arrive(study, prolific("anna"))
    vote(browser, study)
    settle_parts()
    assert Participation.objects.get().outcome == "completed"
    assert "Completion code" not in page_of(browser, study, "vote/")
    set_study(study, {"codes": CODES}, ())
    assert CODES["completed"] in page_of(browser, study, "vote/")
    set_study(study, {"codes": {"completed": "OTHER"}}, ())
    assert CODES["completed"] in page_of(browser, study, "vote/")


def test_without_a_platform_everybody_sees_the_same_code(researcher):
    study = recruited_campaign(researcher, "anybody", votes_per_person=1, return_address="")
    browser = Client()
    browser.post(invitation_path(study))
    vote(browser, study)
    page = page_of(browser, study, "vote/")
    assert CODES["completed"] in page
    assert "enter it there" in page
    assert not Participation.objects.exists()


def test_payments_tell_the_owner_who_gave_what(researcher):
    study = recruited_campaign(researcher, votes_per_person=2)
    anna, ben = arrive(study, prolific("anna")), arrive(study, prolific("=ben()"))
    vote(anna, study, times=2)
    vote(ben, study)
    arrive(study, prolific("anna", session="s9"))
    settle_parts()
    # She comes once more, to read her code.
    arrive(study, prolific("anna", session="s10"))
    first, second = payments_of(browser_of(researcher), study)
    names = ("external_id", "study_id", "session_id", "all_session_ids", "outcome", "code", "paid", "votes")
    assert {name: first[name] for name in names} == {
        "external_id": "anna",
        "study_id": "study",
        "session_id": "s9",
        "all_session_ids": "s1 s9 s10",
        "outcome": "completed",
        "code": "C0MPLETE",
        "paid": "in full",
        "votes": "2",
    }
    assert first["arrived_at"] < first["finished_at"]
    # No spreadsheet runs an id as a formula.
    assert (second["external_id"], second["outcome"], second["votes"]) == ("'=ben()", "", "1")
    assert second["finished_at"] == ""


def test_ids_can_be_deleted_once_the_campaign_is_finished(researcher):
    study, other = (recruited_campaign(researcher, votes_per_person=1) for _ in range(2))
    vote(arrive(study, prolific("anna")), study)
    arrive(study, prolific("ben"))
    arrive(other, prolific("ben"))
    owner, path = browser_of(researcher), reverse("console:forget-participants", args=[study.pk])
    assert "once the campaign is finished" in owner.post(path, follow=True).content.decode()
    assert Participation.objects.count() == 3
    finish(study)
    # Anna is still to be paid; Ben, who gave no vote, is not.
    told = owner.post(path, follow=True).content.decode()
    assert "The data of 1 participant are deleted" in told
    assert "1 more wait until you say that they are paid" in told
    assert [row["external_id"] for row in payments_of(owner, study)] == ["anna"]
    assert (
        "1 more person is noted as paid"
        in owner.post(reverse("console:mark-paid", args=[study.pk]), follow=True).content.decode()
    )
    settle_parts()
    # Ben takes part in another campaign still.
    assert list(Participant.objects.values_list("external_id", flat=True)) == ["ben"]
    assert Vote.objects.count() == 1
    assert payments_of(owner, study) == []


@pytest.mark.parametrize(
    ("template", "known", "address"),
    [
        (RETURN_ADDRESS, {"code": "A B&c"}, "https://app.prolific.com/submissions/complete?cc=A%20B%26c"),
        (RETURN_ADDRESS, {"code": ""}, ""),
        ("https://sona.example/?survey_code={session_id}", {"session_id": "7"}, "https://sona.example/?survey_code=7"),
        ("https://x.example/", {}, "https://x.example/"),
        ("", {"code": "1"}, ""),
        ("https://x.example/{a}", {}, ""),
    ],
)
def test_the_return_address_is_filled_in_safely_or_not_shown(template, known, address):
    assert completion.return_address(template, known) == address


ONE_CHAIN = {"config": make_config(judges=[{"question": "Which is darker?", "votes": 1}], chains=1, steps=30)}
SHORT = {"wait_minutes": 5}


def waiting_person(study, votes: int = 3):
    """Return the browsers of somebody who waits, and of somebody who holds the only pair."""
    anna, ben = arrive(study, prolific("anna")), arrive(study, prolific("ben"))
    vote(anna, study, times=votes)
    assert pair_of(ben, study)
    return anna, ben


def part_of(person: str) -> Participation:
    return Participation.objects.get(participant__external_id=person)


def let_wait(person: str, minutes: int) -> None:
    since = timezone.now() - timedelta(minutes=minutes)
    assert Participation.objects.filter(participant__external_id=person).update(waits_since=since)


def test_after_the_declared_wait_the_part_ends_paid_and_nobody_is_asked_on(researcher):
    study = recruited_campaign(researcher, protocol=SHORT, **ONE_CHAIN)
    anna, ben = waiting_person(study)
    assert screen_of(anna, study).status == "waiting"
    let_wait("anna", 4)
    assert screen_of(anna, study).status == "waiting"
    let_wait("anna", 6)
    page = page_of(anna, study, "vote/")
    assert "There is nothing left to compare" in page
    assert CODES["nothing-left"] in page
    vote(ben, study)
    assert pair_of(anna, study) is None
    assert CODES["nothing-left"] in page_of(anna, study, "vote/")
    [row, _] = payments_of(browser_of(study.owner), study)
    assert (row["outcome"], row["paid"], row["votes"]) == ("nothing-left", "in full", "3")


def test_the_sweep_ends_the_part_of_somebody_whose_page_is_gone_and_of_nobody_with_a_pair(researcher):
    study = recruited_campaign(researcher, protocol=SHORT, **ONE_CHAIN)
    anna, ben = waiting_person(study)
    screen_of(anna, study)
    settle_parts()
    assert part_of("anna").outcome == ""
    let_wait("anna", 6)
    # Who has a pair on the screen has it, whatever was noted before.
    let_wait("ben", 6)
    settle_parts()
    assert (part_of("anna").outcome, part_of("anna").code) == ("nothing-left", CODES["nothing-left"])
    assert part_of("ben").outcome == ""
    vote(ben, study, times=2)
    assert part_of("ben").waits_since is None


def test_who_has_a_pair_again_begins_to_wait_anew(researcher):
    study = recruited_campaign(researcher, protocol=SHORT, **ONE_CHAIN)
    anna, ben = waiting_person(study)
    screen_of(anna, study)
    let_wait("anna", 4)
    vote(ben, study)
    assert pair_of(anna, study)
    assert part_of("anna").waits_since is None


def test_where_no_wait_is_declared_nobody_is_sent_away(researcher):
    study = recruited_campaign(researcher, protocol={"wait_minutes": 0}, **ONE_CHAIN)
    anna, _ = waiting_person(study, votes=1)
    assert screen_of(anna, study).status == "waiting"
    let_wait("anna", 1000)
    settle_parts()
    assert screen_of(anna, study).status == "waiting"
    assert part_of("anna").outcome == ""


@pytest.mark.parametrize(
    ("recruiter", "protocol", "said"),
    [
        ("prolific", {}, "You wait 5 minutes at most"),
        (
            "prolific",
            {"wait_minutes": 20, "wait_is_paid": True},
            "20 minutes at most; then your part ends here. The time",
        ),
        ("prolific", {"wait_minutes": 0}, ""),
        ("open", {}, ""),
    ],
)
def test_who_waits_reads_that_others_are_needed_and_how_long_at_most(researcher, recruiter, protocol, said):
    study = recruited_campaign(researcher, recruiter, protocol=protocol, **ONE_CHAIN)
    anna, ben = Client(), Client()
    for browser, name in ((anna, "anna"), (ben, "ben")):
        browser.get(invitation_path(study), prolific(name) if recruiter == "prolific" else {})
        browser.post(invitation_path(study))
    assert pair_of(ben, study)
    page = page_of(anna, study, "vote/")
    assert "needs votes of other people first" in page
    assert said in page
    assert ("at most; then" in page) == bool(said)


# A part that is ended by hand: at once, once, with a reason, and without a trace in what the chain has counted.


WORDS = "=told me SECRET things"
GROUNDS = EndReason.CARELESS, WORDS
WITH_CODE = CODES | {"ended": "ENDED1"}


def study_of(researcher, **options) -> Campaign:
    one_judge = make_config(judges=[{"question": "Which is darker?", "votes": 1}], chains=1, steps=8)
    return recruited_campaign(researcher, codes=WITH_CODE, config=one_judge, **options)


def end(study, *, is_paid: bool = False) -> bool | None:
    """End the first one's part; return whether that is paid."""
    paid = completion.exclude(Voter.objects.order_by("pk")[0], study.owner, *GROUNDS, is_paid=is_paid)
    wait_until_idle()
    return paid


def ended() -> QuerySet[Event]:
    return Event.objects.filter(kind="participation-ended")


def test_in_mid_pair_the_question_goes_back_and_counted_votes_stay(researcher, tmp_path):
    study = study_of(researcher)
    anna = arrive(study, prolific("anna"))
    vote(anna, study, times=2)
    key = pair_of(anna, study)
    counted = list(Vote.objects.values_list("key", "number", "chosen_side"))
    end(study)
    left = Lease.objects.get(key=key)
    assert left.ended_at is not None
    # What is on the screen takes no vote any more, and the page says why.
    answer = anna.post(f"{invitation_path(study)}vote/", {"choice": "first", "lease": str(key)}, follow=True)
    assert "The researcher has ended your part. Your votes are kept." in answer.content.decode()
    assert list(Vote.objects.values_list("key", "number", "chosen_side")) == counted
    # The same question of the same judge, to somebody else.
    ben = arrive(study, prolific("ben"))
    asked = Lease.objects.get(key=pair_of(ben, study))
    assert (asked.comparison_id, asked.judge_id) == (left.comparison_id, left.judge_id)
    while pair_of(ben, study):
        vote(ben, study)
    study.refresh_from_db()
    assert study.status == Campaign.Status.FINISHED
    assert_record_is_whole(study)
    export = checked_export(study, tmp_path)
    [started, event, _told] = table(export, "events.csv")
    assert (started["voter"], started["kind"]) == ("", "started")
    assert (event["voter"], event["kind"]) == (str(number_of(left.voter)), "participation-ended")
    assert json.loads(event["data"]) == {"reason": "careless", "paid": False}
    # Neither who did it nor in which words, nor whose part it was.
    content = everything_in(export)
    assert "SECRET" not in content
    assert "anna" not in content
    assert researcher.username not in event.values()


@pytest.mark.parametrize(("is_paid", "paid", "code"), [(True, "in full", "ENDED1"), (False, "not", "")])
def test_the_researcher_says_whether_they_are_paid(researcher, is_paid, paid, code):
    study = study_of(researcher, quota=1)
    anna = arrive(study, prolific("anna"))
    vote(anna, study)
    end(study, is_paid=is_paid)
    settle_parts()
    part = Participation.objects.get()
    assert (part.outcome, part.code) == ("ended", code)
    [row] = payments_of(browser_of(researcher), study)
    assert (row["outcome"], row["paid"], row["code"], row["bonus"]) == ("ended", paid, code, "")
    # No spreadsheet runs what somebody has written.
    assert row["reason"] == f"'{WORDS}"
    page = page_of(anna, study, "")
    assert ("ENDED1" in page) is is_paid
    assert ("return your submission" in page) is not is_paid
    # A part without pay gives its place back.
    assert limits.held(study, study.config.study).count() == is_paid


def test_a_part_that_had_ended_keeps_its_outcome_code_and_pay(researcher):
    study = study_of(researcher, votes_per_person=1)
    anna = arrive(study, prolific("anna"))
    vote(anna, study)
    # Settled by nobody yet: the page was closed before it came.
    assert end(study) is None
    part = Participation.objects.get()
    assert (part.outcome, part.code, part.pay) == ("completed", "C0MPLETE", "")
    assert "Your part is complete" in page_of(anna, study, "")
    [row] = payments_of(browser_of(researcher), study)
    assert row["paid"] == "in full"


def test_of_two_at_once_one_ends_it(researcher, django_user_model):
    study = study_of(researcher)
    vote(arrive(study, prolific("anna")), study)
    managers = [django_user_model.objects.create_user(name) for name in ("mona", "otto")]
    voter, told = Voter.objects.get(), []

    def press(manager) -> None:
        try:
            completion.exclude(voter, manager, *GROUNDS, is_paid=manager.username == "mona")
        except NotPossible as reason:
            told.append(str(reason))

    all_at_once([partial(press, manager) for manager in managers])
    event = ended().get()
    assert told == [f"The part of person {voter.pk} has been ended already by {event.by}."]
    assert Participation.objects.get().pay == ("full" if event.by.username == "mona" else "nothing")


def test_no_door_writes_a_second_end_of_a_part(researcher):
    study = study_of(researcher)
    vote(arrive(study, prolific("anna")), study)
    end(study)
    event = ended().get()
    event.pk = None
    with pytest.raises(IntegrityError), transaction.atomic():
        event.save()


def test_whoever_has_left_cannot_be_ended(researcher):
    study = study_of(researcher)
    anna = arrive(study, prolific("anna"))
    anna.post(f"{invitation_path(study)}withdraw/")
    with pytest.raises(NotPossible, match="has ended already"):
        end(study)
    assert not ended().exists()
    assert Participation.objects.get().outcome == "withdrawn"


def test_without_a_platform_it_is_an_event_of_the_record_too(researcher, campaign, tmp_path):
    browser = Client()
    browser.post(invitation_path(campaign))
    vote(browser, campaign)
    assert [row["kind"] for row in table(export_to(campaign, tmp_path), "events.csv")] == ["started"]
    key = pair_of(browser, campaign)
    assert end(campaign, is_paid=True) is None
    assert browser.post(f"{invitation_path(campaign)}vote/", {"choice": "first", "lease": str(key)}).status_code == 302
    assert "removed you from this campaign" in page_of(browser, campaign, "")
    assert Vote.objects.count() == 1
    export = export_to(campaign, tmp_path)
    [_, (kind, said)] = happened(export)
    assert (kind, said["paid"]) == ("participation-ended", None)
    with zipfile.ZipFile(export) as archive:
        assert "voters.csv" not in archive.namelist()
    assert_replay_passes(export)


def test_closing_a_link_with_all_who_came_by_it_is_an_event_for_each(researcher, campaign):
    for _ in range(3):
        Client().post(invitation_path(campaign))
    end(campaign)
    link = campaign.invitations.get()
    browser_of(researcher).post(f"{campaign.get_absolute_url()}invitations/{link.pk}/revoke/", {"withdraw": "on"})
    assert sorted(ended().values_list("data__reason", flat=True)) == ["careless", "link", "link"]
    assert not campaign.voters.filter(removed_at=None).exists()
    link.refresh_from_db()
    assert link.revoked_at
