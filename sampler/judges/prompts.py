"""What a model judge is shown: chat messages as plain data, in the form that OpenAI-compatible servers take. The words
are a template, this program's (`sampler/data/prompts.toml`) or the researcher's own.

One criterion a judge, and nothing about what the chain does: not which object is the proposal, not the tally, not
what other judges are asked. The two objects get the same words, so that only the objects and their order differ. No
text can end its own quotation, nor, by a special token of the model's, the turn that it is quoted in.

Of a list's further columns, what the objects that are shown together have in common stands once; what differs is a
property of each object and names it. Neither depends on which of them is the proposal.

Special tokens, made harmless: what a text must not say to a model that judges it. A chat reaches a model as one
sequence of tokens, in which special tokens say where a turn ends and whose the next one is. Many servers write the chat
out as a text first and then read special tokens wherever they stand, in a judged text too: a text that holds <|im_end|>
would end the question it is shown in, and could put words into the judge's mouth.

Nobody here knows the judge's vocabulary, so the forms are taken that such tokens have in use: <|im_end|>, </s>,
<end_of_turn>, <｜User｜>, <<SYS>>; [INST], [/INST], [TOOL_CALLS], [gMASK], [unused1], [|user|]; ]~b] and [e~[. A space
after the opening bracket makes other tokens of them and leaves the words to be read. Each text always gets the same
spaces, whichever of the two objects it is. SMILES get none: no atom and no arrow of a dative bond has such a form.

Prompts to begin with: the paper's judges, the experiments' roles, plain words (`sampler/data/prompts.toml`). The paper
prints no judge's prompt in full. What it does print of two of them stands there word for word, with the line of
`pref-mh.tex` that has it; the words around it are ours, and so are those of the other roles.

- Molecules, section "De novo molecular design" (L701): "prompted to choose which of two SMILES molecules is more
  promising for medicinal-chemistry follow-up"; appendix (L1481-1483): "The evaluation considers general
  medicinal-chemistry factors such as drug-likeness, synthetic accessibility, developability, and potentially
  problematic chemical motifs."
- Images, appendix "Image generation in continuous space" (L1341-1352): the properties "orange salamander on grey
  driftwood", "turquoise butterfly flying in the scene" and "red mushroom with white spots near the soil"; "each judge
  is instructed to focus only on its own criterion rather than on the remaining objects or general image aesthetics".

The stories' properties are those of L1099-1102, and what a judge of translations sees is that of L1613-1620.

Detectors say whether something is in an object. Their message is the question and the object, and nothing else. They
are asked greedily, at temperature 0: their answer is a measurement, not a draw. `replies.parse_yes_or_no` reads it.

A prompt of the researcher's own: a system message and a text with placeholders for what is asked and what is judged.

A placeholder is a name between double braces, as {{question}}. Nothing else is read in a template: no attribute, no
format and no expression. What is put in is never read for placeholders again: an object whose text says {{second}}
stays that text.

    {{question}}                 the judge's question; must be there
    {{first}}, {{second}}        the two objects, in the order of A and B; each once, in this order
    {{object}}                   the one object, where the rule rates
    {{context}}                  all columns that are shown with the objects, each under its label
    {{first: Source}}            what stands in one of these columns, or what is measured, of one object
    {{lowest}}, {{highest}}      the ends of the scale, where the rule rates

The reply is read as ever: A or B, or one whole number of the scale.
"""

from __future__ import annotations

import base64
import json
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import resources
from string import Template
from typing import Any, ClassVar, Final, Literal, Self

from pydantic import Field, TypeAdapter, ValidationError, field_validator, model_validator

from sampler.declared import Sparse, ui
from sampler.judges.replies import RatingScale

LONGEST_TEMPLATE: Final = 20_000
_PLACE = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_OBJECTS: Final = {1: ("object",), 2: ("first", "second")}
_SCALE: Final = ("lowest", "highest")
# What no text of a request should hold; line breaks and tabs are fine.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True)
class Placeholder:
    """One placeholder of a template: what is named, and of which column or measure."""

    name: str
    of: str = ""

    def __str__(self) -> str:
        return f"{{{{{self.name}: {self.of}}}}}" if self.of else f"{{{{{self.name}}}}}"


