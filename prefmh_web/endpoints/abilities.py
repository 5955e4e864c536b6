"""What a server is and can do, seen by trying it: its kind, its abilities, and which fields of a request it obeys.

    probe              kind and abilities; what was seen is kept with the endpoint, null where it was not tried
    fields             which fields it obeys, by their effect on its replies
    examine            all that Start needs to know of a judge's endpoint before a campaign relies on it
    examine_writer     the same of one that writes texts
    listed             the models that a server has, for a form that is being filled in

The abilities:

    independent replies different seeds give different replies (else all votes would be copies of one)
    confinement         a reply confined to two unlikely words is one of them
    log-probabilities   the first token comes with those of its rivals
    token ids           a chat becomes ids, ids go in and come out, at plain temperature sampling, and become a text
    images              a picture changes how many tokens the server reads, and what is in it does not

The fields; a status says nothing, since many servers answer 200 and pass over what they do not know:

    max_tokens          with a limit of 1 it writes one token, with a larger one more
    temperature, top_p  with a value that leaves one token to choose from, all seeds give the same reply, although they
    top_k, min_p        gave different ones before; where two tokens are as likely, at least others than before
    seed                the same seeds give the same replies again
    penalties           with the highest one, the most probable text changes
    system role         with a system message it reads more tokens
    thinking off        a short reply has a text, and its text is no thought

The kind is found out first, from what each kind of server has and the others have not. Fields that a kind does not have
are not tried.
"""

import io
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np
from django.utils import timezone
from PIL import Image
from yarl import URL

from prefmh_web.endpoints import loop, tokenising
from prefmh_web.endpoints.calls import Called, Job, Result, call, called, target_of
from prefmh_web.endpoints.client import Client
from prefmh_web.endpoints.errors import (
    AddressRefused,
    BadReply,
    Busy,
    CircuitOpen,
    EndpointError,
    KeyMissing,
    NeedsAttention,
    Refused,
    ServerError,
    Stopped,
    TimedOut,
    Unable,
    Unreachable,
)
from prefmh_web.endpoints.gates import gate_of
from prefmh_web.endpoints.identity import Identity
from prefmh_web.endpoints.models import Endpoint, as_it_was
from prefmh_web.endpoints.outcomes import Effect, Seen, Trial
from prefmh_web.endpoints.replies import storable
from prefmh_web.endpoints.servers import Dialect, Question, Server, dialect_of_host
from prefmh_web.endpoints.truth import SHAPE_THE_LAW
from sampler.judges import Exhibit, Picture, pairwise_messages

Found = TypeVar("Found")

MOST_REQUESTS = 60
"""Requests that `probe` and `fields` make at most."""
LONGEST_ANSWER = 32
"""Tokens of an answer at most."""
_ASK = [{"role": "user", "content": "Write one short sentence about the sea."}]
_SYSTEM = {"role": "system", "content": "You are a sailor who has been at sea for many years and likes to talk of it."}
# No model answers with one of these on its own.
_UNLIKELY = ("QX7", "ZJ3")
_SEEDS = (104_729, 1_299_709, 15_485_863, 179_424_673)
_HOT, _COLD = 1.5, 0.01
_TOKENS = 8
# Tokens by which two prompts may differ that say the same.
_A_FEW = 8
_THOUGHT = ("<think>", "<thinking>", "<|channel|>analysis")
_MOST_MODELS, _LONGEST_NAME, _FEW_MODELS = 1_000, 200, 8
_PAGE = re.compile(r"<(!doctype )?html", re.IGNORECASE)
# Another campaign may have all of the endpoint's requests under way; each attempt waits two seconds for one.
_MOST_ATTEMPTS = 60


def listed(endpoint: Endpoint) -> tuple[list[str], str]:
    """Return the models that a server lists, and why it lists none; one request or two, and nothing is stored.

    Args:
        endpoint: may be unsaved, and without a model.
    """
    try:
        return loop.run(_models_of(Client(target_of(endpoint)))), ""
    except EndpointError as error:
        return [], _wrong_address(endpoint, error.reason) or error.reason


