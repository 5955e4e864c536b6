"""Template filters for people's eyes."""

from django import template

register = template.Library()


@register.filter
def minus(value: int, other: int) -> int:
    """Return value - other."""
    return value - other
