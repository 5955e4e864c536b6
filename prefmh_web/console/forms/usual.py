"""Whether a field stands as most people leave it: such fields may be folded."""

from django.forms.boundfield import BoundField

# A seed that was drawn for a draft stands in its field, although nobody has chosen it.
_FILLED_BY_US = ("seed",)


def needs_a_look(field: BoundField) -> bool:
    """Return whether a field has an error, or a value that is not the usual one."""
    if field.errors or field.name in _FILLED_BY_US:
        return bool(field.errors)
    return bool(field.field.has_changed(field.field.initial, field.value()))
