"""Lists as people have them: pasted or in a file, `.txt`, `.csv`, `.smi`, `.sdf`, `.xlsx`; several pictures at once.

Each becomes the one form that catalogs are read from, a CSV or a ZIP, so the same list has the same objects in the same
order, the same weights and the same digest however it came. The CSV has no mark at its beginning, commas between cells
and a line feed behind each row: first the column of the objects, then `weight`, then the others in their order. SMILES
that RDKit can read are canonical. Rows keep their distance, so that a number still names one.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, BinaryIO, Final

from openpyxl import load_workbook
from openpyxl.cell.cell import ERROR_CODES
from openpyxl.utils.escape import unescape
from openpyxl.utils.exceptions import InvalidFileException
from rdkit import Chem, rdBase

from sampler.archives import BROKEN_ARCHIVE
from sampler.objects import OBJECT_KINDS
from sampler.objects.items import MAX_CATALOG_ITEMS, ListedKind, archive_of
from sampler.objects.molecules import MAX_SMILES_CHARACTERS, canonical_smiles
from sampler.objects.tables import (
    MAX_ROW_CHARACTERS,
    MAX_ROWS,
    WEIGHT,
    ZIP_BEGIN,
    CatalogError,
    extra_columns_of,
    lines_of,
    quoted,
    raw_rows,
    separator_of,
    with_decimal_point,
)

OBJECT_COLUMNS: Final = {kind.name: kind.column for kind in OBJECT_KINDS.values() if isinstance(kind, ListedKind)}
"""Which column of the CSV holds the objects, by their kind. Kinds that are not here come in a ZIP."""
# A first row is a header if one of its cells is one of these, in any case.
_HEADER: Final = {"object", "name", "smiles", "text", WEIGHT}
# In the place of the kind's own column, the first of these that there is.
_STAND_INS: Final = ("object", "smiles", "text", "name")
# Of a workbook, all that is packed in it, and all cells of its first sheet.
MAX_WORKBOOK_BYTES: Final = 64 * 2**20
MAX_CELLS: Final = 2_000_000
# A look at the first rows takes no more than this, or little.
_LOOK_BYTES = 2**20
_RECORD_END = "$$$$"
_NAMED_ROWS = 5
# The first moment that a ZIP can name.
_DATE = (1980, 1, 1, 0, 0, 0)
_NO_WORKBOOK = "The file is no Excel workbook that can be read. Save it again as “.xlsx”, or as “CSV UTF-8”."
# What openpyxl raises for a workbook that is broken: besides its own, whatever its parts stumble over.
_BROKEN = (
    *BROKEN_ARCHIVE,
    InvalidFileException,
    SyntaxError,
    ArithmeticError,
    LookupError,
    AttributeError,
    TypeError,
)
_OF_MOLECULES = (".sdf", ".mol", ".smi")
Rows = Iterator[tuple[int, list[str]]]


@dataclass(frozen=True)
class ReadOptions:
    """What a list is to be taken for, as somebody who has seen it says. What it does not have is not looked at.

    Args:
        has_header: whether its first row names the columns; None to see by its words.
        column: that of the objects, by its name in the header, in any case; empty to see by the names.
        sheet: of a workbook, by its name; empty for the first one.
    """

    has_header: bool | None = None
    column: str = ""
    sheet: str = ""


@dataclass(frozen=True)
class Listing:
    """What a list was taken for.

    Args:
        rows: that hold something, without the header.
        header: the cells of the first row; empty where that is an object.
        column: the name that the column of the objects has in the header; empty without one.
        sheets: the names of a workbook's sheets; empty for what is no workbook.
        sheet: which of them was read.
        begin: how many bytes the first rows of the CSV take, for a look at them; the whole of a short one.
    """

    rows: int
    header: tuple[str, ...]
    column: str
    sheets: tuple[str, ...]
    sheet: str
    begin: int


class ListError(CatalogError):
    """A list gives no catalog.

    Args:
        problem: what to change.
        listing: what it was taken for until then.
    """

    def __init__(self, problem: str, listing: Listing) -> None:
        super().__init__(problem)
        self.listing = listing


AS_SEEN: Final = ReadOptions()
"""Nobody has chosen anything."""


class _Guessed(str):
    """A cell that Excel holds as a number, a date or an error."""


def write_list(
    file: BinaryIO,
    name: str,
    kind: str,
    made: BinaryIO,
    *,
    has_blocks: bool = False,
    chosen: ReadOptions = AS_SEEN,
    look_at: int = 300,
) -> Listing:
    """Write a list as the CSV that catalogs are read from.

    Args:
        file: seekable.
        name: of the file; what it ends in says what it is, and anything unknown is a text.
        kind: of the objects, one of `OBJECT_COLUMNS`.
        made: where the CSV goes, empty; it can be read, too.
        has_blocks: in a text, blank lines part the objects, which may have several lines.
        chosen: what it is to be taken for.
        look_at: how many rows `Listing.begin` covers.

    Raises:
        ListError: the file gives no list; the message names the row, and says what to change.
    """
    text = io.TextIOWrapper(made, encoding="utf-8", newline="", write_through=True)
    written = _Written(text, OBJECT_COLUMNS[kind], chosen, look_at)
    try:
        _fill(written, file, PurePath(name).suffix.lower(), kind, has_blocks=has_blocks)
        written.check(made)
    except CatalogError as error:
        raise ListError(str(error), written.taken_for()) from error
    finally:
        # Otherwise the wrapper closes the file with itself.
        text.detach()
    return written.taken_for()


def _fill(written: _Written, file: BinaryIO, ending: str, kind: str, *, has_blocks: bool) -> None:
    file.seek(0)
    is_packed = file.read(len(ZIP_BEGIN)) == ZIP_BEGIN
    if is_packed or ending == ".xlsx":
        _write_workbook(written, file)
    elif ending in _OF_MOLECULES and kind != "molecules":
        raise CatalogError(f"A file that ends in {ending} has molecules. Choose Molecules, or another file.")
    elif ending in (".sdf", ".mol"):
        written.table(_of_records(file), may_have_header=False)
    elif ending == ".csv" or (not has_blocks and _begins_a_table(file)):
        with raw_rows(file) as (delimiter, rows):
            written.table(rows, delimiter)
    else:
        written.table(_of_blocks(file) if has_blocks else _of_lines(file, kind))


class _Written:
    """The CSV while it is written."""

    def __init__(self, text: io.TextIOWrapper, column: str, chosen: ReadOptions, look_at: int) -> None:
        self._text, self._column, self._look_at, self.chosen = text, column, look_at, chosen
        self._csv = csv.writer(text, lineterminator="\n")
        self._last, self._count, self._begin = 1, 0, 0
        self._header: tuple[str, ...] = ()
        self._named = ""
        # Of a workbook.
        self.sheets: tuple[str, ...] = ()
        self.sheet = ""

    def _is_header(self, cells: Iterable[str]) -> bool:
        if self.chosen.has_header is not None:
            return self.chosen.has_header
        return not _HEADER.isdisjoint(cell.strip().lower() for cell in cells)

    def table(self, rows: Rows, delimiter: str = "", *, may_have_header: bool = True) -> None:
        """Write rows of cells: below one that names the columns, or an object each."""
        filled = (each for each in rows if any(cell.strip() for cell in each[1]))
        begin = list(itertools.islice(filled, 1))
        first = begin[0][1] if begin else []
        names = [cell.strip().lower() for cell in first]
        while names and not names[-1]:
            names.pop()
        if names and may_have_header and self._is_header(names):
            self._header = tuple(cell.strip() for cell in first[: len(names)])
            at = self._object_at(names)
            self._named = self._header[at]
            self._below(names, at, filled, delimiter)
        else:
            self._below(
                [self._column], 0, map(self._single, itertools.chain(begin, filled)), delimiter, of_our_own=True
            )

    def _below(self, names: Sequence[str], at: int, rows: Rows, delimiter: str, *, of_our_own: bool = False) -> None:
        """Write rows below a header: the object, its weight if there is one, and the other cells in their order.

        Args:
            at: which column has the objects.
            of_our_own: whether the header is no row of the list.
        """
        weight = [i for i, name in enumerate(names) if name == WEIGHT and i != at][:1]
        order = [at, *weight, *(i for i in range(len(names)) if i not in (at, *weight))]
        # Another column may have the name that the objects' column gets.
        others = [f"{names[i]} 2" if names[i] == self._column else names[i] for i in order[1:]]
        self._csv.writerow([self._column, *others])
        guessed: list[int] = []
        for number, cells in rows:
            padded = cells + [""] * (len(names) - len(cells))
            if isinstance(padded[at], _Guessed):
                guessed.append(number)
            padded[at] = self._as_kept(padded[at])
            for i in weight:
                padded[i] = _weight(padded[i], delimiter)
            # More cells than names are for the reader of the CSV to refuse; spreadsheets add blank ones.
            others = padded[len(names) :] if any(map(str.strip, padded[len(names) :])) else []
            self._write(number + of_our_own, [*(padded[i] for i in order), *others])
        if guessed:
            named = ", ".join(map(str, guessed[:_NAMED_ROWS])) + (" and more" if len(guessed) > _NAMED_ROWS else "")
            raise CatalogError(
                f"Excel has made a number, a date or an error of the object in row {named}. Set the cells to the "
                "format “Text”, type them again as they should be, and upload the file again."
            )

    def _object_at(self, names: Sequence[str]) -> int:
        if (chosen := self.chosen.column.strip().lower()) in names:
            return names.index(chosen)
        for name in (self._column, *_STAND_INS):
            # A molecule's name says nothing of it, unless it is all that there is.
            if name in names and (name != "name" or self._column == "text"):
                return names.index(name)
        others = [i for i, name in enumerate(names) if name != WEIGHT]
        if len(others) == 1:
            return others[0]
        found = ", ".join(quoted(name, 40) for name in names[:6])
        raise CatalogError(
            f"The first row must say which column has the objects: call it “{self._column}”. It has {found}."
        )

    def _single(self, row: tuple[int, list[str]]) -> tuple[int, list[str]]:
        """Return a row of a list without a header: one cell, which is the object."""
        number, cells = row
        if any(cell.strip() for cell in cells[1:]):
            raise CatalogError(
                f"Row {number} has several cells, and no first row says which column has the objects. Put one "
                f"above all that names the columns: “{self._column}”, and “{WEIGHT}” if you have one. If it is "
                "one object, put it in quotes, or paste the list."
            )
        return number, cells[:1]

    def _as_kept(self, cell: str) -> str:
        cell = cell.replace("\r\n", "\n").replace("\r", "\n").strip()
        # More different molecules than a catalog may have are refused where it is read, and would take minutes here.
        if self._column != OBJECT_COLUMNS["molecules"] or self._count > MAX_CATALOG_ITEMS:
            return cell
        try:
            return canonical_smiles(cell, is_drawn=False)
        except ValueError:
            # As it was written: whoever reads the CSV refuses the row, and says why.
            return cell

    def _write(self, number: int, cells: Sequence[str]) -> None:
        if number > MAX_ROWS:
            raise CatalogError(
                f"The list has more than {MAX_ROWS:,} rows. Join those that repeat an object, or split it."
            )
        self._text.write("\n" * (number - self._last - 1))
        self._csv.writerow(cells)
        self._last, self._count = number, self._count + 1
        if not self._begin and (self._count == self._look_at or self._text.tell() > _LOOK_BYTES):
            self._begin = self._text.tell()

    def check(self, made: BinaryIO) -> None:
        """Check what was written as a whole; the file is at its beginning again."""
        self._text.flush()
        if not self._count:
            raise CatalogError("The list is empty. It needs at least two objects.")
        self._begin = self._begin or made.tell()
        made.seek(0)
        extra_columns_of(made, self._column)
        made.seek(0)

    def taken_for(self) -> Listing:
        """Return what the list was taken for."""
        return Listing(self._count, self._header, self._named, self.sheets, self.sheet, self._begin)


def _weight(cell: str, delimiter: str) -> str:
    """Return a weight as Python writes it; what is none stays, and is refused where the CSV is read."""
    pointed = (with_decimal_point(cell, delimiter) or "").strip()
    try:
        weight = float(pointed)
    except ValueError:
        return pointed
    return pointed if not math.isfinite(weight) else str(int(weight)) if weight.is_integer() else repr(weight)


def _begins_a_table(file: BinaryIO) -> bool:
    """Return whether the first line that is not blank names several columns."""
    with lines_of(file) as lines:
        first = next((line for line in lines if line.strip()), "")
    cells = first.split(separator_of(first))
    return len(cells) > 1 and any(cell.strip().strip('"').lower() in _HEADER for cell in cells)


def _of_lines(file: BinaryIO, kind: str) -> Rows:
    with lines_of(file) as lines:
        for number, line in enumerate(lines, start=1):
            lines.begin_row(number + 1)
            if line.strip():
                yield number, [_smiles_in(line) if kind == "molecules" else line.strip()]


def _smiles_in(line: str) -> str:
    """Return a line up to the molecule's name. What stands between bars is no name: it says more of the molecule."""
    smiles, *others = line.split(maxsplit=1)
    return line.strip() if others and others[0].startswith("|") else smiles


