"""What every figure of the paper is made of, and how a claim is measured."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import t as student_t

from tailproof.results.identification import Identification
from tailproof.results.regret import Result
from tailproof.simulation.work import Work

__all__ = [
    "Exhibit",
    "Finding",
    "Found",
    "Picture",
    "Sweep",
    "below",
    "best",
    "final",
    "ratio",
    "verdict",
    "within",
]

Array = NDArray[np.float64]
R = TypeVar("R")
Found = Result | Identification
"""What an exhibit may find."""
Word = Literal["holds", "holds partly", "does not hold", "not decided"]


class Sweep(Protocol):
    """Runs named plans and returns their results."""

    def __call__(self, plans: Mapping[str, Work[Any, R]], /) -> dict[str, R]: ...


class Picture(NamedTuple):
    """A figure, and the words for those who cannot see it."""

    figure: Figure
    alt: str


@dataclass(frozen=True)
class Finding:
    """One measured part of a claim: a number with its 95 % interval, and whether it agrees."""

    text: str
    value: float
    low: float
    high: float
    holds: bool | None
    """None where the interval leaves it open."""

    def __str__(self) -> str:
        value, low, high = (
            f"{x:.0f}".replace("-", "−") if abs(x) >= 100 else f"{x:.3g}".replace("-", "−")
            for x in (self.value, self.low, self.high)
        )
        return f"{self.text}: {value}" + ("" if self.low == self.high else f" [{low}, {high}]")


class Exhibit(Protocol):
    """A module of this package: settings as data, a run, a drawing and a claim."""

    TITLE: str
    CLAIM: str
    SETTINGS: Mapping[str, Mapping[str, Any]]
    DIFFERENCES: Sequence[str]
    REFERENCE: Mapping[str, Mapping[str, tuple[float, float]]]
    """Mean and standard deviation of final regrets computed elsewhere, by result and policy."""

    def run(self, sweep: Sweep, size: str, seed: int) -> Mapping[str, Found]:
        """Simulate; nothing is drawn."""

    def draw(self, results: Mapping[str, Any]) -> dict[str, Picture]:
        """Draw from results alone."""

    def judge(self, results: Mapping[str, Any]) -> list[Finding]:
        """Measure each part of the claim."""


def final(result: Result, policy: str) -> Array:
    """Return the regret of each path at the horizon."""
    return result.curves[policy].regret[:, -1]


def best(result: Result, names: Iterable[str]) -> str:
    """Return the policy with the smallest mean regret at the horizon."""
    return min(names, key=lambda name: float(final(result, name).mean()))


def below(text: str, smaller: Array, larger: Array) -> Finding:
    """Measure whether one sample has the smaller mean: their difference, by Welch's interval.

    >>> below("a − b", np.array([1.0, 2.0, 3.0]), np.array([9.0, 8.0, 7.0])).holds
    True
    """
    value = float(smaller.mean() - larger.mean())
    squares = np.array([x.var(ddof=1) / len(x) for x in (smaller, larger)])
    if squares.sum() == 0:
        return Finding(text, value, value, value, value < 0)
    freedom = squares.sum() ** 2 / np.sum(squares**2 / (len(smaller) - 1, len(larger) - 1))
    half = float(student_t.ppf(0.975, freedom) * math.sqrt(squares.sum()))
    low, high = value - half, value + half
    return Finding(text, value, low, high, _agrees(high < 0, low > 0))


def ratio(text: str, sample: Array, other: Array, *, at_most: float) -> Finding:
    """Measure whether a ratio of means stays under a bound: interval by the delta method.

    >>> str(ratio("a / b", np.array([1.0, 1.1, 0.9]), np.array([1.0, 0.8, 1.2]), at_most=2))
    'a / b: 1 [0.776, 1.29]'
    """
    value = float(sample.mean() / other.mean())
    squares = sum(float((x.std(ddof=1) / x.mean()) ** 2 / len(x)) for x in (sample, other))
    stretch = math.exp(1.96 * math.sqrt(squares))
    low, high = value / stretch, value * stretch
    return Finding(text, value, low, high, _agrees(high <= at_most, low > at_most))


def within(text: str, value: float, low: float, high: float) -> Finding:
    """State whether a number without chance lies in a range."""
    return Finding(text, value, value, value, low <= value <= high)


def verdict(findings: Sequence[Finding]) -> Word:
    """Sum up: a claim holds if all its parts agree, and does not if none does and one disagrees.

    >>> verdict([within("a", 1, 0, 2), within("b", 3, 0, 2)])
    'holds partly'
    """
    parts = {finding.holds for finding in findings}
    if parts == {True}:
        return "holds"
    if True in parts:
        return "holds partly"
    return "does not hold" if False in parts else "not decided"


def _agrees(yes: bool, no: bool) -> bool | None:
    return True if yes else False if no else None
