"""Best arm identification: errors, pulls over the lower bound, and the price of having no mean.

Run with ``make bench-bestarm``. The instance is `environments.near_tie`: the unit vectors of ℝ⁵
and one more at an angle of 0.3 to the best, θ = 2e₁. Each row is 200 paths on one core.
"""

from timing import one_core, show, start_table

one_core()

import math
import time
from typing import Any

import numpy as np

from tailproof import OFUL, Filtered, FromRegret, MeanOfMedians, Policy, identify
from tailproof.bestarm import (
    RAGE,
    BestArm,
    GAllocation,
    LazyTrackAndStop,
    LinGapE,
    SuccessiveElimination,
    TrackAndStop,
    XYAdaptive,
    XYAllocation,
    behind_filter,
    complexity,
    lower_bound,
)
from tailproof.environments.linear import near_tie
from tailproof.noise import Cauchy, Noise, Normal, StudentT

PATHS, BUDGET, DELTA = 200, 200_000, 0.05
WORLD = near_tie(Normal()).start(1, np.random.default_rng(0))
ARMS, THETA = WORLD.arms[0], WORLD.theta[0]
LINEAR: dict[str, BestArm[Any]] = {
    "LinGapE": LinGapE(norm_bound=2, ridge=0.1),
    "Lazy Track-and-Stop": LazyTrackAndStop(),
    "RAGE": RAGE(),
    "XY-allocation": XYAllocation(),
}
BLOCKS: dict[Noise, int] = {Cauchy(): 41, StudentT(0.5): 101}


def timed(policy: Policy[Any], noise: Noise, budget: int = BUDGET) -> tuple[Any, str]:
    """Return the summary of one policy and the seconds it took."""
    start = time.perf_counter()
    found = identify({"it": policy}, near_tie(noise), paths=PATHS, max_pulls=budget)
    return found.summary()["it"], f"{time.perf_counter() - start:.1f} s"


def rate(row: Any) -> str:
    return f"{row['error']:.1%} ({row['low']:.1%} – {row['high']:.1%})"


def verdict(row: Any, delta: float = DELTA) -> str:
    ok = row["low"] <= delta and not row["undecided"]
    return "passed" if ok else "MISSED"


def light_tails() -> None:
    title = f"Normal noise, H = {complexity(ARMS, THETA):.2f}, {PATHS} paths"
    table = start_table(title, "what", "wrong (95 %)", "pulls", "ratio", "time", "target")
    recipes: dict[str, tuple[BestArm[Any], float]] = {
        "LinGapE": (LinGapE(norm_bound=2), 16),
        "LinGapE, ridge 0.1": (LINEAR["LinGapE"], 16),
        "Lazy Track-and-Stop": (LazyTrackAndStop(), 16),
        "Lazy Track-and-Stop, δ = 1e-10": (LazyTrackAndStop(delta=1e-10), 3.5),
        "RAGE": (RAGE(), math.inf),
        "RAGE, offset −1": (RAGE(offset=-1), math.inf),
        "XY-adaptive": (XYAdaptive(), math.inf),
        "XY-allocation": (XYAllocation(), math.inf),
        "G-allocation": (GAllocation(), math.inf),
        "Track-and-Stop, K arms": (TrackAndStop(), math.inf),
        "successive elimination, K arms": (SuccessiveElimination(), math.inf),
    }
    for name, (recipe, most) in recipes.items():
        row, seconds = timed(recipe, Normal())
        ratio = row["mean_pulls"] / lower_bound(ARMS, THETA, delta=recipe.delta)
        target = f"error ≤ δ {verdict(row, recipe.delta)}"
        if most < math.inf:
            target += f", ratio ≤ {most:g} {'passed' if ratio <= most else 'MISSED'}"
        pulls = f"{row['mean_pulls']:.0f}"
        table.add_row(name, rate(row), pulls, f"{ratio:.2f}", seconds, target)
    show(table)


def heavy_tails() -> None:
    for noise, block in BLOCKS.items():
        title = f"{noise}, medians of {block}, {PATHS} paths"
        table = start_table(title, "what", "wrong (95 %)", "undecided", "pulls", "time", "target")
        regret = FromRegret(OFUL(norm_bound=2, ridge=0.1, noise_scale=0.3), decisions=1000)
        median = MeanOfMedians(block=block)
        rows: dict[str, tuple[Policy[Any], int]] = {
            "OFUL": (regret, 20_000),
            "OFUL, filtered": (Filtered(regret, repeats=block, estimator=median), BUDGET),
        }
        for name, recipe in LINEAR.items():
            rows[name] = recipe, 20_000
            filtered = behind_filter(recipe, noise, block=block, max_pulls=BUDGET)
            rows[f"{name}, filtered"] = filtered, BUDGET
        for name, (policy, budget) in rows.items():
            row, seconds = timed(policy, noise, budget)
            guaranteed = name.endswith("filtered") and not name.startswith("OFUL")
            target = f"error ≤ δ {verdict(row)}" if guaranteed else "no guarantee"
            undecided, pulls = f"{row['undecided']:.0f}", f"{row['mean_pulls']:.0f}"
            table.add_row(name, rate(row), undecided, pulls, seconds, target)
        show(table)


def price_of_no_mean() -> None:
    table = start_table(
        "Cauchy against normal noise of the same Fisher information",
        "what", "Cauchy, filtered", "normal, σ = √2", "ratio", "target",
    )  # fmt: skip
    for name, target in (("LinGapE", "≤ 3"), ("Lazy Track-and-Stop", "")):
        recipe = LINEAR[name]
        filtered = behind_filter(recipe, Cauchy(), block=41, max_pulls=BUDGET)
        heavy = timed(filtered, Cauchy())[0]["mean_pulls"]
        normal = type(recipe)(**{**vars(recipe), "noise_scale": math.sqrt(2)})
        light = timed(normal, Normal(math.sqrt(2)))[0]["mean_pulls"]
        table.add_row(name, f"{heavy:.0f}", f"{light:.0f}", f"{heavy / light:.2f}×", target)
    show(table)


if __name__ == "__main__":
    for part in (light_tails, heavy_tails, price_of_no_mean):
        part()
