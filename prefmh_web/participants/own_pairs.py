"""The researcher's own pairs beside the campaign's objects and questions: do they fit, and which objects are states."""

from __future__ import annotations

from collections.abc import Sequence

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.config import OwnPair, Protocol
from prefmh_web.config.misfits import questions_of


def question_of(pair: OwnPair, config: sampler.ChainConfig) -> str:
    """Return the question that stands above a pair."""
    return questions_of(config)[pair.question - 1]


def states_among(protocol: Protocol, campaign: Campaign) -> Sequence[str] | None:
    """Return the states of the campaign's space that look like an object of the protocol's pairs: feedback on them
    teaches the judge. None where that is not known, because the chains make their objects.
    """
    if campaign.config.generates:
        return None
    contents = {sampler.shown_alike(content) for pair in protocol.own_pairs for content in (pair.first, pair.second)}
    states = campaign.states.values_list("content", flat=True) if contents else ()
    return sorted(content for content in states if sampler.shown_alike(content) in contents)
