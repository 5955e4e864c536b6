"""Archives that strangers send to `verify`: each is refused with its reason, within a bounded memory."""

import io
import json
import struct
import tracemalloc
import warnings
import zipfile
import zlib

import pytest

import sampler
from sampler import tables
from sampler.cli import main
from tests.support.campaigns import example_record
from tests.support.sampling import files_of, hashed, rows_of, write

TEXTS = "catalog-texts"


MEGABYTE = 2**20
CHECKS = ",".join(map(str, tables.CHECKS.header)).encode()


def refused(path, capsys) -> str:
    assert main(["verify", str(path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("python -m sampler verify: error: ")
    assert "Traceback" not in said
    return said


def packed(members: list[tuple[str, bytes]], **options) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings():
        # Of names that occur twice, which is what some of these are for.
        warnings.simplefilter("ignore")
        for name, content in members:
            archive.writestr(name, content, **options)
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not a zip file"),
        (b"PK\x05\x06 and more", "not a zip file"),
        (packed([("../campaign.json", b"{}")]), "lies outside"),
        (packed([("/campaign.json", b"{}")]), "lies outside"),
        (packed([("C:/campaign.json", b"{}")]), "lies outside"),
        (packed([("campaign.json", b"{}"), ("campaign.json", b"[]")]), "is in the ZIP twice"),
        (packed([("campaign.json", b"{}")], compress_type=zipfile.ZIP_LZMA), "packed in a way that is not read"),
        (packed([("lockstep/settings.json", b"{}")]), "use replay"),
    ],
)
def test_what_is_no_record_is_refused_with_its_reason(content, reason, tmp_path, capsys):
    (tmp_path / "record.zip").write_bytes(content)
    assert reason in refused(tmp_path / "record.zip", capsys)


def test_a_file_that_is_not_there_is_told(tmp_path, capsys):
    assert "No such file" in refused(tmp_path / "none.zip", capsys)


def test_a_damaged_member_is_told(tmp_path, capsys):
    whole = example_record(TEXTS).read_bytes()
    at = whole.index(b"votes.csv") + 60
    (tmp_path / "record.zip").write_bytes(whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :])
    assert "damaged" in refused(tmp_path / "record.zip", capsys)


