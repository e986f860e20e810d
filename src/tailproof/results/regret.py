"""The result of a simulation: regret at checkpoints."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import meant, number
from tailproof.drawing import PlotOptions
from tailproof.formatting import plus_minus, short
from tailproof.results.base import BaseResult, PolicyResult
from tailproof.results.differences import (
    PairwiseDifferences,
    RegretDifference,
    difference,
    pairwise,
)
from tailproof.typing import Array

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["Curves", "Result"]


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
    actions : array of shape (paths, decisions), or None
        The arm of every decision, if `simulate` was asked for a log of them.
    metrics : mapping from names to arrays of shape (paths, checkpoints, …)
        What else `simulate` was asked to measure.
    """

    regret: Array
    decisions: NDArray[np.int64]
    error: Array | None = None
    actions: NDArray[np.int32] | None = None
    metrics: Mapping[str, Array] = field(default_factory=dict)
    _shared = ("decisions",)

    @classmethod
    def _has_shape(cls, name: str, shape: tuple[int, ...], paths: int, row: Any) -> bool:
        if name == "actions":
            return len(shape) == 2 and shape[0] == paths
        if name.startswith("metrics."):
            return shape[: 1 + len(row)] == (paths, *row)
        return super()._has_shape(name, shape, paths, row)


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

    def regret(self, policy: str) -> Array:
        """Return the regret of each path at each checkpoint."""
        return self._of(policy).regret

    def metric(self, policy: str, name: str = "regret") -> Array:
        """Return a metric of each path at each checkpoint: regret, error, or one of `metrics`."""
        curves = self._of(policy)
        metrics = {"regret": curves.regret, **curves.metrics}
        if curves.error is not None:
            metrics["error"] = curves.error
        if name not in metrics:
            raise ValueError(
                f"metric must be one of {', '.join(metrics)}, got {name!r}{meant(name, metrics)}"
            )
        return metrics[name]

    def mean(self, policy: str) -> Array:
        """Return the mean regret over the paths at each checkpoint."""
        mean: Array = self.regret(policy).mean(axis=0)
        return mean

    def median(self, policy: str) -> Array:
        """Return the median regret over the paths at each checkpoint."""
        return self.quantile(policy, 0.5)

    def quantile(self, policy: str, level: float) -> Array:
        """Return a quantile of the regret over the paths at each checkpoint."""
        number("level", level, at_least=0, at_most=1)
        return np.asarray(np.quantile(self.regret(policy), level, axis=0))

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
        return difference(self, policy, other, level)

    def pairwise(self, level: float = 0.95) -> PairwiseDifferences:
        """Compare the final regrets of all pairs of policies, with p values after Holm.

        Student's t of paired paths, as in `difference`, corrected for all pairs: where it holds
        (from some thirty paths on, more if few paths are lost), at most 5 % of such tables call any
        two equal policies different.

        >>> from tailproof import OFUL, Uniform, environments, noise, simulate
        >>> result = simulate(
        ...     {"OFUL": OFUL(), "OFUL again": OFUL(), "uniform": Uniform()},
        ...     environments.neutral(noise.Normal(), arms=5, dim=3),
        ...     horizon=200, paths=10, seed=1,
        ... )
        >>> result.pairwise()
        <3 pairs of policies, 2 differ at 0.05 after Holm>

        Source: Holm 1979.
        """
        return pairwise(self, level)

    def plot(self, **options: Unpack[PlotOptions]) -> "Figure":
        """Draw the regrets against the pulls; options as for `tailproof.figures.regret_figure`.

        >>> from tailproof import Uniform, environments, noise, simulate
        >>> bandit = environments.neutral(noise.Cauchy(), arms=5, dim=3)
        >>> result = simulate({"uniform": Uniform()}, bandit, horizon=50, paths=4)
        >>> len(result.plot(log="y", show="mean").axes)
        1
        """
        from tailproof.results.drawing import regret_figure

        return regret_figure({"": self}, **options)

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

    def _cells(self) -> list[list[str]]:
        """Return the summary as text, with the mean of each metric that has a value a path."""
        scalar = {
            key: None
            for curves in self.curves.values()
            for key, array in curves.metrics.items()
            if array.ndim == 2
        }
        words = [key.replace("_", " ") for key in scalar]
        table = [["policy", "mean ± s.e.", "median", "10–90 %", "decisions", *words]]
        for name, row in self.summary().items():
            metrics = self.curves[name].metrics
            table.append(
                [
                    name,
                    plus_minus(short(row["mean"]), short(row["standard_error"])),
                    short(row["median"]),
                    f"{short(row['low'])} – {short(row['high'])}",
                    short(row["decisions"]),
                    *(short(metrics[k][:, -1].mean()) if k in metrics else "" for k in scalar),
                ]
            )
        return table

    def to_pandas(self) -> "pandas.DataFrame":
        """Return a long table, one row for each policy, path and checkpoint; needs pandas.

        Metrics with a value a path are further columns.
        """
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
                    **{k: array.ravel() for k, array in curves.metrics.items() if array.ndim == 2},
                }
            )
            for name, curves in self.curves.items()
        ).reset_index(drop=True)


def _standard_error(sample: Array) -> float:
    return float(sample.std(ddof=1) / np.sqrt(len(sample))) if len(sample) > 1 else float("nan")
