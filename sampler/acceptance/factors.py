"""The product of the judges' factors, prod_i K_i / (N_i - K_i + 1), for any number of judges and any N.

A factor lies between 1 / N and N, so that the product of many leaves the range of doubles. Here it is kept as a
double with an exponent of its own. Both the plain product and this one multiply in the order of the judges and round
each time to 53 bits; so they are equal bit for bit wherever the plain one neither overflows nor underflows, and both
are monotone in every K_i.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Inside this range exp(log_r0) neither overflows nor loses digits to underflow.
EXP_IS_SAFE: Final = 700.0
# Products of factors are plain doubles as long as they surely lie between 2^-1000 and 2^1000.
_PLAIN_BITS: Final = 1000
# Of doubles that keep all their digits, with a mantissa in [1/2, 1).
_LEAST_EXPONENT: Final = -1021
_LARGEST_EXPONENT: Final = 1024
# log 2 in two parts: the first has so few bits that its product with any exponent is exact.
_LOG_2_HIGH: Final = 0.693147180369123816490
_LOG_2_LOW: Final = 1.90821492927058770002e-10


def accepted(ratio: FloatArray, votes: IntArray, limits: IntArray) -> FloatArray:
    """Return min(1, r0 prod_i K_i / (N_i - K_i + 1)), shape (...).

    Args:
        ratio: log r0, shape (...).
        votes, limits: K_i and N_i, shape (..., m).
    """
    # One path for all tallies of the same budgets: the rule must be monotone from one tally to the next.
    if limits.shape[-1] * int(limits.max(initial=1)).bit_length() <= _PLAIN_BITS:
        return _accepted_plainly(ratio, product_of_factors(votes, limits))
    return _accepted_scaled(ratio, *_scaled_product(votes / (limits - votes + 1)))


def product_of_factors(votes: IntArray, limits: IntArray) -> FloatArray:
    """Return prod_i K_i / (N_i - K_i + 1) as a double, shape (...); K_i and N_i of shape (..., m)."""
    return np.asarray(np.prod(votes / (limits - votes + 1), axis=-1))


def _scaled_product(factors: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the product over the last axis: a mantissa in [1/2, 1), or 0, and an exponent of 2."""
    mantissa: FloatArray = np.ones(factors.shape[:-1])
    exponent: IntArray = np.zeros(factors.shape[:-1], dtype=np.int64)
    for judge in range(factors.shape[-1]):
        mantissa, shift = np.frexp(mantissa * factors[..., judge])
        exponent = exponent + shift
    return mantissa, exponent


def _accepted_plainly(ratio: FloatArray, factor: FloatArray) -> FloatArray:
    # Where the product overflows the answer is 1; where it underflows there is no nearer double than 0.
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        plain = np.exp(np.clip(ratio, -EXP_IS_SAFE, EXP_IS_SAFE)) * factor
        logarithmic = np.exp(np.minimum(0.0, ratio + np.log(factor)))
    return np.where(np.abs(ratio) <= EXP_IS_SAFE, np.minimum(1.0, plain), logarithmic)


def _accepted_scaled(ratio: FloatArray, mantissa: FloatArray, exponent: IntArray) -> FloatArray:
    base, shift = np.frexp(np.exp(np.clip(ratio, -EXP_IS_SAFE, EXP_IS_SAFE)))
    product, carry = np.frexp(base * mantissa)
    # Beyond these exponents the answer is 1, or 0, whatever the mantissa.
    power = np.clip(exponent + shift + carry, -2000, 2)
    with np.errstate(under="ignore"):
        plain = np.minimum(1.0, np.ldexp(product, power.astype(np.int32)))
    return np.where(np.abs(ratio) <= EXP_IS_SAFE, plain, _accepted_by_logarithms(ratio, mantissa, exponent))


def _accepted_by_logarithms(ratio: FloatArray, mantissa: FloatArray, exponent: IntArray) -> FloatArray:
    with np.errstate(divide="ignore", under="ignore"):
        is_double = (mantissa == 0) | ((exponent >= _LEAST_EXPONENT) & (exponent <= _LARGEST_EXPONENT))
        double = np.ldexp(mantissa, np.where(is_double, exponent, 0).astype(np.int32))
        log = np.where(is_double, ratio + np.log(double), 0.0)
        # The large parts first: they may cancel, and what is left keeps its digits.
        rest = exponent * _LOG_2_LOW + np.log(mantissa)
        log = np.where(is_double, log, (ratio + exponent * _LOG_2_HIGH) + rest)
        return np.asarray(np.exp(np.minimum(0.0, log)))