@pytest.mark.parametrize("cells", [[b"0", b"1", b"1", b"0", b"q", b"3", b"first", b"first", b"1", b"0"], []])
def test_a_table_that_unpacks_to_much_is_refused_before_it_fills_the_memory(cells, tmp_path):
    """A megabyte of ZIP unpacks to a thousand: no more is kept than is allowed."""
    files = files_of(example_record(TEXTS))
    header = files["votes.csv"].splitlines(keepends=True)[0]
    row = b",".join([*cells, *[b""] * (header.count(b",") + 1 - len(cells))]) + b"\n"
    write(files | {"votes.csv": header + row * (200 * MEGABYTE // len(row))}, tmp_path / "record.zip")
    del files
    tracemalloc.start()
    with pytest.raises(sampler.RecordError, match=r"unpacks to more than is allowed, at “votes\.csv”"):
        sampler.verify(tmp_path / "record.zip", most_memory=20 * MEGABYTE)
    assert tracemalloc.get_traced_memory()[1] < 40 * MEGABYTE
    tracemalloc.stop()


def test_a_member_that_states_a_smaller_size_than_it_has_is_refused(tmp_path, capsys):
    content = packed([("campaign.json", b" " * MEGABYTE)])
    for signature, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        place = content.index(signature) + at
        content = content[:place] + struct.pack("<L", 10) + content[place + 4 :]
    (tmp_path / "record.zip").write_bytes(content)
    assert "damaged" in refused(tmp_path / "record.zip", capsys)


@pytest.mark.parametrize("name", ["campaign.json", "judges.json", "manifest.json"])
@pytest.mark.parametrize("content", [b"", b"\xff", b"[" * 100_000, b"5", b"[5]", b'{"a": 1}', b"null"])
def test_documents_of_any_shape_are_refused_with_their_file(name, content, tmp_path):
    write(files_of(example_record("people-and-model")) | {name: content}, tmp_path / "record.zip")
    found = sampler.verify(tmp_path / "record.zip")
    assert name in {each.file for each in found.differs}


@pytest.mark.parametrize("field", ["source", "identities", "judge_index", "question", "prompt"])
def test_judges_of_other_shapes_are_differences(field, tmp_path):
    files = files_of(example_record("people-and-model"))
    judges = json.loads(files["judges.json"])
    for wrong in ([], 5, {"a": []}, None, "x"):
        changed = [judge | {field: wrong} for judge in judges]
        path = write(hashed(files | {"judges.json": json.dumps(changed).encode()}), tmp_path / "record.zip")
        # Whatever comes of it comes as a sentence.
        assert all(map(str, sampler.verify(path).differs))


@pytest.mark.parametrize("table", ["votes.csv", "steps.csv", "states.csv", "samples.csv"])
def test_a_cell_of_every_column_that_is_no_number_is_told_with_its_row(table, tmp_path):
    files = files_of(example_record(TEXTS))
    numbers = [
        name
        for name in rows_of(files, table)[0]
        if name in ("chain_index", "step", "state_index", "judge_index", "log_r0")
    ]
    assert numbers
    for name in numbers:
        lines = files[table].decode().split("\r\n")
        cells = lines[2].split(",")
        cells[lines[0].split(",").index(name)] = "9" * 5000
        path = write(
            files | {table: "\r\n".join([*lines[:2], ",".join(cells), *lines[3:]]).encode()}, tmp_path / "r.zip"
        )
        places = {(each.file, each.row) for each in sampler.verify(path).differs}
        assert (table, 3) in places


@pytest.mark.parametrize(
    ("table", "content"),
    [
        ("checks.csv", CHECKS + b"\n,1,gold,,1" + b"," * 10 + b"\n"),
        ("checks.csv", CHECKS + b"\n1,one,gold,,1" + b"," * 10 + b"\n"),
        ("checks.csv", CHECKS + b"\n1,1,gold,,maybe" + b"," * 10 + b"\n"),
        ("columns.csv", b"state_index,column,value\nfirst,author,Ann\n"),
        ("columns.csv", b"state_index,column,value\n,author,Ann\n"),
        ("events.csv", b"number,at,kind,by,voter,data\n1,2026-11-20T10:00:00Z,extended,,,{}\n"),
        ("events.csv", b"number,at,kind,by,voter,data\n1,2026-11-20T10:00:00Z,extended,,,{broken}\n"),
        ("events.csv", b"number,at,kind,by,voter,data\n1,2026-11-20T10:00:00Z,chain-ended,,,[]\n"),
    ],
)
def test_a_cell_of_a_table_that_not_every_record_has_is_told_with_its_row(table, content, tmp_path):
    path = write(files_of(example_record(TEXTS)) | {table: content}, tmp_path / "record.zip")
    assert (table, 2) in {(each.file, each.row) for each in sampler.verify(path).differs}


def test_a_record_without_its_manifest_is_refused(tmp_path):
    files = {name: content for name, content in files_of(example_record("texts")).items() if name != "manifest.json"}
    found = sampler.verify(write(files, tmp_path / "record.zip"))
    assert [each.file for each in found.differs] == ["manifest.json"]


def test_the_command_says_what_is_proven_and_what_differs_and_exits_so(tmp_path, capsys):
    path = example_record("texts")
    assert main(["verify", str(path)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Accepted. Proven:\n")
    assert "Every file has the SHA-256 that manifest.json says." in said
    assert "Only claimed:\n" in said
    assert "no other campaign was run and dropped" in said
    changed = write(files_of(path) | {"notes.txt": b"mine"}, tmp_path / "changed.zip")
    assert main(["verify", str(changed)]) == 1
    assert "Refused. The record differs in 1 place:\n  notes.txt: is not in the manifest" in capsys.readouterr().out


def test_crc_and_hash_are_both_of_the_bytes_that_are_read(tmp_path):
    """A member whose checksum is mended after a change is still not the file that was written."""
    files = files_of(example_record("texts"))
    changed = files["votes.csv"].replace(b"first", b"rite", 1)
    assert zlib.crc32(changed) != zlib.crc32(files["votes.csv"])
    found = sampler.verify(write(files | {"votes.csv": changed}, tmp_path / "record.zip"))
    assert "votes.csv" in {each.file for each in found.differs}
