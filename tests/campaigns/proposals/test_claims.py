"""Claims on chains: one holder at a time, kept while it lives and no longer."""

from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from prefmh_web.campaigns.engine import locks
from prefmh_web.campaigns.models import Chain
from prefmh_web.campaigns.proposals import drawing


@pytest.fixture
def chains(campaign) -> list[Chain]:
    return list(campaign.chains.all())


def test_one_holder_at_a_time_whatever_for(chains):
    with drawing.claimed(chains[:2], texts=1) as first, drawing.claimed(chains, texts=2) as second:
        assert (first, second) == ([chains[0].pk, chains[1].pk], [chains[2].pk])
        assert Chain.objects.filter(drawing.are_claimed()).count() == 3
    assert Chain.objects.filter(locks.unclaimed()).count() == 3


def test_a_chain_that_has_moved_is_not_claimed(chains):
    Chain.objects.filter(pk=chains[0].pk).update(step=F("step") + 1)
    with drawing.claimed(chains, texts=1) as mine:
        assert mine == [chains[1].pk, chains[2].pk]


def test_what_a_dead_holder_had_is_free_after_a_while_and_not_freed_again_by_it(chains, eventually, monkeypatch):
    monkeypatch.setattr(locks, "CLAIM_S", 0.5)
    # Who is dead renews nothing.
    monkeypatch.setattr(locks, "RENEW_EVERY_S", 3600)
    dead = drawing.claimed(chains, texts=2)
    dead.__enter__()
    eventually(lambda: Chain.objects.filter(locks.unclaimed()).count() == 3)
    monkeypatch.undo()
    with drawing.claimed(Chain.objects.all(), texts=2) as mine:
        assert len(mine) == 3
        dead.__exit__(None, None, None)
        assert Chain.objects.filter(drawing.are_claimed()).count() == 3


def test_a_holder_that_works_for_long_keeps_its_chains(chains, eventually, monkeypatch):
    monkeypatch.setattr(locks, "RENEW_EVERY_S", 0.05)
    with drawing.claimed(chains, texts=1):
        at_first = timezone.now() + timedelta(seconds=locks.CLAIM_S)
        eventually(lambda: Chain.objects.filter(claimed_until__gt=at_first).count() == 3)
        # What the holder gives up meanwhile is renewed no more.
        Chain.objects.filter(pk=chains[0].pk).update(claimed_until=None)
        later = timezone.now() + timedelta(seconds=locks.CLAIM_S)
        eventually(lambda: Chain.objects.filter(claimed_until__gt=later).count() == 2)
    assert Chain.objects.filter(locks.unclaimed()).count() == 3


def test_a_claim_ends_a_rest_that_is_over_and_nobody_claims_one_that_is_not(chains):
    Chain.objects.update(waits_because="no memory", claimed_until=timezone.now())
    Chain.objects.filter(pk=chains[0].pk).update(claimed_until=timezone.now() + timedelta(minutes=1))
    chains = list(Chain.objects.order_by("index"))
    with drawing.claimed(chains, texts=1) as mine:
        assert mine == [chains[1].pk, chains[2].pk]
        assert not Chain.objects.filter(pk__in=mine).exclude(waits_because="").exists()
