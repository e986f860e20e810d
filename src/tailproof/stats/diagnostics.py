"""Diagnostics of recorded rewards: atoms, tail index, symmetry, and whether a mean is reliable."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from tailproof.checks import array, require
from tailproof.formatting import natural_key, percent
from tailproof.stats.medians import SampleMedian
from tailproof.typing import Array, Index

__all__ = [
    "LEAST",
    "MOST_ASYMMETRY",
    "SAFE_TAIL_INDEX",
    "ArmRewards",
    "Rewards",
    "Tail",
    "asymmetry",
]


LEAST = 50
"""The fewest rewards from which a tail index is estimated."""
SAFE_TAIL_INDEX = 1.5
"""A mean exists above a tail index of one, and converges fast enough to be relied on above this."""
MOST_ASYMMETRY = 1.95
"""Bell-shaped symmetric laws exceed this in fewer than one in a hundred samples."""
_ATOM_SHARE = 0.05
"""A value is an atom if it makes up this share of the rewards of an arm."""
_MAX_ATOMS = 2
"""With more atoms than this the rewards are on a lattice, such as counts, and have no atoms."""
_MAX_COST_RATIO = 10
"""A mean that needs this many times the pulls of the best block median is not relied on."""
_MAX_SPREAD_RATIO = 3
"""Arms are rescaled before pooling if their spreads differ by more than this factor."""
_SMALL, _LARGE = 1e-150, 1e150
"""The squares of smaller and larger spreads underflow or overflow."""
_NORMAL_95 = 1.6449
"""The 95 % quantile of the normal law."""
_BLOCKS = (1, 3, 5, 9, 15, 25, 41)
"""Block lengths in which the best median is looked for; neighbours cost about the same."""


@dataclass(frozen=True)
class Tail:
    """The Hill estimate of a tail index, with a 90 % interval.

    1/α = (1/m) Σ_{i ≤ m} ln(x_(i)/x_(m+1)) over the largest of n sizes, m = ⌊2√n⌋

    Attributes
    ----------
    alpha, low, high : float
    robust_low : float
        The low end for an index that a few absurd rewards cannot move: it uses the median of the
        logarithms, which is ln 2/α, in place of their mean.

    Examples
    --------
    >>> found = Tail.of(np.random.default_rng(0).standard_cauchy(1000))
    >>> [round(x, 1) for x in (found.alpha, found.low, found.high)]
    [0.9, 0.7, 1.1]

    Source: Hill 1975. Differences: m is fixed; the interval is α(1 ± 1.645/√m).
    """

    alpha: float
    low: float
    high: float
    robust_low: float

    @classmethod
    def of(cls, errors: Array) -> Self:
        """Estimate the index from |errors|; it is infinite if m < 10."""
        size = np.sort(np.abs(errors))[::-1]
        size = size[size > 0]
        m = min(int(2 * math.sqrt(len(errors))), len(size) - 1)
        if m < 10:
            return cls(math.inf, math.inf, math.inf, math.inf)
        top = np.log(size[:m])
        logs = np.where(np.isinf(top), math.inf, top - np.log(min(size[m], 1e308)))
        alpha, half = _inverse(float(logs.mean())), _NORMAL_95 / math.sqrt(m)
        robust = math.log(2) * _inverse(float(np.median(logs)))
        robust_low = robust * (1 - _NORMAL_95 / math.log(2) / math.sqrt(m))
        return cls(alpha, alpha * (1 - half), alpha * (1 + half), robust_low)


@dataclass(frozen=True, eq=False)
class ArmRewards:
    """The recorded rewards of one arm.

    Attributes
    ----------
    name : str
    rewards : array
        In ascending order, at least one.

    Examples
    --------
    >>> arm = ArmRewards("a", np.array([0.0] * 8 + [1.0, 5.0]))
    >>> arm.atoms, arm.non_atoms.tolist(), arm.median
    ({0.0: 0.8}, [1.0, 5.0], 0.0)
    """

    name: str
    rewards: Array

    @cached_property
    def atoms(self) -> dict[float, float]:
        """The values that occur often, and the share of rewards that each makes up."""
        n = len(self.rewards)
        first = np.flatnonzero(np.append(True, self.rewards[1:] != self.rewards[:-1]))
        counts = np.diff(np.append(first, n))
        often = counts >= max(5, _ATOM_SHARE * n)
        values = self.rewards[first[often]].tolist()
        return dict(zip(values, (counts[often] / n).tolist(), strict=True))

    @cached_property
    def non_atoms(self) -> Array:
        """The rewards that are not atoms; all rewards if they are on a lattice."""
        if len(self.atoms) > _MAX_ATOMS:
            return self.rewards
        return self.rewards[~np.isin(self.rewards, list(self.atoms))]

    @cached_property
    def median(self) -> float:
        """The median of all rewards."""
        return _median(self.rewards)

    @cached_property
    def errors(self) -> Array:
        """All rewards minus their median, in ascending order."""
        return _centred(self.rewards, self.median)

    @cached_property
    def non_atom_errors(self) -> Array:
        """The non-atoms minus their own median."""
        values = self.non_atoms
        return _centred(values, _median(values)) if len(values) else values

    @cached_property
    def spread(self) -> float:
        """The median absolute error; if most errors are zero, the median of all other errors."""
        size = float(np.median(np.abs(self.errors)))
        return size or float(np.median(np.abs(self.non_atom_errors)) if len(self.non_atoms) else 0)

    @property
    def bounded(self) -> bool:
        """Whether the smallest and the largest reward are atoms, as with ratings and clicks."""
        return self.rewards[0] in self.atoms and self.rewards[-1] in self.atoms

    @cached_property
    def sizes(self) -> Array:
        """The distances of the non-atoms from an atom outside their range, or from their median.

        If all other rewards are zeros, sales are measured from zero, where they start.
        """
        values = self.non_atoms
        for atom in self.atoms:
            if len(values) and (atom < values[0] or atom > values[-1]):
                return np.abs(_centred(values, atom))
        return np.abs(self.non_atom_errors)

    @cached_property
    def tail(self) -> Tail:
        """The tail of the non-atoms."""
        return Tail.of(self.sizes)


@dataclass(frozen=True, eq=False)
class Rewards:
    """Recorded rewards by arm, and diagnostics of all arms together.

    Attributes
    ----------
    arms : tuple of ArmRewards
    missing : int
        How many rewards were missing.

    Examples
    --------
    >>> seen = Rewards.of(np.random.default_rng(0).standard_cauchy(1000))
    >>> seen.mean_is_safe, seen.symmetric
    (False, True)
    """

    arms: tuple[ArmRewards, ...]
    missing: int

    @classmethod
    def of(cls, rewards: ArrayLike, arms: ArrayLike | None = None) -> Self:
        """Group rewards by arm; NaN is a missing reward."""
        values = array("rewards", rewards) + 0.0  # so that zeros have no sign
        if values.ndim != 1:
            raise ValueError(
                "rewards must be one-dimensional, with the arm of each in arms; "
                f"got an array of shape {values.shape}"
            )
        names = [""] * len(values) if arms is None else _names(arms, len(values))
        arm_names = sorted(set(names), key=natural_key)
        number = {name: i for i, name in enumerate(arm_names)}
        arm = np.fromiter((number[name] for name in names), dtype=np.int64, count=len(names))
        return cls.grouped(values, arm, arm_names)

    @classmethod
    def grouped(cls, values: Array, arm: Index, names: Sequence[str]) -> Self:
        """Group rewards by the number of their arm; arms without a reward are left out."""
        present = ~np.isnan(values)
        missing = int((~present).sum())
        values, arm = values[present], arm[present]
        if len(values) < LEAST:
            raise ValueError(
                f"at least {LEAST} rewards are needed, got {len(values)} and {missing} missing; "
                "RevenueUCB(), for revenue, and LinStudentUCB() need no recorded rewards"
            )
        by_arm = [np.sort(values[arm == number]) for number in range(len(names))]
        pairs = zip(names, by_arm, strict=True)
        arms = tuple(ArmRewards(name, rewards) for name, rewards in pairs if len(rewards))
        if not values.any():
            raise ValueError(
                f"all {len(values)} rewards are 0, which says nothing about the arms yet: record "
                "more, or start with RevenueUCB(), which needs no recorded rewards"
            )
        if all(arm.rewards[0] == arm.rewards[-1] for arm in arms):
            if values.min() == values.max():
                raise ValueError(
                    f"all {len(values)} rewards are {values[0]:g}, so they cannot tell arms apart: "
                    "check the column, or record until some differ"
                )
            raise ValueError(
                f"the rewards of each arm are all equal, such as {values[0]:g}; without noise no "
                "filter is needed: pull every arm once and keep the best"
            )
        widest = max(arm.spread for arm in arms)
        if not (widest == 0 or _SMALL < widest < _LARGE):
            raise ValueError(
                f"rewards must have a spread of {_SMALL:g} to {_LARGE:g}, got {widest:g}: "
                "change their unit"
            )
        return cls(arms, missing)

    @cached_property
    def samples(self) -> list[Array]:
        """The rewards of each arm."""
        return [arm.rewards for arm in self.arms]

    @cached_property
    def count(self) -> int:
        """The number of rewards."""
        return sum(map(len, self.samples))

    @cached_property
    def spreads(self) -> Array:
        """The spread of each arm."""
        return np.array([arm.spread for arm in self.arms])

    @cached_property
    def spreads_differ(self) -> bool:
        """Whether the spreads of the arms differ by more than a factor of three."""
        spreads = self.spreads[self.spreads > 0]
        return bool(spreads.size and spreads.max() > _MAX_SPREAD_RATIO * spreads.min())

    @cached_property
    def errors(self) -> Array:
        """All rewards minus the median of their arm, in ascending order.

        If the spreads differ, arms are scaled to the widest, so that statements about the noise are
        valid for every arm.
        """
        return self._pooled([arm.errors for arm in self.arms])

    @cached_property
    def non_atom_errors(self) -> Array:
        """The same for the non-atoms of each arm, with their own medians."""
        return self._pooled([arm.non_atom_errors for arm in self.arms])

    def _pooled(self, errors: list[Array]) -> Array:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            factor = self.spreads.max() / self.spreads
        if not self.spreads_differ:
            factor = np.ones(len(self.arms))
        factor[~np.isfinite(factor)] = 1.0
        with np.errstate(over="ignore"):
            return np.sort(np.concatenate([c * e for c, e in zip(factor, errors, strict=True)]))

    @cached_property
    def tail(self) -> Tail:
        """The tail of all non-atoms, or the tail of an arm that is clearly heavier."""
        if self.heavier_arm is not None:
            return self.heavier_arm.tail
        return Tail.of(self._pooled([arm.sizes for arm in self.arms]))

    @cached_property
    def heavier_arm(self) -> ArmRewards | None:
        """The arm with a clearly heavier tail than all others, if there is one.

        Its interval lies below all other intervals, which happens to two equal arms in 2 % of
        samples.
        """
        judged = [arm for arm in self.arms if len(arm.non_atoms) >= LEAST]
        if len(judged) < 2:
            return None
        first, *others = sorted(judged, key=lambda arm: arm.tail.alpha)
        return first if first.tail.high < min(arm.tail.low for arm in others) else None

    @cached_property
    def tail_is_known(self) -> bool:
        """Whether there are enough non-atoms to estimate their tail, or rewards are bounded."""
        return len(self.non_atom_errors) >= LEAST or self.bounded

    @cached_property
    def bounded(self) -> bool:
        """Whether in every arm all rewards lie between two atoms, as ratings and clicks do."""
        return all(arm.bounded for arm in self.arms)

    @cached_property
    def mean_cost_ratio(self) -> float:
        """How many times the pulls of the best block median a mean needs; atoms are left out."""
        errors = self.non_atom_errors
        blocks = [k for k in _BLOCKS if k == 1 or 5 * k <= len(errors)]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            costs = [k * SampleMedian(errors, k).variance for k in blocks]
            return float(np.nan_to_num(np.divide(costs[0], min(costs)), nan=1.0, posinf=math.inf))

    @property
    def mean_is_safe(self) -> bool:
        """Whether a mean can be relied on.

        The tail index must be above `SAFE_TAIL_INDEX` with 95 % confidence, and a mean must need at
        most ten times the pulls of a median: a few extreme rewards may have all moments and still
        dominate a mean.
        """
        if self.bounded:
            return True
        safe = self.tail_is_known and self.tail.low > SAFE_TAIL_INDEX
        return safe and self.mean_cost_ratio <= _MAX_COST_RATIO

    @cached_property
    def symmetric(self) -> bool:
        """Whether the errors above and below the median look alike.

        Their `asymmetry` is at most `MOST_ASYMMETRY`.
        """
        return asymmetry(self.errors) <= MOST_ASYMMETRY

    @property
    def mostly_equal(self) -> bool:
        """Whether more than half of the rewards equal the median of their arm."""
        return bool(np.mean(self.errors == 0) > 0.5)

    @property
    def verdict(self) -> str:
        """What the rewards allow, in a few sentences."""
        return " ".join([*self._about_atoms(), self._about_tail(), *self._about_shape()])

    def _about_atoms(self) -> list[str]:
        shares: dict[float, float] = {}
        for arm in self.arms:
            for value, share in arm.atoms.items():
                shares[value] = shares.get(value, 0) + share * len(arm.rewards) / self.count
        often = sorted(((share, value) for value, share in shares.items()), reverse=True)
        often = [(share, value) for share, value in often if share >= _ATOM_SHARE][:3]
        words = ", ".join(f"{percent(share)} are {value:.6g}" for share, value in often)
        return [f"Of {self.count} rewards {words}."] if often else []

    def _about_tail(self) -> str:
        if self.bounded:
            low = min(float(arm.rewards[0]) for arm in self.arms)
            high = max(float(arm.rewards[-1]) for arm in self.arms)
            return (
                f"A mean of your rewards can be relied on as long as all lie between {low:.6g} and "
                f"{high:.6g}, as they do here."
            )
        others = len(self.non_atom_errors)
        if not self.tail_is_known:
            return (
                f"The other {others} are too few to estimate a tail index: "
                f"at least {LEAST} are needed."
            )
        tail = self.tail
        index = (
            f"tail index {tail.alpha:.2f}, between {tail.low:.2f} and {tail.high:.2f} "
            "with 90 % confidence"
        )
        if others < self.count:
            index += f", from the other {others}"
        if self.mean_is_safe:
            return f"A mean of your rewards can be relied on ({index})."
        if tail.low > SAFE_TAIL_INDEX:
            return (
                "A few of your rewards are far more extreme than the rest: a mean exists, but "
                f"needs {self.mean_cost_ratio:.0f} times the pulls of a median ({index})."
            )
        if tail.high < 1:
            return f"Your rewards have no mean ({index})."
        if tail.low <= 1 and tail.high > SAFE_TAIL_INDEX:
            return f"There are too few rewards to tell whether a mean can be relied on ({index})."
        if tail.low <= 1:
            return f"Your rewards behave as if they had no mean ({index})."
        return (
            "Your rewards may have a mean, but a sample mean converges too slowly to be relied on "
            f"({index})."
        )

    def _about_shape(self) -> list[str]:
        sentences = []
        if self.heavier_arm is not None:
            name, tail = self.heavier_arm.name, self.heavier_arm.tail
            sentences.append(
                f"Arm {name} has a heavier tail than the others (index {tail.alpha:.2f})."
            )
        if self.spreads_differ:
            by = sorted((arm for arm in self.arms if arm.spread > 0), key=lambda arm: arm.spread)
            sentences.append(
                f"The spreads of the arms differ: {by[-1].name} is "
                f"{by[-1].spread / by[0].spread:.3g} times as wide as {by[0].name}; statements "
                "about the noise are for the widest."
            )
        if not self.symmetric:
            sentences.append("The rewards are not symmetric: their median and mean differ.")
        return sentences


def asymmetry(errors: Array) -> float:
    """Return how much errors above and below zero differ: the statistic of Smirnov 1939.

    The largest difference of their two distribution functions, times √(n₊n₋/(n₊+n₋)); infinite if
    there are none on one side.

    >>> asymmetry(np.array([-2.0, -1.0, 1.0, 2.0])), asymmetry(np.array([1.0]))
    (0.0, inf)
    """
    above, below = np.sort(errors[errors > 0]), np.sort(-errors[errors < 0])
    if not (above.size and below.size):
        return math.inf
    at = np.concatenate([above, below])
    shares = (np.searchsorted(side, at, side="right") / side.size for side in (above, below))
    gap = float(np.abs(np.subtract(*shares)).max())
    return gap * math.sqrt(above.size * below.size / (above.size + below.size))


def _names(arms: Any, count: int) -> list[str]:
    given = np.asarray(arms, dtype=object)
    require(given.ndim == 1, "arms", "a sequence of names", f"an array of shape {given.shape}")
    require(len(given) == count, "arms", f"as many as rewards, {count}", len(given))
    names = ["" if name is None or name != name else str(name).strip() for name in given]
    empty = [str(row) for row, name in enumerate(names, start=1) if not name]
    if empty:
        raise ValueError(
            f"arms has no name in row {', '.join(empty[:3])} ({len(empty)} in all); "
            "name them or leave those rewards out"
        )
    return names


def _median(ranked: Array) -> float:
    """Return the median of sorted values without overflow."""
    half = len(ranked) // 2
    if len(ranked) % 2:
        return float(ranked[half])
    low, high = float(ranked[half - 1]), float(ranked[half])
    return low if low == high else low / 2 + high / 2


def _centred(ranked: Array, centre: float) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        errors = ranked - centre
    return np.where(np.isnan(errors), 0.0, errors)  # inf − inf


def _inverse(slope: float) -> float:
    return 1 / slope if slope > 0 else math.inf
