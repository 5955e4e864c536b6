"""An object of a campaign as a row, as the sampler's state, and as what presenters take.

An object that a chain makes is stored once, under the number of the step that proposed it, in the transaction that
opens the step. It is encoded before that transaction: that may take long, and locks are held for a short time only.

What is shown with an object, as the config says: further columns of its list; of a text that a model wrote, what it
was to work on, and the number of a scorer.

The two objects that a person chooses from, as templates show them.

The numbers that scorers have given objects, where steps wait for these.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.template.loader import render_to_string
from django.utils.translation import gettext_lazy as _

import sampler
from prefmh_web.campaigns.frozen import decoder_of, space_of, started_campaign
from prefmh_web.campaigns.models import Campaign, Chain, Comparison, Lease, Score, Side, State
from prefmh_web.config import CampaignConfig, OwnPair, questions_of
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.objects import ObjectKind, StoredObject, media
from prefmh_web.objects.kind import Pixels
from sampler.judges import Context, ContextLine, Prompt, SharedContext, ShownObject, shared_context

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise

logger = logging.getLogger(__name__)

NO_CONTEXT = SharedContext((), ((), ()))
NAMES = {Side.FIRST: _("Object 1"), Side.SECOND: _("Object 2")}
"""What each object of a pair is called, in whatever layout."""
MARKS = {Side.FIRST: "1", Side.SECOND: "2"}
_LONGEST_SHORT = 80


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
    return (("prompt", config.space.source_of(row.index % config.chains_at_most)),)


# Of objects that models were asked about last, by campaign and key: each mostly stands in a chain's next question, too.
_rows: dict[tuple[int, Any, int], State] = {}
_MAX_ROWS = 1_000


def rows_of(campaign: Campaign, keys: Collection[int]) -> dict[int, State]:
    """Return the rows of objects of a started campaign by their keys; those not asked for lately are read together."""
    begun = campaign.pk, campaign.started_at
    found = {key: row for key in keys if (row := _rows.pop((*begun, key), None))}
    found |= State.objects.in_bulk(set(keys) - set(found))
    for key, row in found.items():
        row.campaign = campaign
        _rows[*begun, key] = row
    for oldest in list(_rows)[:-_MAX_ROWS]:
        _rows.pop(oldest, None)
    return found


def shown_object(
    row: State,
    endpoint: Endpoint,
    prompt: Prompt | None = None,
    vision: sampler.Vision | None = None,
    context: Context | None = None,
) -> ShownObject:
    """Return an object as the model behind an endpoint gets it, with the columns of its list that are shown.

    Args:
        prompt: what it is shown in, for what is measured of the object where that names it.
        vision: how the judge is shown pictures; as they are if None.
        context: what is shown with it; None for what the campaign's setup says.

    Raises:
        OSError: the file of its picture cannot be read.
        ValueError: what is in the file is no picture.
    """
    kind = _kind_of(row.campaign)
    context = context_of(row, _config_of(row.campaign)) if context is None else context
    object_, labels = stored(row), {line.label for line in context}
    named = [name for name in (() if prompt is None else prompt.measures) if name not in labels]
    measured = kind.measures(object_) if named else {}
    return replace(
        sampler.shown_as(kind.shown_object(object_, sees_pictures=bool(endpoint.can_images)), vision),
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


def _config_of(campaign: Campaign) -> CampaignConfig:
    return started_campaign(campaign).config if campaign.started_at else campaign.config


def starting(campaign: Campaign, chain: int, state: Hashable) -> State:
    """Return the row of the state that a chain starts at; not saved yet if the chain has made it."""
    return _row(campaign, chain, 0, state)


def proposed(chain: Chain, drawn: sampler.Comparison[Any]) -> State:
    """Return the row of a step's proposal, not saved yet if it is new; the chain's head where it proposes to stay."""
    return chain.head if drawn.is_identity else _row(chain.campaign, chain.index, drawn.step, drawn.proposal)


def _row(campaign: Campaign, chain: int, step: int, state: Any) -> State:
    if not campaign.config.generates:
        return State.objects.get(campaign=campaign, index=state)
    space = space_of(campaign)
    return made(campaign, chain, step, space.encode(state), space.content(state))


def made(campaign: Campaign, chain: int, step: int, code: str, content: str) -> State:
    """Return the row of a state that a step of a chain makes, or its start, not saved yet."""
    config = campaign.config
    picture = ""
    if isinstance(config.space, sampler.ServedImagesConfig):
        # Rendered before the step is opened: see `proposals/drawing.py`.
        picture = media.rendered_name(campaign.pk, code)
    return State(
        campaign=campaign,
        index=sampler.state_number(chain, step, config.chains_at_most),
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


@dataclass(frozen=True)
class Pair:
    """A pair on a page: its question, and the objects as they stand, each with its columns that are shown. The objects
    are rows of the campaign, or the researcher's own.
    """

    question: str
    first: State | StoredObject
    second: State | StoredObject
    of_first: Context = ()
    of_second: Context = ()

    def swapped(self) -> Pair:
        """Return the pair with the objects in each other's place."""
        return Pair(self.question, self.second, self.first, self.of_second, self.of_first)

    def stored(self, side: Side) -> tuple[StoredObject, StoredObject]:
        """Return the object of a side as presenters take it, and the one beside it."""
        sides = (self.first, self.second) if side == Side.FIRST else (self.second, self.first)
        shown, other = (each if isinstance(each, StoredObject) else stored(each) for each in sides)
        return shown, other


