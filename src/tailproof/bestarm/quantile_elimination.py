"""QuantileElimination: the arm with the largest quantile by elimination, for any law."""

from dataclasses import dataclass

import numpy as np

from tailproof.bestarm.quantiles import Intervals, QuantileBestArm
from tailproof.policies.base import Array, Index

__all__ = ["QuantileElimination"]


@dataclass(frozen=True, kw_only=True)
class QuantileElimination(QuantileBestArm):
    """Pull the arms in turn, and eliminate an arm once its interval lies below another arm's.

    Eliminate a when U_a < max_b L_b, with the intervals of `QuantileLUCB`; recommend the last arm.
    It is wrong with probability at most δ, for any law. Arms whose quantiles are equal, or not
    unique, are never told apart. The vectors of the arms are ignored.

    Parameters
    ----------
    delta, quantile : float
        δ, the error probability, and π, the quantile to maximise: ½ is the median.

    Examples
    --------
    >>> policy, rng = QuantileElimination(), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> while not policy.stopped(state).all():
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, chosen[:, None] + rng.standard_cauchy((1, 1)))
    >>> policy.recommend(state).tolist(), state.decisions.tolist()
    ([1], [50])

    Source: successive elimination (Even-Dar, Mannor and Mansour 2006) for quantiles, as of Szörényi
    et al. 2015 and Nikolakakis et al. 2021. Differences: intervals that hold at all times at once,
    from the mixture of `tailproof.OrderStatisticUCB`.

    Kind: best arm, K arms.
    Needs: δ, any distribution, K arms.
    Accepts a near-best arm: no.
    Learns without a mean: yes, proved.
    """

    def _choose(self, state: Intervals, arms: Array, rng: np.random.Generator) -> Index:
        return np.asarray(np.where(state.active, state.up.counts, np.inf).argmin(axis=1))

    def _learn(self, state: Intervals, arms: Array, chosen: Index, rewards: Array) -> None:
        self._add_rewards(state, chosen, rewards[:, 0])
        state.active &= state.upper >= state.lower.max(axis=1, keepdims=True)
        state.settle(state.active.sum(axis=1) == 1, state.active.argmax(axis=1))
