"""A cap on extreme rewards, learned from them: the policy maximises the capped mean."""

from dataclasses import dataclass, field
from typing import Annotated, Self

import numpy as np

from tailproof.checks import Range
from tailproof.policies.base import Array, Index
from tailproof.policies.state.base import ROOM, Finite, Rule
from tailproof.wrappers.base import Wrapper
from tailproof.wrappers.pilot import Piloted

__all__ = ["Capped"]

_MOST = 1e150
"""A reward beyond this, infinite ones included, counts as this: squares of it can be added up."""


@dataclass(eq=False)
class Ranged(Piloted):
    """The state of the policy inside, its first decisions, and the range.

    Attributes
    ----------
    low, high, unit : arrays of shape (paths,)
        The range that rewards are clipped to, and their standard deviation within it.
    """

    low: Finite
    high: Finite
    unit: Annotated[Array, Rule(finite=True, blank=1)]


@dataclass(frozen=True)
class Capped(Wrapper[Ranged]):
    """Any policy A, given rewards clipped to one range for all arms, in units of their spread.

    A learns (min(max(r, low), high) − low)/unit, where low and high are the (1 − share)- and
    share-quantiles of all rewards so far, of all arms, and unit is their standard
    deviation within the range

    So A maximises `tailproof.CappedMean`, which every law has, and sees noise of scale one, as
    `UCB1` and `OFUL` assume; units and an offset of the rewards change nothing. The range is
    estimated again when the number of decisions has doubled, and A then learns all of them again;
    after `settle` decisions it is fixed, and they are dropped. `estimate` is in the units of the
    rewards, less the offset.

    Parameters
    ----------
    policy : Policy
        The algorithm A.
    share : float
        The share of all rewards below the cap, above ½.
    settle : int
        The number of decisions after which the range stays as it is. Until then they are kept, at
        8(K d + pulls + 1) bytes each for every path.

    Examples
    --------
    >>> from tailproof import UCB1
    >>> policy, rng = Capped(UCB1(), share=0.95), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> for _ in range(2000):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, 100 * chosen[:, None] + 50 * rng.pareto(0.9, (1, 1)))
    >>> int(state.inner.counts[0].argmax())
    1

    Source: capping at a percentile is common in experiment platforms; Dixon 1960 for winsorising.
    Differences: the range is learned, not given.
    """

    share: Annotated[float, Range(above=0.5, below=1)] = field(kw_only=True, default=0.99)
    settle: Annotated[int, Range(at_least=2, at_most=1e9)] = field(kw_only=True, default=2048)

    def with_scale(self, scale: float) -> Self:
        """Raise ``ValueError``: capped rewards are brought to a scale of one."""
        raise ValueError(f"the noise scale cannot be set: {self!r} learns it")

    def estimate(self, state: Ranged) -> Array | None:
        """Return the estimate of the policy inside, in the units of the rewards."""
        inside = super().estimate(state)
        return None if inside is None else inside * state.unit[:, None]

    def _init(self, paths: int, arms: int, dim: int) -> Ranged:
        return Ranged.around(
            self.policy.init(paths, arms, dim),
            settle=self.settle,
            pilot_rewards=np.zeros((paths, ROOM, self.pulls)),
        )

    def _rewards(self, state: Ranged, rewards: Array) -> Array:
        low, high, unit = (x[:, None] for x in (state.low, state.high, state.unit))
        return (np.clip(rewards, low, high) - low) / unit

    def _learn_weighted(
        self, state: Ranged, arms: Array, chosen: Index, rewards: Array, propensity: Array | None
    ) -> None:
        age = state.decisions + 1
        young = age <= self.settle
        again = young & ((age & (age - 1) == 0) | (age == self.settle))
        known = np.ones(state.paths) if propensity is None else propensity
        if young.any():
            state.keep(np.flatnonzero(young), arms, chosen, rewards, known)
        if not again.any():
            super()._learn_weighted(state, arms, chosen, rewards, propensity)
        else:
            rows = np.flatnonzero(~again)
            if len(rows):  # paths of another age learn separately
                rest, cut = state.inner.take(rows), self._rewards(state, rewards)[rows]
                self.policy._update(rest, arms[rows], chosen[rows], cut, known[rows])
                state.inner.put(rows, rest)
            for count in np.unique(age[again]):
                self._learn_again(state, np.flatnonzero(again & (age == count)), int(count))
        if (age >= self.settle).all() and state.pilot_rewards.shape[1]:
            state.forget()

    def _learn_again(self, state: Ranged, rows: Index, age: int) -> None:
        """Estimate the range of some paths of one age, and let A learn all decisions again."""
        rewards = np.clip(state.pilot_rewards[rows, :age], -_MOST, _MOST)
        seen = np.sort(rewards.reshape(len(rows), -1))
        beyond = int((1 - self.share) * seen.shape[1] + 1e-9)
        low, high = seen[:, beyond], seen[:, seen.shape[1] - 1 - beyond]
        state.low[rows], state.high[rows] = low, high
        cut = np.clip(rewards, low[:, None, None], high[:, None, None])
        state.unit[rows] = _deviation(cut)
        inner = self.policy.init(len(rows), state.arms, state.dim)
        part = state.take(rows)
        kept = part.pilot_rewards[:, :age].reshape(len(rows), -1)
        cut_again = self._rewards(part, kept).reshape(rewards.shape)
        part.replay(self.policy, inner, part.pilot_arms, cut_again)
        state.inner.put(rows, inner)


def _deviation(cut: Array) -> Array:
    """Return the standard deviation of each path; one where it is zero."""
    deviation: Array = cut.std(axis=(1, 2))
    return np.where(deviation > 0, deviation, 1.0)
