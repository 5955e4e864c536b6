"""The record from a program: pages that together are the tables of the export, and the export itself."""

import csv
import io
import zipfile

import pytest

from prefmh_web.campaigns.record import export
from prefmh_web.campaigns.record.snapshot import Snapshot
from prefmh_web.client import RequestRefused
from sampler.record.columns import unescaped
from tests.support.campaigns import SETUPS, make_campaign, make_config, voted_to_the_end

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def finished(researcher):
    return voted_to_the_end(make_campaign(researcher, config=make_config(steps=7, burn_in=2)))


def table_in(campaign, name: str) -> list[dict[str, str]]:
    text = "".join(export.csv_text(Snapshot.now(campaign), f"{name}.csv"))
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("name", ["steps", "votes", "samples"])
@pytest.mark.parametrize("limit", [1, 3, 500])
def test_pages_together_are_the_table_of_the_export(site, live_site, finished, name, limit):
    rows, cursor, is_last = [], "", False
    while not is_last:
        page = site._json("GET", f"/campaigns/{finished.pk}/{name}", params={"cursor": cursor, "limit": limit})
        rows += page["rows"]
        cursor, is_last = page["cursor"], page["is_last"]
    exported = table_in(finished, name)
    assert len(rows) == len(exported) > 0
    for row, cells in zip(rows, exported, strict=True):
        assert row.keys() == cells.keys()
        for column, value in row.items():
            assert written(value) == unescaped(cells[column]), column


def written(value) -> str:
    """Return a value as the table has it, but for the apostrophe before what a spreadsheet would run."""
    if value is None:
        return ""
    if isinstance(value, list):
        return " ".join(map(str, value))
    return str(int(value)) if isinstance(value, bool) else str(value)


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"chain_index": 9}, "chain_index"),
        ({"chain_index": 0, "cursor": "1.2"}, "cursor"),
        ({"cursor": "x"}, "cursor"),
        ({"limit": 0}, "limit"),
    ],
)
def test_a_page_that_cannot_be_is_refused_with_its_field(site, finished, wanted, field):
    with pytest.raises(RequestRefused) as refused:
        site._json("GET", f"/campaigns/{finished.pk}/votes", params=wanted)
    assert refused.value.status == 422
    problem = refused.value.problems[0]
    assert field in problem.path or problem.message.startswith(field)


def test_a_step_that_is_open_tells_nothing(site, campaign):
    """Neither its uniform nor its proposal, which voters must not know."""
    assert list(site.rows(campaign.pk, "steps")) == []
    assert list(site.rows(campaign.pk, "votes")) == []
    assert [row["step"] for row in site.rows(campaign.pk, "samples")] == [0, 0, 0]


def test_the_whole_record_comes_as_a_zip(site, finished, tmp_path):
    file = tmp_path / "record.zip"
    site.download(finished.pk, file)
    with zipfile.ZipFile(file) as archive:
        assert {"campaign.json", "steps.csv", "votes.csv", "codebook.csv"} <= set(archive.namelist())
        assert archive.testzip() is None
    assert not file.with_name("record.zip.part").exists()


def test_people_have_numbers_and_no_names(site, finished):
    people = list(site.people(finished.pk))
    assert sum(person["votes"] for person in people) == len(list(site.rows(finished.pk, "votes")))
    assert "external_id" not in people[0]


def test_a_draft_has_no_record(site, researcher):
    draft = SETUPS["texts"](researcher)
    with pytest.raises(RequestRefused) as refused:
        list(site.rows(draft.pk, "steps"))
    assert refused.value.status == 409
