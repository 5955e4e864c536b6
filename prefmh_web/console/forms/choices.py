"""Choices that are known only when a form is made."""

from collections.abc import Sequence

from django import forms


def offer(form: forms.BaseForm, name: str, choices: Sequence[tuple[str, str]]) -> None:
    """Set what a form's choice field offers: for each choice what is sent, and what it is called.

    Raises:
        TypeError: the field of that name offers no choices.
    """
    field = form.fields[name]
    if not isinstance(field, forms.ChoiceField):
        raise TypeError(f"{name} must be a choice field")
    field.choices = choices
