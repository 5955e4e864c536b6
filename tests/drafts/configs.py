"""Configurations of every kind: a table of them, drafts of these through the doors by which a researcher's own come, a
strategy in which each part is whatever its declaration allows, and two as documents.
"""

import io
import types
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types as at
from django.core.files.base import ContentFile
from hypothesis import assume
from hypothesis import strategies as st
from pydantic import BaseModel, StringConstraints, ValidationError
from pydantic.fields import FieldInfo

from prefmh_web import config_files, config_yaml, drafts
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.lifecycle import changes
from prefmh_web.campaigns.models import Campaign
from prefmh_web.config import Answering, CampaignConfig, Caps, Protocol, Study, validation_errors
from tests.support.campaigns import MIXTURE, panel_judges, started_now
from tests.support.people import CODES, RETURN_ADDRESS
from tests.support.people import WHOLE as STAGES
from tests.support.process import wait_until_idle
from tests.support.sampling import mixture

_WORDS = st.text("abc xyz é漢\n-#:'\"", min_size=1, max_size=12).map(str.strip).filter(bool)
_ASKED = {"question": "Which is better?", "votes": 2}
_SUFFIXES = mixture((0.07, "independent"), (0.93, {"kind": "suffix", "cut": "limit"}))
_WRITTEN = {"kind": "model-texts", "model": "A writer", "prompts": ["Tell of\nthe sea.", "No"], "limit": 8}
_PROMPT = {"user": "{{question}}\nA: {{first}}\r\nB: {{second}} ", "system": "  Be brief.\n"}
_MODEL = {"kind": "model", "endpoint": "A judge", "temperature": 0.7, "reasons": True, "prompt": _PROMPT}
_VISION = {"edge": 512, "format": "jpeg", "quality": 80, "detail": "low", "molecules": "picture"}
_TOLD = {"kind": "model", "endpoint": "Another", "votes": "log-probabilities", "first": True}
_OF_MOLECULES = {"first": "CCO", "second": "CCN", "answer": "first"}
_PAIR = {"first": "A dark night.", "second": "A bright day.", "answer": "first"}
_LISTED = {"kind": "catalog", "objects": "texts", "neighbours": 2, "context": [{"column": "source", "label": "No"}]}
USUAL = {
    "name": "A campaign",
    "space": {"kind": "texts"},
    "kernel": {"kind": "suffix"},
    "judges": [_ASKED],
    "chains": 4,
    "steps": 100,
}
CONFIGS: dict[str, dict[str, Any]] = {
    "texts": {
        "name": "Yes: “openings” # 1",
        "instructions": "Read both.\r\n\r\n- Take your time: no hurry\r\n# yes",
        "space": {"kind": "texts", "scenarios": [3, 1], "temperature": 0.9},
        "kernel": {"kind": "walk", "kernel": _SUFFIXES, "length": 3, "warm_up": {"steps": 20, "properties": ["words"]}},
        "max_chains": 9,
        "burn_in": 5,
        "seed": 20261121,
        "answering": {"seconds": 90},
    },
    "list": {
        "space": _LISTED,
        "kernel": {"kind": "independent"},
        "file": {"name": "my list.csv"},
        "seed": 7,
        "scorers": ["gone"],
        "layout": "stacked",
        "answering": {"suspend_after_skips": 3},
    },
    "molecules": {
        "space": {"kind": "molecules", "elements": ["C", "N"], "alerts": ["NIH"], "ring_sizes": [], "start": "CCN"},
        "kernel": {"kind": "fragments", "add": 0.3},
        "judges": [_ASKED, _ASKED | {"source": {"kind": "model", "endpoint": "mine", "vision": _VISION}}],
        "scorers": ["sa", "qed"],
        "answering": {"suspend_after_reports": 4},
        "study": {
            "recruiter": "link",
            "parameter": "pid",
            "codes": CODES,
            "protocol": {
                "practice": [_OF_MOLECULES | {"if_wrong": "Yes: alcohols first."}],
                "gold": [_OF_MOLECULES],
                "gold_share": 0.07,
            },
        },
    },
    "images": {"space": {"kind": "images"}, "kernel": {"kind": "crank-nicolson", "beta": 0.1}},
    "written": {
        "space": _WRITTEN,
        "kernel": _SUFFIXES,
        "judges": [
            {"question": "Which is darker?", "votes": 4, "order": "balanced", "source": _MODEL},
            _ASKED | {"source": _TOLD},
        ],
        "caps": {"cost": 12.5, "requests": 100_000},
    },
    "orders": {
        "judges": [*(_ASKED | {"order": f"proposal-{index}"} for index in ("first", "second")), _ASKED | {"votes": 3}],
    },
    "crossed orders": {
        "judges": [
            _ASKED | {"order": "proposal-first"},
            {"question": "And how?", "votes": 3},
            _ASKED | {"order": "proposal-second"},
        ]
    },
    "panel": {"judges": panel_judges(2, "Which?", "And how?", names=("Ada Lovelace", "Béla"))},
    "base": {"kernel": {"kind": "independent"}, "rule": {"kind": "base"}, "judges": []},
    "score": {
        "space": {"kind": "molecules"},
        "kernel": {"kind": "fragments"},
        "rule": {"kind": "score", "form": "mars", "beta": 12.5},
        "judges": [],
    },
    # With a scorer that this site need not have.
    "quest": {
        "space": _WRITTEN,
        "kernel": {"kind": "suffix", "cut": "length"},
        "rule": {"kind": "quest", "scorer": "comet", "beta": 0.2},
        "judges": [],
    },
    "whole": {
        "instructions": "Read both.",
        "language": "de",
        "space": _LISTED | {"neighbours": 3},
        "file": {"name": "texts.csv"},
        "kernel": {"kind": "walk", "kernel": MIXTURE, "length": [{"weight": 1.0, "length": 3}]},
        "judges": [{"question": "Which is darker?", "votes": 2}, {"question": "Which is better?", "votes": 1}],
        "burn_in": 5,
        "scorers": ["words"],
        "answering": {"seconds": 60, "suspend_after_skips": 3, "suspend_after_reports": 2},
        "caps": {"cost": 12.5, "requests": 1000},
        "study": {
            "recruiter": "prolific",
            "votes_per_person": 50,
            "quota": 40,
            "budget": 5000,
            "full_pay": 3.2,
            "currency": "£",
            "max_minutes": 60,
            "absent_minutes": 10,
            "max_votes_per_minute": 30,
            "return_address": RETURN_ADDRESS,
            "codes": CODES | {"withdrawn": ""},
            "pay": {"completed": "full", "withdrawn": "full", "ended": "nothing"},
            "consent": "I *agree*.\nJa.",
            "protocol": STAGES
            | {
                "questions": [
                    {"name": "first", "text": "Did you?", "options": ["Yes", "No"]},
                    *STAGES["questions"],
                    {"name": "work", "text": "Work?", "options": ["b", "a"], "quota": {"a": 3, "b": 5}},
                ],
                "practice": [_PAIR | {"if_wrong": "Night is darker."}],
                "gold": [_PAIR],
                "gold_share": 0.1,
                "check_share": 0.05,
                "repeat_share": 0.1,
                "wait_minutes": 10,
            },
        },
    },
}
"""What differs from the usual one, by the kind."""
_ROWS = "text,weight,source,year\n" + "".join(
    f"Text {n},{1 + n % 2},{'wiki' if n % 2 else 'web'},19{n}\n" for n in range(10, 20)
)


