"""UCB1: the classic index for K arms."""

from dataclasses import dataclass

import numpy as np

from tailproof.checks import NonNegative
from tailproof.policies.base import Array, Index, Indexed, KArmed, pick_largest
from tailproof.policies.randomised import draw_index, shares_by_uniform
from tailproof.policies.state.counts import Tally

__all__ = ["UCB1"]

_FAR = float(np.finfo(np.float64).max) / 4
"""In place of infinity where lines are compared: the sum of four is still a number."""


@dataclass(frozen=True, kw_only=True)
class UCB1(KArmed[Tally], Indexed[Tally]):
    """Pull the arm with the largest mean plus bonus; the vectors of the arms are ignored.

    a_t = argmax_a X̄_a + bonus √(2 ln t / n_a), each arm once first

    random: a_t = argmax_a X̄_a + U bonus √(2 ln t / n_a), U ~ Uniform(0, 1) drawn once for all arms

    Take the random form where rewards come late, or where the log is to judge other rules.

    Parameters
    ----------
    bonus : float
        Multiplies the width: 1 is the published algorithm, for rewards in [0, 1].
    random : bool
        Multiplies the widths of all arms by one U, drawn for each decision; arms without a reward
        come first, each with the same probability. So requests that come before the next reward are
        not all sent to one arm, and `propensities` are exact and between 0 and 1. The state is the
        same, so that a policy may be continued with the other form.

    Examples
    --------
    >>> policy, rng = UCB1(), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=3, dim=3), np.eye(3)[None]
    >>> for _ in range(500):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, [[chosen[0] / 2]])
    >>> int(state.counts[0].argmax())
    2

    Two arms with one reward and two; the choice is drawn:

    >>> state, arms = policy.init(paths=1, arms=2, dim=1), np.zeros((1, 2, 1))
    >>> for arm in (0, 1, 1):
    ...     policy.learn(state, arms, [arm], [[0.2 * arm]])
    >>> UCB1(random=True).propensities(state, arms).round(2).tolist()
    [[0.54, 0.46]]

    Source: Auer, Cesa-Bianchi and Fischer 2002, figure 1; RandUCB for `random` (Vaswani, Mehrabian,
    Durand and Kveton 2020). Differences: ties and the order of first pulls are random; the
    multiplier `bonus`. RandUCB draws from a discrete law, mostly of |Z|; U is uniform, so that no
    index exceeds that of UCB1. The random form is measured, not proved.

    Kind: K arms.
    Needs: rewards in [0, 1].
    Regret: O(√(KT ln T)).
    Learns without a mean: no.
    """

    bonus: NonNegative = 1.0
    random: bool = False

    def _init(self, paths: int, arms: int, dim: int) -> Tally:
        return Tally.start(paths, arms, dim)

    def _choose(self, state: Tally, arms: Array, rng: np.random.Generator) -> Index:
        if self.random:
            return pick_largest(draw_index(*self._finite_lines(state), rng), rng)
        return super()._choose(state, arms, rng)

    def _propensities(self, state: Tally, arms: Array) -> Array:
        if self.random:
            return shares_by_uniform(*self._finite_lines(state))
        return super()._propensities(state, arms)

    def _index(self, state: Tally, arms: Array) -> Array:
        index, width = self._lines(state)
        index += width
        if np.count_nonzero(state.counts) < index.size:
            index[state.counts == 0] = np.inf
        return index

    def _lines(self, state: Tally) -> tuple[Array, Array]:
        """Return the mean and the width of every arm, of shape (paths, K) each."""
        n = state.counts.astype(np.float64)
        spread = 2 * self.bonus * self.bonus * np.log(state.decisions)
        return state.sums / n, np.sqrt(spread[:, None] / n)

    def _finite_lines(self, state: Tally) -> tuple[Array, Array]:
        """Return `_lines` for arms of any rewards or none.

        As in the plain form, an arm without a reward is as good as one with an infinite mean, and
        an undefined mean is the worst. These have no width.
        """
        mean, width = self._lines(state)
        mean[np.isnan(mean)] = -np.inf
        mean[state.counts == 0] = np.inf
        mean = np.clip(mean, -_FAR, _FAR)
        return mean, np.where(np.abs(mean) < _FAR, np.fmin(width, _FAR), 0.0)

    def _learn(self, state: Tally, arms: Array, chosen: Index, rewards: Array) -> None:
        state.update(chosen, rewards[:, 0])
