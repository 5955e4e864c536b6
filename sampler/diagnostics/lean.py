"""Do voters lean to one side of the screen? A quick look at votes whose sides were drawn by chance.

Where orders are fixed, the share of left choices says nothing of the kind: see `source_lean.py`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Lean:
    """Log-odds of choosing the left side, 0 without a lean, with its interval."""

    log_odds: float
    low: float
    high: float
    votes: int
    level: float


def side_lean(left: int, votes: int, level: float = 0.95) -> Lean:
    """Return the lean to the left side, with Wilson's score interval carried over to log-odds.

    With sides drawn at random for each vote, the side chosen is a fair coin when nobody leans, whatever the
    preferences and however early voting stopped; so the interval covers 0 as often as it says. For voters with strong
    preferences the log-odds measured here are nearer to 0 than the lean b of a vote sigma(s' - s ± b).

    Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22, 1927. Log-odds is
    increasing, so the ends of the interval on the share are the ends on its log-odds.

    Args:
        left: how many votes chose the object on the left side.
        votes: how many votes there are.

    Raises:
        ValueError: there is no vote, `left` is not 0 to `votes`, or `level` is not between 0 and 1.
    """
    if votes < 1 or not 0 <= left <= votes:
        raise ValueError(f"left must be 0 to votes, and votes 1 or more, not {left} of {votes}")
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, not {level}")
    # Not with the module: SciPy takes a quarter of a second, and few programs come here.
    from scipy.special import logit
    from scipy.stats import binomtest

    ends = binomtest(left, votes).proportion_ci(level, method="wilson")
    return Lean(float(logit(left / votes)), float(logit(ends.low)), float(logit(ends.high)), votes, level)
