"""Twelve true records are accepted, and each way to change one is refused by file and row: as it is, and hashed again.

The changed record is tried twice. As it is, its hashes tell which file was changed. Hashed again, only its content can
tell; `UNSEEN` names the changes that it cannot, and docs/record.md lists them.
"""

import copy
import io
import json
import struct
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import sampler
from sampler import tables
from sampler.__main__ import main
from tests.support.examples import example_record
from tests.support.sampling import Files, files_of, hashed, rows_of, table_of, with_rows, write

TRUE = (
    "catalog-texts", "catalog-molecules", "catalog-images", "texts", "molecules", "patterns", "model-texts",
    "two-judge-order", "people-and-model", "model-asked-first", "ratings-difference", "ratings-separate",
)  # fmt: skip
OTHER = {"first": "second", "second": "first"}
Row = dict[str, str]


@pytest.fixture(scope="module")
def records() -> Callable[[str], Files]:
    kept = {}
    return lambda name: copy.copy(kept.setdefault(name, files_of(example_record(name))))


@pytest.mark.parametrize("name", TRUE)
def test_a_true_record_is_accepted(records, name, tmp_path):
    path = write(records(name), tmp_path / "record.zip")
    found = sampler.verify(path)
    assert found.differs == ()
    assert any("Every file has the SHA-256" in each for each in found.proven)
    assert any("The seed is the one of the hash" in each for each in found.proven)
    is_written = json.loads(records(name)["campaign.json"])["space"]["kind"] == "model-texts"
    assert any("the texts are those that the model wrote" in each for each in found.claimed) == is_written


@dataclass(frozen=True)
class Tampering:
    """A way to change a record.

    Args:
        change: takes its files and returns other ones.
        file, row: where a verification of its content says that it differs; the row as a spreadsheet counts.
        name: of the record.
        changed: the file that is changed, where that is another one.
    """

    change: Callable[[Files], Files]
    file: str
    row: int | None = None
    name: str = "catalog-texts"
    changed: str = ""


def rows(name: str, change: Callable[[list[Row]], object]) -> Callable[[Files], Files]:
    """Return a change of one table's rows."""
    return lambda files: with_rows(files, name, change)


def cell(name: str, row: int, column: str, value: str | Callable[[str], str]) -> Callable[[Files], Files]:
    """Return a change of one cell; the row as a spreadsheet counts."""

    def change(found: list[Row]) -> None:
        before = found[row - 2][column]
        found[row - 2][column] = value(before) if callable(value) else value
        assert found[row - 2][column] != before

    return rows(name, change)


def document(name: str, change: Callable[[dict], object]) -> Callable[[Files], Files]:
    """Return a change of a JSON file."""

    def changed(files: Files) -> Files:
        held = json.loads(files[name])
        change(held)
        return files | {name: json.dumps(held).encode()}

    return changed


def without(name: str) -> Callable[[Files], Files]:
    return lambda files: {each: content for each, content in files.items() if each != name}


def without_event(kind: str) -> Callable[[Files], Files]:
    """Return the removal of an event, those after it numbered anew."""

    def change(found: list[Row]) -> None:
        found[:] = [row for row in found if row["kind"] != kind]
        for number, row in enumerate(found, start=1):
            row["number"] = str(number)

    return rows("events.csv", change)


def both(*changes: Callable[[Files], Files]) -> Callable[[Files], Files]:
    def changed(files: Files) -> Files:
        for change in changes:
            files = change(files)
        return files

    return changed


def flipped(row: int) -> Callable[[Files], Files]:
    """Return the flip of a vote."""

    def change(found: list[Row]) -> None:
        vote = found[row - 2]
        side = OTHER[vote["chosen_side"]]
        is_for = str(1 - int(vote["for_proposal"]))
        vote |= {"chosen_side": side, "for_proposal": is_for, "chosen_state": vote[f"{side}_state"]}

    return rows("votes.csv", change)


def swapped_sides(row: int) -> Callable[[Files], Files]:
    """Return a change of where the two objects stood: the same object is chosen."""

    def change(found: list[Row]) -> None:
        vote = found[row - 2]
        vote |= {side: OTHER[vote[side]] for side in ("proposal_side", "chosen_side")}
        vote["first_state"], vote["second_state"] = vote["second_state"], vote["first_state"]

    return rows("votes.csv", change)


def rounded_otherwise(number: str) -> str:
    return repr(float(number) + 1e-13)


def swapped_order(one: int, other: int) -> Callable[[Files], Files]:
    def change(found: list[Row]) -> None:
        first, second = found[one - 2], found[other - 2]
        first["number"], second["number"] = second["number"], first["number"]

    return rows("votes.csv", change)


