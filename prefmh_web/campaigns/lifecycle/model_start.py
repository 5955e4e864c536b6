"""What Start makes sure of where models judge, write or score: that they can be asked, and what they are asked.

    examined          every endpoint is tested, and refused where its votes could not have the distribution they should
    check_prompts     prompt and text fit into the context of the server that writes, which tells what the rule needs
    check_questions   each question with the largest objects fits into the context of the server that answers it
    check_distributions   votes have the distribution that the server tells, by its last test or by one with the
                      campaign's own pairs
    require_room      no cap on what models may take is reached; asked when a campaign is resumed, too
    freeze            the judges as they are from now on; freeze_scorers the scorers

The first four take requests, so they run before the transaction that starts the campaign, and out of the web request.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

import sampler
from prefmh_web.campaigns import dispatch, objects
from prefmh_web.campaigns.engine import usage
from prefmh_web.campaigns.model_judges import judges as judging
from prefmh_web.campaigns.models import Campaign, CampaignScorer, Judge, ModelUsage, NotPossible, State
from prefmh_web.campaigns.objects import context_of
from prefmh_web.endpoints import probe, truth
from prefmh_web.endpoints.calls import asked
from prefmh_web.endpoints.client import LABEL_TOKENS
from prefmh_web.endpoints.errors import EndpointError
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.replies import Identity
from prefmh_web.endpoints.servers import ChatRequest, Dialect
from prefmh_web.endpoints.writer import ServedModel
from prefmh_web.scorers import Scorer, offered
from prefmh_web.transport import sockets
from sampler import judges as model_judges

Models = dict[str, tuple[Endpoint, Collection[Identity]]]
"""The endpoints of a campaign, by name, each with what its replies as a judge said they were from."""


def is_needed(campaign: Campaign) -> bool:
    """Say whether models have to be asked before a campaign can start, which may take minutes."""
    return campaign.is_made_by_a_model or bool(_asked(campaign))


def begin(campaign: Campaign) -> None:
    """Show on a draft's page that it is being started."""
    note(campaign, start_trouble="", starting_since=timezone.now(), start_progress="waiting for a worker")


def note(campaign: Campaign, **columns: object) -> None:
    """Write of a draft how its start is getting on, and show it on its page."""
    Campaign.objects.filter(pk=campaign.pk, status=Campaign.Status.DRAFT).update(**columns)
    sockets.notify(sockets.watchers(campaign.pk))


def examined(campaign: Campaign) -> Models:
    """Test the endpoints that a campaign asks, store what was seen of them, and return them.

    Raises:
        NotPossible: there is no such endpoint, it does not answer, or its votes could not have a judge's distribution.
    """
    # One that is not there is named where the plan is built.
    if (writer := usage.writer_of(campaign)) is not None:
        _tell(campaign, f"testing the endpoint “{writer.name}”")
        if failure := probe.examine_writer(writer):
            raise NotPossible(f"The model does not write: the endpoint “{writer.name}”: {failure.reason}.")
    models: Models = {}
    for index, judge, source in _asked(campaign):
        name = source.endpoint
        if name not in models:
            models[name] = _examined(campaign, name)
        endpoint, _ = models[name]
        _refuse(index, judge, endpoint, next(_refusals(campaign, judge, source, endpoint), ""))
    if writer is not None:
        models.setdefault(writer.name, (writer, ()))
    return models


def check_prompts(campaign: Campaign, plan: sampler.Plan[Any]) -> None:
    """Check that a served writer's longest prompt and a text of the greatest length fit into its context.

    Raises:
        NotPossible: they do not, or the server does not say.
    """
    model, writer = getattr(plan.space, "model", None), usage.writer_of(campaign)
    if not isinstance(model, ServedModel) or writer is None:
        return
    _tell(campaign, f"counting the tokens of the prompts for “{writer.name}”")
    try:
        with usage.counted(campaign.pk, usage.PROPOSALS):
            index, tokens = model.longest_prompt()
    except EndpointError as error:
        raise NotPossible(f"The model does not write: {error.reason}.") from error
    context = writer.context_tokens
    if context is not None and tokens + model.limit > context:
        raise NotPossible(
            f"Prompt {index + 1} has {tokens} tokens and a text up to {model.limit}, together more than the {context} "
            f"of the context of “{writer.name}”. Shorten the prompt, or lower “Most tokens of a text”."
        )


