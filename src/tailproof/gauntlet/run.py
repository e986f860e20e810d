"""Put policies through the gauntlet."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tailproof.checks import require, whole
from tailproof.gauntlet.problems import Problem
from tailproof.gauntlet.problems import problems as named
from tailproof.gauntlet.score import CHANCE, Score
from tailproof.policies import (
    OFUL,
    UCB1,
    LinStudentUCB,
    OrderStatisticUCB,
    Policy,
    SymmetricOFUL,
    Uniform,
)
from tailproof.results import Result, provenance
from tailproof.simulation.plan import Plan
from tailproof.simulation.sweeps import sweep
from tailproof.wrappers.auto import AutoFiltered

__all__ = ["ORACLE_BONUSES", "RECOMMENDED", "SEEDS", "SIZES", "Size", "run"]

RECOMMENDED: Mapping[str, Policy[Any]] = {
    "LinStudentUCB": LinStudentUCB(),
    "AutoFiltered(OFUL)": AutoFiltered(OFUL(bonus=0.4)),
    "SymmetricOFUL, practical": SymmetricOFUL(radius="practical", bonus=0.3),
    "AutoFiltered(UCB1)": AutoFiltered(UCB1(bonus=0.7)),
    "OrderStatisticUCB": OrderStatisticUCB(),
}
"""The tools that `docs/choosing.md` speaks of, as it recommends them."""
ORACLE_BONUSES = (0.1, 0.2, 0.3, 0.5)
SEEDS = {"tuning": 13, "report": 20_211}
"""Of each set of problems; other problems are played with that of the report."""


class Size(NamedTuple):
    """Paths of each problem, and the longest horizon."""

    paths: int
    horizon: float


SIZES = {
    "smoke": Size(3, 60),
    "quick": Size(8, 2000),
    "full": Size(100, np.inf),
}
"""Quick cuts horizons: tools that would still learn then count as stuck more often."""


def run(
    policies: Mapping[str, Policy[Any]],
    *,
    problems: str | Sequence[str | Problem] = "report",
    size: str = "quick",
    seed: int | None = None,
    out: str | Path | None = None,
    engine: str = "processes",
    workers: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Score:
    """Put policies through the gauntlet.

    Parameters
    ----------
    policies : mapping from names to policies
        Those that know arms by number, `view == "arms"`, play only where arms are unit vectors.
    problems : str or sequence
        "report", "tuning", or names, or problems of your own. Tune on "tuning" only.
    size : "quick" or "full"
        Quick takes minutes on two cores: 8 paths, and at most 2000 pulls. Full has 100 paths and
        the horizons of the problems.
    seed : int, optional
        By default that of the set of problems, see `SEEDS`.
    out, engine, workers, progress :
        As for `sweep`: a folder keeps what is finished, and a run that was stopped goes on.

    Examples
    --------
    >>> from tailproof import LinStudentUCB, UCB1
    >>> score = run(
    ...     {"linear": LinStudentUCB(), "UCB1": UCB1()},
    ...     problems=["fixed-quiet-normal", "k3-offset-10"], size="smoke", workers=1,
    ... )
    >>> score.row("fixed-quiet-normal", "UCB1") is None
    True
    >>> 0 < score.row("k3-offset-10", "UCB1").over_chance < 2
    True

    The oracle, where one is defined, is OFUL that knows ‖θ‖ and the scale, under normal noise of
    equal Fisher information and without offset, with the best of a few bonuses.
    """
    require(size in SIZES, "size", f"one of {', '.join(SIZES)}", size)
    ok = isinstance(policies, Mapping) and len(policies) > 0
    require(ok, "policies", "a mapping with at least one policy", policies)
    require(CHANCE not in policies, "policies", f"without the name {CHANCE!r}", list(policies))
    chosen = named(problems)
    if seed is None:
        seed = SEEDS["tuning" if problems == "tuning" else "report"]
    whole("seed", seed, at_least=0)
    plans: dict[str, Plan] = {}
    for problem in chosen:
        fitting = {name: policy for name, policy in policies.items() if _fits(policy, problem)}
        fitting[CHANCE] = Uniform()
        plans[problem.name] = _plan(problem, problem.bandit, fitting, size, seed)
        if problem.oracle is not None:
            scale = problem.oracle.noise.scale  # type: ignore[union-attr]
            oracles: dict[str, Policy[Any]] = {
                f"oracle {bonus}": OFUL(
                    noise_scale=scale, norm_bound=problem.oracle.size, bonus=bonus
                )
                for bonus in ORACLE_BONUSES
            }
            plans[f"{problem.name}, oracle"] = _plan(problem, problem.oracle, oracles, size, seed)
    found = sweep(plans, out=out, engine=engine, workers=workers, progress=progress)
    return Score(
        regret={
            problem.name: {
                name: curves.regret / problem.unit
                for name, curves in found[problem.name].curves.items()
            }
            for problem in chosen
        },
        oracle={
            problem.name: _best(found[f"{problem.name}, oracle"])
            for problem in chosen
            if f"{problem.name}, oracle" in found
        },
        settings={
            "size": size,
            "seed": int(seed),
            "paths": SIZES[size].paths,
            "horizons": {problem.name: _horizon(problem, size) for problem in chosen},
            "tools": {name: repr(policy) for name, policy in policies.items()},
            "problems": {problem.name: repr(problem) for problem in chosen},
            "versions": provenance(),
        },
    )


def _fits(policy: Policy[Any], problem: Problem) -> bool:
    return problem.k_armed or policy.view != "arms"


def _horizon(problem: Problem, size: str) -> int:
    return int(min(problem.horizon, SIZES[size].horizon))


def _plan(
    problem: Problem, bandit: Any, policies: Mapping[str, Policy[Any]], size: str, seed: int
) -> Plan:
    horizon = _horizon(problem, size)
    return Plan(
        policies=policies,
        environment=bandit,
        horizon=horizon,
        paths=SIZES[size].paths,
        seed=seed,
        checkpoints=(horizon // 2, horizon),
    )


def _best(result: Result) -> float:
    return min(float(result.mean(name)[-1]) for name in result.curves)
