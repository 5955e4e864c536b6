"""What Start makes sure of where models judge, write or score: that they can be asked, and what they are asked.

    examined          every endpoint is tested, and refused where its votes could not have the law that they should
    check_prompts     prompt and text fit into the context of the server that writes, which tells what the rule needs
    check_questions   each question with the largest objects fits into the context of the server that answers it
    check_laws        votes have the law that the server tells, by its last test or by one with the campaign's own pairs
    demand_room       no cap on what models may take is reached; asked when a campaign is resumed, too
    freeze            the judges as they are from now on; freeze_scorers the scorers

The first four take requests, so they run before the transaction that starts the campaign, and out of the web request.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils import timezone

import sampler
from prefmh_web.campaigns import dispatch, objects
from prefmh_web.campaigns.engine import usage
from prefmh_web.campaigns.model_judges import frozen_judges, kinds
from prefmh_web.campaigns.models import Campaign, CampaignScorer, Judge, ModelUsage, NotPossible, State
from prefmh_web.campaigns.objects import context_of
from prefmh_web.endpoints import probe, truth
from prefmh_web.endpoints.calls import asked
from prefmh_web.endpoints.client import LABEL_TOKENS
from prefmh_web.endpoints.errors import EndpointError
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.replies import Identity
from prefmh_web.endpoints.servers import Dialect, Question
from prefmh_web.endpoints.writer import ServedModel, is_run_here
from prefmh_web.scorers import Scorer, offered
from prefmh_web.transport import sockets
from sampler import judges as model_judges


@dataclass(frozen=True)
class Models:
    """The endpoints of a campaign's judges, by name, and what the replies of each said they were from."""

    endpoints: dict[str, Endpoint] = field(default_factory=dict)
    identities: dict[str, tuple[Identity, ...]] = field(default_factory=dict)


def is_needed(campaign: Campaign) -> bool:
    """Say whether models have to be asked before a campaign can start, which may take minutes."""
    sources = [judge.source for judge in campaign.config.judges]
    return campaign.is_made_by_a_model or any(isinstance(source, sampler.ModelSource) for source in sources)


def begin(campaign: Campaign) -> None:
    """Show on a draft's page that it is being started."""
    Campaign.objects.filter(pk=campaign.pk, status=Campaign.Status.DRAFT).update(
        start_trouble="", starting_since=timezone.now(), start_progress="waiting for a worker"
    )
    sockets.nudge(sockets.watchers(campaign.pk))


def examined(campaign: Campaign) -> Models:
    """Test the endpoints that a campaign asks, store what was seen of them, and return its judges'.

    Raises:
        NotPossible: there is no such endpoint, it does not answer, or its votes could not have the law of a judge's.
    """
    _check_writer(campaign)
    models = Models()
    for place, judge, source in _asked(campaign):
        name = source.endpoint
        if name not in models.endpoints:
            models.endpoints[name], models.identities[name] = _examined(campaign, name)
        _check_judge(campaign, place, judge, source, models.endpoints[name])
    return models


def check_prompts(campaign: Campaign, plan: sampler.Plan[Any]) -> None:
    """Check that a served writer's longest prompt and a text of the greatest length fit into its context.

    Raises:
        NotPossible: they do not, or the server does not say.
    """
    model = getattr(plan.space, "model", None)
    if not isinstance(model, ServedModel):
        return
    _tell(campaign, f"counting the tokens of the prompts for “{_writer(campaign)}”")
    endpoint = _endpoint(campaign, _writer(campaign))
    context = None if endpoint is None else endpoint.context_tokens
    try:
        with usage.counted(campaign.pk, usage.PROPOSALS):
            place, tokens = model.longest_prompt()
    except EndpointError as error:
        raise NotPossible(f"The model does not write: {error.reason}.") from error
    if context is not None and tokens + model.limit > context:
        raise NotPossible(
            f"Prompt {place + 1} has {tokens} tokens and a text up to {model.limit}, together more than the {context} "
            f"of the context of “{_writer(campaign)}”. Shorten the prompt, or lower “Most tokens of a text”."
        )