def nine_votes_more(found: list[Row]) -> None:
    """Add votes of others after a verdict."""
    found[3:3] = [found[2] | {"number": str(number), "voter": f"9{number}"} for number in range(4, 13)]


def renamed_text(files: Files) -> Files:
    """Return the files with another text of a state, wherever it stands."""
    states, samples = rows_of(files, "states.csv"), rows_of(files, "samples.csv")
    before = samples[0]["content"]
    for row in (*states, *samples):
        row["content"] = "Another text." if row["content"] == before else row["content"]
    return files | {"states.csv": table_of(states), "samples.csv": table_of(samples)}


def another_seed(config: dict) -> None:
    """Change the seed, and the hash of it."""
    config["seed"] += 1
    config["seed_hash"] = sampler.hash_of_seed(config["seed"], config["seed_salt"])


def no_hash(config: dict) -> None:
    """Leave out all that shows since when the seed was fixed."""
    for name in [name for name in config if name.startswith("seed_")]:
        del config[name]


def of_config(**changes: object) -> Callable[[Files], Files]:
    return document("campaign.json", lambda config: config.update(changes))


def of_judge(**changes: object) -> Callable[[Files], Files]:
    return document("campaign.json", lambda config: config["judges"][0].update(changes))


VOTES, STEPS, STATES, SAMPLES, RATINGS = "votes.csv", "steps.csv", "states.csv", "samples.csv", "ratings.csv"
SEEN = {
    "one vote": Tampering(flipped(4), STEPS, 2, changed=VOTES),
    "one order of votes": Tampering(swapped_order(2, 4), VOTES, 2),
    "one vote left out": Tampering(rows(VOTES, lambda found: found.pop(2)), STEPS, 2, changed=VOTES),
    "the first vote left out": Tampering(rows(VOTES, lambda found: found.pop(0)), VOTES, 2),
    "all votes left out": Tampering(rows(VOTES, lambda found: found.__delitem__(slice(4))), STEPS, 2, changed=VOTES),
    "many votes more": Tampering(rows(VOTES, nine_votes_more), VOTES, 5),
    "one vote twice": Tampering(rows(VOTES, lambda found: found.insert(3, found[2] | {"number": "4"})), VOTES, 5),
    "two votes of one person": Tampering(cell(VOTES, 4, "voter", "3"), VOTES, 4),
    "current and proposal": Tampering(
        both(cell(STEPS, 2, "current_state", "7"), cell(STEPS, 2, "proposal_state", "1")), STEPS, 2
    ),
    "one step left out": Tampering(rows(STEPS, lambda found: found.pop(1)), STEPS, 3),
    "one step twice": Tampering(rows(STEPS, lambda found: found.insert(1, dict(found[0]))), STEPS, 3),
    "one sample with its text": Tampering(
        both(cell(SAMPLES, 3, "state_index", "2"), cell(SAMPLES, 3, "content", "The red sea stood there.")), SAMPLES, 3
    ),
    "one sample left out": Tampering(rows(SAMPLES, lambda found: found.pop(3)), SAMPLES),
    "one sample twice": Tampering(rows(SAMPLES, lambda found: found.append(dict(found[0]))), SAMPLES, 12),
    "one link": Tampering(
        both(cell(STATES, 3, "neighbours", "0 2 4 9 10"), cell(STATES, 9, "neighbours", "4 6")),
        STEPS,
        2,
        changed=STATES,
    ),
    "the order of an object's neighbours": Tampering(
        cell(STATES, 3, "neighbours", lambda found: " ".join(found.split()[::-1])), STATES, 3
    ),
    "a code that is written otherwise": Tampering(cell(STATES, 2, "code", lambda code: f"{code} "), STATES, 2, "texts"),
    "one object left out": Tampering(rows(STATES, lambda found: found.pop()), STATES),
    "a state's text": Tampering(cell(STATES, 9, "content", "Another text."), SAMPLES, 3, changed=STATES),
    "a made object's text": Tampering(renamed_text, STATES, 2, "texts"),
    "a number with a zero in front": Tampering(cell(VOTES, 4, "judge_index", "00"), VOTES, 4),
    "a number in other figures": Tampering(cell(VOTES, 4, "judge_index", "\N{ARABIC-INDIC DIGIT ZERO}"), VOTES, 4),
    "the seed": Tampering(of_config(seed=7), "campaign.json"),
    "the study": Tampering(of_config(study=[]), "campaign.json"),
    "the seed with its hash": Tampering(document("campaign.json", another_seed), STEPS, 2, changed="campaign.json"),
    "the random bits": Tampering(of_config(seed_salt="0" * 32), "campaign.json"),
    "the hash left out": Tampering(document("campaign.json", no_hash), "campaign.json"),
    "the votes of a judge": Tampering(of_judge(votes=4), STEPS, 3, changed="campaign.json"),
    "the question": Tampering(of_judge(question="Which is longer?"), "campaign.json"),
    "fewer steps": Tampering(of_config(steps=3), STEPS, 5, changed="campaign.json"),
    "fewer chains": Tampering(of_config(chains=1), STEPS, 6, changed="campaign.json"),
    "the distribution that is stated": Tampering(of_config(target="another"), "campaign.json"),
    "the start left out": Tampering(without_event("started"), "events.csv"),
    "that the seed was revealed left out": Tampering(without_event("seed-revealed"), "events.csv"),
    "the judges": Tampering(document("judges.json", lambda held: held[0].update(question="?")), "judges.json"),
    "a file missing": Tampering(without(VOTES), VOTES),
    "a config missing": Tampering(without("campaign.json"), "campaign.json"),
    "a column missing": Tampering(rows(VOTES, lambda found: [row.pop("judge_index") for row in found]), VOTES),
    "one side that a model saw": Tampering(swapped_sides(2), VOTES, 2, "model-asked-first"),
    "one rating left out": Tampering(rows(RATINGS, lambda found: found.pop(0)), RATINGS, name="ratings-difference"),
    "one rating of an object": Tampering(rows(RATINGS, lambda found: found.pop(0)), RATINGS, name="ratings-separate"),
}  # fmt: skip
UNSEEN = {
    "a vote whose flip changes no verdict": Tampering(flipped(8), VOTES),
    "a vote that came too late": Tampering(flipped(5), VOTES),
    "the order of two votes that settle nothing earlier": Tampering(swapped_order(2, 3), VOTES),
    "where a person saw the two objects": Tampering(swapped_sides(2), VOTES),
    "who voted": Tampering(cell(VOTES, 2, "voter", "9"), VOTES),
    "how long an answer took": Tampering(cell(VOTES, 2, "elapsed_ms", "5"), VOTES),
    "what campaign.json says that decides nothing": Tampering(of_config(instructions="Choose 1."), "campaign.json"),
    "when a vote was cast": Tampering(cell(VOTES, 2, "cast_at", "2026-11-22T11:05:55.151+00:00"), VOTES),
    "when a step was decided": Tampering(cell(STEPS, 2, "decided_at", "2026-11-22T12:00:00.000+00:00"), STEPS),
    "`log_r0`, within rounding": Tampering(cell(STEPS, 2, "log_r0", rounded_otherwise), STEPS),
    "whether the seed was typed": Tampering(of_config(seed_was_typed=False), "campaign.json"),
    "a text of an uploaded list, wherever it stands": Tampering(renamed_text, STATES),
    "an event added or left out": Tampering(
        rows("events.csv", lambda found: found.append(found[-1] | {"number": "3", "kind": "paused"})), "events.csv"
    ),
    "a picture or a recording": Tampering(
        lambda files: files | {"pictures/0.png": b""}, "pictures/0.png", name="catalog-images"
    ),
    "a file missing that replay does not need, such as judges.json": Tampering(without("judges.json"), "judges.json"),
    "a file that no record has": Tampering(lambda files: files | {"notes.txt": b"mine"}, "notes.txt"),
}
EVERY = SEEN | UNSEEN


