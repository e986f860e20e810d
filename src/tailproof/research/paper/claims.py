"""The contract of a study, and how its claims are judged.

A claim has parts that are measured, each with an interval. The intervals of one claim hold together
with 95 % confidence: each has the level 1 − 0.05/parts (Bonferroni).
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar

from scipy.special import stdtrit

from tailproof.environments.linear import LinearBandit, orthant
from tailproof.formatting import three_digits
from tailproof.noise import StudentT
from tailproof.policies import Policy
from tailproof.results import Identification, Result
from tailproof.results.identification import binomial_interval
from tailproof.simulation.cells import BasePlan
from tailproof.simulation.plan import Plan
from tailproof.typing import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Claim",
    "Early",
    "JudgedClaim",
    "Kind",
    "Measured",
    "Part",
    "Picture",
    "Ratio",
    "Share",
    "Study",
    "StudyResult",
    "Sweep",
    "Verdict",
    "below",
    "best",
    "errors",
    "fewest",
    "final",
    "judge_claims",
    "less_regret",
    "mean_within",
    "means",
    "ratio",
    "simulate_nothing",
    "student_plan",
]

ENOUGH = 10
"""The paths of the paper's figures 2 to 5; a verdict on fewer paths says on how many."""
MANY = 30
"""The decisions from which on a regret is more than the luck of the first choices; with fewer, a
verdict is a kind of its own."""
R = TypeVar("R")
Verdict = Literal["holds", "mixed", "does not hold", "open"]
Kind = Literal["holds", "mixed", "does not hold", "open", "by few decisions"]
StudyResult = Result | Identification
"""Policies compared on the same paths: by their regret, or by the best arm they name."""


class Sweep(Protocol):
    """Run named plans and return their results."""

    def __call__(self, plans: Mapping[str, BasePlan[Any, R]], /) -> dict[str, R]:
        """Run the plans whose results are not stored yet."""


class Picture(NamedTuple):
    """A figure and its description in words, for readers who cannot see it."""

    figure: "Figure"
    alt: str

    @property
    def caption(self) -> str:
        """The first sentence of the description."""
        return self.alt.split(". ")[0].rstrip(".") + "."


@dataclass(frozen=True)
class Part:
    """One part of a claim: it agrees if the true value lies between `low` and `high`.

    A plain part is a computed number, known exactly; the subclasses have intervals. `decisions` is
    the fewest decisions of any path that it compares, if it compares algorithms.
    """

    text: str
    value: float
    low: float
    high: float
    decisions: int | None = field(default=None, kw_only=True)

    def interval(self, level: float) -> tuple[float, float]:
        """Return the interval that holds the true value with this confidence."""
        return self.value, self.value

    def agrees(self, level: float) -> bool | None:
        """Return whether the part agrees; None if its interval leaves that open."""
        low, high = self.interval(level)
        if self.low <= low and high <= self.high:
            return True
        return False if high < self.low or low > self.high else None


@dataclass(frozen=True)
class Measured(Part):
    """A mean of independent paths with its standard error: Student's interval."""

    error: float
    paths: int

    def interval(self, level: float) -> tuple[float, float]:
        """Return value ± t·error."""
        half = self._half(level)
        return self.value - half, self.value + half

    def _half(self, level: float) -> float:
        if self.error == 0:
            return 0.0
        return float(stdtrit(max(self.paths - 1, 1), (1 + level) / 2)) * self.error


@dataclass(frozen=True)
class Ratio(Measured):
    """A ratio of means with the standard error of its logarithm."""

    def interval(self, level: float) -> tuple[float, float]:
        """Return value · exp(± t·error)."""
        factor = math.exp(self._half(level))
        return self.value / factor, self.value * factor


@dataclass(frozen=True)
class Early(Ratio):
    """A ratio of a run that was cut short: the claim about the whole run stays open."""

    def agrees(self, level: float) -> bool | None:
        """Return None."""
        return None


@dataclass(frozen=True)
class Share(Part):
    """A share of independent paths: the exact binomial interval."""

    paths: int

    def interval(self, level: float) -> tuple[float, float]:
        """Return the interval of Clopper and Pearson."""
        return binomial_interval(round(self.value * self.paths), self.paths, level)


