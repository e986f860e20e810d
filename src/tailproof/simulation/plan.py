"""Regret: every policy plays a number of pulls."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tailproof.checks import count, require, whole
from tailproof.compiled.engine import Game
from tailproof.compiled.targets import Target
from tailproof.environments.arm_sets import UnitBall
from tailproof.environments.linear import Bandit
from tailproof.policies.base import Policy, proposing, unwarned
from tailproof.results import Curves, Result
from tailproof.results.provenance import Code
from tailproof.simulation.cells import BasePlan, Cell
from tailproof.simulation.loop import Rollout
from tailproof.simulation.memory import check_result_size, first_state
from tailproof.simulation.metrics import Metric, Notes, described, known_metrics
from tailproof.simulation.sweeps import sweep
from tailproof.typing import Array, Index

__all__ = ["MOST_PULLS", "Plan", "simulate"]

MOST_PULLS = 10**15
"""The most pulls on one path, all of which float64 counts exactly."""
_MOST_CHECKPOINTS = 10**6
"""8 MB for each path."""
_MOST_LATE = 10**6
"""Decisions whose rewards are not known yet are kept in memory: 8 MB for each path."""


def simulate(
    policies: Mapping[str, Policy[Any]],
    environment: Bandit,
    *,
    horizon: float,
    paths: int,
    seed: int = 0,
    checkpoints: int | Sequence[int] = 200,
    delay: int = 0,
    metrics: Sequence[str] | Mapping[str, Metric] = (),
    actions: bool = False,
    workers: int = 1,
    engine: str = "processes",
    out: str | Path | None = None,
    progress: Callable[[int, int], None] | bool | None = None,
) -> Result:
    """Play policies in a `LinearBandit` or a `Shop`, `horizon` pulls on each independent path.

    Regret(T) = Σ_t (max_x xᵀθ − x_tᵀθ), one term for each pull. A last decision that does not
    fit into the horizon is charged for the pulls it made, and the policy does not learn from it.
    The same seed and settings give the same result, to the last bit, with the same versions and
    processor kernels, which `Result.settings` names, whatever the workers, engine and threads.

    Parameters
    ----------
    policies : mapping from names to policies
        All see the same arms, and the random stream of each depends on its name alone, so
        comparisons are paired, and adding a policy changes no other curve.
    horizon, paths, seed : int
    checkpoints : int or sequence of int
        How many, evenly spaced, or the pulls after which to record. The horizon is added.
    delay : int
        The rewards of a decision are learned this many decisions later.
    metrics, actions :
        What else to measure, see `Snapshot`, and whether to keep every arm, see `Curves`.
    workers, engine, out, progress :
        As for `sweep`, but by default one worker, and nothing is kept.

    Examples
    --------
    >>> from tailproof import Filtered, OFUL, environments, noise
    >>> policies = {"OFUL": OFUL(), "filtered": Filtered(OFUL(), repeats=15)}
    >>> bandit = environments.neutral(noise.Cauchy(), arms=5, dim=3)
    >>> result = simulate(policies, bandit, horizon=3e3, paths=20, seed=1)
    >>> bool(result.median("filtered")[-1] < result.median("OFUL")[-1])
    True
    """
    plan = Plan(
        policies=policies,
        environment=environment,
        horizon=count("horizon", horizon, at_most=MOST_PULLS),
        paths=paths,
        seed=seed,
        checkpoints=checkpoints,
        delay=delay,
        metrics=metrics,
        actions=actions,
    )
    plan.warn_of_no_decision()
    return sweep({"": plan}, out=out, engine=engine, workers=workers, progress=progress)[""]


@dataclass(frozen=True, kw_only=True)
class Plan(BasePlan[Curves, Result]):
    """A run of `simulate`, cut into cells, with the parameters of `simulate`.

    >>> from tailproof import Uniform, environments, noise
    >>> bandit = environments.neutral(noise.Cauchy(), arms=5, dim=3)
    >>> plan = Plan(policies={"uniform": Uniform()}, environment=bandit, horizon=50, paths=600)
    >>> [cell.paths for cell in plan.cells()]
    [500, 100]
    >>> plan.join([cell.run() for cell in plan.cells()]).curves["uniform"].regret.shape
    (600, 50)
    """

    horizon: int
    checkpoints: int | Sequence[int] = 200
    delay: int = 0
    metrics: Sequence[str] | Mapping[str, Metric] = ()
    actions: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "horizon", count("horizon", self.horizon, at_most=MOST_PULLS))
        object.__setattr__(
            self, "delay", whole("delay", self.delay, at_least=0, at_most=_MOST_LATE)
        )
        contexts = self.environment.contexts
        self._measured()  # refuses metrics that do not fit
        require(isinstance(self.actions, bool), "actions", "True or False", self.actions)
        if self.actions and isinstance(contexts, UnitBall):
            raise ValueError("actions needs arms with numbers, and a unit ball has none")
        self.marks()  # refuses checkpoints that do not fit
        for name, policy in self.policies.items():  # fails early if one does not fit
            state = first_state(name, policy, contexts, self.paths)
            if isinstance(contexts, UnitBall):
                proposing(policy).propose(state, np.random.default_rng(0))

    def check_memory(self) -> None:
        """Refuse a result that does not fit into memory."""
        numbers = 0.0
        contexts = self.environment.contexts
        for policy in self.policies.values():
            estimates = policy.estimate(policy.init(1, contexts.arms, contexts.dim)) is not None
            numbers += len(self.marks()) * (1 + estimates + len(self.metrics))
            numbers += self.actions * self.horizon / policy.pulls / 2
        check_result_size(self.paths, numbers)

    def warn_of_no_decision(self) -> None:
        """Warn of policies whose first decision takes more pulls than there are."""
        for name, policy in self.policies.items():
            if policy.pulls > self.horizon:
                warnings.warn(
                    f"policies[{name!r}] wants {policy.pulls} pulls for a decision, and the "
                    f"horizon is {self.horizon}: it decides once, without any knowledge, and "
                    "learns nothing",
                    UserWarning,
                    stacklevel=3,
                )

    @property
    def budget(self) -> int:
        """The horizon."""
        return self.horizon

    def marks(self) -> tuple[int, ...]:
        """Return the checkpoints."""
        horizon, wanted = self.horizon, self.checkpoints
        if isinstance(wanted, Sequence | np.ndarray):
            given = {count("checkpoints", mark, at_most=horizon) for mark in wanted}
            return tuple(sorted(given | {horizon}))
        size = min(count("checkpoints", wanted, at_most=_MOST_CHECKPOINTS), horizon)
        even = np.linspace(horizon / size, horizon, size).round().astype(np.int64)
        return tuple(np.unique(even).tolist())

    def timing(self) -> tuple[Any, ...]:
        """Return the checkpoints, the delay, and the metrics."""
        measured = [(name, described(metric)) for name, metric in self._measured().items()]
        return (*super().timing(), self.delay, measured, self.actions)

    def _cell(self, name: str, chunk: int, paths: int) -> "RegretCell":
        return RegretCell(
            name=name,
            policy=self.policies[name],
            environment=self.environment,
            seed=self.seed,
            chunk=chunk,
            paths=paths,
            budget=self.horizon,
            marks=self.marks(),
            delay=self.delay,
            metrics=self._measured(),
            actions=self.actions,
        )

    def _measured(self) -> Mapping[str, Metric]:
        return known_metrics(self.metrics, self.environment.contexts)

    def _result(self, by_policy: Mapping[str, Curves], settings: Mapping[str, Any]) -> Result:
        measured = {"metrics": list(self.metrics)} if self.metrics else {}
        about = {"horizon": self.horizon, "delay": self.delay, **measured, **settings}
        return Result(pulls=np.array(self.marks()), curves=by_policy, settings=about)


@dataclass(frozen=True, kw_only=True)
class RegretCell(Cell[Curves]):
    """A policy to be played for a number of pulls: its regret and error after the `marks`."""

    kind = Curves
    marks: tuple[int, ...]
    delay: int
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    actions: bool = False

    def compiled(self, code: Code) -> "CompiledCell":
        """Return the cell that plays the same by compiled code, or raise."""
        if self.metrics or self.actions:
            raise ValueError(
                "compiled code measures regret alone: leave out metrics and actions, or use the "
                "engine processes"
            )
        game = Game(
            policy=self.policy,
            bandit=self.environment,
            name=self.name,
            horizon=self.budget,
            marks=self.marks,
            seed=self.seed,
            delay=self.delay,
        )
        target: Target = "gpu" if code == "cuda" else "cores"
        return CompiledCell(**vars(self), game=game, target=target)

    def play(self) -> Curves:
        """Play the policy, and charge each decision for the pulls it made."""
        rollout = Rollout(self, "noise", ahead=True, delay=self.delay)
        cost, full = self.policy.pulls, self.decisions
        marks, total = np.array(self.marks), np.zeros((self.paths, 1))
        inside, learned = _slices((marks - 1) // cost), _slices(marks // cost)
        regret, error = np.empty((2, self.paths, len(marks)))
        theta = rollout.world.theta
        estimates = theta is not None and rollout.policy.estimate(rollout.state) is not None
        notes = Notes(self, rollout, full + (full * cost < self.budget))
        with unwarned():
            for decision in range(-(-self.budget // cost)):
                if decision in learned and estimates:
                    error[:, learned[decision]] = _estimation_error(rollout)
                if notes.wanted and decision in learned:
                    notes.measure(learned[decision])
                chosen, location = rollout.choose()
                gap = rollout.best - location
                if decision in inside:
                    here = inside[decision]
                    regret[:, here] = total + gap * (marks[here] - decision * cost)
                total += gap if cost == 1 else gap * cost
                if notes.wanted:
                    notes.take(decision, chosen, gap, complete=decision < full)
                if decision < full:
                    rollout.learn(chosen, location)
            if estimates:
                error[:, learned[full]] = _estimation_error(rollout)
            notes.measure(learned[full])
        rollout.warn_of_nan()
        learned_decisions = np.maximum(marks // cost - self.delay, 0)
        return Curves(
            regret=regret,
            decisions=learned_decisions,
            error=error if estimates else None,
            actions=notes.actions,
            metrics=notes.metrics,
        )


@dataclass(frozen=True, kw_only=True)
class CompiledCell(RegretCell):
    """A cell that plays by compiled code; `first` is the number of its first path."""

    game: Game
    target: Target
    first: int = 0

    def run(self) -> Curves:
        """Play; compiled code calls no linear algebra whose threads would have to be limited."""
        return self.play()

    def play(self) -> Curves:
        """Play the paths one by one on this core, or all at once on a GPU."""
        regret, error = self.game.play(self.first, self.paths, self.target)
        learned_decisions = np.maximum(np.array(self.marks) // self.policy.pulls - self.delay, 0)
        return Curves(regret=regret, decisions=learned_decisions, error=error)


def _slices(keys: Index) -> dict[int, slice]:
    """Return where each number is in a sorted array.

    >>> _slices(np.array([0, 0, 3]))
    {0: slice(0, 2, None), 3: slice(2, 3, None)}
    """
    numbers, starts = (array.tolist() for array in np.unique(keys, return_index=True))
    return dict(zip(numbers, map(slice, starts, [*starts[1:], len(keys)]), strict=True))


def _estimation_error(rollout: Rollout) -> Array:
    """Return ‖θ̂ − θ‖/‖θ‖ on each path as a column, NaN for θ = 0."""
    theta, estimate = rollout.world.theta, rollout.policy.estimate(rollout.state)
    size = np.linalg.norm(theta, axis=1, keepdims=True)
    distance = np.linalg.norm(estimate - theta, axis=1, keepdims=True)
    return np.asarray(distance / np.where(size == 0, np.nan, size))
