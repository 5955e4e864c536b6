"""*Test* of an endpoint outside the request: some hundred requests, made by a worker, seen on the page as they come.

    most       how many requests it makes at most, and what they cost at most, told before
    begin      a test that a worker is to make
    run        all of it, by one worker, which says every second that it lives and how many requests there were
    stop       no further request; what it is able to do is kept if that was seen to the end, fields only all together
    look_after tests whose message was lost are hinted again; those whose worker died are over
    test_law   with the pairs of a campaign, where Start is at it

One test of an endpoint at a time. A test is not taken up in the middle: what it compares was asked in one go. So a test
whose worker died is begun again by whoever wants it, and nobody pays for requests that they do not know of.

The report of a test that is done:

    failure    why the server did not pass, else empty
    untried    why its fields were not tried to the end, else empty
    kind       what it was taken for
    attempts   what it answered to the question of which kind it is: pairs of a path and words
    findings   triples of a check, whether it passed (null: not tried), and words
    seconds    of a request on average
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, transaction
from django.utils import timezone

from prefmh_web.endpoints import abilities, truth
from prefmh_web.endpoints.errors import EndpointError, Stopped
from prefmh_web.endpoints.keeping import Keeper
from prefmh_web.endpoints.models import Endpoint, EndpointTest, as_it_was
from prefmh_web.endpoints.outcomes import Effect
from prefmh_web.endpoints.servers import Dialect, Question
from prefmh_web.endpoints.watched import Watch, watched
from prefmh_web.transport import publishing

CLAIM_S = 30.0
MOST_REQUESTS = abilities.MOST_REQUESTS + truth.MOST_REQUESTS
# Of a question in words, and of the pictures that are sent once, should they be read as words.
_MOST_TOKENS_IN, _TOKENS_OF_PICTURES = 300, 40_000
_TASK = "prefmh_web.endpoints.tasks.run_test"
_RUNNING, _STOPPED = EndpointTest.Status.RUNNING, EndpointTest.Status.STOPPED
_ABANDONED = "The process that made the test ended before it was over. Test it again."


@dataclass(frozen=True)
class Most:
    """What a test takes at most; the cost is None where no prices are known."""

    requests: int
    cost: float | None


def most(endpoint: Endpoint, requests: int = MOST_REQUESTS, longest: int = 0) -> Most:
    """Return what a test of an endpoint takes at most, at the prices of now.

    Args:
        longest: of the objects that are shown in it, in characters; of the ready-made pairs if 0.
    """
    if endpoint.input_price is None or endpoint.output_price is None:
        return Most(requests, None)
    question = Question(endpoint.model, max_tokens=abilities.LONGEST_ANSWER, thinking=endpoint.thinking_tokens)
    written = requests * Dialect(endpoint.dialect).server.limit(question)
    read = requests * (_MOST_TOKENS_IN + 2 * longest) + _TOKENS_OF_PICTURES
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
    with watched() as watch:
        keeper = Keeper(lambda: _say_how_far(test_id, watch))
        keeper.begin()
        try:
            report = _report(endpoint, watch)
        except (DatabaseError, Endpoint.DoesNotExist):
            if Endpoint.objects.filter(pk=endpoint.pk).exists():
                raise
            # Its owner has removed it, and the test with it.
            return
        finally:
            keeper.end()
    test = EndpointTest.objects.filter(pk=test_id)
    # In one statement: a running test that nobody claims would be made again. One that was stopped meanwhile stays so.
    test.filter(status=_RUNNING).update(status=EndpointTest.Status.DONE, report=report)
    test.update(until=None, requests=watch.requests)


def test_law(endpoint: Endpoint, pairs: Sequence[truth.Pair]) -> EndpointError | None:
    """Test the law of an endpoint again, with pairs of a campaign, keep what was seen, and return why that failed."""
    seen, failure = truth.truth(endpoint, pairs)
    if failure is None:
        others = [row for row in endpoint.profile["fields"] if row["field"] != truth.TRUTH]
        _keep(endpoint, endpoint.profile | {"fields": [*others, *map(asdict, seen)]})
    return failure


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
    report, untried = abilities.probe(endpoint), None
    if report.failure is None:
        seen = list(report.seen)
        for ask in (abilities.fields, truth.truth, truth.rare_label):
            found, untried = ask(endpoint)
            seen += found
            if untried is not None:
                break
        if not isinstance(untried, Stopped):
            when = timezone.now().isoformat(timespec="seconds")
            profile = {"tested_at": when, "requests": watch.requests, "fields": [asdict(each) for each in seen]}
            _keep(endpoint, {} if untried else profile)
    if isinstance(report.failure or untried, Stopped):
        return {}
    return _in_words(report, untried)


def _keep(endpoint: Endpoint, profile: dict[str, Any]) -> None:
    """Keep what was seen of an endpoint's fields and law; empty where it was not seen to the end."""
    endpoint.profile = profile
    endpoint.samples_plainly, words = truth.plainness(endpoint)
    endpoint.sampling_words = words[:300]
    names = ("profile", "samples_plainly", "sampling_words")
    as_it_was(endpoint).update(**{name: getattr(endpoint, name) for name in names})


def _in_words(report: abilities.Report, untried: EndpointError | None) -> dict[str, Any]:
    passed = {Effect.OBEYED.value: True, Effect.UNTOLD.value: None}
    return {
        "failure": report.failure.reason if report.failure else "",
        "untried": untried.reason if untried else "",
        "kind": str(Dialect(report.dialect).label),
        "attempts": report.attempts,
        "findings": [[seen.field, passed.get(seen.effect, False), seen.evidence] for seen in report.seen],
        "seconds": report.seconds,
    }


def _say_how_far(test_id: int, watch: Watch) -> None:
    """Store how many requests there were, and that somebody is at it; heed that it was stopped."""
    until = timezone.now() + timedelta(seconds=CLAIM_S)
    test = EndpointTest.objects.filter(pk=test_id)
    # Of one that was stopped, too: while a request is on its way, no other test begins.
    test.update(until=until, requests=watch.requests)
    if not test.filter(status=_RUNNING).exists():
        watch.stop()


def _end(test: EndpointTest, reason: str) -> None:
    EndpointTest.objects.filter(pk=test.pk, status=_RUNNING).update(status=_STOPPED, reason=reason)


def _hint(test: EndpointTest) -> None:
    # robust: a broker that is away undoes nothing; `look_after` gives the hint again.
    transaction.on_commit(lambda: publishing.publish(publishing.Hint(_TASK, (test.pk,))), robust=True)