def _of_blocks(file: BinaryIO) -> Rows:
    number = 0
    with lines_of(file) as lines:
        for is_blank, block in itertools.groupby(lines, key=lambda line: not line.strip()):
            if not is_blank:
                number += 1
                yield number, ["".join(block).strip()]
                lines.begin_row(number + 1)


def _of_records(file: BinaryIO) -> Rows:
    """Yield the SMILES of each record of an SDF; of one that RDKit cannot read or write, its name, which is none."""
    file.seek(0)
    # What is beside the structure may be in any encoding, and is not kept.
    text = io.TextIOWrapper(file, encoding="latin-1")
    try:
        for number, block in enumerate(_records(text), start=1):
            if number > MAX_CATALOG_ITEMS:
                raise CatalogError(f"The file has more than {MAX_CATALOG_ITEMS:,} molecules. Split it.")
            yield number, [_smiles_of(block) or _named(block, number)]
    finally:
        text.detach()


def _smiles_of(block: str) -> str:
    with rdBase.BlockLogs():
        molecule: Chem.Mol | None = Chem.MolFromMolBlock(block)
    # RDKit writes by recursion, and a molecule of 20,000 atoms ends the process.
    return str(Chem.MolToSmiles(molecule)) if molecule and molecule.GetNumAtoms() <= MAX_SMILES_CHARACTERS else ""


