"""The record of a campaign that a program judges: it names the source, replays, and shows what was changed in it."""

import numpy as np
import pytest

import sampler
from prefmh_web.campaigns.models import ProgramLease
from sampler import Record, read_record
from tests.campaigns.engine.test_programs import judge_until_finished, judged_by_program
from tests.support.record import export_to, table
from tests.support.stack import make_campaign

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def export(researcher, idle_tasks, tmp_path):
    campaign = make_campaign(researcher, recipe=judged_by_program())
    judge_until_finished(campaign, campaign.judges.get(), np.random.default_rng(8))
    assert ProgramLease.objects.filter(ending="skipped").exists()
    return export_to(campaign, tmp_path)


def differences(record: Record) -> str:
    tables = record.states, record.steps, record.votes, record.samples, record.ratings
    return "\n".join(map(str, sampler.replay(record.recipe, *tables, record.judges).differences))


def test_each_vote_names_its_source(export):
    votes = table(export, "votes.csv")
    assert {(row["source"], row["endpoint"], row["annotator"], row["lease"]) for row in votes} == {
        ("program", "mine", "", "")
    }
    meanings = {(row["file"], row["column"]) for row in table(export, "codebook.csv")}
    assert ("votes.csv", "source") in meanings
    [judge] = read_record(export).judges
    assert (judge["source"], judge["program"], judge["independent"]) == ("program", "mine", True)


def another_source(record: Record) -> None:
    record.votes[0]["source"] = "people"


def the_other_order(record: Record) -> None:
    vote, other = record.votes[0], {"left": "right", "right": "left"}
    vote["proposal_side"], vote["chosen_side"] = other[vote["proposal_side"]], other[vote["chosen_side"]]
    vote["left_state"], vote["right_state"] = vote["right_state"], vote["left_state"]


def a_second_answer(record: Record) -> None:
    first, second = next(
        (one, two)
        for one, two in zip(record.votes, record.votes[1:], strict=False)
        if (one["chain"], one["step"]) == (two["chain"], two["step"]) and one["proposal_side"] == two["proposal_side"]
    )
    second["slot"] = first["slot"]


def a_probability(record: Record) -> None:
    record.votes[0]["preference"] = "0.5"


def another_program(record: Record) -> None:
    record.judges[0]["program"] = "theirs"


def no_declaration(record: Record) -> None:
    record.judges[0]["independent"] = False


CHANGES = {
    another_source: "'s source",
    the_other_order: "'s proposal_side",
    a_second_answer: "not counted: a second vote",
    a_probability: "'s preference",
    another_program: "the program",
    no_declaration: "whether its answers are independent",
}


def test_what_was_changed_is_found(export):
    assert differences(read_record(export)) == ""
    for change, told in CHANGES.items():
        record = read_record(export)
        change(record)
        assert told in differences(record), change.__name__


def test_a_record_without_the_declaration_is_no_record(export):
    record = read_record(export)
    record.recipe["judges"][0]["source"]["independent"] = False
    with pytest.raises((sampler.RecordError, sampler.RecipeError), match="independent draws"):
        differences(record)
