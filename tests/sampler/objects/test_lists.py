"""Lists as people have them come to one CSV, however they came; and broken ones say what to change."""

import csv
import hashlib
import io
import random
import zipfile
from datetime import date

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdkit import Chem

import sampler
from tests.support.uploads import read, spreadsheet

MOLECULES = [
    "Cc1ccc(cc1)-c1cc(nn1-c1ccc(cc1)S(N)(=O)=O)C(F)(F)F",
    "CC(=O)Oc1ccccc1C(=O)O",
    "CC(=O)Nc1ccc(O)cc1",
    "Cn1cnc2c1c(=O)n(C)c(=O)n2C",
    "CC(C)Cc1ccc(cc1)C(C)C(=O)O",
    "C1=CC=CC=C1",
    "CN1CCC[C@H]1c1cccnc1",
    "F/C=C/F",
    "[NH4+].[Cl-]",
]


def written(data: bytes, name: str, kind: str = "molecules", **how) -> tuple[bytes, sampler.Listing]:
    made = io.BytesIO()
    listing = sampler.write_list(io.BytesIO(data), name, kind, made, **how)
    return made.getvalue(), listing


def workbook(rows, change=lambda sheet: None) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    change(book.active)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def as_csv(rows, delimiter=",") -> bytes:
    return b"\xef\xbb\xbf" + spreadsheet(list(rows), delimiter)


def as_sdf(smiles) -> bytes:
    blocks = []
    for number, each in enumerate(smiles):
        molecule = Chem.MolFromSmiles(each)
        molecule.SetProp("_Name", f"compound {number}")
        blocks.append(Chem.MolToMolBlock(molecule) + "> <ID>\n3\n\n$$$$\n")
    return "".join(blocks).encode()


def test_the_same_molecules_are_the_same_list_in_every_form():
    pasted, listing = written("\n".join(MOLECULES).encode(), "pasted.txt")
    assert (listing.rows, listing.header) == (len(MOLECULES), ())
    named = [f"{smiles} compound {number}" for number, smiles in enumerate(MOLECULES)]
    forms = {
        "a.smi": "\r\n".join(named).encode(),
        "with header.smi": "\n".join(["SMILES Name", *named]).encode(),
        "no header.csv": as_csv([smiles] for smiles in MOLECULES),
        "a.csv": as_csv([["SMILES"], *([smiles] for smiles in MOLECULES)], ";"),
        "a.xlsx": workbook([["Object"], *([smiles] for smiles in MOLECULES)]),
        "no header.xlsx": workbook([smiles] for smiles in MOLECULES),
        "a.sdf": as_sdf(MOLECULES),
    }
    digests = {name: hashlib.sha256(written(data, name)[0]).hexdigest() for name, data in forms.items()}
    assert set(digests.values()) == {hashlib.sha256(pasted).hexdigest()}, digests
    items = read("molecules", pasted).items
    assert [item.content for item in items] == [Chem.CanonSmiles(smiles) for smiles in MOLECULES]
    assert {item.weight for item in items} == {1.0}


_TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"]), min_size=1).filter(
    lambda text: text.strip() and text.strip().lower() not in {"object", "name", "smiles", "text", "weight"}
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(_TEXT.map(str.strip), min_size=1, max_size=8),
    st.lists(st.integers(1, 10**6).map(lambda number: number / 1000), min_size=8, max_size=8),
)
def test_texts_with_weights_are_the_same_list_in_a_csv_a_workbook_and_pasted(texts, weights):
    rows = [["Text", "Weight"], *map(list, zip(texts, weights, strict=False))]
    expected, _ = written(as_csv(rows), "a.csv", "texts")
    swapped = [[weight, text] for text, weight in rows]
    assert written(as_csv(swapped, ";"), "a.csv", "texts")[0] == expected
    # A workbook cannot hold a formula's sign as text, and drops nothing else.
    if not any(text.startswith("=") for text in texts):
        assert written(workbook(rows), "a.xlsx", "texts")[0] == expected
    assert written(as_csv(rows, "\t"), "pasted.txt", "texts")[0] == expected


