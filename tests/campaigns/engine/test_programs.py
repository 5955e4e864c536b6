"""Questions that programs hold: each answer counts once, what is lost comes again, and the law is the paper's."""

import threading
from collections import Counter
from datetime import timedelta

import numpy as np
import pytest
from django.db import close_old_connections, connection
from django.utils import timezone

import sampler
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import leases, programs
from prefmh_web.campaigns.models import Annotator, Comparison, ProgramLease, Side, Vote
from tests.support.record import assert_record_is_whole, export_to
from tests.support.stack import make_campaign, make_recipe, sweep_everything, wait_until_idle

pytestmark = pytest.mark.django_db(transaction=True)
OWN = {"kind": "program", "name": "mine", "independent": True}


def judged_by_program(budget: int = 3, **changes) -> dict:
    judges = [{"question": "Which is darker?", "budget": budget, "source": OWN}]
    return make_recipe(**{"judges": judges, "chains": 2, "steps": 6} | changes)


@pytest.fixture
def campaign(researcher, idle_tasks):
    return make_campaign(researcher, recipe=judged_by_program(), lease_seconds=60)


@pytest.fixture
def judge(campaign):
    return campaign.judges.get()


def overdue(lease: ProgramLease) -> None:
    ProgramLease.objects.filter(pk=lease.pk).update(expires_at=timezone.now() - timedelta(seconds=1))


def judge_until_finished(campaign, judge, rng: np.random.Generator) -> int:
    """Answer at random as often as the campaign takes answers; skip some and let the time of some run out."""
    answers = 0
    while campaign.status != "finished":
        lease = programs.take(campaign, judge.pk)
        if lease is None:
            ProgramLease.objects.filter(ending="skipped").update(ended_at=timezone.now() - timedelta(minutes=1))
            wait_until_idle()
        elif (fate := rng.random()) < 0.1:
            programs.skip(judge.pk, lease.key)
        elif fate < 0.2:
            overdue(lease)
        else:
            programs.answer(campaign, judge.pk, lease.key, Side.LEFT if rng.random() < 0.5 else Side.RIGHT)
            answers += 1
        campaign.refresh_from_db()
    return answers


def test_a_campaign_with_skips_and_lost_questions_replays(campaign, judge, tmp_path):
    answers = judge_until_finished(campaign, judge, np.random.default_rng(3))
    assert_record_is_whole(campaign)
    assert Vote.objects.filter(number__isnull=False).count() == Vote.objects.count() == answers
    found = sampler.replay_file(export_to(campaign, tmp_path))
    assert (found.differences, found.votes) == ((), answers)


def test_an_answer_that_is_sent_twice_counts_once(campaign, judge):
    lease = programs.take(campaign, judge.pk)
    first = programs.answer(campaign, judge.pk, lease.key, Side.LEFT)
    assert programs.answer(campaign, judge.pk, lease.key, Side.LEFT) == first
    with pytest.raises(programs.QuestionOver, match="other object"):
        programs.answer(campaign, judge.pk, lease.key, Side.RIGHT)
    with pytest.raises(programs.QuestionOver, match="was answered"):
        programs.skip(judge.pk, lease.key)
    assert Vote.objects.get() == first


def test_a_question_whose_time_is_over_is_refused_and_comes_again_in_the_same_order(campaign, judge):
    late = programs.take(campaign, judge.pk)
    overdue(late)
    with pytest.raises(programs.QuestionOver, match="time of this question is over"):
        programs.answer(campaign, judge.pk, late.key, Side.LEFT)
    assert not Vote.objects.exists()
    again = programs.take(campaign, judge.pk)
    assert again.key != late.key
    assert (again.comparison_id, again.slot, again.proposal_side) == (late.comparison_id, late.slot, late.proposal_side)
    late.refresh_from_db()
    assert late.ending == ProgramLease.Ending.EXPIRED
    with pytest.raises(programs.QuestionOver, match="time of this question is over"):
        programs.skip(judge.pk, late.key)


def test_the_sweep_ends_what_is_overdue(campaign, judge):
    lease = programs.take(campaign, judge.pk)
    overdue(lease)
    sweep_everything()
    wait_until_idle()
    lease.refresh_from_db()
    assert lease.ending == ProgramLease.Ending.EXPIRED


def test_a_skipped_question_comes_back_to_the_same_judge_after_others(campaign, judge):
    skipped = programs.take(campaign, judge.pk)
    programs.skip(judge.pk, skipped.key)
    programs.skip(judge.pk, skipped.key)
    with pytest.raises(programs.QuestionOver, match="was skipped"):
        programs.answer(campaign, judge.pk, skipped.key, Side.LEFT)
    others = []
    while (lease := programs.take(campaign, judge.pk)) is not None:
        others.append(lease.comparison_id)
    assert skipped.comparison_id not in others
    ProgramLease.objects.filter(pk=skipped.pk).update(ended_at=timezone.now() - timedelta(minutes=1))
    assert programs.take(campaign, judge.pk).comparison_id == skipped.comparison_id


