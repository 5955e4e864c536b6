"""Whose requests count against whose cap: a campaign's own, those of others, of tries, and what is under way."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import usage
from prefmh_web.campaigns.models import Campaign, ChainOnDemand, Comparison, JudgeTrial, ModelUsage, Turn, Voter
from prefmh_web.endpoints.models import Endpoint
from tests.flows.test_model_costs import by_model, draft
from tests.support.campaigns import make_campaign, make_config

CAP = 10
# What has been used or set aside in each test: one more request fits beside it, and two do not.
TAKEN = 9


@pytest.fixture
def endpoint(researcher) -> Endpoint:
    return Endpoint.objects.create(owner=researcher, name="A model", base_url="http://model.test/v1", model="tiny")


@pytest.fixture
def capped(researcher, endpoint) -> Campaign:
    return draft(researcher, by_model(), request_cap=CAP)


@pytest.fixture
def free(researcher, endpoint) -> Campaign:
    return draft(researcher, by_model())


def tried(campaign: Campaign, **fields) -> None:
    JudgeTrial.objects.create(
        campaign=campaign, judge_index=0, judge={}, prompt_version="1", wanted=1, replies=1, **fields
    )


def room_for(campaign: Campaign, endpoint: Endpoint) -> int:
    """Return how many votes of one request each may be asked for, of three that are wanted."""
    has_cap = campaign.request_cap is not None
    found = usage.reserve(campaign, 0, endpoint, 3, lambda count: count, has_cap=has_cap)
    return found.count if found else 0


def test_what_a_campaign_has_used_counts_for_itself_and_for_the_site(capped, free, endpoint, settings):
    ModelUsage.objects.create(campaign=capped, judge_index=0, requests=TAKEN)
    assert (room_for(capped, endpoint), room_for(free, endpoint)) == (1, 3)
    settings.MODEL_CAP_REQUESTS = CAP
    assert room_for(free, endpoint) == 1
    assert "MODEL_CAP_REQUESTS" in usage.why_reached(free, 0, endpoint, 2)
    # A campaign that is deleted gives nothing back.
    lifecycle.discard(capped)
    assert room_for(free, endpoint) == 1


def test_what_a_try_under_way_may_come_to_counts_for_the_site_alone(capped, free, endpoint, settings):
    tried(capped, status=JudgeTrial.Status.ASKING, reserved_requests=TAKEN)
    assert room_for(capped, endpoint) == 3
    settings.MODEL_CAP_REQUESTS = CAP
    assert room_for(free, endpoint) == 1
    # It only waits: nothing has been used, so nothing is stopped.
    assert usage.why_reached(free, 0, endpoint, CAP) == ""


def test_turns_under_way_count_for_their_campaign_and_for_the_site(researcher, endpoint, free, settings):
    asks = make_campaign(researcher, config=make_config(judges=[{"question": "Which is darker?", "votes": 1}]))
    Campaign.objects.filter(pk=asks.pk).update(request_cap=CAP)
    asks.refresh_from_db()
    opened = Comparison.objects.filter(chain__campaign=asks).first()
    until = timezone.now() + timedelta(minutes=1)
    turn = Turn.objects.create(
        comparison=opened, judge=asks.judges.get(), asked=1, until=until, reserved_requests=TAKEN
    )
    assert (room_for(asks, endpoint), room_for(free, endpoint)) == (1, 3)
    settings.MODEL_CAP_REQUESTS = CAP
    assert room_for(free, endpoint) == 1
    # Whoever asked has died: what was on its way may have been answered, and whoever claims the turn anew charges it.
    Turn.objects.filter(pk=turn.pk).update(until=timezone.now())
    assert (room_for(asks, endpoint), room_for(free, endpoint)) == (1, 1)
    assert usage.why_reached(asks, 0, endpoint, 2)
    turn.refresh_from_db()
    usage.note_lost(asks.pk, 0, turn)
    assert (room_for(asks, endpoint), room_for(free, endpoint)) == (1, 1)


def test_under_a_cap_in_money_as_much_is_set_aside_as_the_dearest_request_so_far_has_cost(researcher, endpoint):
    Endpoint.objects.filter(pk=endpoint.pk).update(input_price=2.0, output_price=10.0)
    endpoint.refresh_from_db()
    campaign = draft(researcher, by_model(), cost_cap=Decimal("0.05"))
    # At the prices above, the dearest request so far took a cent.
    dearest = {"max_tokens_in": 4_000, "max_tokens_out": 200}
    ModelUsage.objects.create(campaign=campaign, judge_index=0, requests=2, cost=0.02, **dearest)
    found = usage.reserve(campaign, 0, endpoint, 5, lambda count: count, has_cap=True)
    assert (found.count, found.requests, found.cost) == (3, 3, pytest.approx(0.03))


@pytest.mark.parametrize(("others", "fit"), [(0, 1), (1, 0)])
def test_starts_that_are_being_written_count(researcher, endpoint, others, fit):
    """A text takes two requests, and the cap leaves room for one text."""
    space = {"kind": "model-texts", "model": "A model", "prompts": ["Write about the sea."], "limit": 8}
    campaign = draft(researcher, {"question": "Which is darker?", "votes": 1})
    config = campaign.config_data | {"space": space, "kernel": {"kind": "independent"}}
    Campaign.objects.filter(pk=campaign.pk).update(config_data=config, request_cap=3)
    campaign = Campaign.objects.get(pk=campaign.pk)
    claimed = timezone.now() + timedelta(minutes=1)
    for index in range(1 + others):
        voter = Voter.objects.create(campaign=campaign)
        ChainOnDemand.objects.create(campaign=campaign, voter=voter, index=index, claimed_until=claimed)
    assert usage.texts_that_fit(campaign, 1) == fit