@dataclass(frozen=True)
class Fitting:
    """What a template has to fit.

    Args:
        objects: how many stand in one prompt, 1 or 2.
        columns: labels of the columns that are shown with them.
        measures: what is measured of them, by name.
    """

    objects: int
    columns: Sequence[str] = ()
    measures: Collection[str] = ()


class PromptTemplate(Sparse):
    """The words of a model judge, as its researcher wrote them.

    Args:
        system: the system message; empty for none.
        user: the user's message.
    """

    unwritten: ClassVar[tuple[str, ...]] = ("system",)
    system: str = Field(
        default="", max_length=LONGEST_TEMPLATE, title="System message", json_schema_extra=ui(widget="template")
    )
    user: str = Field(
        max_length=LONGEST_TEMPLATE,
        title="User template",
        description="Write {{question}} for the question, {{first}} and {{second}} for the two objects ({{object}} "
        "where one is rated) and {{context}} for the columns that are shown. Objects are put between quotation marks.",
        json_schema_extra=ui(widget="template"),
    )

    @property
    def version(self) -> str:
        """A short name for exactly these words: eight digits of the SHA-256 of them as sorted JSON without spaces."""
        written = json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return sha256(written.encode("utf-8")).hexdigest()[:8]

    @field_validator("system", "user")
    @classmethod
    def _with_plain_line_breaks(cls, text: str) -> str:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        if found := _CONTROL.search(text):
            raise ValueError(f"must hold no control character such as U+{ord(found.group()):04X}; remove it")
        return text


def pieces(text: str) -> Iterator[str | Placeholder]:
    """Yield the words of a template and its placeholders, in their order."""
    end = 0
    for found in _PLACE.finditer(text):
        if found.start() > end:
            yield text[end : found.start()]
        name, _, of = found.group(1).partition(":")
        yield Placeholder(name.strip(), of.strip())
        end = found.end()
    if end < len(text):
        yield text[end:]


def placeholders(text: str) -> list[Placeholder]:
    """Return the placeholders of a template."""
    return [piece for piece in pieces(text) if isinstance(piece, Placeholder)]


def template_problems(template: PromptTemplate, fitting: Fitting) -> Iterator[tuple[str, str]]:
    """Yield the field and the reason of everything in a template that cannot be filled, or is missing."""
    for field in ("system", "user"):
        for placeholder in dict.fromkeys(placeholders(getattr(template, field))):
            if reason := _why_unknown(placeholder, field, fitting):
                yield field, reason
    named = [placeholder.name for placeholder in placeholders(template.user) if not placeholder.of]
    if "question" not in named and Placeholder("question") not in placeholders(template.system):
        yield "user", "must hold {{question}}, which is what the record says that this judge answers"
    yield from (("user", reason) for reason in _objects_missing(named, fitting))
    if fitting.columns and "context" not in named and not _shows_columns(template.user, fitting):
        yield "user", "must hold {{context}}, or name each of the columns that people see for each object"
    if fitting.objects == 2 and not re.search(r"\bB\b", template.system + template.user):
        yield "user", "must say which object is A and which is B: a reply is one of these two letters"


def template_of(source: object) -> PromptTemplate | None:
    """Return the prompt of its own that a judge's source has; None of one that has none, and of people."""
    found = getattr(source, "prompt", None)
    return found if isinstance(found, PromptTemplate) else None


def template_errors(sources: Sequence[object], fitting: Fitting) -> Iterator[tuple[str, str]]:
    """Yield the path in a config and the reason of all such problems.

    Args:
        sources: of the config's judges, in order.
    """
    for judge, source in enumerate(sources):
        if template := template_of(source):
            for field, reason in template_problems(template, fitting):
                yield f"judges.{judge}.source.prompt.{field}", reason


