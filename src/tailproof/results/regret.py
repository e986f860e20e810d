"""The result of a simulation: regret at checkpoints."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from tailproof.checks import number
from tailproof.results.base import BaseResult, PolicyResult
from tailproof.typing import Array

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["Curves", "RegretDifference", "Result"]


@dataclass(frozen=True, eq=False, repr=False)
class Curves(PolicyResult):
    """The regret of one policy, at the checkpoints of its `Result`.

    Attributes
    ----------
    regret : array of shape (paths, checkpoints)
        Cumulative pseudo-regret, counted per pull.
    decisions : array of shape (checkpoints,)
        Decisions that the policy had learned from.
    error : array of shape (paths, checkpoints), or None
        ‖θ̂ − θ‖/‖θ‖, where the policy has an estimate; NaN for θ = 0.
    """

    regret: Array
    decisions: NDArray[np.int64]
    error: Array | None = None
    _shared = ("decisions",)


class RegretDifference(NamedTuple):
    """A mean difference at each checkpoint, and the interval around it."""

    mean: Array
    low: Array
    high: Array


@dataclass(frozen=True, eq=False, repr=False)
class Result(BaseResult[Curves]):
    """A comparison of policies: regret at checkpoints, with its settings.

    Attributes
    ----------
    pulls : array of shape (checkpoints,)
        The checkpoints, in pulls.
    curves : mapping from the policy's name to `Curves`
    settings : mapping
        Seed, horizon, paths, environment, policies and versions, as plain text and numbers.

    Examples
    --------
    >>> from tailproof import OFUL, Uniform, environments, noise, simulate
    >>> result = simulate(
    ...     {"OFUL": OFUL(), "uniform": Uniform()},
    ...     environments.neutral(noise.Normal(), arms=5, dim=3),
    ...     horizon=200, paths=10, seed=1,
    ... )
    >>> bool(result.mean("OFUL")[-1] < result.mean("uniform")[-1])
    True
    """

    pulls: NDArray[np.int64]
    curves: Mapping[str, Curves]
    settings: Mapping[str, Any]
    _format = "tailproof result 1"
    _by_policy = ("curves", Curves)
    _common = ("pulls",)

    def mean(self, policy: str) -> Array:
        """Return the mean regret over the paths at each checkpoint."""
        mean: Array = self._of(policy).regret.mean(axis=0)
        return mean

    def median(self, policy: str) -> Array:
        """Return the median regret over the paths at each checkpoint."""
        return self.quantile(policy, 0.5)

    def quantile(self, policy: str, level: float) -> Array:
        """Return a quantile of the regret over the paths at each checkpoint."""
        return np.asarray(np.quantile(self._of(policy).regret, level, axis=0))

    def difference(self, policy: str, other: str, level: float = 0.95) -> RegretDifference:
        """Return the mean difference of the regrets of two policies, by paired paths.

        d̄ ± t s/√n over the differences d of the paths, at each checkpoint

        Both policies see the same arms on the same path, so their difference varies less than
        either regret.

        >>> from tailproof import OFUL, Uniform, environments, noise, simulate
        >>> result = simulate(
        ...     {"OFUL": OFUL(), "uniform": Uniform()},
        ...     environments.neutral(noise.Normal(), arms=5, dim=3),
        ...     horizon=200, paths=10, seed=1,
        ... )
        >>> bool(result.difference("OFUL", "uniform").high[-1] < 0)
        True
        """
        number("level", level, above=0, below=1)
        gaps = self._of(policy).regret - self._of(other).regret
        mean, n = gaps.mean(axis=0), len(gaps)
        if n == 1:
            return RegretDifference(mean, mean - np.inf, mean + np.inf)
        half = stdtrit(n - 1, (1 + level) / 2) * gaps.std(axis=0, ddof=1) / np.sqrt(n)
        return RegretDifference(mean, mean - half, mean + half)

    def plot(self) -> "Figure":
        """Draw the regrets against the pulls, see `tailproof.figures.regret_figure`.

        >>> from tailproof import Uniform, environments, noise, simulate
        >>> bandit = environments.neutral(noise.Cauchy(), arms=5, dim=3)
        >>> result = simulate({"uniform": Uniform()}, bandit, horizon=50, paths=4)
        >>> len(result.plot().axes)
        1
        """
        from tailproof.results.drawing import regret_figure

        return regret_figure({"": self})

    def summary(self) -> dict[str, dict[str, float]]:
        """Return the final regret of each policy: mean, standard error, median, 10 and 90 %."""
        return {
            name: {
                "mean": float(self.mean(name)[-1]),
                "standard_error": _standard_error(curves.regret[:, -1]),
                "median": float(self.median(name)[-1]),
                "low": float(self.quantile(name, 0.1)[-1]),
                "high": float(self.quantile(name, 0.9)[-1]),
                "decisions": int(curves.decisions[-1]),
                "pulls": int(self.pulls[-1]),
            }
            for name, curves in self.curves.items()
        }

    def to_pandas(self) -> "pandas.DataFrame":
        """Return a long table, one row for each policy, path and checkpoint; needs pandas."""
        import pandas

        paths = self.settings["paths"]
        return pandas.concat(
            pandas.DataFrame(
                {
                    "policy": name,
                    "path": np.repeat(np.arange(paths), len(self.pulls)),
                    "pulls": np.tile(self.pulls, paths),
                    "decisions": np.tile(curves.decisions, paths),
                    "regret": curves.regret.ravel(),
                    "error": np.nan if curves.error is None else curves.error.ravel(),
                }
            )
            for name, curves in self.curves.items()
        ).reset_index(drop=True)


def _standard_error(sample: Array) -> float:
    return float(sample.std(ddof=1) / np.sqrt(len(sample))) if len(sample) > 1 else float("nan")
