"""The study in campaign.json: what it leaves out, and that `replay` finds trials that it does not give.

The time that a page was in a hidden tab: sent with a vote, checked, in the record, and out of the times a vote.
"""

import copy
import random
import uuid

import numpy as np
import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.utils import timezone

import sampler
import sampler.judges
from prefmh_web.campaigns.engine import locks
from prefmh_web.campaigns.models import Campaign
from prefmh_web.participants import consent, stages
from prefmh_web.participants.joining import Arrival
from prefmh_web.participants.models import AttentionCheck
from prefmh_web.participants.people import people_of
from prefmh_web.voting import admission
from prefmh_web.voting.responses import response_in
from prefmh_web.voting.screens import screen_after, screen_for
from sampler import read_record
from sampler.record.verify import checked
from tests.participants.test_arrival import TEXT
from tests.support.campaigns import invitation_path, make_config
from tests.support.people import CODES, arrive, pair_of, prolific, recruited_campaign, vote
from tests.support.process import wait_until_idle
from tests.support.records import assert_replay_passes, checked_export, everything_in, export_to, table
from tests.support.sampling import changes_not_found

PROTOCOL = {
    "check_share": 0.1,
    "gold": [{"first": "a", "second": "b", "answer": "first"}, {"first": "c", "second": "d", "answer": "second"}],
    "gold_share": 0.2,
    "repeat_share": 0.2,
    "checks_end": False,
}
# Of two people, one waits for the pair that the other has.
CONFIG = make_config(judges=[{"question": "Which is darker?", "votes": 1}], chains=1, steps=60)
ALL = {"instructed", "gold", "repeat"}
AGREED = consent.Answer(consent.version_of(TEXT), agrees=True)


def come(campaign, name: str) -> int:
    voter = admission.join(SessionStore(), campaign.invitations.get(), Arrival(name, "s"), AGREED)
    stages.arrive(locks.person(voter.pk))
    return voter.pk


def study_of(owner):
    """Return a study in which two people have answered trials of every kind."""
    # Which trials there are is drawn by the people's numbers, and these differ from run to run.
    for _ in range(20):
        campaign = recruited_campaign(
            owner, config=CONFIG, protocol=PROTOCOL, consent=TEXT, budget=200, quota=9, votes_per_person=50
        )
        if every_kind_answered(campaign):
            return campaign
    raise AssertionError("some kind of trial has not come in any of 20 studies")


def every_kind_answered(campaign) -> bool:
    """Let two people answer in a campaign until they have met trials of every kind, or there is nothing more."""
    people, rng = [come(campaign, name) for name in ("anna", "ben")], np.random.default_rng(5)
    for _ in range(300):
        person = people[int(rng.integers(2))]
        screen = screen_for(person)
        if shown := screen.lease or screen.check:
            fields = {"choice": ("first", "second")[int(rng.integers(2))], "lease": str(shown.key)}
            screen_after(response_in(fields), locks.person(person))
            wait_until_idle()
        answered = AttentionCheck.objects.filter(participation__campaign=campaign).exclude(chosen_side="")
        if set(answered.values_list("kind", flat=True)) == ALL:
            return True
    return False


@pytest.fixture(scope="module")
def kept() -> dict[str, sampler.Record]:
    """The record of one study, for all tests of this file."""
    return {}


@pytest.fixture
def record(researcher, kept, tmp_path) -> sampler.Record:
    """A copy of the record, to be changed."""
    if not kept:
        study = study_of(researcher)
        # Ended, so that right answers are told.
        Campaign.objects.filter(pk=study.pk).update(status=Campaign.Status.FINISHED, finished_at=timezone.now())
        export = checked_export(Campaign.objects.get(pk=study.pk), tmp_path)
        kept["record"] = read_record(export)
    return copy.deepcopy(kept["record"])


def differences(record: sampler.Record) -> list[str]:
    return [str(each) for each in sampler.replay(record).differences]


def test_a_running_record_tells_no_right_answer_and_a_finished_one_does(researcher, tmp_path):
    study = study_of(researcher)
    running = read_record(export_to(study, tmp_path))
    golds = [row for row in running["checks"] if row["kind"] == "gold"]
    assert {(row["expected_side"], row["passed"]) for row in golds} == {("", "")}
    assert "answer" not in running.study["protocol"]["gold"][0]
    Campaign.objects.filter(pk=study.pk).update(status=Campaign.Status.FINISHED)
    ended = read_record(export_to(Campaign.objects.get(pk=study.pk), tmp_path))
    assert all(row["expected_side"] for row in ended["checks"] if row["kind"] == "gold")
    assert ended.study["protocol"]["gold"][1]["answer"] == PROTOCOL["gold"][1]["answer"]
    for secret in ("anna", CODES["completed"], "app.prolific.com"):
        assert secret not in everything_in(export_to(study, tmp_path))