def known_placeholders(fitting: Fitting) -> list[str]:
    """Return all that may stand between double braces in the user's template."""
    of = [*fitting.columns, *fitting.measures]
    whole = [Placeholder("question"), *map(Placeholder, _OBJECTS[fitting.objects])]
    whole += [Placeholder("context")] if fitting.columns else []
    whole += [Placeholder(name, each) for each in of for name in _OBJECTS[fitting.objects]]
    return list(map(str, [*whole, *(map(Placeholder, _SCALE) if fitting.objects == 1 else ())]))


def _why_unknown(placeholder: Placeholder, field: str, fitting: Fitting) -> str:
    """Return why a placeholder cannot be filled; empty if it can."""
    known = known_placeholders(fitting)
    if str(placeholder) not in known:
        return f"knows no {placeholder}; it may hold {', '.join(known)}"
    if field == "system" and placeholder.name not in ("question", *_SCALE):
        return f"must not hold {placeholder}: objects and their columns stand in the user template"
    return ""


def _objects_missing(named: Sequence[str], fitting: Fitting) -> Iterator[str]:
    shown = _OBJECTS[fitting.objects]
    for name in shown:
        if (count := named.count(name)) != 1:
            times = "does not" if not count else f"does {count} times"
            yield f"must hold {Placeholder(name)} exactly once, and {times}"
    in_order = [name for name in named if name in shown]
    if sorted(in_order) == sorted(shown) and in_order != list(shown):
        yield "must hold {{first}} before {{second}}: A is the object that stands first"


def _shows_columns(text: str, fitting: Fitting) -> bool:
    shown = set(placeholders(text))
    return all(Placeholder(name, label) in shown for name in _OBJECTS[fitting.objects] for label in fitting.columns)


@dataclass(frozen=True)
class ContextLine:
    """What stands in one column for an object, and what the researcher calls the column."""

    label: str
    text: str


Context = tuple[ContextLine, ...]
"""Of one object: a line for each column that is shown, in their order; empty cells included."""


@dataclass(frozen=True)
class SharedContext:
    """The context of objects that are shown together, without empty cells.

    Args:
        shared: what they have in common.
        own: what each has of its own, in the order of the objects.
    """

    shared: Context
    own: tuple[Context, ...]

    def __bool__(self) -> bool:
        return bool(self.shared) or any(self.own)


def shared_context(*contexts: Sequence[ContextLine]) -> SharedContext:
    """Return what the objects with these contexts have in common, and what each has of its own.

    Args:
        contexts: one an object, of the same columns; of an object that has none, as one of the researcher's own pairs,
            empty.
    """
    columns = dict.fromkeys(line.label for context in contexts for line in context)
    cells = [{line.label: line for line in context} for context in contexts]
    together = {label for label in columns if len({found.get(label) for found in cells}) == 1}
    shared = tuple(cells[0][label] for label in columns if label in together)
    own = tuple(tuple(found[label] for label in columns if label in found.keys() - together) for found in cells)
    return SharedContext(_filled(shared), tuple(map(_filled, own)))


def _filled(lines: Context) -> Context:
    return tuple(line for line in lines if line.text.strip())


# Full-width and small forms, too: some tokenisers turn them into the plain ones.
_ANGLE: Final = r"[<＜﹤](?![- \n]|\Z)"
_SQUARE: Final = (
    r"[\[［](?=[|｜/／]|[a-z]?[A-Z][A-Z_]{2,}[0-9]*[\]］]|[a-z]{3,}_?[0-9]+[\]］]|[a-z]~\[)|\](?=~!?b[\[\]]|![a-z]~\[)"
)
_OPENING: Final = re.compile(f"{_ANGLE}|{_SQUARE}")


def without_special_tokens(text: str) -> str:
    """Return a text that holds no special token of the usual forms: the same one, but for spaces."""
    return _OPENING.sub(r"\g<0> ", text)


Messages = list[dict[str, Any]]


@dataclass(frozen=True)
class Picture:
    """An encoded picture.

    Args:
        media_type: such as image/png.
        data: the file's bytes.
        detail: how closely the model is to look, in the words of its server; empty where that is not said.
    """

    media_type: str
    data: bytes
    detail: str = ""


