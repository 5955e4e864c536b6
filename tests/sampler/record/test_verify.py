"""Twelve true records are accepted, and each way to change one is refused by file and row: as it is, and hashed again.

The changed record is tried twice. As it is, its hashes tell which file was changed. Hashed again, only its content can
tell; `UNSEEN` names the changes that it cannot, and docs/record.md lists them.
"""

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import sampler
from tests.support.campaigns import example_record
from tests.support.sampling import Files, files_of, hashed, rows_of, table_of, write

TRUE = (
    "catalog-texts", "catalog-molecules", "catalog-images", "texts", "molecules", "patterns", "model-texts",
    "two-judge-order", "people-and-model", "model-asked-first", "ratings-difference", "ratings-separate",
)  # fmt: skip
OTHER = {"first": "second", "second": "first"}
OTHER_RATING = {str(rating): str(10 - rating) if rating != 5 else "6" for rating in range(1, 10)}
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

    def changed(files: Files) -> Files:
        found = rows_of(files, name)
        change(found)
        return files | {name: table_of(found)}

    return changed


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


def without_column(name: str, column: str) -> Callable[[Files], Files]:
    return rows(name, lambda found: [row.pop(column) for row in found])


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


def other_seed(files: Files) -> Files:
    """Return the files with another seed, and the hash of that."""
    config = json.loads(files["campaign.json"])
    seed = config["seed"] + 1
    told = config | {"seed": seed, "seed_hash": sampler.hash_of_seed(seed, config["seed_salt"])}
    return files | {"campaign.json": json.dumps(told).encode()}


def without_hash(files: Files) -> Files:
    """Return the files with nothing that shows since when the seed was fixed."""
    config = json.loads(files["campaign.json"])
    kept = {name: value for name, value in config.items() if not name.startswith("seed_")}
    return files | {"campaign.json": json.dumps(kept).encode()}


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
    "one object left out": Tampering(rows(STATES, lambda found: found.pop()), STATES),
    "a state's text": Tampering(cell(STATES, 9, "content", "Another text."), SAMPLES, 3, changed=STATES),
    "a made object's text": Tampering(renamed_text, STATES, 2, "texts"),
    "a made object's code": Tampering(cell(STATES, 3, "code", "CCO"), STATES, 3, "molecules"),
    "the seed": Tampering(of_config(seed=7), "campaign.json"),
    "the seed with its hash": Tampering(other_seed, STEPS, 2, changed="campaign.json"),
    "the random bits": Tampering(of_config(seed_salt="0" * 32), "campaign.json"),
    "the hash left out": Tampering(without_hash, "campaign.json"),
    "the votes of a judge": Tampering(of_judge(votes=4), STEPS, 3, changed="campaign.json"),
    "the question": Tampering(of_judge(question="Which is longer?"), "campaign.json"),
    "fewer steps": Tampering(of_config(steps=3), STEPS, 5, changed="campaign.json"),
    "fewer chains": Tampering(of_config(chains=1), STEPS, 6, changed="campaign.json"),
    "the law that is stated": Tampering(of_config(target="another"), "campaign.json"),
    "the judges": Tampering(document("judges.json", lambda held: held[0].update(question="?")), "judges.json"),
    "a file missing": Tampering(without(VOTES), VOTES),
    "a config missing": Tampering(without("campaign.json"), "campaign.json"),
    "a column missing": Tampering(without_column(VOTES, "judge_index"), VOTES),
    "one side that a model saw": Tampering(swapped_sides(2), VOTES, 2, "model-asked-first"),
    "one rating": Tampering(
        cell(RATINGS, 2, "rating", OTHER_RATING.__getitem__), "evidence.csv", 2, "ratings-difference", RATINGS
    ),
    "one rating left out": Tampering(rows(RATINGS, lambda found: found.pop(0)), RATINGS, name="ratings-difference"),
}  # fmt: skip
UNSEEN = {
    "a vote whose flip changes no verdict": Tampering(flipped(8), VOTES),
    "a vote that came too late": Tampering(flipped(5), VOTES),
    "the order of two votes that settle nothing earlier": Tampering(swapped_order(2, 3), VOTES),
    "where a person saw the two objects": Tampering(swapped_sides(2), VOTES),
    "who voted": Tampering(cell(VOTES, 2, "voter", "9"), VOTES),
    "how long an answer took": Tampering(cell(VOTES, 2, "elapsed_ms", "5"), VOTES),
    "when a vote was cast": Tampering(cell(VOTES, 2, "cast_at", "2026-11-22T11:05:55.151+00:00"), VOTES),
    "when a step was decided": Tampering(cell(STEPS, 2, "decided_at", "2026-11-22T12:00:00.000+00:00"), STEPS),
    "whether the seed was typed": Tampering(of_config(seed_was_typed=False), "campaign.json"),
    "a text of an uploaded list, wherever it stands": Tampering(renamed_text, STATES),
    "judges.json missing": Tampering(without("judges.json"), "judges.json"),
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
    places = [(each.file, each.row) for each in found.differs]
    if tampering.row is None:
        assert tampering.file in {file for file, _ in places}, places
    else:
        assert (tampering.file, tampering.row) in places
    assert not any("manifest" in each.message for each in found.differs)


@pytest.mark.parametrize("name", UNSEEN)
def test_what_content_cannot_show_is_accepted_once_it_is_hashed_again(records, name, tmp_path):
    tampering = UNSEEN[name]
    changed = hashed(tampering.change(records(tampering.name)))
    assert sampler.verify(write(changed, tmp_path / "changed.zip")).differs == ()
