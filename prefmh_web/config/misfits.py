"""Where the parts of a configuration do not fit together, though each is what it should be.

The form, the file and the API refuse the same, each at the path of the field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import URLValidator

import sampler
from prefmh_web.config.campaign import CampaignConfig
from prefmh_web.config.protocol import OwnPair
from prefmh_web.config.study import Outcome, Study
from prefmh_web.recruiters import LINK, OPEN

PERSONAL_LIMITS = ("places", "most_minutes", "most_active_minutes", "absent_minutes")
"""Limits that are noted with a person's id."""
WAY_BACK_FIELDS = ("code", "external_id", "session_id")
"""What an address to return to may name, beside the parameters of the link."""
WAY_BACK_FIELD = re.compile(r"\{([^{}]*)\}")
_PARAMETER = re.compile(r"[A-Za-z][\w.-]{0,63}", re.ASCII)
# All that comes after the host: without it, an address ends with its host.
_HOST = re.compile(r"(?<=[^/:])[/?#].*", re.DOTALL)
_CHOOSE = f"Choose “{OPEN.title}”, a platform, or links of your own with an id each."
Misfit = tuple[str, str]
"""The path of a field, and what is wrong with it."""


def misfits(config: CampaignConfig) -> Iterator[Misfit]:
    """Yield where a configuration does not fit together."""
    try:
        sampler.demand_sound(config)
    except sampler.ConfigError as error:
        yield from ((problem.path, problem.message) for problem in error.problems)
        return
    if config.generates and config.file is not None:
        yield "file", "must be left out: the chains make their objects"
    elif not config.generates and config.file is None:
        yield "file", "is missing: name the file that has the list, such as “file: {name: texts.csv}”"
    known = dict(settings.LANGUAGES)
    if config.language not in known:
        yield "language", f"“{config.language}” is no language of the voters' pages; there are {', '.join(known)}"
    yield from ((f"study.{name}", reason) for name, reason in _of_study(config.study))
    for part in ("practice", "gold"):
        for index, pair in enumerate(getattr(config.study.protocol, part)):
            yield from ((f"study.protocol.{part}.{index}.{name}", reason) for name, reason in _of_pair(pair, config))


def questions_of(config: sampler.ChainConfig) -> tuple[str, ...]:
    """Return the questions that people answer, each once, in their order."""
    asked = [judge.question for judge in config.judges if not isinstance(judge.source, sampler.ModelSource)]
    return tuple(dict.fromkeys(asked))


def _of_pair(pair: OwnPair, config: CampaignConfig) -> Iterator[Misfit]:
    kind, asked = sampler.OBJECT_KINDS[config.space.objects], len(questions_of(config))
    if pair.question > asked:
        yield "question", f"must be at most {asked}: people answer so many questions"
    for name in ("first", "second"):
        try:
            kind.written(getattr(pair, name))
        except ValueError as reason:
            yield name, f"does not fit the campaign's objects: {reason}"


def _of_study(study: Study) -> Iterator[Misfit]:
    """Yield what does not fit in how people come; of what builds on each other, only the first."""
    if study.recruiter == LINK.name and not _PARAMETER.fullmatch(study.parameter):
        yield "parameter", "Enter a name of letters, digits, “-”, “_” and “.”, such as participant."
        return
    found = [*_unknown_people(study)]
    if study.recruiter == OPEN.name and study.refused:
        found.append(("refused", "People who come without an id cannot be known again."))
    yield from found or _wrong_way_back(study)


def _unknown_people(study: Study) -> Iterator[Misfit]:
    if study.platform.knows_people:
        return
    if not study.protocol.is_empty:
        yield "recruiter", f"The protocol asks things of each person. {_CHOOSE}"
    for name in PERSONAL_LIMITS:
        if getattr(study, name) is not None:
            yield name, f"This is noted of each person. {_CHOOSE}"
    if study.consent:
        yield "consent", f"Consent is stored with each person. {_CHOOSE}"


def _wrong_way_back(study: Study) -> Iterator[Misfit]:
    recruiter, template = study.platform, study.address_back
    try:
        if template:
            URLValidator(schemes=["https", "http"])(WAY_BACK_FIELD.sub("x", template))
    except ValidationError:
        yield "way_back", "Enter a whole address that begins with https://."
        return
    if WAY_BACK_FIELD.search(_HOST.sub("", template)):
        # Whoever makes up a link would choose where people go.
        yield "way_back", "Braces may stand only after the host and a “/”."
        return
    known = {*recruiter.parameters, *recruiter.appends}
    ours = WAY_BACK_FIELDS[:1] if recruiter.is_open else WAY_BACK_FIELDS
    unknown = [name for name in WAY_BACK_FIELD.findall(template) if name not in {*ours, *known}]
    if recruiter.name == LINK.name:
        # Links of the researcher's own may have any parameter.
        unknown = [name for name in unknown if not _PARAMETER.fullmatch(name)]
    if unknown:
        allowed = ", ".join(f"{{{name}}}" for name in (*ours, *known))
        yield "way_back", f"{{{unknown[0]}}} is not known. Use {allowed}."
    elif "{code}" in template and not study.codes.get(Outcome.COMPLETED):
        yield "codes", "Enter the code: the address to return to has {code}."
