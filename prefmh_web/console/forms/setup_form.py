"""The form of a campaign's setup: what is compared, what is asked, who answers, and how long.

It is made of `CampaignConfig`. Three things it shows otherwise than they stand there, where that says the same: one
question in both orders for two judges, the names of a panel for judges of one person each, and the usual moves of a
space, in walks whose length a warm-up finds or that is fixed, for a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Literal

from django import forms
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.http import QueryDict
from django.urls import reverse
from django.utils.html import format_html
from pydantic import ConfigDict, Field, TypeAdapter
from pydantic import ValidationError as Refused
from pydantic.fields import FieldInfo

import sampler
from prefmh_web.campaigns.models import Campaign, Catalog
from prefmh_web.config import CampaignConfig
from prefmh_web.config_files import MAX_FILE_BYTES
from prefmh_web.console.forms.fields import MISSING, Choices, KeptFileInput, KeptFiles, ListInput, Variants
from prefmh_web.console.forms.schema_form import Fold, Group, Part, Rows, SchemaForm
from prefmh_web.console.lists import FILE, MAX_FILES, OBJECTS, PASTE, SEVERAL_LINES, ParsedUpload
from prefmh_web.console.preview import OF_NOISE, PreviewObject, sample
from prefmh_web.endpoints.local import image_model_names, latent_dimension, model_names
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.servers import Dialect
from prefmh_web.objects import OBJECT_KINDS
from prefmh_web.scorers import offered
from sampler.declared import JUDGED_BY, Declared, ui, ui_of
from sampler.judges import PRESETS

_FRESH_IN_LISTS, _FRESH_TEXTS = 0.3, 0.1
_KERNEL: TypeAdapter[sampler.KernelConfig] = TypeAdapter(sampler.KernelConfig)
_SPACE: TypeAdapter[Any] = TypeAdapter(sampler.SpaceConfig)
_MIDDLE = sampler.DEFAULT_GRID[len(sampler.DEFAULT_GRID) // 2]


class UsualMoves(Declared):
    """The usual move of the space, and how many of them lie between two pairs."""

    model_config = ConfigDict(title="As usual for these objects")

    kind: Literal["usual"] = "usual"
    distance: Literal["warm-up", "fixed"] = Field(
        default="warm-up",
        title="How far apart should two compared objects be?",
        description=f"In the first steps, a warm-up tries pairs that are 1 to {sampler.DEFAULT_GRID[-1]} moves apart; "
        "then the campaign keeps the distance at which votes move the chains furthest, which saves most of the votes. "
        "The result stays exact. At its end, chains wait for each other once.",
        json_schema_extra=ui(labels={"warm-up": "A warm-up finds it", "fixed": "A fixed number of moves"}),
    )
    length: int = Field(
        default=_MIDDLE,
        ge=1,
        le=sampler.LONGEST_WALK,
        title="Moves between two pairs",
        description="With a warm-up, this number is used only if the campaign is too short for one, if people of a "
        "panel or a rule without votes decide, or if you end it early. Images are always one move apart.",
    )


def usual_kernel(moves: UsualMoves, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the kernel of the usual moves in a configuration.

    Args:
        config: all of it but the kernel, as plain data; what is wrong in it is told elsewhere.
    """
    space, rule = config["space"], config.get("rule", {}).get("kind", "n-vote")
    try:
        _SPACE.validate_python(space)
    except Refused:
        return {"kind": "independent"}
    move = {"kind": "independent"} if rule == "base" else _move_in(space)
    if move["kind"] == "independent" or "crank-nicolson" in str(move):
        return move
    warm_up = _warm_up(space, config) if moves.distance == "warm-up" and rule == "n-vote" else None
    if warm_up is None and moves.length == 1:
        return move
    length = [{"weight": 1.0, "length": moves.length}]
    return {"kind": "walk", "kernel": move, "length": length, "warm_up": warm_up}


def usual_of(config: sampler.ChainConfig) -> UsualMoves | None:
    """Return the usual moves that come to the kernel of a configuration; None where none do."""
    described, length = config.model_dump(mode="json"), 1
    if isinstance(config.kernel, sampler.WalkConfig):
        length = max(each.length for each in config.kernel.length)
    fixed = UsualMoves(distance="fixed", length=length)
    candidates = (UsualMoves(), UsualMoves(length=length), fixed)
    return next(
        (each for each in candidates if _KERNEL.validate_python(usual_kernel(each, described)) == config.kernel), None
    )


