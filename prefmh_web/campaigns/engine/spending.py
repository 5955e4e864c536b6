"""What asking models takes, counted by campaign and judge. The only place where that is written.

    counted     calls that are made in a block are counted at its end, whether they go well or not
    record      what a tally holds, in the transaction that stores the outcome, if there is one
    note_repeated    answers that somebody claimed and never ended, in the transaction that claims them again
    note_repeated_start    what a start has sent that died with its process, by whoever begins it again

A count is added in one statement that reads nothing first, so no two workers lose one another's. It is written once the
outcome is there: a worker that dies loses at most the count of what it had under way.

A claim is stored before the first request that it is for, and ended in the transaction that stores what came, or after
it. So what was sent and never stored is under a claim that nobody has ended, and is asked for again by whoever takes
that claim over: the numbers that are noted there bound the repeated requests from above. Of a vote or a rating at most
one request is under way at a time; of a text at most `REQUESTS_OF_A_FIRST_TEXT` were sent, its prompt's among them.
What a campaign's start sends is under no claim: only who knows that a start has died can note it, as the command of an
experiment does, which makes its starts itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from django.db import connection
from django.db.models import F

import sampler
from prefmh_web.campaigns.models import Campaign, ModelUsage
from prefmh_web.endpoints import accounting
from prefmh_web.endpoints.accounting import Tally

PROPOSALS = ModelUsage.PROPOSALS
# llama.cpp applies the template first, then makes tokens of it.
REQUESTS_OF_A_PROMPT = 2
# Its tokens are drawn, then turned into words; and its prompt is turned into tokens the first time.
REQUESTS_OF_A_FIRST_TEXT = 2 + REQUESTS_OF_A_PROMPT
_SUMS = ("requests", "failed", "unreadable", "unpriced", "tokens_in", "tokens_out", "seconds", "cost")
_LARGEST = ("most_tokens_in", "most_tokens_out")
_TABLE = ModelUsage._meta.db_table
_CHANGES = [
    *(f"{name} = {_TABLE}.{name} + excluded.{name}" for name in _SUMS),
    # SQLite knows no GREATEST.
    *(
        f"{name} = CASE WHEN {_TABLE}.{name} > excluded.{name} THEN {_TABLE}.{name} ELSE excluded.{name} END"
        for name in _LARGEST
    ),
]
# Found by model_usage_once_per_judge. Nothing is written for a draft that was deleted meanwhile.
_ADD = f"""
    INSERT INTO {_TABLE} (campaign_id, place, {", ".join((*_SUMS, *_LARGEST))})
    SELECT id, {", ".join(["%s"] * (1 + len(_SUMS) + len(_LARGEST)))} FROM campaigns_campaign WHERE id = %s
    ON CONFLICT (campaign_id, place) DO UPDATE SET {", ".join(_CHANGES)}
"""


def record(campaign_id: int, place: int, tally: Tally) -> None:
    """Add to what a judge of a campaign has taken.

    Args:
        place: the judge's, or `PROPOSALS`.
    """
    if not tally.requests:
        return
    counts = asdict(tally)
    with connection.cursor() as cursor:
        cursor.execute(_ADD, [place, *(counts[name] for name in (*_SUMS, *_LARGEST)), campaign_id])


def note_repeated(campaign_id: int, place: int, requests: int) -> None:
    """Add requests that may have been lost with whoever had claimed them, and that are made again now."""
    if not requests:
        return
    ModelUsage.objects.get_or_create(campaign_id=campaign_id, place=place)
    ModelUsage.objects.filter(campaign_id=campaign_id, place=place).update(repeated=F("repeated") + requests)


def note_repeated_start(campaign: Campaign) -> None:
    """Add the most requests that a start has sent which died, and which is begun again: for each chain a text, for each
    prompt its tokens, for each judge a trial.
    """
    config = campaign.config
    if isinstance(config.space, sampler.ServedTextsConfig):
        prompts = len(config.space.prompts)
        # Prompts without a chain are read as well.
        texts = REQUESTS_OF_A_FIRST_TEXT * config.chains + REQUESTS_OF_A_PROMPT * max(0, prompts - config.chains)
        note_repeated(campaign.pk, PROPOSALS, texts)
    for place, judge in enumerate(config.judges):
        note_repeated(campaign.pk, place, int(isinstance(judge.source, sampler.ModelSource)))


@contextmanager
def counted(campaign_id: int, place: int) -> Iterator[None]:
    """Count all calls that are made in this block, for a judge of a campaign or for its `PROPOSALS`."""
    with accounting.tallied() as tally:
        try:
            yield
        finally:
            record(campaign_id, place, tally)