def test_the_docs_list_what_cannot_be_seen():
    text = (Path(__file__).parents[3] / "docs" / "record.md").read_text()
    assert [name for name in UNSEEN if name not in text] == []


@pytest.mark.parametrize("name", EVERY)
def test_a_changed_record_is_refused_as_it_is(records, name, tmp_path):
    tampering = EVERY[name]
    changed = tampering.change(records(tampering.name))
    found = sampler.verify(write(changed, tmp_path / "changed.zip"))
    said = {each.file for each in found.differs if "manifest" in each.message}
    assert (tampering.changed or tampering.file) in said


@pytest.mark.parametrize("name", SEEN)
def test_a_changed_record_that_is_hashed_again_is_refused_by_file_and_row(records, name, tmp_path):
    tampering = SEEN[name]
    changed = hashed(tampering.change(records(tampering.name)))
    found = sampler.verify(write(changed, tmp_path / "changed.zip"))
    indices = [(each.file, each.row) for each in found.differs]
    if tampering.row is None:
        assert tampering.file in {file for file, _ in indices}, indices
    else:
        assert (tampering.file, tampering.row) in indices
    assert not any("manifest" in each.message for each in found.differs)


def test_a_replay_names_the_file_whose_study_is_none(records, tmp_path):
    path = write(of_config(study=[])(records("catalog-texts")), tmp_path / "changed.zip")
    with pytest.raises(sampler.RecordError, match=r"study in campaign\.json must be an object"):
        sampler.replay(sampler.read_record(path))


