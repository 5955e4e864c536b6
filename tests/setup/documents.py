"""Setups as documents: the least, and one in which every part has something."""

from typing import Any

from prefmh_web.setup import yaml_text
from tests.support.campaigns import MIXTURE
from tests.support.campaigns import WHOLE as PROTOCOL

LEAST = """version: 1
name: Least
space:
  kind: texts
  temperature: 1
kernel:
  kind: suffix
judges:
  - question: Which?
    votes: 1
chains: 2
steps: 10
"""
_OWN_WORDS = {"system": "You judge.", "user": "{{question}}\nA: {{first}}\nB: {{second}}\n{{context}}\nA or B?"}
_SOURCE = {"kind": "model", "endpoint": "A judge", "temperature": 0.5, "vision": None, "prompt": _OWN_WORDS}
_PAIR = {"first": "A dark night.", "second": "A bright day.", "answer": "first"}
WHOLE: dict[str, Any] = {
    "version": 1,
    "name": "The whole",
    "instructions": "Read both.",
    "language": "de",
    "space": {
        "kind": "catalog",
        "objects": "texts",
        "neighbours": 3,
        "context": [{"column": "source", "label": "Source"}],
    },
    "file": {"name": "texts.csv", "sha256": "0" * 64},
    "kernel": {"kind": "walk", "kernel": MIXTURE, "length": [{"weight": 1.0, "length": 3}]},
    "rule": {"kind": "n-vote"},
    "judges": [
        {"question": "Which is darker?", "votes": 2},
        {"question": "Which is better?", "votes": 4, "order": "balanced", "source": _SOURCE},
    ],
    "chains": 3,
    "steps": 50,
    "burn_in": 5,
    "seed": 7,
    "scorers": ["length"],
    "answering": {"seconds": 60, "suspend_after_skips": 3, "suspend_after_reports": 2},
    "caps": {"cost": 12.5, "requests": 1000},
    "study": {
        "recruiter": "prolific",
        "votes_each": 20,
        "places": 40,
        "place_pay": 3.2,
        "currency": "EUR",
        "most_minutes": 60,
        "way_back": "https://app.prolific.com/submissions/complete?cc={code}",
        "codes": {"completed": "C0DE"},
        "pay": {"withdrawn": "full"},
        "consent": "Ja.",
        "protocol": {
            **PROTOCOL,
            "questions": [{"name": "first", "text": "Did you?", "options": ["Yes", "No"]}, *PROTOCOL["questions"]],
            "practice": [{**_PAIR, "if_wrong": "Night is darker."}],
            "gold": [_PAIR],
            "gold_share": 0.1,
        },
    },
}


def as_text(document: dict[str, Any]) -> str:
    """Return a document as YAML."""
    return yaml_text.write(document)
