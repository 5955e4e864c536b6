"""What is known of a platform that sends people: how its link names them, and how they get back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Recruiter:
    """A way in which people come.

    Args:
        name: as stored, and in addresses.
        title: what the researcher reads.
        called: what the people whom it sends call it; empty where it has no name.
        person: the parameter of the link that names the person; empty where people come without ids.
        is_open: people come without ids, and each browser is somebody.
        form: what the person's id looks like, as a regular expression of the whole; empty where it may be anything.
        folded: gives ids that mean one person the same spelling.
        session: the parameter that names this visit; empty where there is none.
        study: the parameter that names the study; empty where there is none.
        parameters: for each parameter of the link to paste, what the platform puts its value in for.
        appends: parameters that the platform adds by itself.
        way_back: the address to return to, with {code} and other fields; empty where the researcher must fill it in.
        preview: a parameter and the value that it has when somebody only looks at the study.
        help: what the researcher must know to use it.
        source: the documentation that says so, and when it was read.
    """

    name: str
    title: str
    called: str = ""
    person: str = ""
    form: str = ""
    folded: Callable[[str], str] = str
    session: str = ""
    study: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    appends: tuple[str, ...] = ()
    way_back: str = ""
    preview: tuple[str, str] | None = None
    help: str = ""
    source: str = ""
    is_open: bool = False

    @property
    def knows_people(self) -> bool:
        """True where each person has a part of their own, by an id or by their browser."""
        return bool(self.person) or self.is_open

    def link(self, address: str) -> str:
        """Return the link to paste into the platform, for the address of an invitation."""
        query = "&".join(f"{name}={value}" for name, value in self.parameters.items())
        return f"{address}?{query}" if query else address
