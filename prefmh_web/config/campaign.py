"""The whole configuration of a campaign, as one model: form, file, API and record are made of it.

What fixes the chains is the sampler's own (`sampler.ChainConfig`); people are in `study.py`. Nothing is said twice.

Not in it: keys of endpoints, which are named only; people, but for a panel's names; and a seed that was drawn, so that
a second campaign from the same file draws its own.

`validation_errors` says where its parts do not fit together, though each is what it should be: the form, the file and
the API refuse the same, each at the path of the field.

`public` is what others may see of it, and the one way in which it leaves its owner's own form and file. Each field says
in its declaration whether it is hidden, and until when: `hidden="always"` (whoever has a completion code or the address
to return to is paid for a part that they have not done) or `hidden="until the end"` (whoever knows the right answers
passes the checks). `settings_page` is every setting as a page of Markdown, made of the same declarations.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import URLValidator
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

import sampler
from prefmh_web.config.protocol import OwnPair
from prefmh_web.config.study import LONGEST_NAME, Money, Outcome, Study
from prefmh_web.recruiters import LINK, OPEN
from sampler.declared import EACH_ONCE, JUDGED_BY, ONE_LINE, TARGET, Declared, ui, ui_of

_VOTERS = "The language, the layout, the time to answer, and pairs that nobody answers"
_LENGTH = "More chains while people come, what is left out, and the seed"
_JUDGED = {"rule": ("n-vote", "pointwise")}
_LAYOUTS = {
    "": "One above the other if a question is asked in both orders, else by the screen",
    "by-screen": "Side by side where there is room, else one above the other",
    "stacked": "One above the other on every screen",
}
LARGEST_SEED = 2**53 - 1
PERSONAL_LIMITS = ("quota", "max_minutes", "max_active_minutes", "absent_minutes")
"""Limits that are noted with a person's id."""
RETURN_FIELDS = ("code", "external_id", "session_id")
"""What an address to return to may name, beside the parameters of the link."""
RETURN_FIELD = re.compile(r"\{([^{}]*)\}")
_PARAMETER = re.compile(r"[A-Za-z][\w.-]{0,63}", re.ASCII)
# All that comes after the host: without it, an address ends with its host.
_HOST = re.compile(r"(?<=[^/:])[/?#].*", re.DOTALL)
_CHOOSE = f"Choose “{OPEN.title}”, a platform, or links of your own with an id each."
FieldError = tuple[str, str]
"""The path of a field, and what is wrong with it."""
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_NAME), ONE_LINE]
Language = Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}(-[a-zA-Z0-9]{2,8})?$")]
_ScorerName = Annotated[str, StringConstraints(pattern=r"^\S{1,200}$")]


class UploadedFile(Declared):
    """The file that a list of objects comes from.

    Args:
        name: without folders.
        sha256: of its bytes, as 64 hexadecimal digits; where it is given, no other file is taken.
    """

    name: str = Field(min_length=1, max_length=255, pattern=r"^[^/\\\x00-\x1f]+$")
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")


class Answering(Declared):
    """How long a pair waits for its answer, and when nobody else is asked about a step.

    Args:
        seconds: after so long the pair goes to somebody else.
        suspend_after_skips: of one step; without it, skips suspend nothing.
        suspend_after_reports: that an object is not shown, each by another person.
        undo: whether each choice waits in the page before it is sent, and can be taken back until then. The server
            never takes a vote back: an undo that depended on what a vote has settled would change the distribution.
    """

    seconds: int = Field(
        default=120,
        ge=10,
        le=3600,
        title="Time to answer, in seconds",
        description="After this time the pair goes to somebody else. Give enough: answers that come too late do not "
        "count.",
        json_schema_extra=ui(fixed=JUDGED_BY),
    )
    suspend_after_skips: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        title="Set a step aside after so many skips",
        description="It is suspended: nobody else is asked about it until you try it again or end its chain. Empty for "
        "never.",
        json_schema_extra=ui(fixed=TARGET),
    )
    suspend_after_reports: int = Field(
        default=2,
        ge=1,
        le=1000,
        title="Set a step aside after so many reports",
        description="That an object is not shown, or broken, each by another person.",
        json_schema_extra=ui(fixed=TARGET),
    )
    undo: bool = Field(
        default=False,
        title="Let voters undo a choice",
        description="Each choice is sent after two seconds, and can be taken back until then. Every vote takes two "
        "seconds longer.",
        json_schema_extra=ui(fixed=JUDGED_BY),
    )


