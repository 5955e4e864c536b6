"""Configurations of every kind, as a strategy: what each part may be follows from its declaration.

Setups as documents: the least, and one in which every part has something.
"""

import types
from decimal import Decimal
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types as at
from hypothesis import assume
from hypothesis import strategies as st
from pydantic import BaseModel, StringConstraints, ValidationError
from pydantic.fields import FieldInfo

from prefmh_web.config import Answering, CampaignConfig, Caps, Protocol, Study, misfits
from prefmh_web.setup import yaml_text
from tests.support.campaigns import MIXTURE
from tests.support.campaigns import WHOLE as PROTOCOL

_WORDS = st.text("abc xyz é漢\n-#:'\"", min_size=1, max_size=12).map(str.strip).filter(bool)
_TEXTS = {"space": {"kind": "texts"}, "kernel": {"kind": "suffix"}}
_LIST = {"kind": "catalog", "objects": "texts", "neighbours": 2}
_MODEL = {"kind": "model", "endpoint": "A judge", "temperature": 0.5, "reasons": True}
_NAMES = ("Ada Lovelace", "Bo")
CHAINS: dict[str, dict[str, Any]] = {
    "texts": _TEXTS | {"judges": [{"question": "Which?", "votes": 2}]},
    "molecules": {
        "space": {"kind": "molecules"},
        "kernel": {"kind": "fragments"},
        "judges": [{"question": "Which?", "votes": 1}],
    },
    "pictures": {
        "space": {"kind": "images"},
        "kernel": {"kind": "crank-nicolson", "beta": 0.1},
        "judges": [{"question": "Which?", "votes": 1}],
    },
    "list": {
        "space": _LIST,
        "file": {"name": "list.csv", "sha256": "0" * 64},
        "kernel": {"kind": "neighbours"},
        "judges": [{"question": "Which?", "votes": 3}],
    },
    "model": _TEXTS | {"judges": [{"question": "Which?", "votes": 4, "order": "balanced", "source": _MODEL}]},
    "panel": _TEXTS
    | {"judges": [{"question": "Which?", "votes": 1, "source": {"kind": "panelist", "name": name}} for name in _NAMES]},
    "base": {"space": {"kind": "texts"}, "kernel": {"kind": "independent"}, "rule": {"kind": "base"}, "judges": []},
}
"""What fixes the chains, of each kind."""


def of_model(model: type[BaseModel], **fixed: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return values of a declaration: each field is left out or anything that it may be."""
    fields = {
        name: fixed[name] if name in fixed else _of_field(info)
        for name, info in model.model_fields.items()
        if name in fixed or _of_field(info) is not None
    }
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
        return _number(annotation, _bounds(noted))
    if annotation is str:
        patterns = [each.pattern for each in noted if isinstance(each, StringConstraints) and each.pattern]
        return st.from_regex(str(patterns[0]), fullmatch=True) if patterns else _WORDS
    if origin is tuple and isinstance(args[0], type) and issubclass(args[0], BaseModel):
        return st.lists(of_model(args[0]), max_size=2)
    return of_model(annotation) if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def _bounds(noted: tuple[Any, ...]) -> tuple[float, float]:
    flat = [part for each in noted for part in (each.metadata if isinstance(each, FieldInfo) else [each])]
    least = [each.ge for each in flat if isinstance(each, at.Ge)]
    most = [each.le for each in flat if isinstance(each, at.Le)]
    return float(max(least, default=0)), float(min(most, default=1000))  # type: ignore[type-var,arg-type]


def _number(kind: type, bounds: tuple[float, float]) -> st.SearchStrategy[Any]:
    least, most = bounds
    if kind is int:
        return st.integers(int(least), int(most))
    if kind is Decimal:
        return st.decimals(Decimal(least), Decimal(most), places=2)
    return st.floats(least, most).map(lambda value: round(value, 6))


@st.composite
def configs(draw: st.DrawFn) -> CampaignConfig:
    """Return a configuration that a form, a file and the API accept."""
    chains = CHAINS[draw(st.sampled_from(sorted(CHAINS)))]
    protocol = draw(of_model(Protocol, practice=st.just(()), gold=st.just(()), gold_share=st.just(0.0)))
    study = draw(of_model(Study, protocol=st.just(protocol), refused=st.just(()), way_back=st.just("")))
    given = chains | {
        "name": draw(_WORDS),
        "instructions": draw(_WORDS | st.just("")),
        "language": draw(st.sampled_from(["en", "de", "ar"])),
        "chains": draw(st.integers(1, 5)),
        "steps": draw(st.integers(20, 1000)),
        "burn_in": draw(st.integers(0, 10)),
        "seed": draw(st.none() | st.integers(0, 2**53 - 1)),
        "answering": draw(of_model(Answering)),
        "caps": draw(of_model(Caps)),
        "study": draw(st.sampled_from([Study(), study])),
    }
    found = _made(CampaignConfig, given)
    assert isinstance(found, CampaignConfig)
    assume(not [*misfits(found)])
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