@dataclass(frozen=True)
class Claim:
    """A statement, who makes it, and the parts that are measured.

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
    def verdict(self) -> Verdict:
        """Sum up the parts.

        The claim holds if all agree, is mixed if some agree and some disagree, and does not hold
        if some disagree and none agrees. Otherwise it is open.
        """
        agreements = set(self.agreement)
        if False in agreements:
            return "mixed" if True in agreements else "does not hold"
        return "holds" if agreements == {True} else "open"

    @property
    def decisions(self) -> int | None:
        """The fewest decisions that the verdict needs, None where nothing decides.

        "Holds" needs every part. "Does not hold" needs one disagreeing part, and "mixed" one
        disagreeing and one agreeing part; where one part is enough, the part with the most
        decisions counts.
        """
        made = [math.inf if part.decisions is None else part.decisions for part in self._decisive]
        if self.verdict in ("holds", "open"):
            needed = min(made)
        else:
            needed = max(made)
            if self.verdict == "mixed":
                pairs = zip(self.claim.parts, self.agreement, strict=True)
                counts = (part.decisions for part, ok in pairs if ok)
                needed = min(needed, max(math.inf if n is None else n for n in counts))
        return None if needed == math.inf else int(needed)

    @property
    def kind(self) -> Kind:
        """The verdict, or "by few decisions" where some algorithm behind it made under thirty."""
        few = self.decisions is not None and self.decisions < MANY
        return "by few decisions" if few and self.verdict != "open" else self.verdict

    @property
    def deciding(self) -> str:
        """The deciding part in words; of several deciding parts, the part nearest to its limit."""
        part = min(self._decisive, key=self._spare)
        return f"{part.text}: {self._value_and_interval(part)}"

    @property
    def caveat(self) -> str:
        """Why the verdict is weak, if it is: few decisions, few paths, or runs cut short."""
        if any(isinstance(part, Early) for part in self._decisive):
            return "runs cut short"
        told = []
        if self.kind == "by few decisions":
            told.append(f"by {self.decisions} decision{'s' * (self.decisions != 1)}")
        paths = [part.paths for part in self._decisive if isinstance(part, Measured | Share)]
        if paths and min(paths) < ENOUGH:
            told.append(f"on {min(paths)} paths")
        return ", ".join(told)

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Return each part: in words, value and interval, decisions, and whether it agrees."""
        answers = {True: "agrees", False: "disagrees", None: "open"}
        return [
            (
                part.text,
                self._value_and_interval(part),
                "" if part.decisions is None else str(part.decisions),
                answers[ok],
            )
            for part, ok in zip(self.claim.parts, self.agreement, strict=True)
        ]

    @property
    def _decisive(self) -> list[Part]:
        """The parts behind the verdict."""
        wanted = {"holds": True, "open": None}.get(self.verdict, False)
        pairs = zip(self.claim.parts, self.agreement, strict=True)
        return [part for part, ok in pairs if ok is wanted]

    def _value_and_interval(self, part: Part) -> str:
        """Return the value of a part and its interval."""
        low, high = part.interval(self.level)
        span = "" if low == high else f" [{three_digits(low)}, {three_digits(high)}]"
        return f"{three_digits(part.value)}{span}"

    def _spare(self, part: Part) -> float:
        """Return the distance from the value to its nearest limit, in widths of its interval."""
        low, high = part.interval(self.level)
        width = max(high - low, 1e-12 * abs(part.value), 1e-300)
        return min(abs(part.value - part.low), abs(part.high - part.value)) / width


class Study(Protocol):
    """A module of this package: settings, a simulation, its pictures and its claims."""

    TITLE: str
    SETTINGS: Mapping[str, Mapping[str, Any]]
    DIFFERENCES: Sequence[str]

    def run(self, sweep: Sweep, size: str, seed: int) -> Mapping[str, StudyResult]:
        """Simulate."""

    def draw(self, results: Mapping[str, Any]) -> dict[str, Picture]:
        """Return the pictures of the results, by file name."""

    def check_claims(self, results: Mapping[str, Any]) -> list[Claim]:
        """Measure the parts of each claim."""


