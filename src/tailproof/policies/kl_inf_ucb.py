"""KL_inf-UCB: the optimal index for heavy-tailed rewards with a known moment bound."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tailproof.checks import MomentOrder, NonNegative, Positive
from tailproof.policies.base import Array, Index, Indexed, KArmed
from tailproof.policies.state.moment_bets import MomentBets, MomentClass, overhead

__all__ = ["KLInfUCB"]


@dataclass(frozen=True, kw_only=True)
class KLInfUCB(KArmed[MomentBets], Indexed[MomentBets]):
    """Pull the arm whose mean may be largest without contradicting its rewards.

    a_t = argmax_a max{m : n KL_inf(F̂_a, m) ≤ bonus·(f(t) + c_n)},  f(t) = ln t + 2 ln ln t,
    KL_inf(F̂, m) = min{KL(F̂, G) : E_G X ≥ m, E_G|X|^{1+ε} ≤ B}
                 = max_{λ ≥ 0} (1/n) Σ_i ln(1 + λ₁(m − X_i) − λ₂(B − |X_i|^{1+ε})),
    c_n = min(2 ln(1 + n) + 1, ln 96) ("proved") or 0 ("plain")

    over the λ for which the logarithm is defined for every reward. As T → ∞ an arm with law F is
    pulled ln T/KL_inf(F, μ*) times, which no policy that is consistent for all laws with this
    moment bound improves. The truncated mean of `RobustUCB` needs several times as many.

    Parameters
    ----------
    epsilon, moment_bound : float
        ε in (0, 1] and B, a bound on E|X|^{1+ε}. It holds for the rewards, not the noise: an offset
        that all rewards share makes B larger and the index wider.
    threshold : "proved" or "plain"
        Whether c_n is added; without it some paths may lose the best arm for long.
    bonus : float
        Multiplies the evidence; 1 is proved.

    Examples
    --------
    >>> policy, rng = KLInfUCB(moment_bound=4.0), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> for _ in range(500):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, chosen[:, None] + rng.standard_t(3, (1, 1)))
    >>> int(state.counts[0].argmax())
    1

    The maximum over λ is taken on a fixed grid of 96 pairs, which makes the index about 1 % wider
    and no less valid: then a reward adds to 96 sums per arm, no reward is kept, and each pair is a
    test martingale of its own.

    Source: Agrawal, Juneja and Koolen 2021, from its abstract and from memory; its text could not
    be read. c_n was derived again. Differences: the grid in place of the exact maximum, and hence
    no batches; no truncation of the rewards before F̂ is formed; an index is cut at ±B^{1/(1+ε)},
    which no mean can exceed; a reward beyond 1e30 B^{1/(1+ε)} counts as that large.

    Kind: K arms, heavy tails.
    Needs: ε, raw moment B.
    Regret: least possible as T → ∞.
    Learns without a mean: no.
    """

    epsilon: MomentOrder = 1.0
    moment_bound: Positive = 1.0
    threshold: Literal["proved", "plain"] = "proved"
    bonus: NonNegative = 1.0

    def _init(self, paths: int, arms: int, dim: int) -> MomentBets:
        return MomentBets.start(paths, arms, dim)

    def _index(self, state: MomentBets, arms: Array) -> Array:
        log = np.log(np.maximum(state.decisions[:, None] + 1.0, 1))
        f = log + 2 * np.log(np.maximum(log, 1))
        spare = overhead(state.counts) if self.threshold == "proved" else 0.0
        law = MomentClass(1 + self.epsilon)
        return law.largest_mean(state.logs, state.counts, self.bonus * (f + spare))

    def _learn(self, state: MomentBets, arms: Array, chosen: Index, rewards: Array) -> None:
        unit = self.moment_bound ** (1 / (1 + self.epsilon))
        state.add(chosen, MomentClass(1 + self.epsilon).growth(rewards[:, 0] / unit))