async def _models_of(client: Client) -> list[str]:
    found = (await client.get("/models")).get("data")
    models = [model.get("id") for model in found if isinstance(model, dict)] if isinstance(found, list) else []
    names = sorted(storable(name)[:_LONGEST_NAME] for name in models if isinstance(name, str) and name)
    if not names:
        raise BadReply("the reply lists no models")
    return names[:_MOST_MODELS]


def _wrong_address(endpoint: Endpoint, reason: str) -> str:
    """Return what is wrong about an address at which something failed, if that can be seen."""
    if not endpoint.base_url.rstrip("/").endswith("/v1"):
        beside = Endpoint(base_url=f"{endpoint.base_url.rstrip('/')}/v1", api_key_variable=endpoint.api_key_variable)
        with suppress(EndpointError):
            loop.run(_models_of(Client(target_of(beside))))
            return f"its models are listed at {beside.base_url}: add /v1 to the address"
    if _PAGE.search(reason):
        return "a web page answers at this address, not a model server; the address mostly ends with /v1"
    return ""


@dataclass(frozen=True)
class Report:
    """What the test of an endpoint saw, and why it ended early if it did.

    Args:
        seconds: of a request on average.
        attempts: where it was asked of which kind it is, and what it answered.
    """

    dialect: str
    seen: tuple[Seen, ...]
    failure: EndpointError | None
    seconds: float
    attempts: tuple[tuple[str, str], ...] = ()


def probe(endpoint: Endpoint) -> Report:
    """Try an endpoint, keep what was seen with it, and return it in words.

    A resting circuit is no obstacle: who presses the button has often just mended the server.
    """
    gate_of(endpoint).circuit.release()
    attempts: list[tuple[str, str]] = []
    seen: list[Seen] = []
    told = _told(endpoint, attempts)
    found: Called[str] | Called[None] = told
    if told.failure is None:
        endpoint.dialect = told.results[0]
        found = called(call(endpoint, [lambda client: _try_all(client, seen)]))
        if _thinks(endpoint, found.failure):
            endpoint.dialect = _THINKING[Dialect(endpoint.dialect)]
            attempts.append(("max_tokens", f"refused, so it is {Dialect(endpoint.dialect).label}"))
            found = called(call(endpoint, [lambda client: _try_all(client, seen)]))
    if not isinstance(found.failure, Busy | CircuitOpen | Stopped):
        # An end before the end says that it is not known; a test that never began, or that we ended, says nothing.
        _keep(endpoint, seen if found.failure is None else [])
    answered = [request.seconds for request in found.requests if request.error is None]
    seconds = sum(answered) / len(answered) if answered else 0.0
    return Report(endpoint.dialect, tuple(seen), _explained(endpoint, found.failure), seconds, tuple(attempts))


def _explained(endpoint: Endpoint, failure: EndpointError | None) -> EndpointError | None:
    """Return why a test failed; where the server is there, with what is wrong about the address or the model's name."""
    if not isinstance(failure, Refused | BadReply) or endpoint.dialect == Dialect.PROGRAM:
        return failure
    names, _ = listed(endpoint)
    if not names:
        wrong = _wrong_address(endpoint, failure.reason)
        return type(failure)(wrong) if wrong else failure
    if endpoint.model in names:
        return failure
    few = ", ".join(names[:_FEW_MODELS]) + (" and others" if len(names) > _FEW_MODELS else "")
    return type(failure)(f"the server has no model “{endpoint.model}”; it lists {few}")


def _keep(endpoint: Endpoint, seen: Sequence[Seen]) -> None:
    """Store what a test saw; nothing at all says that the endpoint is not tested."""
    can = {Effect.OBEYED.value: True, Effect.IGNORED.value: False, Effect.REFUSED.value: False}
    passed = {each.field: can.get(each.effect) for each in seen}
    kept: dict[str, Any] = {field: passed.get(check) for check, (_, field) in _CHECKS.items()}
    kept["tested_at"] = timezone.now() if seen else None
    if seen:
        if as_it_was(endpoint).exclude(dialect=endpoint.dialect).exists():
            # What was seen of its law was seen of another kind of server.
            kept |= {"profile": {}, "samples_plainly": None, "sampling_words": ""}
        kept["dialect"] = endpoint.dialect
    for field, value in kept.items():
        setattr(endpoint, field, value)
    as_it_was(endpoint).update(**kept)


