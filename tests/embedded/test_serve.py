"""`manage.py serve` as a process: it starts on an empty folder, and stops quietly."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.ports import port_from

ROOT = Path(__file__).resolve().parents[2]


def serve(folder: Path, *options: str) -> subprocess.Popen:
    environment = {**os.environ, "PREFMH_DATA": str(folder)}
    command = [sys.executable, "manage.py", "serve", *options]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=pipe, stderr=subprocess.STDOUT, text=True)


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_it_starts_on_an_empty_folder_and_stops_quietly(tmp_path, stop):
    process = serve(tmp_path, "--port", str(port_from(23_000)))
    lines = []
    while "Serving" not in (line := process.stdout.readline()):
        assert line, lines
        lines.append(line)
    time.sleep(1)
    process.send_signal(stop)
    rest, _ = process.communicate(timeout=20)
    assert "sesame=" in "".join(lines)
    assert rest == ""
    assert process.returncode in (0, -signal.SIGTERM)
    assert (tmp_path / "secret-key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--port", "99999"], "1 to 65535"),
        (["--url", "192.168.1.5:8000"], "http://"),
        (["--address", "10.255.255.1"], "Cannot listen"),
        (["--address", "0.0.0.0"], "--url"),
    ],
)
def test_a_bad_option_is_told_in_one_line(tmp_path, options, message):
    process = serve(tmp_path, *options)
    output, _ = process.communicate(timeout=20)
    assert message in output
    assert "Traceback" not in output
    assert process.returncode != 0


# What RDKit's threads may leave behind: a handler of the interrupt that is not Python's.
DISPLACED = """
import ctypes, signal, sys, threading, time
import django
# Whoever runs these tests in the background ignores the interrupt, and programs inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
django.setup()
from prefmh_web.embedded.server import server
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
    environment = {**os.environ, "PREFMH_DATA": str(tmp_path), "DJANGO_SETTINGS_MODULE": "prefmh_web.settings"}
    command = [sys.executable, "-c", DISPLACED, str(port_from(23_500))]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "displaced\n"
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=20)
        assert rest == "stopped\n"
    finally:
        process.kill()
        process.wait()
