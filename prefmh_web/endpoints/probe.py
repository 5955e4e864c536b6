"""*Test* of an endpoint: what kind of server it is, what it can do when tried, and how its replies are distributed.

    listed             the models that a server has, for a form that is being filled in
    most               how many requests a test makes at most, and what they cost at most, told before
    begin, run, stop   a test, made by a worker, which says every second that it lives and how many requests there were
    look_after         tests whose message was lost are hinted again; those whose worker died are over
    probe              kind and abilities; what was seen is kept with the endpoint, null where it was not tried
    examine            all that Start needs to know of a judge's endpoint before a campaign relies on it
    examine_writer     the same of one that writes texts
    test_distribution  the distribution again, with the pairs of a campaign, where Start is at it

The abilities:

    independent replies different seeds give different replies (else all votes would be copies of one)
    constrained replies a reply constrained to two unlikely words is one of them
    log-probabilities   the first token comes with those of its rivals
    token ids           a chat becomes ids, ids go in and come out, at plain temperature sampling, and become a text
    images              a picture changes how many tokens the server reads, and what is in it does not

The kind is found out first, from what each kind of server has and the others have not. The distribution is `truth.py`.

One test of an endpoint at a time. A test is not taken up in the middle: what it compares was asked in one go. So a test
whose worker died is begun again by whoever wants it, and nobody pays for requests that they do not know of.

The report of a test that is done:

    failure    why the server did not pass, else empty
    untried    why its distribution was not tried to the end, else empty
    kind       what it was taken for
    findings   triples of a check, whether it passed (null: not tried), and words
"""

import io
import logging
import re
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from functools import cache
from typing import Any

import numpy as np
from django.db import DatabaseError, Error, connection, transaction
from django.utils import timezone
from PIL import Image
from yarl import URL

from prefmh_web.endpoints import loop, truth
from prefmh_web.endpoints.calls import asked, call, called
from prefmh_web.endpoints.client import Client, Watch, watched
from prefmh_web.endpoints.errors import (
    AddressRefused,
    BadReply,
    CircuitOpen,
    EndpointError,
    KeyMissing,
    MinuteFull,
    RateLimited,
    Refused,
    Stopped,
    TimedOut,
    Unable,
    Unreachable,
)
from prefmh_web.endpoints.limits import request_limits_of
from prefmh_web.endpoints.models import Endpoint, EndpointTest, as_it_was
from prefmh_web.endpoints.replies import Identity, storable
from prefmh_web.endpoints.servers import ChatRequest, Dialect, dialect_of_host
from prefmh_web.endpoints.truth import ASK, CANNOT, HOT, SEEDS, Effect, Observation
from prefmh_web.endpoints.writer import prompt_ids, words_of
from prefmh_web.transport import publishing
from sampler.judges import Picture, ShownObject, pairwise_prompt

logger = logging.getLogger(__name__)

# What `probe` makes, and what `truth.py` does.
MAX_REQUESTS = 40 + truth.MAX_REQUESTS
CLAIM_S, _EVERY_S = 30.0, 1.0
_LONGEST_ANSWER = 16
# No model answers with one of these on its own.
_UNLIKELY = ("QX7", "ZJ3")
# For each seed, which it does not read.
_ASKS_OF_A_PROGRAM = 8
# Tokens by which two prompts may differ that say the same.
_A_FEW = 8
_MAX_MODELS, _LONGEST_NAME, _FEW_MODELS = 1_000, 200, 8
_PAGE = re.compile(r"<(!doctype )?html", re.IGNORECASE)
# Of a question in words, and of the pictures that are sent once, should they be read as words.
_MAX_TOKENS_IN, _TOKENS_OF_PICTURES = 300, 40_000
_TASK = "prefmh_web.tasks.run_test"
_RUNNING, _STOPPED = EndpointTest.Status.RUNNING, EndpointTest.Status.STOPPED
_ABANDONED = "The process that made the test ended before it was over. Test it again."


def listed(endpoint: Endpoint) -> tuple[list[str], str]:
    """Return the models that a server lists, and why it lists none; one request or two, and nothing is stored.

    Args:
        endpoint: may be unsaved, and without a model.
    """
    try:
        return loop.run(_models_of(Client(endpoint))), ""
    except EndpointError as error:
        return [], _wrong_address(endpoint, error.reason) or error.reason


async def _models_of(client: Client) -> list[str]:
    found = (await client.get("/models")).get("data")
    models = [model.get("id") for model in found if isinstance(model, dict)] if isinstance(found, list) else []
    names = sorted(storable(name)[:_LONGEST_NAME] for name in models if isinstance(name, str) and name)
    if not names:
        raise BadReply("the reply lists no models")
    return names[:_MAX_MODELS]


