"""Setups of all kinds, each through the doors by which a researcher's own comes about."""

from __future__ import annotations

import io
from collections.abc import Callable
from decimal import Decimal

from django.core.files.base import ContentFile

import sampler
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.lifecycle import drafts, extension
from prefmh_web.campaigns.models import Campaign
from prefmh_web.participants import recruiting
from prefmh_web.participants.protocol import Protocol
from prefmh_web.setup import apply, files
from tests.participants.test_stages import WHOLE
from tests.support.files import archive, picture
from tests.support.panels import panel_judges
from tests.support.recruited import CODES, WAY_BACK
from tests.support.stack import TEXTS, make_recipe, wait_until_idle

_SUFFIXES = {
    "kind": "mixture",
    "parts": [
        {"weight": 0.1, "kernel": {"kind": "independent"}},
        {"weight": 0.9, "kernel": {"kind": "suffix", "cut": "limit"}},
    ],
}
_OPENINGS = {"kind": "texts", "scenarios": [0, 7], "temperature": 0.9}
_WRITTEN = {"kind": "model-texts", "model": "A writer", "prompts": ["Tell of the sea.", "No"], "limit": 8}
_PROMPT = {"system": "You judge.", "user": "{{question}}\n\nA: {{first}}\nB: {{second}}\n\nA or B?"}
_COLUMNS = "text,weight,source,year\n" + "".join(
    f"Text {n},{1 + n % 2},{'wiki' if n % 2 else 'web'},19{n}\n" for n in range(10, 20)
)
_PAIR = {"left": "CCO", "right": "CCN", "answer": "left", "if_wrong": "Yes: alcohols first."}


def _draft(owner, recipe: dict, file: bytes | None = None, filename: str = "", **fields) -> Campaign:
    parsed = sampler.parse_recipe(recipe).model_dump(mode="json")
    content = None if file is None else ContentFile(file, filename)
    made = drafts.create(owner=owner, recipe=parsed, file=content, filename=filename, **{"name": "A setup"} | fields)
    wait_until_idle()
    return Campaign.objects.get(pk=made.pk)


def texts(owner) -> Campaign:
    """Story openings with a warm-up, a typed seed, burn-in and instructions from a browser."""
    kernel = {
        "kind": "walk",
        "kernel": _SUFFIXES,
        "length": [{"weight": 1.0, "length": 3}],
        "warm_up": {"steps": 20, "properties": ["words"]},
    }
    recipe = make_recipe(space=_OPENINGS, kernel=kernel, burn_in=5, steps=100, most_chains=9)
    spoken = "Read both.\r\n\r\n- Take your time: no hurry\r\n# yes"
    return _draft(owner, recipe, name="Yes: “openings” # 1", instructions=spoken, is_seed_typed=True, lease_seconds=90)


def listed(owner) -> Campaign:
    """A list with columns that are shown, and steps that are suspended after skips."""
    space = {"kind": "catalog", "objects": "texts", "neighbours": 2, "context": [{"column": "source", "label": "No"}]}
    return _draft(owner, make_recipe(space=space), _COLUMNS.encode(), "my list.csv", suspend_after_skips=3)


def molecules(owner) -> Campaign:
    """Molecules that the chains make, with scorers, practice and gold pairs."""
    recipe = make_recipe(space={"kind": "molecules"}, kernel={"kind": "fragments"})
    made = _draft(owner, recipe, scorer_names="sa qed", suspend_after_reports=4)
    recruiting.set_up(made, {"recruiter": "link", "parameter": "pid", "codes": CODES}, ())
    gold = {name: value for name, value in _PAIR.items() if name != "if_wrong"}
    recruiting.set_protocol(made, Protocol.model_validate({"practice": [_PAIR], "gold": [gold], "gold_share": 0.07}))
    return made


def images(owner) -> Campaign:
    """A ZIP of pictures."""
    file = archive({f"{colour}.png": picture(colour) for colour in ("red", "green", "blue", "white")})
    space = {"kind": "catalog", "objects": "images", "neighbours": 1}
    return _draft(owner, make_recipe(space=space), file, "Pictures.zip")


def written(owner) -> Campaign:
    """Texts that a model behind an endpoint writes, judged by models, with caps."""
    judges = [
        {"question": "Which is darker?", "budget": 4, "order": "balanced",
         "source": {"kind": "model", "endpoint": "A judge", "temperature": 0.7, "reasons": True, "prompt": _PROMPT}},
        {"question": "Which is better?", "budget": 2,
         "source": {"kind": "model", "endpoint": "Another", "votes": "log-probabilities", "first": True}},
    ]  # fmt: skip
    recipe = make_recipe(space=_WRITTEN, kernel=_SUFFIXES, judges=judges)
    return _draft(owner, recipe, cost_cap=Decimal("12.50"), request_cap=100_000)


