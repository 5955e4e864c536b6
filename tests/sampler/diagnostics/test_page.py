"""The page for a co-author: everything from the record is text, nothing runs or loads, and nobody is named."""

import csv
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import openpyxl
import pytest

from sampler import Record, parse_config, results_of, tables
from sampler.__main__ import main
from sampler.diagnostics.findings import findings
from sampler.diagnostics.page import page
from tests.sampler.diagnostics.test_report import measured
from tests.sampler.test_command_line import as_files
from tests.support.sampling import Voters, config_of, exported, run_campaign
from tests.support.uploads import archive

SCORES = (1.5, 0.5, 0.0, -0.5, -1.5)
HOSTILE = (
    '<script>alert("x")</script>',
    '"><img src=x onerror=alert(1)>',
    "</style></title></table><svg onload=alert(2)>",
    "&lt;b&gt; ]]> <!-- \u202e abc",
    "two\nlines " + "x" * 5_000,
)
TAGS = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "div", "span", "img", "figure", "figcaption"}
TAGS |= {"svg", "line", "circle", "text", "polyline", "table", "tr", "th", "td"}


class Reader(HTMLParser):
    """Collects the tags and attributes of a page, and its text."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.text, self.pictures = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.pictures += [value for name, value in attrs if name == "src"]

    def handle_data(self, data):
        self.text.append(data)


def read(whole):
    reader = Reader()
    reader.feed(whole.decode())
    return reader


def page_of(record, **options):
    return page(findings(record, np.random.default_rng(1), **options))


@pytest.fixture(scope="module")
def hostile():
    """A record whose every text is an attack, and whose people have names that stand nowhere else."""
    record = exported([Voters(SCORES, 0.3, question='Which <script>alert("q")</script>?')], HOSTILE, chains=8, steps=30)
    votes = [row | {"voter": f"person-{number % 7}"} for number, row in enumerate(record["votes"])]
    heights = [row | {"<b>height": str(at)} for at, row in enumerate(measured(record))]
    config = record.config | {
        "name": "</title><script>alert(3)</script>",
        "target": parse_config(record.config).target_distribution,
    }
    return Record({"campaign.json": config}, record.tables | {"votes": votes, "properties": heights})


def test_what_the_record_says_is_text_and_never_markup(hostile):
    whole = page_of(hostile)
    found = read(whole)
    assert set(found.tags) == TAGS - {"img"}
    assert b"<script" not in whole
    assert not [name for name, value in found.attributes if name.startswith("on")]
    text = "".join(found.text)
    for shown in (*(each[:900] for each in HOSTILE), "<b>height", '<script>alert("q")</script>'):
        assert shown in text


def test_chromium_shows_the_page_and_finds_nothing_to_run_or_load(hostile, chromium, tmp_path):
    path = tmp_path / "page.html"
    path.write_bytes(page_of(hostile))
    shown = chromium.new_page(viewport={"width": 1280, "height": 900})
    problems, requests = [], []
    shown.on("console", lambda message: problems.append(message.text))
    shown.on("pageerror", lambda error: problems.append(str(error)))
    shown.on("dialog", lambda dialog: problems.append(dialog.message))
    shown.on("request", lambda request: requests.append(request.url))
    shown.goto(path.as_uri())
    assert problems == []
    assert requests == [path.as_uri()]
    assert shown.evaluate("document.documentElement.scrollWidth") <= 1280
    shown.close()


def test_the_verdict_stands_first_and_each_picture_has_a_table(hostile):
    found = read(page_of(hostile))
    text = [each for each in map(str.strip, found.text) if each]
    verdict = findings(hostile, np.random.default_rng(1)).results.verdict
    heading = text.index(hostile.config["name"], 2)
    assert text[heading + 1].lower() == f"{verdict.is_that}."
    assert found.tags.count("svg") == found.tags.count("table") >= 5
    # Each line has the colour of its chain's number in the table.
    lines, numbers = ([value for name, value in found.attributes if name == look] for look in ("stroke", "style"))
    hues = [value for value in lines if value.startswith("hsl")]
    assert [f"color: {hue}" for hue in hues] == numbers
    assert len(set(hues)) == 8
    assert any("score with its 90 % interval" in each for each in text)


def test_no_participant_is_named(hostile):
    assert b"person-" not in page_of(hostile)


def test_of_many_objects_two_hundred_are_shown_and_the_page_stays_small():
    count = 600
    contents = [f"{number} " + "\U0001f600<&" * 4_000 for number in range(count)]
    record = exported([Voters(np.zeros(count))], contents, chains=4, steps=100)
    whole = page_of(record)
    assert len(whole) < 10_000_000
    assert len(re.findall(r"\d+\.\d+ % to", whole.decode())) == 200


def test_one_step_of_one_chain_is_told_in_the_singular():
    text = "\n".join(read(page_of(exported([Voters(SCORES)], chains=1, steps=1))).text)
    assert "1 step of the sampling phase, 1 chain." in text
    assert not re.search(r"\b1 (steps|chains|objects)\b", text)


def test_molecules_are_drawn():
    judges = [Voters(lambda state: 0.0)]
    record = run_campaign(config_of(judges, {"kind": "molecules"}, "fragments", chains=2, steps=10), judges)
    found = read(page_of(record))
    objects = {row["object_index"] for row in record["states"]}
    assert 0 < len(found.pictures) <= len(objects)
    assert all(each.startswith("data:image/svg+xml;base64,") for each in found.pictures)


def test_the_command_writes_the_page_and_says_the_verdict_first(hostile, tmp_path, capsys):
    export, out = tmp_path / "export.zip", tmp_path / "found.html"
    record = exported([Voters(SCORES)], chains=4, steps=20)
    export.write_bytes(archive(as_files(record)))
    assert main(["diagnose", str(export), "--html", str(out)]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    verdict = re.search(r'class="verdict">([^<]+)\.<', out.read_text())[1]
    assert first.startswith(f"{verdict}: ")


# What docs/using.md tells people to run on the files of an export does what it says.


DOCUMENT = Path(__file__).parents[3] / "docs" / "using.md"
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
    found = list(results_of(record).rows())
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
    largest = results_of(record).shares[0]
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
    largest = results_of(record).shares[0]
    assert record["states"][largest.object]["content"] in rows[0][content].value