def config_of(kind: str) -> CampaignConfig:
    """Return the configuration of a kind."""
    return CampaignConfig.model_validate(USUAL | CONFIGS[kind])


def draft(owner, kind: str, **changed) -> Campaign:
    """Return a draft of a kind, whose list has been read if it has one."""
    config = config_of(kind).model_copy(update=changed)
    file = None if config.file is None else ContentFile(_ROWS.encode(), config.file.name)
    made = changes.create(owner=owner, config=config, file=file)
    wait_until_idle()
    return Campaign.objects.get(pk=made.pk)


def prolific(owner) -> Campaign:
    """Return a draft in which there is everything, which people of an earlier campaign may not join."""
    earlier, study = started(owner), config_of("whole").study.model_dump()
    refused = {"refused": [{"number": earlier.pk, "name": earlier.name}]}
    return draft(owner, "whole", study=Study.model_validate(study | refused))


def started(owner) -> Campaign:
    """Return a campaign that runs and was extended."""
    made = started_now(draft(owner, "list", name="An earlier one", scorers=(), seed=None))
    changes.extend(made, 25)
    wait_until_idle()
    return made


def finished(owner) -> Campaign:
    """Return a panel that has ended."""
    made = started_now(draft(owner, "panel"))
    lifecycle.finish_now(made)
    made.refresh_from_db()
    return made


MADE: dict[str, Callable[..., Campaign]] = {each.__name__: each for each in (prolific, started, finished)}


def setup(owner, name: str) -> Campaign:
    """Return a campaign by the name of a kind, or of those that come about otherwise."""
    return MADE[name](owner) if name in MADE else draft(owner, name)


