"""What recorded rewards say about their own law: tail, symmetry, and whether a mean would do."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tailproof.checks import require

__all__ = ["LEAST", "Rewards"]

Array = NDArray[np.float64]

LEAST = 50
"""The rewards below which nothing is said about their tail."""

_NORMAL_95 = 1.6449


@dataclass(frozen=True, eq=False)
class Rewards:
    """Rewards without their locations: each minus the median of its arm.

    Attributes
    ----------
    errors : array
        The centred rewards in ascending order.
    missing : int
        How many were missing.
    arms : int
        How many arms they come from.
    mean, median : float
        Of all rewards, before they were centred.

    Examples
    --------
    >>> seen = Rewards.of(np.random.default_rng(0).standard_cauchy(1000))
    >>> seen.mean_is_safe, seen.symmetric
    (False, True)
    """

    errors: Array
    missing: int
    arms: int
    mean: float
    median: float

    @classmethod
    def of(cls, rewards: ArrayLike, arms: ArrayLike | None = None) -> Self:
        """Centre the rewards by arm; NaN is a missing reward."""
        try:
            values = np.asarray(rewards, dtype=np.float64).reshape(-1)
        except (TypeError, ValueError):
            require(False, "rewards", "numbers", rewards)
        names = np.zeros(len(values)) if arms is None else np.asarray(arms).reshape(-1)
        require(len(names) == len(values), "arms", f"as many as rewards, {len(values)}", len(names))
        there = ~np.isnan(values)
        missing = int((~there).sum())
        values, names = values[there], names[there]
        if not values.size:
            raise ValueError(f"rewards must hold at least {LEAST} numbers, got {missing} missing")
        kinds, arm, counts = np.unique(names, return_inverse=True, return_counts=True)
        if arms is not None and counts.min() < 2:
            raise ValueError(
                f"every arm must have at least 2 rewards, got 1 of arm {kinds[counts.argmin()]}; "
                "leave that arm out or record more of it"
            )
        require(
            len(values) >= LEAST,
            "rewards",
            f"at least {LEAST} numbers, too few rewards to tell otherwise",
            len(values),
        )
        groups = np.split(values[np.argsort(arm, kind="stable")], np.cumsum(counts)[:-1])
        centres = np.array([np.median(group) for group in groups])
        with np.errstate(invalid="ignore", over="ignore"):
            errors = values - centres[arm]
            mean = float(values.mean())
        errors = np.sort(np.where(np.isnan(errors), 0.0, errors))  # an infinity less itself
        if errors[0] == errors[-1]:
            raise ValueError(
                f"rewards must differ, got {values[0]:g} for all pulls of an arm; without noise "
                "no filter is needed"
            )
        return cls(errors, missing, len(kinds), mean, float(np.median(values)))

    @cached_property
    def alpha(self) -> tuple[float, float, float]:
        """The tail index of the errors with its 90 % interval: estimate, low, high.

        1/α = (1/m) Σ_{i ≤ m} ln(x_(i)/x_(m+1)) over the largest |errors|, m = ⌊2√n⌋

        >>> [round(x, 1) for x in Rewards.of(np.random.default_rng(0).standard_cauchy(1000)).alpha]
        [0.9, 0.8, 1.1]

        Source: Hill 1975. Differences: m is fixed; the interval is α(1 ± 1.645/√m).
        """
        alpha = _inverse(float(self._log_ratios.mean()))
        spread = _NORMAL_95 / math.sqrt(len(self._log_ratios))
        return alpha, alpha * (1 - spread), alpha * (1 + spread)

    @property
    def bulk_alpha(self) -> float:
        """The low end of a tail index that a few absurd rewards cannot move.

        The median of ln(x_(i)/x_(m+1)) is ln 2/α, and takes the place of the mean of `alpha`.
        """
        alpha = math.log(2) * _inverse(float(np.median(self._log_ratios)))
        return alpha * (1 - _NORMAL_95 / math.log(2) / math.sqrt(len(self._log_ratios)))

    @cached_property
    def _log_ratios(self) -> Array:
        """ln(x_(i)/x_(m+1)) of the m largest |errors|; zeros if nearly all rewards are equal."""
        size = np.sort(np.abs(self.errors))[::-1]
        size = size[size > 0]
        m = min(int(2 * math.sqrt(len(self.errors))), len(size) - 1)
        if m < 10:
            return np.zeros(10)
        top = np.log(size[:m])
        return np.where(np.isinf(top), math.inf, top - np.log(min(size[m], 1e308)))

    @property
    def mean_is_safe(self) -> bool:
        """Whether a mean can be relied on: the tail index is above 1.5 with 95 % confidence.

        An index above one is a mean that exists; the half above it lets averages settle.
        """
        return self.alpha[1] > 1.5

    @cached_property
    def symmetric(self) -> bool:
        """Whether the errors above and below the median look alike.

        The largest difference of the two distribution functions, times √(n₊n₋/(n₊+n₋)), is at most
        1.95, which bell-shaped symmetric laws exceed in fewer than one in a hundred samples.
        """
        above, below = self.errors[self.errors > 0], -self.errors[self.errors < 0][::-1]
        if not (above.size and below.size):
            return False
        at = np.concatenate([above, below])
        shares = (np.searchsorted(side, at, side="right") / side.size for side in (above, below))
        gap = np.abs(np.subtract(*shares)).max()
        size = above.size * below.size / (above.size + below.size)
        return bool(gap * math.sqrt(size) <= 1.95)

    @property
    def verdict(self) -> str:
        """What the tail allows, in a sentence or two."""
        alpha, low, high = self.alpha
        if self.mean_is_safe:
            tail = "A mean of your rewards can be relied on"
        elif high < 1:
            tail = "Your rewards have no mean"
        elif low <= 1:
            tail = "Your rewards behave as if they had no mean"
        else:
            tail = "Your rewards may have a mean, but it settles too slowly to be relied on"
        tail += f" (tail index {alpha:.2f}, between {low:.2f} and {high:.2f} with 90 % confidence)."
        if not self.symmetric:
            tail += (
                " They are not symmetric: a filter of medians aims at the median "
                f"({self.median:.4g}), which is not the mean"
                + (f" ({self.mean:.4g})." if self.mean_is_safe else ".")
            )
        return tail


def _inverse(slope: float) -> float:
    return 1 / slope if slope > 0 else math.inf