def check_questions(campaign: Campaign, models: Models, starts: Sequence[sampler.Position[Any]]) -> None:
    """Send each model its question with the largest objects there are, and check that it fits into its context.

    Raises:
        NotPossible: it does not, or the server does not take it.
    """
    judges, space = _asked(campaign), campaign.config.space
    largest = _largest(campaign, starts) if judges else []
    kind, one = campaign.object_kind.nouns, len(largest) == 1
    which = f"the longest of the {kind}" if one else f"the two longest {kind}"
    for index, judge, source in judges:
        endpoint, _ = models[source.endpoint]
        _tell(campaign, f"trying the longest prompt for “{endpoint.name}”")
        prompt = judging.prompt_as_of_now(campaign, index)
        shown = [objects.shown_object(state, endpoint, prompt, source.vision) for state in largest]
        _check_fits(judge, endpoint, _read(campaign, index, endpoint, shown, which), which)
        if isinstance(space, sampler.ServedTextsConfig) and endpoint.context_tokens is not None:
            # Texts that are still to be written may be longer than those that are there.
            words = _read(campaign, index, endpoint, [_of_one_letter(prompt, space)] * len(largest), which)
            longest = f"{'a text' if one else 'two texts'} of {space.limit} tokens each"
            _check_fits(judge, endpoint, words + len(largest) * space.limit, longest)


def check_distributions(campaign: Campaign, models: Models, starts: Sequence[sampler.Position[Any]]) -> None:
    """Require that the distribution of all votes is tested, as far as it must be.

    Where the last test of an endpoint found no pair to look at, the campaign's own are tried.

    Raises:
        NotPossible: votes have another distribution than the server tells, or it is not known which.
    """
    for index, judge, source in _asked(campaign):
        endpoint, no_room = models[source.endpoint][0], ""
        if wants_own_pairs(campaign, endpoint):
            no_room = usage.why_reached(campaign, index, endpoint, truth.MAX_TRUTH)
            if not no_room:
                _test_own_pairs(campaign, index, endpoint, starts)
        _refuse(
            index, judge, endpoint, " ".join(filter(None, (_why_no_distribution(judge, source, endpoint), no_room)))
        )


def require_room(campaign: Campaign) -> None:
    """Require that each model of a campaign may be asked once more.

    Raises:
        NotPossible: a cap is reached, or it is not known what asking costs; the sentence says what to do.
    """
    for index, endpoint, requests in _askers(campaign):
        if reason := usage.why_reached(campaign, index, endpoint, requests):
            raise NotPossible(reason)


def freeze(campaign: Campaign, models: Models) -> None:
    """Fix what the judges of a campaign are, in the transaction that starts it."""
    for name, (endpoint, _) in models.items():
        if not _is_as_examined(endpoint):
            raise NotPossible(f"The endpoint “{name}” was changed in this very moment. Look at it again.")
    for judge in Judge.objects.filter(campaign=campaign, endpoint__isnull=False):
        endpoint, identities = models[judging.model_source(campaign.config, judge.index).endpoint]
        frozen = judging.frozen_as(campaign, judge.index, endpoint)
        Judge.objects.filter(pk=judge.pk).update(frozen=frozen)
        for identity in identities:
            # What was seen in the test is the judge's own.
            judging.store_identity(judge, identity, timezone.now())


