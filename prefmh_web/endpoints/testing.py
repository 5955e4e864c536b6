"""*Test* of an endpoint outside the request: some hundred requests, made by a worker, seen on the page as they come.

    begin      a test that a worker is to make
    run        all of it, by one worker, which says every second that it lives and how many requests there were
    stop       no further request; what it is able to do is kept if that was seen to the end, fields only all together
    look_after tests whose message was lost are hinted again; those whose worker died are over

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

from datetime import timedelta
from typing import Any

from django.db import DatabaseError, transaction
from django.utils import timezone

from prefmh_web.endpoints.dialects import Dialect
from prefmh_web.endpoints.errors import EndpointError, Stopped
from prefmh_web.endpoints.keeping import Keeper
from prefmh_web.endpoints.models import Endpoint, EndpointTest
from prefmh_web.endpoints.negotiation import negotiate
from prefmh_web.endpoints.probe import Report, probe
from prefmh_web.endpoints.watched import Watch, watched
from prefmh_web.transport import publishing

CLAIM_S = 30.0
_TASK = "prefmh_web.endpoints.tasks.run_test"
_RUNNING, _STOPPED = EndpointTest.Status.RUNNING, EndpointTest.Status.STOPPED
_ABANDONED = "The process that made the test ended before it was over. Test it again."


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
            report = _report(endpoint)
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


def _report(endpoint: Endpoint) -> dict[str, Any]:
    report = probe(endpoint)
    untried = negotiate(endpoint) if report.failure is None else None
    if isinstance(report.failure or untried, Stopped):
        return {}
    return _in_words(report, untried)


def _in_words(report: Report, untried: EndpointError | None) -> dict[str, Any]:
    return {
        "failure": report.failure.reason if report.failure else "",
        "untried": untried.reason if untried else "",
        "kind": str(Dialect(report.dialect).label),
        "attempts": [[attempt.path, attempt.words] for attempt in report.attempts],
        "findings": [[finding.check, finding.passed, finding.words] for finding in report.findings],
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