async def _try_all(client: Client, seen: list[Seen]) -> None:
    """Run all checks, one after another: what is measured is a single request's latency."""
    # Nothing else matters if this fails; its error is the report.
    await client.chat(_ASK, temperature=1.0, seed=_SEEDS[0], max_tokens=16)
    for name, (check, _) in _CHECKS.items():
        effect, words = await _effect(client, check)
        seen.append(Seen(name, effect.value, words[:300]))


async def _effect(client: Client, check: Callable[[Client], Awaitable[str | None]]) -> tuple[Effect, str]:
    try:
        why_not = await check(client)
    except (NeedsAttention, ServerError, BadReply) as error:
        # It answered a plain question a moment ago: what it fails at now, it cannot do (llama.cpp: pictures, with 500).
        return Effect.REFUSED, error.reason
    except Unreachable as error:
        return Effect.UNTOLD, f"not known, for {error.reason}"
    return (Effect.IGNORED, why_not) if why_not else (Effect.OBEYED, "yes")


def _told(endpoint: Endpoint, attempts: list[tuple[str, str]]) -> Called[str]:
    """Return which kind of server an endpoint is, as its owner or its host's name says, or as it answers."""
    if endpoint.dialect_is_declared:
        return Called((endpoint.dialect,))
    host = URL(endpoint.base_url).host or ""
    if dialect := dialect_of_host(host):
        attempts.append((host, f"it is {dialect.label}"))
        return Called((dialect.value,))
    return called(call(endpoint, [lambda client: _dialect_of(client, attempts)]))


def _thinks(endpoint: Endpoint, failure: EndpointError | None) -> bool:
    """Say whether a server of OpenAI's kind names, in its refusal, the field that models have that think first."""
    is_known = not endpoint.dialect_is_declared and endpoint.dialect in _THINKING
    return is_known and isinstance(failure, Refused) and "max_completion_tokens" in failure.reason


async def _dialect_of(client: Client, attempts: list[tuple[str, str]]) -> str:
    """Tell servers apart by what only one of them has; what another answers there, it may answer in any way."""
    for path, field, dialect in _MARKS:
        try:
            is_there = field in await client.get_beside(path)
        except (AddressRefused, KeyMissing, Stopped, TimedOut):
            # The next question would end in the same way, the last one after as long a wait.
            raise
        except EndpointError as error:
            attempts.append((path, error.reason))
            continue
        if is_there:
            attempts.append((path, f"it is {Dialect(dialect).label}"))
            return dialect
        attempts.append((path, f"the reply holds no {field}"))
    return Dialect.OPENAI


async def _varies(client: Client) -> str | None:
    hot = min(_HOT, Dialect(client.target.dialect).server.hottest)
    replies = {await client.chat(_ASK, temperature=hot, seed=seed, max_tokens=16) for seed in _SEEDS}
    if len(replies) > 1:
        return None
    return f"{len(_SEEDS)} seeds at temperature {hot:g} gave the same reply: its votes would be copies of each other"


async def _confines(client: Client) -> str | None:
    if not Dialect(client.target.dialect).has_confinement:
        return "this kind of server has no field for it; replies are read strictly"
    replies = [
        await client.chat(_ASK, temperature=1.0, seed=seed, choices=_UNLIKELY, max_tokens=16) for seed in _SEEDS[:2]
    ]
    outside = [reply for reply in replies if reply not in _UNLIKELY]
    return f"a reply confined to {' or '.join(_UNLIKELY)} was {outside[0]!r}" if outside else None


async def _has_log_probabilities(client: Client) -> str | None:
    return None if len(await client.first_token(_ASK)) > 1 else "only one token came with its log-probability"


async def _has_token_ids(client: Client) -> str | None:
    if not Dialect(client.target.dialect).has_token_ids:
        return "this kind of server does not take and return token ids"
    # All that a model does which writes texts.
    prompt = await tokenising.prompt_ids(client, _ASK)
    drawn = await client.complete(prompt, temperature=1.0, seed=_SEEDS[0], limit=4)
    await tokenising.text(client, drawn.tokens)
    return None


