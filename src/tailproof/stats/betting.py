"""Betting against a claimed value, which all intervals for any look share.

If a claim is true, a bettor's capital, which starts at 1 and is never negative, ever reaches 1/p
with a probability of at most p (Ville 1939). Values that would have made a bettor rich are refuted.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from tailproof.checks import number
from tailproof.typing import Array

__all__ = ["ALL_IN", "largest_bet", "log_capital", "log_capital_needed"]

ALL_IN = 0.99
"""The largest share of the capital that one reward can lose; at 1 it could lose all."""


def log_capital_needed(level: float) -> float:
    """Return ln(2/(1 − level)), the capital that refutes an end of a two-sided interval.

    >>> round(log_capital_needed(0.95), 3)
    3.689
    """
    return math.log(2 / (1 - number("level", level, above=0, below=1)))


def largest_bet(loss: ArrayLike, share: float = ALL_IN) -> Array:
    """Return the bet with which the largest loss costs this share of the capital.

    >>> float(largest_bet(0.5))
    1.98
    """
    return np.asarray(share / np.maximum(loss, 1e-300))


def log_capital(logs: Array, log_weights: Array) -> float:
    """Return the logarithm of the capital spread over bets, Σ w_j exp(logs_j).

    >>> round(log_capital(np.log([8.0, 4.0]), np.log([0.25, 0.75])), 3)  # ln 5
    1.609
    """
    return float(np.logaddexp.reduce(logs + log_weights))
