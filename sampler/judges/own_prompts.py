"""A prompt of the researcher's own with its places filled, as a campaign keeps it from its start.

    OwnPrompt        the words with everything in them but the objects
    stored_prompt    a frozen prompt of either kind, read again
    prompt_version   a short name for exactly these words

Objects are quoted as in the program's own prompts: no text can end its own quotation, or the turn that it stands in.

Prompts to begin with: the paper's judges, the experiments' roles, plain words (`sampler/data/prompts.toml`).

The paper prints no judge's prompt in full. What it does print of two of them stands here word for word, with the line
of `pref-mh.tex` that has it; the words around it are ours, and so are those of the other roles.

- Molecules, section "De novo molecular design" (L701): "prompted to choose which of two SMILES molecules is more
  promising for medicinal-chemistry follow-up"; appendix (L1481-1483): "The evaluation considers general
  medicinal-chemistry factors such as drug-likeness, synthetic accessibility, developability, and potentially
  problematic chemical motifs."
- Images, appendix "Image generation in continuous space" (L1341-1352): the properties "orange salamander on grey
  driftwood", "turquoise butterfly flying in the scene" and "red mushroom with white spots near the soil"; "each judge
  is instructed to focus only on its own criterion rather than on the remaining objects or general image aesthetics".

The stories' properties are those of L1099-1102, and what a judge of translations sees is that of L1613-1620.

Detectors: what a model is shown that says whether something is in an object.

The message is the question and the object, and nothing else. Detectors are asked greedily, at temperature 0: their
answer is a measurement, not a draw. `replies.parse_yes_or_no` reads it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

from sampler.judges.prompts import Context, Exhibit, Messages, Prompt, fence_of, picture_part, quotation, shared_context
from sampler.judges.templates import Place, PromptTemplate, pieces, words_version

_NAMES: Final = {1: ("object",), 2: ("first", "second")}
_CALLED: Final = {1: ("",), 2: ("A", "B")}


@dataclass(frozen=True)
class OwnPrompt:
    """What a judge is told in its researcher's words, without the objects.

    Args:
        template: those words.
        question: what stands for {{question}}.
        objects: how many are shown, 1 or 2.
        scale: what stands for {{lowest}} and {{highest}}.
    """

    template: PromptTemplate
    question: str
    objects: int = 2
    scale: tuple[int, int] | None = None

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> OwnPrompt:
        """Return the prompt that `stored` returned.

        Raises:
            ValueError: a field is missing or is not what it should be.
        """
        question, objects, scale = stored.get("question"), stored.get("objects"), stored.get("scale")
        if not isinstance(question, str) or objects not in (1, 2):
            raise ValueError("a prompt with a template must have a question and 1 or 2 objects")
        ends = None
        if scale is not None:
            if not isinstance(scale, list | tuple) or len(scale) != 2 or not all(type(end) is int for end in scale):
                raise ValueError("scale of a prompt must be two whole numbers")
            ends = scale[0], scale[1]
        return cls(PromptTemplate.model_validate(stored.get("template")), question, objects, ends)

    def stored(self) -> dict[str, Any]:
        """Return the prompt as plain data."""
        return {
            "question": self.question,
            "objects": self.objects,
            **({"scale": list(self.scale)} if self.scale else {}),
            "template": self.template.model_dump(mode="json"),
        }

    @property
    def measures(self) -> tuple[str, ...]:
        """What it names of single objects: labels of columns, and measures by their names."""
        named = (piece.of for piece in pieces(self.template.user) if isinstance(piece, Place) and piece.of)
        return tuple(dict.fromkeys(named))

    def messages(self, *exhibits: Exhibit) -> Messages:
        """Return the messages that show these objects.

        Raises:
            ValueError: there are more or fewer objects than the prompt shows, or a place has no value.
        """
        if len(exhibits) != self.objects:
            raise ValueError(f"this prompt shows {self.objects} objects, not {len(exhibits)}")
        content: Any = _joined(self._parts(exhibits))
        if all(part["type"] == "text" for part in content):
            # Chat templates of text models often take a plain string only.
            content = "".join(part["text"] for part in content)
        system = "".join(map(self._said, pieces(self.template.system)))
        return [*([{"role": "system", "content": system}] if system else []), {"role": "user", "content": content}]

    def _parts(self, exhibits: Sequence[Exhibit]) -> Iterator[dict[str, Any]]:
        fence = fence_of(*exhibits)
        shown = dict(zip(_NAMES[self.objects], exhibits, strict=True))
        for piece in pieces(self.template.user):
            if not isinstance(piece, Place) or piece.name not in (*shown, "context"):
                yield _text(self._said(piece))
            elif piece.name == "context":
                yield _text(self._context(exhibits, fence))
            elif piece.of:
                yield _text(quotation(_value(shown[piece.name], piece.of), fence))
            else:
                yield from _exhibited(shown[piece.name], fence)

    def _said(self, piece: str | Place) -> str:
        """Return what stands where no object does."""
        if isinstance(piece, str):
            return piece
        if piece == Place("question"):
            return self.question
        if self.scale and piece.name in ("lowest", "highest") and not piece.of:
            return str(self.scale[piece.name == "highest"])
        raise ValueError(f"nothing is known for {piece}")

    def _context(self, exhibits: Sequence[Exhibit], fence: str) -> str:
        """Return all columns: what the objects have in common, and then what each has of its own."""
        found = shared_context(*(exhibit.context for exhibit in exhibits))
        lines = list(_labelled("", found.shared, fence))
        for called, own in zip(_CALLED[self.objects], found.own, strict=True):
            lines += _labelled(f"{called}, " if called else "", own, fence)
        return "\n".join(lines)


AnyPrompt = Prompt | OwnPrompt


def stored_prompt(stored: Mapping[str, Any]) -> AnyPrompt:
    """Return the prompt that a campaign has kept.

    Raises:
        ValueError: a field is missing or is not what it should be.
    """
    return OwnPrompt.of(stored) if "template" in stored else Prompt.of(stored)


def prompt_version(prompt: AnyPrompt) -> str:
    """Return a short hash of the words in which a judge is asked: of the template, or of this program's own words."""
    return prompt.template.version if isinstance(prompt, OwnPrompt) else words_version(prompt.stored())


