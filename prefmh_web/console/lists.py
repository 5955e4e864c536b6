"""The list of a setup's form: pasted, or in files; made the one file that everything else reads, and looked at.

Nothing of a list that is refused stays. The first objects are read at once, so that the answer to an upload shows what
was taken for what, what was refused, and two objects as voters see them; the whole list is read once it is saved.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from io import BytesIO
from pathlib import PurePath
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.files.base import File
from django.http import QueryDict

import sampler
from prefmh_web.campaigns.models import Side
from prefmh_web.campaigns.objects import options_of
from prefmh_web.console.forms.fields import KeptFiles, kept_note
from prefmh_web.console.preview import PreviewObject
from prefmh_web.objects import OBJECT_KINDS, ObjectKind

if TYPE_CHECKING:
    from prefmh_web.console.forms.setup_form import SetupForm

_OF_LIST = "space.catalog."
OBJECTS, FILE = f"{_OF_LIST}objects", f"{_OF_LIST}file"
PASTE, SEVERAL_LINES = f"{_OF_LIST}paste", f"{_OF_LIST}several_lines"
# What somebody who has seen the answer says of the list.
HEADER, COLUMN, SHEET = f"{_OF_LIST}header", f"{_OF_LIST}column", f"{_OF_LIST}sheet"
# The name of the file that they have seen: what they say is not for another one.
SEEN = f"{_OF_LIST}seen"
MAX_FILES = settings.DATA_UPLOAD_MAX_NUMBER_FILES
_PASTED = "pasted.txt"
# Pictures and recordings take long to read: so many, and so large together, are looked at before the list is saved.
_LOOKED_AT, _LOOKED_AT_BYTES = 12, 16 * 2**20
_MAX_REFUSALS = 20
_ZIP = b"PK"


@dataclass(frozen=True)
class ParsedUpload:
    """A list that came with a form, whose file stands among those of the form unless it is refused.

    Args:
        field: whose list it is: “paste” or “file”.
        name: of the file, or of the first one.
        problem: why it is refused; empty where it is not.
        rows: how many objects or files it has.
        listing: what a table or a text was taken for; None for files.
        reading: of its first objects; None where they are not looked at.
        is_whole: these are all.
    """

    field: str
    name: str
    problem: str = ""
    rows: int = 0
    listing: sampler.Listing | None = None
    reading: sampler.Reading | None = None
    is_whole: bool = False


def take(sent: QueryDict, kept: KeptFiles) -> ParsedUpload | None:
    """Put the one file that everything else reads in the place of a list; None where no list was sent.

    A list that is refused is taken out of the files. One that was pasted is taken out of the fields once it is a file.
    """
    pasted = sent.get(PASTE, "")
    if pasted.strip():
        kept.forget(FILE)
    found = kept.files.pop(FILE, [])
    # Another kind of objects is no choice of the form's, which says so.
    is_list = sent.get("space.kind") == "catalog" and _kind_in(sent) in OBJECT_KINDS
    if not is_list or not (found or pasted.strip()):
        return None
    field = "file" if found else "paste"
    sources = found or [File(BytesIO(pasted.encode()), _PASTED)]
    # It is closed with its request.
    made = File(TemporaryFile(dir=settings.FILE_UPLOAD_TEMP_DIR))  # noqa: SIM115 - the form closes it
    with ExitStack() as ends:
        for source in sources:
            ends.callback(source.close)
        try:
            if found and pasted.strip():
                raise sampler.CatalogError("A list was pasted, and a file was chosen. Empty one of them.")
            taken = _made_of(sources, sent, made, field)
        except sampler.CatalogError as error:
            made.close()
            listing = error.listing if isinstance(error, sampler.ListError) else None
            return ParsedUpload(field, sources[0].name or "", str(error), listing=listing)
        made.seek(0)
        if taken.listing is None:
            kept.files[FILE] = made
        else:
            kept.put(FILE, made, sources[0])
            # Both are closed with their request.
            ends.pop_all()
    sent[PASTE] = ""
    return taken


def _kind_in(sent: QueryDict) -> str:
    return sent.get(OBJECTS, "texts")


def _chosen(sent: QueryDict, name: str) -> sampler.ReadOptions:
    if sent.get(SEEN) != name:
        return sampler.AS_SEEN
    header = {"yes": True, "no": False}.get(sent.get(HEADER, ""))
    return sampler.ReadOptions(header, sent.get(COLUMN, ""), sent.get(SHEET, ""))


def _made_of(sources: Sequence[File[Any]], sent: QueryDict, made: File[Any], field: str) -> ParsedUpload:
    name = PurePath(sources[0].name or "list")
    kind = _kind_in(sent)
    if kind not in sampler.OBJECT_COLUMNS:
        return _archive_of(sources, kind, made, field)
    if len(sources) > 1:
        raise sampler.CatalogError("Choose one file. Only pictures and recordings can be several.")
    has_blocks = kind != "molecules" and SEVERAL_LINES in sent
    chosen = _chosen(sent, sources[0].name or "")
    listing = sampler.write_list(_raw(sources[0]), name.name, kind, _raw(made), has_blocks=has_blocks, chosen=chosen)
    made.name = f"{name.stem}.csv"
    is_whole = listing.begin == made.size
    try:
        reading = _read(kind, BytesIO(made.read(listing.begin)))
    except sampler.CatalogError:
        if is_whole:
            raise
        # Of a long list the beginning may be too little.
        reading = None
    return ParsedUpload(field, sources[0].name or "", "", listing.rows, listing, reading, is_whole)


def _archive_of(sources: Sequence[File[Any]], kind: str, made: File[Any], field: str) -> ParsedUpload:
    if field == "paste":
        raise sampler.CatalogError("Pictures and recordings cannot be pasted. Choose their files.")
    first = sources[0]
    if len(sources) == 1 and first.read(len(_ZIP)) == _ZIP:
        for piece in first.chunks():
            made.write(piece)
        made.name = first.name
        return ParsedUpload(field, first.name or "")
    rows = sampler.write_archive([(PurePath(each.name or "").name, _raw(each)) for each in sources], _raw(made))
    made.name = f"{PurePath(first.name or 'files').stem}-and-others.zip"
    if rows > _LOOKED_AT or made.size > _LOOKED_AT_BYTES:
        return ParsedUpload(field, made.name, "", rows)
    return ParsedUpload(field, made.name, "", rows, None, _read(kind, made), is_whole=True)


def _raw(file: File[Any]) -> Any:
    """Return what Django's file is made around."""
    return file.file


