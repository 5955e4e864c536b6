"""Steps that are suspended: after declared skips or reports nobody new is asked, and nothing is decided by that."""

import json
import threading
from collections.abc import Callable

import pytest
from django.db import connection, transaction

import sampler
from prefmh_web.campaigns.engine import leases, suspension
from prefmh_web.campaigns.models import (
    Campaign,
    Chain,
    Comparison,
    Event,
    Lease,
    NotPossible,
    ReportReason,
    Side,
    Vote,
    Voter,
)
from prefmh_web.campaigns.record.rows import Snapshot
from sampler.record.record import step_key
from tests.flows.test_model_costs import registered
from tests.support.campaigns import make_campaign, make_config
from tests.support.models import SCORES, KnownJudge, scripted_server
from tests.support.process import sweep_everything
from tests.support.records import checked_export, differences, export_to, happened

ONE_JUDGE = [{"question": "Which?", "votes": 4}]
WHY = "=broken file"


def suspensions() -> list[dict]:
    """Return what the events of suspended steps say."""
    return list(Event.objects.filter(kind="step-suspended").values_list("data", flat=True))


def campaign_of(researcher, *, chains: int = 1, steps: int = 50, judges=ONE_JUDGE, **declared) -> Campaign:
    return make_campaign(researcher, config=make_config(chains=chains, steps=steps, judges=judges), **declared)


def newcomer(campaign) -> Voter:
    return Voter.objects.create(campaign=campaign)


def skip(campaign, times: int = 1) -> Comparison:
    """Let one newcomer after another skip; return what the last one skipped."""
    for _ in range(times):
        lease = leases.take(newcomer(campaign))
        leases.skip(lease.key, lease.voter)
    return Comparison.objects.get(pk=lease.comparison_id)


def report(campaign, reason=ReportReason.NOT_SHOWN) -> Lease:
    lease = leases.take(newcomer(campaign))
    leases.skip(lease.key, lease.voter)
    suspension.report(lease.key, lease.voter, reason, "")
    return lease


def answer(lease: Lease, *, is_for: bool) -> Vote:
    side = Side(lease.proposal_side)
    return leases.answer(lease.key, lease.voter, side if is_for else side.other, 900)


def test_after_the_declared_number_of_skips_nobody_new_is_asked(researcher, idle_tasks):
    campaign = campaign_of(researcher, suspend_after_skips=3)
    assert skip(campaign, 2).suspended_at is None
    skipped = skip(campaign)
    assert (skipped.suspended_for, skipped.verdict, skipped.is_askable) == ("skips", None, False)
    assert leases.take(newcomer(campaign)) is None
    # The sweep finds comparisons that nobody is asked about; this is none of them.
    leases.refresh_where_nobody_is_asked()
    sweep_everything()
    assert leases.take(newcomer(campaign)) is None
    assert not Vote.objects.exists()
    assert [(each["cause"], each["count"]) for each in suspensions()] == [("skips", 3)]


def test_a_pair_on_the_screen_may_still_be_answered_and_decide_the_step(researcher, idle_tasks, tmp_path):
    campaign = campaign_of(researcher, suspend_after_skips=1, suspend_after_reports=1)
    # Two votes for the proposal accept it: two people can be asked at once.
    Comparison.objects.update(uniform=0.5, log_r0=0.0)
    held = [leases.take(newcomer(campaign)) for _ in range(2)]
    leases.skip(held[1].key, held[1].voter)
    step = Comparison.objects.get(pk=held[0].comparison_id)
    assert step.suspended_at
    assert answer(held[0], is_for=True).counted
    # The vote leaves room, and still nobody is asked.
    assert leases.take(newcomer(campaign)) is None
    suspension.try_again(step.pk)
    last = leases.take(newcomer(campaign))
    suspension.report(held[1].key, held[1].voter, ReportReason.NOT_SHOWN, "")
    assert Comparison.objects.get(pk=step.pk).suspended_at
    answer(last, is_for=True)
    idle_tasks()
    assert Comparison.objects.get(pk=step.pk).verdict == "accept"
    assert Chain.objects.get().step >= 1
    assert leases.take(newcomer(campaign))
    found = happened(export_to(campaign, tmp_path), "step-suspended", "step-tried-again")
    assert [kind for kind, _ in found] == ["step-suspended", "step-tried-again", "step-suspended"]