def check_questions(campaign: Campaign, models: Models, starts: Sequence[sampler.Position[Any]]) -> None:
    """Send each model its question with the largest objects there are, and check that it fits into its context.

    Raises:
        NotPossible: it does not, or the server does not take it.
    """
    asked = _asked(campaign)
    largest = _largest(campaign, starts) if asked else []
    for place, judge, source in asked:
        endpoint = models.endpoints[source.endpoint]
        _tell(campaign, f"trying the longest prompt for “{endpoint.name}”")
        prompt = frozen_judges.prompt_as_of_now(campaign, place)
        shown = [objects.exhibit(state, endpoint, prompt, source.vision) for state in largest]
        read = _read(campaign, place, endpoint, shown)
        _check_fits(judge, endpoint, read, _which(campaign))
        space = campaign.config.space
        if isinstance(space, sampler.ServedTextsConfig) and endpoint.context_tokens is not None:
            # Texts that are still to be written may be longer than those that are there.
            words = _read(campaign, place, endpoint, [_of_one_letter(prompt, space)] * len(largest))
            _check_fits(
                judge,
                endpoint,
                words + len(largest) * space.limit,
                f"{_number(len(largest))} of {space.limit} tokens each",
            )


def check_laws(campaign: Campaign, models: Models, starts: Sequence[sampler.Position[Any]]) -> None:
    """Demand that the law of all votes is tested, as far as it must be.

    Where the last test of an endpoint found no pair to look at, the campaign's own are tried.

    Raises:
        NotPossible: votes have another law than the server tells, or it is not known which.
    """
    for place, judge, source in _asked(campaign):
        endpoint, no_room = models.endpoints[source.endpoint], ""
        if wants_own_pairs(campaign, endpoint):
            no_room = usage.why_reached(campaign, place, endpoint, truth.MOST_TRUE)
            if not no_room:
                _test_own_pairs(campaign, place, endpoint, starts)
        _refuse(place, judge, endpoint, " ".join(filter(None, (_why_no_law(source, endpoint), no_room))))


def demand_room(campaign: Campaign) -> None:
    """Demand that each model of a campaign may be asked once more.

    Raises:
        NotPossible: a cap is reached, or it is not known what asking costs; the sentence says what to do.
    """
    for place, endpoint, requests in _askers(campaign):
        if reason := usage.why_reached(campaign, place, endpoint, requests):
            raise NotPossible(reason)


def freeze(campaign: Campaign, models: Models) -> None:
    """Fix what the judges of a campaign are, in the transaction that starts it."""
    for judge in Judge.objects.filter(campaign=campaign, endpoint__isnull=False):
        name = frozen_judges.model_source(campaign.config, judge.place).endpoint
        endpoint = models.endpoints[name]
        if judge.endpoint_id != endpoint.pk or not _is_as_examined(endpoint):
            raise NotPossible(f"The endpoint “{name}” was changed in this very moment. Look at it again.")
        frozen = frozen_judges.frozen_as(campaign, judge.place, endpoint)
        Judge.objects.filter(pk=judge.pk).update(frozen=frozen)
        frozen_judges.accept_at_start(judge, models.identities[name])


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
        CampaignScorer(campaign=campaign, place=place, name=scorer.name, frozen=scorer.description())
        for place, scorer in enumerate(chosen_scorers(campaign))
    ]
    if rows:
        CampaignScorer.objects.bulk_create(rows)
        dispatch.score(campaign)


def _is_as_examined(endpoint: Endpoint) -> bool:
    where = {name: getattr(endpoint, name) for name in ("name", "base_url", "model", "dialect")}
    return Endpoint.objects.filter(pk=endpoint.pk, **where).exists()


