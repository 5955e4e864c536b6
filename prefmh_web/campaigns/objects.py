"""An object of a campaign as a row, as the sampler's state, and as what presenters take.

An object that a chain makes is stored once, under the number of the step that proposed it, in the transaction that
opens the step. It is encoded before that transaction: that may take long, and locks are held for a short time only.

What is shown with an object, as the config says: further columns of its list; of a text that a model wrote, what it
was to work on, and the number of a scorer.

The numbers that scorers have given objects, where steps wait for these.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import OrderedDict
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import sampler
from prefmh_web.campaigns.frozen import decoder_of, space_of, started_campaign
from prefmh_web.campaigns.models import Campaign, Chain, Comparison, Score, State
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.objects import ObjectKind, StoredObject, media
from prefmh_web.objects.kind import Pixels
from sampler.judges import AnyPrompt, Context, ContextLine, Exhibit, named_in

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Decoded:
    """The image that a campaign's space makes of a code. Two are equal if they make the same one."""

    campaign_id: int
    code: str
    space: sampler.GeneratedImages = field(compare=False)

    def __call__(self) -> Pixels:
        return self.space.pixels(self.space.decode(self.code))


def stored(row: State) -> StoredObject:
    """Return a row as the presenters of objects take it."""
    picture, pixels = row.picture.name or "", None
    if not picture and _kind_of(row.campaign).medium == "picture":
        pixels = _Decoded(row.campaign_id, row.code, decoder_of(row.campaign))
    # Of a catalog's objects, which have a weight, the pictures are the researcher's own.
    told = _told(row)
    return StoredObject(row.content, picture, row.media_type, bool(picture) and row.weight is None, pixels, told)


def _told(row: State) -> tuple[tuple[str, str], ...]:
    """Return what scorers are told beside an object: what a text was to work on."""
    config = _config_of(row.campaign)
    if not isinstance(config.space, sampler.ServedTextsConfig) or not config.space.sources:
        return ()
    return (("prompt", config.space.source_of(row.place % config.chains_at_most)),)


class _Rows:
    """The rows of objects that models were asked about last: each mostly stands in a chain's next question, too."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, threading.Lock()
        self._rows: OrderedDict[tuple[int, Any, int], State] = OrderedDict()

    def of(self, campaign: Campaign, keys: Collection[int]) -> dict[int, State]:
        """Return rows of a started campaign by their keys; those that are not here are read together."""
        with self._lock:
            found = {key: row for key in keys if (row := self._rows.get((campaign.pk, campaign.started_at, key)))}
        if missing := set(keys) - set(found):
            found |= State.objects.in_bulk(missing)
        for row in found.values():
            row.campaign = campaign
        with self._lock:
            for key, row in found.items():
                self._rows[campaign.pk, campaign.started_at, key] = row
                self._rows.move_to_end((campaign.pk, campaign.started_at, key))
            while len(self._rows) > self._most:
                self._rows.popitem(last=False)
        return found


rows_of = _Rows(1_000).of
"""Return the rows of objects of a started campaign by their keys; what was asked for lately is remembered."""


def exhibit(
    row: State, endpoint: Endpoint, prompt: AnyPrompt | None = None, vision: sampler.Vision | None = None
) -> Exhibit:
    """Return an object as the model behind an endpoint gets it, with the columns of its list that are shown.

    Args:
        prompt: what it is shown in, for what is measured of the object where that names it.
        vision: how the judge is shown pictures; as they are if None.

    Raises:
        OSError: the file of its picture cannot be read.
        ValueError: what is in the file is no picture.
    """
    shown_with_it = context_of(row, _config_of(row.campaign))
    return exhibit_of(_kind_of(row.campaign), row, endpoint, shown_with_it, prompt, vision)


def exhibit_of(
    kind: ObjectKind,
    row: State,
    endpoint: Endpoint,
    context: Context,
    prompt: AnyPrompt | None = None,
    vision: sampler.Vision | None = None,
) -> Exhibit:
    """Do as `exhibit` does for another context than that of the campaign's setup."""
    object_, labels = stored(row), {line.label for line in context}
    named = [name for name in (() if prompt is None else named_in(prompt)) if name not in labels]
    measured = kind.measures(object_) if named else {}
    shown = kind.exhibit(object_, sees_pictures=bool(endpoint.can_images))
    return replace(
        sampler.shown_as(shown, vision),
        context=context,
        measures=tuple(ContextLine(name, _written(measured[name])) for name in named if name in measured),
    )


def _written(measure: float | str | None) -> str:
    if measure is None:
        return "none"
    # As in the paper's experiment on translation, where judges see an estimate of the quality.
    return f"{measure:.3f}" if isinstance(measure, float) else str(measure)


def _kind_of(campaign: Campaign) -> ObjectKind:
    # From memory where it can be: reading a config takes longer than all else here.
    return started_campaign(campaign).object_kind if campaign.started_at else campaign.object_kind