def written_file(campaign: Campaign) -> bytes:
    """Return the file of a campaign's setup."""
    return b"".join(config_files.write(campaign)[1])


def imported(content: bytes, owner, **options) -> Campaign:
    """Return the draft that a file makes."""
    with config_files.opened(io.BytesIO(content)) as (config, uploaded):
        kept = None if uploaded is None else ContentFile(uploaded.read(), config.file.name)
        made = drafts.create(config, owner, kept, **options)
    wait_until_idle()
    return Campaign.objects.get(pk=made.pk)


def of_model(model: type[BaseModel], **fixed: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return values of a declaration: each field is left out or anything that it may be."""
    fields = {name: _of_field(info) for name, info in model.model_fields.items() if name not in fixed} | fixed
    fields = {name: each for name, each in fields.items() if each is not None}
    needed = {name: each for name, each in fields.items() if model.model_fields[name].is_required()}
    others = {name: each for name, each in fields.items() if name not in needed}
    return st.fixed_dictionaries(needed, optional=others).map(lambda given: _made(model, given))


def _made(model: type[BaseModel], given: dict[str, Any]) -> BaseModel:
    try:
        return model.model_validate(given)
    except ValidationError:
        assume(False)
        raise


def _of_field(info: FieldInfo) -> Any:
    return _of(Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation)


def _of(annotation: Any, noted: tuple[Any, ...] = ()) -> Any:
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _of(args[0], noted + args[1:])
    if origin in (Union, types.UnionType):
        return st.one_of(*(found for each in args if (found := _of(each, noted)) is not None))
    if annotation is type(None):
        return st.none()
    if origin is Literal:
        return st.sampled_from(args)
    if annotation is bool:
        return st.booleans()
    if annotation in (int, float, Decimal):
        return _number(annotation, noted)
    if annotation is str:
        patterns = [each.pattern for each in noted if isinstance(each, StringConstraints) and each.pattern]
        return st.from_regex(str(patterns[0]), fullmatch=True) if patterns else _WORDS
    if origin is tuple and isinstance(args[0], type) and issubclass(args[0], BaseModel):
        return st.lists(of_model(args[0]), max_size=2)
    return of_model(annotation) if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def _number(kind: type, noted: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    flat = [part for each in noted for part in (each.metadata if isinstance(each, FieldInfo) else [each])]
    least = max([kind(each.ge) for each in flat if isinstance(each, at.Ge)], default=kind(0))
    most = min([kind(each.le) for each in flat if isinstance(each, at.Le)], default=kind(1000))
    if kind is int:
        return st.integers(least, most)
    return st.decimals(least, most, places=2) if kind is Decimal else st.floats(least, most).map(lambda x: round(x, 6))


@st.composite
def configs(draw: st.DrawFn) -> CampaignConfig:
    """Return a configuration that a form, a file and the API accept."""
    protocol = draw(of_model(Protocol, practice=st.just(()), gold=st.just(()), gold_share=st.just(0.0)))
    study = draw(of_model(Study, protocol=st.just(protocol), refused=st.just(()), return_address=st.just("")))
    changed = {
        "name": draw(_WORDS),
        "instructions": draw(_WORDS | st.just("")),
        "language": draw(st.sampled_from(["en", "de", "ar"])),
        "chains": draw(st.integers(1, 5)),
        "steps": draw(st.integers(30, 1000)),
        "burn_in": draw(st.integers(0, 10)),
        "seed": draw(st.none() | st.integers(0, 2**53 - 1)),
        "answering": draw(of_model(Answering)),
        "caps": draw(of_model(Caps)),
        "study": draw(st.sampled_from([Study(), study])),
    }
    found = _made(CampaignConfig, USUAL | CONFIGS[draw(st.sampled_from(sorted(CONFIGS)))] | changed)
    assert isinstance(found, CampaignConfig)
    assume(not [*validation_errors(found)])
    return found


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
_SHOWN_WITH = {"system": "You judge.", "user": "{{question}}\nA: {{first}}\nB: {{second}}\n{{context}}\nA or B?"}
WHOLE: dict[str, Any] = (
    {"version": 1}
    | USUAL
    | CONFIGS["whole"]
    | {"file": {"name": "texts.csv", "sha256": "0" * 64}, "seed": 7}
    | {"judges": [*CONFIGS["whole"]["judges"], _ASKED | {"source": _MODEL | {"prompt": _SHOWN_WITH}}]}
)
"""Every part has something."""


def as_text(document: dict[str, Any]) -> str:
    """Return a document as YAML."""
    return config_yaml.write(document)
