"""The time that a page was in a hidden tab: sent with a vote, checked, in the record, and out of the times a vote."""

import uuid

import pytest

from prefmh_web.annotate.screens import response_in
from prefmh_web.participants.people import people_of
from tests.support.campaigns import (
    arrive,
    assert_replay_passes,
    export_to,
    invitation_path,
    pair_of,
    prolific,
    recruited_campaign,
    table,
    vote,
    wait_until_idle,
)


def vote_with(browser, study, **times: str) -> None:
    fields = {"choice": "first", "lease": str(pair_of(browser, study)), **times}
    assert browser.post(f"{invitation_path(study)}vote/", fields).status_code == 302
    wait_until_idle()


def test_it_is_in_the_record_and_not_in_the_time_of_a_vote(researcher, tmp_path):
    study = recruited_campaign(researcher)
    anna = arrive(study, prolific("anna"))
    vote(anna, study)
    assert table(export_to(study, tmp_path), "leases.csv")[0]["hidden_ms"] == ""
    vote_with(anna, study, elapsed_ms="9000", hidden_ms="8000")
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
