"""What a draft has and its form does not show stays as it is when the form is saved.

A setup can say more than the form has fields for: a file or a command may have written it. Where nobody has changed a
field, what it was made of stands; where somebody has, the form's own answer stands, with the keys that it knows nothing
of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms

from prefmh_web.campaigns.models import Campaign
from prefmh_web.console.forms.spaces import SpaceForm

Plain = dict[str, Any]
_SIZE = {"chains", "steps"}


def changed(form: forms.BaseForm) -> set[str]:
    """Return the fields whose value is another than the draft's. Browsers send line ends of their own: these are no
    change.
    """
    return {name for name in form.changed_data if _sent(form, name) != _plain(form[name].initial)}


def _sent(form: forms.BaseForm, name: str) -> Any:
    try:
        return _plain(form.fields[name].to_python(form[name].data))
    except forms.ValidationError:
        return None


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return "" if value is None else "\n".join(str(value).strip().splitlines())


def space_of(form: SpaceForm) -> Plain:
    """Return the config's space."""
    made = form.space()
    if form.before is None:
        return made
    before: Plain = form.before.config.space.model_dump(mode="json")
    if not changed(form):
        return before
    shown = made.keys() | {path.split(".")[1] for path in form.field_of if path.startswith("space.")}
    return made | {name: value for name, value in before.items() if name not in shown}


def kernel_of(form: SpaceForm, campaign_form: forms.BaseForm) -> Plain | None:
    """Return the draft's kernel where nothing is changed that it was made from; otherwise None."""
    if form.before is None:
        return None
    of_space = {field for path, field in form.field_of.items() if path.startswith("space.")}
    # The kind of objects decides which properties a warm-up follows.
    if changed(form) - (of_space - {"objects"}):
        return None
    config = form.before.config
    is_resized = bool(_SIZE & changed(campaign_form))
    return None if config.warm_up is not None and is_resized else config.kernel.model_dump(mode="json")


def rule_of(form: forms.BaseForm, campaign: Campaign | None) -> Plain | None:
    """Return the draft's rule if its fields are as they were; otherwise None."""
    if campaign is None or changed(form):
        return None
    rule: Plain = campaign.config.rule.model_dump(mode="json")
    return rule


def judges_of(
    questions: forms.BaseFormSet[Any], panelists: Sequence[str], campaign: Campaign | None
) -> list[Plain] | None:
    """Return the draft's judges if the questions are as they were, and the panel too; otherwise None."""
    if campaign is None or tuple(panelists) != campaign.config.panelists:
        return None
    meant = [form for form in questions.forms if form.cleaned_data]
    if len(meant) != questions.initial_form_count() or any(map(changed, questions.forms)):
        return None
    return [judge.model_dump(mode="json") for judge in campaign.config.judges]


def in_order(chosen: Sequence[str], before: str) -> list[str]:
    """Return choices in the order that they had, those that are new after them.

    Args:
        before: with spaces between them.
    """
    known = before.split()
    return sorted(chosen, key=lambda each: known.index(each) if each in known else len(known))
