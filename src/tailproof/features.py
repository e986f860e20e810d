"""Visitors' features: from a row of numbers to the vectors that a policy takes."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tailproof.checks import array, require
from tailproof.typing import Array

__all__ = ["Scaler", "cross", "share"]

_FARTHEST = 3.0
"""Spreads from the middle at which a feature is cut: a longer vector would outweigh all others."""
_NORMAL_QUARTILE = 1.349
"""The interquartile range of a normal law, in standard deviations."""


def share(arms: Iterable[str], visitor: ArrayLike) -> dict[str, Array]:
    """Return the visitor's features for every arm, for policies with a regression for each arm.

    x_a = visitor

    `LinRevenueUCB` is asked like this.

    >>> share(["red", "blue"], [0.5, 1.0])
    {'red': array([0.5, 1. ]), 'blue': array([0.5, 1. ])}

    """
    names, x = _checked(arms, visitor)
    return dict.fromkeys(names, x)


def cross(arms: Iterable[str], visitor: ArrayLike) -> dict[str, Array]:
    """Return a vector for each arm: the visitor's features and a constant, in a place of its own.

    x_a = (0, …, 0, 1, visitor, 0, …, 0),  of length K (d + 1)

    So a policy with one vector of coefficients, such as `LinStudentUCB` or `OFUL`, learns a
    regression for each arm. The places follow the order of the arms, which must stay the same.

    >>> {arm: x.tolist() for arm, x in cross(["red", "blue"], [0.5]).items()}
    {'red': [1.0, 0.5, 0.0, 0.0], 'blue': [0.0, 0.0, 1.0, 0.5]}

    Source: the disjoint model of Li, Chu, Langford and Schapire 2010. Differences: the constant.
    """
    names, x = _checked(arms, visitor)
    with_one = np.append(1.0, x)
    rows = np.kron(np.eye(len(names)), with_one)
    return dict(zip(names, rows, strict=True))


@dataclass(frozen=True, eq=False)
class Scaler:
    """Features of comparable size in any unit, scaled by the features of earlier visitors.

    z = min(max((x − median)/spread, −3), 3)/(3√d),  spread the interquartile range / 1.349

    Its vectors have at most unit length, as `OFUL` assumes. A feature that is mostly constant, like
    a rare flag, has its standard deviation as its spread; a constant feature becomes zero. There is
    nothing to tune, and a few absurd values change little.

    Parameters
    ----------
    centre, spread : arrays of shape (d,)
        From `of`.

    Examples
    --------
    >>> scaler = Scaler.of([[20, 1e6], [30, 3e6], [40, 2e6], [1e9, 2e6]])
    >>> scaler([35, 3e6]).round(2).tolist()
    [0.0, 0.64]

    """

    centre: Array
    spread: Array

    @classmethod
    def of(cls, visitors: ArrayLike) -> "Scaler":
        """Learn the middle and the spread of each feature; a row for each visitor."""
        x = array("visitors", visitors)
        require(x.ndim == 2 and x.size > 0, "visitors", "a row of numbers for each", visitors)
        require(bool(np.isfinite(x).all()), "visitors", "finite", visitors)
        low, centre, high = np.quantile(x, [0.25, 0.5, 0.75], axis=0)
        spread = (high - low) / _NORMAL_QUARTILE
        return cls(centre, np.where(spread > 0, spread, x.std(axis=0)))

    def __call__(self, visitor: ArrayLike) -> Array:
        """Return scaled features of one visitor, or of several, a row each."""
        x = array("visitor", visitor)
        rule = f"{len(self.centre)} numbers"
        require(x.shape[-1:] == self.centre.shape, "visitor", rule, visitor)
        z = (x - self.centre) / np.where(self.spread > 0, self.spread, np.inf)
        scaled: Array = np.clip(z, -_FARTHEST, _FARTHEST) / (_FARTHEST * np.sqrt(len(self.centre)))
        return scaled


def _checked(arms: Iterable[str], visitor: ArrayLike) -> tuple[list[str], Array]:
    names, x = list(arms), array("visitor", visitor)
    require(x.ndim == 1 and bool(np.isfinite(x).all()), "visitor", "a row of numbers", visitor)
    require(len(set(names)) == len(names) > 0, "arms", "names that differ", names)
    return names, x


def __dir__() -> list[str]:
    return __all__