def _wrong_address(endpoint: Endpoint, reason: str) -> str:
    """Return what is wrong about an address at which something failed, if that can be seen."""
    if not endpoint.base_url.rstrip("/").endswith("/v1"):
        versioned = Endpoint(base_url=f"{endpoint.base_url.rstrip('/')}/v1", api_key_variable=endpoint.api_key_variable)
        with suppress(EndpointError):
            loop.run(_models_of(Client(versioned)))
            return f"its models are listed at {versioned.base_url}: add /v1 to the address"
    if _PAGE.search(reason):
        return "a web page answers at this address, not a model server; the address mostly ends with /v1"
    return ""


def probe(endpoint: Endpoint) -> tuple[list[Observation], EndpointError | None]:
    """Try an endpoint, keep what was seen with it, and return it in words, with why it ended early if it did.

    An open circuit is no obstacle: who presses the button has often just fixed the server.
    """
    request_limits_of(endpoint).circuit.release()
    found = called(call(endpoint, [_tried]))
    seen, failure = (found.results[0] if found.results else []), found.failure
    if not isinstance(failure, MinuteFull | CircuitOpen | Stopped):
        # An end before the end says that it is not known; a test that never began, or that we ended, says nothing.
        _keep_abilities(endpoint, seen)
    return seen, _explained(endpoint, failure)


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


def _keep_abilities(endpoint: Endpoint, seen: Sequence[Observation]) -> None:
    """Store what a test saw; nothing at all says that the endpoint is not tested."""
    can = {Effect.OBEYED.value: True, Effect.IGNORED.value: False, Effect.REFUSED.value: False}
    passed = {each.field: can.get(each.effect) for each in seen}
    kept: dict[str, Any] = {field: passed.get(check) for check, (_, field) in _CHECKS.items()}
    kept["tested_at"] = timezone.now() if seen else None
    if seen:
        if as_it_was(endpoint).exclude(dialect=endpoint.dialect).exists():
            # What was seen of its distribution was seen of another kind of server.
            kept |= {"profile": {}, "samples_untruncated": None, "sampling_evidence": ""}
        kept["dialect"] = endpoint.dialect
    _store(endpoint, kept)


def _store(endpoint: Endpoint, kept: dict[str, Any]) -> None:
    for field, value in kept.items():
        setattr(endpoint, field, value)
    as_it_was(endpoint).update(**kept)


async def _tried(client: Client) -> list[Observation]:
    """Find out the kind of server, and run all checks, one after another."""
    endpoint = client.endpoint
    endpoint.dialect = await _dialect_of(client)
    try:
        await client.ask(_question(endpoint))
    except Refused as error:
        if endpoint.dialect_is_declared or endpoint.dialect not in _THINKING or _THINKS_FIRST not in error.reason:
            raise
        endpoint.dialect = _THINKING[Dialect(endpoint.dialect)]
        await client.ask(_question(endpoint))
    return [await _seen(client, name, check) for name, (check, _) in _CHECKS.items()]


async def _seen(client: Client, name: str, check: Callable[[Client], Awaitable[str]]) -> Observation:
    try:
        why_not = await check(client)
    except CANNOT as error:
        return Observation(name, Effect.REFUSED, error.reason[:300])
    except Unreachable as error:
        return Observation(name, Effect.UNTESTABLE, f"not known, for {error.reason}"[:300])
    except _UntoldError as why:
        return Observation(name, Effect.UNTESTABLE, str(why))
    return Observation(name, Effect.IGNORED if why_not else Effect.OBEYED, (why_not or "yes")[:300])


def _question(endpoint: Endpoint, seed: int = SEEDS[0]) -> ChatRequest:
    return ChatRequest(endpoint.model, ASK, _LONGEST_ANSWER, 1.0, seed, thinking=endpoint.thinking_tokens)


async def _dialect_of(client: Client) -> str:
    """Return which kind of server it is, as its owner or its host's name says, or by what only one kind answers.

    What another answers there, it may answer in any way.
    """
    if client.endpoint.dialect_is_declared:
        return client.endpoint.dialect
    if dialect := dialect_of_host(URL(client.endpoint.base_url).host or ""):
        return dialect
    for path, field, dialect in _MARKS:
        try:
            if field in await client.get(path, is_at_root=True):
                return dialect
        except (AddressRefused, KeyMissing, Stopped, TimedOut, Unreachable):
            # The next question would end in the same way, and some only after as long a wait.
            raise
        except RateLimited:
            # It is too busy to tell, so it is taken for what it was.
            if dialect == client.endpoint.dialect:
                return dialect
        except EndpointError:
            continue
    return Dialect.OPENAI