def chosen_scorers(campaign: Campaign) -> list[Scorer]:
    """Return the scorers that a setup names: those that steps wait for first, if there are such.

    Raises:
        NotPossible: this site does not offer one of them for these objects.
    """
    names = campaign.config.all_scorers
    found = offered(campaign.object_kind.name) if names else {}
    if missing := [name for name in names if name not in found]:
        raise NotPossible(
            f"The scorer “{missing[0]}” is not offered for {campaign.object_kind.nouns} here. Declare it in SCORERS, "
            "or choose another in the setup."
        )
    return [found[name] for name in names]


def freeze_scorers(campaign: Campaign) -> None:
    """Keep what the scorers of a setup say of themselves now. In the transaction of the start.

    Raises:
        NotPossible: as `chosen_scorers` does.
    """
    rows = [
        CampaignScorer(campaign=campaign, index=index, name=scorer.name, frozen=scorer.description())
        for index, scorer in enumerate(chosen_scorers(campaign))
    ]
    if rows:
        CampaignScorer.objects.bulk_create(rows)
        dispatch.score(campaign)


def _is_as_examined(endpoint: Endpoint) -> bool:
    """Say whether an endpoint is what was tested; then it stays so until this transaction ends."""
    where = {name: getattr(endpoint, name) for name in ("name", "base_url", "model", "dialect")}
    return Endpoint.objects.select_for_update(no_key=True).filter(pk=endpoint.pk, **where).exists()


def _asked(campaign: Campaign) -> list[tuple[int, sampler.JudgeConfig, sampler.ModelSource]]:
    """Return the judges that are models, each after its index and before how it is asked."""
    return [
        (index, judge, judge.source)
        for index, judge in enumerate(campaign.config.judges)
        if isinstance(judge.source, sampler.ModelSource)
    ]


def _askers(campaign: Campaign) -> Iterator[tuple[int, Endpoint, int]]:
    """Yield who may be asked: the index, the endpoint, and how many requests the least takes at most."""
    if (writer := usage.writer_of(campaign)) is not None:
        yield ModelUsage.PROPOSALS, writer, usage.REQUESTS_A_TEXT
    endpoints = {judge.index: judge.endpoint for judge in campaign.judges.select_related("endpoint")}
    for index, _, source in _asked(campaign):
        found = endpoints.get(index) or _named(campaign, source.endpoint).first()
        if found is not None:
            yield index, found, judging.max_requests(campaign.config, index, found, 1)


def endpoint_of(campaign: Campaign, name: str) -> Endpoint:
    """Return an endpoint that a setup names.

    Raises:
        NotPossible: its owner has none of this name.
    """
    if (found := _named(campaign, name).first()) is None:
        raise NotPossible(f"There is no endpoint “{name}”. Register it, or choose another for the question.")
    return found


def _named(campaign: Campaign, name: str) -> QuerySet[Endpoint]:
    return Endpoint.objects.filter(owner=campaign.owner_id, name=name)


def _examined(campaign: Campaign, name: str) -> tuple[Endpoint, tuple[Identity, ...]]:
    endpoint = endpoint_of(campaign, name)
    _tell(campaign, f"testing the endpoint “{name}”")
    identities, failure = probe.examine(endpoint)
    if failure is not None:
        raise NotPossible(f"The endpoint “{name}” did not pass its test: {failure.reason}.")
    if len(names := sorted({identity.model for identity in identities})) > 1:
        raise NotPossible(
            f"The endpoint “{name}” answers as several models ({', '.join(names)}). A judge must be one model: name "
            "one that the server does not swap."
        )
    return endpoint, tuple(sorted(set(identities)))


def wants_own_pairs(campaign: Campaign, endpoint: Endpoint) -> bool:
    """Say whether the last test of an endpoint found no pair to look at, and a campaign may have some."""
    rows = {seen["field"]: seen["effect"] for seen in endpoint.profile.get("fields", [])}
    told = endpoint.can_log_probabilities is not False and endpoint.thinking_tokens is None
    return told and rows.get(truth.TRUTH) == truth.Effect.UNTESTABLE and campaign.config.rule.evidence != "ratings"


