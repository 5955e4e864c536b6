"""The page for a co-author: everything from the record is text, nothing runs or loads, and nobody is named."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from sampler import Record, parse_config
from sampler.cli import main
from sampler.diagnostics.findings import findings
from sampler.diagnostics.page import page
from tests.sampler.test_command_line import as_files
from tests.support.campaigns import archive
from tests.support.sampling import Voters, exported, run_campaign

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
    return page(findings(record, np.random.default_rng(1), **({"resamples": 50} | options)))


@pytest.fixture(scope="module")
def hostile():
    """A record whose every text is an attack, and whose people have names that stand nowhere else."""
    record = exported([Voters(SCORES, 0.3, question='Which <script>alert("q")</script>?')], HOSTILE, chains=8, steps=30)
    votes = [row | {"voter": f"person-{number % 7}"} for number, row in enumerate(record["votes"])]
    heights = [row | {"<b>height": str(at)} for at, row in enumerate(record["properties"] or measured(record))]
    config = record.config | {"name": "</title><script>alert(3)</script>", "target": parse_config(record.config).law}
    return Record({"campaign.json": config}, record.tables | {"votes": votes, "properties": heights})


def measured(record):
    return [{"state_index": row["state_index"], "content": row["content"]} for row in record["states"]]


def test_what_the_record_says_is_text_and_never_markup(hostile):
    whole = page_of(hostile)
    found = read(whole)
    assert set(found.tags) == TAGS - {"span", "img"}
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
    verdict = findings(hostile, np.random.default_rng(1), resamples=50).answer.verdict
    heading = text.index(hostile.config["name"], 2)
    assert text[heading + 1].lower() == f"{verdict.is_that}."
    assert found.tags.count("svg") == found.tags.count("table") >= 5


def test_no_participant_is_named(hostile):
    assert b"person-" not in page_of(hostile)


def test_of_many_objects_two_hundred_are_shown_and_the_page_stays_small():
    count = 600
    contents = [f"{number} " + "\U0001f600<&" * 4_000 for number in range(count)]
    record = exported([Voters(np.zeros(count))], contents, chains=4, steps=100)
    whole = page_of(record)
    assert len(whole) < 10_000_000
    assert len(re.findall(r"\d+\.\d% to", whole.decode())) == 200


def test_molecules_are_drawn():
    space, judges = {"kind": "molecules"}, [Voters(lambda state: 0.0)]
    fixed = {"kernel": {"kind": "fragments"}, "chains": 2, "steps": 10, "seed": 1}
    config = parse_config({"space": space, "judges": [{"question": "Which?", "votes": 4}], **fixed})
    record = run_campaign(config.build(), space, judges, chains=2, steps=10)
    found = read(page_of(record))
    objects = {row["object_index"] for row in record["states"]}
    assert 0 < len(found.pictures) <= len(objects)
    assert all(each.startswith("data:image/svg+xml;base64,") for each in found.pictures)


def test_the_command_writes_the_page_and_says_the_verdict_first(hostile, tmp_path, capsys):
    export, out = tmp_path / "export.zip", tmp_path / "found.html"
    record = exported([Voters(SCORES)], chains=4, steps=20)
    export.write_bytes(archive(as_files(record)))
    assert main(["diagnose", str(export), "--resamples", "20", "--html", str(out)]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    verdict = re.search(r'class="verdict">([^<]+)\.<', out.read_text())[1]
    assert first.startswith(f"{verdict}: ")
