"""What docs/using.md tells people to run on the files of an export does what it says."""

import csv
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import openpyxl
import pytest

from sampler import answer, tables
from tests.support.sampling import Voters, exported

DOCUMENT = Path(__file__).parents[3] / "docs" / "using.md"
SCORES = (1.5, 0.5, 0.0, -0.5, -1.5)
# The first reads like a missing value, and the second like a formula.
CONTENTS = ("NA", "=1+1 is two", "two\nlines", "größer", "plain")


def snippets(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", DOCUMENT.read_text(encoding="utf-8"), re.M | re.S)


@pytest.fixture(scope="module")
def record():
    """A record of chains of two lengths, so that weighing steps is not weighing chains."""
    record = exported([Voters(SCORES)], CONTENTS, chains=6, steps=60)
    kept = [row for row in record["samples"] if row["chain_index"] != "0" or int(row["step"]) <= 10]
    return record.but(samples=[row | {"phase": "burn-in" if row["step"] == "1" else row["phase"]} for row in kept])


@pytest.fixture
def folder(record, tmp_path, monkeypatch):
    """An unpacked export, where the snippets run."""
    found = list(answer(record).rows())
    samples = [tables.SAMPLES.header, *(list(row.values()) for row in record["samples"])]
    for name, rows, encoding in (("results.csv", found, "utf-8-sig"), ("samples.csv", samples, "utf-8")):
        with (tmp_path / name).open("w", encoding=encoding, newline="") as file:
            csv.writer(file).writerows(rows)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def words_by_chain(record):
    chains: dict[str, list[int]] = {}
    for row in record["samples"]:
        if row["phase"] == "sampling" and row["step"] != "0":
            chains.setdefault(row["chain_index"], []).append(len(row["content"].split()))
    return list(chains.values())


def run(code):
    names: dict[str, object] = {}
    exec(compile(code, str(DOCUMENT), "exec"), names)
    return names


def test_pandas_weighs_chains_equally(record, folder, capsys):
    run(snippets("python")[0])
    mean, error = map(float, capsys.readouterr().out.split())
    of_chains = [np.mean(words) for words in words_by_chain(record)]
    assert mean == pytest.approx(np.mean(of_chains))
    assert error == pytest.approx(np.std(of_chains, ddof=1) / np.sqrt(len(of_chains)))
    assert mean != pytest.approx(np.mean(np.concatenate(words_by_chain(record))))


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_arviz_takes_the_chains_as_chains(record, folder, capsys):
    first, second = snippets("python")
    chains = words_by_chain(record)
    draws = run(first + second)["draws"]
    assert draws.tolist() == [words[: min(map(len, chains))] for words in chains]
    assert "ess_bulk" in capsys.readouterr().out


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="needs Rscript")
def test_r_sorts_the_objects_by_their_shares(record, folder):
    (code,) = snippets("r")
    told = subprocess.run(["Rscript", "-e", code], capture_output=True, text=True, check=True).stdout
    largest = answer(record).shares[0]
    assert record["states"][largest.object]["content"] in told.splitlines()[1]


def as_excel_reads(cell: str) -> str | float:
    try:
        return float(cell)
    except ValueError:
        return cell


def test_excel_sorts_the_objects_by_their_shares_and_takes_none_for_a_formula(record, folder):
    book = openpyxl.Workbook()
    with (folder / "results.csv").open(encoding="utf-8-sig", newline="") as file:
        for row in csv.reader(file):
            book.active.append([as_excel_reads(cell) for cell in row])
    book.save("results.xlsx")
    header, *rows = openpyxl.load_workbook("results.xlsx").active.iter_rows()
    assert not [cell.value for row in rows for cell in row if cell.data_type == "f"]
    share, content = (next(cell.column - 1 for cell in header if cell.value == name) for name in ("share", "content"))
    rows.sort(key=lambda row: row[share].value, reverse=True)
    largest = answer(record).shares[0]
    assert record["states"][largest.object]["content"] in rows[0][content].value
