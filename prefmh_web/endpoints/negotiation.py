"""Which fields of a request a server obeys, seen by their effect: a reply must differ if the field counts.

    max_tokens          with a limit of 1 it writes one token, with a larger one more
    temperature, top_p  with a value that leaves one token to choose from, all seeds give the same reply, although they
    top_k, min_p        gave different ones before; where two tokens are as likely, at least others than before
    seed                the same seeds give the same replies again
    penalties           with the highest one, the most probable text changes
    log-probabilities   the first token comes with those of its rivals
    confinement         a reply confined to two unlikely words is one of them
    system role         with a system message it reads more tokens
    rare label          a label comes at the rate that the server tells, or cannot be less than (`tilted_label.py`)
    thinking off        a short reply has a text, and its text is no thought

A status says nothing: many servers answer 200 and pass over what they do not know. Fields that the dialect does not
have are not tried. What was seen is the endpoint's profile; Start freezes it with the judge, and refuses to let a
server vote that ignores a field which shapes its law.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from django.utils import timezone

from prefmh_web.endpoints.calls import call
from prefmh_web.endpoints.client import Client
from prefmh_web.endpoints.dialects import Dialect, Question, Server
from prefmh_web.endpoints.effects import Effect, Seen
from prefmh_web.endpoints.errors import BadReply, EndpointError, NeedsAttention, ServerError, Stopped
from prefmh_web.endpoints.models import Endpoint, as_it_was
from prefmh_web.endpoints.outcomes import Trial
from prefmh_web.endpoints.tilted_label import RARE_LABEL, rare_label

# Those that make votes come from another law than the model's own at the judge's temperature.
SHAPE_THE_LAW = ("temperature", "top_p", "top_k", "min_p")
_ASK = [{"role": "user", "content": "Write one short sentence about the sea."}]
_SYSTEM = {"role": "system", "content": "You are a sailor who has been at sea for many years and likes to talk of it."}
# No model answers with one of these on its own.
_UNLIKELY = ("QX7", "ZJ3")
_SEEDS = (611_953, 7_368_787, 86_028_121, 982_451_653)
_HOT = 1.5
_COLD = 0.01
_TOKENS = 8
_THOUGHT = ("<think>", "<thinking>", "<|channel|>analysis")


def negotiate(endpoint: Endpoint) -> EndpointError | None:
    """Try an endpoint's fields, and store what was seen as its profile; takes some thirty short requests, and
    a hundred or two for the rare label.

    Returns:
        Why it could not be finished; the profile is empty then, and stays as it was if we stopped it. None if it was.
    """
    seen, failure = _tried(endpoint)
    if failure is None:
        found, failure = rare_label(endpoint)
        seen = [*seen, found]
    if isinstance(failure, Stopped):
        return failure
    profile: dict[str, Any] = {}
    if failure is None:
        profile = {
            "tested_at": timezone.now().isoformat(timespec="seconds"),
            "requests": len(_SEEDS) + sum(each.requests for each in seen),
            "fields": [asdict(each) for each in seen],
        }
    endpoint.profile = profile
    as_it_was(endpoint).update(profile=profile)
    return failure


def alters_the_law(endpoint: Endpoint) -> str:
    """Return why votes sampled from a server would have another law, naming the field; empty where none is known to."""
    for seen in endpoint.profile.get("fields", []):
        if seen["field"] == RARE_LABEL and seen["effect"] == Effect.IGNORED:
            why = f"its last test saw that it does not sample from its own law: {seen['evidence']}"
            return f"{why}. If it has changed, test it again"
        if seen["field"] in SHAPE_THE_LAW and seen["effect"] == Effect.IGNORED:
            why = f"its last test saw that it ignores {seen['field']}: {seen['evidence']}"
            return f"{why}. If it has changed, test it again"
    return ""


class _Asking:
    """A client that counts the requests of one check, while others run beside it."""

    def __init__(self, client: Client) -> None:
        self.client, self.requests = client, 0
        self.model, self.server = client.target.model, Dialect(client.target.dialect).server

    def tried(self, question: Question, changes: Mapping[str, Any] | None = None) -> Trial:
        self.requests += 1
        return self.client.tried(question, changes or {})

    def hot(self, changes: Mapping[str, Any] | None = None) -> list[Trial]:
        """Return a reply for each seed, at a temperature at which they differ unless a change keeps them from it."""
        hot = min(_HOT, self.server.hottest)
        return [self.tried(Question(self.model, _ASK, _TOKENS, hot, seed), changes) for seed in _SEEDS]


_Check = Callable[[_Asking], tuple[Effect, str]]


def _tried(endpoint: Endpoint) -> tuple[list[Seen], EndpointError | None]:
    """Run all checks side by side, after the replies that most of them compare with; the seeds' first."""
    server = Dialect(endpoint.dialect).server
    before = call(endpoint, [lambda client: _Asking(client).hot()])
    if before.failure is not None:
        return [], before.failure
    hot, seen, repeats = before.results[0], list[Seen](), False
    if "seed" in server.trials:
        again = call(endpoint, [_job("seed", lambda asking: _repeated(asking, hot))])
        if again.failure is not None:
            return [], again.failure
        seen.extend(again.results)
        repeats = seen[0].effect == Effect.OBEYED
    called = call(endpoint, [_job(field, check) for field, check in _checks(server, hot, repeats).items()])
    return [*seen, *called.results, _thinking(server, hot)], called.failure


