"""`manage.py serve` as a process: it starts on an empty folder, and stops quietly."""

import re
import signal
import sys
import time

import httpx
import pytest

from tests.support.installations import VARIABLES, FaultyModels, judged_by, wait_for
from tests.support.models import is_gone, port_from

STOPPED_WITHIN_S = 20


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_it_starts_on_an_empty_folder_and_stops_quietly(program, stop):
    process, _ = program.serve()
    link = re.search(r"http\S+sesame=\S+", process.log()).group()
    assert httpx.get(link, timeout=20, follow_redirects=True).status_code == 200
    assert process.stop(stop, STOPPED_WITHIN_S) in (0, -signal.SIGTERM)
    assert process.log().splitlines()[-1].startswith("Serving")
    assert (program.folder / "secret-key").stat().st_mode & 0o777 == 0o600


SCORED = {"space": {"kind": "molecules"}, "kernel": {"kind": "fragments"}, "chains": 2, "steps": 5}
STUCK = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    open(sys.argv[1], "w").write(f"{os.getpid()}.")
    time.sleep(600)
"""


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_scorer_that_never_answers_ends_with_the_server_and_does_not_hold_it_up(program, stop):
    script, told = program.folder / "stuck.py", program.folder / "told"
    script.write_text(STUCK)
    program.environment["SCORERS"] = f"stuck={sys.executable} {script} {told}"
    program.call("leave", SCORED, "stuck", [])
    process, _ = program.serve()
    wait_for(lambda: process.assert_runs() or (told.exists() and told.read_text().endswith(".")), "the scorer is asked")
    process.stop(stop, STOPPED_WITHIN_S)
    assert is_gone(int(told.read_text().rstrip(".")))


# What RDKit's threads may leave behind: a handler of the interrupt that is not Python's.
DISPLACED = """
import ctypes, signal, sys, threading, time
import django
# Whoever runs these tests in the background ignores the interrupt, and programs inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
django.setup()
from prefmh_web.embedded import server
IGNORE = 1
def displace():
    while not serving.started:
        time.sleep(0.05)
    ctypes.CDLL(None).signal(2, ctypes.c_void_p(IGNORE))
    print("displaced", flush=True)
serving = server("127.0.0.1", int(sys.argv[1]))
threading.Thread(target=displace, daemon=True).start()
try:
    serving.run()
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


def test_an_interrupt_stops_it_though_a_library_handles_interrupts_too(program):
    process = program.launch(program.process("displaced", "-c", DISPLACED, str(port_from(23_500))))
    process.wait_until_it_says("displaced\n")
    time.sleep(1)
    process.stop(signal.SIGINT, STOPPED_WITHIN_S)
    assert process.log().endswith("stopped\n")


def test_a_second_server_of_one_folder_is_refused_and_the_first_leaves_a_whole_file(program):
    first, _ = program.serve()
    second = program.run("manage.py", "serve", "--port", str(port_from(23_800)), check=False, timeout=60)
    assert (second.returncode, "Another process serves" in second.stdout + second.stderr) == (1, True)
    first.stop(seconds=STOPPED_WITHIN_S)
    log = program.folder / "prefmh.sqlite3-wal"
    assert not log.exists() or log.stat().st_size == 0


JUDGED = {"space": {"kind": "texts"}, "kernel": {"kind": "suffix"}, "chains": 60, "steps": 1000}


def test_a_model_is_asked_by_more_calls_than_tasks_have_threads(program):
    program.environment |= VARIABLES
    models = FaultyModels(program.folder, {"stub": {"latency_s": 4}})
    models.start()
    stub = {"name": "stub", "base_url": models.url("stub")}
    program.call("leave", JUDGED | {"judges": [judged_by("stub")]}, "", [stub])
    process, _ = program.serve()
    try:
        # Each turn asks for two votes at first; sixteen threads, which is what tasks have, would make it 32.
        wait_for(lambda: models.count("stub", "most") > 50, "more than fifty votes are asked at once")
    finally:
        process.stop(seconds=30)
        models.stop()
    assert "Traceback" not in process.log()