def _named(block: str, number: int) -> str:
    title = block.partition("\n")[0].strip()[:60]
    return f"record {number} ({title or 'without a name'})"


def _records(text: Iterable[str]) -> Iterator[str]:
    block: list[str] = []
    size = 0
    for line in text:
        if line.rstrip() == _RECORD_END:
            yield "".join(block)
            block, size = [], 0
            continue
        block.append(line)
        size += len(line)
        if size > MAX_ROW_CHARACTERS:
            raise CatalogError(
                f"A record has more than {MAX_ROW_CHARACTERS:,} characters. End each with a line of “{_RECORD_END}”."
            )
    if any(line.strip() for line in block):
        yield "".join(block)


def _write_workbook(written: _Written, file: BinaryIO) -> None:
    """Write the cells of a sheet, by the values that Excel has worked out."""
    _require_workbook(file)
    file.seek(0)
    try:
        book = load_workbook(file, read_only=True, data_only=True)
        with closing(book):
            names = tuple(sheet.title for sheet in book.worksheets)
            sheet = book.worksheets[names.index(written.chosen.sheet) if written.chosen.sheet in names else 0]
            written.sheets, written.sheet = names, sheet.title
            # What a file says of its size may be wrong.
            sheet.reset_dimensions()
            written.table(_of_sheet(sheet))
    except CatalogError:
        raise
    except _BROKEN as error:
        raise CatalogError(_NO_WORKBOOK) from error


