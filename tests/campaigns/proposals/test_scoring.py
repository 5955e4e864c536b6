"""Scores of a campaign's objects: each stored once, whatever fails, and no chain waits for one."""

import threading
from datetime import timedelta

from django.utils import timezone

from prefmh_web import tasks
from prefmh_web.campaigns.lifecycle import status
from prefmh_web.campaigns.models import Campaign, CampaignScorer, Chain, Comparison, Score
from prefmh_web.campaigns.monitoring.judging import scorers_of
from prefmh_web.campaigns.proposals import scoring
from prefmh_web.campaigns.record.export import results_now, results_of
from prefmh_web.campaigns.record.rows import Snapshot
from prefmh_web.scorers import commands
from tests.support.campaigns import make_campaign, make_config, swept, voted_to_the_end
from tests.support.process import on_own_connection, sweep_everything

LENGTH = "print(len(told['content']), flush=True)"
CONFIG = make_config(chains=2, steps=6)


def visited(campaign: Campaign) -> set[int]:
    starts = Chain.objects.filter(campaign=campaign).values_list("start", flat=True)
    return {*starts, *Comparison.objects.filter(chain__campaign=campaign).values_list("proposal", flat=True)}


def test_every_object_that_was_proposed_gets_one_score_of_each_scorer(researcher, idle_tasks, declare):
    declare(LENGTH)
    campaign = make_campaign(researcher, config=CONFIG, scorer_names="words length")
    voted_to_the_end(campaign)
    sweep_everything()
    found = Score.objects.select_related("state", "scorer")
    assert {score.state_id for score in found} == visited(campaign)
    assert found.count() == 2 * len(visited(campaign))
    for score in found:
        content = score.state.content
        assert score.value == (len(content) if score.scorer.name == "length" else len(content.split()))
    # Once more for the end, after which nobody looks again.
    sweep_everything()
    assert all(CampaignScorer.objects.values_list("is_complete", flat=True))
    assert scoring.waiting() == []


def test_a_failing_scorer_stops_no_chain_and_is_asked_again_when_somebody_says_so(researcher, idle_tasks, declare):
    declare("import sys\nsys.exit('no weights')\n", whole=True)
    campaign = make_campaign(researcher, config=CONFIG, scorer_names="length words")
    voted_to_the_end(campaign)
    sweep_everything()
    campaign.refresh_from_db()
    assert campaign.status == "finished"
    length, words = scorers_of(campaign)
    assert "no weights" in length["scorer"].stopped_because
    assert length["scored"] == 0
    assert words["scored"] == len(visited(campaign))
    declare(LENGTH)
    status.ask_scorers_again(campaign)
    idle_tasks()
    [length, _] = scorers_of(campaign)
    assert (length["scored"], length["scorer"].stopped_because) == (len(visited(campaign)), "")


def test_the_results_that_are_kept_know_scores_that_come_later(researcher, idle_tasks, declare):
    declare("import sys\nsys.exit('no weights')\n", whole=True)
    config = make_config(judges=[], rule={"kind": "base"}, kernel={"kind": "independent"}, chains=4, steps=30)
    campaign = swept(make_campaign(researcher, config=config, scorer_names="length"))
    assert campaign.status == "finished"
    before = results_now(campaign).verdict
    declare("print(int(told['content'][-20:] > 'm'), flush=True)")
    status.ask_scorers_again(campaign)
    idle_tasks()
    assert before != results_now(campaign).verdict == results_of(Snapshot.now(campaign)).verdict


def test_what_a_dead_worker_had_claimed_is_found_by_the_sweep(researcher, idle_tasks, declare):
    campaign = make_campaign(researcher, config=CONFIG, scorer_names="words")
    Score.objects.all().delete()
    CampaignScorer.objects.update(claimed_until=timezone.now() + timedelta(seconds=30))
    sweep_everything()
    assert not Score.objects.exists()
    CampaignScorer.objects.update(claimed_until=timezone.now() - timedelta(seconds=1))
    sweep_everything()
    assert set(Score.objects.values_list("state", flat=True)) == visited(campaign)


def test_a_claim_that_ran_out_stores_nothing_twice(researcher, idle_tasks, declare, tmp_path):
    go = tmp_path / "go"
    declare(f"while not os.path.exists({str(go)!r}): time.sleep(.01)\n{LENGTH}")
    campaign = make_campaign(researcher, config=CONFIG, scorer_names="words")
    Score.objects.all().delete()
    frozen = commands.offered("texts")
    CampaignScorer.objects.update(name="length", frozen=next(frozen).description())

    slow = threading.Thread(target=on_own_connection(tasks.score), args=[campaign.pk])
    slow.start()
    while not CampaignScorer.objects.filter(claimed_until__isnull=False).exists():
        pass
    # As if its holder had been stopped for too long, another worker has taken the same objects and stored them.
    rows = [Score(state_id=state, scorer=campaign.scorers.get(), value=-1) for state in visited(campaign)]
    Score.objects.bulk_create(rows)
    go.touch()
    slow.join()
    idle_tasks()
    assert set(Score.objects.values_list("value", flat=True)) == {-1}