# Each check returns why it is not passed, empty where it is.


class _UntoldError(Exception):
    """A check cannot tell; the text says why."""


async def _varies(client: Client) -> str:
    hot, is_program = min(HOT, client.server.hottest), client.endpoint.dialect == Dialect.PROGRAM
    seeds, replies = SEEDS * (_ASKS_OF_A_PROGRAM if is_program else 1), set()
    for seed in seeds:
        replies.add((await client.ask(replace(_question(client.endpoint, seed), temperature=hot))).text)
        if len(replies) > 1:
            return ""
    if is_program:
        # It has but two answers, and may prefer one of them.
        raise _UntoldError(f"it gave the same answer {len(seeds)} times, by its preference or because it always does")
    return f"{len(seeds)} seeds at temperature {hot:g} gave the same reply: its votes would be copies of each other"


async def _constrains(client: Client) -> str:
    if client.server.constrained is None:
        return "this kind of server has no field for it; replies are read strictly"
    questions = [replace(_question(client.endpoint, seed), choices=_UNLIKELY) for seed in SEEDS[:2]]
    replies = [(await client.ask(question)).text for question in questions]
    outside = [reply for reply in replies if reply not in _UNLIKELY]
    return f"a reply constrained to {' or '.join(_UNLIKELY)} was {outside[0]!r}" if outside else ""


async def _has_log_probabilities(client: Client) -> str:
    reply = await client.ask(ChatRequest(client.endpoint.model, ASK, log_probabilities=True))
    return "" if len(reply.tokens) > 1 else "only one token came with its log-probability"


async def _has_token_ids(client: Client) -> str:
    if client.server.writing is None:
        return "this kind of server does not take and return token ids"
    # All that a model does which writes texts.
    prompt = await prompt_ids(client, ASK)
    drawn = await client.complete(prompt, temperature=1.0, seed=SEEDS[0], limit=4)
    await words_of(client, drawn.tokens)
    return ""


async def _sees_images(client: Client) -> str:
    if client.endpoint.dialect == Dialect.PROGRAM:
        # It is sent each picture as it is, and counts no tokens.
        return ""
    shown = (ShownObject("red"), ShownObject("blue")), (_square(0), _square(1)), (_square(0, 255), _square(1, 255))
    words, plain, varied = [await _tokens_read(client, *pair) for pair in shown]
    if plain <= words + _A_FEW:
        return "pictures did not change how much the server read: it ignores them"
    # Of the same size, but one file is many times as long as the other.
    if varied > plain + _A_FEW:
        return "the server read the pictures' files as if they were words"
    return ""


async def _tokens_read(client: Client, first: ShownObject, second: ShownObject) -> int:
    messages = pairwise_prompt("images", "Which is redder?").messages(first, second)
    return (await client.ask(replace(_question(client.endpoint), messages=messages))).tokens_in