def _of_sheet(sheet: Any) -> Rows:
    cells = 0
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        cells += len(row) + 1
        if cells > MAX_CELLS:
            raise CatalogError(
                f"The sheet has more than {MAX_CELLS:,} cells, at row {number}. Delete what is no part of the list, or "
                "save it as CSV."
            )
        yield number, [_cell(value) for value in row]


def _require_workbook(file: BinaryIO) -> None:
    """Require that no more is packed in it than may be; zipfile unpacks no more of an entry than is stated."""
    file.seek(0)
    try:
        entries = archive_of(file).infolist()
    except CatalogError as error:
        raise CatalogError(_NO_WORKBOOK) from error
    if not any(entry.filename == "xl/workbook.xml" for entry in entries):
        raise CatalogError(_NO_WORKBOOK)
    if sum(entry.file_size for entry in entries) > MAX_WORKBOOK_BYTES:
        raise CatalogError(
            f"The workbook has more than {MAX_WORKBOOK_BYTES // 2**20} MiB once it is unpacked. Save the list as CSV."
        )


def _cell(value: object) -> str:
    if value is None:
        return ""
    # So Excel writes characters that XML has no place for, such as the carriage return.
    return unescape(value) if isinstance(value, str) and value not in ERROR_CODES else _Guessed(value)


def write_archive(files: Iterable[tuple[str, BinaryIO]], made: BinaryIO) -> int:
    """Pack files into the ZIP that catalogs are read from, in the order of their names.

    Args:
        files: each with its name.

    Returns:
        How many there are.

    Raises:
        CatalogError: two have one name.
    """
    found = sorted(files, key=lambda each: each[0])
    for (name, _), (other, _) in itertools.pairwise(found):
        if name == other:
            raise CatalogError(f"Two files are named {quoted(name)}. Rename one of them.")
    with zipfile.ZipFile(made, "w") as archive:
        for name, file in found:
            file.seek(0)
            with archive.open(zipfile.ZipInfo(name, _DATE), "w") as entry:
                while piece := file.read(2**20):
                    entry.write(piece)
    made.seek(0)
    return len(found)
