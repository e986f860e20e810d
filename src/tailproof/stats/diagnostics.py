"""What recorded rewards say about their laws: atoms, tails, symmetry, whether a mean would do."""

import math
import re
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from tailproof.checks import array, require
from tailproof.stats.medians import SampleMedian
from tailproof.typing import Array

__all__ = ["LEAST", "SAFE", "ArmRewards", "Rewards", "Tail"]


LEAST = 50
"""The rewards below which nothing is said about their tail."""
ATOM = 0.05
"""The share of an arm's rewards that makes a value an atom."""
SAFE = 1.5
"""The tail index above which a mean is relied on: it exists above one, and settles above this."""
WILD = 10
"""A mean that needs this many times the pulls of the best block median is not relied on."""
UNLIKE = 3
"""Arms whose spreads differ by more than this are not taken as one."""

_FEW = 2
"""More atoms than this are a lattice, such as counts, and no atoms."""
_SMALL, _LARGE = 1e-150, 1e150
"""Squares of smaller and larger spreads are no floats."""
_NORMAL_95 = 1.6449
_BLOCKS = (1, 3, 5, 9, 15, 25, 41)


@dataclass(frozen=True)
class Tail:
    """The tail index of sizes with its 90 % interval.

    1/α = (1/m) Σ_{i ≤ m} ln(x_(i)/x_(m+1)) over the largest of n sizes, m = ⌊2√n⌋

    Attributes
    ----------
    alpha, low, high : float
    bulk : float
        The low end of an index that a few absurd rewards cannot move: the median of the logarithms,
        which is ln 2/α, takes the place of their mean.

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
    bulk: float

    @classmethod
    def of(cls, errors: Array) -> Self:
        """Judge errors by their sizes; without at least ten to compare, there is no tail."""
        size = np.sort(np.abs(errors))[::-1]
        size = size[size > 0]
        m = min(int(2 * math.sqrt(len(errors))), len(size) - 1)
        if m < 10:
            return cls(math.inf, math.inf, math.inf, math.inf)
        top = np.log(size[:m])
        logs = np.where(np.isinf(top), math.inf, top - np.log(min(size[m], 1e308)))
        alpha, spread = _inverse(float(logs.mean())), _NORMAL_95 / math.sqrt(m)
        bulk = math.log(2) * _inverse(float(np.median(logs)))
        low_bulk = bulk * (1 - _NORMAL_95 / math.log(2) / math.sqrt(m))
        return cls(alpha, alpha * (1 - spread), alpha * (1 + spread), low_bulk)


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
    >>> arm.atoms, arm.rest.tolist(), arm.median
    ({0.0: 0.8}, [1.0, 5.0], 0.0)
    """

    name: str
    rewards: Array

    @cached_property
    def atoms(self) -> dict[float, float]:
        """The values that make up a share of the rewards of their own, and those shares."""
        n = len(self.rewards)
        first = np.flatnonzero(np.append(True, self.rewards[1:] != self.rewards[:-1]))
        counts = np.diff(np.append(first, n))
        often = counts >= max(5, ATOM * n)
        values = self.rewards[first[often]].tolist()
        return dict(zip(values, (counts[often] / n).tolist(), strict=True))

    @cached_property
    def rest(self) -> Array:
        """The rewards that are no atoms; all of them where there are many, as counts have."""
        if len(self.atoms) > _FEW:
            return self.rewards
        return self.rewards[~np.isin(self.rewards, list(self.atoms))]

    @cached_property
    def median(self) -> float:
        """The median of all rewards."""
        return _middle(self.rewards)

    @cached_property
    def errors(self) -> Array:
        """All rewards about their median, in ascending order."""
        return _about(self.rewards, self.median)

    @cached_property
    def loose_errors(self) -> Array:
        """The rewards that are no atoms about their own median."""
        return _about(self.rest, _middle(self.rest)) if len(self.rest) else self.rest

    @cached_property
    def spread(self) -> float:
        """The median size of an error, or of a loose one where most are zero."""
        size = float(np.median(np.abs(self.errors)))
        return size or float(np.median(np.abs(self.loose_errors)) if len(self.rest) else 0.0)

    @property
    def bounded(self) -> bool:
        """Whether the smallest and the largest reward are atoms, as with ratings and clicks."""
        return self.rewards[0] in self.atoms and self.rewards[-1] in self.atoms

    @cached_property
    def sizes(self) -> Array:
        """How far loose rewards lie from their median, or from an atom that they lie beyond.

        Sales are measured from zero where all other rewards are zeros: that is where they begin.
        """
        for atom in self.atoms:
            if len(self.rest) and (atom < self.rest[0] or atom > self.rest[-1]):
                return np.abs(_about(self.rest, atom))
        return np.abs(self.loose_errors)

    @cached_property
    def tail(self) -> Tail:
        """The tail of the loose rewards."""
        return Tail.of(self.sizes)