def _test_own_pairs(
    campaign: Campaign, index: int, endpoint: Endpoint, starts: Sequence[sampler.Position[Any]]
) -> None:
    """Test how an endpoint samples with a question about some of a campaign's objects; it counts under its caps."""
    _tell(campaign, f"testing how “{endpoint.name}” samples its votes")
    vision = judging.model_source(campaign.config, index).vision
    prompt = judging.prompt_as_of_now(campaign, index)
    if campaign.config.generates:
        rows = [objects.starting(campaign, position.chain, position.state) for position in starts]
    else:
        rows = list(campaign.states.select_related("campaign").order_by("pk")[: 2 * truth.MAX_PAIRS])
    pairs = list(itertools.combinations([objects.shown_object(row, endpoint, prompt, vision) for row in rows], 2))
    # Spread over all of them.
    some = pairs[:: math.ceil(len(pairs) / truth.MAX_PAIRS) or 1]
    with usage.counted(campaign.pk, index):
        failure = probe.test_distribution(
            endpoint, [(prompt.messages(one, other), prompt.messages(other, one)) for one, other in some]
        )
    if failure is not None:
        raise NotPossible(f"The endpoint “{endpoint.name}” did not pass its test: {failure.reason}.")


def _why_no_distribution(judge: sampler.JudgeConfig, source: sampler.ModelSource, endpoint: Endpoint) -> str:
    """Return why votes would have another distribution than they should, or why that is not known; else empty."""
    if source.votes == "log-probabilities":
        return truth.differs(endpoint)
    is_untruncated, why = truth.untruncated(endpoint)
    # A single answer of a program need not be independent of others.
    is_enough = source.distribution_unverified or (endpoint.dialect == Dialect.PROGRAM and judge.votes == 1)
    return "" if is_untruncated or (is_enough and why == truth.why_untestable(endpoint)) else why


def _refusals(
    campaign: Campaign, judge: sampler.JudgeConfig, source: sampler.ModelSource, endpoint: Endpoint
) -> Iterator[str]:
    """Yield why an endpoint cannot be asked as a judge's config says."""
    dialect, most = Dialect(endpoint.dialect), endpoint.thinking_tokens
    server, vision, temperature = dialect.server, source.vision, source.temperature
    by_p, rates = source.votes == "log-probabilities", campaign.config.rule.evidence == "ratings"
    if by_p and endpoint.can_log_probabilities is False:
        yield "it returns no log-probabilities. Let its votes be sampled, or choose another endpoint"
    if not by_p and temperature != 1 and not server.sets_temperature:
        yield "its model thinks before it answers, and takes no temperature but 1. Set the temperature to 1"
    if not by_p and temperature > server.hottest:
        hottest = f"{server.hottest:g}"
        yield f"it takes no temperature above {hottest}. Lower the temperature to {hottest} or less"
    if not by_p and endpoint.can_vary is False:
        yield "it gives the same reply whatever the seed, so its votes would be copies of each other"
    if not wants_own_pairs(campaign, endpoint) and (why := _why_no_distribution(judge, source, endpoint)):
        yield why
    if rates and dialect == Dialect.PROGRAM:
        yield "a program compares two objects, and rates none"
    if source.all_at_once and rates:
        yield "ratings are always asked for together. Untick “Ask for all votes at once”"
    if campaign.object_kind.medium == "picture" and endpoint.can_images is False:
        yield "it does not see pictures"
    if vision is not None and vision.molecules in ("picture", "both") and not endpoint.can_images:
        yield "its test saw no sign that it sees pictures. Show molecules as SMILES, or choose another endpoint"
    if vision is not None and vision.detail is not None and not server.has_detail:
        yield f"a server of the kind {dialect.label} has no field for the detail of pictures. Leave it out"
    if most is None:
        return
    if server.thinking is None:
        yield f"a server of the kind {dialect.label} has no field for thinking. Empty “Thinking tokens at most”"
    if most < server.least_thinking:
        least = f"{server.least_thinking:,}"
        yield f"its model thinks {least} tokens at the least. Raise “Thinking tokens at most” to {least}"
    if by_p:
        yield "its model thinks before it answers, so no log-probability is that of a label. Let its votes be sampled"
    if temperature != 1 and not server.thinks_at_any_temperature:
        yield "its model takes no temperature but 1 while it thinks. Set the temperature to 1"