class Caps(Declared):
    """What asking models may take.

    Args:
        cost: in the currency of the endpoints' prices.
        requests: of all models together.
    """

    cost: Annotated[Money, Field(lt=10**10)] | None = Field(
        default=None,
        title="Models may cost at most",
        description="In the currency of your endpoints’ prices. At the cap the campaign pauses. Empty for no cap.",
    )
    requests: int | None = Field(
        default=None,
        ge=1,
        le=10**12,
        title="Models may be sent at most so many requests",
        description="Requests that fail count, too. Empty for no cap.",
    )


class CampaignConfig(sampler.ChainConfig):
    """A campaign's whole configuration.

    Args:
        name: voters do not see it.
        instructions: shown once, before the first pair.
        language: of the voters' pages.
        layout: how a pair stands on their screens; without it, stacked where a question is asked in both orders.
        file: where a list of the researcher's own comes from.
        seed: only one that the researcher has typed; without it, the start of each campaign draws its own.
        scorers: models that give each object a number, beside those whose numbers the rule goes by.
        answering: seconds to answer, and when a step is suspended.
        caps: on what models may take.
        study: who comes, how much each gives, and what they are asked beside votes.
    """

    model_config = ConfigDict(title="campaign.yaml of prefmh")

    name: Name = Field(
        title="Name of the campaign",
        description="Voters do not see it. Colleagues whom you add to the campaign do.",
    )
    instructions: Annotated[str, StringConstraints(strip_whitespace=True, max_length=4000)] = Field(
        default="",
        title="Instructions for voters",
        description="Shown once, before the first pair.",
        json_schema_extra=ui(widget="text", fixed=JUDGED_BY, when=_JUDGED),
    )
    language: Language = Field(
        default="en",
        title="Language of the voters' pages",
        description="Write your questions and instructions in it, too. Translations that no native speaker has "
        "reviewed yet say so.",
        json_schema_extra=ui(fixed=JUDGED_BY, choices="languages", fold=_VOTERS),
    )
    layout: Literal["by-screen", "stacked"] | None = Field(
        default=None,
        title="How the two objects stand",
        description="A preference for the first object may be another one beside than above. Two orders cancel it only "
        "where all people see one layout.",
        json_schema_extra=ui(fixed=JUDGED_BY, labels=_LAYOUTS, fold=_VOTERS),
    )
    file: UploadedFile | None = Field(default=None, title="File", json_schema_extra=ui(widget="none", fixed=TARGET))
    # A draft has none that was not typed: see `Campaign.config`.
    seed: int | None = Field(  # type: ignore[assignment]
        default=None,
        ge=0,
        le=LARGEST_SEED,
        title="Seed of all random numbers",
        description="Leave empty, and the start draws one. Its hash is shown from then on, and nobody sees the seed "
        "until the campaign has ended. Keep a seed that you type secret: it determines all random numbers.",
        json_schema_extra=ui(fixed=TARGET, fold=_LENGTH, hidden="until the end"),
    )
    scorers: Annotated[tuple[_ScorerName, ...], EACH_ONCE] = Field(
        default=(),
        max_length=50,
        title="Scorers",
        description="Each gives every object that a chain proposes a number, which the record keeps and the report "
        "follows. They decide nothing, unless the rule goes by scores.",
        json_schema_extra=ui(
            fixed="the objects before and after would be measured otherwise",
            fold="Scores that the record keeps of each object",
            choices="scorers",
        ),
    )
    answering: Answering = Field(default=Answering(), json_schema_extra=ui(fold=_VOTERS))
    caps: Caps = Field(default=Caps(), json_schema_extra=ui(fold="Caps on what models may cost"))
    study: Study = Field(default=Study(), json_schema_extra=ui(widget="none"))

    @property
    def shown_as(self) -> dict[str, Any]:
        """How pages show a pair: whether one object stands above the other on every screen, since a bias that is to
        cancel between two orders must be that of one layout; and the language of the objects, where it is known.
        """
        has_orders = any(judge.order != "random" for judge in self.judges)
        is_stacked = self.layout == "stacked" or (self.layout is None and has_orders)
        # Of those that are generated, the story openings are written here.
        return {"is_stacked": is_stacked, "objects_lang": "en" if self.space.kind == "texts" else ""}

    @property
    def all_scorers(self) -> tuple[str, ...]:
        """The scorers of the campaign: those that steps wait for first."""
        return tuple(dict.fromkeys([*self.needed_scorers, *self.scorers]))


