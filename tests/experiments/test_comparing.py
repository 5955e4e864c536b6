"""`manage.py experiment compare`, with a judge of planted strengths behind a real HTTP server."""

from __future__ import annotations

import csv
import io
import json
import re
from binascii import crc32
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from scipy.special import expit

from prefmh_web.endpoints.models import Endpoint
from prefmh_web.experiments.models import EvaluationAnswer
from tests.support.compared_records import write_images, write_list, write_texts
from tests.support.files import picture
from tests.support.scripted_server import Script, chat_reply, scripted_server
from tests.support.seeing_server import brightness, pictures

PLANTED = {"ash": 0.7, "birch": 0.0, "cedar": -0.7}
LEAN = 0.4
QUESTION = "Which is the better opening?"
PROMPTS = [f"Write about {number}." for number in range(20)]
RELEASED = Path(__file__).parents[1] / "released" / "0.2.0"

pytestmark = pytest.mark.django_db(transaction=True)


def judge(body: dict) -> dict:
    """Vote by the trees that two texts name; equal prompts get equal votes, so that runs are the same each time."""
    prompt = body["messages"][-1]["content"]
    first, second = (PLANTED[tree] for tree in re.findall("ash|birch|cedar", prompt))
    chance = expit(first - second + LEAN)
    return chat_reply("A" if np.random.default_rng(crc32(prompt.encode())).random() < chance else "B")


@pytest.fixture
def script() -> Iterator[Script]:
    with scripted_server(judge) as found:
        yield found


@pytest.fixture(autouse=True)
def owner(django_user_model, script, settings):
    settings.ENDPOINT_ALLOWED_HOSTS = ["127.0.0.1"]
    settings.ENDPOINT_ALLOW_PRIVATE = ["127.0.0.0/8"]
    found = django_user_model.objects.create_user("researcher")
    Endpoint.objects.create(owner=found, name="known", base_url=script.url, model="known", dialect="vllm")
    return found


@pytest.fixture
def records(tmp_path) -> list[str]:
    """Three records, each of a tree; what their files are called must never be told."""
    return [
        str(
            write_texts(
                tmp_path / f"hidden-{tree}.zip", lambda chain, step, tree=tree: f"{tree} {chain} {step}", PROMPTS
            )
        )
        for tree in PLANTED
    ]


def compare(out: Path, *given: str, question: str = QUESTION, matches: int = 2) -> str:
    said = io.StringIO()
    options = ["--question", question, "--endpoint", "judge=known", "--out", str(out), "--matches", str(matches)]
    call_command("experiment", "compare", *given, *options, stdout=said)
    return said.getvalue()


def status(*given, **options) -> tuple[int, str]:
    with pytest.raises(CommandError) as error:
        compare(*given, **options)
    return error.value.returncode, str(error.value)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def strengths(out: Path) -> dict[str, tuple[float, float]]:
    table = rows(out / "table.csv")
    return {row["name"]: (float(row["low"]), float(row["high"])) for row in table if row["column"] == "strength"}


