"""Leases of a panel: each panelist answers for itself, and for nobody else."""

from datetime import timedelta

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.db import IntegrityError, transaction
from django.test import Client

import sampler
from prefmh_web.campaigns.engine import leases, open_comparisons
from prefmh_web.campaigns.models import Campaign, Comparison, Lease, Side, Vote, Voter
from prefmh_web.voting import admission
from tests.support.campaigns import link_of, panel_campaign, panel_judges, sit_down
from tests.support.records import checked_export, differences


@pytest.fixture
def panel(researcher):
    """A campaign of three panelists and one chain, whose first step nobody's "no" is needed for."""
    campaign = panel_campaign(researcher, 3, config={"chains": 1, "steps": 20})
    Comparison.objects.update(uniform=0.0, log_r0=0.0)
    return campaign


def say_yes(person) -> Lease:
    lease = leases.take(person)
    leases.answer(lease.key, person, Side(lease.proposal_side), 900)
    return lease


def test_each_panelist_answers_a_pair_once_and_only_then_it_is_decided(panel, idle_tasks):
    people = [sit_down(panel, panelist) for panelist in (3, 1, 2)]
    first = Comparison.objects.get()
    for person in people:
        first.refresh_from_db()
        assert first.verdict is None
        lease = say_yes(person)
        assert (lease.comparison_id, lease.judge.panelist) == (first.pk, person.panelist)
    first.refresh_from_db()
    assert first.verdict == Comparison.Verdict.ACCEPT


def test_one_no_decides_without_the_others(panel):
    person = sit_down(panel, 2)
    Comparison.objects.update(uniform=0.5)
    lease = leases.take(person)
    # While one may say no, an answer of somebody else might come too late.
    assert leases.take(sit_down(panel, 1)) is None
    against = Side.SECOND if lease.proposal_side == Side.FIRST else Side.FIRST
    leases.answer(lease.key, person, against, 900)
    assert Comparison.objects.get(pk=lease.comparison_id).verdict == Comparison.Verdict.REJECT


def test_the_lease_of_another_panelist_is_refused(panel):
    first, second = sit_down(panel, 1), sit_down(panel, 2)
    lease = leases.take(first)
    with pytest.raises(Comparison.DoesNotExist):
        leases.answer(lease.key, second, Side.FIRST, 900)
    leases.skip(lease.key, first)
    for seen, judge in open_comparisons.wanted_by(first):
        assert judge.panelist == 1
        assert leases._lease(seen, judge, second, None, None) is None
    assert not Vote.objects.exists()


def test_somebody_who_is_no_panelist_is_asked_nothing(panel):
    assert leases.take(Voter.objects.create(campaign=panel)) is None


def test_a_skipped_pair_comes_back_to_the_same_person_later(panel, monkeypatch):
    person, other = sit_down(panel, 1), sit_down(panel, 2)
    lease = leases.take(person)
    leases.skip(lease.key, person)
    assert leases.take(person) is None
    # Meanwhile the chain may be served by the others.
    assert leases.take(other).judge.panelist == 2
    leases.skip(leases.live_lease_of(other).key, other)
    monkeypatch.setattr(open_comparisons, "SKIP_COOLDOWN", timedelta())
    again = leases.take(person)
    assert (again.comparison_id, again.judge.panelist) == (lease.comparison_id, 1)
    assert again.key != lease.key


def test_of_those_who_wait_only_panelists_who_are_wanted_look_again(panel):
    first, second = sit_down(panel, 1), sit_down(panel, 2)
    say_yes(first)
    waiting = [(person.pk, "running") for person in (first, second)]
    assert open_comparisons.takers(panel, waiting) == {second.pk}


def test_a_link_is_one_person_on_every_device_and_two_may_share_one(panel):
    link = link_of(panel, 1).get_absolute_url()
    other_link = link_of(panel, 2).get_absolute_url()
    laptop, phone = Client(), Client()
    for browser in (laptop, phone):
        assert browser.post(link).url == f"{link}vote/"
    person = panel.voters.get()
    assert person.panelist == 1
    # A second person of the panel with the first one's laptop: not the first one's panelist.
    assert laptop.get(f"{other_link}vote/").url == other_link
    assert laptop.post(other_link).url == f"{other_link}vote/"
    assert sorted(panel.voters.values_list("panelist", flat=True)) == [1, 2]
    assert laptop.get(f"{link}vote/").url == link
    assert phone.get(f"{link}vote/").status_code == 200


def test_a_panelist_joins_once_whatever_happens(panel):
    sit_down(panel, 1)
    with pytest.raises(IntegrityError), transaction.atomic():
        Voter.objects.create(campaign=panel, panelist=1)
    assert admission.join(SessionStore(), link_of(panel, 1)).panelist == 1
    assert panel.voters.count() == 1


def with_a_vote_of_somebody_else(record: sampler.Record) -> None:
    last = record["votes"][-1]
    last["voter"] = next(row["voter"] for row in record["votes"] if row["voter"] != last["voter"])


def with_one_person_for_both(record: sampler.Record) -> None:
    for row in record["votes"]:
        row["voter"] = record["votes"][0]["voter"]


def with_another_panelist_in_judges(record: sampler.Record) -> None:
    record.documents["judges.json"][0]["panelist"] = 2


TAMPERED = {
    with_a_vote_of_somebody_else: "who is nobody else",
    with_one_person_for_both: "who is nobody else",
    with_another_panelist_in_judges: "the panelist",
}


def test_a_whole_panel_with_two_questions_is_exported_and_replayed(researcher, idle_tasks, tmp_path, monkeypatch):
    monkeypatch.setattr(open_comparisons, "SKIP_COOLDOWN", timedelta())
    judges = panel_judges(2, "Which is darker?", "Which is better?")
    campaign = panel_campaign(researcher, config={"judges": judges, "steps": 6})
    people = [sit_down(campaign, panelist) for panelist in (1, 2)]
    for turn in range(500):
        idle_tasks()
        campaign.refresh_from_db()
        if campaign.status == Campaign.Status.FINISHED:
            break
        if lease := leases.take(people[turn % 2]):
            leases.answer(lease.key, people[turn % 2], Side.FIRST if turn % 3 else Side.SECOND, 700)
    assert campaign.status == Campaign.Status.FINISHED
    path = checked_export(campaign, tmp_path)
    record = sampler.read_record(path)
    for tamper, told in TAMPERED.items():
        assert any(told in found for found in differences(record, tamper)), told
