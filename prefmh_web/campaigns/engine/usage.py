"""What asking models takes: how far it may go, under a campaign's caps and the site's, and what it has come to.

Nothing else writes either.

    reserve          how many votes may be asked for now, and what to set aside for them
    texts_that_fit   how many texts may be written now
    why_reached      why nothing more may be asked, whatever is under way; empty if something may
    reserve_for_trial     what a trial of a draft's judge may come to, under the site's cap alone
    stopped          campaigns that are to be paused, which `lifecycle/status.py` sees to
    counted          calls that are made in a block are counted at its end, whether they go well or not
    record           what a tally holds, in the transaction that stores the outcome, if there is one
    note_lost, note_lost_texts    what turns and texts had set aside whose process died, in the transaction that claims
                     them again
    note_repeated_start    what a start has sent that died with its process, by whoever begins it again

What a turn may come to at most is set aside before it is asked: each vote with all its repeats, each request with as
long a prompt as this judge has had, and the longest reply that it may have. So requests never exceed a cap, however
many workers ask, and cost exceeds it by no more than what longer prompts cost beyond that. Where only what is under way
stands between, a turn waits. At the cap the campaign is marked with the reason, and nothing is asked from then on.

A count is added in one statement that reads nothing first, so no two workers lose one another's. It is written once the
outcome is there. What a worker that dies had under way may have been sent: it stays charged as what was set aside for
it, since nobody will know better.

A claim is stored before the first request that it is for, and ended in the transaction that stores what came, or after
it. So what was sent and never stored is under a claim that nobody has ended, and is asked for again by whoever takes
that claim over: under a cap, the numbers that are noted there bound the repeated requests from above. Without one, a
claim is counted as one request for each answer. Of a text at most `REQUESTS_OF_A_FIRST_TEXT` were sent, its prompt's
among them. What a campaign's start sends is under no claim: only who knows that a start has died can note it, as the
command of an experiment does, which makes its starts itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, F, Q, QuerySet, Sum
from django.utils import timezone

import sampler
from prefmh_web.campaigns import dispatch
from prefmh_web.campaigns.engine.locks import lock_caps
from prefmh_web.campaigns.models import Campaign, Chain, ChainOnDemand, Judge, JudgeTrial, ModelUsage, Turn
from prefmh_web.endpoints.client import LABEL_TOKENS
from prefmh_web.endpoints.limits import LARGEST, Tally, tallied
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.servers import ChatRequest, Dialect

# The number under which the caps of the site are locked; campaigns have their own.
_SITE = 0
# One to write it, and one to turn its tokens into words.
REQUESTS_A_TEXT = 2
# Of sums of floats.
_ALMOST = 1e-9


@dataclass(frozen=True)
class CostBound:
    """What something may come to at most; the cost is None where it is not known."""

    requests: int
    cost: float | None

    def __add__(self, other: CostBound) -> CostBound:
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return CostBound(self.requests + other.requests, cost)


@dataclass(frozen=True)
class Reservation:
    """So many votes, or texts, may be asked for; what they may come to is set aside."""

    count: int
    requests: int = 0
    cost: float = 0.0


@dataclass(frozen=True)
class _Cap:
    """A cap with what has been used of it, and what is under way."""

    cost: float | None
    requests: int | None
    used: CostBound
    under_way: CostBound
    is_site: bool

    def has_room(self, need: CostBound) -> bool:
        """Whether that fits beside what is under way."""
        return not self.why_not(self.under_way + need)

    def why_not(self, need: CostBound) -> str:
        """Return why that exceeds the cap, whatever is under way; empty if it does not."""
        if self.requests is not None and self.used.requests + need.requests > self.requests:
            left = f"{self.used.requests} have been made, and the next answer may take up to {need.requests}"
            return self._sentence(f"{self.requests} requests", "MODEL_CAP_REQUESTS", left)
        if self.cost is None:
            return ""
        if need.cost is None:
            return (
                "There is a cap in money, and it is not known what the next request costs. Enter both prices of the "
                "endpoint (0 where it costs nothing). If its server reports no tokens, cap the requests instead."
            )
        if (self.used.cost or 0.0) + need.cost > self.cost + _ALMOST:
            left = f"{self.used.cost:.2f} are spent, and the next answer may cost up to {need.cost:.4f}"
            return self._sentence(f"{self.cost:.2f}", "MODEL_CAP_COST", left)
        return ""

    def _sentence(self, cap: str, variable: str, left: str) -> str:
        if self.is_site:
            return (
                f"The site’s cap of {cap} for models is reached: {left}. Whoever runs the site can raise {variable}; "
                "press Resume after that."
            )
        return f"The cap of {cap} is reached: {left}. Raise the cap, then press Resume."


def reserve(
    campaign: Campaign,
    judge_index: int,
    endpoint: Endpoint,
    wanted: int,
    max_requests: Callable[[int], int],
    *,
    has_cap: bool,
) -> Reservation | None:
    """Return how many votes may be asked for, in the transaction that stores them as asked; None for none now.

    At the cap, the campaign is marked.

    Args:
        judge_index: the judge's.
        max_requests: how many requests so many votes take at most.
        has_cap: whether the campaign has a cap.
    """
    if not has_cap and not has_site_cap():
        return Reservation(wanted)
    caps = _locked_caps(campaign)
    price = _dearest_request(campaign, judge_index, endpoint)
    for count in range(wanted, 0, -1):
        need = _need(max_requests(count), price)
        if all(cap.has_room(need) for cap in caps):
            return Reservation(count, need.requests, need.cost or 0.0)
    _stop_at(campaign, caps, _need(max_requests(1), price))
    return None


def texts_that_fit(campaign: Campaign, wanted: int, *, is_ahead: bool = False) -> int:
    """Return how many of the texts whose writing this process has claimed may be written.

    At the cap, the campaign is marked, unless they were to be written ahead of time: nobody waits for these.
    """
    endpoint = writer_of(campaign)
    if endpoint is None:
        return wanted
    with transaction.atomic():
        if not (caps := _locked_caps(campaign)):
            return wanted
        price = _dearest_request(campaign, ModelUsage.PROPOSALS, endpoint)
        # They are claimed, and so among what is under way.
        for count in range(wanted, 0, -1):
            if all(cap.has_room(_need(REQUESTS_A_TEXT * (count - wanted), price)) for cap in caps):
                return count
        if not is_ahead:
            _stop_at(campaign, caps, _need(REQUESTS_A_TEXT, price))
    return 0


def why_reached(campaign: Campaign, judge_index: int, endpoint: Endpoint, requests: int) -> str:
    """Return why so many more requests of one judge, or of `PROPOSALS`, may not be made; empty if they may."""
    need = _need(requests, _dearest_request(campaign, judge_index, endpoint))
    return next(filter(None, (cap.why_not(need) for cap in _caps(campaign))), "")


def reserve_for_trial(campaign: Campaign, judge_index: int, endpoint: Endpoint, requests: int) -> tuple[CostBound, str]:
    """Return what so many requests of a trial may come to, in the transaction that sets it aside.

    Returns:
        That, and why the site's cap leaves no room for it; empty if it does.
    """
    need = _need(requests, _dearest_request(campaign, judge_index, endpoint))
    for cap in _locked_caps(campaign) if has_site_cap() else ():
        if cap.is_site and (reason := cap.why_not(cap.under_way + need)):
            return need, reason
    return need, ""


def writer_of(campaign: Campaign) -> Endpoint | None:
    """Return the endpoint that writes a campaign's texts, if one does."""
    space = campaign.config.space
    if not isinstance(space, sampler.ServedTextsConfig) or campaign.backend != "served-texts":
        return None
    return Endpoint.objects.filter(owner=campaign.owner_id, name=space.model).first()


