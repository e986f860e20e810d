"""A filter that tunes itself: no tail index, no scale and no pilot data are needed."""

import math
from dataclasses import dataclass, field
from typing import Annotated, Any, Self

import numpy as np

from tailproof.checks import Count, Range
from tailproof.policies.base import Array, Index
from tailproof.policies.state.base import Buffer, Finite, Rule
from tailproof.stats.estimators import Median
from tailproof.stats.pitman import pitman
from tailproof.wrappers.base import Wrapped, Wrapper

__all__ = ["AutoFiltered"]


@dataclass(eq=False)
class Tuned(Wrapped):
    """What a self-tuning filter knows beside the state of the policy inside.

    Attributes
    ----------
    spread : array of shape (paths,)
        The median distance of a reward from its location; 1 before the first decision.
    pilot_arms, pilot_chosen, pilot_rewards, pilot_propensity : arrays of shape (paths, settle, …)
        The first decisions of each path; empty once every spread has settled.
    settle : int
        After how many decisions a spread stays as it is.
    """

    spread: Finite
    pilot_arms: Annotated[Array, Rule(finite=True, buffer=1)]
    pilot_chosen: Annotated[Index, Rule(least=0, arms=True, buffer=1)]
    pilot_rewards: Buffer
    pilot_propensity: Buffer
    settle: int

    def _room_needed(self) -> int:
        return self.settle if self.decisions.min() < self.settle else 0


@dataclass(frozen=True)
class AutoFiltered(Wrapper[Tuned]):
    """Any policy A, given one tame number of known scale in place of ñ rewards of any scale.

    A learns r_t / unit, where r_t = ∫ m Π_i f(r_i − m) dm / ∫ Π_i f(r_i − m) dm over m,
    f(x) = 1/(spread² + x²), unit = spread √(2/ñ), spread = median |r_i − median of its decision|

    r_t is Pitman's estimator, the best one that follows every shift, for Cauchy noise with this
    spread. It remains unbiased for any other symmetric noise, and its error stays within a small
    factor of the smallest possible, from normal noise to noise without a mean. The
    noise in r_t / unit has a scale of about one, which is what `OFUL` and its relatives assume.

    The spread is learned anew in each of the first `settle` decisions, from all rewards so far,
    and A learns those decisions anew with it; from then on it stays. `estimate` is in the units of
    the rewards.

    Parameters
    ----------
    policy : Policy
        The algorithm A.
    repeats : int
        ñ, the rewards behind each reward that A is given, at least 3.
    settle : int
        The number of decisions after which the spread stays as it is.

    Examples
    --------
    >>> from tailproof import OFUL, environments, noise, simulate
    >>> wild = environments.k_armed(noise.StudentT(0.5, scale=100), locations=(0, 100, 200))
    >>> result = simulate(
    ...     {"alone": OFUL(), "tuned": AutoFiltered(OFUL())}, wild, horizon=3000, paths=20
    ... )
    >>> bool(result.median("tuned")[-1] < 0.3 * result.median("alone")[-1])
    True

    Source: Algorithm 2 of Zhong et al. 2021 for the idea of a filter; Pitman 1939 for the
    estimator. Differences: Pitman's estimator in place of the mean of medians; the scale.
    """

    repeats: Annotated[int, Range(at_least=3, at_most=1e15)] = field(kw_only=True, default=21)
    settle: Count = field(kw_only=True, default=8)

    @property
    def pulls(self) -> int:
        """The raw rewards wanted for one decision."""
        return self.policy.pulls * self.repeats

    def with_scale(self, scale: float) -> Self:
        """Refuse: this filter learns the scale of the noise by itself."""
        raise ValueError(f"policy must be one that does not learn its noise scale, got {self!r}")

    def estimate(self, state: Tuned) -> Array | None:
        """Return the estimate of the policy inside, in the units of the rewards."""
        inside = super().estimate(state)
        return None if inside is None else inside * self._unit(state.spread)[:, None]

    def _unit(self, spread: Array) -> Array:
        return spread * math.sqrt(2 / self.repeats)  # ½: the Fisher information of a Cauchy law

    def _init(self, paths: int, arms: int, dim: int) -> Tuned:
        return Tuned.around(
            self.policy.init(paths, arms, dim),
            settle=self.settle,
            spread=np.ones(paths),
            pilot_arms=np.zeros((paths, self.settle, arms, dim)),
            pilot_chosen=np.zeros((paths, self.settle), dtype=np.int64),
            pilot_rewards=np.zeros((paths, self.settle, self.policy.pulls, self.repeats)),
            pilot_propensity=np.ones((paths, self.settle)),
        )

    def _learn(self, state: Tuned, arms: Array, chosen: Index, rewards: Array, **more: Any) -> None:
        raw = rewards.reshape(state.paths, self.policy.pulls, self.repeats)
        young = state.decisions < self.settle
        if not young.any():
            super()._learn(state, arms, chosen, self._filter(raw, state.spread), **more)
            return
        known = more.get("propensity", np.ones(state.paths))
        if not young.all():  # paths of different age: the settled ones go on by themselves
            rows = np.flatnonzero(~young)
            settled = state.inner.take(rows)
            filtered = self._filter(raw[rows], state.spread[rows])
            self.policy.learn(settled, arms[rows], chosen[rows], filtered, known[rows])
            state.inner.put(rows, settled)
        for age in np.unique(state.decisions[young]):
            rows = np.flatnonzero(state.decisions == age)
            state.pilot_arms[rows, age, : arms.shape[1]] = arms[rows]
            state.pilot_chosen[rows, age] = chosen[rows]
            state.pilot_rewards[rows, age] = raw[rows]
            state.pilot_propensity[rows, age] = known[rows]
            self._learn_again(state, rows, int(age) + 1)
        if (state.decisions + 1 >= self.settle).all():
            state.pilot_arms = state.pilot_arms[:, :0].copy()
            state.pilot_chosen = state.pilot_chosen[:, :0].copy()
            state.pilot_rewards = state.pilot_rewards[:, :0].copy()
            state.pilot_propensity = state.pilot_propensity[:, :0].copy()

    def _learn_again(self, state: Tuned, rows: Index, age: int) -> None:
        """Learn the spread of some paths of one age, and all their decisions with it."""
        rewards = state.pilot_rewards[rows, :age]
        state.spread[rows] = spread = _spread(rewards)
        inner = self.policy.init(len(rows), state.arms, state.dim)
        for t in range(age):
            arms, chosen = state.pilot_arms[rows, t], state.pilot_chosen[rows, t]
            filtered, propensity = self._filter(rewards[:, t], spread), state.pilot_propensity
            self.policy.learn(inner, arms, chosen, filtered, propensity[rows, t])
        state.inner.put(rows, inner)

    def _filter(self, raw: Array, spread: Array) -> Array:
        """Return the rewards for A, of shape (paths, A.pulls)."""
        return pitman(raw, spread[:, None]) / self._unit(spread)[:, None]


def _spread(pilot: Array) -> Array:
    """Return the median distance of the rewards from the median of their decision, by path.

    Where it is zero or infinite there is no scale to go by, and it is one.
    """
    centre = Median()(pilot)[..., None]
    distance = np.abs(pilot - np.where(np.isinf(centre), 0.0, centre)).reshape(len(pilot), -1)
    spread = Median()(distance)
    return np.where((spread > 0) & np.isfinite(spread), spread, 1.0)