@dataclass(frozen=True)
class ShownObject:
    """One object as a judge sees it: words (a text, a SMILES), a picture, or both (a molecule, drawn).

    Args:
        context: what is shown with it of the further columns of its list.
        measures: what is measured of it, where a prompt of the researcher's own names that.

    Raises:
        ValueError: it has neither.
    """

    text: str = ""
    picture: Picture | None = None
    context: Context = ()
    measures: Context = ()

    def __post_init__(self) -> None:
        if not self.text.strip() and self.picture is None:
            raise ValueError("a shown object must have a text or a picture")


def fence_of(*shown: ShownObject) -> str:
    """Return quotation marks that none of the texts holds, so that no text can end its own quotation."""
    fence = '"""'
    while any(fence in text for each in shown for text in _texts(each)):
        fence += '"'
    return fence


def _texts(shown: ShownObject) -> Iterator[str]:
    yield shown.text
    yield from (line.text for line in (*shown.context, *shown.measures))


def picture_part(picture: Picture) -> dict[str, Any]:
    """Return a picture as a part of a message."""
    encoded = base64.b64encode(picture.data).decode("ascii")
    shown = {"url": f"data:{picture.media_type};base64,{encoded}"}
    return {"type": "image_url", "image_url": shown | ({"detail": picture.detail} if picture.detail else {})}


def quotation(text: str, fence: str) -> str:
    """Return a text between the quotation marks that `fence_of` returned, with no special token in it."""
    return f"{fence}\n{without_special_tokens(text)}\n{fence}"


def _labelled(of_what: str, lines: Context, fence: str) -> Iterator[tuple[str, str]]:
    """Yield the label of each line, which begins with `of_what`, and what stands there, quoted."""
    for line in lines:
        yield f"{of_what}{line.label}:", quotation(line.text, fence)


def _shown_parts(shown: ShownObject, fence: str) -> Iterator[dict[str, Any]]:
    if shown.text:
        yield _text(quotation(shown.text, fence))
    if shown.picture:
        yield picture_part(shown.picture)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _chat(system: str, parts: Sequence[dict[str, Any]]) -> Messages:
    """Return a system message, if there is one, and what the user says: a text where all its parts are texts."""
    content: Any = list(parts)
    if all(part["type"] == "text" for part in parts):
        # Chat templates of text models often take a plain string only.
        content = "".join(part["text"] for part in parts)
    return [*([{"role": "system", "content": system}] if system else []), {"role": "user", "content": content}]


_MOLECULES = {
    "": "SMILES, with a drawing if the model sees pictures",
    "smiles": "SMILES only",
    "picture": "Drawing only",
    "both": "SMILES and drawing",
}


class Vision(Sparse):
    """How a model judge is shown pictures.

    Args:
        edge: the longer side in pixels; larger pictures are made smaller, smaller ones stay.
        format: png (without loss) or jpeg.
        quality: of a jpeg, 1 to 100; 90 if it is not given.
        detail: how closely the model looks, where its server has such a field.
        molecules: shown as their SMILES, as a drawing, or as both.
    """

    unwritten: ClassVar[tuple[str, ...]] = ("edge", "format", "quality", "detail", "molecules")
    edge: int | None = Field(
        default=None,
        ge=32,
        le=4096,
        title="Longest side of a picture",
        description="In pixels. Larger pictures are made smaller. Empty for pictures as they are.",
    )
    format: Literal["png", "jpeg"] | None = Field(
        default=None,
        title="Format of pictures",
        json_schema_extra=ui(labels={"": "As they are", "png": "PNG", "jpeg": "JPEG"}),
    )
    quality: int | None = Field(default=None, ge=1, le=100, title="JPEG quality", description="1 to 100; empty for 90.")
    detail: Literal["low", "high", "auto"] | None = Field(
        default=None,
        title="Detail",
        description="Only OpenAI's and Azure's servers have this field. The draft's page estimates the tokens.",
        json_schema_extra=ui(labels={"": "The server's own", "low": "Low", "high": "High", "auto": "Auto"}),
    )
    molecules: Literal["smiles", "picture", "both"] | None = Field(
        default=None, title="How molecules are shown", json_schema_extra=ui(labels=_MOLECULES)
    )

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_dump():
            raise ValueError("must say something: leave it out where pictures are shown as they are")
        if self.quality is not None and self.format != "jpeg":
            raise ValueError("quality is that of a jpeg: set format to 'jpeg', or leave quality out")
        return self

    @property
    def changes_files(self) -> bool:
        """Whether pictures are encoded anew."""
        return self.edge is not None or self.format is not None


