"""Agreement beyond chance on questions that several people answered, or one person twice."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from sampler.diagnostics.bootstrap import RESAMPLES, item_multiplicities

FloatArray = npt.NDArray[np.float64]


def cohen_kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float:
    """Return Cohen's kappa of two answers to each question: two people's, or one person's first and second.

    Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20, 1960;
    computed by scikit-learn. NaN when only one answer was ever given: chance alone would agree as often.

    Raises:
        ValueError: the two differ in length or are empty.
    """
    if len(first) != len(second) or not first:
        raise ValueError(f"first and second must answer the same questions, not {len(first)} and {len(second)}")
    names = {answer: code for code, answer in enumerate(dict.fromkeys([*first, *second]))}
    if len(names) == 1:
        return float("nan")
    from sklearn.metrics import cohen_kappa_score

    return float(cohen_kappa_score([names[each] for each in first], [names[each] for each in second]))


def fleiss_kappa(counts: npt.ArrayLike) -> float:
    """Return Fleiss' kappa, (P - P_e) / (1 - P_e).

    With n_ij answers j to question i, n_i = sum_j n_ij: P is the mean over questions of the share of agreeing
    pairs, sum_j n_ij (n_ij - 1) / (n_i (n_i - 1)), and P_e = sum_j p_j^2 with p_j the share of answers j among all.
    Fleiss, "Measuring nominal scale agreement among many raters", Psychological Bulletin 76, 1971; there every n_i is
    the same. With different n_i every question weighs the same in P, every answer in P_e. NaN when only one answer
    was ever given.

    Where voting stops early, the number of answers depends on them, and kappa is biased: judge people's agreement by
    questions that were put to a fixed number of them.

    Args:
        counts: n_ij, whole numbers, shape (questions, categories), at least two answers in each row.

    Raises:
        ValueError: `counts` is not that.
    """
    table = _table(counts)
    return float(_fleiss(np.ones((1, len(table))), table)[0])


def fleiss_kappa_interval(
    counts: npt.ArrayLike, rng: np.random.Generator, resamples: int = RESAMPLES, level: float = 0.95
) -> tuple[float, float]:
    """Return the percentile interval of Fleiss' kappa from the bootstrap over questions.

    Raises:
        ValueError: as `fleiss_kappa`.
    """
    table = _table(counts)
    drawn = np.concatenate([_fleiss(each, table) for each in item_multiplicities(len(table), rng, resamples)])
    # A resample in which everybody gave one answer has no kappa.
    if np.all(np.isnan(drawn)):
        return float("nan"), float("nan")
    low, high = np.nanquantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _fleiss(weights: FloatArray, table: FloatArray) -> FloatArray:
    """Return kappa for each row of question weights, shape (resamples, questions)."""
    answers = table.sum(axis=1)
    agreeing = (table * (table - 1)).sum(axis=1) / (answers * (answers - 1))
    observed = weights @ agreeing / weights.sum(axis=1)
    shares = weights @ table / (weights @ answers)[:, None]
    expected = (shares**2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        kappa: FloatArray = np.where(expected < 1, (observed - expected) / (1 - expected), np.nan)
    return kappa


def _table(counts: npt.ArrayLike) -> FloatArray:
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim != 2 or not table.size:
        raise ValueError(f"counts must have one row a question and one column a category, not shape {table.shape}")
    if not np.all((table >= 0) & (table == np.floor(table))):
        raise ValueError("counts must be whole numbers, 0 or more")
    if np.any(table.sum(axis=1) < 2):
        raise ValueError("counts must hold at least two answers to each question")
    return table
