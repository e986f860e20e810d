"""A filter that tunes itself: no tail index, no scale, no centre and no pilot data are needed."""

import math
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import Count, Range
from tailproof.policies.base import LONGEST, Array, Index, Policy, State
from tailproof.policies.oful import OFUL
from tailproof.policies.state.base import ROOM, Finite, Rule
from tailproof.stats.estimators import Median
from tailproof.stats.pitman import pitman
from tailproof.wrappers.base import Repeating
from tailproof.wrappers.intercept import direction, with_constant
from tailproof.wrappers.pilot import Piloted, Relearning

__all__ = ["AutoFiltered"]

FINEST = 1e-3
"""The unit is at least this share of the signal.

Smaller noise makes no difference: squares of lengths differ by 10⁶ already.
"""


class Units(NamedTuple):
    """The units in which A sees arms and rewards: one number of each for every path."""

    centre: Array
    spread: Array
    unit: Array
    length: Array
    stretch: Array


@dataclass(eq=False)
class Tuned(Piloted):
    """The state of the policy inside, its first decisions, and the units.

    Attributes
    ----------
    centre, spread, unit, length, stretch : arrays of shape (paths,)
        See `AutoFiltered`; rewards are divided by 4. A unit of zero means that it is not known yet.
    """

    centre: Finite
    spread: Finite
    unit: Finite
    length: Annotated[Array, Rule(finite=True, blank=1)]
    stretch: Annotated[Array, Rule(finite=True, blank=1)]

    def units(self, rows: Index | slice = slice(None)) -> Units:
        """Return the units of some paths."""
        return Units(*(getattr(self, name)[rows] for name in Units._fields))

    def note(self, rows: Index | slice, units: Units) -> None:
        """Store the units of some paths."""
        for name, values in units._asdict().items():
            getattr(self, name)[rows] = values


