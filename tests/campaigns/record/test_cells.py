"""Cells that a spreadsheet could run: protected with one apostrophe, which every reader takes away again."""

import zipfile

import pytest

from prefmh_web.campaigns.record.cells import harmless
from sampler.record.reader import read_record
from tests.support import files
from tests.support.record import assert_replay_passes, export_to, table
from tests.support.stack import make_campaign

DANGEROUS = [
    ";=1+1", "; text", " ;=1", "；=1", "\t", "\ttext", "\n=1", "\x00=1", "\x1f1", "\x7f=1", "\u200b=1", "\ufeff+1",
    "\u00a0@A1", "﹣1", "−1", "＇=1", "\u202e=1", " \t =1", "＠A1", "＋1", "－1", "=1+1", "'quoted",
]  # fmt: skip
HARMLESS = ["plain", "a;=b", "1-2", "", "½", "…", "“a”", " ", "é", "\u00a0", "#1", "a\t=1"]


@pytest.mark.parametrize("text", DANGEROUS, ids=ascii)
def test_a_cell_that_a_spreadsheet_could_run_or_split_gets_an_apostrophe(text):
    assert harmless(text) == f"'{text}"


@pytest.mark.parametrize("text", HARMLESS, ids=ascii)
def test_other_cells_are_left_alone(text):
    assert harmless(text) == text


def test_every_protected_text_is_read_back_as_it_was(researcher, idle_tasks, tmp_path):
    texts = [";=1+1", "；x", "'", "''=1", "'plain", "=1", "−1", "\u200b=1", "＠x", "plain;=1", "x\t=1"]
    campaign = make_campaign(researcher, file=files.table([["text"], *([text] for text in texts)]))
    path = export_to(campaign, tmp_path)
    assert [row["content"] for row in read_record(path).states] == texts
    written = {row["content"] for row in table(path, "states.csv")}
    assert {"';=1+1", "'；x", "'''=1", "''plain", "'−1", "plain;=1"} <= written
    assert_replay_passes(path)


def test_a_record_written_before_semicolons_were_protected_is_read_alike(researcher, idle_tasks, tmp_path):
    texts = [";=1+1", "'=1", "=1", "plain"]
    campaign = make_campaign(researcher, file=files.table([["text"], *([text] for text in texts)]))
    new, old = export_to(campaign, tmp_path), tmp_path / "old.zip"
    with zipfile.ZipFile(new) as source, zipfile.ZipFile(old, "w") as target:
        for name in source.namelist():
            target.writestr(name, source.read(name).replace(b"';=1", b";=1"))
    assert {row["content"] for row in table(old, "states.csv")} >= {";=1+1", "''=1"}
    assert [row["content"] for row in read_record(old).states] == texts
    assert_replay_passes(old)
