"""`manage.py serve` as a process: it starts on an empty folder, and stops quietly."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from tests.support.installations import ROOT, VARIABLES, FaultyModels, wait_for
from tests.support.models import is_gone, port_from

# Makes campaigns in the database of a folder, and leaves what there is to do to the server.
PREPARED = """
import sys
import django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from django.contrib.auth.models import User
from prefmh_web.campaigns import lifecycle
from prefmh_web.embedded.threads import InProcessTask
from prefmh_web.endpoints.models import Endpoint
from tests.support.campaigns import create_draft
InProcessTask.apply_async = lambda *args, **options: None
owner = User.objects.create(username="researcher")
"""


def variables(folder: Path) -> dict[str, str]:
    return {**os.environ, "PREFMH_DATA": str(folder), "DJANGO_SETTINGS_MODULE": "prefmh_web.settings"}


def prepare(folder: Path, script: str, *arguments: str) -> None:
    command = [sys.executable, "-c", PREPARED + script, *arguments]
    subprocess.run(command, cwd=ROOT, env=variables(folder), check=True, timeout=60)


def serve(folder: Path, port: int) -> subprocess.Popen:
    command = [sys.executable, "manage.py", "serve", "--port", str(port)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, env=variables(folder), stdout=pipe, stderr=subprocess.STDOUT, text=True)


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_it_starts_on_an_empty_folder_and_stops_quietly(tmp_path, stop):
    process = serve(tmp_path, port_from(23_000))
    lines = []
    while "Serving" not in (line := process.stdout.readline()):
        assert line, lines
        lines.append(line)
    link = re.search(r"http\S+sesame=\S+", "".join(lines)).group()
    assert httpx.get(link, timeout=20, follow_redirects=True).status_code == 200
    process.send_signal(stop)
    rest, _ = process.communicate(timeout=20)
    assert rest == ""
    assert process.returncode in (0, -signal.SIGTERM)
    assert (tmp_path / "secret-key").stat().st_mode & 0o777 == 0o600


SCORED = """
config = {"version": 1, "space": {"kind": "molecules"}, "kernel": {"kind": "fragments"}, "chains": 2, "steps": 5,
          "judges": [{"question": "Which?", "votes": 1}], "seed": 5}
lifecycle.start(create_draft(owner=owner, is_seed_typed=True, name="Scored", config=config, scorer_names="stuck"))
"""
STUCK = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    open(sys.argv[1], "w").write(f"{os.getpid()}.")
    time.sleep(600)
"""


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_scorer_that_never_answers_ends_with_the_server_and_does_not_hold_it_up(tmp_path, stop, monkeypatch):
    (tmp_path / "stuck.py").write_text(STUCK)
    told = tmp_path / "told"
    monkeypatch.setenv("SCORERS", f"stuck={sys.executable} {tmp_path / 'stuck.py'} {told}")
    prepare(tmp_path, SCORED)
    process = serve(tmp_path, port_from(23_000))
    while not (told.exists() and told.read_text().endswith(".")):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(stop)
    process.communicate(timeout=20)
    assert is_gone(int(told.read_text().rstrip(".")))


# What RDKit's threads may leave behind: a handler of the interrupt that is not Python's.
DISPLACED = """
import ctypes, signal, sys, threading, time
import django
# Whoever runs these tests in the background ignores the interrupt, and programs inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
django.setup()
from prefmh_web.embedded.serving import server
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


def test_an_interrupt_stops_it_though_a_library_handles_interrupts_too(tmp_path):
    command = [sys.executable, "-c", DISPLACED, str(port_from(23_500))]
    process = subprocess.Popen(command, cwd=ROOT, env=variables(tmp_path), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "displaced\n"
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=20)
        assert rest == "stopped\n"
    finally:
        process.kill()
        process.wait()


def test_a_second_server_of_one_folder_is_refused_and_the_first_leaves_a_whole_file(tmp_path):
    first = serve(tmp_path, port_from(23_700))
    try:
        while "Serving" not in first.stdout.readline():
            pass
        second = serve(tmp_path, port_from(23_800))
        said, _ = second.communicate(timeout=60)
        assert (second.returncode, "Another process serves" in said) == (1, True)
        first.send_signal(signal.SIGTERM)
        first.communicate(timeout=20)
    finally:
        first.kill()
        first.wait()
    log = tmp_path / "prefmh.sqlite3-wal"
    assert not log.exists() or log.stat().st_size == 0


JUDGED = """
Endpoint.objects.create(owner=owner, name="stub", base_url=sys.argv[1], model="m", dialect="vllm",
                        profile={"fields": [{"field": "truth", "effect": "obeyed", "evidence": ""}]})
judge = {"question": "Which?", "votes": 3, "source": {"kind": "model", "endpoint": "stub"}}
config = {"version": 1, "space": {"kind": "texts"}, "kernel": {"kind": "suffix"}, "chains": 60, "steps": 1000,
          "judges": [judge], "seed": 5}
lifecycle.start(create_draft(owner=owner, is_seed_typed=True, name="Judged", config=config))
"""


def test_a_model_is_asked_by_more_calls_than_tasks_have_threads(tmp_path, monkeypatch):
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    models = FaultyModels(tmp_path, {"stub": {"latency_s": 4}})
    models.start()
    prepare(tmp_path, JUDGED, models.url("stub"))
    process = serve(tmp_path, port_from(23_000))
    try:
        # Each turn asks for two votes at first; sixteen threads, which is what tasks have, would make it 32.
        wait_for(lambda: models.count("stub", "most") > 50, "more than fifty votes are asked at once")
    finally:
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=30)
        models.stop()
    assert "Traceback" not in rest