def _config_of(campaign: Campaign) -> sampler.ChainConfig:
    return started_campaign(campaign).config if campaign.started_at else campaign.config


def starting(campaign: Campaign, chain: int, state: Hashable) -> State:
    """Return the row of the state that a chain starts at; not saved yet if the chain has made it."""
    return _row(campaign, chain, 0, state)


def proposed(chain: Chain, drawn: sampler.Comparison[Any]) -> State:
    """Return the row of a step's proposal, not saved yet if it is new; the chain's head where it proposes to stay."""
    return chain.head if drawn.is_identity else _row(chain.campaign, chain.place, drawn.step, drawn.proposal)


def _row(campaign: Campaign, chain: int, step: int, state: Any) -> State:
    if not campaign.config.generates:
        return State.objects.get(campaign=campaign, place=state)
    space = space_of(campaign)
    return made(campaign, chain, step, space.encode(state), space.content(state))


def made(campaign: Campaign, chain: int, step: int, code: str, content: str) -> State:
    """Return the row of a state that a step of a chain makes, or its start, not saved yet."""
    config = campaign.config
    picture = ""
    if isinstance(config.space, sampler.ServedImagesConfig):
        # Rendered before the step is opened: see `proposals/pictures.py`.
        picture = media.rendered_name(campaign.pk, code)
    return State(
        campaign=campaign,
        place=sampler.state_number(chain, step, config.chains_at_most),
        content=content,
        code=code,
        picture=picture,
        media_type="image/png" if picture else "",
    )


NO_NUMBER_YET = "0.000"
"""For a number that will be there before anybody is asked: as long, for whoever counts the tokens of a prompt."""


def context_of(row: State, config: sampler.ChainConfig) -> Context:
    """Return what stands in the columns that a config shows, in their order, empty cells included."""
    if not config.context:
        # The columns are not read with a pair: without this each object would take one statement more.
        return ()
    if isinstance(config.space, sampler.ServedTextsConfig):
        cells = _of_a_written_text(row, config, config.space)
    else:
        cells = row.columns
    return tuple(ContextLine(shown.label, cells.get(shown.column, "")) for shown in config.context)


def contexts_by_content(campaign: Campaign, config: sampler.ChainConfig, *contents: str) -> tuple[Context, ...]:
    """Return what is shown with objects that somebody has written down; nothing with one that is not in the list."""
    if not config.context:
        return ((),) * len(contents)
    found = campaign.states.filter(content__in=contents).only("content", "columns", "place")
    rows = {row.content: row for row in found}
    return tuple(context_of(rows[content], config) if content in rows else () for content in contents)


def _of_a_written_text(row: State, config: sampler.ChainConfig, space: sampler.ServedTextsConfig) -> dict[str, str]:
    # Its number says whose it is: see `sampler.state_number`.
    cells = {"source": space.source_of(row.place % config.chains_at_most)}
    if config.estimate:
        number = None
        if row.pk is not None:
            found = Score.objects.filter(state=row, scorer__name=config.estimate)
            number = found.values_list("value", flat=True).first()
        # Three decimals, as the paper's judges of translations see it.
        cells["estimate"] = NO_NUMBER_YET if number is None else f"{number:.3f}"
    return cells


def scores_of(campaign: Campaign, states: Collection[int]) -> dict[int, Mapping[str, float]]:
    """Return the numbers of the config's scorers for some objects, by their keys; of each those that it has."""
    scorers = started_campaign(campaign).config.awaited_scorers
    found = Score.objects.filter(
        state__in=states, scorer__campaign=campaign, scorer__name__in=scorers, value__isnull=False
    )
    given: dict[int, dict[str, float]] = {key: {} for key in states}
    for state, scorer, value in found.values_list("state_id", "scorer__name", "value"):
        if value is not None:
            given[state][scorer] = value
    return dict(given)


def may_be_judged(comparison: Comparison) -> bool:
    """Return whether judges may be asked: the estimates that they are shown are there, if they are shown any."""
    campaign = comparison.chain.campaign
    if not started_campaign(campaign).config.estimate:
        return True
    pair = (comparison.current_id, comparison.proposal_id)
    return all(scores_of(campaign, pair).values())


def numbers_of(campaign: Campaign, state: State) -> dict[str, float]:
    """Return the numbers that are measured of an object, by name; none where it cannot be measured."""
    try:
        found = campaign.object_kind.measures(stored(state))
    except (OSError, ValueError) as error:
        # Its picture is not to be had: it has no numbers, and nobody tries again and again.
        logger.warning("an object cannot be measured: %s", error, extra={"campaign": campaign.pk})
        return {}
    return {name: value for name, value in found.items() if isinstance(value, int | float) and math.isfinite(value)}