async def _sees_images(client: Client) -> str | None:
    if client.target.dialect == Dialect.PROGRAM:
        # It is sent each picture as it is, and counts no tokens.
        return None
    shown = (Exhibit("red"), Exhibit("blue")), (_square(0), _square(1)), (_square(0, 255), _square(1, 255))
    words, plain, varied = [await _tokens_read(client, *pair) for pair in shown]
    if plain <= words + _A_FEW:
        return "pictures did not change how much the server read: it ignores them"
    # Of the same size, but one file is many times as long as the other.
    if varied > plain + _A_FEW:
        return "the server read the pictures' files as if they were words"
    return None


async def _tokens_read(client: Client, first: Exhibit, second: Exhibit) -> int:
    before = len(client.calls)
    await client.chat(pairwise_messages("images", "Which is redder?", first, second), temperature=1.0, seed=_SEEDS[0])
    return client.calls[before].tokens_in


@cache
def _square(seed: int, most: int = 0) -> Exhibit:
    """Return a picture of one colour, or of `most` + 1 levels at random."""
    levels = np.random.default_rng(seed).integers(0, most + 1, (64, 64, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(levels).save(file, "PNG")
    return Exhibit(picture=Picture("image/png", file.getvalue()))


# What only one kind of server answers: where, and a field of it.
_MARKS = (
    ("/props", "default_generation_settings", Dialect.LLAMA_CPP),
    ("/get_server_info", "model_path", Dialect.SGLANG),
    ("/version", "version", Dialect.VLLM),
    ("/api/version", "version", Dialect.OLLAMA),
)
# What a server of OpenAI's kind is taken for when its model thinks before it answers.
_THINKING = {Dialect.OPENAI: Dialect.OPENAI_REASONING, Dialect.AZURE: Dialect.AZURE_REASONING}
_CHECKS: dict[str, tuple[Callable[[Client], Awaitable[str | None]], str]] = {
    "independent replies": (_varies, "can_vary"),
    "confinement": (_confines, "can_confine"),
    "log-probabilities": (_has_log_probabilities, "can_log_probabilities"),
    "token ids": (_has_token_ids, "can_token_ids"),
    "images": (_sees_images, "can_images"),
}


def fields(endpoint: Endpoint) -> tuple[list[Seen], EndpointError | None]:
    """Return what a server does with each field that its kind has, and why that could not be finished, if it could not.

    All are tried side by side, after the replies that most of them are compared with; the seeds first.
    """
    server = Dialect(endpoint.dialect).server
    before = called(call(endpoint, [_hot]))
    if before.failure is not None:
        return [], before.failure
    hot, seen, repeats = before.results[0], list[Seen](), False
    if "seed" in server.trials:
        again = called(call(endpoint, [_job("seed", lambda client: _repeated(client, hot))]))
        if again.failure is not None:
            return [], again.failure
        seen.extend(again.results)
        repeats = seen[0].effect == Effect.OBEYED
    rest = called(call(endpoint, [_job(field, check) for field, check in _checks(server, hot, repeats).items()]))
    return [*seen, *rest.results, _thinking(server, hot)], rest.failure


async def _hot(client: Client, changes: Mapping[str, Any] | None = None) -> list[Trial]:
    """Return a reply for each seed, at a temperature at which they differ unless a change keeps them from it."""
    target = client.target
    hot = min(_HOT, Dialect(target.dialect).server.hottest)
    return [await client.tried(Question(target.model, _ASK, _TOKENS, hot, seed), changes or {}) for seed in _SEEDS]


_Check = Callable[[Client], Awaitable[tuple[Effect, str]]]


def _checks(server: Server, hot: Sequence[Trial], repeats: bool) -> dict[str, _Check]:
    """Return the checks of the fields that a server's dialect has."""
    checks: dict[str, _Check] = {server.limit_field: lambda client: _limit(client, hot)}
    for name in SHAPE_THE_LAW:
        if name in server.trials:
            checks[name] = _narrowing(server.trials[name], hot, repeats)
    if "penalties" in server.trials:
        checks["penalties"] = _penalised
    return checks | {"system role": _instructed}


def _job(field: str, check: _Check) -> Job[Seen]:
    """Return the job of a check; a server that refuses or fails at it does so for good."""

    async def run(client: Client) -> Seen:
        try:
            effect, evidence = await check(client)
        except (NeedsAttention, BadReply, ServerError) as error:
            # It answered a plain question a moment ago.
            effect, evidence = Effect.REFUSED, error.reason
        return Seen(field, effect.value, evidence[:300])

    return run


async def _limit(client: Client, hot: Sequence[Trial]) -> tuple[Effect, str]:
    """See whether a limit of 1 is one; the name of the field is the dialect's."""
    if not Dialect(client.target.dialect).server.bounds_the_answer_alone:
        return Effect.UNTOLD, "it bounds thinking and answer together"
    written = (await client.tried(Question(client.target.model, _ASK, 1, 1.0, _SEEDS[0]), {})).tokens_out
    longest = max(each.tokens_out for each in hot)
    words = f"{written} written with a limit of 1 token, {longest} with one of {_TOKENS}"
    if not written:
        return Effect.UNTOLD, "the server does not count the tokens it writes"
    if written > 1:
        return Effect.IGNORED, words
    return (Effect.OBEYED, words) if longest > 1 else (Effect.UNTOLD, f"its replies have one token anyway: {words}")


def _narrowing(changes: Mapping[str, Any], hot: Sequence[Trial], repeats: bool) -> _Check:
    """Return the check whether a value that leaves one token to choose from makes all replies the same, or others.

    Args:
        repeats: whether a seed gives the same reply again, so that another reply is an effect.
    """
    value = ", ".join(f"{field} = {value}" for field, value in changes.items())

    async def check(client: Client) -> tuple[Effect, str]:
        if _distinct(hot) == 1:
            return Effect.UNTOLD, f"{len(_SEEDS)} seeds gave the same reply anyway"
        narrow = await _hot(client, changes)
        before, after = _distinct(hot), _distinct(narrow)
        changed = sum(one.text != other.text for one, other in zip(hot, narrow, strict=True))
        words = f"{len(_SEEDS)} seeds gave {before} different replies, and {after} with {value}"
        if after == 1:
            return Effect.OBEYED, words
        if repeats:
            # Two tokens may be as likely as each other; and beside other requests, a server rounds differently.
            effect = Effect.OBEYED if 2 * changed > len(_SEEDS) else Effect.UNTOLD if changed else Effect.IGNORED
            return effect, f"{words}; {changed} of them changed"
        return (Effect.UNTOLD if after < before else Effect.IGNORED), words

    return check


async def _repeated(client: Client, hot: Sequence[Trial]) -> tuple[Effect, str]:
    if _distinct(hot) == 1:
        return Effect.UNTOLD, f"{len(_SEEDS)} seeds gave the same reply"
    same = sum(one.text == other.text for one, other in zip(hot, await _hot(client), strict=True))
    words = f"{same} of {len(_SEEDS)} seeds gave the same reply again"
    return (Effect.OBEYED if same == len(_SEEDS) else Effect.IGNORED), words


async def _penalised(client: Client) -> tuple[Effect, str]:
    question = Question(client.target.model, _ASK, LONGEST_ANSWER, _COLD, _SEEDS[0])
    first, again = [await client.tried(question, {}) for _ in range(2)]
    if first.text != again.text:
        return Effect.UNTOLD, f"at temperature {_COLD} it does not repeat itself either without one"
    if (await client.tried(question, Dialect(client.target.dialect).server.trials["penalties"])).text != first.text:
        return Effect.OBEYED, f"the highest one changed the text at temperature {_COLD}"
    return Effect.UNTOLD, f"the highest one did not change the text at temperature {_COLD}; it may not repeat a token"


async def _instructed(client: Client) -> tuple[Effect, str]:
    model = client.target.model
    questions = [Question(model, messages, 1, 1.0, _SEEDS[0]) for messages in (_ASK, [_SYSTEM, *_ASK])]
    without, with_it = [(await client.tried(question, {})).tokens_in for question in questions]
    if not without or not with_it:
        return Effect.UNTOLD, "the server does not count the tokens it reads"
    words = f"{without} tokens read without a system message, {with_it} with one"
    return (Effect.OBEYED if with_it > without else Effect.IGNORED), words


def _thinking(server: Server, hot: Sequence[Trial]) -> Seen:
    """See whether replies begin with a thought, or their tokens went into one; asks nothing new."""
    thoughts = [each for each in hot if (each.text or "").lstrip().startswith(_THOUGHT)]
    silent = [each for each in hot if not (each.text or "").strip() and each.tokens_out > 1]
    if not server.bounds_the_answer_alone:
        effect, words = Effect.IGNORED, "this kind of model thinks; its thinking is bounded, and is not read"
    elif thoughts or silent:
        effect, words = (
            Effect.IGNORED,
            f"{len(thoughts) + len(silent)} of {len(hot)} replies were a thought, or no text",
        )
    else:
        effect, words = Effect.UNTOLD, f"none of {len(hot)} replies was a thought; it may have none to switch off"
    return Seen("thinking off", effect.value, words)


def _distinct(trials: Sequence[Trial]) -> int:
    return len({trial.text for trial in trials})


def examine(endpoint: Endpoint) -> Called[Identity]:
    """Test a judge's endpoint again, and return what its replies say they are from.

    What was seen is stored with it. Takes some twenty short requests and no transaction.
    """
    failure = _unless_busy(lambda: probe(endpoint), lambda report: report.failure).failure
    if failure := failure or _look_at_context(endpoint):
        return Called((failure,))
    return patiently(endpoint, [_signed(seed) for seed in _SEEDS[:2]])


def examine_writer(endpoint: Endpoint) -> EndpointError | None:
    """Look whether an endpoint that writes texts is there, and how large its context is; return why not.

    That it takes and returns token ids, and samples as it is told, each text shows again (`replies.py`).
    """
    if endpoint.can_token_ids is False:
        return Unable("its last test saw that it does not take and return token ids; if it does now, test it")
    failure = None
    if endpoint.can_token_ids is None and not Dialect(endpoint.dialect).has_token_ids:
        failure = _unless_busy(lambda: probe(endpoint), lambda report: report.failure).failure
    return failure or _look_at_context(endpoint)


def _look_at_context(endpoint: Endpoint) -> EndpointError | None:
    looked = patiently(endpoint, [_context_of])
    if looked.failure is None:
        endpoint.context_tokens = looked.results[0]
        endpoint.save(update_fields=("context_tokens",))
    return looked.failure


def _signed(seed: int) -> Job[Identity]:
    async def ask(client: Client) -> Identity:
        return (await client.signed_chat(_ASK, temperature=1.0, seed=seed, max_tokens=1))[1]

    return ask


async def _context_of(client: Client) -> int | None:
    """Return how many tokens a prompt and its reply may have together; None where the server does not say."""
    readers: tuple[tuple[Callable[[], Awaitable[dict[str, Any]]], Callable[[dict[str, Any]], Any]], ...] = (
        (lambda: client.get_beside("/props"), lambda found: found["default_generation_settings"]["n_ctx"]),
        (lambda: client.get("/models"), lambda found: _model_in(found, client.target.model)["max_model_len"]),
        (lambda: client.get_beside("/get_server_info"), lambda found: found["context_length"]),
    )
    for ask, read in readers:
        try:
            size = read(await ask())
        except (NeedsAttention, BadReply, ServerError, KeyError, TypeError, IndexError):
            continue
        # What no server has, and no column holds, is as good as not said.
        if type(size) is int and 0 < size < 2**31:
            return size
    return None


def _model_in(found: dict[str, Any], name: str) -> dict[str, Any]:
    models = found["data"]
    return next((model for model in models if model["id"] == name), models[0])


def patiently(endpoint: Endpoint, jobs: Sequence[Job[Result]]) -> Called[Result]:
    """Run jobs against an endpoint as `call` does, but wait longer for its requests under way."""
    return _unless_busy(lambda: called(call(endpoint, jobs)), lambda found: found.failure)


def _unless_busy(attempt: Callable[[], Found], failure_of: Callable[[Found], EndpointError | None]) -> Found:
    """Return what an attempt came to, once the endpoint had room for it, or after the last."""
    for _ in range(_MOST_ATTEMPTS - 1):
        found = attempt()
        if not isinstance(failure_of(found), Busy):
            return found
    return attempt()
