"""Trying a judge of a draft on sample pairs: in the background, bounded, and apart from the campaign's record.

    begin      a trial with so many pairs; what it may come to is set aside under the site's caps
    step       one pair asked, by a worker; the next one is a task of its own, so that no worker is held for long
    go_on      after a failure: what has come stays, what is missing is asked
    stop       no more is asked
    prefer     which object the researcher prefers

A trial is of the judge as the setup had it then. It writes nothing but its own rows.

A slot is one request: of a pair, which object stands first and which of the replies in this order it is; of a rating,
which object is rated. A reply is asked for once: what cannot be read is shown, and not asked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

import sampler
from prefmh_web.campaigns import dispatch, objects
from prefmh_web.campaigns.engine import usage
from prefmh_web.campaigns.frozen import plan_of
from prefmh_web.campaigns.lifecycle.model_start import endpoint_of
from prefmh_web.campaigns.lifecycle.status import lock_draft
from prefmh_web.campaigns.model_judges.judges import model_source, prompt_as_of_now, question_of, uses_log_probabilities
from prefmh_web.campaigns.models import Campaign, Catalog, JudgeTrial, NotPossible, State, TrialPair
from prefmh_web.campaigns.proposals import drawing
from prefmh_web.endpoints.calls import Job, call, called
from prefmh_web.endpoints.client import Client
from prefmh_web.endpoints.errors import EndpointError
from prefmh_web.endpoints.judge_calls import compared, constrains
from prefmh_web.endpoints.limits import Tally, tallied
from prefmh_web.endpoints.models import Endpoint
from sampler import judges as model_judges

MAX_PAIRS, MAX_REPLIES = 20, 5
# Two objects, and a proposal where two starts are the same.
_TEXTS_A_PAIR = 3
_STORED = ("content", "code", "media_type", "columns", "index")


def begin(campaign: Campaign, index: int, *, pairs: int, replies: int) -> JudgeTrial:
    """Begin a trial of one of a draft's judges.

    Args:
        index: the judge's.
        pairs: at most `MAX_PAIRS`.
        replies: for each order, or each object where one is rated; at most `MAX_REPLIES`.

    Raises:
        NotPossible: it is no draft, no model judges there, its objects are not there yet, a trial is under way, or a
            cap of the site leaves no room.
    """
    with transaction.atomic():
        draft = lock_draft(campaign.pk)
        endpoint = _endpoint_of(draft, index)
        _require_no_other(draft)
        is_ready = Catalog.objects.filter(campaign=draft, status=Catalog.Status.READY).exists()
        if not (draft.config.generates or (is_ready and draft.states.count() > 1)):
            raise NotPossible("The file has not been read yet, or gave no objects. Look at the campaign’s page.")
        trial = JudgeTrial(
            campaign=draft,
            judge_index=index,
            judge=draft.config.judges[index].model_dump(mode="json"),
            prompt_version=prompt_as_of_now(draft, index).template.version,
            endpoint=endpoint,
            wanted=min(max(pairs, 1), MAX_PAIRS),
            replies=min(max(replies, 1), MAX_REPLIES),
        )
        _set_aside(trial, draft, endpoint)
        trial.save()
        dispatch.judge_trial(trial)
    return trial


def step(trial_id: int) -> None:
    """Ask about the next pair of a trial, if nobody does; drawn before, if it is the first."""
    free = waiting().filter(pk=trial_id)
    trial = free.select_related("campaign__catalog", "endpoint").first()
    if trial is None:
        return
    campaign, endpoint = trial.campaign, trial.endpoint
    if campaign is None or endpoint is None or not campaign.is_draft:
        _end(trial.pk, "The campaign has started, or is deleted, or its endpoint is: nothing more is asked.")
        return
    # As long as the slowest pair may take, with room for waiting for the endpoint.
    longest = timedelta(seconds=60 + 2 * endpoint.timeout_s * (2 * MAX_REPLIES))
    if not free.update(until=timezone.now() + longest):
        return
    with tallied() as tally:
        reason = _asked(trial, campaign, endpoint)
    _store(trial, tally, reason)


def waiting() -> QuerySet[JudgeTrial]:
    """Return the trials that nobody asks about: new ones, of a worker that died, or of a message that was lost."""
    free = Q(until__isnull=True) | Q(until__lte=timezone.now())
    return JudgeTrial.objects.filter(free, status=JudgeTrial.Status.ASKING)


def go_on(trial: JudgeTrial) -> None:
    """Ask for what is missing of a trial that was stopped.

    Raises:
        NotPossible: as `begin` does; or the judge was changed meanwhile.
    """
    if trial.campaign is None:
        raise NotPossible("The campaign is deleted.")
    with transaction.atomic():
        draft = lock_draft(trial.campaign.pk)
        endpoint = _endpoint_of(draft, trial.judge_index)
        if draft.config.judges[trial.judge_index].model_dump(mode="json") != trial.judge:
            raise NotPossible("The question or its model was changed since this trial. Begin another one.")
        _require_no_other(draft)
        if JudgeTrial.objects.filter(pk=trial.pk, until__gt=timezone.now()).exists():
            raise NotPossible("A request of this trial is still on its way. Wait a moment, then press Go on again.")
        _set_aside(trial, draft, endpoint)
        trial.status, trial.reason, trial.until = JudgeTrial.Status.ASKING, "", None
        trial.save(update_fields=("status", "reason", "until", "reserved_requests", "reserved_cost"))
        dispatch.judge_trial(trial)


def stop(trial: JudgeTrial) -> None:
    """Ask no more; what is on its way is stored when it comes."""
    _end(trial.pk, "You stopped it.")


def prefer(trial: JudgeTrial, number: int, preferred: int) -> None:
    """Keep which of the two objects of a pair the researcher prefers."""
    _change_pair(trial, number, "preferred", preferred)


def _change_pair(trial: JudgeTrial, number: int, name: str, value: object) -> None:
    """Change one value of a pair and no other; nothing where the draft was deleted meanwhile, and its pairs with it."""
    with transaction.atomic():
        [pairs] = JudgeTrial.objects.select_for_update().filter(pk=trial.pk).values_list("pairs", flat=True)
        if pairs:
            pairs[number][name] = value
            JudgeTrial.objects.filter(pk=trial.pk).update(pairs=pairs)


def rows_of(campaign: Campaign, pair: TrialPair) -> list[State]:
    """Return the two objects of a pair as rows that are not to be saved."""
    return [State(campaign=campaign, **each) for each in pair["objects_shown"]]


def note_trouble(trial_id: int) -> None:
    """Say that a trial failed for a reason of ours."""
    _end(trial_id, "It could not be asked; the server's log says why.")


def _require_no_other(draft: Campaign) -> None:
    if draft.judge_trials.filter(status=JudgeTrial.Status.ASKING).exists():
        raise NotPossible("A trial is under way. Wait for it, or stop it.")


def _endpoint_of(campaign: Campaign, index: int) -> Endpoint:
    judges = campaign.config.judges
    source = judges[index].source if index < len(judges) else None
    if not isinstance(source, sampler.ModelSource):
        raise NotPossible("Only a question that a model answers can be tried.")
    return endpoint_of(campaign, source.endpoint)


def _set_aside(trial: JudgeTrial, campaign: Campaign, endpoint: Endpoint) -> None:
    """Set aside what the rest of a trial may come to, under the site's caps."""
    asked = sum(len(pair["replies"]) for pair in trial.pairs)
    requests = trial.wanted * len(slots_of(campaign.config, trial.judge_index, trial.replies)) - asked
    if campaign.backend == "served-texts" and not trial.pairs:
        requests += trial.wanted * _TEXTS_A_PAIR * usage.REQUESTS_A_TEXT
    reserved, reason = usage.reserve_for_trial(campaign, trial.judge_index, endpoint, requests)
    if reason:
        raise NotPossible(reason)
    trial.reserved_requests, trial.reserved_cost = reserved.requests, reserved.cost or 0.0


