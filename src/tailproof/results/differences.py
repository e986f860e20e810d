"""Differences between policies on the same paths, with their intervals."""

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from tailproof.checks import number
from tailproof.formatting import several
from tailproof.notebooks import cells, html, latex
from tailproof.stats.contrasts import holm
from tailproof.typing import Array

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from tailproof.results.regret import Result

__all__ = ["PairwiseDifferences", "RegretDifference"]

_ROWS = 5
"""How many checkpoints a table shows."""


@dataclass(frozen=True, eq=False, repr=False)
class RegretDifference:
    """The mean difference of the regrets of two policies at each checkpoint, and its interval.

    Attributes
    ----------
    policy, other : str
        The difference is the regret of `policy` less the regret of `other`.
    pulls, mean, low, high : arrays of shape (checkpoints,)
    level : float
        The confidence of the interval at each checkpoint alone.

    Examples
    --------
    >>> two = np.array([1.0, 2.0])
    >>> RegretDifference("a", "b", np.array([10, 20]), two, two - 1, two + 1)
    <RegretDifference a − b after 20 pulls: 2, 95% interval 1 to 3>
    """

    policy: str
    other: str
    pulls: NDArray[np.int64]
    mean: Array
    low: Array
    high: Array
    level: float = 0.95

    def to_frame(self) -> "pandas.DataFrame":
        """Return a row for each checkpoint; needs pandas."""
        import pandas

        columns = {"mean": self.mean, "low": self.low, "high": self.high}
        return pandas.DataFrame(columns, index=pandas.Index(self.pulls, name="pulls"))

    def __repr__(self) -> str:
        mean, low, high = (f"{array[-1]:.4g}" for array in (self.mean, self.low, self.high))
        return (
            f"<RegretDifference {self.policy} − {self.other} after {self.pulls[-1]} pulls: "
            f"{mean}, {self.level:.0%} interval {low} to {high}>"
        )

    def _repr_html_(self) -> str:
        places = np.unique(np.linspace(0, len(self.pulls) - 1, _ROWS + 1).round().astype(int)[1:])
        words = f"Regret of {self.policy} less that of {self.other}; {self.level:.0%} intervals."
        return html(cells(self.to_frame().iloc[places], "pulls"), [words])

    def plot(self) -> "Figure":
        """Draw the mean difference against the pulls, with its interval."""
        from tailproof.drawing import PALETTE, canvas

        figure, ((axes,),) = canvas(1, 1)
        axes.fill_between(self.pulls, self.low, self.high, color=PALETTE[0], alpha=0.2, linewidth=0)
        axes.plot(self.pulls, self.mean, color=PALETTE[0])
        axes.axhline(0, color="0.4", linewidth=0.8)
        axes.set_xlabel("pulls", fontsize=9)
        axes.set_ylabel("difference of regrets", fontsize=9)
        title = f"{self.policy} less {self.other}, mean and {100 * self.level:g} % interval"
        axes.set_title(title, fontsize=9, parse_math=False)
        return figure


@dataclass(frozen=True, eq=False, repr=False)
class PairwiseDifferences:
    """The final regrets of all pairs of policies compared, with intervals that hold jointly.

    Attributes
    ----------
    pairs : tuple of (policy, other)
        The policy with the smaller mean comes first.
    mean, low, high : arrays of shape (pairs,)
        Regret of the first less the regret of the second; the intervals hold together (Bonferroni),
        and an interval may reach over 0 although Holm's test calls its pair different.
    p, adjusted : arrays of shape (pairs,)
        Two-sided p values of Student's test of the paired paths, each alone and after Holm.
    level : float
        The confidence of all intervals together.

    Examples
    --------
    >>> p = np.array([0.01])
    >>> PairwiseDifferences((("a", "b"),), -3 * p, -4 * p, -2 * p, p, p, 0.95)
    <1 pair of policies, 1 differs at 0.05 after Holm>
    """

    pairs: tuple[tuple[str, str], ...]
    mean: Array
    low: Array
    high: Array
    p: Array
    adjusted: Array
    level: float

    def to_frame(self) -> "pandas.DataFrame":
        """Return a row for each pair; needs pandas."""
        import pandas

        names = ("mean", "low", "high", "p", "adjusted")
        index = pandas.MultiIndex.from_tuples(self.pairs, names=["policy", "other"])
        frame = pandas.DataFrame({name: getattr(self, name) for name in names}, index=index)
        frame["differs"] = np.where(self.adjusted <= 1 - self.level, "yes", "open")
        return frame

    def __repr__(self) -> str:
        sure = int(np.sum(self.adjusted <= 1 - self.level))
        level = f"{1 - self.level:.2g}"
        pairs, differ = several(len(self.pairs), "pair"), "differs" if sure == 1 else "differ"
        return f"<{pairs} of policies, {sure} {differ} at {level} after Holm>"

    def _repr_html_(self) -> str:
        return html(cells(self.to_frame(), "policy", "other"), [self._note()])

    def to_latex(self, caption: str | None = None, label: str | None = None) -> str:
        """Return the pairs as a table for LaTeX with the package booktabs."""
        return latex(cells(self.to_frame(), "policy", "other"), caption, label)

    def _note(self) -> str:
        pairs = several(len(self.pairs), "pair")
        return (
            f"Difference of final regrets, paired by path. Intervals hold together at "
            f"{self.level:.0%} (Bonferroni); adjusted: p after Holm for {pairs}, which may call a "
            "pair different whose interval just reaches over 0."
        )


def difference(result: "Result", policy: str, other: str, level: float) -> RegretDifference:
    """Return d̄ ± t s/√n over the differences d of the paths, at each checkpoint."""
    mean, error, n = _differences(result, policy, other)
    half = stdtrit(n - 1, (1 + number("level", level, above=0, below=1)) / 2) * error
    return RegretDifference(policy, other, result.pulls, mean, mean - half, mean + half, level)


def pairwise(result: "Result", level: float) -> PairwiseDifferences:
    """Return the differences of all pairs at the last checkpoint."""
    number("level", level, above=0, below=1)
    order = sorted(result.curves, key=lambda name: float(result.mean(name)[-1]))
    pairs = tuple(combinations(order, 2))
    if not pairs:
        raise ValueError("policies must be at least two, to be compared in pairs")
    gaps = [_differences(result, *pair) for pair in pairs]
    mean = np.array([gap[-1] for gap, _, _ in gaps])
    error = np.array([errors[-1] for _, errors, _ in gaps])
    n = gaps[0][2]
    half = stdtrit(n - 1, 1 - (1 - level) / len(pairs) / 2) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(mean == 0, 0.0, -abs(mean) / error)  # equal on every path: no difference
    p = np.asarray(2 * stdtr(n - 1, t))
    return PairwiseDifferences(pairs, mean, mean - half, mean + half, p, holm(p), level)


def _differences(result: "Result", policy: str, other: str) -> tuple[Array, Array, int]:
    """Return mean and standard error of the differences of paired paths, and how many paths."""
    gaps = result.regret(policy) - result.regret(other)
    n = len(gaps)
    if n < 2:
        raise ValueError(
            f"paths must be at least 2 to say how far {policy!r} and {other!r} differ, got 1"
        )
    return gaps.mean(axis=0), gaps.std(axis=0, ddof=1) / np.sqrt(n), n