def validation_errors(config: CampaignConfig) -> Iterator[FieldError]:
    """Yield where a configuration does not fit together."""
    try:
        sampler.require_sound(config)
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


def _of_pair(pair: OwnPair, config: CampaignConfig) -> Iterator[FieldError]:
    kind, asked = sampler.OBJECT_KINDS[config.space.objects], len(questions_of(config))
    if pair.question > asked:
        yield "question", f"must be at most {asked}: people answer so many questions"
    for name in ("first", "second"):
        try:
            kind.written(getattr(pair, name))
        except ValueError as reason:
            yield name, f"does not fit the campaign's objects: {reason}"


def _of_study(study: Study) -> Iterator[FieldError]:
    """Yield what does not fit in how people come; of what builds on each other, only the first."""
    if study.recruiter == LINK.name and not _PARAMETER.fullmatch(study.parameter):
        yield "parameter", "Enter a name of letters, digits, “-”, “_” and “.”, such as participant."
        return
    found = [*_unknown_people(study)]
    if study.recruiter == OPEN.name and study.refused:
        found.append(("refused", "People who come without an id cannot be known again."))
    yield from found or _wrong_return_address(study)


def _unknown_people(study: Study) -> Iterator[FieldError]:
    if study.platform.knows_people:
        return
    if not study.protocol.is_empty:
        yield "recruiter", f"The protocol asks things of each person. {_CHOOSE}"
    for name in PERSONAL_LIMITS:
        if getattr(study, name) is not None:
            yield name, f"This is noted of each person. {_CHOOSE}"
    if study.consent:
        yield "consent", f"Consent is stored with each person. {_CHOOSE}"


def _wrong_return_address(study: Study) -> Iterator[FieldError]:
    recruiter, template = study.platform, study.address_back
    try:
        if template:
            URLValidator(schemes=["https", "http"])(RETURN_FIELD.sub("x", template))
    except ValidationError:
        yield "return_address", "Enter a whole address that begins with https://."
        return
    if RETURN_FIELD.search(_HOST.sub("", template)):
        # Whoever makes up a link would choose where people go.
        yield "return_address", "Braces may stand only after the host and a “/”."
        return
    known = {*recruiter.parameters, *recruiter.appends}
    ours = RETURN_FIELDS[:1] if recruiter.is_open else RETURN_FIELDS
    unknown = [name for name in RETURN_FIELD.findall(template) if name not in {*ours, *known}]
    if recruiter.name == LINK.name:
        # Links of the researcher's own may have any parameter.
        unknown = [name for name in unknown if not _PARAMETER.fullmatch(name)]
    if unknown:
        allowed = ", ".join(f"{{{name}}}" for name in (*ours, *known))
        yield "return_address", f"{{{unknown[0]}}} is not known. Use {allowed}."
    elif "{code}" in template and not study.codes.get(Outcome.COMPLETED):
        yield "codes", "Enter the code: the address to return to has {code}."


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a configuration, which editors of YAML can check a file against."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | CampaignConfig.model_json_schema()