_CALLED: Final = {1: ("",), 2: ("A", "B")}


@dataclass(frozen=True)
class Prompt:
    """What a judge is told, without the objects: the part of a prompt that is the same for every pair.

    A campaign stores it when it starts, so that a later version of this program asks in the same words.

    Args:
        template: the words.
        question: what stands for {{question}}.
        objects: how many are shown, 1 or 2.
        scale: what stands for {{lowest}} and {{highest}}.
    """

    template: PromptTemplate
    question: str
    objects: Literal[1, 2] = 2
    scale: tuple[int, int] | None = None

    def stored(self) -> dict[str, Any]:
        """Return the prompt as plain data."""
        plain: dict[str, Any] = _PROMPT.dump_python(self, mode="json", exclude_none=True)
        return plain

    @property
    def measures(self) -> tuple[str, ...]:
        """What it names of single objects: labels of columns, and measures by their names."""
        named = (piece.of for piece in pieces(self.template.user) if isinstance(piece, Placeholder) and piece.of)
        return tuple(dict.fromkeys(named))

    def messages(self, *shown: ShownObject) -> Messages:
        """Return the messages that show these objects.

        Raises:
            ValueError: there are more or fewer objects than the prompt shows, or a placeholder has no value.
        """
        if len(shown) != self.objects:
            raise ValueError(f"this prompt shows {self.objects} objects, not {len(shown)}")
        system = "".join(map(self._said, pieces(self.template.system)))
        return _chat(system, _joined(self._parts(shown)))

    def _parts(self, shown: Sequence[ShownObject]) -> Iterator[dict[str, Any]]:
        fence = fence_of(*shown)
        by_name = dict(zip(_OBJECTS[self.objects], shown, strict=True))
        for piece in pieces(self.template.user):
            if not isinstance(piece, Placeholder) or piece.name not in (*by_name, "context"):
                yield _text(self._said(piece))
            elif piece.name == "context":
                yield _text(self._context(shown, fence))
            elif piece.of:
                yield _text(quotation(_value(by_name[piece.name], piece.of), fence))
            else:
                yield from _shown_parts(by_name[piece.name], fence)

    def _said(self, piece: str | Placeholder) -> str:
        """Return what stands where no object does."""
        if isinstance(piece, str):
            return piece
        if piece == Placeholder("question"):
            return self.question
        if self.scale and piece.name in ("lowest", "highest") and not piece.of:
            return str(self.scale[piece.name == "highest"])
        raise ValueError(f"nothing is known for {piece}")

    def _context(self, shown: Sequence[ShownObject], fence: str) -> str:
        """Return all columns: what the objects have in common, and then what each has of its own."""
        found = shared_context(*(each.context for each in shown))
        lines = list(_labelled("", found.shared, fence))
        for called, own in zip(_CALLED[self.objects], found.own, strict=True):
            lines += _labelled(f"{called}, " if called else "", own, fence)
        return "\n".join(words for line in lines for words in line)


_PROMPT = TypeAdapter(Prompt)


def stored_prompt(stored: Mapping[str, Any]) -> Prompt:
    """Return the prompt that a campaign has kept.

    Raises:
        ValueError: a field is missing or is not what it should be.
    """
    try:
        return _PROMPT.validate_json(json.dumps(stored), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"“{'.'.join(map(str, first['loc']))}” of a prompt: {first['msg']}") from error


