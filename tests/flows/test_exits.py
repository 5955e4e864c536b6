"""What the fault tests lean on: a process that ends by itself is noticed, and fails them unless its fault allows it."""

import sys

import pytest

from tests.support.installations import Process, Processes, wait_for

RUNS = "import time; time.sleep(600)"
ENDS = "import os; print('the last words', flush=True); os._exit(3)"


@pytest.fixture
def started(tmp_path):
    """Return a call that starts processes which do nothing but run, or end; the first two are the web's."""
    processes = Processes(tmp_path)

    def start(*programs: str) -> Processes:
        *webs, worker, beat = [
            Process(name, [sys.executable, "-c", program], {}, tmp_path)
            for name, program in zip(("web-0", "web-1", "worker", "beat"), programs, strict=True)
        ]
        processes.webs, processes.worker, processes.beat = webs, worker, beat
        for process in processes.all:
            processes.launch(process)
        return processes

    yield start
    processes.stop()


def ended(process: Process) -> None:
    wait_for(lambda: not process.is_running(), "the process has ended")


def test_processes_that_run_or_are_killed_are_no_finding(started):
    site = started(RUNS, RUNS, RUNS, RUNS)
    site.webs[0].kill()
    site.webs[0].start()
    site.beat.stop()
    site.look_after()


def test_a_process_that_ends_fails_the_test_with_its_last_words(started):
    site = started(RUNS, ENDS, RUNS, RUNS)
    ended(site.webs[1])
    with pytest.raises(AssertionError, match=r"web-1 ended by itself with status 3(.|\n)*the last words"):
        site.look_after(site.worker, site.beat)


def test_what_may_end_is_started_again_once_and_may_not_later(started):
    site = started(RUNS, RUNS, ENDS, RUNS)
    ended(site.worker)
    site.look_after(site.worker)
    ended(site.worker)
    with pytest.raises(AssertionError, match="worker ended by itself"):
        site.look_after()
