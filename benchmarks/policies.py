"""The speed of the paper's policies, against targets and the plain references of the tests.

Run with ``make bench``. The long runs are 10⁴ pulls on 10 paths of the paper's environment, with
Student-t noise of df 3 and the paper's settings. The time of a decision is the mean of 300, with
contexts and rewards drawn beforehand: ours on 10 paths, divided by 10, the reference on one path.
"""

from timing import one_core, race, show, start_table

one_core()

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "tests"))
sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))

from references import Reference, crt, menu, mom, sup, tofu
from traces import trace_of

from tailproof import (
    CRT,
    MENU,
    TOFU,
    Filtered,
    MoM,
    Policy,
    SupBMM,
    SupBTC,
    environments,
    simulate,
)
from tailproof.noise import StudentT
from tailproof.research.paper import published
from tailproof.typing import Array

HORIZON, PATHS, DECISIONS = 10_000, 10, 300
BUDGET = 4.0
"""Seconds after which a run is not repeated, so that slow ones run once."""
NOISE = StudentT(3)
BANDIT = environments.orthant(NOISE)

CASES: dict[str, tuple[Any, Reference, str]] = {
    "CRT": (CRT(epsilon=1, moment_bound=3, bonus=1 / 10), crt, "≤ 1.5 s"),
    "MENU, 51 replicates": (
        MENU(horizon=HORIZON, epsilon=1, moment_bound=3, replicates=51, bonus=1 / 50),
        menu,
        "≤ 1 s",
    ),
    "MoM": (MoM(horizon=HORIZON, epsilon=1, moment_bound=3, blocks=42, bonus=1 / 40), mom, ""),
    "SupBMM, 31 replicates, no layers": (
        SupBMM(
            horizon=HORIZON,
            epsilon=1,
            moment_bound=3,
            replicates=31,
            layered=False,
            width="experiments",
            bonus=0.01 / 6,
        ),
        sup,
        "",
    ),
    "TOFU": (TOFU(horizon=HORIZON, epsilon=1, moment_bound=3, bonus=1 / 5), tofu, "≤ 40 s"),
    "SupBTC, no layers": (
        SupBTC(
            horizon=HORIZON,
            epsilon=1,
            moment_bound=3,
            layered=False,
            threshold="euclidean",
            width="experiments",
            bonus=0.01 / 3,
        ),
        sup,
        "≤ 60 s",
    ),
    "SupBTC as published": (SupBTC(horizon=HORIZON, epsilon=1, moment_bound=3), sup, ""),
}
GROWING = ("TOFU", "SupBTC, no layers", "SupBTC as published")


def run_time(policy: Policy[Any], horizon: int = HORIZON) -> float:
    run = partial(simulate, {"it": policy}, BANDIT, horizon=horizon, paths=PATHS, checkpoints=1)
    return race(run, budget=BUDGET)[0]


def growth(policy: Any, whole_run: float) -> float:
    """Return the exponent of T in the run time, from a fit on logarithmic axes."""
    horizons = [HORIZON // 4, HORIZON // 2]
    times = [run_time(replace(policy, horizon=t), t) for t in horizons]
    line = np.polyfit(np.log([*horizons, HORIZON]), np.log([*times, whole_run]), 1)
    return float(line[0])


def drawn(pulls: int) -> tuple[Array, Array]:
    """Return the arms of each decision, and the rewards of each pull of each of them."""
    rng = np.random.default_rng(0)
    world = BANDIT.start(PATHS, rng)
    arms = np.empty((DECISIONS, *world.arms.shape))
    for offer in arms:
        offer[:] = world.arms
        world.advance()
    arms *= 1 - 1e-6 * np.arange(arms.shape[2])[:, None]  # so that rounding decides nothing
    location = np.vecdot(arms, world.theta[:, None, :])
    return arms, location[..., None] + NOISE.sample(rng, (*location.shape, pulls))


def decision_times(policy: Policy[Any], reference: Reference) -> tuple[float, float, bool]:
    """Return our and the reference's time of a decision, and whether all choices agree."""
    arms, rewards = drawn(policy.pulls)
    plain = partial(reference, policy, arms[:, 0], rewards[:, 0])
    same = trace_of(policy, arms, rewards)[:, 0].tolist() == plain()
    ours, theirs = race(partial(trace_of, policy, arms, rewards), plain, budget=BUDGET)
    return ours / (PATHS * DECISIONS), theirs / DECISIONS, same


def everything() -> float:
    """Return the run time of the six baselines and their filtered forms under the four noises."""
    seconds = 0.0
    for df in (3, 1.02, 1, 0.5):
        baselines = published.policies(df)
        plain = {
            name: baselines[name] for name in ("MoM", "CRT", "MENU", "TOFU", "SupBMM", "SupBTC")
        }
        filtered = {f"{name}_mom": Filtered(policy, repeats=64) for name, policy in plain.items()}
        run = partial(
            simulate,
            {**plain, **filtered},
            environments.orthant(StudentT(df)),
            horizon=HORIZON,
            paths=PATHS,
            workers=2,
        )
        seconds += race(run, rounds=1)[0]
    return seconds


if __name__ == "__main__":
    table = start_table(
        "the paper's policies, K = 20, d = 10, one core",
        "what",
        "10⁴ pulls, 10 paths",
        "target",
        "growth",
        "one decision",
        "reference",
        "ratio",
        "choices",
    )
    for name, (policy, reference, target) in CASES.items():
        whole_run = run_time(policy)
        exponent = f"T^{growth(policy, whole_run):.2f}" if name in GROWING else ""
        ours, theirs, same = decision_times(policy, reference)
        table.add_row(
            name,
            f"{whole_run:.2f} s",
            target,
            exponent,
            f"{ours * 1e6:.1f} µs",
            f"{theirs * 1e6:.0f} µs",
            f"{theirs / ours:.0f}×",
            "same" if same else "DIFFER",
        )
    table.add_row("all twelve, four noises, two cores", f"{everything():.0f} s", "≤ 720 s")
    show(table)
