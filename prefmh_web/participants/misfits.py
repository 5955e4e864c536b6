"""What does not fit together in how people come to a campaign: told by the form and by a setup's file alike."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import URLValidator

from prefmh_web.participants import completion
from prefmh_web.participants.models import Outcome
from prefmh_web.participants.protocol import Protocol
from prefmh_web.recruiters import LINK, OPEN, RECRUITERS, recruiter_by

PERSONAL_LIMITS = ("places", "most_minutes", "most_active_minutes", "absent_minutes")
"""Limits that are noted with a person's id."""
_PARAMETER = re.compile(r"[A-Za-z][\w.-]{0,63}", re.ASCII)
# All that comes after the host: without it, an address ends with its host.
_HOST = re.compile(r"(?<=[^/:])[/?#].*", re.DOTALL)
_BRACES = re.compile(r"\{[^{}]*\}")
_CHOOSE = f"Choose “{OPEN.title}”, a platform, or links of your own with an id each."
Misfit = tuple[str, str]


def misfits(fields: Mapping[str, Any], protocol: Protocol, *, excludes_people: bool) -> Iterator[Misfit]:
    """Yield the field and the reason of what does not fit; of what builds on each other, only the first.

    Args:
        fields: of a `Recruitment`.
        excludes_people: people of other campaigns may not take part.
    """
    recruiter = fields["recruiter"]
    if recruiter == LINK.name and not _PARAMETER.fullmatch(fields["parameter"]):
        yield "parameter", "Enter a name of letters, digits, “-”, “_” and “.”, such as participant."
        return
    found = [*_unknown_people(fields, protocol)]
    if recruiter == OPEN.name and excludes_people:
        found.append(("excluded", "People who come without an id cannot be known again."))
    yield from found or _wrong_way_back(fields)


def _unknown_people(fields: Mapping[str, Any], protocol: Protocol) -> Iterator[Misfit]:
    if RECRUITERS[fields["recruiter"]].knows_people:
        return
    if not protocol.is_empty:
        yield "recruiter", f"The protocol asks things of each person. {_CHOOSE}"
    for name in PERSONAL_LIMITS:
        if fields.get(name) is not None:
            yield name, f"This is noted of each person. {_CHOOSE}"
    if fields["consent"]:
        yield "consent", f"Consent is stored with each person. {_CHOOSE}"


def _wrong_way_back(fields: Mapping[str, Any]) -> Iterator[Misfit]:
    recruiter = recruiter_by(fields["recruiter"], fields["parameter"])
    template = fields["way_back"] or recruiter.way_back
    try:
        if template:
            URLValidator(schemes=["https", "http"])(_BRACES.sub("x", template))
    except ValidationError:
        yield "way_back", "Enter a whole address that begins with https://."
        return
    if _BRACES.search(_HOST.sub("", template)):
        # Whoever makes up a link would choose where people go.
        yield "way_back", "Braces may stand only after the host and a “/”."
        return
    known = {*recruiter.parameters, *recruiter.appends}
    ours = completion.FIELDS[:1] if recruiter.is_open else completion.FIELDS
    unknown = completion.unknown_fields(template, {*ours, *known})
    if recruiter.name == LINK.name:
        # Links of the researcher's own may have any parameter.
        unknown = [name for name in unknown if not _PARAMETER.fullmatch(name)]
    if unknown:
        allowed = ", ".join(f"{{{name}}}" for name in (*ours, *known))
        yield "way_back", f"{{{unknown[0]}}} is not known. Use {allowed}."
    elif "{code}" in template and not fields["codes"].get(Outcome.COMPLETED):
        yield "codes", "Enter the code: the address to return to has {code}."