def test_a_line_is_an_object_and_blank_lines_part_those_of_several_lines():
    prose = b"It was dark, and stormy.\r\n\r\nSecond; line\r\n\r\n\r\nThird"
    data, listing = written(prose, "pasted.txt", "texts")
    assert data.decode() == 'text\n"It was dark, and stormy."\n\nSecond; line\n\n\nThird\n'
    assert listing.header == ()
    data, listing = written(b"\none\ntwo\n\n \nthree\n", "pasted.txt", "texts", has_blocks=True)
    assert data == b'text\n"one\ntwo"\nthree\n'
    assert listing.rows == 2


def test_names_beside_structures_stay_columns_and_bars_are_no_name():
    data, listing = written(b"name,smiles,weight\nethanol,CCO,2\nacid,OC=O,0.50\n", "a.csv")
    assert data == b"smiles,weight,name\nCCO,2,ethanol\nO=CO,0.5,acid\n"
    assert (listing.header, listing.column) == (("name", "smiles", "weight"), "smiles")
    # Spreadsheets add blank cells.
    assert written(b"name,smiles,weight,\nethanol,CCO,2,,\nacid,OC=O,0.50,,\n", "a.csv")[0] == data
    data, _ = written(b"CCO |$a$|\nCCO ethanol\n", "a.smi")
    assert data == b"smiles\nCCO |$a$|\nCCO\n"


def test_what_rdkit_cannot_read_is_refused_by_its_row_when_the_list_is_read():
    good = as_sdf(["CCO", "CCN"])
    broken = good.replace(b"$$$$", b"$$$$\nbroken\n  nonsense\n$$$$", 1)
    data, listing = written(broken, "a.sdf")
    reading = read("molecules", data)
    assert listing.rows == 3
    assert [item.content for item in reading.items] == ["CCO", "CCN"]
    assert [refusal.source for refusal in reading.refusals] == ["row 3"]
    assert "record 2 (broken)" in reading.refusals[0].reason


def test_a_record_that_would_end_the_process_is_refused_like_one_that_cannot_be_read():
    atoms = range(1, 19_001)
    lines = [
        *("huge", "", "", "  0  0  0     0  0            999 V3000", "M  V30 BEGIN CTAB"),
        *("M  V30 COUNTS 19000 18999 0 0 0", "M  V30 BEGIN ATOM"),
        *(*(f"M  V30 {atom} C 0 0 0 0" for atom in atoms), "M  V30 END ATOM", "M  V30 BEGIN BOND"),
        *(f"M  V30 {atom} 1 {atom} {atom + 1}" for atom in atoms[:-1]),
        *("M  V30 END BOND", "M  V30 END CTAB", "M  END", "$$$$", ""),
    ]
    data, _ = written("\n".join(lines).encode() + as_sdf(["CCO", "CCN"]), "a.sdf")
    assert data == b"smiles\nrecord 1 (huge)\nCCO\nCCN\n"


def _dated(sheet):
    sheet["A3"] = date(2026, 3, 1)
    sheet["A5"] = 1.1


def _cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _damaged(data: bytes) -> bytes:
    """Return a workbook of which the sheet's packed bytes are no Deflate."""
    name = b"xl/worksheets/sheet1.xml"
    at = data.index(name) + len(name)
    return data[:at] + b"\xff" + data[at + 1 :]


