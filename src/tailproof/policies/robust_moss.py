"""Robust MOSS: the minimax index for heavy-tailed rewards with a known moment bound."""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tailproof.checks import Horizon, MomentOrder, NonNegative, Positive, Range
from tailproof.policies.base import Array, Index, Indexed, KArmed
from tailproof.policies.state.base import ArmCounts, ArmValues
from tailproof.policies.state.counts import RewardHistory

__all__ = ["RobustMOSS"]


@dataclass(eq=False)
class _Saturated(RewardHistory):
    """A history, the saturated sum of each arm, and the epoch of its saturation level."""

    sums: ArmValues
    epochs: ArmCounts


@dataclass(frozen=True, kw_only=True)
class RobustMOSS(KArmed[_Saturated], Indexed[_Saturated]):
    """Pull the arm with the largest saturated mean plus a bonus that fades before the horizon.

    a_t = argmax_a (1/n) Σ_i sat(X_i, B) + bonus·(1 + ζ) u (φ(h)/h)^{ε/(1+ε)},
    B = u (h/φ(h))^{1/(1+ε)},  φ(h) = max(ln(T/(K h)), 1),  h = a^{⌊log_a n⌋ + 1},

    with sat(x, B) = max(−B, min(x, B)) and n rewards X_i of the arm. h changes only when n passes
    a power of a, so that all samples of an arm share one level and are read again but rarely. The
    regret is at most of order u K^{ε/(1+ε)} T^{1/(1+ε)}, the least possible, without the logarithm
    of `RobustUCB`; ψ(2ζ/a) ≥ 2a/ζ with ψ(x) = (1 + 1/x) ln(1 + x) − 1 is a condition of its proof.

    Parameters
    ----------
    horizon : int
        T, the number of pulls.
    epsilon, moment_bound : float
        ε in (0, 1], and u^{1+ε}, a bound on E|X|^{1+ε}.
    growth, zeta : float
        a > 1 and ζ.
    bonus : float
        Multiplies the width; 1 is the published algorithm.

    Examples
    --------
    >>> policy, rng = RobustMOSS(horizon=1000, moment_bound=4.0), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> for _ in range(1000):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, 2.0 * chosen[:, None] + rng.standard_t(3, (1, 1)))
    >>> int(state.counts[0].argmax())
    1

    Source: Wei and Srivastava 2020, from its abstract and from memory; its text could not be read,
    and a = 1.1 with ζ = 2.2, for which the condition holds, are from memory too. Differences:
    the multiplier `bonus`; an infinite reward counts as ±1e100, and so as ±B.

    Kind: K arms, heavy tails.
    Needs: T, ε, raw moment u.
    Regret: O(K^{ε/(1+ε)} T^{1/(1+ε)}).
    Learns without a mean: no.
    """

    horizon: Horizon
    epsilon: MomentOrder = 1.0
    moment_bound: Positive = 1.0
    growth: Annotated[float, Range(above=1, at_most=10)] = 1.1
    zeta: Positive = 2.2
    bonus: NonNegative = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        x = 2 * self.zeta / self.growth
        if (1 + 1 / x) * math.log1p(x) - 1 < 2 * self.growth / self.zeta:
            raise ValueError(
                f"zeta must be larger for growth={self.growth}: the proof asks for "
                f"ψ(2ζ/a) ≥ 2a/ζ, got zeta={self.zeta}"
            )

    def _init(self, paths: int, arms: int, dim: int) -> _Saturated:
        return _Saturated.start(paths, arms, dim)

    def _rate(self, epoch: Index, arms: int) -> Array:
        """Return φ(h)/h for h = a^{epoch + 1}."""
        h = self.growth ** (epoch + 1.0)
        return np.asarray(np.maximum(np.log(self.horizon / (arms * h)), 1.0) / h)

    def _epoch(self, n: Index) -> Index:
        """Return ⌊log_a n⌋; the nudge makes powers of a, which rounding may miss, exact."""
        return np.floor(np.log(n) / math.log(self.growth) + 1e-9).astype(np.int64)

    def _index(self, state: _Saturated, arms: Array) -> Array:
        n, power = np.maximum(state.counts, 1), self.epsilon / (1 + self.epsilon)
        u = self.moment_bound ** (1 / (1 + self.epsilon))
        width = (1 + self.zeta) * u * self._rate(state.epochs, arms.shape[1]) ** power
        return np.where(state.counts == 0, np.inf, state.sums / n + self.bonus * width)

    def _learn(self, state: _Saturated, arms: Array, chosen: Index, rewards: Array) -> None:
        kept, path = state.append(chosen, rewards[:, 0]), np.arange(state.paths)
        epoch = self._epoch(state.counts[path, chosen])
        level = (self.moment_bound / self._rate(epoch, arms.shape[1])) ** (1 / (1 + self.epsilon))
        state.sums[path, chosen] += np.clip(kept, -level, level)
        moved = epoch != state.epochs[path, chosen]
        state.epochs[path, chosen] = epoch
        (rows,) = np.nonzero(moved)
        if len(rows):
            arm, bound = chosen[rows], level[rows, None]
            samples, given = state.given_by(rows, arm)
            state.sums[rows, arm] = np.where(given, np.clip(samples, -bound, bound), 0).sum(axis=1)
