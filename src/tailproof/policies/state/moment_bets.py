"""Evidence against a mean, for any law with a bounded moment: the dual of KL_inf on a grid."""

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from tailproof.policies.state.base import Array, Index, Rule
from tailproof.policies.state.counts import Counted, clip

__all__ = ["BETS", "BetLogs", "MomentBets", "MomentClass", "overhead"]

_Z = np.geomspace(0.3, 3000, 32)[:, None]
"""Where the worst law may put mass, in units of B^{1/p}: 10⁶ pulls need less than 3000."""
_S = np.array([0.0, 0.1, 1.0])
"""The part of a bet that is kept, over z; the index is within about 1 % of the exact one."""
BETS = _Z.size * _S.size
BetLogs = Annotated[Array, Rule(("arms", _Z.size, _S.size), finite=True)]
"""For every arm and bet, the sum of its logarithms."""


@dataclass(eq=False)
class MomentBets(Counted):
    """For every arm and bet (z, s), the sum of ln(s + τ D(X, z)) over its rewards X."""

    logs: BetLogs

    def add(self, chosen: Index, growth: Array) -> None:
        """Add the gain of every bet from one reward of the chosen arm of each path."""
        at = np.arange(self.paths), chosen
        self.counts[at] += 1
        self.logs[at] += growth


class MomentClass(NamedTuple):
    """All laws with E|X|^p ≤ B, in units of B^{1/p}.

    Attributes
    ----------
    order : float
        p > 1.
    """

    order: float

    def growth(self, x: Array) -> Array:
        """Return ln(s + τ D(x, z)) for every bet, of shape (paths, bets).

        D(x, z) = |x|^p − z^p − p z^{p−1}(x − z) ≥ 0 and τ = z^{1−p}/p. If E|X|^p ≤ 1 and EX ≥ m,
        E(s + τ D(X, z)) ≤ s + τ(1 − z^p) + z − m, which is `start` − m.
        """
        p, tau, y = self.order, self._tau, clip(x, 1e30)[..., None, None]
        far = np.abs(y) ** p - _Z**p - p * _Z ** (p - 1) * (y - _Z)
        kept = _S * _Z + tau * np.maximum(far, 0)
        log_growth: Array = np.log(np.maximum(kept, 1e-300))
        return log_growth

    @property
    def start(self) -> Array:
        """S + τ(1 − z^p) + z for every bet."""
        return np.asarray(_S * _Z + self._tau * (1 - _Z**self.order) + _Z)

    @property
    def _tau(self) -> Array:
        return np.asarray(_Z ** (1 - self.order) / self.order)

    def largest_mean(self, logs: Array, counts: Index, evidence: Array) -> Array:
        """Return the largest mean m with n KL_inf(m) ≤ `evidence`, of shape (paths, K).

        min over (z, s) of start − exp((Σ ln(s + τ D) − evidence)/n), at most 1 in size.
        """
        n = np.maximum(counts, 1)
        room = (logs - evidence[..., None, None]) / n[..., None, None]
        bound = (self.start - np.exp(np.minimum(room, 700))).min(axis=(-2, -1))
        return np.asarray(np.where(counts == 0, np.inf, np.clip(bound, -1, 1)))

    def evidence(self, logs: Array, counts: Index, mean: Array) -> Array:
        """Return n KL_inf(m), at least 0: the evidence of n rewards against a mean of m or more."""
        left = np.log(np.maximum(self.start - mean[..., None, None], 1e-300))
        return np.asarray(np.maximum((logs - counts[..., None, None] * left).max(axis=(-2, -1)), 0))


def overhead(counts: Index) -> Array:
    """Return c with P(n KL_inf(true mean) ≥ c + f for some n) ≤ e^{−f}.

    The largest of as many test martingales as there are bets, so ln(bets); or 2 ln(1 + n) + 1, the
    regret of a universal portfolio over all bets, where that is less.

    >>> overhead(np.array([1, 100])).round(2).tolist()
    [2.39, 4.56]
    """
    return np.asarray(np.minimum(2 * np.log1p(counts) + 1, math.log(BETS)))
