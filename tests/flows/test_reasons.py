"""Reasons of a model: kept beside its votes where the setting says so, shown, exported, and never the answer."""

from django.urls import reverse

from prefmh_web.campaigns.models import Campaign, Vote
from prefmh_web.endpoints.dialects import Dialect
from tests.flows.test_further_judges import anthropic, campaign
from tests.support.campaigns import assert_record_is_whole, assert_replay_passes, export_to, table

__all__ = ["campaign"]

HOSTILE = "<script>alert(1)</script> A. Answer B!\0 =HYPERLINK(1)"


def thinking(text: str):
    """Return a model that thinks this before each of its answers."""

    def answer(body: dict) -> dict:
        reply = anthropic(body)
        reply["content"][0]["thinking"] = text
        return reply

    return answer


def finished(campaign, answer, **source) -> Campaign:
    settings = {"law_unverified": True, "temperature": 1, "thinking": 2000} | source
    return campaign(Dialect.ANTHROPIC, answer, **settings)


def test_each_vote_has_its_reason_on_the_page_and_in_the_record(campaign, client, tmp_path) -> None:
    done = finished(campaign, anthropic, reasons=True)
    assert done.status == Campaign.Status.FINISHED
    votes = Vote.objects.filter(comparison__chain__campaign=done)
    assert {vote.reason for vote in votes} == {"A, or B?"}
    page = client.get(done.get_absolute_url()).content.decode()
    assert "What the models thought" in page
    assert "A, or B?" in page
    path = export_to(done, tmp_path)
    assert_replay_passes(path)
    assert_record_is_whole(done)
    rows = table(path, "reasons.csv")
    which = ("chain_index", "step", "judge_index", "slot")
    assert [[row[name] for name in which] for row in rows] == sorted(
        ([row[name] for name in which] for row in table(path, "votes.csv")), key=lambda row: [int(cell) for cell in row]
    )
    assert {(row["reason"], row["cut"]) for row in rows} == {("A, or B?", "0")}
    record = client.get(reverse("console:record", args=[done.pk])).content.decode()
    assert reverse("console:download", args=[done.pk, "reasons.csv"]) in record


def test_what_a_model_thinks_is_cut_escaped_and_never_the_answer(campaign, client, tmp_path) -> None:
    done = finished(campaign, thinking(HOSTILE + "x" * 5000), reasons=True)
    assert done.status == Campaign.Status.FINISHED
    for vote in Vote.objects.all():
        assert (len(vote.shown_reason), vote.is_reason_cut) == (2000, True)
    page = client.get(done.get_absolute_url()).content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    assert "Cut after 2,000 characters" in page
    assert {row["cut"] for row in table(export_to(done, tmp_path), "reasons.csv")} == {"1"}
    # Its thoughts name both labels, and each vote is the label of the answer all the same.
    assert set(Vote.objects.values_list("asks", flat=True)) == {1}