def test_trying_again_begins_the_count_anew(researcher, idle_tasks):
    campaign = campaign_of(researcher, suspend_after_skips=2)
    held = leases.take(newcomer(campaign))
    step = skip(campaign, 2)
    # It was on a screen when it was suspended: this skip is of the time before, too.
    leases.skip(held.key, held.voter)
    suspension.try_again(step.pk)
    assert skip(campaign).suspended_at is None
    assert skip(campaign).suspended_at
    kinds = list(Event.objects.values_list("kind", flat=True))
    assert kinds == ["step-suspended", "step-tried-again", "step-suspended"]
    assert [each["count"] for each in suspensions()] == [2, 2]


def test_where_a_model_judges_too_people_are_asked_again(researcher, settings, idle_tasks):
    source = {"kind": "model", "endpoint": "A model", "temperature": 0.7, "votes": "sampled"}
    judges = [*ONE_JUDGE, {"question": "Which is better?", "votes": 1, "source": source}]
    with scripted_server(KnownJudge(SCORES)) as script:
        registered(researcher, script.url, settings)
        campaign = campaign_of(researcher, judges=judges, suspend_after_skips=2)
        step = skip(campaign, 2)
        assert leases.take(newcomer(campaign)) is None
        suspension.try_again(step.pk)
        assert leases.take(newcomer(campaign)).comparison_id == step.pk
        idle_tasks()


@pytest.mark.parametrize("declared", [1, 2, 3])
def test_reports_of_as_many_people_as_declared_suspend_it(researcher, idle_tasks, declared):
    campaign = campaign_of(researcher, suspend_after_reports=declared)
    report(campaign, ReportReason.UPSETTING)
    for told in range(1, declared + 1):
        lease = report(campaign)
        assert (Comparison.objects.get(pk=lease.comparison_id).suspended_at is not None) is (told == declared)
    assert [each["cause"] for each in suspensions()] == ["not-shown"]
    assert not Vote.objects.exists()


def test_one_person_who_reports_twice_is_one_person(researcher, idle_tasks):
    campaign = campaign_of(researcher)
    lease = report(campaign)
    # Shown to them again, after a while.
    again = Lease.objects.create(
        comparison=lease.comparison, judge=lease.judge, voter=lease.voter, proposal_side="first",
        issued_at=lease.issued_at, expires_at=lease.expires_at, ended_at=lease.issued_at, ending="skipped",
    )  # fmt: skip
    suspension.report(again.key, lease.voter, ReportReason.NOT_SHOWN, "")
    assert Event.objects.filter(kind="reported").count() == 2
    assert not suspensions()


def test_the_campaign_finishes_once_the_chain_of_a_suspended_step_is_ended(researcher, idle_tasks, tmp_path):
    judges = [{"question": "Which?", "votes": 1}]
    campaign = campaign_of(researcher, chains=2, steps=3, judges=judges, suspend_after_skips=1)
    voter = newcomer(campaign)
    step = skip(campaign)
    while lease := leases.take(voter):
        answer(lease, is_for=True)
        idle_tasks()
    campaign.refresh_from_db()
    assert campaign.is_running
    suspension.end_chain(step.pk, WHY)
    sweep_everything()
    campaign.refresh_from_db()
    assert campaign.status == Campaign.Status.FINISHED
    ended = Chain.objects.get(pk=step.chain_id)
    assert (ended.step, ended.ended_at is not None) == (step.step - 1, True)
    path = checked_export(campaign, tmp_path)
    key = {"chain_index": step.chain.index, "step": step.step}
    assert happened(path, "step-suspended", "chain-ended") == [
        ("step-suspended", key | {"cause": "skips", "count": 1}),
        ("chain-ended", key | {"words": WHY}),
    ]
    with pytest.raises(NotPossible, match="not suspended any more"):
        suspension.try_again(step.pk)


def test_a_vote_that_comes_after_the_end_is_kept_and_not_counted(researcher, idle_tasks, tmp_path):
    campaign = campaign_of(researcher, suspend_after_skips=1)
    Comparison.objects.update(uniform=0.5, log_r0=0.0)
    held = [leases.take(newcomer(campaign)) for _ in range(2)]
    leases.skip(held[1].key, held[1].voter)
    suspension.end_chain(held[0].comparison_id, WHY)
    campaign.refresh_from_db()
    assert campaign.status == Campaign.Status.FINISHED
    assert not answer(held[0], is_for=True).counted
    assert Vote.objects.get().number is None
    assert Comparison.objects.get(pk=held[0].comparison_id).verdict is None
    assert Chain.objects.get().step == held[0].comparison.step - 1