HIDDEN = "hidden"
"""The key under which a public configuration names what it leaves out, by path."""


def public(config: CampaignConfig, *, is_over: bool) -> dict[str, Any]:
    """Return a configuration, as plain data, without what is hidden; panelists have numbers for names.

    Args:
        is_over: the campaign is finished, so that only what is hidden always stays so.
    """
    nameless = config.model_copy(update={"judges": sampler.unnamed(config.judges)})
    told: dict[str, Any] = nameless.model_dump(mode="json", exclude_none=True)
    # Whether a seed is revealed is settled by whoever made the configuration.
    left_out = [*_hide(nameless.model_copy(update={"seed": None}), told, is_over)]
    return told | ({HIDDEN: left_out} if left_out else {})


def _hide(value: Any, data: Any, is_over: bool) -> Iterator[str]:
    """Take what is hidden out of the plain data of a value, and yield the path of each."""
    match value, data:
        case tuple(), list():
            for index, each in enumerate(value):
                yield from (f"{index}.{path}" for path in _hide(each, data[index], is_over))
        case BaseModel(), dict():
            for name, info in type(value).model_fields.items():
                found, until = getattr(value, name), ui_of(info).hidden
                if not until or (is_over and until != "always"):
                    yield from (f"{name}.{path}" for path in _hide(found, data.get(name), is_over))
                elif isinstance(found, Mapping):
                    data[name] = {}
                    yield from (f"{name}.{key}" for key, each in found.items() if each)
                elif found not in (None, "", ()):
                    del data[name]
                    yield name


_BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "maxItems": "at most {} entries",
}
_HEADER = "| key | what it is | values | default | after the start |\n|---|---|---|---|---|\n"


def settings_page() -> str:
    """Return the page: a table for the whole and one for each part."""
    schema, page = json_schema(), "# Settings of a campaign\n"
    for name, part in ({"campaign.yaml": schema} | schema["$defs"]).items():
        if "properties" in part:
            about = str(part.get("description", "")).split("\n\n")[0].replace("\n", " ")
            needed = part.get("required", ())
            page += f"\n## {name}\n\n{about}\n\n{_HEADER}"
            page += "".join(_row(key, each, is_needed=key in needed) for key, each in part["properties"].items())
    return page


def _row(key: str, field: dict[str, Any], *, is_needed: bool) -> str:
    told = ". ".join(filter(None, [str(field.get("title", "")), str(field.get("description", ""))]))
    # That of a part stands in the part's own table.
    default = "" if isinstance(field.get("default"), dict) else f"`{json.dumps(field.get('default'))}`"
    default = "must be given" if is_needed else default
    fixed = f"fixed: {field['x-fixed']}" if "x-fixed" in field else ""
    cells = (f"`{key}`", told, "; ".join(_values(field)), default, fixed)
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |\n"


def _values(field: dict[str, Any]) -> Iterator[str]:
    """Yield what a value can be: its type or its part, the words, the bounds."""
    for each in [field, *field.get("anyOf", ()), *field.get("oneOf", ())]:
        if "$ref" in each:
            yield f"[{each['$ref'].rpartition('/')[2]}](#{each['$ref'].rpartition('/')[2].lower()})"
        elif "enum" in each or "const" in each:
            yield " or ".join(f"`{word}`" for word in each.get("enum", [each.get("const")]))
        elif each.get("type") not in (None, "null"):
            yield {"array": "list", "object": "mapping", "string": "text"}.get(each["type"], each["type"])
        yield from (text.format(f"{each[name]:,}") for name, text in _BOUNDS.items() if name in each)
        if "items" in each:
            yield from (f"of {told}" for told in _values(each["items"]))