def test_planted_strengths_are_found_blind_in_both_orders_and_nothing_is_asked_twice(script, records, tmp_path):
    out = tmp_path / "out"
    compare(out, *records)
    found = strengths(out)
    assert all(found[f"hidden-{tree}"][0] <= value <= found[f"hidden-{tree}"][1] for tree, value in PLANTED.items())
    assert found["hidden-ash"][0] > found["hidden-cedar"][1]
    # Three pairs, two matches, two orders.
    asked = [body["messages"] for body in script.requests]
    assert len(asked) == len(PROMPTS) * 3 * 2 * 2
    assert not re.search(r"hidden|\.zip|\br[123]\b|model-texts|A model", json.dumps(asked))
    shown = Counter(tuple(re.findall(r"(?:ash|birch|cedar) \d+ \d+", each[-1]["content"])) for each in asked)
    assert set(shown.values()) == {1}
    assert set(shown) == {(second, first) for first, second in shown}
    # Prompts are matched, and of steps 5 to 8 the second and the last meet.
    assert all(one.split()[1:] == other.split()[1:] for one, other in shown)
    assert {one.split()[2] for one, _ in shown} == {"6", "8"}
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    compare(out, *records)
    assert len(script.requests) == len(asked)
    assert before == {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    calls = {row["method"]: row for row in rows(out / "calls.csv")}
    assert sum(int(row["requests"]) for row in calls.values()) == len(asked)
    assert all(row["planned"] == row["requests"] for row in calls.values())


def test_records_with_their_states_shuffled_have_other_strengths(script, tmp_path):
    """The control: the planted strengths belong to what the records hold, not to their places."""
    drawn = np.random.default_rng(5)
    trees = [drawn.permutation(list(PLANTED)) for _ in PROMPTS]
    shuffled = [
        str(
            write_texts(
                tmp_path / f"hidden-{tree}.zip",
                lambda chain, step, place=place: f"{trees[chain][place]} {chain} {step}",
                PROMPTS,
            )
        )
        for place, tree in enumerate(PLANTED)
    ]
    compare(tmp_path / "out", *shuffled)
    found = strengths(tmp_path / "out")
    missed = [tree for tree, value in PLANTED.items() if not found[f"hidden-{tree}"][0] <= value]
    missed += [tree for tree, value in PLANTED.items() if not value <= found[f"hidden-{tree}"][1]]
    assert missed


def test_it_stops_before_one_request_too_many_and_goes_on_with_more(script, records, tmp_path):
    out = tmp_path / "out"
    code, told = status(out, *records[:2], "--max-requests", "20")
    assert (code, "--max-requests" in told) == (3, True)
    assert 0 < len(script.requests) <= 20
    stored = len(rows(out / "evaluation" / "votes.csv"))
    assert stored == len(script.requests)
    compare(out, *records[:2])
    assert len(script.requests) == len(rows(out / "evaluation" / "votes.csv")) == len(PROMPTS) * 2 * 2


def test_other_settings_and_options_of_other_experiments_are_refused(script, records, tmp_path):
    out = tmp_path / "out"
    compare(out, *records[:2], matches=1)
    asked = len(script.requests)
    assert status(out, *records[:2], matches=1, question="Which is worse?") == (
        2,
        f"{out} holds a run with other settings; choose another --out, or the same ones:\n"
        f'  question is "{QUESTION}" in this folder, and "Which is worse?" now',
    )
    changed = write_texts(Path(records[0]), lambda chain, step: f"ash {chain} {step} x", PROMPTS)
    code, told = status(out, str(changed), records[1], matches=1)
    assert (code, "sha256" in told) == (2, True)
    for given, told in (
        ((*records[:2], "--steps", "3"), "--steps must be left out"),
        ((records[0],), "two or more"),
        ((records[0], str(RELEASED / "molecules.zip")), "one kind"),
        ((records[0], str(tmp_path / "none.zip")), "none.zip"),
        ((*records[:2], "--endpoint", "writer=known"), "--endpoint must be judge=NAME"),
    ):
        code, found = status(tmp_path / "other", *given)
        assert (code, told in found) == (2, True), found
    with pytest.raises(CommandError, match="only compare takes it"):
        call_command("experiment", "stories", "--question", QUESTION, "--dry-run")
    assert len(script.requests) == asked


def test_records_may_stand_after_options_and_a_dry_run_asks_nothing(script, records):
    said = io.StringIO()
    given = ["--question", QUESTION, "--dry-run", "--json", *records[1:]]
    call_command("experiment", "compare", records[0], *given, stdout=said)
    sums = json.loads(said.getvalue())["evaluation_requests"]
    # Four states of each chain: fewer than the five that are taken where there are so many.
    assert sums == {"all": 20 * 4 * 3 * 2, "r1": 20 * 4 * 2, "r2": 20 * 4 * 2, "r3": 20 * 4 * 2}
    assert not script.requests


def test_pictures_are_shown_where_a_record_can_make_them_and_refused_where_it_cannot(script, tmp_path):
    """Both records are the release's; a model that sees pictures gets two, and no name of a file."""
    patterns = RELEASED / "patterns.zip"
    copy = tmp_path / "copy.zip"
    copy.write_bytes(patterns.read_bytes())
    code, told = status(tmp_path / "out", str(patterns), str(copy), matches=1)
    assert (code, "sees pictures" in told) == (2, True)
    Endpoint.objects.update(can_images=True)
    script.answer = lambda body: chat_reply("A")
    compare(tmp_path / "out", str(patterns), str(copy), matches=1)
    assert script.requests
    for body in script.requests:
        assert [part["type"] for part in body["messages"][-1]["content"]].count("image_url") == 2
    listed = [str(write_list(tmp_path / f"{name}.zip", "images", lambda *_: "red.png", 2)) for name in ("one", "two")]
    code, told = status(tmp_path / "others", *listed, matches=1)
    assert (code, "one.zip: it holds no pictures" in told and "export the campaign again" in told) == (2, True)


def test_a_model_is_shown_the_pictures_that_records_hold(script, tmp_path):
    """It votes for what is lighter, and its endpoint is told of nothing but the two pictures."""
    greys = {"dusk": 40, "noon": 200}
    given = [
        str(write_images(tmp_path / f"hidden-{name}.zip", lambda number, grey=grey: picture((grey + number,) * 3), 15))
        for name, grey in greys.items()
    ]
    Endpoint.objects.update(can_images=True)

    def lighter(body: dict) -> dict:
        first, second = (brightness(file, "") for file in pictures(body))
        return chat_reply("A" if first > second else "B")

    script.answer = lighter
    compare(tmp_path / "out", *given, matches=1, question="Which is lighter?")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out" / "evaluation" / "votes.csv").read_text())))
    # One match of each chain, in both orders.
    assert len(rows) == len(script.requests) == 15 * 2
    # Of each pair the first record is dusk.
    assert {(row["one_first"], row["chose_one"]) for row in rows} == {("1", "0"), ("0", "0")}
    assert not any(re.search("hidden|dusk|noon", json.dumps(body)) for body in script.requests)


KNOWN = {"ash": 0.7, "birch": 0.0}


def known_judge(body: dict) -> dict:
    """Tell log-probabilities of planted strengths."""
    first, second = (KNOWN[tree] for tree in re.findall("ash|birch", body["messages"][-1]["content"]))
    chance = expit(first - second + LEAN)
    top = [{"token": name, "logprob": float(np.log(p))} for name, p in (("A", chance), ("B", 1 - chance))]
    return chat_reply("A", logprobs={"content": [{"token": "A", "top_logprobs": top}]})


def test_votes_drawn_from_probabilities_have_their_law_and_ask_nothing_about_the_same_two_again(script, tmp_path):
    """Each chain stays where it is: of three matches under a prompt, one is asked about, in both orders."""
    script.answer = known_judge
    stays = [
        str(write_texts(tmp_path / f"{tree}.zip", lambda chain, step, tree=tree: f"{tree} {chain}", PROMPTS))
        for tree in KNOWN
    ]
    # One at a time: of two that ask at once about the same, each asks.
    Endpoint.objects.update(concurrency=1)
    out = tmp_path / "out"
    compare(out, *stays, "--evaluator-votes", "log-probabilities", matches=3)
    votes = rows(out / "evaluation" / "votes.csv")
    assert len(votes) == len(PROMPTS) * 3 * 2
    assert len(script.requests) == len(PROMPTS) * 2
    assert all(body["logprobs"] for body in script.requests)
    assert {row["asks"] for row in votes} == {"0"}
    # Four standard errors of a share of 60. The control: the chance of the other one is as far away.
    for first, gap, is_far in (("1", 0.7, True), ("0", -0.7, False)):
        chosen = np.mean([row["chose_one"] == row["one_first"] for row in votes if row["one_first"] == first])
        chance = expit(gap + LEAN)
        allowed = 4 * np.sqrt(chance * (1 - chance) / 60)
        assert abs(chosen - chance) < allowed
        assert not is_far or abs(chosen - (1 - chance)) > allowed
    assert json.loads((out / "settings.json").read_text())["votes"] == "log-probabilities"
    code, told = status(out, *stays, matches=3)
    assert (code, "votes is" in told) == (2, True)
    Endpoint.objects.update(can_log_probabilities=False)
    code, told = status(tmp_path / "other", *stays, "--evaluator-votes", "log-probabilities", matches=3)
    assert (code, "no log-probabilities" in told) == (2, True)
    calls = rows(out / "calls.csv")
    assert sum(int(row["requests"]) for row in calls) == len(script.requests)
    # The number that a vote is drawn with follows from its slot: all again give the same votes.
    before = (out / "evaluation" / "votes.csv").read_bytes()
    Endpoint.objects.update(can_log_probabilities=True)
    EvaluationAnswer.objects.all().delete()
    compare(out, *stays, "--evaluator-votes", "log-probabilities", matches=3)
    assert (out / "evaluation" / "votes.csv").read_bytes() == before