def _asked(trial: JudgeTrial, campaign: Campaign, endpoint: Endpoint) -> str | None:
    """Ask about the next pair and store what came; return why the rest is missing, empty if nothing is, and None where
    another step is to ask for it.
    """
    try:
        _endpoint_of(campaign, trial.judge_index)
        if campaign.config.judges[trial.judge_index].model_dump(mode="json") != trial.judge:
            return "The question or its model was changed meanwhile. Begin another trial."
        if not trial.pairs:
            _draw(trial, campaign)
        number = next((number for number, each in enumerate(trial.pairs) if _missing(campaign, trial, each)), None)
        if number is None:
            return ""
        pair, prompt = trial.pairs[number], prompt_as_of_now(campaign, trial.judge_index)
        vision = model_source(campaign.config, trial.judge_index).vision
        shown_objects = [objects.shown_object(row, endpoint, prompt, vision) for row in rows_of(campaign, pair)]
        missing = _missing(campaign, trial, pair)
        came, failure = ask(campaign.config, trial.judge_index, endpoint, prompt, shown_objects, missing)
    except NotPossible as reason:
        return str(reason)
    except EndpointError as error:
        return f"The model does not answer: {error.reason}."
    except (OSError, ValueError) as error:
        return f"The objects of a pair cannot be shown to the model: {error}."
    # Nobody else asks about it meanwhile.
    pair["replies"] |= came
    _change_pair(trial, number, "replies", pair["replies"])
    if failure is not None:
        return f"{endpoint.name}: {failure.reason}"
    return None if any(_missing(campaign, trial, each) for each in trial.pairs) else ""


