"""What every exhibit is made of, and how a claim is measured.

An exhibit makes one or more claims; each says whose it is and consists of parts that can be
measured. The intervals of the parts of one claim hold together with 95 % confidence: each is
taken at the level 1 − 0.05/parts (Bonferroni).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from matplotlib.figure import Figure
from scipy.stats import t as student_t

from tailproof.results import Identification, Result
from tailproof.results.identification import binomial_interval
from tailproof.simulation.cells import BasePlan
from tailproof.typing import Array

__all__ = [
    "Claim",
    "Comparison",
    "Exhibit",
    "Fact",
    "JudgedClaim",
    "Measured",
    "Part",
    "Picture",
    "Ratio",
    "Share",
    "Sweep",
    "Word",
    "below",
    "best",
    "fact",
    "final",
    "judge_claims",
    "mean_within",
    "ratio",
]

R = TypeVar("R")
Comparison = Result | Identification
"""What an exhibit may find."""
Word = Literal["holds", "does not hold", "mixed", "open"]


class Sweep(Protocol):
    """Runs named plans and returns their results."""

    def __call__(self, plans: Mapping[str, BasePlan[Any, R]], /) -> dict[str, R]:
        """Run what is not there yet."""


class Picture(NamedTuple):
    """A figure, and the words for those who cannot see it."""

    figure: Figure
    alt: str


@dataclass(frozen=True)
class Part(ABC):
    """One measured part of a claim: it agrees where its value lies in a range."""

    text: str
    value: float
    low: float
    high: float
    """The range in which the claim wants the value."""

    @abstractmethod
    def interval(self, level: float) -> tuple[float, float]:
        """Return the interval that holds the true value with this confidence."""

    def agrees(self, level: float) -> bool | None:
        """Return whether the claim agrees; None where the interval leaves it open."""
        low, high = self.interval(level)
        if self.low <= low and high <= self.high:
            return True
        return False if high < self.low or low > self.high else None


@dataclass(frozen=True)
class Fact(Part):
    """A number without chance."""

    def interval(self, level: float) -> tuple[float, float]:
        """Return the number itself, twice."""
        return self.value, self.value


@dataclass(frozen=True)
class Measured(Part):
    """A mean of independent paths, with its standard error: Student's interval."""

    error: float
    freedom: float

    def interval(self, level: float) -> tuple[float, float]:
        """Return value ± t·error."""
        half = self._half(level)
        return self.value - half, self.value + half

    def _half(self, level: float) -> float:
        if self.error == 0:
            return 0.0
        return float(student_t.ppf((1 + level) / 2, self.freedom)) * self.error


@dataclass(frozen=True)
class Ratio(Measured):
    """A ratio of means, with the standard error of its logarithm."""

    def interval(self, level: float) -> tuple[float, float]:
        """Return value · exp(± t·error)."""
        stretch = math.exp(self._half(level))
        return self.value / stretch, self.value * stretch


@dataclass(frozen=True)
class Share(Part):
    """A share of independent paths: the exact binomial interval."""

    paths: int

    def interval(self, level: float) -> tuple[float, float]:
        """Return the interval of Clopper and Pearson."""
        return binomial_interval(round(self.value * self.paths), self.paths, level)