@dataclass(frozen=True, eq=False)
class Rewards:
    """Recorded rewards by arm, and what they say together.

    Attributes
    ----------
    arms : tuple of ArmRewards
    missing : int
        How many were missing.

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
        """Sort rewards by their arms; NaN is a missing reward."""
        values = array("rewards", rewards) + 0.0  # so that zeros have no sign
        require(
            values.ndim == 1,
            "rewards",
            "a sequence of numbers, with the arm of each in arms",
            f"an array of shape {values.shape}",
        )
        names = [""] * len(values) if arms is None else _names(arms, len(values))
        there = ~np.isnan(values)
        missing = int((~there).sum())
        values, names = values[there], list(compress(names, there.tolist()))
        if len(values) < LEAST:
            raise ValueError(
                f"rewards must be at least {LEAST} numbers, too few rewards to tell otherwise, got "
                f"{len(values)} and {missing} missing; AutoFiltered learns as it goes, without any"
            )
        known = sorted(set(names), key=_natural)
        place = {name: i for i, name in enumerate(known)}
        arm = np.fromiter((place[name] for name in names), dtype=np.int64, count=len(names))
        values = values[np.lexsort((values, arm))]
        groups = np.split(values, np.cumsum(np.bincount(arm))[:-1])
        found = tuple(ArmRewards(*pair) for pair in zip(known, groups, strict=True))
        few = [own.name for own in found if len(own.rewards) < 2]
        if arms is not None and few:
            raise ValueError(
                f"every arm must have at least 2 rewards, got 1 of arm {few[0]}; "
                "leave that arm out or record more of it"
            )
        if all(own.rewards[0] == own.rewards[-1] for own in found):
            raise ValueError(
                f"rewards must differ, got {values[0]:g} for all pulls of an arm; without noise "
                "no filter is needed: pull every arm once and stay with the best"
            )
        widest = max(own.spread for own in found)
        if not (widest == 0 or _SMALL < widest < _LARGE):
            raise ValueError(
                f"rewards must spread by {_SMALL:g} to {_LARGE:g}, got {widest:g}: change the unit"
            )
        return cls(found, missing)

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
    def unlike(self) -> bool:
        """Whether the spreads of the arms differ by more than the factor `UNLIKE`."""
        known = self.spreads[self.spreads > 0]
        return bool(known.size and known.max() > UNLIKE * known.min())

    @cached_property
    def errors(self) -> Array:
        """All rewards about the median of their arm, in ascending order.

        Arms whose spreads differ much are stretched to the widest, so that what is said of the
        noise holds for every arm.
        """
        return self._pooled([arm.errors for arm in self.arms])

    @cached_property
    def loose_errors(self) -> Array:
        """The same for rewards that are no atoms, about the medians of these."""
        return self._pooled([arm.loose_errors for arm in self.arms])

    def _pooled(self, errors: list[Array]) -> Array:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            stretch = self.spreads.max() / self.spreads
        if not self.unlike:
            stretch = np.ones(len(self.arms))
        stretch[~np.isfinite(stretch)] = 1.0
        with np.errstate(over="ignore"):
            return np.sort(np.concatenate([c * e for c, e in zip(stretch, errors, strict=True)]))

    @cached_property
    def tail(self) -> Tail:
        """The tail of all loose rewards; where one arm's is clearly heavier, of that arm."""
        if self.heavier is not None:
            return self.heavier.tail
        return Tail.of(self._pooled([arm.sizes for arm in self.arms]))

    @cached_property
    def heavier(self) -> ArmRewards | None:
        """The arm whose tail is heavier than those of all others, if there is one.

        Its interval is below all of theirs, which two equal arms achieve in one of fifty samples.
        """
        judged = [arm for arm in self.arms if len(arm.rest) >= LEAST]
        if len(judged) < 2:
            return None
        first, *others = sorted(judged, key=lambda arm: arm.tail.alpha)
        return first if first.tail.high < min(arm.tail.low for arm in others) else None

    @property
    def differ(self) -> bool:
        """Whether the arms have noises of different spread, or one has a heavier tail."""
        return self.unlike or self.heavier is not None

    @cached_property
    def known(self) -> bool:
        """Whether there are enough loose rewards to judge their tail, or no need to."""
        return len(self.loose_errors) >= LEAST or self.bounded

    @cached_property
    def bounded(self) -> bool:
        """Whether in every arm all rewards lie between two atoms, as ratings and clicks do."""
        return all(arm.bounded for arm in self.arms)

    @cached_property
    def wildness(self) -> float:
        """How many times the pulls of the best block median a mean of loose rewards needs."""
        errors = self.loose_errors
        blocks = [k for k in _BLOCKS if k == 1 or 5 * k <= len(errors)]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            costs = [k * SampleMedian(errors, k).variance for k in blocks]
            return float(np.nan_to_num(np.divide(costs[0], min(costs)), nan=1.0, posinf=math.inf))

    @property
    def mean_is_safe(self) -> bool:
        """Whether a mean can be relied on.

        The tail index is above `SAFE` with 95 % confidence, and a mean needs at most `WILD` times
        the pulls of a median: a few rewards far wilder than the rest may have moments and still
        drown it.
        """
        if self.bounded:
            return True
        return self.known and self.tail.low > SAFE and self.wildness <= WILD

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
    def mostly_equal(self) -> bool:
        """Whether more than half of the rewards are the median of their arm."""
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
        often = [(share, value) for share, value in often if share >= ATOM][:3]
        if not often:
            return []
        words = ", ".join(f"{share:.0%} are {value:.6g}" for share, value in often)
        return [f"Of {self.count} rewards {words}."]

    def _about_tail(self) -> str:
        if self.bounded:
            return "A mean of your rewards can be relied on: they lie between two common values."
        loose = len(self.loose_errors)
        if not self.known:
            return (
                f"The {loose} others are too few to tell their tail: at least {LEAST} are needed."
            )
        tail = self.tail
        index = (
            f"tail index {tail.alpha:.2f}, between {tail.low:.2f} and {tail.high:.2f} "
            "with 90 % confidence"
        )
        if loose < self.count:
            index += f", from the {loose} others"
        if self.mean_is_safe:
            return f"A mean of your rewards can be relied on ({index})."
        if tail.low > SAFE:
            return (
                "A few of your rewards are far wilder than the rest: a mean exists, but needs "
                f"{self.wildness:.0f} times the pulls of a median ({index})."
            )
        if tail.high < 1:
            return f"Your rewards have no mean ({index})."
        if tail.low <= 1 and tail.high > SAFE:
            return f"They are too few to tell whether a mean can be relied on ({index})."
        if tail.low <= 1:
            return f"Your rewards behave as if they had no mean ({index})."
        return f"Your rewards may have a mean, but it settles too slowly to be relied on ({index})."

    def _about_shape(self) -> list[str]:
        found = []
        if self.heavier is not None:
            name, own = self.heavier.name, self.heavier.tail
            found.append(f"Arm {name} has a heavier tail than the others (index {own.alpha:.2f}).")
        if self.unlike:
            by = sorted((arm for arm in self.arms if arm.spread > 0), key=lambda arm: arm.spread)
            found.append(
                f"The arms are not alike: {by[-1].name} spreads "
                f"{by[-1].spread / by[0].spread:.3g} times as wide as {by[0].name}; what is said "
                "of the noise is for the widest."
            )
        if not self.symmetric:
            found.append("They are not symmetric: median and mean are not the same.")
        return found