def _asked(campaign: Campaign) -> list[tuple[int, sampler.JudgeConfig, sampler.ModelSource]]:
    """Return the judges that are models, each after its place and before how it is asked."""
    try:
        judges = campaign.config.judges
    except sampler.ConfigError as error:
        raise NotPossible(f"The setup cannot be run: {error}.") from error
    return [
        (place, judge, judge.source)
        for place, judge in enumerate(judges)
        if isinstance(judge.source, sampler.ModelSource)
    ]


def _writer(campaign: Campaign) -> str:
    """Return the name of the endpoint that writes a campaign's texts; empty if none does."""
    space = campaign.config.space
    return space.model if isinstance(space, sampler.ServedTextsConfig) and not is_run_here(space) else ""


def _askers(campaign: Campaign) -> Iterator[tuple[int, Endpoint, int]]:
    """Yield who may be asked: the place, the endpoint, and how many requests the least takes at most."""
    config = campaign.config
    if (writer := usage.writer_of(campaign)) is not None:
        yield ModelUsage.PROPOSALS, writer, usage.REQUESTS_A_TEXT
    endpoints = dict(campaign.judges.filter(endpoint__isnull=False).values_list("place", "endpoint"))
    for place, judge in enumerate(config.judges):
        if not isinstance(judge.source, sampler.ModelSource):
            continue
        found = Endpoint.objects.filter(owner=campaign.owner_id, name=judge.source.endpoint)
        if place in endpoints:
            found = Endpoint.objects.filter(pk=endpoints[place])
        if (endpoint := found.first()) is not None:
            yield place, endpoint, kinds.most_requests(config, place, endpoint, 1)


def _check_writer(campaign: Campaign) -> None:
    name = _writer(campaign)
    # One that is not there is named where the plan is built.
    if name and (endpoint := _endpoint(campaign, name)):
        _tell(campaign, f"testing the endpoint “{name}”")
        if failure := probe.examine_writer(endpoint):
            raise NotPossible(f"The model does not write: the endpoint “{name}”: {failure.reason}.")


def _endpoint(campaign: Campaign, name: str) -> Endpoint | None:
    return Endpoint.objects.filter(owner=campaign.owner_id, name=name).first()


def _examined(campaign: Campaign, name: str) -> tuple[Endpoint, tuple[Identity, ...]]:
    endpoint = _endpoint(campaign, name)
    if endpoint is None:
        raise NotPossible(f"There is no endpoint “{name}”. Register it, or choose another for the question.")
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
    return told and rows.get(truth.TRUTH) == truth.Effect.UNTOLD and campaign.config.rule.evidence != "ratings"


def _test_own_pairs(
    campaign: Campaign, place: int, endpoint: Endpoint, starts: Sequence[sampler.Position[Any]]
) -> None:
    """Test the law of an endpoint with a question about some of a campaign's objects; it counts under its caps."""
    _tell(campaign, f"testing how “{endpoint.name}” samples its votes")
    vision = frozen_judges.model_source(campaign.config, place).vision
    prompt = frozen_judges.prompt_as_of_now(campaign, place)
    if campaign.config.generates:
        rows = [objects.starting(campaign, position.chain, position.state) for position in starts]
    else:
        rows = list(campaign.states.select_related("campaign").order_by("pk")[: 2 * truth.MOST_PAIRS])
    pairs = list(itertools.combinations([objects.exhibit(row, endpoint, prompt, vision) for row in rows], 2))
    # Spread over all of them.
    some = pairs[:: math.ceil(len(pairs) / truth.MOST_PAIRS) or 1]
    with usage.counted(campaign.pk, place):
        failure = probe.test_law(
            endpoint, [(prompt.messages(one, other), prompt.messages(other, one)) for one, other in some]
        )
    if failure is not None:
        raise NotPossible(f"The endpoint “{endpoint.name}” did not pass its test: {failure.reason}.")


def _why_no_law(source: sampler.ModelSource, endpoint: Endpoint) -> str:
    """Return why votes would not have the law that they should, or why that is not known; empty where they have it."""
    if source.votes == "log-probabilities":
        return truth.differs(endpoint)
    is_plain, why = truth.plainness(endpoint)
    is_accepted = source.law_unverified and why == truth.why_untold(endpoint)
    return "" if is_plain or is_accepted else why