@pytest.mark.parametrize("name", UNSEEN)
def test_what_content_cannot_show_is_accepted_once_it_is_hashed_again(records, name, tmp_path):
    tampering = UNSEEN[name]
    changed = hashed(tampering.change(records(tampering.name)))
    assert sampler.verify(write(changed, tmp_path / "changed.zip")).differs == ()


# Archives that strangers send to `verify`: each is refused with its reason, within a bounded memory.


TEXTS = "catalog-texts"


MEGABYTE = 2**20
CHECKS = ",".join(map(str, tables.CHECKS.header)).encode()


def packed(members: list[tuple[str, bytes]], **options) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings():
        # Of names that occur twice, which is what some of these are for.
        warnings.simplefilter("ignore")
        for name, content in members:
            archive.writestr(name, content, **options)
    return out.getvalue()


def damaged() -> bytes:
    whole = example_record(TEXTS).read_bytes()
    at = whole.index(b"votes.csv") + 60
    return whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :]


def with_a_smaller_size_than_it_has() -> bytes:
    content = packed([("campaign.json", b" " * MEGABYTE)])
    for signature, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        index = content.index(signature) + at
        content = content[:index] + struct.pack("<L", 10) + content[index + 4 :]
    return content


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "No such file"),
        (damaged, "damaged"),
        (with_a_smaller_size_than_it_has, "damaged"),
        (b"", "not a zip file"),
        (b"PK\x05\x06 and more", "not a zip file"),
        (packed([("../campaign.json", b"{}")]), "lies outside"),
        (packed([("/campaign.json", b"{}")]), "lies outside"),
        (packed([("C:/campaign.json", b"{}")]), "lies outside"),
        (packed([("campaign.json", b"{}"), ("campaign.json", b"[]")]), "is in the ZIP twice"),
        (packed([("campaign.json", b"{}")], compress_type=zipfile.ZIP_LZMA), "packed in a way that is not read"),
        (lambda: packed([(f"{number:x<65000}", b"") for number in range(1_050)]), "list of files that is too long"),
        (packed([("lockstep/settings.json", b"{}")]), "use replay"),
    ],
)
def test_what_is_no_record_is_refused_with_its_reason(content, reason, tmp_path, capsys):
    if content is not None:
        (tmp_path / "record.zip").write_bytes(content() if callable(content) else content)
    assert main(["verify", str(tmp_path / "record.zip")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("python -m sampler verify: error: ")
    assert "Traceback" not in said
    assert reason in said


@pytest.mark.parametrize(
    "cells", [[b"0", b"1", b"1", b"0", b"q", b"3", b"first", b"first", b"1", b"0"], [b"x" * 2000], []]
)
def test_a_table_that_unpacks_to_much_is_refused_before_it_fills_the_memory(cells, tmp_path):
    """Some kilobytes of ZIP unpack to eighty megabytes: no more is kept than is allowed."""
    files = files_of(example_record(TEXTS))
    header = files["votes.csv"].splitlines(keepends=True)[0]
    row = b",".join([*cells, *[b""] * (header.count(b",") + 1 - len(cells))]) + b"\n"
    write(files | {"votes.csv": header + row * (80 * MEGABYTE // len(row))}, tmp_path / "record.zip")
    del files
    tracemalloc.start()
    with pytest.raises(sampler.RecordError, match=r"unpacks to more than is allowed, at “votes\.csv”"):
        sampler.verify(tmp_path / "record.zip", max_memory=20 * MEGABYTE)
    assert tracemalloc.get_traced_memory()[1] < 40 * MEGABYTE
    tracemalloc.stop()


def test_a_document_whose_values_take_much_is_refused(tmp_path):
    """A megabyte of JSON comes to many times as much in memory."""
    listed = b"[" + b"0," * (MEGABYTE // 2) + b"0]"
    write(files_of(example_record(TEXTS)) | {"judges.json": listed}, tmp_path / "record.zip")
    with pytest.raises(sampler.RecordError, match=r"unpacks to more than is allowed, at “judges\.json”"):
        sampler.verify(tmp_path / "record.zip", max_memory=20 * MEGABYTE)


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
    numbers = {"chain_index", "step", "state_index", "judge_index", "log_r0"} & rows_of(files, table)[0].keys()
    assert numbers
    for name in numbers:
        changed = with_rows(files, table, lambda found, name=name: found[1].update({name: "9" * 5000}))
        differs = sampler.verify(write(changed, tmp_path / "r.zip")).differs
        assert (table, 3) in {(each.file, each.row) for each in differs}


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
    files = without("manifest.json")(files_of(example_record("texts")))
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
