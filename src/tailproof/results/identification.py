"""The result of an identification: the arms that policies recommend."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from tailproof.checks import number
from tailproof.formatting import short
from tailproof.results.base import BaseResult, PolicyResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Identification", "Verdicts", "binomial_interval"]


@dataclass(frozen=True, eq=False, repr=False)
class Verdicts(PolicyResult):
    """The answers of one policy, each array of shape (paths,).

    Attributes
    ----------
    recommended : array of int
        The recommended arm, −1 if the budget ran out first.
    correct : array of bool
        Whether it is the best, or within the policy's own tolerance of it.
    pulls, decisions : arrays of int
        Raw pulls, and decisions that the policy had learned from.
    """

    recommended: NDArray[np.int64]
    correct: NDArray[np.bool_]
    pulls: NDArray[np.int64]
    decisions: NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Identification(BaseResult[Verdicts]):
    """A comparison of policies that find the best arm, with its settings.

    Attributes
    ----------
    verdicts : mapping from the policy's name to `Verdicts`
    settings : mapping
        Seed, paths, δ, budget, environment, policies and versions, as plain text and numbers.

    Examples
    --------
    >>> from tailproof import environments, identify, noise
    >>> from tailproof.bestarm import LinGapE
    >>> identified = identify(
    ...     {"LinGapE": LinGapE(norm_bound=2)}, environments.near_tie(noise.Normal(), angle=1.0),
    ...     paths=20, max_pulls=10_000,
    ... )
    >>> identified.errors("LinGapE"), identified.undecided("LinGapE")
    (0, 0)
    """

    verdicts: Mapping[str, Verdicts]
    settings: Mapping[str, Any]
    _format = "tailproof identification 1"
    _by_policy = ("verdicts", Verdicts)

    def errors(self, policy: str) -> int:
        """Return the number of paths with a wrong answer."""
        verdicts = self._of(policy)
        return int(np.sum((verdicts.recommended >= 0) & ~verdicts.correct))

    def undecided(self, policy: str) -> int:
        """Return the number of paths whose budget ran out before an answer."""
        return int(np.sum(self._of(policy).recommended < 0))

    def error_rate(self, policy: str, level: float = 0.95) -> tuple[float, float, float]:
        """Return the share of paths with a wrong answer, and its exact binomial interval.

        >>> right = np.arange(200) >= 5
        >>> verdicts = Verdicts(right * 1, right, right * 9, right * 9)
        >>> identified = Identification(verdicts={"a": verdicts}, settings={})
        >>> [round(x, 4) for x in identified.error_rate("a")]
        [0.025, 0.0082, 0.0574]

        Source: Clopper and Pearson 1934. Differences: none.
        """
        number("level", level, above=0, below=1)
        n, wrong = len(self._of(policy).recommended), self.errors(policy)
        return wrong / n, *binomial_interval(wrong, n, level)

    def plot(self) -> "Figure":
        """Draw how many pulls each policy took: the median of the paths, and 10 to 90 %.

        >>> some = Verdicts(**{name: np.ones(3, dtype=int) for name in Verdicts.__annotations__})
        >>> len(Identification(verdicts={"a": some}, settings={}).plot().axes)
        1
        """
        from tailproof.drawing import PALETTE, canvas

        figure, ((axes,),) = canvas(1, 1, height=1.0 + 0.35 * len(self.verdicts))
        for row, verdict in enumerate(self.verdicts.values()):
            low, middle, high = np.quantile(verdict.pulls, (0.1, 0.5, 0.9))
            axes.semilogx([low, high], [row, row], "-", color=PALETTE[0])
            axes.semilogx([middle], [row], "o", color=PALETTE[0], markersize=4)
        axes.set_yticks(range(len(self.verdicts)), [*self.verdicts], parse_math=False)
        axes.set_xlabel("pulls until an arm was named", fontsize=9)
        return figure

    def _cells(self) -> list[list[str]]:
        """Return the summary as text."""
        table = [["policy", "wrong", "95 %", "undecided", "mean pulls", "median pulls"]]
        for name, row in self.summary().items():
            table.append(
                [
                    name,
                    f"{row['error']:.1%}",
                    f"{row['low']:.1%} – {row['high']:.1%}",
                    *(short(row[key]) for key in ("undecided", "mean_pulls", "median_pulls")),
                ]
            )
        return table

    def summary(self) -> dict[str, dict[str, float]]:
        """Return the errors and pulls of each policy; undecided paths count with all pulls made."""
        rows = {}
        for name, verdicts in self.verdicts.items():
            rate, low, high = self.error_rate(name)
            rows[name] = {
                "error": rate,
                "low": low,
                "high": high,
                "undecided": self.undecided(name),
                "mean_pulls": float(verdicts.pulls.mean()),
                "median_pulls": float(np.median(verdicts.pulls)),
                "mean_decisions": float(verdicts.decisions.mean()),
            }
        return rows


def binomial_interval(count: int, n: int, level: float) -> tuple[float, float]:
    """Return the exact interval of a probability, given `count` successes in n trials.

    Source: Clopper and Pearson 1934. Differences: none.
    """
    tail = (1 - level) / 2
    low = float(beta.ppf(tail, count, n - count + 1)) if count else 0.0
    high = float(beta.ppf(1 - tail, count + 1, n - count)) if count < n else 1.0
    return low, high