def _refuse(index: int, judge: sampler.JudgeConfig, endpoint: Endpoint, why: str) -> None:
    """Refuse a judge for a reason; empty for none."""
    if why:
        raise NotPossible(
            f"The endpoint “{endpoint.name}” cannot answer question {index + 1}, “{judge.question}”: {why}."
        )


def _largest(campaign: Campaign, starts: Sequence[sampler.Position[Any]]) -> list[State]:
    """Return the objects that make the longest prompt, as far as there are any yet: one where each is rated alone."""
    config = campaign.config
    # A rule that rates has models behind endpoints only, and of these at least one.
    wanted = 1 if config.rule.evidence == "ratings" else 2

    def size(row: State) -> int:
        return sum(len(text.encode()) for text in (row.content, *(line.text for line in context_of(row, config))))

    if config.generates:
        made = [objects.starting(campaign, position.chain, position.state) for position in starts]
        rows = heapq.nlargest(wanted, made, key=size)
    else:
        # Without columns to show, none are read.
        found = campaign.states.only("content", *(["columns"] if config.context else [])).iterator()
        largest = [row.pk for row in heapq.nlargest(wanted, found, key=size)]
        rows = list(campaign.states.filter(pk__in=largest).select_related("campaign"))
    # A campaign may have one chain, or a catalog of one object.
    return (rows * wanted)[:wanted]


def _read(
    campaign: Campaign, index: int, endpoint: Endpoint, shown_objects: Sequence[model_judges.ShownObject], which: str
) -> int:
    """Return how many tokens a question with these objects has, as the server counts them."""
    messages = judging.prompt_as_of_now(campaign, index).messages(*shown_objects)
    with usage.counted(campaign.pk, index):
        called = asked(
            endpoint, [ChatRequest(endpoint.model, messages, LABEL_TOKENS, 1.0, 1, thinking=endpoint.thinking_tokens)]
        )
    if called.failure is not None:
        question = f"question {index + 1}, “{campaign.config.judges[index].question}”"
        raise NotPossible(
            f"The endpoint “{endpoint.name}” does not take {question}, with {which}: {called.failure.reason}."
        )
    return called.results[0].tokens_in


def _of_one_letter(prompt: model_judges.Prompt, space: sampler.ServedTextsConfig) -> model_judges.ShownObject:
    """Return an object that is as short as can be, with a number for all that the prompt names of it, and with the
    longest source.
    """
    cells = {"source": max(space.sources, key=lambda source: len(source.encode()), default=""), "estimate": "0.000"}
    context = tuple(model_judges.ContextLine(shown.label, cells[shown.column]) for shown in space.context)
    labels = {line.label for line in context}
    named = [name for name in prompt.measures if name not in labels]
    measures = tuple(model_judges.ContextLine(name, "0.000") for name in named)
    return model_judges.ShownObject(text="x", context=context, measures=measures)


def _check_fits(judge: sampler.JudgeConfig, endpoint: Endpoint, tokens: int, which: str) -> None:
    context = endpoint.context_tokens
    if context is not None and tokens + LABEL_TOKENS > context:
        raise NotPossible(
            f"The question “{judge.question}” with {which} has {tokens} tokens and its reply up to {LABEL_TOKENS}, "
            f"together more than the {context} of the context of “{endpoint.name}”. Shorten the objects, or serve the "
            "model with a larger context."
        )


def _tell(campaign: Campaign, progress: str) -> None:
    """Show on the page of a draft that is being started how far that is."""
    starting = Campaign.objects.filter(pk=campaign.pk, status=Campaign.Status.DRAFT, starting_since__isnull=False)
    if starting.update(start_progress=progress[:200]):
        sockets.notify(sockets.watchers(campaign.pk))
