"""Integer ratings of one object alone: the paper's Pointwise-MH baselines (appendix on experiments).

Texts, molecules and translations are rated from 1 to 10, images from 0 to 10; a state's rating is the mean of N
replies. The acceptance rules that use it are in `sampler.rules.pointwise`; they are exact for the density their
formula names only if a state always keeps the rating it got first, so the caller stores it with the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class RatingScale:
    """Whole numbers from `lowest` to `highest`.

    Raises:
        ValueError: the scale is empty, negative or longer than 0 to 100.
    """

    lowest: int = 1
    highest: int = 10

    def __post_init__(self) -> None:
        if not 0 <= self.lowest < self.highest <= 100:
            raise ValueError(f"lowest must be below highest, both from 0 to 100, not {self.lowest} and {self.highest}")

    @property
    def answers(self) -> tuple[str, ...]:
        """The replies that are ratings."""
        return tuple(str(rating) for rating in range(self.lowest, self.highest + 1))


def mean_rating(ratings: Sequence[int], scale: RatingScale) -> float:
    """Return the mean of N ratings.

    Raises:
        ValueError: there is none, or one is off the scale.
    """
    if not ratings:
        raise ValueError("ratings must not be empty")
    if not all(scale.lowest <= rating <= scale.highest for rating in ratings):
        raise ValueError(f"ratings must lie between {scale.lowest} and {scale.highest}")
    return sum(ratings) / len(ratings)
