"""The setup's form is made of the declaration: what it shows comes back as it was, and every bound is told."""

import pytest
from django.http import QueryDict

from prefmh_web.config.campaign import CampaignConfig
from prefmh_web.console.forms.schema_form import SchemaForm
from prefmh_web.console.forms.setup_form import SetupForm

pytestmark = pytest.mark.django_db

_WALK = {
    "kind": "walk",
    "kernel": {
        "kind": "mixture",
        "parts": [
            {"weight": 0.07, "kernel": {"kind": "independent"}},
            {"weight": 0.93, "kernel": {"kind": "suffix", "cut": "limit"}},
        ],
    },
    "length": 3,
}
_ASKED = {"question": "Which is better?", "votes": 2}
_MODEL = {
    "kind": "model",
    "endpoint": "mine",
    "temperature": 0.7,
    "reasons": True,
    "prompt": {"user": "{{question}}\nA: {{first}}\r\nB: {{second}} ", "system": "  Be brief.\n"},
}
SETUPS = {
    "texts": {"space": {"kind": "texts", "scenarios": [3, 1]}, "kernel": _WALK},
    "molecules": {
        "space": {"kind": "molecules", "elements": ["C", "N"], "alerts": ["NIH"], "ring_sizes": [], "start": "CCN"},
        "kernel": {"kind": "fragments", "add": 0.3},
    },
    "images": {"space": {"kind": "images"}, "kernel": {"kind": "crank-nicolson", "beta": 0.1}},
    "list": {
        "space": {
            "kind": "catalog",
            "objects": "texts",
            "neighbours": 5,
            "context": [{"column": "prompt", "label": "Asked for"}],
        },
        "kernel": {"kind": "independent"},
        "file": {"name": "list.csv"},
        "seed": 7,
        "scorers": ["gone"],
        "layout": "stacked",
    },
    "written": {
        "space": {"kind": "model-texts", "model": "writer", "prompts": ["One\nand two", "Three"]},
        "kernel": {"kind": "suffix"},
        "judges": [_ASKED | {"source": _MODEL}],
    },
    "orders": {
        "judges": [
            _ASKED | {"order": "proposal-first"},
            _ASKED | {"order": "proposal-second"},
            {"question": "And how?", "votes": 3},
        ]
    },
    "crossed orders": {
        "judges": [
            _ASKED | {"order": "proposal-first"},
            {"question": "And how?", "votes": 3},
            _ASKED | {"order": "proposal-second"},
        ]
    },
    "panel": {
        "judges": [
            {"question": question, "votes": 1, "source": {"kind": "panelist", "name": name}}
            for question in ("Which?", "And how?")
            for name in ("Ada", "Béla")
        ]
    },
    "base": {"kernel": {"kind": "independent"}, "rule": {"kind": "base"}, "judges": []},
    "score": {
        "space": {"kind": "molecules"},
        "kernel": {"kind": "fragments"},
        "rule": {"kind": "score", "form": "mars", "beta": 12.5},
        "judges": [],
    },
    "caps": {"caps": {"cost": 12.3, "requests": 10}, "answering": {"seconds": 30, "suspend_after_skips": 2}},
}


def configured(changes):
    usual = {
        "name": "A campaign",
        "space": {"kind": "texts"},
        "kernel": {"kind": "suffix"},
        "judges": [_ASKED],
        "chains": 4,
        "steps": 100,
    }
    return CampaignConfig.model_validate(usual | changes)


def posted_of(form: SchemaForm) -> QueryDict:
    """Return what a browser sends of a form that nobody has touched."""
    sent = QueryDict(mutable=True)
    for name, leaf in form.leaves.items():
        if not leaf.why_fixed:
            sent.setlist(name, [each.replace("\n", "\r\n") for each in leaf.as_posted()])
    return sent


@pytest.mark.parametrize("setup", SETUPS)
def test_what_nobody_has_changed_comes_back_as_it_was(setup, researcher):
    config = configured(SETUPS[setup])
    shown = SetupForm(config, owner=researcher, filename="list.csv")
    form = SetupForm(config, posted_of(shown), {}, owner=researcher, filename="list.csv")
    assert form.is_valid(), form.error_list
    assert form.config == config
