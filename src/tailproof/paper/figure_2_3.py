"""Figures 2 and 3 of the paper: eight algorithms under four Student-t noises.

The settings are those of the published curves: bonuses far below their theory, no layers, a
Euclidean threshold in SupBTC. `REFERENCE` holds what these settings give elsewhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tailproof.figures import regret_figure
from tailproof.noise import StudentT
from tailproof.paper.exhibit import Claim, Measured, Picture, Sweep, below, final
from tailproof.paper.published import BASELINES, policies
from tailproof.paper.references import FIGURES_2_3
from tailproof.results.regret import Result
from tailproof.simulation.environments import orthant
from tailproof.simulation.plan import Plan

__all__ = [
    "DIFFERENCES",
    "REFERENCE",
    "SETTINGS",
    "TITLE",
    "check_claims",
    "draw",
    "plan",
    "run",
]

TITLE = "Six baselines against SupBMM_mom and SupBTC_mom"
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "smoke": {"horizon": 300, "paths": {3: 3, 1.02: 3, 1: 3, 0.5: 3}, "more": 3},
    "quick": {"horizon": 10_000, "paths": {3: 10, 1.02: 3, 1: 10, 0.5: 3}, "more": 100},
    "paper": {"horizon": 10_000, "paths": {3: 10, 1.02: 10, 1: 10, 0.5: 10}, "more": 500},
}
REFERENCE = FIGURES_2_3
DIFFERENCES: Sequence[str] = (
    "The bonuses, replicates and filter lengths are those of the published curves, not of the "
    "theory: no layers, no “+ 1”, a Euclidean threshold in SupBTC, truncation exponent ½ in TOFU.",
    "SupBMM_mom filters each of its 31 replicates; the public script reduces them to one number "
    "(see the section on defects).",
    "A uniformly random arm is drawn beside the paper's curves.",
    "The claims are judged with more paths than the paper's ten wherever the algorithms are fast: "
    "all but TOFU and SupBTC.",
)
SLOW = ("TOFU", "SupBTC")


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
    """Simulate the four noises, and those algorithms that are fast on more paths."""
    horizon, paths = SETTINGS[size]["horizon"], SETTINGS[size]["paths"]
    plans = {}
    for df, n in paths.items():
        plans[f"df = {df}"] = whole = plan(df, horizon=horizon, paths=n, seed=seed)
        fast = {name: policy for name, policy in whole.policies.items() if name not in SLOW}
        plans[f"more, df = {df}"] = replace(whole, policies=fast, paths=SETTINGS[size]["more"])
    return sweep(plans)


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


def check_claims(results: Mapping[str, Result]) -> list[Claim]:
    """Set each filtered algorithm against every baseline, against the other, and against chance."""
    ours = ("SupBMM_mom", "SupBTC_mom")

    def outperform(*keys: str) -> list[Measured]:
        return [
            _minus(results, key, name, rival)
            for key in keys
            for name in ours
            for rival in BASELINES
        ]

    return [
        Claim(
            "For df = 1.02 our algorithms outperform MoM, CRT, MENU, TOFU, SupBMM and SupBTC.",
            "the paper, section 5, on figure 2(b)",
            outperform("df = 1.02"),
        ),
        Claim(
            "For df = 1 and 0.5 our algorithms perform significantly better than other algorithms.",
            "the paper, section 5, on figure 3",
            outperform("df = 1", "df = 0.5"),
        ),
        Claim(
            "For df = 1 and 0.5 SupBTC_mom performs better than SupBMM_mom.",
            "the paper, section 5, on figure 3",
            [_minus(results, key, *ours[::-1]) for key in ("df = 1", "df = 0.5")],
        ),
        Claim(
            "Our algorithms outperform the state-of-the-art algorithms even when ε > 0.",
            "the paper, end of section 5; ε > 0 includes df = 3, on which its text says no more",
            outperform("df = 3", "df = 1.02"),
        ),
        Claim(
            "Both filtered algorithms do better than a uniformly random arm, for every df.",
            "our question",
            [
                _minus(results, f"df = {df}", name, "uniform")
                for df in SETTINGS["paper"]["paths"]
                for name in ours
            ],
        ),
    ]


def _minus(results: Mapping[str, Result], key: str, name: str, rival: str) -> Measured:
    """Compare two algorithms on as many paths as both have."""
    result = results[key if rival in SLOW else f"more, {key}"]
    return below(f"{key}: {name} minus {rival}", final(result, name), final(result, rival))


def _ends(result: Result) -> list[tuple[float, str]]:
    return [(float(final(result, name).mean()), name) for name in result.curves]