@dataclass(frozen=True)
class AutoFiltered(Repeating[Tuned], Relearning[Tuned]):
    """Any policy A, given one robust estimate instead of ñ rewards, in units that suit A.

    A learns (r_t − centre)/unit and sees stretch·(x/length, 1) in place of x, where
    r_t = ∫ m Π_i f(r_i − m) dm / ∫ Π_i f(r_i − m) dm over m,  f(x) = 1/(spread² + x²)

    r_t is Pitman's estimator, the best one that follows every shift, for Cauchy noise with this
    spread. It remains unbiased for any other symmetric noise, and its error stays within a small
    factor of the smallest possible, from normal noise to noise without a mean.

    Everything else is estimated from the first `settle` decisions, again after each of them, and
    A then learns all of them again:

    spread = median |r_i − m_t|, m_t the median of its decision; where this is zero, as under noise
    of two values, the median of the distances that are not zero; centre = median m_t, signal =
    √(mean (m_t − centre)²), length = √(mean ‖x_t‖²); unit = the standard error of r_t, spread √(E
    ψ²/(ñ − 1))/E ψ', ψ(z) = 2z/(1 + z²), z the residuals of all rewards; at least a thousandth of
    the signal; stretch = max(1, signal/unit), so that coordinates of θ as A sees it are of size
    one; rounded to a power of two, so that arms which tie still do.

    So A's noise and prior fit a `noise_scale` and a `ridge` of 1. Multiplying
    all rewards by c > 0, or adding a constant, changes no decision. Rewards are expected to keep
    their scale: later changes of the scale are not followed. Memory stops growing once the units
    have settled; until then the arms of all decisions are kept.

    `AutoFiltered(OFUL(bonus=0.4))`, `AutoFiltered(LinTS(bonus=0.05))`,
    `AutoFiltered(UCB1(bonus=0.7))` and `AutoFiltered(ThompsonSampling(prior_scale=1000))` did
    well on the tuning problems; `OFUL(bonus=0.3)` has less regret on most, but some stuck paths.

    Parameters
    ----------
    policy : Policy
        The algorithm A; by default ``OFUL(bonus=0.4)``, which has a fourth of the regret of
        ``OFUL()`` here: a bonus of 1 covers the worst noise of a proof.
    repeats : int
        ñ, the rewards behind each reward that A is given, at least 3.
    settle : int
        The number of decisions after which the units stay as they are.
    intercept : bool
        Whether rewards may have an offset. Without it the centre is zero, A sees
        stretch·x/length, and one dimension is saved. K-armed policies ignore vectors anyway. `PEGE`
        and `LazyTrackAndStop` need as many independent arms as dimensions: K unit vectors must do
        without, and can, as a constant is one of their combinations.

    Examples
    --------
    >>> from tailproof import OFUL, environments, noise, simulate
    >>> wild = environments.k_armed(noise.StudentT(0.5, scale=100), locations=(5000, 5100, 5200))
    >>> result = simulate(
    ...     {"alone": OFUL(), "tuned": AutoFiltered()}, wild, horizon=3000, paths=20
    ... )
    >>> bool(result.median("tuned")[-1] < 0.3 * result.median("alone")[-1])
    True

    Source: Algorithm 2 of Zhong et al. 2021 for the idea of a filter; Pitman 1939 for the
    estimator; Huber 1967 for the standard error. Differences: Pitman's estimator in place of the
    mean of medians; all units. E ψ' is taken to be at least E w/4, w(z) = 2/(1 + z²), so that it
    is positive whatever the rewards are.

    Kind: around a policy.
    Needs: nothing.
    Pulls: 21 by default (`repeats`).
    Learns without a mean: yes.
    """

    policy: Policy[Any] = field(default_factory=lambda: OFUL(bonus=0.4))
    repeats: Annotated[int, Range(at_least=3, at_most=1e15)] = field(kw_only=True, default=21)
    settle: Count = field(kw_only=True, default=16)
    intercept: bool = field(kw_only=True, default=True)

    @property
    def invariances(self) -> frozenset[str]:
        """The unit does not matter, nor an offset if there is an intercept."""
        return frozenset({"units", "offset"} if self.intercept else {"units"})

    def with_scale(self, scale: float) -> Self:
        """Raise ``ValueError``: this filter learns the scale of the noise by itself."""
        raise ValueError(f"the noise scale cannot be set: {self!r} learns it")

    def propose(self, state: Tuned, rng: np.random.Generator) -> Array:
        """Return the direction that A proposes."""
        inside = super().propose(state, rng)
        return direction(inside) if self.intercept else inside

    def estimate(self, state: Tuned) -> Array | None:
        """Return the estimate of θ, in the units of the rewards and without the intercept."""
        inside = super().estimate(state)
        if inside is None:
            return None
        size = 4 * state.unit * state.stretch / state.length
        return inside[:, : state.dim] * size[:, None]

    def _init(self, paths: int, arms: int, dim: int) -> Tuned:
        room = (paths, ROOM, self.policy.pulls, self.repeats)
        return Tuned.around(
            self._blank(paths, arms, dim), dim=dim, settle=self.settle, pilot_rewards=np.zeros(room)
        )

    def _blank(self, paths: int, arms: int, dim: int) -> State:
        """Return the state of A before it has learned anything."""
        inner: State = self.policy.init(paths, arms, dim + self.intercept)
        return inner

    @property
    def _longest(self) -> float:
        return LONGEST  # A sees arms in units of their length

    def _arms(self, state: Tuned, arms: Array) -> Array:
        return self._seen(arms, state.units())

    def _learn_on(
        self,
        state: Tuned,
        inner: State,
        rows: Index | slice,
        arms: Array,
        chosen: Index,
        raw: Array,
        propensity: Array | None,
    ) -> None:
        units = self._woken(state.units(rows), raw[rows])
        seen, filtered = self._seen(arms[rows], units), self._filtered(raw[rows], units)
        self.policy.learn_unchecked(inner, seen, chosen[rows], filtered, propensity)
        state.note(rows, units)

    def _learn_again(self, part: Tuned, age: int) -> None:
        units = self._tuned(part, age)
        seen = np.stack([self._seen(part.pilot_arms[:, t], units) for t in range(age)], axis=1)
        part.inner = self._blank(part.paths, part.arms, part.dim)
        filtered = self._filtered(part.pilot_rewards[:, :age], units)
        part.teach(self.policy, part.inner, seen, filtered)
        part.note(slice(None), units)

    def _seen(self, arms: Array, units: Units) -> Array:
        """Return the arms for A."""
        seen = arms / units.length[:, None, None]
        if self.intercept:
            seen = with_constant(seen, 1.0)
        seen = seen * units.stretch[:, None, None]
        if super()._longest < LONGEST:  # arms that vary wildly may still be too long for A
            length = np.linalg.norm(seen, axis=-1, keepdims=True)
            seen /= np.maximum(2 * length / super()._longest, 1.0)
        return seen

    def _filtered(self, raw: Array, units: Units) -> Array:
        """Return the rewards for A: one for each ñ of the last axis."""
        middle, error = _split(raw)
        centre, spread, unit = (
            part.reshape(-1, *(1,) * (middle.ndim - 1))
            for part in (units.centre, _or_one(units.spread), _or_one(units.unit))
        )
        return (middle - centre + pitman(error, spread)) / unit

    def _tuned(self, pilot: Tuned, decisions: int) -> Units:
        """Return the units, estimated from the first decisions."""
        raw, paths = pilot.pilot_rewards[:, :decisions], np.arange(pilot.paths)[:, None]
        x = pilot.pilot_arms[paths, np.arange(decisions), pilot.pilot_chosen[:, :decisions]]
        middle = _split(raw)[0].reshape(pilot.paths, -1)
        finite = np.isfinite(middle)
        centre = _median(middle, finite) if self.intercept else np.zeros(pilot.paths)
        spread, unit, signal = self._scales(raw, centre)
        length = np.sqrt(np.vecdot(x, x).mean(axis=1))
        stretch = np.exp2(np.round(np.log2(np.maximum(1.0, signal / _or_one(unit)))))
        return Units(centre, spread, unit, _or_one(length), stretch)

    def _woken(self, units: Units, raw: Array) -> Units:
        """Estimate the scales of paths whose rewards were all equal so far: A learned zeros."""
        asleep = units.unit == 0
        if not asleep.any():
            return units
        spread, unit = units.spread.copy(), units.unit.copy()
        spread[asleep], unit[asleep], _ = self._scales(raw[asleep], units.centre[asleep])
        return units._replace(spread=spread, unit=unit)

    def _scales(self, raw: Array, centre: Array) -> tuple[Array, Array, Array]:
        """Return the spread and the unit, and how far rewards are from the centre; by path."""
        middle, error = (part.reshape(len(raw), -1) for part in _split(raw))
        size = np.abs(error)
        spread = Median()(size)
        nonzero_median = _median(size, (size > 0) & np.isfinite(size))
        spread = np.where((spread > 0) & np.isfinite(spread), spread, nonzero_median)
        signal = _rms(np.where(np.isfinite(middle), middle - centre[:, None], 0.0))
        spread = np.maximum(spread, FINEST * signal * math.sqrt(self.repeats / 2))
        scale = _or_one(spread)[:, None]
        by_decision = error.reshape(len(raw), -1, self.repeats)
        z = (by_decision - pitman(by_decision, scale)[..., None]).reshape(error.shape) / scale
        w = 2 / (1 + z * z)  # ψ = z w, ψ² = w (2 − w), ψ' = w (w − 1)
        slope = np.maximum((w * (w - 1)).mean(axis=1), w.mean(axis=1) / 4)
        noise = spread * np.sqrt((w * (2 - w)).mean(axis=1) / (self.repeats - 1)) / slope
        return spread, np.maximum(noise, FINEST * signal), signal