def named_in(prompt: AnyPrompt) -> tuple[str, ...]:
    """Return what a prompt names of single objects: labels of columns and names of measures; none in our own words."""
    return prompt.measures if isinstance(prompt, OwnPrompt) else ()


def _value(exhibit: Exhibit, of: str) -> str:
    for line in (*exhibit.context, *exhibit.measures):
        if line.label == of:
            return line.text
    if exhibit.context or exhibit.measures:
        raise ValueError(f"nothing is known of “{of}” for an object")
    # An object that stands in no list, such as one of the researcher's own pairs.
    return ""


def _exhibited(exhibit: Exhibit, fence: str) -> Iterator[dict[str, Any]]:
    if exhibit.text:
        yield _text(quotation(exhibit.text, fence))
    if exhibit.picture:
        yield picture_part(exhibit.picture)


def _labelled(of_what: str, lines: Context, fence: str) -> Iterator[str]:
    for line in lines:
        yield f"{of_what}{line.label}:\n{quotation(line.text, fence)}"


def _joined(parts: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return parts with neighbouring texts as one."""
    joined: list[dict[str, Any]] = []
    for part in parts:
        if joined and part["type"] == joined[-1]["type"] == "text":
            joined[-1] = _text(joined[-1]["text"] + part["text"])
        elif part["type"] != "text" or part["text"]:
            joined.append(part)
    return joined


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


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
    text = resources.files("sampler").joinpath("data", "prompts.toml").read_text(encoding="utf-8")
    found = tomllib.loads(text)
    common = found["common"]
    for name, each in found["presets"].items():
        rates = each.get("rates", False)
        reply = common["one_number" if rates else "one_letter"]
        template = PromptTemplate(
            system=f"{each['system']} {reply}",
            user=each.get("user", common["rated" if rates else "pair"]),
        )
        yield name, Preset(each["title"], tuple(each["kinds"]), rates, each.get("question", ""), template)


PRESETS: Final = dict(_read())
"""By the name under which a form has them. A campaign keeps the words, never the name."""


def presets_for(kind: str, *, rates: bool) -> dict[str, Preset]:
    """Return the presets for a kind of object, by name."""
    return {name: each for name, each in PRESETS.items() if kind in each.kinds and each.rates == rates}


_TEMPLATE: Final = PromptTemplate(user="{{question}}\n\n{{object}}")


def detection_prompt(question: str) -> OwnPrompt:
    """Return what a detector is shown, without the object.

    Args:
        question: whole, as it is to stand there: "Is a red mushroom in the image? Answer yes or no."
    """
    return OwnPrompt(_TEMPLATE, question, objects=1)