@dataclass(frozen=True)
class Claim:
    """A statement, whose it is, and the parts by which it is judged.

    Parameters
    ----------
    text : str
        The statement, in words that its author would recognise.
    whose : str
        For instance "the paper, section 5", "the public scripts" or "our question".
    parts : sequence of Part
    """

    text: str
    whose: str
    parts: Sequence[Part]


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with its verdict."""

    claim: Claim

    @property
    def level(self) -> float:
        """The confidence of each interval, for 95 % over all parts of the claim."""
        return 1 - 0.05 / len(self.claim.parts)

    @property
    def agreement(self) -> list[bool | None]:
        """Whether each part agrees."""
        return [part.agrees(self.level) for part in self.claim.parts]

    @property
    def verdict(self) -> Word:
        """Sum up: all parts agree, none does and one disagrees, parts differ, or it is open.

        A part that is open neither agrees nor disagrees: a claim of which nothing disagrees but
        something is open is open.
        """
        found = set(self.agreement)
        if False in found:
            return "mixed" if True in found else "does not hold"
        return "holds" if found == {True} else "open"

    @property
    def deciding(self) -> str:
        """The part that decides: it disagrees, is open, or has the least to spare."""
        wanted = {"holds": True, "open": None}.get(self.verdict, False)
        parts = self.claim.parts
        chosen = [p for p, ok in zip(parts, self.agreement, strict=True) if ok is wanted]
        return self.describe(min(chosen, key=self._spare))

    def describe(self, part: Part) -> str:
        """Return a part in words: its value and its interval."""
        low, high = part.interval(self.level)
        span = "" if low == high else f" [{_number(low)}, {_number(high)}]"
        return f"{part.text}: {_number(part.value)}{span}"

    def rows(self) -> list[tuple[str, str]]:
        """Return every part in words, and whether it agrees."""
        words = {True: "agrees", False: "disagrees", None: "open"}
        return [
            (self.describe(part), words[ok])
            for part, ok in zip(self.claim.parts, self.agreement, strict=True)
        ]

    def _spare(self, part: Part) -> float:
        """How far the value is from the end of its range, beside the width of its interval."""
        low, high = part.interval(self.level)
        width = max(high - low, 1e-12 * abs(part.value), 1e-300)
        return min(abs(part.value - part.low), abs(part.high - part.value)) / width


class Exhibit(Protocol):
    """A module of this package: settings as data, a run, a drawing and claims."""

    TITLE: str
    SETTINGS: Mapping[str, Mapping[str, Any]]
    DIFFERENCES: Sequence[str]
    REFERENCE: Mapping[str, Mapping[str, tuple[float, float]]]
    """Mean and standard deviation of final regrets computed elsewhere, by result and policy."""

    def run(self, sweep: Sweep, size: str, seed: int) -> Mapping[str, Comparison]:
        """Simulate; nothing is drawn."""

    def draw(self, results: Mapping[str, Any]) -> dict[str, Picture]:
        """Draw from results alone."""

    def check_claims(self, results: Mapping[str, Any]) -> list[Claim]:
        """Measure each claim."""


def judge_claims(claims: Iterable[Claim]) -> list[JudgedClaim]:
    """Return the claims with their verdicts.

    >>> claim = Claim("it is one or two", "our question", [fact("a", 1, 1, 2), fact("b", 3, 1, 2)])
    >>> (found,) = judge_claims([claim])
    >>> found.verdict, found.deciding
    ('mixed', 'b: 3')
    """
    return [JudgedClaim(claim) for claim in claims]


def final(result: Result, policy: str) -> Array:
    """Return the regret of each path at the horizon."""
    return result.curves[policy].regret[:, -1]


def best(result: Result, names: Iterable[str]) -> str:
    """Return the policy with the smallest mean regret at the horizon."""
    return min(names, key=lambda name: float(final(result, name).mean()))


def fact(text: str, value: float, low: float, high: float) -> Fact:
    """State a number without chance, and the range in which the claim wants it."""
    return Fact(text, value, low, high)


def mean_within(text: str, sample: Array, low: float, high: float) -> Measured:
    """Measure whether the mean of independent paths lies in a range."""
    n = len(sample)
    error = float(sample.std(ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    return Measured(text, float(sample.mean()), low, high, error, max(n - 1, 1))


def below(text: str, smaller: Array, larger: Array) -> Measured:
    """Measure whether one sample has the smaller mean, by the differences of paired paths.

    Paths of one plan meet the same arms, so that differences are steadier than either sample.

    >>> part = below("a − b", np.array([1.0, 2.0, 3.0]), np.array([9.0, 11.0, 11.0]))
    >>> part.value, part.agrees(0.95)
    (-8.333333333333334, True)
    """
    return mean_within(text, smaller - larger, -math.inf, 0.0)


def ratio(
    text: str, sample: Array, other: Array, *, at_least: float = 0.0, at_most: float = math.inf
) -> Ratio:
    """Measure whether a ratio of means of paired paths stays in a range: the delta method.

    >>> part = ratio("a / b", np.array([1.0, 1.1, 0.9]), np.array([1.0, 0.8, 1.2]), at_most=9)
    >>> round(part.value, 3), part.agrees(0.95)
    (1.0, True)
    """
    mean, base = float(sample.mean()), float(other.mean())
    n = len(sample)
    relative = sample / mean - other / base
    error = float(relative.std(ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    return Ratio(text, mean / base, at_least, at_most, error, max(n - 1, 1))


def _number(x: float) -> str:
    text = f"{x:.0f}" if 100 <= abs(x) < math.inf else f"{x:.3g}"
    return text.replace("-", "−").replace("inf", "∞")
