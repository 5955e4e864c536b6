"""The end of a warm-up: nobody goes past it before all have reached it, and then all walk equally far."""

from datetime import timedelta

import pytest
from django.utils import timezone

import sampler
from prefmh_web import tasks
from prefmh_web.campaigns import dispatch, lifecycle
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.lifecycle import changes
from prefmh_web.campaigns.models import Campaign, Comparison, Side, Voter
from prefmh_web.campaigns.monitoring.progress import late_chains
from prefmh_web.campaigns.proposals import drawing
from tests.support.campaigns import WARM_UP, voted_to_the_end, warming_campaign
from tests.support.process import sweep_everything, wait_until_idle
from tests.support.records import checked_export

W = WARM_UP["steps"]


def decide(campaign: Campaign, only: int | None = None, until: int = W) -> None:
    """Vote until no chain has an open pair up to this step; of one chain only if its index is given."""
    wanted = Comparison.objects.filter(chain__campaign=campaign, verdict__isnull=True, step__lte=until)
    if only is not None:
        wanted = wanted.filter(chain__index=only)
    wait_until_idle()
    while wanted.exists():
        voter = Voter.objects.create(campaign=campaign)
        lease = leases.take(voter)
        while not wanted.filter(pk=lease.comparison_id).exists():
            leases.skip(lease.key, voter)
            lease = leases.take(voter)
        leases.answer(lease.key, voter, Side.FIRST if lease.first.index % 2 else Side.SECOND, 0)
        wait_until_idle()


def steps_of(campaign: Campaign) -> list[int]:
    return list(campaign.chains.order_by("index").values_list("step", flat=True))


def reread(campaign: Campaign) -> Campaign:
    return Campaign.objects.get(pk=campaign.pk)


def test_no_chain_goes_past_the_warm_up_before_all_have_reached_its_end(researcher, idle_tasks):
    campaign = warming_campaign(researcher)
    decide(campaign, only=0)
    assert steps_of(campaign)[0] == W
    # Neither a hint too many nor the sweep opens the next step.
    [first, *_] = campaign.chains.order_by("index")
    dispatch.propose(first)
    sweep_everything()
    assert not first.comparisons.filter(step__gt=W).exists()
    assert first not in drawing.waiting_chains()
    assert not drawing.is_overdue(campaign)
    assert reread(campaign).walk_length is None

    decide(campaign, only=1)
    assert reread(campaign).walk_length is None
    campaign = voted_to_the_end(campaign)
    assert campaign.status == Campaign.Status.FINISHED
    assert campaign.walk_length in WARM_UP["grid"]
    assert steps_of(campaign) == [12] * 3
    opened = Comparison.objects.filter(chain__campaign=campaign)
    last_of_warm_up = max(opened.filter(step=W).values_list("decided_at", flat=True))
    assert min(opened.filter(step=W + 1).values_list("opened_at", flat=True)) >= last_of_warm_up


@pytest.fixture
def paused_at_its_end(researcher, idle_tasks) -> Campaign:
    """A campaign whose last step of the warm-up was decided by a vote that was out when it was paused."""
    campaign = warming_campaign(researcher)
    for index in (0, 1):
        decide(campaign, only=index)
    decide(campaign, until=W - 1)
    lease = leases.take(voter := Voter.objects.create(campaign=campaign))
    lifecycle.pause(campaign)
    leases.answer(lease.key, voter, Side.FIRST, 0)
    idle_tasks()
    assert steps_of(campaign) == [W] * 3
    return reread(campaign)


def test_what_no_hint_has_told_is_found_by_the_sweep(paused_at_its_end, idle_tasks):
    sweep_everything()
    assert reread(paused_at_its_end).walk_length is None
    lifecycle.resume(paused_at_its_end)
    sweep_everything()
    assert reread(paused_at_its_end).walk_length is not None
    assert Comparison.objects.filter(chain__campaign=paused_at_its_end, step=W + 1).count() == 3


def test_the_choice_is_made_once(researcher, idle_tasks):
    campaign = warming_campaign(researcher)
    decide(campaign)
    chosen = reread(campaign)
    Campaign.objects.filter(pk=campaign.pk).update(walk_length=1)
    tasks.choose_length(campaign.pk)
    with pytest.raises(lifecycle.NotPossible, match="over"):
        changes.end_warm_up(chosen)
    assert reread(campaign).walk_length == 1
    assert reread(campaign).tuning == chosen.tuning


def late(campaign: Campaign) -> None:
    """Let the campaign's past lie an hour further back."""
    hour = timedelta(hours=1)
    Campaign.objects.filter(pk=campaign.pk).update(started_at=timezone.now() - hour)
    Comparison.objects.filter(chain__campaign=campaign, verdict__isnull=False).update(decided_at=timezone.now() - hour)
    campaign.refresh_from_db()


def test_a_warm_up_that_nobody_finishes_can_be_ended(researcher, idle_tasks, tmp_path):
    campaign = warming_campaign(researcher)
    decide(campaign, only=0)
    with pytest.raises(lifecycle.NotPossible, match="for too long"):
        changes.end_warm_up(campaign)
    late(campaign)
    assert [chain.index for chain in late_chains(campaign)] == [1, 2]
    changes.end_warm_up(campaign)
    idle_tasks()
    campaign = reread(campaign)
    assert campaign.walk_length == 5
    # The chain that waited goes on; the late ones keep the grid up to the end of their own warm-up.
    assert Comparison.objects.filter(chain__campaign=campaign, step=W + 1).values_list("chain__index").get() == (0,)
    checked_export(campaign, tmp_path)
    voted_to_the_end(campaign)
    checked_export(campaign, tmp_path)
    record = sampler.read_record(tmp_path / "export.zip")
    tuning = record.documents["tuning.json"]
    assert (tuning["length"], tuning["because"]) == (5, "the warm-up was ended early")
    assert all((row["part_index"] != "") == (int(row["step"]) <= W) for row in record["steps"])


def test_chains_that_open_later_wait_for_the_choice_and_have_no_part_in_it(researcher, idle_tasks, tmp_path):
    campaign = warming_campaign(researcher, chains=2, max_chains=5)
    people = Voter.objects.bulk_create(Voter(campaign=campaign) for _ in range(5))
    # Each holds a pair, so for the last three a chain opens.
    first, other, *late = [leases.take(person) for person in people]
    assert sorted(lease.comparison.chain.index for lease in late) == [2, 3, 4]
    for lease, person in zip(late, people[2:], strict=True):
        leases.answer(lease.key, person, Side.FIRST, 0)
    for lease, person in zip((first, other), people, strict=False):
        leases.skip(lease.key, person)
    idle_tasks()
    for index in (2, 3):
        decide(campaign, only=index)
    assert steps_of(campaign)[2:4] == [W, W]
    assert not Comparison.objects.filter(chain__index__gte=2, step__gt=W).exists()
    assert reread(campaign).walk_length is None
    # The last one has a step of the warm-up left when the choice is made.
    for index in (0, 1):
        decide(campaign, only=index)
    campaign = reread(campaign)
    assert campaign.walk_length is not None
    assert steps_of(campaign)[4] < W
    assert sum(trial["steps"] for trial in campaign.tuning["trials"]) == 2 * W
    assert steps_of(voted_to_the_end(campaign)) == [12] * 5
    checked_export(campaign, tmp_path)