def stopped() -> QuerySet[Campaign]:
    """Return the running campaigns that have come to a cap."""
    return Campaign.objects.filter(status=Campaign.Status.RUNNING).exclude(paused_because="")


def has_site_cap() -> bool:
    """Say whether the site has a cap on what models may take."""
    return settings.MODEL_CAP_COST is not None or settings.MODEL_CAP_REQUESTS is not None


def _locked_caps(campaign: Campaign) -> list[_Cap]:
    """Return the caps that hold; until the transaction ends, nobody else sets anything aside under them."""
    lock_caps(_SITE if has_site_cap() else campaign.pk)
    return _caps(campaign)


def _caps(campaign: Campaign) -> list[_Cap]:
    found = []
    cost, requests = Campaign.objects.values_list("cost_cap", "request_cap").get(pk=campaign.pk)
    if cost is not None or requests is not None:
        used, under_way = _used(campaign), _under_way(campaign)
        found.append(_Cap(None if cost is None else float(cost), requests, used, under_way, is_site=False))
    if has_site_cap():
        site = settings.MODEL_CAP_COST, settings.MODEL_CAP_REQUESTS
        found.append(_Cap(*site, _used(None), _under_way(None), is_site=True))
    return found


def _total(rows: QuerySet[Any], prefix: str = "") -> CostBound:
    """Return the sums of the columns `requests` and `cost`, whose names may begin with something."""
    sums = {name: Sum(f"{prefix}{name}", default=none) for name, none in (("requests", 0), ("cost", 0.0))}
    return CostBound(**rows.aggregate(**sums))


