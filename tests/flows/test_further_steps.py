"""Votes saved by early stopping go into further steps: people come, skip, let their time run out, answer too late and
leave, and the campaign opens rounds until the next one does not fit, and then ends by itself.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from prefmh_web.annotate.tasks import settle_parts
from prefmh_web.campaigns.models import Annotator, Campaign, Comparison, Lease, Vote
from prefmh_web.participants import budget
from prefmh_web.participants.models import Check, Participation
from tests.flows.test_budget import CODES, PROTOCOL, TEXTS, Crowd
from tests.support.record import assert_record_is_whole, assert_replay_passes, export_to, table
from tests.support.recruited import recruited_campaign
from tests.support.stack import make_recipe

CHAINS, STEPS, FURTHER, N = 3, 8, 1, 3
SEATS = 9
VOTES = CHAINS * STEPS * N
# A quarter of the votes is followed by a trial.
FITS = VOTES + VOTES // 4


def recipe_with(**changes: object) -> dict:
    return make_recipe(
        space={"kind": "catalog", "objects": "texts", "neighbours": 5},
        kernel={"kind": "neighbours"},
        judges=[{"question": "Which is darker?", "budget": N}],
        chains=CHAINS,
        steps=STEPS,
        further_steps=FURTHER,
        **changes,
    )


@pytest.fixture
def study(django_db_reset_sequences, researcher):
    """Return a function that makes a started study whose saved votes go into further steps."""

    def make(most: int = FITS, protocol: dict | None = None, recipe: dict | None = None, **options) -> Campaign:
        return recruited_campaign(
            researcher,
            file=TEXTS,
            recipe=recipe or recipe_with(),
            protocol=PROTOCOL if protocol is None else protocol,
            codes=CODES,
            most_minutes=60,
            places=1000,
            budget=most,
            **options,
        )

    return make


def lengths_of(campaign: Campaign) -> list[int]:
    return list(campaign.chains.order_by("place").values_list("length", flat=True))


def assert_the_next_round_does_not_fit(campaign: Campaign) -> None:
    rounds = campaign.parsed_recipe.rounds
    number, chains = campaign.rounds.count() + 1, campaign.chains.count()
    votes = rounds.votes_at_most(number, chains, campaign.chains.filter(ended_at=None).count())
    shares = sum(PROTOCOL[name] for name in ("check_share", "repeat_share"))
    out = Check.objects.exclude(answered_at__isnull=False, chosen_side="").count()
    given = Vote.objects.filter(annotator__campaign=campaign).count() + out
    left = budget.terms_of(campaign).budget - given
    assert left < votes * (1 + shares) or number > rounds.most


def test_saved_votes_go_into_rounds_until_the_next_one_does_not_fit(study, tmp_path):
    campaign = study()
    crowd = Crowd(campaign, SEATS)
    crowd.run()
    assert campaign.status == Campaign.Status.FINISHED
    rounds = list(campaign.rounds.all())
    assert [each.number for each in rounds] == list(range(1, len(rounds) + 1))
    assert rounds, budget.spent(campaign)
    assert set(lengths_of(campaign)) == {STEPS + FURTHER * len(rounds)}
    assert set(campaign.chains.values_list("step", flat=True)) == set(lengths_of(campaign))
    assert budget.spent(campaign).answers <= FITS
    assert_the_next_round_does_not_fit(campaign)
    assert not Comparison.objects.filter(verdict=None).exists()
    assert not Lease.objects.filter(ended_at=None).exists()
    Annotator.objects.update(joined_at=timezone.now() - timedelta(minutes=61), online_until=None)
    settle_parts()
    parts = Participation.objects.all()
    assert len(parts) == crowd.arrived
    assert all(part.outcome and part.code == CODES[part.outcome] for part in parts)
    assert_record_is_whole(campaign)
    path = export_to(campaign, tmp_path)
    assert_replay_passes(path)
    phases = {(int(row["step"]) > STEPS): row["phase"] for row in table(path, "samples.csv")}
    assert phases == {False: "sampling", True: "beyond"}
    assert [int(row["round"]) for row in table(path, "rounds.csv")] == [each.number for each in rounds]
