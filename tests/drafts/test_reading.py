"""Bad files: each problem is told with its place and its fix, and nothing but that is ever raised."""

import copy
import io
import json

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prefmh_web import config_files, drafts
from prefmh_web.config import CampaignConfig
from prefmh_web.config_files import config_in
from prefmh_web.config_yaml import SetupError
from tests.drafts.configs import LEAST, WHOLE, as_text
from tests.support.uploads import archive


def problems(text: str | bytes) -> list[str]:
    with pytest.raises(SetupError) as refused:
        config_in(text)
    return list(map(str, refused.value.problems))


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("chains: 2", "chians: 2", "line 11, column 1: chians: is no key of this part; do you mean “chains”?"),
        ("chains: 2", "chains: 2\nchains: 3", "line 12, column 1: The key “chains” stands here twice"),
        ("chains: 2", "chains: 2\nzzzzzz: 3", "line 12, column 1: zzzzzz: is no key of this part; remove it"),
        # Keys of other parts, and of other kinds of the same part, are not offered.
        ("chains: 2", "chains: 2\ndimension: 3", "dimension: is no key of this part; remove it"),
        ("kind: suffix", "kind: suffix\n  kind.x: 3", "kernel.kind.x: is no key of this part; remove it"),
        ("name: Least", "", "line 1, column 1: name: is missing; add it"),
        ("name: Least", "name: 12", "line 2, column 1: name: must be text; put it in quotes"),
        ("kind: suffix", "kind: neighbours", "line 6, column 1: kernel: 'neighbours' does not move in a space of"),
        ("kind: suffix", "kind: nothing", "line 7, column 3: kernel.kind: Input should be one of 'independent'"),
        ("chains: 2", "chains: 2\nlanguage: tlh", "language: “tlh” is no language of the voters' pages"),
        ("chains: 2", "chains: 2\nstudy: {quota: 3}", "study.quota: This is noted of each person. Choose"),
        ("chains: 2", "chains: 2\nstudy: {recruiter: x}", "study.recruiter: must be one of anybody, open, prolific"),
        ("chains: 2", "chains: 2\nfile: {name: a.csv}", "file: must be left out: the chains make their objects"),
        ("chains: 2", "chains: &a 2", "line 11, column 9: Anchors and aliases (& and *) are not read"),
        ("chains: 2", "chains: [2", "This is no YAML"),
        ("name: Least", 'name: "a\\0b"', "line 2, column 7: A text cannot hold the character NUL; remove it"),
        ("chains: 2", "chains: true", "line 11, column 1: chains: must be a number, not true"),
        ("votes: 1", "votes: true", "line 10, column 5: judges.0.votes: must be a number, not true"),
        # A browser would send these back with other line breaks, or without any.
        ("name: Least", 'name: "a\\nb"', "line 2, column 1: name: must be one line; take the line breaks out"),
        ("question: Which?", 'question: "a\\nb"', "judges.0.question: must be one line; take the line breaks out"),
    ],
)
def test_each_problem_is_told_with_its_place_and_its_fix(before, after, told):
    assert LEAST.count(before) == 1
    assert told in "\n".join(problems(LEAST.replace(before, after)))


def asked(question: str) -> str:
    return f"{LEAST}study: {{recruiter: open, protocol: {{questions: [{question}]}}}}\n"


def test_an_option_that_no_browser_sends_back_as_it_is_is_refused():
    assert config_in(asked('{name: q, text: Q?, options: ["I agree", "no"]}'))
    (told,) = problems(asked('{name: q, text: Q?, options: ["I\\nagree", "no"]}'))
    assert "study.protocol.questions.0.options.0: must be one line" in told


def test_more_rows_than_a_page_sends_are_refused():
    rows = [f"{{name: q{number}, text: Q?, kind: text}}" for number in range(41)]
    assert config_in(asked(", ".join(rows[:40])))
    (told,) = problems(asked(", ".join(rows)))
    assert "study.protocol.questions: Tuple should have at most 40 items" in told


@pytest.mark.parametrize("written", ["\U0001f600\U0001f600", "a\\\U0001f600", "\\ud83d\\ude00", "a\u2028\x7fb"])
def test_json_is_read_however_it_escapes(written):
    """As `json.dumps` and JavaScript's `JSON.stringify` write it."""
    described = {"name": "x", "instructions": written, "space": {"kind": "texts"}, "kernel": {"kind": "suffix"}}
    described |= {"judges": [{"question": "Which?", "votes": 1}], "chains": 2, "steps": 10}
    assert config_in(json.dumps(described)).instructions == written


def test_scorers_of_other_objects_are_refused_in_a_file_and_those_that_are_nowhere_are_not():
    (scorer,) = problems(LEAST + "scorers: [words, qed]\n")
    assert scorer.startswith("line 13, column 1: scorers: “qed” is not offered for texts; there are words, sentences")
    assert config_in(LEAST + "scorers: [words, my-own]\n")
    (twice,) = problems(LEAST + "scorers: [words, words]\n")
    assert "scorers: must name each once" in twice