def leased_pair(lease: Lease, campaign: Campaign, question: str = "") -> Pair:
    """Return the pair of a lease of a started campaign.

    Args:
        question: what stands above it; empty for that of its judge.
    """
    started, rows = started_campaign(campaign), (lease.first, lease.second)
    contexts = (context_of(row, started.config) for row in rows) if started.config.context else ()
    return Pair(question or started.judge(lease.judge_id).question, *rows, *contexts)


def own_pair(pair: OwnPair, campaign: Campaign) -> Pair:
    """Return a pair that the researcher has written down. What is shown with its objects is that of the same ones in
    the campaign's list; nothing with those that are not there.
    """
    config, contents = _config_of(campaign), (pair.first, pair.second)
    contexts: tuple[Context, ...] = ()
    if config.context:
        found = campaign.states.filter(content__in=contents).only("content", "columns", "index")
        rows = {row.content: row for row in found}
        contexts = tuple(context_of(rows[content], config) if content in rows else () for content in contents)
    question = questions_of(config)[pair.question - 1]
    return Pair(question, StoredObject(pair.first), StoredObject(pair.second), *contexts)


@dataclass(frozen=True)
class Option:
    """One of the two objects to choose from, and what its kind's template shows of it."""

    kind: str
    side: Side
    content: str
    shown: Mapping[str, Any]
    address: StrPromise | str
    """Where its picture is, for the kinds that have one: worked out only if the template shows it."""
    own: Context | None = None
    """What columns of the list say of this object and not of the other one; None where none does."""
    is_short: bool = False
    """True where both objects are short texts: by the longer one, so that the size of the type tells nothing."""

    @property
    def name(self) -> StrPromise:
        """What the object is called."""
        return NAMES[self.side]

    @property
    def mark(self) -> str:
        """What stands on the object, and the key that chooses it."""
        return MARKS[self.side]

    @cached_property
    def html(self) -> str:
        """The object, as the template of its kind shows it."""
        return render_to_string(f"objects/{self.kind}/option.html", {"option": self.shown, "address": self.address})


Address = Callable[[Side], "StrPromise | str"]
"""Returns where the picture of a side is."""


def options_of(
    kind: ObjectKind, first: str, second: str, address: Address, context: SharedContext = NO_CONTEXT
) -> tuple[Option, Option]:
    """Return two objects by their contents, in the order of the document, with what is shown with them."""
    of_first, of_second = kind.options(first, second)
    own_of_first, own_of_second = context.own if any(context.own) else (None, None)
    is_short = max(len(first), len(second)) <= _LONGEST_SHORT
    return (
        Option(kind.name, Side.FIRST, first, of_first, address(Side.FIRST), own_of_first, is_short),
        Option(kind.name, Side.SECOND, second, of_second, address(Side.SECOND), own_of_second, is_short),
    )


def shown(pair: Pair, campaign: Campaign, address: Address) -> dict[str, Any]:
    """Return what templates show of a pair: its question, the kind of the objects, both of them, what stands above
    them, and how they stand.
    """
    kind = _kind_of(campaign)
    around = shared_context(pair.of_first, pair.of_second) if pair.of_first or pair.of_second else NO_CONTEXT
    options = options_of(kind, pair.first.content, pair.second.content, address, around)
    of_pair = {"question": pair.question, "kind": kind, "options": options, "context": around.shared}
    return of_pair | _config_of(campaign).shown_as


def _of_a_written_text(row: State, config: sampler.ChainConfig, space: sampler.ServedTextsConfig) -> dict[str, str]:
    # Its number says whose it is: see `sampler.state_number`.
    cells = {"source": space.source_of(row.index % config.chains_at_most)}
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
    scorers = started_campaign(campaign).config.needed_scorers
    found = Score.objects.filter(state__in=states, scorer__campaign=campaign, scorer__name__in=scorers)
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