def _read(kind: str, file: Any) -> sampler.Reading:
    return sampler.OBJECT_KINDS[kind].read(file, lambda done, total: None, BytesIO())


def context_of(form: SetupForm) -> dict[str, Any]:
    """Return what the answer to a list shows; the form is checked."""
    taken = form.taken
    config = form.value
    kind = OBJECT_KINDS[config["space"].get("objects", "texts")] if config["space"]["kind"] == "catalog" else None
    found: dict[str, Any] = {"taken": taken, "kind": kind, "kept": kept_note(form.fields[FILE].widget.kept, FILE)}
    found["header"], found["fields"] = form.data.get(HEADER, ""), (SEEN, HEADER, COLUMN, SHEET)
    if taken is None or taken.reading is None or kind is None:
        return found
    reading = taken.reading
    found["refusals"] = reading.refusals[:_MAX_REFUSALS]
    found["more"] = max(0, len(reading.refusals) + reading.more_refusals - _MAX_REFUSALS)
    if kind.medium != "sound":
        found |= {
            "shown": _pair(config, kind, reading),
            "config": config | {"language": config.get("language") or "en"},
        }
    return found


def _pair(config: dict[str, Any], kind: ObjectKind, reading: sampler.Reading) -> dict[str, Any]:
    """Return the first two objects of a list as voters will see them."""
    first, second = reading.items[:2]
    sides = {Side.FIRST: (first, second), Side.SECOND: (second, first)}
    return {
        "question": next((str(judge["question"]) for judge in config.get("judges", ()) if judge.get("question")), ""),
        "options": options_of(kind, first.content, second.content, lambda side: _address(kind.name, *sides[side])),
        "is_stacked": config.get("layout") == "stacked",
        "note": "The first two objects of your list. Which ones are compared, the campaign draws.",
    }


def _address(kind: str, item: sampler.Item, other: sampler.Item) -> str:
    if item.picture:
        return f"data:{item.media_type};base64,{b64encode(item.picture).decode()}"
    return PreviewObject(kind, item.content, "", other.content).address if kind == "molecules" else ""
