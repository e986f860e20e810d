"""Arms that have hardly sold anything: when their silence counts, and looks at them until then."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, ndtri

from tailproof.policies.state.base import Array
from tailproof.policies.state.sales import SalesHistogram

__all__ = ["ERROR", "FIRST", "PACE", "silent_looks"]

FIRST = 2
"""Purchases of an arm before its own mean is believed: one alone has no spread."""
ERROR = 0.01
"""The probability with which silence rules out an arm that earns more than the leader, once for no
purchase and once for one; also the error of its lower bound."""
PACE = 14.0
"""An arm ruled out by purchases of other arms is looked at about 2·PACE·√(t/K) times in t visitors:
few enough for an arm that never sells, and 2800 of 20 000 visitors with two arms. Chosen on shops
of two to four arms that no benchmark reports."""
_RATES: Array = np.asarray(gammaincinv(np.arange(1.0, FIRST + 1), 1 - ERROR), np.float64)
"""The mean number of purchases at which 0, or at most 1, has the probability ERROR (Poisson, which
bounds the binomial)."""
_SURE = float(-ndtri(ERROR))


def silent_looks(
    state: SalesHistogram, largest: float | None
) -> tuple[Array | None, NDArray[np.bool_]]:
    """Return the probabilities of looks, and which arms only a look may choose: (paths, K) each.

    No probabilities if no arm is silent. A silent arm is looked at by a K-th of visitors until its
    silence counts: until a bound on its sales, times the largest purchase that any arm made or that
    was given, is below a lower bound on the leader's mean. If nobody gave the largest purchase,
    PACE/√(K t) of visitors look at it afterwards.
    """
    quiet = np.asarray(state.bought < FIRST)
    if not np.count_nonzero(quiet):
        return None, quiet
    n, k = np.maximum(state.visitors, 1.0), state.arms
    mean = state.sums / n
    spread = np.maximum(state.squares / n - mean * mean, 0)
    surely = (mean - _SURE * np.sqrt(spread / n)).max(axis=1, keepdims=True)
    if largest is None:
        most, later = state.most[:, None], PACE / np.sqrt(k * n.sum(axis=1, keepdims=True))
    else:
        most = np.where(state.unit > 0, largest / state.unit, np.inf)[:, None]
        later = np.zeros((1, 1))
    bound = _RATES[np.minimum(state.bought, FIRST - 1)] / n * most
    counts = bound < surely
    looks = np.where(quiet, np.where(counts, np.minimum(later, 1 / k), 1 / k), 0.0)
    return looks, quiet & ~counts
