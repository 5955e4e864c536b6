"""What the record says of votes and objects without a join: what stood where, and the cells of an uploaded list."""

import pytest

import sampler
from tests.campaigns.record.test_export import rewrite
from tests.support.campaigns import (
    assert_replay_passes,
    export_to,
    make_config,
    refused_by_replay,
    table,
    voted_campaign,
)

LIST = "text,Année,an-née,=sum\n" + "".join(f"Text {place},{place},x,=1+1\n" for place in range(6))


@pytest.fixture
def voted(researcher, idle_tasks):
    """A finished campaign of a list with three further columns."""
    return voted_campaign(researcher, file=LIST, config=make_config(chains=2, steps=4))


def test_an_uploaded_lists_columns_stand_with_its_objects(voted, tmp_path):
    path = export_to(voted, tmp_path)
    row = table(path, "states.csv")[2]
    assert list(row)[6:] == ["meta_année", "meta_an_née", "meta_sum"]
    # No spreadsheet may run it; whoever reads the record gets it as it was uploaded.
    assert list(row.values())[6:] == ["2", "x", "'=1+1"]
    assert sampler.read_record(path)["states"][2]["meta_sum"] == "=1+1"
    assert_replay_passes(path)
    told = refused_by_replay(rewrite(path, "states.csv", lambda rows: rows[0].update(meta_année="7")), "1 difference")
    assert "“meta_année” of state 0 in states.csv: the export has “7”, expected “0”" in told
