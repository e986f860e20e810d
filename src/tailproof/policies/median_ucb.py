"""M-UCB: an index for K arms that are compared by their medians."""

from dataclasses import dataclass

import numpy as np

from tailproof.checks import NonNegative, Positive
from tailproof.policies.base import Array, Index, Indexed, KArmed
from tailproof.policies.state.quantile_bounds import Medians

__all__ = ["MedianUCB"]


@dataclass(frozen=True, kw_only=True)
class MedianUCB(KArmed[Medians], Indexed[Medians]):
    """Pull the arm with the largest median plus bonus; no mean is needed.

    a_t = argmax_a median_a + bonus (√(2 v ε) + 2 ε √(v/n)),
    v = 4/(n hazard²), ε = confidence·ln t, with n samples of the arm, each arm once first

    Parameters
    ----------
    hazard : float
        L, a lower bound on the hazard rate f/(1 − F) of the rewards. Heavy-tailed laws have none
        far out; use the rate at the median, 2 f(median), for them.
    confidence : float
        α: the error of the median exceeds the bonus with a probability of about t^−α.
    bonus : float
        β, which multiplies the width; 1 is the bound itself.

    Examples
    --------
    >>> policy, rng = MedianUCB(bonus=0.2), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> for _ in range(1000):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, chosen[:, None] + rng.standard_cauchy((1, 1)))
    >>> int(state.counts[0].argmax())
    1

    Source: M-UCB of Zhang and Ong 2021, from their public code, without access to the paper.
    Differences: ties and the order of first pulls are random; one `hazard` for all arms, given and
    not estimated; a reward beyond ±1e100 counts as ±1e100. The default of `confidence` is the 4 of
    the authors' simulation notebooks; other notebooks of theirs have smaller values.

    Kind: K arms, heavy tails.
    Needs: a hazard bound.
    Regret: logarithmic, for medians.
    Learns without a mean: yes.
    """

    hazard: Positive = 1.0
    confidence: NonNegative = 4.0
    bonus: NonNegative = 1.0

    def _init(self, paths: int, arms: int, dim: int) -> Medians:
        return Medians.start(paths, arms, dim, medians=np.zeros((paths, arms)))

    def _index(self, state: Medians, arms: Array) -> Array:
        n = np.maximum(state.counts, 1)
        v = 4 / (n * self.hazard**2)
        eps = self.confidence * np.log(np.maximum(state.decisions, 1))[:, None]
        index = state.medians + self.bonus * (np.sqrt(2 * v * eps) + 2 * eps * np.sqrt(v / n))
        return np.where(state.counts == 0, np.inf, index)

    def _learn(self, state: Medians, arms: Array, chosen: Index, rewards: Array) -> None:
        state.update(chosen, rewards[:, 0])
