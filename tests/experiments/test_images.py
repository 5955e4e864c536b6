"""`manage.py experiment images` with a model that answers from pixels: stopped at a limit, killed, and run to its end."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest

import sampler
from tests.support.experiment_sites import Site, kill
from tests.support.needs import needs
from tests.support.processes import wait_for
from tests.support.scripted_server import Script, scripted_server
from tests.support.seeing_server import is_there, pictures, sees, words

PATIENCE_S = 300
METHODS = ("base", "pointwise", "pref")
OBJECTS = ("salamander", "butterfly", "mushroom")
LAPTOP = ("images", "--scale", "laptop", "--steps", "4")
ROLES = {"judge": "judge", "detector": "detector"}
PATTERNS = ROLES | {"writer": "patterns"}


@pytest.fixture
def server() -> Iterator[Script]:
    with scripted_server(sees) as script:
        yield script


def asked(script: Script) -> Counter[str]:
    """Count what a server was asked about the objects of the experiment."""
    found: Counter[str] = Counter()
    for body in list(script.requests):
        shown, said = len(pictures(body)), words(body)
        if shown and any(name in said for name in OBJECTS) and body["seed"] != 1:
            found["vote" if shown == 2 else "detection" if "yes or no" in said else "rating"] += 1
    return found
