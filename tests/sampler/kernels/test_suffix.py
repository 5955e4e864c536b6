"""Suffix moves on grammars small enough to list: q, the claimed base ratio, and the distribution that follows."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from sampler import Purpose, stream
from sampler.kernels.suffix import Suffix, SuffixConfig
from sampler.spaces.texts import TextsConfig, Writing, WrittenTexts
from tests.support.enumerated import Grammar
from tests.support.outcomes import every_outcome
from tests.support.sampling import check_long_run, matrix_of

CUTS = ("limit", "length")
PROMPT = "a small world"
# Texts of 1 to 5 tokens, one of them reached by no choice but the first, and two that read alike.
RULES = {
    "story": [(3, "{who} slept."), (1, "{who} woke[, and {who} sang|.|]"), (0.5, "Nothing.")],
    "who": [(2, "a fox"), (1, "a [red|gray|red] hen")],
}
GRAMMARS = {
    "even": {"story": ["[a|b][c|d]", "e"]},
    "ragged": RULES,
    "one long": {"story": ["a", (0.2, "[b|c][d|e][f|g]")]},
}


class Scripted:
    """A generator whose numbers are given."""

    def __init__(self, *numbers: float) -> None:
        self._numbers = iter(numbers)

    def random(self) -> float:
        return next(self._numbers)


class FreeOfLength(Suffix):
    """A deliberately wrong kernel: it draws the cut over the current length and leaves n / n' out."""

    def log_r0(self, state, proposal):
        return 0.0


class LengthUpsideDown(Suffix):
    """A deliberately wrong kernel: n' / n in place of n / n'."""

    def log_r0(self, state, proposal):
        return -super().log_r0(state, proposal)


def space(name, temperature=1.0):
    return WrittenTexts(Grammar(GRAMMARS[name], temperature=temperature), [PROMPT])


@cache
def solved(name):
    """Return the texts of a grammar and their log p0."""
    texts = space(name)
    sequences = list(texts.model.derivations(PROMPT))
    codes = [f'{{"prompt":"{PROMPT}","tokens":{list(t)},"text":"{texts.model.text(PROMPT, t)}"}}' for t in sequences]
    return [texts.decode(code) for code in codes], np.array([texts.model.score(PROMPT, t) for t in sequences])


def drawn_by(kernel, states):
    """Return q and the log r0 that a kernel claims, both of shape (n, n), by every way in which it can draw."""
    shares, ratios = [{} for _ in states], [{} for _ in states]
    for state, share, ratio in zip(states, shares, ratios, strict=True):
        for chance, proposal in every_outcome(lambda rng, at=state: kernel.propose(rng, at)):
            share[proposal.state] = share.get(proposal.state, 0.0) + chance
            assert ratio.setdefault(proposal.state, proposal.log_r0) == pytest.approx(proposal.log_r0, abs=1e-12)
    return matrix_of(states, shares), matrix_of(states, ratios, empty=-np.inf)


def long_run(name, kernel, cut):
    states, log_p0 = solved(name)
    distribution = dict(zip(states, np.exp(log_p0), strict=True))
    q, _ = drawn_by(Suffix(space(name), cut), states)
    check_long_run(stream(4, 0, 0, Purpose.PROPOSAL), kernel, states[0], distribution, q, steps=20_000)


def test_a_proposal_keeps_the_beginning_and_the_prompt():
    texts = TextsConfig(scenarios=(3,)).build()
    kernel, state = Suffix(texts, "length"), texts.start(stream(2, 0, 0, Purpose.START), 0)
    for index in range(len(state.tokens)):
        rng = Scripted((index + 0.5) / len(state.tokens), *[0.37] * texts.model.limit)
        proposal = kernel.propose(rng, state).state
        assert proposal.tokens[:index] == state.tokens[:index]
        assert proposal.prompt == state.prompt


def test_an_unknown_cut_is_refused():
    with pytest.raises(ValueError, match="cut"):
        Suffix(space("even"), "middle")
    with pytest.raises(ValueError, match="cut"):
        SuffixConfig(cut="middle")


class Noting:
    """Texts of at most four tokens; it notes from which beginnings it is asked to write."""

    def __init__(self) -> None:
        self.model, self.beginnings = SimpleNamespace(limit=4), []

    def write(self, rngs, beginnings) -> list[Writing]:
        self.beginnings.extend(beginning.tokens for beginning in beginnings)
        return [Writing(beginning.prompt, (*beginning.tokens, 9), "new") for beginning in beginnings]


def test_nothing_is_written_behind_the_end_of_a_text():
    space, state = Noting(), Writing(PROMPT, (1, 2), "old")
    rngs = [Scripted(number) for number in (0.25, 0.5, 0.75)]
    proposals = Suffix(space, "limit").propose_batch(rngs, [state] * 3)
    assert space.beginnings == [(1,)]
    assert [proposal.state.text for proposal in proposals] == ["new", "old", "old"]
