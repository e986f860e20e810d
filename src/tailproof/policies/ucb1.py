"""UCB1: the classic index for K arms."""

from dataclasses import dataclass

import numpy as np

from tailproof.checks import NonNegative
from tailproof.policies.base import Array, Index, Indexed, KArmed
from tailproof.policies.state.counts import Tally

__all__ = ["UCB1"]


@dataclass(frozen=True, kw_only=True)
class UCB1(KArmed[Tally], Indexed[Tally]):
    """Pull the arm with the largest mean plus bonus; the vectors of the arms are ignored.

    a_t = argmax_a X̄_a + bonus √(2 ln t / n_a), each arm once first

    Parameters
    ----------
    bonus : float
        Multiplies the width: 1 is the published algorithm, for rewards in [0, 1].

    Examples
    --------
    >>> policy, rng = UCB1(), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=3, dim=3), np.eye(3)[None]
    >>> for _ in range(500):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, [[chosen[0] / 2]])
    >>> int(state.counts[0].argmax())
    2

    Source: Auer, Cesa-Bianchi and Fischer 2002, figure 1.
    Differences: ties and the order of first pulls are random; the multiplier `bonus`.

    Kind: K arms.
    Needs: rewards in [0, 1].
    Regret: O(√(KT ln T)).
    Learns without a mean: no.
    """

    bonus: NonNegative = 1.0

    def _init(self, paths: int, arms: int, dim: int) -> Tally:
        return Tally.start(paths, arms, dim)

    def _index(self, state: Tally, arms: Array) -> Array:
        n = state.counts.astype(np.float64)
        spread = 2 * self.bonus * self.bonus * np.log(state.decisions)
        index = np.sqrt(spread[:, None] / n)
        index += state.sums / n
        if np.count_nonzero(n) < n.size:
            index[n == 0] = np.inf
        return index

    def _learn(self, state: Tally, arms: Array, chosen: Index, rewards: Array) -> None:
        state.update(chosen, rewards[:, 0])
