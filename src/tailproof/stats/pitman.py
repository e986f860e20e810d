"""Pitman's estimator of a location."""

import numpy as np

from tailproof.chunking import chunks
from tailproof.stats.estimators import Median
from tailproof.typing import Array

__all__ = ["pitman"]


_STEPS = 0.3 * np.sinh(np.linspace(-4, 4, 13))
"""Offsets from each sample at which the likelihood is evaluated, in units of `spread`."""
_LARGEST = np.finfo(np.float64).max
_REACH = _STEPS[-1] - _STEPS[-2]
"""The widest step of the trapezoid rule; in wider gaps the likelihood is negligible."""


def pitman(x: Array, spread: Array) -> Array:
    """Return Pitman's estimator of the location of Cauchy samples along the last axis.

    ∫ m Π_i f(x_i − m) dm / ∫ Π_i f(x_i − m) dm,  f(x) = 1/(spread² + x²)

    >>> float(pitman(np.array([-1.0, 0.0, 1.0, 1e300]), np.array(1.0)).round(3))
    0.0

    Source: Pitman 1939. Differences: the trapezoid rule over 13 points around each sample; the
    estimate is ±inf if more than half of the samples are.
    """
    spread = np.broadcast_to(spread, x.shape[:-1]).reshape(-1, 1)
    rows = x.reshape(-1, x.shape[-1])
    middle = Median()(rows)[:, None]
    # The score falls to zero far out, so clipping a sample there makes no difference. Halves are
    # exact, and the difference of two halves does not overflow.
    with np.errstate(invalid="ignore", over="ignore"):
        u = np.clip(np.nan_to_num(2 * ((rows / 2 - middle / 2) / spread)), -1e100, 1e100)
    centre = np.empty((len(u), 1))
    for part in chunks(len(u), _STEPS.size * u.shape[1]):
        m = np.sort((u[part, :, None] + _STEPS).reshape(len(u[part]), -1))
        log = np.zeros_like(m)
        for sample in u[part].T:
            log -= np.log1p((m - sample[:, None]) ** 2)
        weight = np.exp(log - log.max(axis=1, keepdims=True))
        weight[:, 1:-1] *= np.minimum(m[:, 2:] - m[:, :-2], 2 * _REACH) / 2
        weight[:, [0, -1]] = 0  # the likelihood is negligible at the ends, as in wide gaps
        centre[part, 0] = np.vecdot(weight, m) / weight.sum(axis=1)
    with np.errstate(over="ignore"):
        estimate = np.clip(middle + spread * centre, -_LARGEST, _LARGEST)
    return np.where(np.isinf(middle), middle, estimate).reshape(x.shape[:-1])
