"""The setup's form is made of the declaration: what it shows comes back as it was, and every bound is told."""

import annotated_types as at
import pytest
from django.http import QueryDict
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prefmh_web.campaigns.models import Campaign, columns_of
from prefmh_web.config import CampaignConfig
from prefmh_web.console.forms.fields import Lines, Text, bounds_of
from prefmh_web.console.forms.schema_form import SchemaForm
from prefmh_web.console.forms.setup_form import SetupForm
from prefmh_web.console.forms.study_forms import ParticipantsForm, ProtocolForm
from tests.support.sampling import mixture

pytestmark = pytest.mark.django_db

_WALK = {
    "kind": "walk",
    "kernel": mixture((0.07, "independent"), (0.93, {"kind": "suffix", "cut": "limit"})),
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


def texts(most: int = 30, least: int = 1):
    """Return texts of one line without space at their ends, as declarations keep them."""
    letters = st.characters(exclude_categories=("C", "Z"), include_characters=" ")
    return st.text(letters, min_size=least, max_size=most).map(str.strip).filter(lambda text: len(text) >= least)


def shares():
    return st.floats(0.01, 0.1)


@st.composite
def configs(draw) -> CampaignConfig:
    """Draw a configuration of the chains, of story openings, molecules or patterns."""
    kernels = {
        "texts": [{"kind": "independent"}, {"kind": "suffix", "cut": draw(st.sampled_from(["limit", "length"]))}],
        "molecules": [{"kind": "fragments", "add": draw(shares())}],
        "images": [{"kind": "independent"}, {"kind": "crank-nicolson", "beta": draw(shares())}],
    }
    kind = draw(st.sampled_from(sorted(kernels)))
    kernel = draw(st.sampled_from(kernels[kind]))
    if len(kernels[kind]) > 1 and draw(st.booleans()):
        weight = draw(shares())
        kernel = mixture(*zip((weight, 1 - weight), kernels[kind], strict=True))
    if "length" not in str(kernel) and draw(st.booleans()):
        kernel = {"kind": "walk", "kernel": kernel, "length": draw(st.integers(1, 4096))}
    spaces = {"texts": {"temperature": draw(st.floats(0.1, 10))}, "molecules": {}, "images": {}}
    rows = st.fixed_dictionaries({"question": texts(300), "votes": st.integers(1, 1000)})
    orders = st.sampled_from([("random",), ("proposal-first", "proposal-second")])
    asked = st.lists(st.tuples(rows, orders), min_size=1, max_size=4, unique_by=lambda each: each[0]["question"])
    judges = [row | {"order": order} for row, both in draw(asked) for order in both]
    steps = draw(st.integers(1, 1_000_000))
    return CampaignConfig.model_validate({
        "name": draw(texts(120)),
        "instructions": draw(texts(200, 0)),
        "space": {"kind": kind} | spaces[kind],
        "kernel": kernel,
        "judges": judges,
        "chains": draw(st.integers(1, 2000)),
        "steps": steps,
        "burn_in": draw(st.integers(0, steps - 1)),
        "seed": draw(st.none() | st.integers(0, 2**53 - 1)),
        "layout": draw(st.sampled_from([None, "by-screen", "stacked"])),
        "answering": {"seconds": draw(st.integers(10, 3600)), "suspend_after_skips": draw(st.none() | st.just(3))},
        "caps": {"cost": draw(st.none() | st.decimals(0, 10**6, places=2)), "requests": draw(st.none() | st.just(9))},
    })  # fmt: skip


@st.composite
def studies(draw) -> dict:
    """Draw what a study asks of people, and what they get."""
    counts = st.none() | st.integers(5, 10_000)
    named = st.from_regex(r"[a-z][a-z0-9_]{0,9}", fullmatch=True)
    options = st.lists(texts(), min_size=2, max_size=4, unique=True)
    questions = st.builds(
        lambda name, text, options, last: {"name": name, "text": text, "options": options, "is_last": last},
        named, texts(300), options, st.booleans(),
    )  # fmt: skip
    pairs = st.builds(lambda text, why: {"first": text, "second": f"{text}!", "answer": "first", "if_wrong": why},
                      texts(), texts(300))  # fmt: skip
    return {
        "recruiter": "prolific",
        **{name: draw(counts) for name in ("votes_each", "places", "most_minutes", "absent_minutes")},
        "place_pay": draw(st.none() | st.decimals(0, 99_999, places=2)),
        "consent": draw(texts(50, 0)),
        "codes": {"completed": draw(texts(100))},
        "pay": draw(st.dictionaries(st.sampled_from(["completed", "ended"]), st.sampled_from(["full", "nothing"]))),
        "protocol": {
            "questions": draw(st.lists(questions, max_size=3, unique_by=lambda each: each["name"])),
            "practice": draw(st.lists(pairs, max_size=2)),
            "check_share": draw(shares()),
            "repeat_share": draw(shares()),
            "wait_minutes": draw(st.none() | st.integers(0, 1440)),
            "checks_end": draw(st.booleans()),
            "debriefing": draw(texts(50, 0)),
        },
    }


@pytest.mark.parametrize("setup", SETUPS)
def test_what_nobody_has_changed_comes_back_as_it_was(setup, researcher):
    config = configured(SETUPS[setup])
    shown = SetupForm(config, owner=researcher)
    form = SetupForm(config, posted_of(shown), {}, owner=researcher)
    assert form.is_valid(), form.error_list
    assert form.config == config


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(config=configs())
def test_whatever_the_declaration_allows_comes_back_as_it_was(config, researcher):
    shown = SetupForm(config, owner=researcher)
    form = SetupForm(config, posted_of(shown), {}, owner=researcher)
    assert form.is_valid(), form.error_list
    assert form.config == config


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(study=studies())
def test_a_study_comes_back_as_it_was(study, researcher):
    config = configured({"study": study})
    campaign = Campaign(owner=researcher, **columns_of(config))
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
    config = configured(SETUPS[setup])
    shown = SetupForm(config, owner=researcher)
    used = {leaf.name for leaf in shown.root.in_use()}
    tried = 0
    for name, wrong in bounded(shown):
        if name not in used or name.startswith("kernel."):
            continue
        sent = posted_of(shown)
        sent[name] = str(wrong)
        form = SetupForm(config, sent, {}, owner=researcher)
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