@cache
def _square(seed: int, most: int = 0) -> ShownObject:
    """Return a picture of one colour, or of `most` + 1 levels at random."""
    levels = np.random.default_rng(seed).integers(0, most + 1, (64, 64, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(levels).save(file, "PNG")
    return ShownObject(picture=Picture("image/png", file.getvalue()))


# What only one kind of server answers: where, and a field of it.
_MARKS = (
    ("/props", "default_generation_settings", Dialect.LLAMA_CPP),
    ("/get_server_info", "model_path", Dialect.SGLANG),
    ("/version", "version", Dialect.VLLM),
    ("/api/version", "version", Dialect.OLLAMA),
)
# What a server of OpenAI's kind is taken for when its refusal names the field of models that think first.
_THINKS_FIRST = "max_completion_tokens"
_THINKING = {Dialect.OPENAI: Dialect.OPENAI_REASONING, Dialect.AZURE: Dialect.AZURE_REASONING}
_CHECKS: dict[str, tuple[Callable[[Client], Awaitable[str]], str]] = {
    "independent replies": (_varies, "can_vary"),
    "constrained replies": (_constrains, "can_constrain"),
    "log-probabilities": (_has_log_probabilities, "can_log_probabilities"),
    "token ids": (_has_token_ids, "can_token_ids"),
    "images": (_sees_images, "can_images"),
}


def examine(endpoint: Endpoint) -> tuple[list[Identity], EndpointError | None]:
    """Test a judge's endpoint again, and return what its replies say they are from, and why it did not pass.

    What was seen is stored with it. Takes some twenty short requests and no transaction.
    """
    if failure := probe(endpoint)[1] or _look_at_context(endpoint):
        return [], failure

    found = asked(endpoint, [replace(_question(endpoint, seed), max_tokens=1) for seed in SEEDS[:2]])
    return [reply.identity for reply in found.results], found.failure


def examine_writer(endpoint: Endpoint) -> EndpointError | None:
    """Look whether an endpoint that writes texts is there, and how large its context is; return why not.

    That it takes and returns token ids, and samples as it is told, each text shows again (`replies.py`).
    """
    if endpoint.can_token_ids is False:
        return Unable("its last test saw that it does not take and return token ids; if it does now, test it")
    failure = None
    if endpoint.can_token_ids is None and Dialect(endpoint.dialect).server.writing is None:
        _, failure = probe(endpoint)
    return failure or _look_at_context(endpoint)


def _look_at_context(endpoint: Endpoint) -> EndpointError | None:
    if endpoint.dialect == Dialect.PROGRAM:
        # It has no pages.
        return None
    looked = called(call(endpoint, [_context_of]))
    if looked.failure is None:
        endpoint.context_tokens = looked.results[0]
        endpoint.save(update_fields=("context_tokens",))
    return looked.failure


async def _context_of(client: Client) -> int | None:
    """Return how many tokens a prompt and its reply may have together; None where the server does not say."""
    readers: tuple[tuple[str, bool, Callable[[dict[str, Any]], Any]], ...] = (
        ("/props", True, lambda found: found["default_generation_settings"]["n_ctx"]),
        ("/models", False, lambda found: _model_in(found, client.endpoint.model)["max_model_len"]),
        ("/get_server_info", True, lambda found: found["context_length"]),
    )
    for path, is_at_root, read in readers:
        try:
            size = read(await client.get(path, is_at_root=is_at_root))
        except (*CANNOT, KeyError, TypeError, IndexError):
            continue
        # What no server has, and no column holds, is as good as not said.
        if type(size) is int and 0 < size < 2**31:
            return size
    return None


def _model_in(found: dict[str, Any], name: str) -> dict[str, Any]:
    models = found["data"]
    return next((model for model in models if model["id"] == name), models[0])


def test_distribution(endpoint: Endpoint, pairs: Sequence[truth.Pair]) -> EndpointError | None:
    """Test again how an endpoint samples, with pairs of a campaign, keep what was seen, and return why that failed."""
    seen, failure = truth.truth(endpoint, pairs)
    if failure is None:
        others = [row for row in endpoint.profile["fields"] if row["field"] != truth.TRUTH]
        _keep_distribution(endpoint, endpoint.profile | {"fields": [*others, *map(asdict, seen)]})
    return failure


def _keep_distribution(endpoint: Endpoint, profile: dict[str, Any]) -> None:
    """Keep what was seen of an endpoint's distribution; empty where it was not seen to the end."""
    endpoint.profile = profile
    samples_untruncated, words = truth.untruncated(endpoint)
    _store(endpoint, {"profile": profile, "samples_untruncated": samples_untruncated, "sampling_evidence": words[:300]})


@dataclass(frozen=True)
class Most:
    """What a test takes at most; the cost is None where no prices are known."""

    requests: int
    cost: float | None


def most(endpoint: Endpoint, requests: int = MAX_REQUESTS, longest: int = 0) -> Most:
    """Return what a test of an endpoint takes at most, at the prices of now.

    Args:
        longest: of the objects that are shown in it, in characters; of the ready-made pairs if 0.
    """
    if endpoint.input_price is None or endpoint.output_price is None:
        return Most(requests, None)
    question = ChatRequest(endpoint.model, max_tokens=_LONGEST_ANSWER, thinking=endpoint.thinking_tokens)
    written = requests * Dialect(endpoint.dialect).server.limit(question)
    read = requests * (_MAX_TOKENS_IN + 2 * longest) + _TOKENS_OF_PICTURES
    return Most(requests, (read * endpoint.input_price + written * endpoint.output_price) / 1e6)


class UnderWay(Exception):  # noqa: N818 - named by what stands in the way
    """A test of the endpoint is under way. Its text is for the researcher."""


def begin(endpoint: Endpoint) -> EndpointTest:
    """Begin a test of an endpoint.

    Raises:
        UnderWay: there is one already, or a request of one that was stopped is on its way.
        Endpoint.DoesNotExist: it was removed meanwhile.
    """
    with transaction.atomic():
        # Of two who press the button, the second sees what the first has begun.
        Endpoint.objects.select_for_update().get(pk=endpoint.pk)
        last = EndpointTest.objects.filter(endpoint=endpoint).last()
        if last is not None and last.is_abandoned:
            _end(last, _ABANDONED)
        elif last is not None and last.is_running:
            raise UnderWay(f"{endpoint.name} is being tested. Wait for the end, or stop it.")
        elif last is not None and last.until is not None and last.until > timezone.now():
            raise UnderWay(f"A request of the test of {endpoint.name} is still on its way. Test it in a moment.")
        test = EndpointTest.objects.create(endpoint=endpoint)
        _hint(test)
    return test


def run(test_id: int) -> None:
    """Make a test that nobody has begun to make."""
    until = timezone.now() + timedelta(seconds=CLAIM_S)
    # A guarded update: of two workers with the same message, one makes it.
    if not EndpointTest.objects.filter(pk=test_id, status=_RUNNING, until=None).update(until=until):
        return
    endpoint = Endpoint.objects.get(tests=test_id)
    with watched() as watch, _telling(test_id, watch):
        try:
            report = _report(endpoint, watch)
        except (DatabaseError, Endpoint.DoesNotExist):
            if Endpoint.objects.filter(pk=endpoint.pk).exists():
                raise
            # Its owner has removed it, and the test with it.
            return
    test = EndpointTest.objects.filter(pk=test_id)
    # In one statement: a running test that nobody claims would be made again. One that was stopped meanwhile stays so.
    test.filter(status=_RUNNING).update(status=EndpointTest.Status.DONE, report=report)
    test.update(until=None, requests=watch.requests)


def stop(endpoint: Endpoint, reason: str = "You stopped it.") -> None:
    """Stop the test that is under way, if one is; its worker notices within a second."""
    for test in EndpointTest.objects.filter(endpoint=endpoint, status=_RUNNING):
        _end(test, reason)


def note_trouble(test_id: int) -> None:
    """Say that a test failed for a reason of ours."""
    for test in EndpointTest.objects.filter(pk=test_id):
        _end(test, "It could not be made; the server's log says why.")


def look_after() -> None:
    """Hint tests that nobody makes again, and end those whose worker died."""
    for test in EndpointTest.objects.filter(status=_RUNNING):
        if test.until is None:
            _hint(test)
        elif test.is_abandoned:
            _end(test, _ABANDONED)


def _report(endpoint: Endpoint, watch: Watch) -> dict[str, Any]:
    abilities, failure = probe(endpoint)
    untried, seen = None, list(abilities)
    for ask in () if failure else (truth.temperature, truth.truth, truth.rare_label):
        found, untried = ask(endpoint)
        seen += found
        if untried is not None:
            break
    if isinstance(failure or untried, Stopped):
        return {}
    if failure is None:
        when, fields = timezone.now().isoformat(timespec="seconds"), [asdict(each) for each in seen]
        _keep_distribution(
            endpoint, {} if untried else {"tested_at": when, "requests": watch.requests, "fields": fields}
        )
    passed = {Effect.OBEYED.value: True, Effect.UNTESTABLE.value: None}
    return {
        "failure": failure.reason if failure else "",
        "untried": untried.reason if untried else "",
        "kind": str(Dialect(endpoint.dialect).label),
        "findings": [[each.field, passed.get(each.effect, False), each.evidence] for each in abilities],
    }


@contextmanager
def _telling(test_id: int, watch: Watch) -> Iterator[None]:
    """Say how far a test is, every second and on a thread of its own. What the database refuses is tried again."""
    over = threading.Event()

    def tell() -> None:
        while not over.wait(_EVERY_S):
            try:
                _say_how_far(test_id, watch)
            except Error:
                logger.warning("could not write how far a test of a model server is; trying again", exc_info=True)
            finally:
                connection.close()

    thread = threading.Thread(target=tell, name="test", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _say_how_far(test_id: int, watch: Watch) -> None:
    """Store how many requests there were, and that somebody is at it; heed that it was stopped."""
    until = timezone.now() + timedelta(seconds=CLAIM_S)
    test = EndpointTest.objects.filter(pk=test_id)
    # Of one that was stopped, too: while a request is on its way, no other test begins.
    test.update(until=until, requests=watch.requests)
    if not test.filter(status=_RUNNING).exists():
        watch.is_stopped = True


def _end(test: EndpointTest, reason: str) -> None:
    EndpointTest.objects.filter(pk=test.pk, status=_RUNNING).update(status=_STOPPED, reason=reason)


def _hint(test: EndpointTest) -> None:
    # robust: a broker that is away undoes nothing; `look_after` gives the hint again.
    transaction.on_commit(lambda: publishing.publish(publishing.TaskMessage(_TASK, (test.pk,))), robust=True)
