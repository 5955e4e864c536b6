"""What a model thought before a vote, kept beside the vote where its judge's setting says so.

It comes from the server's own field for it. A reply with words beside its label is no answer at all, so no vote has
such words. A reason is for people to read: nothing is computed from it, and it is never read as the answer.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import sampler
from prefmh_web.campaigns.models import Judge, Vote, VoteReason

LONGEST = 2_000
"""Characters that are kept of one."""


def are_kept(config: sampler.ChainConfig, place: int) -> bool:
    """Say whether the reasons of a config's judge are kept."""
    source = config.judges[place].source
    return isinstance(source, sampler.ModelSource) and source.reasons


@contextmanager
def kept(judge: Judge, thoughts: Mapping[uuid.UUID, str]) -> Iterator[None]:
    """Keep the reasons of votes that are cast in this block, under their comparison's lock, in its transaction.

    Args:
        thoughts: by the vote's key; the empty ones are left out, and those of votes that were stored before: these
            votes came from other replies.
    """
    found = {key: text for key, text in thoughts.items() if text}
    before = set(_keys(found)) if found else set()
    yield
    new = found.keys() - before
    votes = Vote.objects.filter(key__in=new).values_list("pk", "key") if new else ()
    VoteReason.objects.bulk_create(
        VoteReason(vote_id=pk, judge=judge, text=found[key][:LONGEST], is_cut=len(found[key]) > LONGEST)
        for pk, key in votes
    )


def _keys(found: Mapping[uuid.UUID, str]) -> Iterator[uuid.UUID]:
    yield from Vote.objects.filter(key__in=list(found)).values_list("key", flat=True)