def test_a_changed_cell_is_found(record):
    assert changes_not_found(record, random.Random(1), rows_of_each=3) == []


@pytest.mark.parametrize(("kind", "before", "after"), [
    ("consent-asked", TEXT[:5], TEXT[:5].upper()),
    ("consent-answered", AGREED.version, "0" * 64),
])  # fmt: skip
def test_a_text_that_was_agreed_to_is_the_one_of_its_version(record, kind, before, after):
    number, row = next((n, row) for n, row in enumerate(record["events"], start=2) if row["kind"] == kind)
    assert before in row["data"]
    row["data"] = row["data"].replace(before, after)
    assert ("events.csv", number) in [(each.file, each.row) for each in checked(record)[1]]


def test_a_trial_that_was_turned_round_as_a_whole_is_named_by_its_row(record):
    row = next(row for row in record["checks"] if row["kind"] == "instructed" and row["passed"])
    row["expected_side"] = {"first": "second", "second": "first"}[row["expected_side"]]
    row["passed"] = str(1 - int(row["passed"]))
    [found] = differences(record)
    assert found.startswith(f"checks.csv, voter {row['voter']}, after {row['after_votes']} votes: expected_side")


def test_a_repeat_says_whether_the_vote_was_the_same(record):
    row = next(row for row in record["checks"] if row["kind"] == "repeat" and row["agreed"])
    row["agreed"] = str(1 - int(row["agreed"]))
    [found] = differences(record)
    assert found.startswith(f"checks.csv, voter {row['voter']}, after {row['after_votes']} votes: agreed")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda study: study["protocol"].update(gold_share=0), "checks.csv, voter"),
        (lambda study: study.update(budget=59), "60 or more"),
    ],
)
def test_replay_finds_a_study_that_does_not_fit_the_record(record, change, told):
    change(record.study)
    assert any(told in each for each in differences(record))


def test_replay_finds_more_answers_than_the_budget(record):
    trials = sum(bool(row["chosen_side"]) for row in record["checks"])
    # Enough for every step, and for all votes without the trials.
    votes = record["votes"]
    votes.extend([*votes, *votes][: 61 - len(votes)])
    record.study["budget"] = len(votes)
    assert trials
    assert any("study.budget" in each for each in differences(record))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"check_share": "often"}, "check_share.* campaign.json"),
        ({"gold": "often"}, "gold.* campaign.json"),
        ({"repeat_share": "often"}, "repeat_share.* campaign.json"),
        ({"check_share": 0.9}, "at most 1 together"),
        ({"gold": []}, "gold_share needs gold pairs"),
    ],
)
def test_a_study_that_cannot_be_read_is_told_by_its_field(record, wrong, told):
    record.study["protocol"].update(wrong)
    with pytest.raises(sampler.RecordError, match=told):
        differences(record)


def test_it_is_in_the_record_and_not_in_the_time_of_a_vote(researcher, tmp_path):
    study = recruited_campaign(researcher)
    anna = arrive(study, prolific("anna"))
    vote(anna, study)
    assert table(export_to(study, tmp_path), "leases.csv")[0]["hidden_ms"] == ""
    times = {"elapsed_ms": "9000", "hidden_ms": "8000"}
    anna.post(f"{invitation_path(study)}vote/", {"choice": "first", "lease": str(pair_of(anna, study)), **times})
    [person] = people_of(study)
    assert person.median_ms == 1000
    export = export_to(study, tmp_path)
    assert [row["hidden_ms"] for row in table(export, "leases.csv")] == ["", "8000"]
    assert [row["elapsed_ms"] for row in table(export, "votes.csv") if row["elapsed_ms"]] == ["9000"]
    assert_replay_passes(export)


@pytest.mark.parametrize("elapsed", ["900", "", "-5", "1e3", "９", "99999999999", None, ["1"]])
@pytest.mark.parametrize("hidden", ["", "-1", "many", "901", "1e2", None])
def test_what_cannot_be_true_is_not_known(elapsed, hidden):
    said = {"elapsed_ms": elapsed, "hidden_ms": hidden, "layout": "upside down", "translated": "2"}
    response = response_in({"choice": "first", "lease": str(uuid.uuid4())} | said)
    assert (response.elapsed_ms, response.hidden_ms) == (900 if elapsed == "900" else None, None)
    assert (response.layout, response.is_translated) == ("", None)
