"""QuantileLUCB: the arm with the largest quantile, for rewards of any law."""

from dataclasses import dataclass

import numpy as np

from tailproof.bestarm.quantiles import Intervals, QuantileBestArm
from tailproof.policies.base import Array, Index, pick_largest

__all__ = ["QuantileLUCB"]


@dataclass(frozen=True, kw_only=True)
class QuantileLUCB(QuantileBestArm):
    """Pull the leading arm and its strongest rival until their confidence intervals separate.

    h = argmax_a L_a, l = argmax_{a≠h} U_a, pull the arm pulled less; recommend h when L_h ≥ U_l,
    U = X_(J), L = X_(n+1−J'), J = min{s : ln M_n(s) ≥ ln(K/δ)}, J' the same at level 1 − π

    M_n is the mixture of `tailproof.OrderStatisticUCB`. The intervals hold for any law, for all n
    at once; nothing about the rewards has to be known. It is wrong if U falls below the quantile of
    the best arm, or L exceeds the quantile of another arm: with probability at most K·δ/K. Arms
    whose quantiles are equal, or not unique, are never told apart. The vectors of the arms are
    ignored.

    Parameters
    ----------
    delta, quantile : float
        δ, the error probability, and π, the quantile to maximise: ½ is the median.

    Examples
    --------
    >>> policy, rng = QuantileLUCB(), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> while not policy.stopped(state).all():
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, chosen[:, None] + rng.standard_cauchy((1, 1)))
    >>> policy.recommend(state).tolist(), state.decisions.tolist()
    ([1], [83])

    Source: QLUCB of Howard and Ramdas 2022, after Kalyanakrishnan et al. 2012. Differences: the
    whole mixture in place of a bound on it; one pull per decision in place of both arms; no ε.

    Kind: best arm, K arms.
    Needs: δ, any distribution, K arms.
    Accepts a near-best arm: no.
    Learns without a mean: yes, proved.
    """

    def _choose(self, state: Intervals, arms: Array, rng: np.random.Generator) -> Index:
        rows, n = np.arange(state.paths), state.up.counts
        leader = pick_largest(-state.down.standing, rng)
        rivals = state.up.standing
        rivals[rows, leader] = -1
        rival = pick_largest(rivals, rng)
        return np.where(n[rows, leader] < n[rows, rival], leader, rival)

    def _learn(self, state: Intervals, arms: Array, chosen: Index, rewards: Array) -> None:
        self._add_rewards(state, chosen, rewards[:, 0])
        ahead = state.lower[:, :, None] >= state.upper[:, None, :]
        ahead &= ~state.down.unbounded[:, :, None] & ~state.up.unbounded[:, None, :]
        winner = np.all(ahead | np.eye(state.arms, dtype=bool), axis=2)
        state.settle(winner.any(axis=1), winner.argmax(axis=1))
