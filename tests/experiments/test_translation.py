"""`manage.py experiment translation`, whole: QUEST, ratings and votes that see source and estimate; then run again."""

import re
import shlex
import sys
from collections.abc import Iterator

import pytest

import sampler
from tests.experiments.test_kills import writes_and_judges
from tests.support.installations import Site
from tests.support.models import READS, Script, declared, scripted_server

METHODS = ("quest-0.1", "pointwise", "pref")
DIRECTIONS = ("de-en", "en-de")
ROLES = ("quality", "xcomet")
PROMPTS, STEPS = 2, 3
SIZE = (
    "translation", "--scale", "laptop", "--methods", ",".join(METHODS),
    "--prompts", str(PROMPTS), "--steps", str(STEPS), "--burn-in", "1", "--keep", "2",
)  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[Script]:
    with scripted_server(writes_and_judges) as script:
        yield script


@pytest.fixture(scope="module")
def site(tmp_path_factory, server) -> Site:
    """A run that has ended."""
    folder = tmp_path_factory.mktemp("site")
    scorers = ("--scorer", "quality=quality", "--scorer", "xcomet=xcomet")
    options = (*SIZE, "--matches", "1", *scorers)
    made = Site(folder, options, server.url, also=declared(folder, ROLES).environment)
    ended = made.experiment()
    assert ended.returncode == 0, ended.stderr
    return made


def record_of(site: Site, method: str, direction: str) -> sampler.Record:
    path = site.out / "records" / f"{method}-{direction}-s0.zip"
    assert not sampler.replay_file(path).differences
    return sampler.read_record(path)


def user_messages(server: Script, model: str) -> list[str]:
    """Return what a model was asked about translations: the words of the writer are word0 to word49."""
    chats = [body for body in server.requests if body["model"] == model and "messages" in body]
    return [text for body in chats if re.search(r"word\d", text := str(body["messages"][-1]["content"]))]


def test_judges_and_the_evaluator_see_the_source_and_judges_the_estimate(site, server):
    records = {name: [record_of(site, name, each) for each in DIRECTIONS] for name in ("pointwise", "pref")}
    # The scripted writer heeds no prompt: in another direction the same text has another source and estimate.
    shown: dict[str, set[tuple[str, str]]] = {}
    for record in (each for found in records.values() for each in found):
        for row, score in zip(record["states"], record["scores"], strict=True):
            source = record.config["space"]["sources"][int(row["state_index"]) % PROMPTS]
            shown.setdefault(row["content"], set()).add((f"{float(score['score']):.3f}", source))
    asked = user_messages(server, "judge")
    # The longest prompt, which is tried when a campaign starts, has no number yet. All others have waited for theirs.
    assert sum("0.000" in text for text in asked) == len(records) * len(DIRECTIONS)
    votes = [text for text in asked if "Quality estimate" in text and "0.000" not in text]
    assert len(votes) >= sum(
        len(record["votes"]) + len(record["ratings"]) for found in records.values() for record in found
    )
    for text in votes:
        known = [content for content in shown if f'"\n{content}\n"' in text]
        assert len(known) in (1, 2)
        for content in known:
            assert any(number in text and source in text for number, source in shown[content])
    sources = {source for found in shown.values() for _, source in found}
    for text in user_messages(server, "evaluator"):
        assert "Quality estimate" not in text
        assert sum(source in text for source in sources) == 1


def test_a_scorer_without_a_number_ends_the_command_and_no_judge_is_asked(server, tmp_path, monkeypatch):
    script = tmp_path / "silent.py"
    script.write_text(f"{READS}    print('nan', flush=True)\n")
    monkeypatch.setenv("SCORERS", f"silent={shlex.quote(sys.executable)} {shlex.quote(str(script))}")
    small = ("translation", "--scale", "laptop", "--methods", "pref", "--prompts", "1", "--steps", "1")
    site = Site(tmp_path, (*small, "--scorer", "quality=silent"), server.url)
    before = len(user_messages(server, "judge"))
    ended = site.experiment()
    assert ended.returncode == 4, ended.stderr
    assert "waits for a number that silent does not give" in ended.stderr
    assert [text for text in user_messages(server, "judge")[before:] if "0.000" not in text] == []