def _names(arms: Any, count: int) -> list[str]:
    given = np.asarray(arms, dtype=object)
    require(given.ndim == 1, "arms", "a sequence of names", f"an array of shape {given.shape}")
    require(len(given) == count, "arms", f"as many as rewards, {count}", len(given))
    names = ["" if name is None or name != name else str(name).strip() for name in given]
    empty = [row for row, name in enumerate(names, start=1) if not name]
    if empty:
        raise ValueError(
            f"arms must all have names, got {len(empty)} without one, in row "
            f"{', '.join(map(str, empty[:3]))}; name them or leave those rewards out"
        )
    return names


def _natural(name: str) -> tuple[Any, ...]:
    """Return a key that puts 10 after 9."""
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in _parts(name))


def _parts(name: str) -> list[str]:
    return [part for part in re.split(r"(\d+)", name) if part]


def _middle(ranked: Array) -> float:
    """Return the median of sorted values without overflow."""
    half = len(ranked) // 2
    if len(ranked) % 2:
        return float(ranked[half])
    low, high = float(ranked[half - 1]), float(ranked[half])
    return low if low == high else low / 2 + high / 2


def _about(ranked: Array, centre: float) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        errors = ranked - centre
    return np.where(np.isnan(errors), 0.0, errors)  # an infinity less itself


def _inverse(slope: float) -> float:
    return 1 / slope if slope > 0 else math.inf
