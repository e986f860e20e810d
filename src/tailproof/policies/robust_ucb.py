"""Robust UCB: UCB for K arms with a robust mean in place of the average."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tailproof.checks import MomentOrder, NonNegative, Positive
from tailproof.policies.base import Array, Index, Indexed, KArmed
from tailproof.policies.state.robust_means import ESTIMATORS, RobustMeans

__all__ = ["RobustUCB"]

Estimator = Literal["truncated", "median_of_means", "catoni"]


@dataclass(frozen=True, kw_only=True)
class RobustUCB(KArmed[RobustMeans], Indexed[RobustMeans]):
    """Pull the arm with the largest robust mean plus bonus, for heavy-tailed rewards with a mean.

    a_t = argmax_a μ̂_a + bonus·w_a, where with n samples X_1, …, X_n of the arm and δ = t⁻²

    - truncated: μ̂ = (1/n) Σ_j X_j 1{|X_j| ≤ (v j/ln(1/δ))^{1/(1+ε)}},
      w = 4 v^{1/(1+ε)} (ln(1/δ)/n)^{ε/(1+ε)}
    - median_of_means: μ̂ = median of the means of k = ⌊min(8 ln(e^⅛/δ), n/2)⌋ blocks of ⌊n/k⌋,
      w = (12 v)^{1/(1+ε)} (16 ln(e^⅛/δ)/n)^{ε/(1+ε)}
    - catoni: μ̂ = the root m of Σ_j ψ(α (X_j − m)), ψ(x) = sign(x) ln(1 + |x| + x²/2),
      α² = 2 ln(1/δ)/(n (v + 2 v ln(1/δ)/(n − 2 ln(1/δ)))),
      w = 2 √(v ln(1/δ)/n), and +∞ while n < 4 ln(1/δ)

    Parameters
    ----------
    estimator : "truncated", "median_of_means" or "catoni"
        The robust mean. All are exact. The first two are cheap, as they seldom read old samples;
        Catoni's mean reads all samples at every decision.
    epsilon, moment_bound : float
        ε in (0, 1], 1 for Catoni's mean, and v, a bound on the moment of order 1 + ε: E|X|^{1+ε}
        for the truncated mean (the paper's u), E|X − μ|^{1+ε} for the others.
    bonus : float
        Multiplies the width; 1 is the published algorithm.

    Examples
    --------
    >>> policy, rng = RobustUCB(estimator="truncated", moment_bound=2.0), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> for _ in range(1000):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, chosen[:, None] + rng.standard_t(3, (1, 1)) / 3)
    >>> int(state.counts[0].argmax())
    1

    Source: Bubeck, Cesa-Bianchi and Lugosi 2013, figure 1, with the estimators of its section 3.
    Differences: ties and the order of first pulls are random; the multiplier `bonus`; for the
    median of means each arm is pulled twice first, since one sample has no block (as in public
    code); a reward beyond ±1e100, infinite ones included, counts as ±1e100. The constants are from
    public code for the first two estimators, and from memory for Catoni's, whose width was derived
    again: √(2v ln(1/δ)/(n − 2 ln(1/δ))) is at most w once n ≥ 4 ln(1/δ). The printed proof sums
    failures over t and n, for which δ = t⁻⁴ would be needed; the published index has t⁻².

    Kind: K arms, heavy tails.
    Needs: ε, moment v, an estimator.
    Regret: Õ(T^{1/(1+ε)}).
    Learns without a mean: no.
    """

    estimator: Estimator = "median_of_means"
    epsilon: MomentOrder = 1.0
    moment_bound: Positive = 1.0
    bonus: NonNegative = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.estimator == "catoni" and self.epsilon != 1:
            raise ValueError(f'epsilon must be 1 for estimator="catoni", got {self.epsilon!r}')

    def _init(self, paths: int, arms: int, dim: int) -> RobustMeans:
        return ESTIMATORS[self.estimator].start(paths, arms, dim)

    def _index(self, state: RobustMeans, arms: Array) -> Array:
        log = 2 * np.log(state.decisions[:, None] + 1)
        n = np.maximum(state.counts, 1)
        index = state.means + self.bonus * state.width(n, log, self.epsilon, self.moment_bound)
        return np.where(state.counts < state.needed(log), np.inf, index)

    def _learn(self, state: RobustMeans, arms: Array, chosen: Index, rewards: Array) -> None:
        state.update(chosen, rewards[:, 0], self.epsilon, self.moment_bound)