def test_no_more_is_held_than_votes_can_be_used(campaign, judge):
    """Every answer that is out counts: an early verdict never makes one of them late."""
    held = []
    while (lease := programs.take(campaign, judge.pk)) is not None:
        held.append(lease)
    assert held
    for comparison in Comparison.objects.filter(verdict__isnull=True):
        of_this = [lease for lease in held if lease.comparison_id == comparison.pk]
        assert len({lease.slot for lease in of_this}) == len(of_this)
        [has_room] = sampler.askable(comparison.log_r0, comparison.uniform, (0,), (0,), (len(of_this),), (3,))
        assert not has_room
    assert all(programs.answer(campaign, judge.pk, lease.key, Side.LEFT).counted for lease in held)


def test_a_worker_gets_the_question_that_it_holds(campaign, judge):
    mine, theirs = programs.take(campaign, judge.pk, "one"), programs.take(campaign, judge.pk, "two")
    assert mine.key != theirs.key
    assert programs.take(campaign, judge.pk, "one").key == mine.key


def test_one_judge_holds_so_many_questions_at_most(researcher, idle_tasks):
    campaign = make_campaign(researcher, recipe=judged_by_program(budget=4, chains=60))
    judge = campaign.judges.get()
    held = [programs.take(campaign, judge.pk) for _ in range(programs.MOST_HELD)]
    assert all(held)
    with pytest.raises(programs.HoldsTooMany):
        programs.take(campaign, judge.pk)
    overdue(held[0])
    assert programs.take(campaign, judge.pk) is not None


def test_a_paused_campaign_asks_nothing_and_takes_what_is_out(campaign, judge):
    lease = programs.take(campaign, judge.pk, "one")
    lifecycle.pause(campaign)
    assert programs.take(campaign, judge.pk) is None
    assert programs.take(campaign, judge.pk, "one") == lease
    assert programs.answer(campaign, judge.pk, lease.key, Side.LEFT).counted


def test_a_question_of_another_judge_is_not_found(campaign, judge, researcher):
    other = make_campaign(researcher, recipe=judged_by_program(), name="Another")
    lease = programs.take(other, other.judges.get().pk)
    for refused in (
        lambda: programs.answer(campaign, judge.pk, lease.key, Side.LEFT),
        lambda: programs.skip(judge.pk, lease.key),
    ):
        with pytest.raises(ProgramLease.DoesNotExist):
            refused()


def test_people_and_programs_judge_side_by_side(researcher, idle_tasks, tmp_path):
    """Each has a question of its own; a person's sides are drawn as if no program were there."""
    judges = [
        {"question": "Which is darker?", "budget": 2, "source": OWN},
        {"question": "Which is better?", "budget": 2},
    ]
    campaign = make_campaign(researcher, recipe=judged_by_program(judges=judges, chains=1, steps=8))
    own, rng = campaign.judges.get(place=0), np.random.default_rng(1)
    people = [Annotator.objects.create(campaign=campaign) for _ in range(2)]
    while campaign.status != "finished":
        side = Side.LEFT if rng.random() < 0.5 else Side.RIGHT
        if rng.random() < 0.5 and (lease := programs.take(campaign, own.pk)):
            assert programs.answer(campaign, own.pk, lease.key, side).counted
        else:
            person = people[int(rng.integers(2))]
            person.refresh_from_db()
            if lease := leases.take(person):
                assert leases.answer(lease.key, person, side, 500).counted
        wait_until_idle()
        campaign.refresh_from_db()
    votes = Counter(Vote.objects.values_list("judge__place", flat=True))
    assert min(votes[0], votes[1]) > 3
    assert sampler.replay_file(export_to(campaign, tmp_path)).differences == ()


def test_workers_at_once_share_the_questions(campaign, judge):
    """As many as there are: no slot twice, nothing counted twice, and the record is whole."""
    failures: list[BaseException] = []

    def work(number: int) -> None:
        rng = np.random.default_rng(number)
        try:
            for _ in range(200):
                lease = programs.take(campaign, judge.pk)
                if lease is not None:
                    for _ in range(2):
                        programs.answer(campaign, judge.pk, lease.key, Side.LEFT if lease.slot % 2 else Side.RIGHT)
                elif rng.random() < 0.2:
                    wait_until_idle()
                campaign_now = type(campaign).objects.get(pk=campaign.pk)
                if campaign_now.status == "finished":
                    return
        except BaseException as error:  # noqa: BLE001 - told by the test's own thread
            failures.append(error)
        finally:
            close_old_connections()
            connection.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert_record_is_whole(campaign)
    assert Vote.objects.count() == Vote.objects.filter(number__isnull=False).count()