def test_what_a_record_s_copy_leaves_out_is_a_list_or_no_key_at_all():
    (told,) = problems(LEAST + "hidden: 5\n")
    assert "hidden" in told


@pytest.mark.django_db(transaction=True)
def test_of_a_large_panel_a_file_is_warned_about_where_the_form_wants_a_tick(researcher):
    panelists = "".join(
        f"  - {{question: Which?, votes: 1, source: {{kind: panelist, name: P{n}}}}}\n" for n in range(1, 9)
    )
    text = LEAST.replace("  - question: Which?\n    votes: 1\n", panelists)
    (warning,) = drafts.warnings(config_in(text), researcher)
    assert warning.startswith("All 8 answers of the panel must be a yes for a step to be accepted: 0.4 %")
    told = problems(text.replace("name: P8", "name: P7"))
    assert "must be asked of each of the 7 panelists, once" in told[0]
    assert "judges.0.votes: must be 1 for a panelist" in problems(text.replace("votes: 1", "votes: 2", 1))[0]


def test_every_problem_is_told_at_once():
    wrong = LEAST.replace("chains: 2", "chains: 0").replace("votes: 1", "votes: 0").replace("name: Least", "nam: x")
    assert len(problems(wrong)) == 4


def test_the_least_setup_and_the_whole_one_are_read():
    """The control."""
    assert config_in(LEAST).study.recruiter == "anybody"
    assert config_in(as_text(WHOLE)).study.protocol.questions[0].options == ("Yes", "No")


def test_words_that_other_programs_take_for_truth_are_text():
    asked = (
        LEAST
        + "study:\n  recruiter: open\n  protocol:\n    questions:\n"
        + "      - {name: q, text: Do you?, options: [Yes, no]}\n"
    )
    assert config_in(asked).study.protocol.questions[0].options == ("Yes", "no")


@pytest.mark.parametrize(
    "content",
    [b"", b"PK", b"PK\x03\x04" + bytes(50), b"\xff\xfe", b"- 1", b"a: \x00", b"[" * 9999, b"? : ? : ?", b"%YAML 9"],
)
def test_what_is_no_setup_is_refused(content):
    with pytest.raises(SetupError), config_files.opened(io.BytesIO(content)):
        pass


def test_a_zip_without_its_file_or_with_another_one_is_refused():
    text = as_text(WHOLE)
    for members, told in (
        ({"campaign.yaml": text.encode()}, "file: is not in the ZIP; put it in as “files/"),
        ({"campaign.yaml": text.encode(), "texts.csv": b"text\nother\n"}, "file.sha256: is of another file"),
        ({"folder/campaign.yaml": text.encode()}, "The ZIP has no campaign.yaml"),
    ):
        with pytest.raises(SetupError) as refused, config_files.opened(io.BytesIO(archive(members))):
            pass
        assert told in str(refused.value)


def paths_in(value, path=()):
    yield path
    if isinstance(value, dict):
        for key, each in value.items():
            yield from paths_in(each, (*path, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from paths_in(each, (*path, index))


_PATHS = sorted(paths_in(WHOLE), key=repr)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20)
    | st.sampled_from(["catalog", "walk", "mixture", "model", "prolific", "kind", "de", "{code}", "https://x/{a"]),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=8) | st.just("kind"), one, max_size=3),
    max_leaves=6,
)  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    st.lists(
        st.tuples(st.sampled_from(_PATHS), st.sampled_from(["set", "remove", "add"]), _VALUES), min_size=1, max_size=3
    )
)
def test_a_changed_setup_is_read_or_refused_with_a_place(changes):
    changed = copy.deepcopy(WHOLE)
    for path, how, value in changes:
        changed = _changed(changed, path, how, value)
    try:
        text = yaml.safe_dump(changed, allow_unicode=True)
    except yaml.YAMLError:
        return
    assert_read_or_told(text)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.integers(0, 5000), st.integers(0, 30), st.text(alphabet=st.characters(max_codepoint=0x2FFF), max_size=12))
def test_a_changed_text_is_read_or_refused_with_a_sentence(at, removed, put_in):
    text = as_text(WHOLE)
    at %= len(text)
    assert_read_or_told(text[:at] + put_in + text[at + removed :])


def assert_read_or_told(text: str) -> None:
    try:
        assert isinstance(config_in(text), CampaignConfig)
    except SetupError as refused:
        for problem in refused.problems:
            assert problem.message
            assert problem.line is not None or problem.path == ""
            assert "Traceback" not in str(problem)


def _changed(document, path, how, value):
    """Return the document with another value at a path, or beside it; as it is where there is no such path any more."""
    if not path:
        return value if how == "set" else document
    held, key = document, path[-1]
    try:
        for part in path[:-1]:
            held = held[part]
        if how == "set":
            held[key] = value
        elif how == "remove":
            del held[key]
        elif isinstance(held, list):
            held.append(value)
        else:
            held[f"{key}x"] = value
    except (KeyError, IndexError, TypeError):
        # An earlier change has taken it away.
        return document
    return document
