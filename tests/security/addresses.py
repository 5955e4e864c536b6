"""Every address of the application, from its URL conf: a page added later is attacked by itself."""

from dataclasses import dataclass
from functools import cache

from django.urls import URLPattern, URLResolver, get_resolver, reverse

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE")


@dataclass(frozen=True)
class Address:
    """One named URL pattern and the names of what stands in it."""

    name: str
    parts: tuple[str, ...]

    def path(self, values: dict[str, object]) -> str:
        """Return the path of somebody's things.

        Raises:
            KeyError: a new kind of thing; say in `world.py` which of the victim's is meant.
        """
        return reverse(self.name, kwargs={part: values[part] for part in self.parts})


@cache
def all_addresses() -> tuple[Address, ...]:
    """Return every named pattern, in the URL conf's order."""
    return tuple(_walk(get_resolver(), "", ()))


def _walk(resolver: URLResolver, namespace: str, above: tuple[str, ...]):
    for entry in resolver.url_patterns:
        parts = (*above, *entry.pattern.regex.groupindex)
        if isinstance(entry, URLResolver):
            inner = f"{namespace}{entry.namespace}:" if entry.namespace else namespace
            yield from _walk(entry, inner, parts)
        elif isinstance(entry, URLPattern):
            yield Address(f"{namespace}{entry.name}", parts)
