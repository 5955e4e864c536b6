"""A part that is ended by hand: at once, once, with a reason, and without a trace in what the chain has counted.

One link for everyone, and the whole way: each browser is a participant without an id.
"""

import json
import zipfile
from functools import partial

import pytest
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.test import Client

from prefmh_web.campaigns.models import Annotator, Campaign, EndReason, Event, Lease, NotPossible, Vote, number_of
from prefmh_web.participants import completion, consent, limits
from prefmh_web.participants.models import Participant, Participation
from prefmh_web.tasks import settle_parts
from tests.participants.test_stages import ABOUT, READ, UNDERSTOOD
from tests.security.test_limits import all_at_once
from tests.security.world import browser_of
from tests.support.campaigns import (
    CODES,
    WHOLE,
    arrive,
    assert_record_is_whole,
    assert_replay_passes,
    everything_in,
    export_to,
    go_on,
    happened,
    invitation_path,
    make_config,
    page_of,
    pair_of,
    payments_of,
    prolific,
    recruited_campaign,
    replayed,
    table,
    vote,
    wait_until_idle,
)

WORDS = "=told me SECRET things"
GROUNDS = EndReason.CARELESS, WORDS
WITH_CODE = CODES | {"ended": "ENDED1"}


def study_of(researcher, **options) -> Campaign:
    one_judge = make_config(judges=[{"question": "Which is darker?", "votes": 1}], chains=1, steps=8)
    return recruited_campaign(researcher, codes=WITH_CODE, config=one_judge, **options)


def end(study, *, is_paid: bool = False) -> bool | None:
    """End the first one's part; return whether that is paid."""
    paid = completion.exclude(Annotator.objects.order_by("pk")[0], study.owner, *GROUNDS, is_paid=is_paid)
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
    export = replayed(study, tmp_path)
    [started, event, _told] = table(export, "events.csv")
    assert (started["voter"], started["kind"]) == ("", "started")
    assert (event["voter"], event["kind"]) == (str(number_of(left.annotator)), "participation-ended")
    assert json.loads(event["data"]) == {"reason": "careless", "paid": False}
    # Neither who did it nor in which words, nor whose part it was.
    content = everything_in(export)
    assert "SECRET" not in content
    assert "anna" not in content
    assert researcher.username not in event.values()


@pytest.mark.parametrize(("is_paid", "paid", "code"), [(True, "in full", "ENDED1"), (False, "not", "")])
def test_the_researcher_says_whether_they_are_paid(researcher, is_paid, paid, code):
    study = study_of(researcher, places=1)
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
    study = study_of(researcher, votes_each=1)
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
    annotator, told = Annotator.objects.get(), []

    def press(manager) -> None:
        try:
            completion.exclude(annotator, manager, *GROUNDS, is_paid=manager.username == "mona")
        except NotPossible as reason:
            told.append(str(reason))

    all_at_once([partial(press, manager) for manager in managers])
    event = ended().get()
    assert told == [f"The part of person {annotator.pk} has been ended already by {event.by}."]
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
    assert not campaign.annotators.filter(removed_at=None).exists()
    link.refresh_from_db()
    assert link.revoked_at


TEXT = "Do you *agree*?"
AGREE = {"consent": "agree", "version": consent.version_of(TEXT)}
CODES_OF_LINK = {"completed": "DONE", "no-consent": "N0"}


@pytest.fixture
def study(researcher):
    fields = {"consent": TEXT, "codes": CODES_OF_LINK, "protocol": WHOLE, "way_back": "", "places": 2, "votes_each": 1}
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
