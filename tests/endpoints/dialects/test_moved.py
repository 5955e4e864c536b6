"""The kinds of servers of old, now in files of their own: not a byte of what they are sent has changed."""

import json
from pathlib import Path

import pytest

from prefmh_web.endpoints.dialects import Dialect, Question, WithTokenIds

# Written by the code before the move, with `json.dumps`.
BEFORE: dict[str, dict[str, str]] = json.loads((Path(__file__).parent / "bodies_before_the_move.json").read_text())
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}
MESSAGES = [
    {"role": "system", "content": "You judge."},
    {"role": "user", "content": [{"type": "text", "text": "Q"}, PICTURE]},
]
QUESTIONS = {
    "vote": Question("tiny", MESSAGES, 8, 0.7, 12345),
    "confined vote": Question("tiny", MESSAGES, 8, 0.7, 12345, ("A", "B")),
    "first token": Question("tiny", MESSAGES, log_probabilities=True),
}


@pytest.mark.parametrize("dialect", BEFORE)
@pytest.mark.parametrize("asked", QUESTIONS)
def test_a_chat_is_sent_as_it_was(dialect: str, asked: str) -> None:
    server = Dialect(dialect).server
    assert server.path("tiny").text == "/chat/completions"
    assert json.dumps(server.body(QUESTIONS[asked])) == BEFORE[dialect][asked]


@pytest.mark.parametrize("dialect", [name for name in BEFORE if "continuation" in BEFORE[name]])
def test_a_completion_is_sent_as_it_was(dialect: str) -> None:
    server = Dialect(dialect).server
    assert isinstance(server, WithTokenIds)
    body = server.completion("tiny", [1, 2, 3], limit=4, temperature=0.7, seed=12345)
    assert json.dumps(body) == BEFORE[dialect]["continuation"]


@pytest.mark.parametrize("dialect", BEFORE)
def test_what_is_frozen_leaves_out_what_differs_from_request_to_request(dialect: str) -> None:
    sent = json.loads(BEFORE[dialect]["confined vote"])
    kept = {name: value for name, value in sent.items() if name not in ("messages", "seed")}
    assert Dialect(dialect).server.settled(QUESTIONS["confined vote"]) == kept
