"""The researcher's own pairs beside the campaign's objects and questions: do they fit, and which objects are states."""

from __future__ import annotations

from collections.abc import Sequence

import sampler
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Campaign
from prefmh_web.participants.protocol import OwnPair, Protocol


def questions_of(config: sampler.ChainConfig) -> Sequence[str]:
    """Return the questions that people answer, each once, in their order."""
    asked = [judge.question for judge in config.judges if not isinstance(judge.source, sampler.ModelSource)]
    return tuple(dict.fromkeys(asked))


def question_of(pair: OwnPair, config: sampler.ChainConfig) -> str:
    """Return the question that stands above a pair."""
    return questions_of(config)[pair.question - 1]


def demand_fit(protocol: Protocol, campaign: Campaign) -> None:
    """Demand that a campaign can show the protocol's pairs.

    Raises:
        NotPossible: an object is not one of its kind, or a question is missing; the message says which.
    """
    if not protocol.own_pairs:
        return
    config = campaign.config
    kind, questions = sampler.OBJECT_KINDS[config.space.objects], questions_of(config)
    for pair in protocol.own_pairs:
        if pair.question > len(questions):
            raise NotPossible(
                f"A practice or gold pair of the protocol is shown under question {pair.question}, and people answer "
                f"{len(questions)}. Choose another question on the page “Protocol”."
            )
        for content in (pair.first, pair.second):
            try:
                kind.written(content)
            except ValueError as reason:
                raise NotPossible(
                    f"A practice or gold pair of the protocol does not fit the campaign's objects: {reason}. Change "
                    "it on the page “Protocol”, or take it out."
                ) from reason


def states_among(protocol: Protocol, campaign: Campaign) -> Sequence[str] | None:
    """Return the states of the campaign's space that look like an object of the protocol's pairs: feedback on them
    teaches the judge. None where that is not known, because the chains make their objects.
    """
    if campaign.config.generates:
        return None
    contents = {sampler.shown_alike(content) for pair in protocol.own_pairs for content in (pair.first, pair.second)}
    states = campaign.states.values_list("content", flat=True) if contents else ()
    return sorted(content for content in states if sampler.shown_alike(content) in contents)