def _value(shown: ShownObject, of: str) -> str:
    for line in (*shown.context, *shown.measures):
        if line.label == of:
            return line.text
    if shown.context or shown.measures:
        raise ValueError(f"nothing is known of “{of}” for an object")
    # An object that stands in no list, such as one of the researcher's own pairs.
    return ""


def _joined(parts: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return parts with neighbouring texts as one."""
    joined: list[dict[str, Any]] = []
    for part in parts:
        if joined and part["type"] == joined[-1]["type"] == "text":
            joined[-1] = _text(joined[-1]["text"] + part["text"])
        elif part["type"] != "text" or part["text"]:
            joined.append(part)
    return joined


_DATA: Final = tomllib.loads(resources.files("sampler").joinpath("data", "prompts.toml").read_text(encoding="utf-8"))


def pairwise_prompt(kind: str, criterion: str, *, has_context: bool = False, is_drawn: bool = False) -> Prompt:
    """Return the prompt of this program's words that asks for "A" or "B".

    Args:
        kind: a name of `OBJECT_KINDS`.
        criterion: the judge's one question, such as "Which text is more gothic?".
        has_context: whether columns of a list are shown with the objects.
        is_drawn: whether molecules are shown as drawings alone.

    Raises:
        ValueError: the kind is unknown, or the criterion is empty.
    """
    return Prompt(_worded("pair", kind, has_context, is_drawn), _one_line(criterion))


def rating_prompt(
    kind: str, criterion: str, scale: RatingScale, *, has_context: bool = False, is_drawn: bool = False
) -> Prompt:
    """Return the prompt of this program's words that asks for a whole number on the scale.

    Args:
        has_context, is_drawn: as in `pairwise_prompt`.

    Raises:
        ValueError: the kind is unknown, or the criterion is empty.
    """
    template = _worded("rating", kind, has_context, is_drawn)
    return Prompt(template, _one_line(criterion), 1, (scale.lowest, scale.highest))


def _worded(what: str, kind: str, has_context: bool, is_drawn: bool) -> PromptTemplate:
    words = _DATA["words"]
    if kind not in words["nouns"]:
        raise ValueError(f"kind must be one of {', '.join(words['nouns'])}, not {kind!r}")
    noun, note = words["nouns"][kind], words["drawn" if is_drawn else "smiles"]
    context = words["context"] if has_context else dict.fromkeys(words["context"], "")
    said = {"noun": noun, "Noun": noun.capitalize(), "note": note if kind == "molecules" else ""} | context
    return PromptTemplate(**{field: Template(text).substitute(said) for field, text in words[what].items()})


def _one_line(criterion: str) -> str:
    words = " ".join(criterion.split())
    if not words:
        raise ValueError("criterion must not be empty")
    return words


@dataclass(frozen=True)
class Preset:
    """A prompt to begin with.

    Args:
        title: as the setup shows it.
        kinds: of the objects that it is for.
        rates: whether it rates one object, and does not compare two.
        question: one to begin with; empty where the prompt is for any.
        template: the words.
    """

    title: str
    kinds: tuple[str, ...]
    rates: bool
    question: str
    template: PromptTemplate


def _read() -> Iterator[tuple[str, Preset]]:
    """Yield the presets of the file by name. Each ends with how to reply."""
    common = _DATA["common"]
    for name, each in _DATA["presets"].items():
        rates = each.get("rates", False)
        reply = common["one_number" if rates else "one_letter"]
        template = PromptTemplate(
            system=f"{each['system']} {reply}",
            user=each.get("user", common["rated" if rates else "pair"]),
        )
        yield name, Preset(each["title"], tuple(each["kinds"]), rates, each.get("question", ""), template)


PRESETS: Final = dict(_read())
"""By the name under which a form has them. A campaign keeps the words, never the name."""


_TEMPLATE: Final = PromptTemplate(user="{{question}}\n\n{{object}}")


def detection_prompt(question: str) -> Prompt:
    """Return what a detector is shown, without the object.

    Args:
        question: whole, as it is to stand there: "Is a red mushroom in the image? Answer yes or no."
    """
    return Prompt(_TEMPLATE, question, objects=1)
