"""Figures 2 and 3 of the paper: eight algorithms under four Student-t noises.

The settings are those of the published curves: bonuses far below their theory, no layers, a
Euclidean threshold in SupBTC. `REFERENCE` holds what these settings give elsewhere.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tailproof.figures import regret_figure
from tailproof.noise import StudentT
from tailproof.paper.exhibit import Finding, Picture, Sweep, below, best, final
from tailproof.paper.published import BASELINES, policies
from tailproof.paper.references import FIGURES_2_3
from tailproof.results.regret import Result
from tailproof.simulation.environments import orthant
from tailproof.simulation.plan import Plan

__all__ = [
    "CLAIM",
    "DIFFERENCES",
    "REFERENCE",
    "SETTINGS",
    "TITLE",
    "draw",
    "judge",
    "plan",
    "run",
]

TITLE = "Six baselines against SupBMM_mom and SupBTC_mom"
CLAIM = (
    "For df = 1.02, 1 and 0.5 SupBMM_mom and SupBTC_mom outperform all six baselines, and for "
    "df = 1 and 0.5 SupBTC_mom is the better of the two."
)
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "smoke": {"horizon": 300, "paths": {3: 3, 1.02: 3, 1: 3, 0.5: 3}},
    "quick": {"horizon": 10_000, "paths": {3: 10, 1.02: 3, 1: 10, 0.5: 3}},
    "paper": {"horizon": 10_000, "paths": {3: 10, 1.02: 10, 1: 10, 0.5: 10}},
}
REFERENCE = FIGURES_2_3
DIFFERENCES: Sequence[str] = (
    "The bonuses, replicates and filter lengths are those of the published curves, not of the "
    "theory: no layers, no “+ 1”, a Euclidean threshold in SupBTC, truncation exponent ½ in TOFU.",
    "SupBMM_mom filters each of its 31 replicates; the public script reduces them to one number "
    "(see the section on defects).",
    "A uniformly random arm is drawn beside the paper's curves.",
)


def plan(df: float, *, horizon: int = 10_000, paths: int = 10, seed: int = 0) -> Plan:
    """Return the simulation of one noise in the paper's environment."""
    return Plan(
        policies=policies(df, horizon),
        environment=orthant(StudentT(df)),
        horizon=horizon,
        paths=paths,
        seed=seed,
    )


def run(sweep: Sweep, size: str, seed: int) -> dict[str, Result]:
    """Simulate the four noises."""
    horizon, paths = SETTINGS[size]["horizon"], SETTINGS[size]["paths"]
    return sweep(
        {f"df = {df}": plan(df, horizon=horizon, paths=n, seed=seed) for df, n in paths.items()}
    )


def draw(results: Mapping[str, Result]) -> dict[str, Picture]:
    """Draw figure 2, the noises with a mean, and figure 3, those without."""
    alt = (
        "Cumulative regret against pulls for eight algorithms and a random arm, one panel for each "
        "noise: "
    )
    pictures = {}
    for name, noises in {
        "figure-2": ("df = 3", "df = 1.02"),
        "figure-3": ("df = 1", "df = 0.5"),
    }.items():
        shown = {f"Student-t, {key}": results[key] for key in noises}
        ends = (
            f"{title}, from best to worst " + ", ".join(name for _, name in sorted(_ends(result)))
            for title, result in shown.items()
        )
        pictures[name] = Picture(regret_figure(shown), alt + "; ".join(ends) + ".")
    return pictures


def judge(results: Mapping[str, Result]) -> list[Finding]:
    """Set each filtered algorithm against the best baseline, and the two against each other."""
    found = []
    for key in ("df = 1.02", "df = 1", "df = 0.5"):
        result = results[key]
        rival = best(result, BASELINES)
        for name in ("SupBMM_mom", "SupBTC_mom"):
            text = f"{key}: {name} minus {rival}, the best baseline"
            found.append(below(text, final(result, name), final(result, rival)))
        if key != "df = 1.02":
            text = f"{key}: SupBTC_mom minus SupBMM_mom"
            found.append(below(text, final(result, "SupBTC_mom"), final(result, "SupBMM_mom")))
    return found


def _ends(result: Result) -> list[tuple[float, str]]:
    return [(float(final(result, name).mean()), name) for name in result.curves]
