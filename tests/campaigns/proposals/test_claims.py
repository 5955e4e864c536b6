"""Claims on chains: one holder at a time, kept while it lives and no longer."""

from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from prefmh_web.campaigns.engine import claims
from prefmh_web.campaigns.models import Chain
from prefmh_web.campaigns.proposals import drawing

PURPOSES = ("waits_until", "prefetches_until")


@pytest.fixture
def chains(campaign) -> list[Chain]:
    return list(campaign.chains.all())


@pytest.mark.parametrize("theirs", PURPOSES)
@pytest.mark.parametrize("mine", PURPOSES)
def test_one_holder_at_a_time_whatever_for(chains, mine, theirs):
    with drawing.claimed(mine, chains[:2]) as first, drawing.claimed(theirs, chains) as second:
        assert (first, second) == ([chains[0].pk, chains[1].pk], [chains[2].pk])
        assert Chain.objects.filter(drawing.are_claimed()).count() == 3
    assert Chain.objects.filter(drawing.are_free()).count() == 3


def test_a_chain_that_has_moved_is_not_claimed(chains):
    Chain.objects.filter(pk=chains[0].pk).update(step=F("step") + 1)
    with drawing.claimed("waits_until", chains) as mine:
        assert mine == [chains[1].pk, chains[2].pk]


def test_a_claim_ends_a_rest_that_is_over_and_nobody_claims_one_that_is_not(chains):
    Chain.objects.update(waits_because="no memory", waits_until=timezone.now())
    Chain.objects.filter(pk=chains[0].pk).update(waits_until=timezone.now() + timedelta(minutes=1))
    with drawing.claimed("waits_until", chains) as mine:
        assert mine == [chains[1].pk, chains[2].pk]
        assert not Chain.objects.filter(pk__in=mine).exclude(waits_because="").exists()


def test_what_a_dead_holder_had_is_free_after_a_while_and_not_freed_again_by_it(chains, eventually, monkeypatch):
    monkeypatch.setattr(claims, "CLAIM_S", 0.5)
    # Who is dead renews nothing.
    monkeypatch.setattr(claims, "RENEW_EVERY_S", 3600)
    dead = drawing.claimed("prefetches_until", chains)
    dead.__enter__()
    eventually(lambda: Chain.objects.filter(drawing.are_free()).count() == 3)
    monkeypatch.undo()
    with drawing.claimed("prefetches_until", chains) as mine:
        assert len(mine) == 3
        dead.__exit__(None, None, None)
        assert Chain.objects.filter(drawing.are_claimed()).count() == 3


@pytest.mark.parametrize("purpose", PURPOSES)
def test_a_holder_that_works_for_long_keeps_its_chains(chains, eventually, monkeypatch, purpose):
    monkeypatch.setattr(claims, "RENEW_EVERY_S", 0.05)
    with drawing.claimed(purpose, chains):
        at_first = timezone.now() + timedelta(seconds=claims.CLAIM_S)
        eventually(lambda: Chain.objects.filter(**{f"{purpose}__gt": at_first}).count() == 3)
        # What the holder gives up meanwhile is renewed no more.
        Chain.objects.filter(pk=chains[0].pk).update(**{purpose: None})
        later = timezone.now() + timedelta(seconds=claims.CLAIM_S)
        eventually(lambda: Chain.objects.filter(**{f"{purpose}__gt": later}).count() == 2)
    assert Chain.objects.filter(drawing.are_free()).count() == 3