def _checks(server: Server, hot: Sequence[Trial], repeats: bool) -> dict[str, _Check]:
    """Return the checks of the fields that a server's dialect has."""
    checks: dict[str, _Check] = {server.limit_field: lambda asking: _limit(asking, hot)}
    for name in SHAPE_THE_LAW:
        if name in server.trials:
            checks[name] = _narrowing(server.trials[name], hot, repeats)
    if "penalties" in server.trials:
        checks["penalties"] = _penalised
    if server.has_log_probabilities:
        checks["log-probabilities"] = _logged
    if server.has_confinement:
        checks["confinement"] = _confined
    return checks | {"system role": _instructed}


def _job(field: str, check: _Check) -> Callable[[Client], Seen]:
    """Return the job of a check; a server that refuses or fails at it does so for good."""

    def run(client: Client) -> Seen:
        asking = _Asking(client)
        try:
            effect, evidence = check(asking)
        except (NeedsAttention, BadReply, ServerError) as error:
            # It answered a plain question a moment ago.
            effect, evidence = Effect.REFUSED, error.reason
        return Seen(field, effect.value, evidence[:300], asking.requests)

    return run


def _limit(asking: _Asking, hot: Sequence[Trial]) -> tuple[Effect, str]:
    """See whether a limit of 1 is one; the name of the field is the dialect's."""
    if not asking.server.bounds_the_answer_alone:
        return Effect.UNTOLD, "it bounds thinking and answer together"
    written = asking.tried(Question(asking.model, _ASK, 1, 1.0, _SEEDS[0])).tokens_out
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

    def check(asking: _Asking) -> tuple[Effect, str]:
        if _distinct(hot) == 1:
            return Effect.UNTOLD, f"{len(_SEEDS)} seeds gave the same reply anyway"
        narrow = asking.hot(changes)
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


def _repeated(asking: _Asking, hot: Sequence[Trial]) -> tuple[Effect, str]:
    if _distinct(hot) == 1:
        return Effect.UNTOLD, f"{len(_SEEDS)} seeds gave the same reply"
    same = sum(one.text == other.text for one, other in zip(hot, asking.hot(), strict=True))
    words = f"{same} of {len(_SEEDS)} seeds gave the same reply again"
    return (Effect.OBEYED if same == len(_SEEDS) else Effect.IGNORED), words


def _penalised(asking: _Asking) -> tuple[Effect, str]:
    question = Question(asking.model, _ASK, 4 * _TOKENS, _COLD, _SEEDS[0])
    first, again = asking.tried(question), asking.tried(question)
    if first.text != again.text:
        return Effect.UNTOLD, f"at temperature {_COLD} it does not repeat itself either without one"
    if asking.tried(question, asking.server.trials["penalties"]).text != first.text:
        return Effect.OBEYED, f"the highest one changed the text at temperature {_COLD}"
    return Effect.UNTOLD, f"the highest one did not change the text at temperature {_COLD}; it may not repeat a token"


def _logged(asking: _Asking) -> tuple[Effect, str]:
    asking.requests += 1
    told = len(asking.client.first_token(_ASK))
    if told > 1:
        return Effect.OBEYED, f"the {told} most probable first tokens came with theirs"
    return Effect.IGNORED, f"{told} token came with its log-probability"


def _confined(asking: _Asking) -> tuple[Effect, str]:
    questions = [Question(asking.model, _ASK, 2 * _TOKENS, 1.0, seed, _UNLIKELY) for seed in _SEEDS[:2]]
    outside = [said for said in (asking.tried(question).text for question in questions) if said not in _UNLIKELY]
    if outside:
        return Effect.IGNORED, f"a reply confined to {' or '.join(_UNLIKELY)} was {outside[0]!r:.100}"
    return Effect.OBEYED, f"two replies confined to {' or '.join(_UNLIKELY)} were one of them"


def _instructed(asking: _Asking) -> tuple[Effect, str]:
    questions = [Question(asking.model, messages, 1, 1.0, _SEEDS[0]) for messages in (_ASK, [_SYSTEM, *_ASK])]
    without, with_it = (asking.tried(question).tokens_in for question in questions)
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
    return Seen("thinking off", effect.value, words, 0)


def _distinct(trials: Sequence[Trial]) -> int:
    return len({trial.text for trial in trials})
