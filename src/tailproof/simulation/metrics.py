"""What a simulation measures besides regret: metrics at its checkpoints, and a log of actions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import meant, require
from tailproof.environments.arm_sets import ArmSet, UnitBall
from tailproof.policies.base import Policy, recommending
from tailproof.simulation.code import own_code
from tailproof.simulation.loop import Rollout
from tailproof.typing import Array, Index

if TYPE_CHECKING:
    from tailproof.simulation.plan import RegretCell

__all__ = ["Metric", "Notes", "Snapshot", "described", "known_metric", "known_metrics"]


@dataclass(frozen=True)
class Snapshot:
    """A simulation after some decisions, as a metric sees it. A metric changes none of its arrays.

    A metric is a name, "share_of_best", the share of pulls of the best arm; "simple_regret", the
    gap of the arm that the policy would name the best; or "pulls_by_arm"; or a function of your
    own, which takes a snapshot and returns an array whose first axis is the paths. `simulate` takes
    both, at every checkpoint; `Result.plot` draws metrics with one number for each path.

    Attributes
    ----------
    pulls, decisions : int
        What was pulled on each path, and in how many decisions.
    counts : array of shape (paths, arms)
        The pulls of each arm.
    best_pulls : array of shape (paths,)
        The pulls of an arm that was the best when it was pulled.
    locations, best : arrays of shapes (paths, arms) and (paths,)
        The locations of the arms at the next decision, and the largest of them.
    arms : array of shape (paths, arms, dim)
    policy, state :
        The policy and its state; a filter that was moved into the noise is left out.

    Examples
    --------
    >>> from tailproof import UCB1, environments, noise, simulate
    >>> result = simulate(
    ...     {"UCB1": UCB1()}, environments.k_armed(noise.Normal(), locations=(0, 3)),
    ...     horizon=100, paths=5, metrics={"first arm": lambda now: now.counts[:, 0]},
    ... )
    >>> bool((result.metric("UCB1", "first arm")[:, -1] < 50).all())
    True
    """

    pulls: int
    decisions: int
    counts: NDArray[np.int64]
    best_pulls: NDArray[np.int64]
    locations: Array
    best: Array
    arms: Array
    policy: Policy[Any]
    state: Any


Metric = Callable[[Snapshot], Any]


def share_of_best(now: Snapshot) -> Array:
    """Return the share of the pulls so far that were of the best arm; NaN before the first."""
    return now.best_pulls / now.pulls if now.pulls else np.full(len(now.best), np.nan)


def pulls_by_arm(now: Snapshot) -> Array:
    """Return the pulls of each arm so far."""
    return now.counts.astype(np.float64)


def simple_regret(now: Snapshot) -> Array:
    """Return the gap of the arm that the policy would name: the recommended or most pulled arm.

    If several arms were pulled most, their mean gap counts.
    """
    gaps = now.best[:, None] - now.locations
    most = now.counts == now.counts.max(axis=1, keepdims=True)
    expected = np.asarray((gaps * most).sum(axis=1) / most.sum(axis=1))
    try:
        named = recommending(now.policy).recommend(now.state)
    except ValueError:  # a policy that recommends no arm
        return expected
    return np.where(named >= 0, gaps[np.arange(len(gaps)), named], expected)


METRICS: Mapping[str, Metric] = {
    "share_of_best": share_of_best,
    "simple_regret": simple_regret,
    "pulls_by_arm": pulls_by_arm,
}
"""By the name that `simulate` takes."""


def known_metric(name: str) -> Metric:
    """Return the metric of this name."""
    if name not in METRICS:
        hint = meant(str(name), METRICS)
        if callable(name):
            hint = "; functions are given by name, as {'my_metric': my_metric}"
        raise ValueError(f"metrics must be some of {', '.join(METRICS)}, got {name!r}{hint}")
    return METRICS[name]


def known_metrics(
    metrics: Sequence[str] | Mapping[str, Metric], contexts: ArmSet
) -> Mapping[str, Metric]:
    """Return metrics as functions by name, or raise."""
    if not isinstance(metrics, Mapping):
        ok = isinstance(metrics, Sequence) and not isinstance(metrics, str)
        require(ok, "metrics", "a list of names, or a mapping from names to functions", metrics)
        metrics = {name: known_metric(name) for name in metrics}
    for name, metric in metrics.items():
        require(callable(metric), f"metrics[{name!r}]", "a function of a Snapshot", metric)
        ok = isinstance(name, str) and name not in ("regret", "error", "decisions", "")
        require(ok and "." not in name, "a name in metrics", "another word without a dot", name)
    if metrics and isinstance(contexts, UnitBall):
        raise ValueError("metrics need arms with numbers, and a unit ball has none")
    if contexts.fresh and simple_regret in metrics.values():
        raise ValueError("simple_regret needs arms that stay: set fresh=False in the environment")
    return metrics


def described(metric: Metric) -> str:
    """Return the name and the code of a metric."""
    name = getattr(metric, "__qualname__", type(metric).__qualname__)
    return f"{metric.__module__}.{name} {own_code(metric)}"


class Notes:
    """The metrics and actions that a cell records while it plays."""

    def __init__(self, cell: "RegretCell", rollout: Rollout, decisions: int) -> None:
        self.wanted = bool(cell.metrics or cell.actions)
        self.metrics: dict[str, Array] = {}
        self.actions: NDArray[np.int32] | None = None
        self._asked, self._rollout, self._marks = cell.metrics, rollout, len(cell.marks)
        self._cost, self._decisions = cell.policy.pulls, 0
        self._rows = np.arange(cell.paths)
        if cell.actions:
            self.actions = np.zeros((cell.paths, decisions), dtype=np.int32)
        if cell.metrics:
            arms = cell.environment.contexts.arms
            self._counts = np.zeros((cell.paths, arms), dtype=np.int64)
            self._best = np.zeros(cell.paths, dtype=np.int64)

    def take(self, decision: int, chosen: Index, gap: Array, *, complete: bool) -> None:
        """Write down a decision; a decision that the horizon cut short is in the log alone."""
        if self.actions is not None:
            self.actions[:, decision] = chosen
        if self._asked and complete:
            self._counts[self._rows, chosen] += self._cost
            self._best += self._cost * (gap[:, 0] == 0)
            self._decisions += 1

    def measure(self, places: slice) -> None:
        """Write down every metric for these checkpoints."""
        if not self._asked:
            return
        world, paths = self._rollout.world, len(self._rows)
        now = Snapshot(
            pulls=self._decisions * self._cost,
            decisions=self._decisions,
            counts=self._counts.copy(),
            best_pulls=self._best.copy(),
            locations=world.locations,
            best=world.best,
            arms=world.arms,
            policy=self._rollout.policy,
            state=self._rollout.state,
        )
        for name, metric in self._asked.items():
            value = np.asarray(metric(now), dtype=np.float64)
            ok = value.ndim > 0 and len(value) == paths
            require(ok, f"metrics[{name!r}]", f"a function that returns {paths} rows", value.shape)
            if name not in self.metrics:
                self.metrics[name] = np.full((paths, self._marks, *value.shape[1:]), np.nan)
            self.metrics[name][:, places] = value.reshape(paths, 1, *value.shape[1:])
