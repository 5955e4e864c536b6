"""Programs of SCORERS, each a real process: what they answer, and what becomes of those that misbehave."""

import io
import threading
import time

import numpy as np
import pytest
from PIL import Image
from pydantic import TypeAdapter

from prefmh_web.objects import OBJECT_KINDS, StoredObject
from prefmh_web.scorers import NoScore, ScorerError, ScorerInterrupted, clashing_names, commands, found_again, offered
from prefmh_web.settings.environment import Commands
from tests.support.models import is_gone

TEXTS = OBJECT_KINDS["texts"]
# Long enough that a busy machine starts Python ten times as long (START_FACTOR), short enough to wait for.
SHORT_S = 0.8


def scores(*contents: str, name: str = "length"):
    return offered("texts")[name].scores(TEXTS, [StoredObject(content) for content in contents])


def test_a_program_scores_each_object_by_its_own_line(declare):
    declare("print(len(told['content']), flush=True)")
    assert scores("a", "four", "ü\n\u2028", "") == [1, 4, 3, 0]


def test_one_child_is_kept_for_all_batches(declare):
    declare("print(os.getpid(), flush=True)")
    assert len({*scores("a", "b"), *scores("c")}) == 1


def test_a_picture_comes_as_base64(declare, tmp_path):
    declare(
        f"import base64\nopen({str(tmp_path / 'told')!r}, 'wb').write(base64.b64decode(told['picture']))\n"
        "print(1, flush=True)"
    )

    pixels = np.zeros((8, 9, 3), dtype=np.uint8)
    shown = StoredObject("an image", pixels=lambda: pixels)
    assert offered("images")["length"].scores(OBJECT_KINDS["images"], [shown]) == [1]
    assert Image.open(io.BytesIO((tmp_path / "told").read_bytes())).size == (9, 8)


@pytest.mark.parametrize(
    ("program", "found"),
    [
        ("print({'b': 'nan', 'c': '-inf'}.get(told['content'], 7), flush=True)", [7, "“nan”", "“-inf”", 7]),
        *(
            (f"print({rubbish!r} if told['content'] == 'b' else 7, flush=True)", [7, f"“{rubbish}”", 7])
            for rubbish in ("I like it", "", "1_000")
        ),
        (
            "if told['content'] == 'b': sys.exit('its last words')\nprint(7, flush=True)",
            [7, "status 1; its last words: its last words", 7],
        ),
        ("sys.stdout.write('1' * 10_000_000)\nsys.stdout.flush()\ntime.sleep(600)", ["more than 4096 bytes"]),
    ],
)
def test_an_object_without_a_number_has_the_reason_and_the_others_stand(declare, program, found):
    declare(program)
    for score, wanted in zip(scores(*"abcd"[: len(found)]), found, strict=True):
        assert score == wanted if isinstance(wanted, int) else wanted in score.reason


def test_one_that_dies_once_is_started_again_and_every_object_keeps_its_own_score(declare, tmp_path):
    flag = str(tmp_path / "died")
    declare(
        f"if told['content'] == 'ccc' and not os.path.exists({flag!r}):\n"
        f"    open({flag!r}, 'w').close()\n    sys.exit(3)\n"
        "print(len(told['content']), flush=True)"
    )
    assert scores("a", "bb", "ccc", "dddd") == [1, 2, 3, 4]


def test_a_program_that_is_not_there_is_named(declare, settings):
    settings.SCORERS = {"missing": ("/nowhere/scorer",)}
    [answer] = scores("a", name="missing")
    assert "cannot be started" in answer.reason


def test_a_late_answer_is_never_taken_for_another_objects(declare):
    # The slow object is answered long after its time, when the next ones have been asked about.
    declare(
        f"if told['content'] == 'slow': time.sleep({3 * SHORT_S})\nprint(len(told['content']), flush=True)",
        seconds=SHORT_S,
    )
    assert scores("warm") == [4]
    one, slow, three = scores("a", "slow", "ccc")
    assert (one, three) == (1, 3)
    # In a fresh child the first line has ten times as long.
    assert slow == 4


