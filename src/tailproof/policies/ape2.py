"""APE² and its minimax-optimal successors: random bonuses on a mean that needs no moment bound."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tailproof.checks import Horizon, MomentOrder, Positive
from tailproof.policies.base import Array, Index, KArmed, pick_largest
from tailproof.policies.state.base import ArmValues
from tailproof.policies.state.counts import RewardHistory

__all__ = ["APE2"]

Perturbation = Literal["exponential", "pareto", "bounded", "none"]


@dataclass(eq=False)
class _Means(RewardHistory):
    """A history, and the p-robust mean of each arm, of shape (paths, K)."""

    means: ArmValues


@dataclass(frozen=True, kw_only=True)
class APE2(KArmed[_Means]):
    """Pull the arm with the largest robust mean plus a random bonus, whatever the moment bound.

    a_t = argmax_a μ̂_a + scale·G_a n_a^{1/p−1},  p = 1 + ε,
    μ̂ = scale·n^{1/p−1} Σ_i ψ(X_i/(scale·n^{1/p})),  ψ(x) = sign(x) ln(1 + |x| + b|x|^p)

    - exponential: G ~ Exp(1), or pareto: P(G > g) = (1 + g)^{−p²/(p−1)}: APE²
    - bounded: G = 2U ln(T/(K n)) for a uniform U: MR-APE
    - none: G = ln(T/(K n)): MR-UCB

    with b = (2((2−p)/(p−1))^{1−2/p} + ((2−p)/(p−1))^{2−2/p})^{−p/2}, ½ at p = 2. Only p is needed,
    not the size of the moment: the cost of a wrong `scale` grows with the moment itself, while a
    wrong bound voids the guarantee of `RobustUCB`. The minimax forms have regret of order K^{1−1/p}
    T^{1/p}, the least possible; APE² has a logarithmic factor more.

    Parameters
    ----------
    epsilon : float
        ε in (0, 1]: E|X|^{1+ε} is finite.
    scale : float
        The c of the source, in units of the rewards.
    perturbation : "exponential", "pareto", "bounded" or "none"
        The law of G.
    horizon : int, optional
        T, needed for "bounded" and "none".

    Examples
    --------
    >>> policy, rng = APE2(epsilon=0.8), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> for _ in range(500):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, chosen[:, None] + rng.standard_t(2, (1, 1)))
    >>> int(state.counts[0].argmax())
    1

    A decision reads all rewards of the arm pulled, since each weighs less as n grows.

    Source: Lee, Yang, Lim and Oh 2020 (APE²) and Lee and Lim 2022 (MR-UCB, MR-APE), from public
    code of the authors. Differences: ties and the order of first pulls are random; ln(T/(K n)) is
    0 where T < K n; a reward beyond ±1e100, infinite ones included, counts as ±1e100.

    Kind: K arms, heavy tails.
    Needs: ε; T for MR-APE and MR-UCB.
    Regret: Õ(K^{ε/(1+ε)} T^{1/(1+ε)}).
    Learns without a mean: no.
    """

    epsilon: MomentOrder = 1.0
    scale: Positive = 1.0
    perturbation: Perturbation = "exponential"
    horizon: Horizon | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.horizon is None and self.perturbation in ("bounded", "none"):
            raise ValueError(f'horizon is required for perturbation="{self.perturbation}"')

    @property
    def _p(self) -> float:
        return 1 + self.epsilon

    @property
    def curvature(self) -> float:
        """b, the weight of |x|^p in ψ.

        >>> APE2().curvature
        0.5
        """
        p = self._p
        odds = (2 - p) / (p - 1)
        if not odds:
            return 0.5
        return float((2 * odds ** (1 - 2 / p) + odds ** (2 - 2 / p)) ** (-p / 2))

    def _init(self, paths: int, arms: int, dim: int) -> _Means:
        return _Means.start(paths, arms, dim)

    def _choose(self, state: _Means, arms: Array, rng: np.random.Generator) -> Index:
        n, p = np.maximum(state.counts, 1), self._p
        index = state.means + self.scale * self._bonus(n, rng) * n ** (1 / p - 1)
        return pick_largest(np.where(state.counts == 0, np.inf, index), rng)

    def _bonus(self, n: Index, rng: np.random.Generator) -> Array:
        """Return G for every arm; the same number of draws is used whatever the state."""
        if self.perturbation == "exponential":
            return rng.standard_exponential(n.shape)
        if self.perturbation == "pareto":
            return rng.pareto(self._p**2 / (self._p - 1), n.shape)
        log = np.maximum(np.log((self.horizon or 1) / (n.shape[1] * n)), 0.0)
        return np.asarray(log if self.perturbation == "none" else 2 * rng.random(n.shape) * log)

    def _learn(self, state: _Means, arms: Array, chosen: Index, rewards: Array) -> None:
        state.append(chosen, rewards[:, 0])
        path, p = np.arange(state.paths), self._p
        samples, given = state.given_by(path, chosen)
        n = state.counts[path, chosen][:, None]
        size = np.abs(samples) / (self.scale * n ** (1 / p))
        psi = np.copysign(np.log1p(size + self.curvature * size**p), samples)
        total = np.where(given, psi, 0.0).sum(axis=1)
        state.means[path, chosen] = self.scale * n[:, 0] ** (1 / p - 1) * total
