"""protocol.json: what it says, what it leaves out, and that `replay` finds trials that it does not give."""

from __future__ import annotations

import copy
import hashlib
import json
import random
import zipfile

import numpy as np
import pytest
from django.contrib.sessions.backends.db import SessionStore

import sampler
import sampler.judges
from prefmh_web.annotate import admission
from prefmh_web.annotate.screens import response_in, screen_after, screen_for
from prefmh_web.campaigns.engine import reading
from prefmh_web.participants import budget, consent, way
from prefmh_web.participants.arrivals import Arrival
from prefmh_web.participants.models import Check
from sampler import read_record
from tests.participants.test_consent import TEXT
from tests.support.campaigns import (
    CODES,
    assert_replay_passes,
    everything_in,
    export_to,
    make_campaign,
    make_config,
    opened,
    recruited_campaign,
    wait_until_idle,
)
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
OTHER = {"first": "second", "second": "first"}
AGREED = consent.Answer(consent.version_of(TEXT), agrees=True)


def come(campaign, name: str) -> int:
    annotator = admission.join(SessionStore(), campaign.invitations.get(), Arrival(name, "s"), AGREED)
    way.arrive(reading.person(annotator.pk))
    return annotator.pk


def study_of(owner):
    """Return a study in which two people have answered trials of every kind."""
    # Which trials there are is drawn by the people's numbers, and these differ from run to run.
    for _ in range(20):
        campaign = recruited_campaign(
            owner, config=CONFIG, protocol=PROTOCOL, consent=TEXT, budget=200, places=9, votes_each=50
        )
        if every_kind_answered(campaign):
            return campaign
    raise AssertionError("some kind of trial has not come in any of 20 studies")


def every_kind_answered(campaign) -> bool:
    """Let two people answer in a campaign until they have met trials of every kind, or there is nothing more."""
    people, rng = [come(campaign, name) for name in ("anna", "ben")], np.random.default_rng(5)
    for _ in range(300):
        person = people[int(rng.integers(2))]
        visit = screen_for(person).visit
        if shown := visit.lease or visit.check:
            fields = {"choice": ("first", "second")[int(rng.integers(2))], "lease": str(shown.key)}
            screen_after(response_in(fields), reading.person(person))
            wait_until_idle()
        answered = Check.objects.filter(participation__campaign=campaign).exclude(chosen_side="")
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
        export = export_to(study_of(researcher), tmp_path)
        assert_replay_passes(export)
        kept["record"] = opened(read_record(export))
    return copy.deepcopy(kept["record"])


def differences(record: sampler.Record) -> list[str]:
    return [str(each) for each in sampler.replay(record).differences]


def test_it_says_what_shaped_the_votes_and_names_nobody(researcher, tmp_path):
    study = study_of(researcher)
    export = export_to(study, tmp_path)
    with zipfile.ZipFile(export) as archive:
        described = json.loads(archive.read("protocol.json"))
    assert described["recruiter"] == "prolific"
    assert described["limits"] | {"votes_each": 50, "places": 9} == described["limits"]
    assert described["consent"] == {"version": hashlib.sha256(TEXT.encode()).hexdigest(), "text": TEXT}
    assert described["protocol"] | PROTOCOL | {"gold": described["protocol"]["gold"]} == described["protocol"]
    assert described["protocol"]["gold"][1] | PROTOCOL["gold"][1] == described["protocol"]["gold"][1]
    assert described["paid"]["withdrawn"] == "part"
    spent = budget.spent(study)
    assert described["budget"] == {
        "answers": 200,
        "set_aside": 60,
        "trials_declared": 30,
        "spent": {"votes": spent.votes, "late": 0, "trials": spent.trials},
    }
    assert spent.trials > 0
    for secret in ("anna", CODES["completed"], "app.prolific.com"):
        assert secret not in everything_in(export)


def test_campaigns_without_people_to_describe_have_none(researcher, tmp_path):
    with zipfile.ZipFile(export_to(make_campaign(researcher), tmp_path)) as archive:
        assert "protocol.json" not in archive.namelist()


def test_a_changed_cell_is_found(record):
    assert changes_not_found(record, random.Random(1), rows_of_each=3) == []


def test_a_trial_that_was_turned_round_as_a_whole_is_named_by_its_row(record):
    row = next(row for row in record["checks"] if row["kind"] == "instructed" and row["passed"])
    row["expected_side"] = {"first": "second", "second": "first"}[row["expected_side"]]
    row["passed"] = str(1 - int(row["passed"]))
    [found] = differences(record)
    assert found.startswith(f"checks.csv, voter {row['voter']}, after {row['after_votes']} votes: expected_side")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda protocol: protocol["protocol"].update(gold_share=0), "checks.csv, voter"),
        (lambda protocol: protocol["consent"].update(text="I agree to all."), "the version of the consent text"),
        (lambda protocol: protocol["budget"].update(answers=59), "budget.answers"),
        (lambda protocol: protocol["budget"].update(set_aside=59), "budget.set_aside"),
    ],
)
def test_replay_finds_a_protocol_that_does_not_fit_the_record(record, change, told):
    change(record.protocol)
    assert any(told in each for each in differences(record))


@pytest.mark.parametrize("name", ["check_share", "gold", "repeat_share"])
def test_a_protocol_that_cannot_be_read_is_told_by_its_field(record, name):
    record.protocol["protocol"][name] = "often"
    with pytest.raises(sampler.RecordError, match=f"{name}.* protocol.json"):
        differences(record)


def test_a_record_without_the_file_replays_as_before(record):
    record["checks"][0]["gold_index"] = "7"
    del record.documents["protocol.json"]
    assert not differences(record)