def _missing(campaign: Campaign, trial: JudgeTrial, pair: TrialPair) -> list[str]:
    slots = slots_of(campaign.config, trial.judge_index, trial.replies)
    return [slot for slot in slots if slot not in pair["replies"]]


def _store(trial: JudgeTrial, tally: Tally, reason: str | None) -> None:
    with transaction.atomic():
        JudgeTrial.objects.filter(pk=trial.pk).update(until=None, **JudgeTrial.with_more(tally))
        found = JudgeTrial.objects.select_for_update().filter(pk=trial.pk, status=JudgeTrial.Status.ASKING).first()
        if found is None:
            # Stopped meanwhile.
            return
        left = max(found.reserved_requests - tally.requests, 0)
        cost = found.reserved_cost * left / found.reserved_requests if found.reserved_requests else 0.0
        JudgeTrial.objects.filter(pk=trial.pk).update(reserved_requests=left, reserved_cost=cost)
        if reason is None:
            dispatch.judge_trial(found)
        else:
            _end(trial.pk, reason)


def _end(trial_id: int, reason: str) -> None:
    status = JudgeTrial.Status.STOPPED if reason else JudgeTrial.Status.DONE
    asking = JudgeTrial.objects.filter(pk=trial_id, status=JudgeTrial.Status.ASKING)
    asking.update(status=status, reason=reason[:500], reserved_requests=0, reserved_cost=0)


def _draw(trial: JudgeTrial, campaign: Campaign) -> None:
    """Store the sample pairs: two objects of the list each, or what two chains start at."""
    if campaign.config.generates:
        pairs = _pairs_of_starts(campaign, trial.wanted)
    else:
        pairs = _pairs_of_list(campaign, trial.wanted)
    trial.pairs = [{"objects_shown": list(map(_plain, pair)), "replies": {}, "preferred": None} for pair in pairs]
    # Of a draft that was deleted meanwhile nothing is kept.
    JudgeTrial.objects.filter(pk=trial.pk, campaign=campaign).update(pairs=trial.pairs)


def _plain(row: State) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _STORED} | {"picture": row.picture.name or ""}


def _pairs_of_list(campaign: Campaign, wanted: int) -> list[Sequence[State]]:
    # A sample for people to look at, and no part of a record: any numbers will do.
    rng = np.random.default_rng()
    keys = list(campaign.states.values_list("pk", flat=True))
    drawn = [rng.choice(len(keys), 2, replace=False) for _ in range(wanted)]
    rows = campaign.states.in_bulk({keys[index] for pair in drawn for index in pair})
    return [[rows[keys[index]] for index in pair] for pair in drawn]