def _split(raw: Array) -> tuple[Array, Array]:
    """Return the medians along the last axis, and distances from them, 0 if they are infinite.

    Both are divided by 4, so that no difference of two is too large for a float.
    """
    quarter = raw / 4
    middle = Median()(quarter)
    finite = np.isfinite(middle)
    distance = quarter - np.where(finite, middle, 0.0)[..., None]
    return middle, np.where(finite[..., None], distance, 0.0)


def _median(x: Array, among: NDArray[np.bool_]) -> Array:
    """Return the median of some numbers of each row; zero where there are none."""
    ordered = np.sort(np.where(among, x, np.inf), axis=1)
    count, rows = among.sum(axis=1), np.arange(len(x))
    low, high = np.maximum(count - 1, 0) // 2, np.minimum(count // 2, x.shape[1] - 1)
    return np.where(count > 0, (ordered[rows, low] + ordered[rows, high]) / 2, 0.0)


def _rms(x: Array) -> Array:
    """Return the root of the mean square of each row, whatever the size of its numbers."""
    largest = _or_one(np.abs(x).max(axis=1))
    return np.asarray(largest * np.sqrt(((x / largest[:, None]) ** 2).mean(axis=1)))


def _or_one(x: Array) -> Array:
    """Return the numbers with one in place of zero."""
    return np.where(x > 0, x, 1.0)