def _with_entities(data: bytes) -> bytes:
    """Return a workbook whose sheet declares entities that unfold."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w") as new:
        for entry in old.infolist():
            content = old.read(entry)
            if entry.filename == "xl/worksheets/sheet1.xml":
                declared = b'<!DOCTYPE w [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
                content = declared + content.replace(b"<sheetData>", b"<sheetData>&b;")
            new.writestr(entry.filename, content)
    return made.getvalue()


def test_a_sheet_of_a_workbook_is_chosen_by_its_name():
    def with_another(sheet) -> None:
        other = sheet.parent.create_sheet("second")
        for row in (["text"], ["c"], ["d"], ["e"]):
            other.append(row)

    data = workbook([["text"], ["a"], ["b"]], with_another)
    _, listing = written(data, "a.xlsx", "texts")
    assert (listing.sheet, listing.sheets, listing.rows) == ("Sheet", ("Sheet", "second"), 2)
    made, listing = written(data, "a.xlsx", "texts", chosen=sampler.ReadOptions(sheet="second"))
    assert (listing.sheet, made) == ("second", b"text\nc\nd\ne\n")


def test_line_ends_are_line_ends_however_excel_writes_them():
    data = workbook([["text"], ["one_x000D_\ntwo"], ["_x005F_x000D_"]])
    assert written(data, "a.xlsx", "texts")[0] == b'text\n"one\ntwo"\n_x000D_\n'


@pytest.mark.parametrize(
    ("data", "chosen", "contents"),
    [
        (b"name\nage\n", {"has_header": False}, ["name", "age"]),
        (b"one\ntwo\nthree\n", {"has_header": True}, ["two", "three"]),
        (b"id,words\n1,one\n2,two\n", {"has_header": True, "column": "Words"}, ["one", "two"]),
        # What there is not is not looked at.
        (b"text,id\none,1\n", {"column": "title", "sheet": "second"}, ["one"]),
    ],
)
def test_what_a_list_is_taken_for_can_be_chosen(data, chosen, contents):
    made, _ = written(data, "a.csv", "texts", chosen=sampler.ReadOptions(**chosen))
    assert [row["text"] for row in csv.DictReader(io.StringIO(made.decode()))] == contents


SHEET = workbook([["text"], ["a"], ["b"], ["c"], ["d"]])


@pytest.mark.parametrize(
    ("data", "name", "kind", "message"),
    [
        (workbook([["text"], ["a"], [""], ["c"], [""]], _dated), "a.xlsx", "texts", "in row 3, 5. Set the cells"),
        (workbook([["text"], ["a"], ["#REF!"], ["c"]]), "a.xlsx", "texts", "an error of the object in row 3. Set"),
        (_cut(SHEET), "a.xlsx", "texts", "no Excel workbook that can be read"),
        (_damaged(SHEET), "a.xlsx", "texts", "no Excel workbook that can be read"),
        (_with_entities(SHEET), "a.xlsx", "texts", "no Excel workbook that can be read"),
        (b"title,body\na,b\n", "a.csv", "texts", "Row 1 has several cells, and no first row says"),
        (b"one\ntwo,three\n", "a.csv", "texts", "Row 2 has several cells"),
        (b"name,weight,id\na,1,2\n", "a.csv", "molecules", "call it “smiles”"),
        (b'text\n"open\n' + b"more\n" * 3, "a.csv", "texts", "quotation mark"),
        (b"text,a,a\nx,1,2\n", "a.csv", "texts", "names the column “a” twice"),
        (b"caf\xe9\n", "a.txt", "texts", "not UTF-8 text"),
        (b" \n\n", "a.txt", "texts", "The list is empty"),
        (b"text\n", "a.txt", "texts", "The list is empty"),
        (b"", "a.csv", "texts", "The list is empty"),
        (b"CCO ethanol\nCCN\n", "a.smi", "texts", "has molecules"),
        (b"x" * 1_000_001, "a.sdf", "molecules", "A record has more than 1,000,000"),
    ],
)
def test_a_broken_list_says_what_to_change(data, name, kind, message):
    made = io.BytesIO()
    with pytest.raises(sampler.CatalogError, match=message):
        sampler.write_list(io.BytesIO(data), name, kind, made)
    # Whoever has made the file closes it.
    assert not made.closed


def test_a_workbook_is_bounded(monkeypatch):
    def far_away(sheet):
        sheet.cell(400, 16_000, "x")
        for row in range(1, 400):
            sheet.cell(row, 16_000, "x")

    with pytest.raises(sampler.CatalogError, match="more than 2,000,000 cells, at row"):
        written(workbook([["text"]], far_away), "a.xlsx", "texts")


def test_files_are_packed_in_the_order_of_their_names_whatever_order_they_came_in():
    files = {f"{letter}.png": random.Random(letter).randbytes(2_000) for letter in "cab"}
    packed = []
    for names in (sorted(files), list(files)):
        made = io.BytesIO()
        assert sampler.write_archive([(name, io.BytesIO(files[name])) for name in names], made) == 3
        packed.append(made.getvalue())
    assert packed[0] == packed[1]
    with zipfile.ZipFile(io.BytesIO(packed[0])) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == files
    with pytest.raises(sampler.CatalogError, match="Two files are named"):
        sampler.write_archive([("a", io.BytesIO()), ("a", io.BytesIO())], io.BytesIO())
