"""AdaR-UCB: a trimmed mean whose threshold is estimated from the rewards."""

import math
from dataclasses import dataclass

import numpy as np

from tailproof.checks import NonNegative
from tailproof.policies.base import Array, Index, Indexed, KArmed
from tailproof.policies.state.base import ArmBounds
from tailproof.policies.state.paired_rewards import PairedRewards

__all__ = ["AdaRUCB"]

_C = (1 + math.sqrt(2)) ** 2
"""c of the source."""


@dataclass(eq=False)
class _Adapted(PairedRewards):
    """Pairs of rewards, and M² and B of every arm, infinite while there is no threshold."""

    threshold: ArmBounds
    index: ArmBounds


@dataclass(frozen=True, kw_only=True)
class AdaRUCB(KArmed[_Adapted], Indexed[_Adapted]):
    """Pull the arm with the largest trimmed mean plus bonus, without knowing ε or a moment bound.

    At decision t, with L = ln t³, c = (1 + √2)² and the pairs (X_j, X'_j), j = 1, …, n, of an arm

    B = μ̂ + bonus·(√(2 V L/n) + 10 M L/n),  Σ_j min(X'_j²/M², 1) = c L

    where μ̂ and V are the mean and the sample variance of X_j 1{|X_j| ≤ M}. B = +∞ while at most
    c L of the X'_j differ from zero, since then there is no M > 0. Every decision pulls its arm
    twice, first for X and then for X', so that threshold and mean are independent.

    Use it for losses, or for gains whose tail is no heavier than the tail of the losses. The
    guarantee, the regret Õ(T^{1/(1+ε)}) of algorithms that know ε and the moment, needs a best arm
    with E[X 1{|X| > M}] ≤ 0 for every M ("truncated non-positivity"). Without an assumption, the
    source proves, every algorithm that knows neither ε nor the moment has a larger regret.
    Multiplying all rewards changes no decision; adding a constant does, as sizes are measured from
    zero.

    A decision reads at most about 2√n pairs and finds the others by binary search; every 2√n
    decisions the rewards are sorted. Each path stores 48 bytes per decision, in doubling buffers.

    Parameters
    ----------
    bonus : float
        Multiplies the width; 1 is the published algorithm.

    Examples
    --------
    >>> policy, rng = AdaRUCB(bonus=0.3), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> for _ in range(400):
    ...     chosen = policy.choose(state, arms, rng)
    ...     losses = rng.pareto(1.5, (1, 2)) + 3 * (1 - chosen)  # of infinite variance
    ...     policy.learn(state, arms, chosen, -losses)
    >>> int(state.counts[0].argmax())
    1

    Source: Genalti, Marsigli, Gatti and Metelli 2024, algorithm 1, from public code and a public
    review of its proof. Differences: B = +∞ exactly where there is no M, in place of the printed
    "4 log t⁻³", and M comes from X' alone, as the proof needs it, where lines 7 and 8 print X for
    both. Ties and the order of first pulls are random; the multiplier `bonus`; a reward beyond
    ±1e100, infinite ones included, counts as ±1e100, and a reward within ±1e-150 as zero.

    Kind: K arms, heavy tails.
    Needs: neither ε nor a moment; gains must not have a heavier tail than losses.
    Pulls: 2.
    Regret: Õ(T^{1/(1+ε)}).
    Learns without a mean: no.
    """

    bonus: NonNegative = 1.0

    @property
    def pulls(self) -> int:
        """Two rewards per decision: one for the mean, one for the threshold."""
        return 2

    def _init(self, paths: int, arms: int, dim: int) -> _Adapted:
        return _Adapted.start(paths, arms, dim)

    def _index(self, state: _Adapted, arms: Array) -> Array:
        return state.index

    def _learn(self, state: _Adapted, arms: Array, chosen: Index, rewards: Array) -> None:
        state.add(chosen, rewards)
        log = 3 * np.log(state.decisions[:, None] + 2)  # of the next decision
        ready = state.nonzero > _C * log
        unsorted, n = state.unsorted(), np.maximum(state.counts, 1)

        def step(bound: Array) -> tuple[Array, Array]:
            """Solve for M² as if exactly the X'² up to the bound were below it."""
            count, total = state.small_others(unsorted, bound)
            room = _C * log - (state.counts - count)
            solved = ready & (room > 0) & (total > 0)
            return count, np.divide(total, room, out=np.full_like(total, np.inf), where=solved)

        # Σ min(u X'², 1) is concave in u = 1/M²: after one step Newton's method never overshoots,
        # and it has converged when a step leaves the same X'² below the bound.
        seen, bound = step(state.threshold)
        count, lower = step(bound)
        moving = ready & (count != seen)
        while moving.any():
            bound, seen = np.where(moving, lower, bound), count
            count, lower = step(bound)
            moving &= count < seen
        state.threshold = bound

        m = np.where(ready, np.sqrt(bound), 0.0)
        total, square = state.small(unsorted, m)
        mean = total / n
        variance = np.maximum(square - total * mean, 0) / np.maximum(n - 1, 1)
        width = np.sqrt(2 * variance * log / n) + 10 * m * log / n
        state.index = np.where(ready, mean + self.bonus * width, np.inf)
