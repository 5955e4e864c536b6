"""The setup's form is made of the declaration: what it shows comes back as it was, and every bound is told."""

import annotated_types as at
import pytest
from django.http import QueryDict
from hypothesis import HealthCheck, given, settings

from prefmh_web.campaigns.models import Campaign, columns_of
from prefmh_web.config import CampaignConfig
from prefmh_web.console.forms.fields import Lines, Text, as_sent, bounds_of
from prefmh_web.console.forms.schema_form import SchemaForm
from prefmh_web.console.forms.setup_form import SetupForm
from prefmh_web.console.views.study import ParticipantsForm, ProtocolForm
from tests.setup.configs import configs
from tests.support.sampling import mixture

pytestmark = pytest.mark.django_db

_WALK = {
    "kind": "walk",
    "kernel": mixture((0.07, "independent"), (0.93, {"kind": "suffix", "cut": "limit"})),
    "length": 3,
}
_ASKED = {"question": "Which is better?", "votes": 2}
_VISION = {"edge": 512, "format": "jpeg", "quality": 80, "detail": "low", "molecules": "picture"}
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
        "judges": [_ASKED | {"source": {"kind": "model", "endpoint": "mine", "vision": _VISION}}],
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
            sent.setlist(name, [each.replace("\n", "\r\n") for each in as_sent(leaf.field, leaf.bound.value())])
    return sent


@pytest.mark.parametrize("setup", SETUPS)
def test_what_nobody_has_changed_comes_back_as_it_was(setup, researcher):
    config = configured(SETUPS[setup])
    campaign = Campaign(owner=researcher, **columns_of(config))
    form = SetupForm(campaign, researcher, posted_of(SetupForm(campaign, researcher)))
    assert form.is_valid(), form.error_list
    assert form.config == config


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(config=configs())
def test_whatever_the_declaration_allows_comes_back_as_it_was(config, researcher):
    campaign = Campaign(owner=researcher, **columns_of(config))
    form = SetupForm(campaign, researcher, posted_of(SetupForm(campaign, researcher)))
    assert form.is_valid(), form.error_list
    assert form.config == config
    for kind in (ParticipantsForm, ProtocolForm):
        form = kind(campaign, posted_of(kind(campaign)))
        assert form.is_valid(), form.error_list
        assert form.config == config


def bounded(form: SchemaForm):
    """Yield each field with a number that is one beyond its bound."""
    for name, leaf in form.leaves.items():
        bounds = bounds_of(leaf.info)
        step = 100 if leaf.shown.unit == "percent" else 1
        if at.Ge in bounds and isinstance(bounds[at.Ge].ge, int | float):
            yield name, bounds[at.Ge].ge * step - 1
        if at.Le in bounds and isinstance(bounds[at.Le].le, int | float):
            yield name, bounds[at.Le].le * step + 1
        if at.MaxLen in bounds and isinstance(form.fields[name], Text) and not isinstance(form.fields[name], Lines):
            yield name, "x" * (bounds[at.MaxLen].max_length + 1)


@pytest.mark.parametrize("setup", ["texts", "molecules", "images", "list", "orders", "score"])
def test_each_bound_broken_by_one_is_refused_beside_its_field(setup, researcher):
    campaign = Campaign(owner=researcher, **columns_of(configured(SETUPS[setup])))
    shown = SetupForm(campaign, researcher)
    used = {leaf.name for leaf in shown.root.in_use()}
    tried = 0
    for name, wrong in bounded(shown):
        if name not in used or name.startswith("kernel."):
            continue
        sent = posted_of(shown)
        sent[name] = str(wrong)
        form = SetupForm(campaign, researcher, sent)
        assert not form.is_valid()
        assert form[name].errors, (name, wrong, form.error_list)
        tried += 1
    assert tried >= 10


@pytest.mark.parametrize("form_of", [ParticipantsForm, ProtocolForm])
def test_each_bound_of_a_study_broken_by_one_is_refused_beside_its_field(form_of, researcher):
    campaign = Campaign(owner=researcher, **columns_of(configured({"study": {"recruiter": "open"}})))
    shown, tried = form_of(campaign), 0
    for name, wrong in bounded(shown):
        sent = posted_of(shown)
        sent[name] = str(wrong)
        form = form_of(campaign, sent)
        assert not form.is_valid()
        assert form[name].errors, (name, wrong, form.error_list)
        tried += 1
    assert tried >= 7
