"""The voting page as a setup would make it, while its fields are filled in. Nothing is saved, and no model is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django import forms as django_forms

import sampler
from prefmh_web.campaigns.models import Campaign, Catalog
from prefmh_web.campaigns.started import AS_WRITTEN
from prefmh_web.console.forms import SetupForms
from prefmh_web.console.forms.questions import PEOPLE, judges_in
from prefmh_web.console.forms.spaces.walks import with_steps
from prefmh_web.console.rehearsal import NotComputable, Rehearsal, Seen, rows_seen
from prefmh_web.console.unstored import NOISE, pair_of
from prefmh_web.objects import OBJECT_KINDS, ObjectKind
from prefmh_web.participants.options import Option, context_shown, options_of
from prefmh_web.settings.languages import SOURCE
from sampler.judges import ContextLine

# Where nobody has typed one: so that the pair stays while other fields change.
_SAMPLE_SEED = 1
_NO_JUDGE = {"question": "Which?", "budget": 1, "source": {"kind": "people"}, "order": "random"}
_FIRST = "This is the first pair of the first chain. Each person sees its two objects left and right by chance."
_DRAWN = "A first pair. The seed is drawn when you save, so the campaign will begin with another pair like it."
_AT_START = "A first pair. The seed is drawn at the start, so the campaign will begin with another pair like it."
_READ_AGAIN = "Your list is read again when you save. These are two of its objects."


@dataclass(frozen=True)
class VotingPreview:
    """What stands beside a setup.

    Args:
        missing: what must still be filled in.
        wrong: what must be corrected, each with its field.
        note: where the pair is from.
        silent: why nobody sees such a page; empty where people do.
    """

    missing: list[str]
    wrong: list[str]
    question: str
    instructions: str
    language: str
    kind: ObjectKind
    options: tuple[Option, Option]
    context: tuple[ContextLine, ...]
    note: str
    silent: str = ""


def voting_preview_of(forms: SetupForms, campaign: Campaign | None) -> VotingPreview | None:
    """Return the preview of a setup as its fields stand; None where it is not said what is compared."""
    _ = forms.campaign.errors
    if "space" in forms.campaign.errors:
        return None
    # Checked one by one: what is missing in one takes nothing from the others.
    for form in (forms.space, forms.rule, forms.panel, forms.questions):
        form.is_valid()
    kind = OBJECT_KINDS[_objects_in(forms)]
    left, right, note = _pair(forms, campaign, kind)
    shown = context_shown(left.context, right.context, AS_WRITTEN)
    sides = {"left": left, "right": right}
    options = options_of(kind, left.content, right.content, lambda side: sides[side].address, shown)
    data = forms.campaign.cleaned_data
    return VotingPreview(
        missing=[*dict.fromkeys(_complaints(forms, required=True))],
        wrong=[*dict.fromkeys(_complaints(forms, required=False))],
        question=_question_in(forms),
        instructions=data.get("instructions", ""),
        language=data.get("language") or SOURCE,
        kind=kind,
        options=options,
        context=tuple(shown.shared),
        note=note,
        silent=_silent(forms),
    )


def _objects_in(forms: SetupForms) -> str:
    chosen = {"kind": forms.space.kind}
    if forms.space.kind == "catalog":
        chosen["objects"] = forms.space["objects"].value()
        if chosen["objects"] not in OBJECT_KINDS:
            chosen["objects"] = "texts"
    if forms.space.kind == "pairs":
        return forms.space.before.parsed_recipe.space.objects if forms.space.before else "texts"
    return sampler.objects_of(chosen)


def _question_in(forms: SetupForms) -> str:
    asked = (str(form["question"].value() or "").strip() for form in forms.questions.forms)
    return next(filter(None, asked), "Your question stands here")


def _silent(forms: SetupForms) -> str:
    if not forms.rule.asks_judges:
        return "Nobody is asked in this campaign, so nobody sees such a page."
    sources = [form["source"].value() for form in forms.questions.forms]
    if sources and PEOPLE not in (source or PEOPLE for source in sources):
        return "Models answer every question, so nobody sees such a page."
    return ""


def _complaints(forms: SetupForms, *, required: bool) -> Iterator[str]:
    """Yield what is missing, by the names of the fields, or what is wrong, with the reason."""
    asked = (forms.panel, *forms.questions.forms) if forms.rule.asks_judges else ()
    for form in (forms.campaign, forms.space, forms.rule, *asked):
        for name, errors in form.errors.as_data().items():
            if name == "file" and not form.files:
                # What a browser has chosen comes with the form only when it is saved.
                continue
            for error in errors:
                if (error.code == "required") == required:
                    label = _label(form, name)
                    yield label if required else ": ".join(filter(None, (label, " ".join(error.messages))))


def _label(form: django_forms.BaseForm, name: str) -> str:
    return str(form[name].label) if name in form.fields else ""


def _pair(forms: SetupForms, campaign: Campaign | None, kind: ObjectKind) -> tuple[Seen, Seen, str]:
    """Return the first pair; where it cannot be computed two samples, and why."""
    try:
        recipe, is_fixed = _recipe_in(forms), bool(forms.campaign["seed"].value())
        listed = _list_of(forms, campaign) if recipe is not None else None
        if recipe is not None:
            if listed and listed.parsed_recipe.space != recipe.space:
                raise NotComputable(_READ_AGAIN)
            read = (listed.pk, f"{listed.created_at} {listed.catalog.revision}") if listed else (None, "")
            first, second = _drawn(json.dumps(recipe.model_dump(mode="json")), *read)
            return (
                first,
                second,
                _FIRST if is_fixed else _AT_START if forms.campaign["is_certified"].value() else _DRAWN,
            )
        note = "Two samples, until the fields above can be read."
    except NotComputable as reason:
        rows = rows_seen(campaign, campaign.parsed_recipe) if campaign and _is_list_of(forms, campaign) else None
        if rows:
            return (*rows, _READ_AGAIN)
        note = str(reason)
    first, second = (Seen(each.content, each.address) for each in pair_of(_sample_kind(forms, kind)))
    return first, second, note


def _sample_kind(forms: SetupForms, kind: ObjectKind) -> str:
    return NOISE if forms.space.kind == "model-images" else kind.name


def _recipe_in(forms: SetupForms) -> sampler.Recipe | None:
    """Return the recipe, as far as a first pair needs it; None where its fields cannot be read."""
    data, space = forms.campaign.cleaned_data, forms.space
    is_read = not space.errors or set(space.errors) <= {"file"}
    if not is_read or "chains" not in data or "steps" not in data or "seed" not in data:
        return None
    if space.errors and not space.before:
        raise NotComputable("Your file is read when you save. Until then, these are samples.")
    asks = forms.rule.asks_judges and forms.questions.is_valid()
    try:
        described: dict[str, Any] = {
            "version": 1,
            "space": space.space(),
            "kernel": with_steps(space.kernel(), data["chains"], data["steps"]),
            "judges": judges_in(forms.questions) if asks else [_NO_JUDGE],
            "chains": data["chains"],
            "steps": data["steps"],
            "seed": data["seed"] if forms.campaign["seed"].value() else _SAMPLE_SEED,
        }
        return sampler.parse_recipe(described)
    except sampler.RecipeError as error:
        raise NotComputable(f"The first pair cannot be drawn yet: {error}.") from error


def _is_list_of(forms: SetupForms, campaign: Campaign) -> bool:
    """Whether the draft has read a list of the kind that is chosen, and no other file takes its place."""
    catalog = Catalog.objects.filter(campaign=campaign, status=Catalog.Status.READY).first()
    if catalog is None or forms.space.kind != "catalog" or forms.space.files:
        return False
    return campaign.object_kind.name == _objects_in(forms)


def _list_of(forms: SetupForms, campaign: Campaign | None) -> Campaign | None:
    return campaign if campaign is not None and _is_list_of(forms, campaign) else None


@lru_cache(maxsize=64)
def _drawn(described: str, campaign_id: int | None, _reading: str) -> tuple[Seen, Seen]:
    campaign = Campaign.objects.get(pk=campaign_id) if campaign_id else None
    rehearsal = Rehearsal(sampler.parse_recipe(json.loads(described)), campaign)
    pair = rehearsal.next_pair(rehearsal.position(0))
    return rehearsal.seen(pair.current, pair.proposal), rehearsal.seen(pair.proposal, pair.current)