def _used(campaign: Campaign | None) -> CostBound:
    """Return what has been taken, and what was set aside by processes that died, in one campaign or in all."""
    rows = ModelUsage.objects.all() if campaign is None else ModelUsage.objects.filter(campaign=campaign)
    counted = rows.aggregate(requests=Sum(F("requests") + F("repeated"), default=0), cost=Sum("cost", default=0.0))
    used = CostBound(**counted) + _total(_turns(campaign).filter(until__lte=timezone.now()), "reserved_")
    # Trials before the start are nobody's but the site's.
    return used + _total(JudgeTrial.objects.all()) if campaign is None else used


def _turns(campaign: Campaign | None) -> QuerySet[Turn]:
    """Return the turns that were claimed and are not over, in one campaign or in all."""
    turns = Turn.objects.filter(asked__gt=0)
    return turns if campaign is None else turns.filter(comparison__chain__campaign=campaign)


def _under_way(campaign: Campaign | None) -> CostBound:
    """Return what has been set aside for turns and for texts, in one campaign or in all."""
    total = _total(_turns(campaign).filter(until__gt=timezone.now()), "reserved_")
    if campaign is None:
        total += _total(JudgeTrial.objects.filter(status=JudgeTrial.Status.ASKING), "reserved_")
    for writing, texts in _texts_under_way(campaign).items():
        endpoint = writer_of(writing)
        if endpoint is not None:
            need = _need(REQUESTS_A_TEXT * texts, _dearest_request(writing, ModelUsage.PROPOSALS, endpoint))
            # One without a price is refused itself; it keeps nobody else from asking.
            total += CostBound(need.requests, need.cost or 0.0)
    return total


def _texts_under_way(campaign: Campaign | None) -> dict[Campaign, int]:
    """Return how many texts are being written for each campaign."""
    now = timezone.now()
    written = Q(campaign__config_data__space__kind="model-texts")
    mine = Q() if campaign is None else Q(campaign=campaign)
    claimed = Chain.objects.filter(written, mine, claimed_until__gt=now, texts_claimed__gt=0).order_by()
    texts: dict[int, int] = dict(claimed.values_list("campaign").annotate(Sum("texts_claimed")))
    starts = ChainOnDemand.objects.filter(written, mine, claimed_until__gt=now, chain__isnull=True).order_by()
    starts = starts.filter(waits_because="")
    for drawn in starts.values("campaign").annotate(starts=Count("pk")):
        texts[drawn["campaign"]] = texts.get(drawn["campaign"], 0) + drawn["starts"]
    return {found: texts[found.pk] for found in Campaign.objects.filter(pk__in=texts)}


def _dearest_request(campaign: Campaign, judge_index: int, endpoint: Endpoint) -> float | None:
    """Return what the next request may cost, at the prices of now: as long a prompt as there was so far, and as long a
    reply as there may be.

    Before the first one, as long a prompt as the endpoint's requests have had on average, those of its test included.
    None where the prices or the tokens are not known.
    """
    if endpoint.input_price is None or endpoint.output_price is None:
        return None
    if endpoint.input_price == endpoint.output_price == 0:
        return 0.0
    usage = ModelUsage.objects.filter(campaign=campaign, judge_index=judge_index).first()
    if usage is None or not usage.answered:
        totals = endpoint.totals
        answered = totals.answered or 1
        tokens_in, tokens_out = totals.tokens_in / answered, totals.tokens_out / answered
    else:
        tokens_in, tokens_out = usage.max_tokens_in, usage.max_tokens_out
    if tokens_in + tokens_out == 0:
        return None
    tokens_out = max(tokens_out, _max_written(campaign, judge_index, endpoint))
    return (tokens_in * endpoint.input_price + tokens_out * endpoint.output_price) / 1e6


def _max_written(campaign: Campaign, judge_index: int, endpoint: Endpoint) -> int:
    """Return how many tokens a request may write at most."""
    space = campaign.config.space
    if judge_index == PROPOSALS and isinstance(space, sampler.ServedTextsConfig):
        return space.limit
    question = ChatRequest(endpoint.model, max_tokens=LABEL_TOKENS, thinking=endpoint.thinking_tokens)
    return Dialect(endpoint.dialect).server.limit(question)


def _stop_at(campaign: Campaign, caps: list[_Cap], need: CostBound) -> None:
    """Mark what has come to a cap: the campaign, or all that ask models where the cap is the site's."""
    for cap in caps:
        if reason := cap.why_not(need):
            marked = Campaign.objects.filter(pk=campaign.pk)
            if cap.is_site and need.cost is not None:
                marked |= _asking_models()
            for each in marked.filter(status=Campaign.Status.RUNNING, paused_because="").order_by("pk"):
                Campaign.objects.filter(pk=each.pk).update(paused_because=reason[:500])
                dispatch.pause_at_cap(each)
            return


