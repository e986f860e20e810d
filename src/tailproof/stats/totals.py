"""An interval, for any look, for the expected total of a sequence of decisions."""

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import brentq

from tailproof.checks import require
from tailproof.stats.betting import largest_bet, log_capital, log_capital_needed
from tailproof.typing import Array

__all__ = ["RunningTotal"]

_BETS = 2.0 ** -np.arange(16)
"""Bets as shares of the largest bet, 0.99/worst; at 10⁷ terms the best bet is about 2⁻⁹ of it."""
_WEIGHTS = 1 / (1 + ((np.arange(16) - 2) / 3) ** 2)
"""Most capital is on bets of about a quarter of the largest; none has less than a twentieth."""
_LOG_WEIGHTS = np.log(_WEIGHTS / _WEIGHTS.sum())


@dataclass(eq=False)
class RunningTotal:
    """An interval, for any look, for Σ_t E[s_t | past], where each s_t has bounds known before it.

    The lower end is the D at which the capital Σ_j w_j Π_t (1 + λ_j s_t) e^(−λ_j D) is
    2/(1 − level).

    E[1 + λ s_t | past] ≤ exp(λ E[s_t | past]), so at the true D each product is a supermartingale
    that starts at 1; it is never negative if no bet λ can lose more than there is. The mixture ever
    reaches 2/(1 − level) with a probability of at most (1 − level)/2 (Ville 1939). The upper end is
    the lower end of −s, negated. The terms need not be independent or alike: their conditional
    means may change with time, and with the state of a policy. A bet that larger bounds make too
    risky is given up.

    Attributes
    ----------
    value : float
        The sum of the terms.
    bets : array of shape (2, 16), or None
        The bets on the lower and on the upper end; None before the first term.
    logs : array of shape (2, 16)
        The logarithm of the capital of each bet.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> total = RunningTotal()
    >>> total.add(rng.choice([-1.0, 2.0], size=10_000), low=-1.0, high=2.0)
    >>> total.value, [round(end) for end in total.ends()]
    (5090.0, [4533, 5649])

    Source: our own; the capital is from Waudby-Smith and Ramdas 2024, mixed over constant bets.
    Differences: 1 + x ≤ eˣ, so that only the sum of the conditional means has to be named.
    """

    value: float = 0.0
    bets: Array | None = None
    logs: Array = field(default_factory=lambda: np.zeros((2, len(_BETS))))

    def add(
        self,
        terms: Array,
        *,
        low: float | Array,
        high: float | Array,
        counts: Array | None = None,
    ) -> None:
        """Add terms between bounds that were known before them, each `counts` times."""
        if not len(terms):
            return
        risks = np.array([np.broadcast_to(-low, terms.shape), np.broadcast_to(high, terms.shape)])
        require(bool((risks >= 0).all()), "low", "at most 0, and high at least 0", (low, high))
        over = float((np.abs(terms) - risks[(terms > 0).astype(int), np.arange(len(terms))]).max())
        slack = 1e-9 * float(np.abs(terms).max())  # for rounding
        require(over <= slack, "terms", "within their bounds", f"a term {over:g} beyond its bound")
        if self.bets is None:  # the first bounds say which bets are sensible
            self.bets = largest_bet(risks[:, :1]) * _BETS
        self.bets *= self.bets <= largest_bet(risks.max(axis=1, keepdims=True)) * (1 + 1e-9)
        moved = terms != 0
        terms, often = terms[moved], 1.0 if counts is None else counts[moved]
        # in order, so that the result does not depend on how terms are split between calls
        self.value = float(np.cumsum(np.append(self.value, terms * often))[-1])
        for sign, bets, logs in zip((1, -1), self.bets, self.logs, strict=True):
            gains = np.log1p(np.multiply.outer(sign * terms, bets)).T * often
            logs[:] = np.add.reduce(np.vstack([logs, gains.T]))

    def ends(self, level: float = 0.95) -> tuple[float, float]:
        """Return the interval; an end is infinite if no bet on it was safe."""
        asked = log_capital_needed(level)
        low, high = (self._end(side, asked) for side in (0, 1))
        return low, -high

    def _end(self, side: int, asked: float) -> float:
        if self.bets is None or not self.bets[side].any():
            return -math.inf
        alive = self.bets[side] > 0
        bets, logs = self.bets[side][alive], self.logs[side][alive] + _LOG_WEIGHTS[alive]
        least = float(((logs - asked) / bets).max())  # there one bet alone has the required capital
        most = float(((logs - asked + math.log(len(bets))) / bets).max())

        def missing(total: float) -> float:
            return asked - log_capital(logs, -bets * total)

        if missing(least) >= 0 or missing(most) <= 0:  # they are equal but for rounding
            return least
        return float(brentq(missing, least, most, xtol=1e-9 * (most - least) + 1e-300))