def _check_judge(
    campaign: Campaign, place: int, judge: sampler.JudgeConfig, source: sampler.ModelSource, endpoint: Endpoint
) -> None:
    refusal = ""
    if source.votes == "log-probabilities":
        if endpoint.can_log_probabilities is False:
            refusal = "it returns no log-probabilities. Let its votes be sampled, or choose another endpoint"
    elif source.temperature != 1 and not Dialect(endpoint.dialect).server.sets_temperature:
        refusal = "its model thinks before it answers, and takes no temperature but 1. Set the temperature to 1"
    elif source.temperature > Dialect(endpoint.dialect).server.hottest:
        hottest = Dialect(endpoint.dialect).server.hottest
        refusal = f"it takes no temperature above {hottest:g}. Lower the temperature to {hottest:g} or less"
    elif endpoint.can_vary is False:
        refusal = "it gives the same reply whatever the seed, so its votes would be copies of each other"
    if not wants_own_pairs(campaign, endpoint):
        refusal = refusal or _why_no_law(source, endpoint)
    if source.all_at_once and campaign.config.rule.evidence == "ratings":
        refusal = refusal or "ratings are always asked for together. Untick “Ask for all votes at once”"
    if campaign.object_kind.medium == "picture" and endpoint.can_images is False:
        refusal = refusal or "it does not see pictures"
    refusal = refusal or _why_not_shown(source.vision, endpoint) or _why_not_thinking(source, endpoint)
    _refuse(place, judge, endpoint, refusal)


def _refuse(place: int, judge: sampler.JudgeConfig, endpoint: Endpoint, why: str) -> None:
    """Refuse a judge for a reason; empty for none."""
    if why:
        raise NotPossible(
            f"The endpoint “{endpoint.name}” cannot answer question {place + 1}, “{judge.question}”: {why}."
        )


def _why_not_thinking(source: sampler.ModelSource, endpoint: Endpoint) -> str:
    """Return why a model cannot think before it answers as its endpoint says; empty if it can, or is not to."""
    dialect, most = Dialect(endpoint.dialect), endpoint.thinking_tokens
    if most is None:
        return ""
    if not dialect.server.thinking:
        return f"a server of the kind {dialect.label} has no field for thinking. Empty “Thinking tokens at most”"
    if most < dialect.server.least_thinking:
        least = dialect.server.least_thinking
        return f"its model thinks {least:,} tokens at the least. Raise “Thinking tokens at most” to {least:,}"
    if source.votes == "log-probabilities":
        return "its model thinks before it answers, so no log-probability is that of a label. Let its votes be sampled"
    if source.temperature != 1 and not dialect.server.thinks_at_any_temperature:
        return "its model takes no temperature but 1 while it thinks. Set the temperature to 1"
    return ""


def _why_not_shown(vision: sampler.Vision | None, endpoint: Endpoint) -> str:
    """Return why a model cannot be shown pictures as its config says; empty if it can."""
    if vision is None:
        return ""
    if vision.molecules in ("picture", "both") and not endpoint.can_images:
        return "its test saw no sign that it sees pictures. Show molecules as SMILES, or choose another endpoint"
    dialect = Dialect(endpoint.dialect)
    if vision.detail is not None and not dialect.server.has_detail:
        return f"a server of the kind {dialect.label} has no field for the detail of pictures. Leave it out"
    return ""