def _asking_models() -> QuerySet[Campaign]:
    """Return the campaigns that ask models of endpoints, or have them write."""
    judged = Judge.objects.filter(endpoint__isnull=False).values("campaign")
    endpoints = Endpoint.objects.values_list("name", flat=True)
    written = Q(config_data__space__kind="model-texts", config_data__space__model__in=list(endpoints))
    return Campaign.objects.filter(Q(pk__in=judged) | written)


def _need(requests: int, price: float | None) -> CostBound:
    return CostBound(requests, None if price is None else requests * price)


PROPOSALS = ModelUsage.PROPOSALS
# llama.cpp applies the template first, then makes tokens of it.
REQUESTS_OF_A_PROMPT = 2
# Its tokens are drawn, then turned into words; and its prompt is turned into tokens the first time.
REQUESTS_OF_A_FIRST_TEXT = 2 + REQUESTS_OF_A_PROMPT
_SUMS = (*ModelUsage.NAMES, "repeated")
_TABLE = ModelUsage._meta.db_table
_CHANGES = [
    *(f"{name} = {_TABLE}.{name} + excluded.{name}" for name in _SUMS),
    # SQLite knows no GREATEST.
    *(
        f"{name} = CASE WHEN {_TABLE}.{name} > excluded.{name} THEN {_TABLE}.{name} ELSE excluded.{name} END"
        for name in LARGEST
    ),
]
# Found by model_usage_once_per_judge. Of a campaign that was deleted meanwhile it is a row of nobody's: the site's.
_ADD = f"""
    INSERT INTO {_TABLE} (campaign_id, judge_index, {", ".join((*_SUMS, *LARGEST))})
    VALUES ((SELECT id FROM campaigns_campaign WHERE id = %s), {", ".join(["%s"] * (1 + len(_SUMS) + len(LARGEST)))})
    ON CONFLICT (campaign_id, judge_index) DO UPDATE SET {", ".join(_CHANGES)}
"""


def record(campaign_id: int, judge_index: int, tally: Tally) -> None:
    """Add to what a judge of a campaign has taken.

    Args:
        judge_index: the judge's, or `PROPOSALS`.
    """
    if tally.requests:
        _add(campaign_id, judge_index, asdict(tally))


def note_lost(campaign_id: int, judge_index: int, turn: Turn) -> None:
    """Charge what was set aside for a turn whose process died, and let the turn be claimed anew."""
    requests = turn.reserved_requests or turn.asked
    _add(campaign_id, judge_index, {"repeated": requests, "cost": turn.reserved_cost})
    reason = "the process that asked ended before the replies came"
    Turn.objects.filter(pk=turn.pk).update(asked=0, state=None, until=timezone.now(), reason=reason)


def note_lost_texts(campaign: Campaign, texts: int) -> None:
    """Charge what so many texts may have taken whose process died."""
    # Models that run here take no requests.
    if texts and writer_of(campaign) is not None:
        _note_repeated(campaign, PROPOSALS, REQUESTS_OF_A_FIRST_TEXT * texts)


def _note_repeated(campaign: Campaign, judge_index: int, requests: int) -> None:
    if requests:
        _add(campaign.pk, judge_index, {"repeated": requests})


def _add(campaign_id: int, judge_index: int, counts: Mapping[str, float]) -> None:
    """Add counts by name, in one statement: every batch of votes does it."""
    with connection.cursor() as cursor:
        cursor.execute(_ADD, [campaign_id, judge_index, *(counts.get(name, 0) for name in (*_SUMS, *LARGEST))])


def note_repeated_start(campaign: Campaign) -> None:
    """Add the most requests that a start has sent which died, and which is begun again: for each chain a text, for each
    prompt its tokens, for each judge a trial.
    """
    config = campaign.config
    if isinstance(config.space, sampler.ServedTextsConfig):
        prompts = len(config.space.prompts)
        # Prompts without a chain are read as well.
        texts = REQUESTS_OF_A_FIRST_TEXT * config.chains + REQUESTS_OF_A_PROMPT * max(0, prompts - config.chains)
        _note_repeated(campaign, PROPOSALS, texts)
    for judge_index, judge in enumerate(config.judges):
        _note_repeated(campaign, judge_index, int(isinstance(judge.source, sampler.ModelSource)))


@contextmanager
def counted(campaign_id: int, judge_index: int) -> Iterator[None]:
    """Count all calls that are made in this block, for a judge of a campaign or for its `PROPOSALS`."""
    with tallied() as tally:
        try:
            yield
        finally:
            record(campaign_id, judge_index, tally)