def test_a_chain_that_is_ended_while_an_export_begins_is_ended_in_it(researcher, idle_tasks):
    """Else the record would have a chain that lags without an end."""
    campaign = campaign_of(researcher, chains=3, suspend_after_skips=1)
    suspended, is_ended = skip(campaign), []

    def end_first(execute, sql, params, many, context):
        if 'FROM "campaigns_chain"' in sql and not is_ended:
            is_ended.append(True)
            suspension.end_chain(suspended.pk, WHY)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(end_first):
        found = Snapshot.now(campaign)
    assert found.ended == {(suspended.chain.index, suspended.step)}


def test_a_step_that_is_not_suspended_cannot_be_ended(researcher, idle_tasks):
    campaign = campaign_of(researcher)
    step = skip(campaign)
    with pytest.raises(NotPossible, match="not suspended any more"):
        suspension.end_chain(step.pk, WHY)
    assert not Chain.objects.filter(ended_at__isnull=False).exists()


def end_in(record) -> dict[str, str]:
    [row] = [row for row in record["events"] if row["kind"] == "chain-ended"]
    return row


def without_the_event(record):
    """The record does not say that the chain was ended."""
    end_in(record)["kind"] = "step-tried-again"


def without_the_uniform(record):
    """The step looks as if it were open."""
    step_of(record)["uniform"] = ""


def ended_at_a_decided_step(record):
    """A chain is said to have ended where it went on."""
    end_in(record)["data"] = json.dumps({"chain_index": 0, "step": 1, "words": WHY})


def ended_at_no_step(record):
    end_in(record)["data"] = json.dumps({"chain_index": 0, "step": 40, "words": WHY})


def with_a_verdict(record):
    step_of(record)["verdict"] = "reject"


def step_of(record) -> dict[str, str]:
    key = json.loads(end_in(record)["data"])
    return next(row for row in record["steps"] if step_key(row) == (key["chain_index"], key["step"]))


TAMPERED = [without_the_event, without_the_uniform, ended_at_a_decided_step, ended_at_no_step, with_a_verdict]


def test_replay_refuses_an_end_that_the_record_does_not_tell(researcher, idle_tasks, tmp_path):
    campaign = campaign_of(researcher, suspend_after_skips=1, judges=[{"question": "Which?", "votes": 1}])
    voter = newcomer(campaign)
    while Chain.objects.get().step < 2:
        answer(leases.take(voter), is_for=True)
        idle_tasks()
    suspension.end_chain(skip(campaign).pk, WHY)
    record = sampler.read_record(export_to(campaign, tmp_path))
    assert not differences(record)
    for tamper in TAMPERED:
        assert differences(record, tamper), tamper.__name__


def overtaken(campaign, step: Comparison, late: Callable[[], object]) -> list[BaseException]:
    """End a chain while somebody else already waits to do something at its step; return why that was refused."""
    refused = []

    def wait_and_see() -> None:
        try:
            late()
        except NotPossible as reason:
            refused.append(reason)
        finally:
            connection.close()

    other = threading.Thread(target=wait_and_see)
    with transaction.atomic():
        suspension.end_chain(step.pk, WHY)
        other.start()
        # Long enough to come to the lock that this one holds until its end.
        other.join(0.5)
        assert other.is_alive()
    other.join()
    return refused


def test_a_vote_that_waits_while_its_chain_is_ended_does_not_count(researcher, idle_tasks):
    campaign = campaign_of(researcher, suspend_after_skips=1)
    # Two votes for the proposal accept it: two people can be asked at once.
    Comparison.objects.update(uniform=0.5, log_r0=0.0)
    held = leases.take(newcomer(campaign))
    step = skip(campaign)
    overtaken(campaign, step, lambda: answer(held, is_for=True))
    assert Vote.objects.get().number is None


def test_who_waits_to_try_a_step_again_while_its_chain_is_ended_is_told_so(researcher, idle_tasks):
    campaign = campaign_of(researcher, suspend_after_skips=1)
    step = skip(campaign)
    [reason] = overtaken(campaign, step, lambda: suspension.try_again(step.pk))
    assert "not suspended any more" in str(reason)
    assert leases.take(newcomer(campaign)) is None
    assert not Event.objects.filter(kind="step-tried-again").exists()
