"""Cells: moments as the database writes them; texts that a spreadsheet could run, to the export and back."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from prefmh_web.campaigns.models import Comparison
from prefmh_web.campaigns.record.cells import Moment
from sampler import schema
from sampler.record.reader import read_record
from tests.support import campaigns
from tests.support.campaigns import assert_replay_passes, export_to, make_campaign, table


def test_every_protected_text_is_read_back_as_it_was(researcher, idle_tasks, tmp_path):
    texts = [";=1+1", "；x", "'", "''=1", "'plain", "=1", "−1", "\u200b=1", "＠x", "plain;=1", "x\t=1"]
    campaign = make_campaign(researcher, file=campaigns.spreadsheet([["text"], *([text] for text in texts)]))
    path = export_to(campaign, tmp_path)
    assert [row["content"] for row in read_record(path).states] == texts
    written = {row["content"] for row in table(path, "states.csv")}
    assert {"';=1+1", "'；x", "'''=1", "''plain", "'−1", "plain;=1"} <= written
    assert_replay_passes(path)


@pytest.mark.parametrize("microsecond", [0, 1, 999, 1000, 417_000, 417_500, 999_999])
def test_the_database_writes_a_moment_as_the_record_does(campaign, microsecond):
    moment = datetime(2026, 12, 31, 23, 59, 59, microsecond, tzinfo=UTC)
    # Of any zone: the record is in UTC.
    elsewhere = moment.astimezone(timezone(timedelta(hours=5, minutes=30)))
    Comparison.objects.update(opened_at=elsewhere)
    assert set(Comparison.objects.values_list(Moment("opened_at"), flat=True)) == {schema.moment(moment)}
    assert set(Comparison.objects.values_list(Moment("decided_at"), flat=True)) == {None}