def _move_in(space: Mapping[str, Any]) -> dict[str, Any]:
    match space["kind"]:
        case "molecules":
            return {"kind": "fragments"}
        case "images" | "model-images":
            return sampler.PAPER_MIXTURE
        case "texts" | "model-texts":
            return _mixed(_FRESH_TEXTS, "suffix")
    return _mixed(_FRESH_IN_LISTS, "neighbours") if space.get("neighbours") else {"kind": "independent"}


def _mixed(fresh: float, other: str) -> dict[str, Any]:
    parts = [(fresh, "independent"), (1 - fresh, other)]
    return {"kind": "mixture", "parts": [{"weight": weight, "kernel": {"kind": kind}} for weight, kind in parts]}


def _warm_up(space: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a warm-up; None where nothing is measured of the objects, a panel judges, or there are too few steps."""
    kind = sampler.OBJECT_KINDS[sampler.objects_of(space)]
    names = list(kind.main_properties) if sampler.property_names(space) else []
    has_panel = any(judge.get("source", {}).get("kind") == "panelist" for judge in config.get("judges", ()))
    chains, steps = config.get("chains"), config.get("steps")
    if not names or has_panel or not (isinstance(chains, int) and isinstance(steps, int)) or min(chains, steps) < 1:
        return None
    fitting = sampler.warm_up_steps(chains, steps)
    burn_in = min(sampler.DEFAULT_WARM_UP_BURN_IN, steps // 10)
    return {"steps": fitting, "burn_in": burn_in, "properties": names} if fitting else None


MAX_LIST_BYTES = 2**20
SECTIONS = {
    "1. What is compared": ("name", "space", "kernel"),
    "2. What is asked": ("judges", "instructions", "rule"),
    "3. Who answers": ("panel", "language", "layout", "answering"),
    "4. How long, and what it costs": ("chains", "steps", "max_chains", "burn_in", "seed", "caps", "scorers"),
}
_REGISTER = 'To let a model answer, register it under <a href="{}">Models</a> first.'
_HALVES = ("proposal-first", "proposal-second")
_BOTH = "Asked once in each order: a constant bias to one side cancels, and the question counts twice"
_ORDER_HELP = (
    "The chains then sample p0(x)·exp(2s(x)), not p0(x)·exp(s(x)): this question weighs twice as much as one that is "
    "asked in another way. Each order has as many votes as stand here. That holds, and the position bias cancels, only "
    "if the same people, or the same model, answer both halves."
)


class _Panel(Declared):
    """The names of a panel, which the configuration has as judges of one person each."""

    panel: tuple[str, ...] = Field(
        default=(),
        title="People of the panel, one name per line",
        description="Leave it empty for a crowd: whoever opens the link. Each person of a panel has a say of their "
        "own: one answer on each pair. A step is accepted only if everyone says yes to every question: at best 25 % of "
        "the steps for two answers, 12.5 % for three, 3.1 % for five, 0.4 % for eight, if nobody cares. The chains "
        "sample p0·exp(the sum of all scores). After the start nobody is replaced. Voters and the record see a number "
        "for each; the names are for you and the admins of this site.",
        json_schema_extra=ui(
            fold="A panel of people whom you name, instead of a crowd", fixed=JUDGED_BY, when={"rule": ("n-vote",)}
        ),
    )


class _List(Declared):
    """A list of the researcher's own, pasted or in a file."""

    paste: str = Field(
        default="",
        title="Your list",
        description="One object in each line: a text, or the SMILES of a molecule. Cells copied from a spreadsheet "
        "work too, with a first row that names the columns. Pictures and recordings come as files.",
        json_schema_extra=ui(widget="list"),
    )
    several_lines: bool = Field(default=False, title="Texts have several lines: blank lines stand between them")
    file: str = Field(
        default="",
        title="Or a file",
        description="Drop it here. Words: .txt, .csv or .xlsx; molecules: also .smi or .sdf; pictures and recordings: "
        f"up to {MAX_FILES} files at once, or one ZIP. A column “weight” (for pictures and recordings: a weights.csv "
        "among them with the columns file and weight) says how likely each object is before anybody votes (p0). "
        f"At most {sampler.MAX_CATALOG_ITEMS:,} objects, with {sampler.MAX_CATALOG_CHARACTERS // 10**6} million "
        f"characters in all, in a file of at most {MAX_FILE_BYTES // 2**20} MiB.",
    )


SAMPLES: dict[str, tuple[PreviewObject, ...]] = {
    "catalog": tuple(sample(each) for each in OBJECT_KINDS),
    "texts": (sample("texts"),),
    "model-texts": (sample("texts", 1),),
    "molecules": (sample("molecules"),),
    "images": (sample("images"),),
    "model-images": (OF_NOISE,),
}
_WITH_TOKEN_IDS = [dialect for dialect in Dialect if dialect.server.writing is not None]
Plain = dict[str, Any]


class ListFile(forms.FileField):
    """A short list in a file, read; without one, what there was."""

    def __init__(self, read: Callable[[str], Any], **kwargs: Any):
        super().__init__(required=False, widget=KeptFileInput(), **kwargs)
        self._read = read

    def clean(self, data: Any, initial: Any = None) -> Any:
        file = super().clean(data, None)
        if not file:
            return initial
        if file.size > MAX_LIST_BYTES:
            raise ValidationError(f"The file is larger than {MAX_LIST_BYTES // 2**20} MiB. It should be a short list.")
        try:
            return self._read(file.read().decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise ValidationError("The file is not UTF-8 text.") from error
        except ValueError as error:
            raise ValidationError(f"{error}.") from error


def _fragments(text: str) -> list[str]:
    return [fragment for fragment, _ in sampler.parse_fragments(text)]


def _sizes(text: str) -> list[float | None]:
    weights = sampler.parse_size_log_weights(text)
    return [weight if weight > float("-inf") else None for weight in weights]


_LISTS: dict[str, Callable[[str], Any]] = {"space.vocabulary": _fragments, "space.size_log_weights": _sizes}


class SetupForm(SchemaForm):
    """The setup.

    Args:
        campaign: nothing for a new one.
        owner: whose it will be.
    """

    elsewhere = ("study.",)
    kept: KeptFiles
    taken: ParsedUpload | None = None
    """The list that was sent with it."""

    def __init__(self, campaign: Campaign | None, owner: User, sent: QueryDict | None = None, files: Any = None):
        owner = campaign.owner if campaign else owner
        self._endpoints = dict(Endpoint.objects.filter(owner=owner).values_list("name", "name"))
        was, self.is_folded = _folded(campaign.typed_config) if campaign else (None, True)
        super().__init__(CampaignConfig, campaign, owner, was, sent, files)

    @property
    def sections(self) -> list[tuple[str, list[Part | Fold]]]:
        """The parts of the page, each with its title."""
        return [(title, self.root.arranged(names)) for title, names in SECTIONS.items()]

    @property
    def upload(self) -> Any:
        """The file that was sent with a list of the researcher's own."""
        return self.cleaned_data.get(FILE) if self.data.get("space.kind") == "catalog" else None

    @property
    def presets(self) -> Mapping[str, Any]:
        """Words to begin a prompt with."""
        return PRESETS

    def samples_of(self, path: str, kind: str) -> Sequence[PreviewObject]:
        if path != "space":
            return (sample(kind),)
        return SAMPLES[kind]

    def judge_at(self, name: str) -> int | None:
        """Return the index of the first judge that a question stands for, once it is checked.

        Args:
            name: of a part of the question.
        """
        row = ".".join(name.split(".")[:2])
        return next((int(path.partition(".")[2]) for path, each in self.moved.items() if each == row), None)

    def asked_at(self, name: str) -> Plain | None:
        """Return the space, the rule and one question as they stand in the fields, whatever else is wrong.

        Args:
            name: of a part of the question.
        """
        self.full_clean()
        rows = self.root.inner["judges"]
        assert isinstance(rows, Rows)
        meant = [row.name for row in rows.rows if rows.is_meant(row)]
        if (start := ".".join(name.split(".")[:2])) not in meant:
            return None
        value = self.value
        judge = _judges_of(value["judges"][meant.index(start)], [])[0]
        return {"space": value["space"], "rule": value["rule"], "judges": [judge]}

    def choices_of(self, name: str) -> Choices:
        match name:
            case "languages":
                return list(settings.LANGUAGES)
            case "scenarios":
                return [(number, scenario.prompt) for number, scenario in enumerate(sampler.STORY_SCENARIOS)]
            case "endpoints":
                return [*self._endpoints.items()]
            case "writers":
                able = Endpoint.objects.filter(~Q(can_token_ids=False), owner=self.owner, dialect__in=_WITH_TOKEN_IDS)
                local = [(each, f"{each} (runs on this site)") for each in model_names()]
                return [*local, *able.values_list("name", "name")]
            case "image models":
                return [(each, each) for each in image_model_names()]
            case "scorer names":
                return [("", "none"), *_scorers()]
        return _scorers()

    def fields_of(self, group: Group) -> Iterator[tuple[str, FieldInfo]]:
        yield from super().fields_of(group)
        if group.path == "":
            yield from _Panel.model_fields.items()
        elif group.name == "space.catalog":
            yield from _List.model_fields.items()

    def by_hand(self, path: str, info: FieldInfo, was: Any) -> forms.Field | None:
        label, help_text = info.title or "", info.description or ""
        if path == "space.file":
            kept = self.before.file.name if self.before and self.before.file else ""
            return forms.FileField(
                label=label,
                required=False,
                widget=ListInput([OBJECTS, PASTE, SEVERAL_LINES]),
                help_text=f"Leave empty to keep {kept}. {help_text}" if kept else help_text,
            )
        if path in _LISTS:
            own = was not in (MISSING, None, "default")
            kept = "Leave empty to keep those of the draft." if own else help_text
            return ListFile(_LISTS[path], label=label, help_text=kept)
        return None

    def declared_at(self, path: str, info: FieldInfo) -> FieldInfo | None:
        if path == "kernel":
            fold = "How far apart the two objects are, and how the new one is proposed"
            return _other(
                info, annotation=UsualMoves | sampler.KernelConfig, default=UsualMoves(), shown={"fold": fold}
            )
        if path == "judges":
            link = format_html(_REGISTER, reverse("console:endpoints"))
            return _other(info, description="" if self._endpoints else link, shown={"start": True})
        if path == "judges.*.order" and self.is_folded:
            labels = {name: sampler.ORDER_LABELS[name] for name in ("random", "balanced")} | {"both": _BOTH}
            order = Literal["random", "balanced", "both"]
            return _other(info, annotation=order, description=_ORDER_HELP, shown={"labels": labels})
        return info

    def variants_at(self, path: str, variants: Variants, was: Any) -> Variants:
        hidden = set()
        if path == "space":
            hidden = {"model-texts"} if not self.choices_of("writers") else set()
            hidden |= {"model-images"} if not image_model_names() else set()
        elif path == "judges.*.source":
            hidden = {"panelist"} if self.is_folded else set()
            hidden |= {"model"} if not self._endpoints else set()
        kept = was.get("kind") if isinstance(was, Mapping) else None
        return {kind: model for kind, model in variants.items() if kind not in hidden or kind == kept}

    def problems_in(self, described: Plain) -> Iterator[sampler.ConfigProblem]:
        if self.taken and self.taken.problem:
            yield sampler.ConfigProblem(f"space.{self.taken.field}", self.taken.problem)
            return
        for problem in super().problems_in(described):
            missing = sampler.ConfigProblem("space.file", "Paste your objects, or choose the file with them.")
            yield missing if problem.path == "file" else problem

    def described(self, value: Plain) -> Plain:
        described = {name: each for name, each in value.items() if name != "panel"}
        rows = described["judges"] if self.data.get("rule.kind", "n-vote") in ("n-vote", "pointwise") else []
        typed = self.root.inner["panel"].value()
        panel = [] if typed is MISSING else typed
        judges = [(row, judge) for row, one in enumerate(rows) for judge in _judges_of(one, panel)]
        described["judges"] = [judge for _, judge in judges]
        moved = {number: self.moved.get(f"judges.{row}", f"judges.{row}") for number, (row, _) in enumerate(judges)}
        self.moved = {f"judges.{number}": path for number, path in moved.items()}
        self._complete(described["space"])
        if described["space"]["kind"] != "catalog":
            described.pop("file", None)
        elif self.upload:
            described["file"] = {"name": self.upload.name}
        if described["kernel"]["kind"] == "usual":
            try:
                moves = UsualMoves.model_validate(described["kernel"])
            except Refused:
                # Its own field says what is wrong.
                moves = UsualMoves()
            described["kernel"] = usual_kernel(moves, described)
        return described

    def _complete(self, space: Plain) -> None:
        if space["kind"] == "model-images" and space.get("model"):
            try:
                dimension = latent_dimension(space["model"])
            except ValueError as error:
                self.add_error("space.model-images.model", ValidationError(f"{error}."))
                return
            if dimension is not None:
                space["dimension"] = dimension

    def further(self, config: CampaignConfig) -> Iterator[tuple[str, str]]:
        if self.upload and self.upload.size > MAX_FILE_BYTES:
            yield "space.file", f"The file is larger than {MAX_FILE_BYTES // 2**20} MiB. Split it."
        elif isinstance(config.space, sampler.CatalogConfig):
            yield from self._lacking(config.space)

    def _lacking(self, space: sampler.CatalogConfig) -> Iterator[tuple[str, str]]:
        """Yield the columns that are to be shown and that the list does not have."""
        columns = self._columns_of_upload(space.objects) if self.upload else self._columns_read()
        for number, shown in enumerate(space.context):
            if columns is not None and shown.column not in columns:
                found = ", ".join(f"“{name}”" for name in columns) or "no further columns"
                yield f"space.context.{number}.column", f"The file has no “{shown.column}”. It has {found}."

    def _columns_read(self) -> Any:
        """Return the further columns of the list that a draft has; None where none has been read."""
        if self.campaign is None or self.campaign.config.generates:
            return None
        read = Catalog.objects.filter(campaign_id=self.campaign.pk, status=Catalog.Status.READY).first()
        return read and read.columns

    def _columns_of_upload(self, objects: str) -> Any:
        """Return the further columns of a file; None where only its reading tells them, or what is wrong with it."""
        try:
            return sampler.extra_columns_of(self.upload, sampler.OBJECT_COLUMNS[objects])
        except (KeyError, sampler.CatalogError):
            return None
        finally:
            self.upload.seek(0)


def _scorers() -> Choices:
    """Return every scorer of this site with the objects that it is for."""
    kinds: dict[str, list[str]] = {}
    for kind in OBJECT_KINDS.values():
        for name in offered(kind.name):
            kinds.setdefault(name, []).append(kind.nouns)
    every = len(OBJECT_KINDS)
    return [
        (name, f"{name} ({'any object' if len(nouns) == every else ', '.join(nouns)})") for name, nouns in kinds.items()
    ]


def _other(info: FieldInfo, *, shown: Mapping[str, Any], **changes: Any) -> FieldInfo:
    """Return a declaration with changes."""
    other = copy(info)
    for name, value in changes.items():
        setattr(other, name, value)
    other.json_schema_extra = replace(ui_of(info), **shown)
    return other


def _judges_of(row: Plain, panel: list[str]) -> list[Plain]:
    """Return the judges that a question stands for: one for each order, if both are asked, and for each panelist."""
    orders = _HALVES if row.get("order") == "both" else (row.get("order", "random"),)
    is_of_panel = panel and row.get("source", {}).get("kind", "people") == "people"
    sources = [{"kind": "panelist", "name": name} for name in panel] if is_of_panel else [row.get("source")]
    return [
        {name: each for name, each in (row | {"order": order, "source": source}).items() if each is not None}
        for source in sources
        for order in orders
    ]


def _folded(config: CampaignConfig) -> tuple[Plain, bool]:
    """Return a configuration as the form shows it, and whether its judges could be folded to questions."""
    described = config.model_dump(mode="json")
    if isinstance(length := described["kernel"].get("length"), int):
        # Of one length a file has a number alone.
        described["kernel"]["length"] = [{"weight": 1.0, "length": length}]
    if (moves := usual_of(config)) is not None:
        described["kernel"] = moves.model_dump(mode="json")
    judges, panel = described["judges"], list(config.panelists)
    rows: list[Plain] = []
    for judge in judges:
        row = dict(judge)
        if row["source"]["kind"] == "panelist":
            row["source"] = {"kind": "people"}
        if row["order"] in _HALVES:
            row["order"] = "both"
        if not rows or rows[-1] != row or (row["order"] != "both" and not panel):
            rows.append(row)
    is_folded = [each for row in rows for each in _judges_of(row, panel)] == judges
    return described | ({"judges": rows, "panel": panel} if is_folded else {"panel": []}), is_folded