def panel(owner) -> Campaign:
    """A panel whose people have names."""
    recipe = make_recipe(judges=panel_judges(3, names=("Ada Lovelace", "Bo", "Cy")))
    return _draft(owner, recipe, TEXTS.encode(), "texts.csv")


def prolific(owner) -> Campaign:
    """A study on Prolific with all stages, consent, codes, places and pay."""
    made = _draft(owner, make_recipe(), TEXTS.encode(), "texts.csv", name="A study")
    earlier = started(owner)
    pay = {"completed": "full", "withdrawn": "full", "ended": "nothing"}
    fields = {
        "recruiter": "prolific",
        "codes": CODES | {"withdrawn": ""},
        "way_back": WAY_BACK,
        "pay": pay,
        "places": 40,
    }
    fields |= {"votes_each": 50, "most_minutes": 60, "absent_minutes": 10, "place_pay": Decimal("3.20")}
    fields |= {"currency": "£", "consent": "I *agree*.\nYes.", "budget": 5000, "most_a_minute": 30}
    recruiting.set_up(made, fields, [earlier])
    questions = [
        *WHOLE["questions"],
        {"name": "work", "text": "Work?", "options": ["b", "a"], "places": {"a": 3, "b": 5}},
    ]
    more = {"check_share": 0.05, "repeat_share": 0.1, "wait_minutes": 10}
    recruiting.set_protocol(made, Protocol.model_validate(WHOLE | more | {"questions": questions}))
    return made


def german(owner) -> Campaign:
    """An open link in another language, with the line ends of browsers."""
    made = _draft(owner, make_recipe(), TEXTS.encode(), "texts.csv", instructions="Lies\r\nbeide.", language="de")
    recruiting.set_up(made, {"recruiter": "open", "consent": "Ja."}, ())
    recruiting.set_protocol(made, Protocol.model_validate(WHOLE))
    return made


def base(owner) -> Campaign:
    """A rule that asks nobody."""
    return _draft(owner, make_recipe(space=_OPENINGS, kernel={"kind": "independent"}, judges=[], rule={"kind": "base"}))


def score(owner) -> Campaign:
    """MARS's rule."""
    recipe = make_recipe(
        space={"kind": "molecules"}, kernel={"kind": "fragments"}, judges=[], rule={"kind": "score", "form": "mars"}
    )
    return _draft(owner, recipe, scorer_names="logp qed")


def quest(owner) -> Campaign:
    """QUEST's rule, with a scorer that this site need not have."""
    kernel = {"kind": "suffix", "cut": "length"}
    rule = {"kind": "quest", "scorer": "comet", "beta": 0.2}
    return _draft(owner, make_recipe(space=_WRITTEN, kernel=kernel, judges=[], rule=rule))


def ratings(owner) -> Campaign:
    """Ratings by a model."""
    source = {"kind": "model", "endpoint": "A judge"}
    judges = [{"question": "How gothic is it?", "budget": 1, "source": source}]
    rule = {"kind": "pointwise", "form": "power", "lowest": 1, "beta": 2.5}
    return _draft(owner, make_recipe(space=_OPENINGS, kernel=_SUFFIXES, judges=judges, rule=rule))


def started(owner) -> Campaign:
    """A campaign that runs and was extended."""
    made = _draft(owner, make_recipe(), TEXTS.encode(), "texts.csv", name="An earlier one")
    lifecycle.start(made)
    wait_until_idle()
    extension.extend(made, 25)
    wait_until_idle()
    return made


def finished(owner) -> Campaign:
    """A panel that has ended, whose scorers hold those of its rule."""
    made = panel(owner)
    lifecycle.start(made)
    wait_until_idle()
    lifecycle.finish_now(made)
    made.refresh_from_db()
    return made


SETUPS: dict[str, Callable[..., Campaign]] = {
    each.__name__: each
    for each in (
        texts, listed, molecules, images, written, panel, prolific, german, base, score, quest, ratings,
        started, finished,
    )
}  # fmt: skip
"""By name."""


def written_file(campaign: Campaign) -> bytes:
    """Return the file of a campaign's setup."""
    return b"".join(files.write(campaign)[1])


def imported(content: bytes, owner, **options) -> Campaign:
    """Return the draft that a file makes."""
    with files.opened(io.BytesIO(content)) as (setup, uploaded):
        kept = None if uploaded is None else ContentFile(uploaded.read(), setup.file.name)
        made = apply.create(setup, owner, kept, **options)
    wait_until_idle()
    return Campaign.objects.get(pk=made.pk)