def test_one_that_never_answers_is_killed_even_if_it_ignores_sigterm(declare, tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "START_FACTOR", 3)
    pids = tmp_path / "pids"
    declare(
        "import os, signal, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"open({str(pids)!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
        "for line in sys.stdin: time.sleep(600)\n",
        seconds=SHORT_S,
        whole=True,
    )
    [answer] = scores("a")
    assert "did not answer within" in answer.reason
    started = [int(pid) for pid in pids.read_text().split()]
    assert len(started) == commands.TRIES
    assert all(map(is_gone, started))


@pytest.mark.parametrize("content", ["a", "b", "c"])
def test_two_lines_for_one_object_refuse_the_whole_batch(declare, content):
    declare(f"print(len(told['content']) if told['content'] != {content!r} else '1\\n1', flush=True)")
    with pytest.raises(ScorerError, match="one line for each object"):
        scores("a", "b", "c")


def test_an_answer_without_a_question_is_refused(declare):
    declare("import sys, time\nprint('Welcome', flush=True)\nfor line in sys.stdin: print(1, flush=True)\n", whole=True)
    with pytest.raises(ScorerError):
        scores(*"abcdef")


def test_an_object_of_megabytes_passes_through_a_pipe_and_a_larger_one_is_not_sent(declare):
    declare("print(len(told['content']), flush=True)")
    [large] = scores("x" * 2_000_000)
    assert large == 2_000_000
    small, refused = scores("x", "x" * (commands.MAX_OBJECT_BYTES + 1))
    assert small == 1
    assert "bytes to send" in refused.reason


def test_our_secrets_are_not_in_its_environment(declare, monkeypatch, tmp_path):
    monkeypatch.setenv("SECRET_KEY", "not for others")
    monkeypatch.setenv("OPENAI_API_KEY", "not for others")
    monkeypatch.setenv("DATABASE_URL_COPY", "not for others")
    declare(f"open({str(tmp_path / 'env')!r}, 'w').write(str(dict(os.environ)))\nprint(1, flush=True)")
    scores("a")
    told = (tmp_path / "env").read_text()
    assert "not for others" not in told
    assert "PATH" in told


def test_no_shell_reads_the_command(declare, settings, tmp_path):
    wanted = tmp_path / "made"
    given = TypeAdapter(Commands).validate_python(f'a=sh -c "cat; touch x, y",b=true ; touch {wanted}')
    assert given["a"] == ("sh", "-c", "cat; touch x, y")
    settings.SCORERS = given
    [answer] = scores("a", name="b")
    assert isinstance(answer, NoScore)
    assert not wanted.exists()


def test_a_process_that_ends_waits_for_no_answer_and_starts_no_other_child(declare, tmp_path):
    pid = tmp_path / "pid"
    declare(f"open({str(pid)!r}, 'w').write(str(os.getpid()) + '.')\ntime.sleep(600)", seconds=600)
    heard: list[Exception] = []

    def ask() -> None:
        try:
            scores("a")
        except ScorerInterrupted as interrupted:
            heard.append(interrupted)

    waiting = threading.Thread(target=ask)
    waiting.start()
    while not (pid.exists() and pid.read_text().endswith(".")):
        time.sleep(0.01)
    commands.end()
    waiting.join(30)
    assert len(heard) == 1
    assert is_gone(int(pid.read_text().rstrip(".")))
    with pytest.raises(ScorerInterrupted):
        scores("b")


def test_closing_ends_the_child_and_what_it_has_started(declare, tmp_path):
    declare(
        "if number == 0:\n    import subprocess\n    other = subprocess.Popen(['sleep', '600'])\n"
        "print(other.pid if told['content'] == 'other' else os.getpid(), flush=True)"
    )
    pids = [int(pid) for pid in scores("own", "other")]
    commands.close_all()
    assert all(map(is_gone, pids))


# What this program measures itself, as scorers.


NAMES = ("contrast", "edge_density")


def test_molecules_are_scored_by_rdkit_and_its_version_is_kept():
    qed = offered("molecules")["qed"]
    [aspirin] = qed.scores(OBJECT_KINDS["molecules"], [StoredObject("CC(=O)Oc1ccccc1C(=O)O")])
    assert aspirin == pytest.approx(0.55, abs=0.01)
    assert qed.description()["library"].startswith("rdkit 20")


def test_each_kind_of_object_has_its_own_measures_and_texts_have_words():
    assert "qed" not in offered("texts")
    assert offered("texts")["words"].scores(OBJECT_KINDS["texts"], [StoredObject("two words")]) == [2]
    assert {"synthetic_accessibility", "log_p", "weight"} <= set(offered("molecules"))


def test_a_picture_without_the_measure_has_no_score():
    narrow = StoredObject("one pixel high", pixels=lambda: np.zeros((1, 9, 3), dtype=np.uint8))
    contrast, edges = (offered("images")[name].scores(OBJECT_KINDS["images"], [narrow])[0] for name in NAMES)
    assert contrast == 0
    assert "no edge_density" in edges.reason


def test_a_command_that_has_changed_is_not_the_one_of_the_start(declare, settings):
    declare("print(1, flush=True)")
    frozen = offered("texts")["length"].description()
    assert found_again("texts", frozen).name == "length"
    settings.SCORERS = {"length": ("other", "command")}
    with pytest.raises(ScorerError, match="no longer the one"):
        found_again("texts", frozen)
    settings.SCORERS = {}
    with pytest.raises(ScorerError, match="Declare it in SCORERS"):
        found_again("texts", frozen)


def test_a_name_that_is_measured_already_is_told(settings):
    settings.SCORERS = {"qed": ("a",), "mine": ("b",)}
    assert clashing_names() == ["qed"]


def test_one_that_always_fails_is_given_up_after_a_bounded_number_of_tries(declare, tmp_path):
    starts = tmp_path / "starts"
    declare(f"import sys\nopen({str(starts)!r}, 'a').write('x')\nsys.exit('no model')\n", whole=True)
    with pytest.raises(ScorerError, match="no model"):
        scores(*"abcdefgh")
    assert len(starts.read_text()) == commands.MAX_FAILURES
