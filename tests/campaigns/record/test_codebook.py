"""The codebook defines every file and column that an export can have."""

import json
import zipfile

import pytest

from sampler import schema
from sampler.record.codebook import codebook, entry_of
from tests.support.campaigns import export_to, table

# Beside the record: no part of the archive.
TABLES = [each for each in vars(schema).values() if isinstance(each, schema.Table) and each is not schema.PROPERTIES]
WITH_SCORES = schema.steps_table(has_parts=True, has_scores=True)
COLUMNS = sorted({(each.file, str(name)) for each in (*TABLES, WITH_SCORES) for name in ("", *each.header)})


def lacking(columns) -> list[tuple[str, str]]:
    found = []
    for file, column in columns:
        try:
            values, meaning = entry_of(file, column)
        except KeyError:
            found.append((file, column))
        else:
            assert values
            assert meaning
    return found


def test_every_column_of_every_table_is_defined():
    assert len(TABLES) > 20
    assert lacking(COLUMNS) == []


def test_a_column_without_a_definition_is_found():
    """The negative control of the test above."""
    assert lacking([("votes.csv", "mood"), ("moods.csv", "")]) == [("votes.csv", "mood"), ("moods.csv", "")]
    with pytest.raises(KeyError):
        list(codebook({"votes.csv": ["mood"]}, "p0(x)"))


def test_an_archive_defines_its_own_files_columns_and_law(campaign, tmp_path):
    path = export_to(campaign, tmp_path)
    target, *rows = table(path, "codebook.csv")
    assert (target["file"], target["column"], target["meaning"]) == (
        "campaign.json",
        "target",
        campaign.target_law,
    )
    assert "people" in target["meaning"]
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        headers = {name: archive.read(name).decode().splitlines()[0].split(",") for name in names if ".csv" in name}
        assert json.loads(archive.read("campaign.json")) == campaign.public_config
    assert [row["file"] for row in rows if not row["column"]] == names
    for name, header in headers.items():
        assert [row["column"] for row in rows if row["file"] == name and row["column"]] == header