def simulate_nothing(sweep: Sweep, size: str, seed: int) -> dict[str, Result]:
    """Return no results: the study needs formulas only."""
    return {}


def student_plan(
    policies: Mapping[str, Policy[Any]],
    df: float,
    environment: Callable[[StudentT], LinearBandit] = orthant,
    **settings: Any,
) -> Plan:
    """Return a plan under Student-t noise, in the paper's environment unless another is given."""
    return Plan(policies=policies, environment=environment(StudentT(df)), **settings)


def judge_claims(claims: Iterable[Claim]) -> list[JudgedClaim]:
    """Return the claims with their verdicts.

    >>> claim = Claim("it is one or two", "our question", [Part("a", 1, 1, 2), Part("b", 3, 1, 2)])
    >>> (judged,) = judge_claims([claim])
    >>> judged.verdict, judged.deciding
    ('mixed', 'b: 3')
    """
    return [JudgedClaim(claim) for claim in claims]


def final(result: Result, policy: str) -> Array:
    """Return the regret of each path at the horizon."""
    return result.curves[policy].regret[:, -1]


def errors(result: Result, policy: str) -> Array:
    """Return the error of the estimate on each path, at each checkpoint."""
    error = result.curves[policy].error
    assert error is not None  # claims are made only for policies that have an estimate
    return error


def best(result: Result, names: Iterable[str]) -> str:
    """Return the policy with the smallest mean regret at the horizon."""
    return min(names, key=lambda name: float(final(result, name).mean()))


def means(result: Result) -> str:
    """Return the mean regret of each policy at the horizon, as text for a picture."""
    return ", ".join(f"{name} {final(result, name).mean():.0f}" for name in result.curves)


def fewest(result: Result, *policies: str) -> int:
    """Return the fewest decisions that some of these policies made on a path."""
    return min(int(result.curves[name].decisions[-1]) for name in policies)


def mean_within(
    text: str, sample: Array, low: float, high: float, *, decisions: int | None = None
) -> Measured:
    """Measure whether the mean of independent paths lies in a range."""
    mean, error = float(sample.mean()), _standard_error(sample)
    return Measured(text, mean, low, high, error, len(sample), decisions=decisions)


def below(text: str, smaller: Array, larger: Array, *, decisions: int | None = None) -> Measured:
    """Measure whether one sample has the smaller mean, from the differences of paired paths.

    All policies of a plan play the same arms on a path, so differences vary less than either
    sample.

    >>> import numpy as np
    >>> part = below("a − b", np.array([1.0, 2.0, 3.0]), np.array([9.0, 11.0, 11.0]))
    >>> part.value, part.agrees(0.95)
    (-8.333333333333334, True)
    """
    return mean_within(text, smaller - larger, -math.inf, 0.0, decisions=decisions)


def less_regret(where: str, result: Result, policy: str, rival: str) -> Measured:
    """Measure whether a policy has less regret at the horizon than another."""
    text, count = f"{where}: {policy} minus {rival}", fewest(result, policy, rival)
    return below(text, final(result, policy), final(result, rival), decisions=count)


def ratio(
    text: str,
    sample: Array,
    other: Array,
    *,
    at_least: float = 0.0,
    at_most: float = math.inf,
    decisions: int | None = None,
) -> Ratio:
    """Measure whether the ratio of two means of paired paths lies in a range (delta method).

    >>> import numpy as np
    >>> part = ratio("a / b", np.array([1.0, 1.1, 0.9]), np.array([1.0, 0.8, 1.2]), at_most=9)
    >>> round(part.value, 3), part.agrees(0.95)
    (1.0, True)
    """
    mean, base = float(sample.mean()), float(other.mean())
    error = _standard_error(sample / mean - other / base)
    return Ratio(text, mean / base, at_least, at_most, error, len(sample), decisions=decisions)


def _standard_error(sample: Array) -> float:
    return float(sample.std(ddof=1)) / math.sqrt(len(sample)) if len(sample) > 1 else math.inf