def _largest(campaign: Campaign, starts: Sequence[sampler.Position[Any]]) -> list[State]:
    """Return the objects that make the longest prompt, as far as there are any yet: one where each is rated alone."""
    wanted = _objects_in_a_prompt(campaign)
    if not campaign.config.generates:
        shown = [each.column for each in campaign.config.context]
        # Without columns to show, none are read.
        found = campaign.states.values_list("pk", "content", *(["columns"] if shown else [])).iterator()
        sizes = ((_size(content, *columns, shown=shown), pk) for pk, content, *columns in found)
        largest = [pk for _, pk in heapq.nlargest(wanted, sizes)]
        rows = list(campaign.states.filter(pk__in=largest).select_related("campaign"))
    else:
        made = [objects.starting(campaign, position.chain, position.state) for position in starts]
        config = campaign.config
        rows = heapq.nlargest(wanted, made, key=lambda row: _size_with_context(row, config))
    # A campaign may have one chain, or a catalog of one object.
    return (rows * wanted)[:wanted]


def _size_with_context(row: State, config: sampler.ChainConfig) -> int:
    return sum(len(text.encode()) for text in (row.content, *(line.text for line in context_of(row, config))))


def _size(content: str, columns: Mapping[str, str] | None = None, *, shown: Sequence[str]) -> int:
    """Return how many bytes of an object and its columns stand in a prompt."""
    return sum(len(text.encode()) for text in (content, *((columns or {}).get(name, "") for name in shown)))


def _objects_in_a_prompt(campaign: Campaign) -> int:
    # A rule that rates has models behind endpoints only, and of these at least one.
    return 1 if campaign.config.rule.evidence == "ratings" else 2


def _read(campaign: Campaign, place: int, endpoint: Endpoint, exhibits: Sequence[model_judges.Exhibit]) -> int:
    """Return how many tokens a question with these objects has, as the server counts them."""
    config = campaign.config
    messages = frozen_judges.prompt_as_of_now(campaign, place).messages(*exhibits)
    with usage.counted(campaign.pk, place):
        called = asked(
            endpoint, [Question(endpoint.model, messages, LABEL_TOKENS, 1.0, 1, thinking=endpoint.thinking_tokens)]
        )
    if called.failure is not None:
        which = f"question {place + 1}, “{config.judges[place].question}”, with {_which(campaign)}"
        raise NotPossible(f"The endpoint “{endpoint.name}” does not take {which}: {called.failure.reason}.")
    return called.results[0].tokens_in


def _of_one_letter(prompt: model_judges.AnyPrompt, space: sampler.ServedTextsConfig) -> model_judges.Exhibit:
    """Return an object that is as short as can be, with a number for all that the prompt names of it, and with the
    longest source.
    """
    cells = {"source": max(space.sources, key=lambda source: len(source.encode()), default=""), "estimate": "0.000"}
    context = tuple(model_judges.ContextLine(shown.label, cells[shown.column]) for shown in space.context)
    labels = {line.label for line in context}
    named = [name for name in model_judges.named_in(prompt) if name not in labels]
    measures = tuple(model_judges.ContextLine(name, "0.000") for name in named)
    return model_judges.Exhibit(text="x", context=context, measures=measures)


def _check_fits(judge: sampler.JudgeConfig, endpoint: Endpoint, tokens: int, which: str) -> None:
    context = endpoint.context_tokens
    if context is not None and tokens + LABEL_TOKENS > context:
        raise NotPossible(
            f"The question “{judge.question}” with {which} has {tokens} tokens and its reply up to {LABEL_TOKENS}, "
            f"together more than the {context} of the context of “{endpoint.name}”. Shorten the objects, or serve the "
            "model with a larger context."
        )


def _which(campaign: Campaign) -> str:
    kind = campaign.object_kind.nouns
    return f"the longest of the {kind}" if _objects_in_a_prompt(campaign) == 1 else f"the two longest {kind}"


def _number(objects: int) -> str:
    return "a text" if objects == 1 else "two texts"


def _tell(campaign: Campaign, progress: str) -> None:
    """Show on the page of a draft that is being started how far that is."""
    starting = Campaign.objects.filter(pk=campaign.pk, status=Campaign.Status.DRAFT, starting_since__isnull=False)
    if starting.update(start_progress=progress[:200]):
        sockets.nudge(sockets.watchers(campaign.pk))