def _pairs_of_starts(campaign: Campaign, wanted: int) -> list[Sequence[State]]:
    """Return what two chains of one prompt start at, for each pair; where both are the same, one with what its chain
    proposes first.
    """
    plan, config = plan_of(campaign), campaign.config
    chains = config.chains_at_most
    # Numbers of no chains, each so many after one of its prompt.
    further = next(
        n for n in count(chains, chains) if all(config.target_of(n + c) == config.target_of(c) for c in range(chains))
    )
    numbers = [pair % chains + further * (2 * pair + which) for pair in range(wanted) for which in (1, 2)]
    starts = sampler.begin_many(plan, numbers)
    states = [start.state for start in starts]
    for first in range(0, len(states), 2):
        if states[first] == states[first + 1]:
            states[first + 1] = sampler.ask(plan, starts[first]).proposal
    drawing.prepare_pictures(campaign, states)
    rows = list(map(partial(objects.starting, campaign), numbers, states))
    return list(zip(rows[::2], rows[1::2], strict=True))


_LARGEST_SEED = 2**31
_LONGEST_TEXT = 2_000


@dataclass(frozen=True)
class Reply:
    """What one request came to.

    Args:
        first: which of the two objects stood first, or was rated: 0 or 1.
        preference: the probability of a vote for what stood first, where the server told it.
        chosen: the object that the reply names.
        rating: of the object.
        problem: why it is no answer; empty if it is one.
        text, reasoning: as the model wrote them. The reasoning is never read as the answer.
    """

    first: int
    preference: float | None = None
    chosen: int | None = None
    rating: int | None = None
    problem: str = ""
    text: str = ""
    reasoning: str = ""
    seconds: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def for_first_object(self) -> float | None:
        """How much it is for the first of the two objects, from 0 to 1; None where it is no answer."""
        for_first = self.preference
        if for_first is None and self.chosen is not None:
            for_first = float(self.chosen == self.first)
        if for_first is None:
            return None
        return for_first if self.first == 0 else 1.0 - for_first


def slots_of(config: sampler.ChainConfig, index: int, replies: int) -> list[str]:
    """Return the names of the slots of a pair: one an order where p is told."""
    many = 1 if uses_log_probabilities(model_source(config, index), config.rule) else replies
    return [f"{first}/{number}" for first in (0, 1) for number in range(many)]


def ask(
    config: sampler.ChainConfig,
    index: int,
    endpoint: Endpoint,
    prompt: model_judges.Prompt,
    shown_objects: Sequence[model_judges.ShownObject],
    slots: Sequence[str],
) -> tuple[dict[str, dict[str, Any]], EndpointError | None]:
    """Ask a judge of a config for some slots of a pair.

    Returns:
        The replies that came, as plain data by slot, and why others did not.
    """
    rng, rule, source = np.random.default_rng(), config.rule, model_source(config, index)

    def job(first: int) -> Job[Reply]:
        shown, pair = [shown_objects[first]], None
        if rule.evidence != "ratings":
            shown.append(shown_objects[1 - first])
            pair = compared(config.judges[index].question, *shown)
        seed = int(rng.random() * _LARGEST_SEED)
        question = question_of(source, rule, endpoint, prompt.messages(*shown), seed=seed, compared=pair)

        async def hear(client: Client) -> Reply:
            heard = vars(await client.ask(question)).copy()
            del heard["identity"]
            heard["text"] = (heard["text"] or "")[:_LONGEST_TEXT]
            tokens = heard.pop("tokens")
            try:
                if uses_log_probabilities(source, rule):
                    told = model_judges.label_preference(tokens, source.temperature, constrained=constrains(endpoint))
                    heard["preference"] = told.first
                elif isinstance(rule, sampler.PointwiseConfig):
                    heard["rating"] = model_judges.parse_rating(heard["text"], rule.scale)
                else:
                    heard["chosen"] = first if model_judges.parse_label(heard["text"]) == "A" else 1 - first
            except ValueError as error:
                # A label that cannot be read, or p that is not told.
                heard["problem"] = client.without_key(str(error))
            return Reply(first, **heard)

        return hear

    found = called(call(endpoint, [job(int(slot[0])) for slot in slots]))
    came = {
        slot: asdict(outcome)
        for slot, outcome in zip(slots, found.outcomes, strict=True)
        if not isinstance(outcome, EndpointError)
    }
    return came, found.failure


def read(stored: Mapping[str, Mapping[str, Any]]) -> list[Reply]:
    """Return stored replies, in the order of their slots."""
    return [Reply(**stored[slot]) for slot in sorted(stored)]
