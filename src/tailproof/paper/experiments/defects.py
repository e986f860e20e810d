"""Warning 4: what changes when the published definitions replace the scripts' variants."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tailproof.figures import PALETTE, canvas
from tailproof.noise import StudentT
from tailproof.paper import published
from tailproof.paper.exhibit import Claim, Picture, Sweep, final, ratio
from tailproof.policies import Policy
from tailproof.results.regret import Result
from tailproof.simulation.environments import orthant
from tailproof.simulation.plan import Plan
from tailproof.wrappers.base import innermost
from tailproof.wrappers.filtered import Filtered

__all__ = ["DIFFERENCES", "REFERENCE", "SETTINGS", "TITLE", "check_claims", "draw", "run"]

TITLE = "Published definitions in place of the scripts' variants"
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "smoke": {"horizon": 300, "paths": 3, "filter_horizon": 600, "filter_paths": 3},
    "quick": {"horizon": 1500, "paths": 4, "filter_horizon": 10_000, "filter_paths": 100},
    "paper": {"horizon": 4000, "paths": 10, "filter_horizon": 10_000, "filter_paths": 500},
}
DIFFERENCES: Sequence[str] = (
    "The paper makes no such claim; it is the question a reader of its scripts must ask.",
    "SupBTC with its own norm re-reads all history, so the horizon is shorter here.",
    "One averaging script mixes algorithms; there is no published definition to compare it with.",
    "“Flat → layered” changes the layers alone: bonus and threshold stay those of the scripts, so "
    "that this is not yet the published algorithm.",
)
REFERENCE: Mapping[str, Mapping[str, tuple[float, float]]] = {}
VARIANTS = {
    "TOFU: exponent ½ → 1/(1+ε)": "TOFU",
    "SupBTC: Euclidean → own threshold": "SupBTC",
    "SupBTC: flat → layered": "SupBTC",
    "SupBMM: flat → layered": "SupBMM",
    "SupBMM: scripts’ → published width": "SupBMM",
    "SupBMM_mom: one number → 31 replicates": "SupBMM_mom",
}


def pairs(horizon: int) -> dict[str, tuple[Policy[Any], Policy[Any]]]:
    """Return the scripts' variant and the published definition of each difference, df = 1.02."""
    scripts = published.policies(1.02, horizon)
    tofu, btc, bmm = (scripts[name] for name in ("TOFU", "SupBTC", "SupBMM"))
    changes: list[tuple[Any, dict[str, Any]]] = [
        (tofu, {"exponent": None}),
        (btc, {"threshold": "own"}),
        (btc, {"layered": True}),
        (bmm, {"layered": True}),
        (bmm, {"width": "published"}),
    ]
    return {
        label: (recipe, replace(recipe, **change))
        for label, (recipe, change) in zip(VARIANTS, changes, strict=False)
    }


def run(sweep: Sweep, size: str, seed: int) -> dict[str, Result]:
    """Simulate every pair under df = 1.02, and the two filters of SupBMM_mom under df = 1."""
    settings = SETTINGS[size]
    made = pairs(settings["horizon"])
    whole = published.policies(1, settings["filter_horizon"])["SupBMM_mom"]
    collapsed = Filtered(replace(innermost(whole), replicates=1), repeats=whole.pulls)
    *_, last = VARIANTS
    return sweep(
        {
            "df = 1.02": Plan(
                policies={
                    f"{label}: {kind}": recipe
                    for label, pair in made.items()
                    for kind, recipe in zip(("scripts", "published"), pair, strict=True)
                },
                environment=orthant(StudentT(1.02)),
                horizon=settings["horizon"],
                paths=settings["paths"],
                seed=seed,
            ),
            "filter": Plan(
                policies={f"{last}: scripts": collapsed, f"{last}: published": whole},
                environment=orthant(StudentT(1)),
                horizon=settings["filter_horizon"],
                paths=settings["filter_paths"],
                seed=seed,
            ),
        }
    )


def draw(results: Mapping[str, Result]) -> dict[str, Picture]:
    """Draw each pair of final regrets, in units of the scripts' mean."""
    figure, ((axes,),) = canvas(1, 1, height=3.2)
    rows = np.arange(len(VARIANTS))[::-1]
    alt = []
    for row, label in zip(rows, VARIANTS, strict=True):
        scripts, published = _samples(results, label)
        for i, sample in enumerate((scripts, published)):
            low, middle, high = np.quantile(sample, (0.1, 0.5, 0.9)) / scripts.mean()
            span = [[middle - low], [high - middle]]
            name = ("scripts", "published")[i] if row == rows[0] else None
            height = row + (0.12, -0.12)[i]
            mark, colour = "os"[i], PALETTE[i]
            axes.errorbar(middle, height, xerr=span, fmt=mark, color=colour, label=name)
        alt.append(f"{label}: {scripts.mean():.0f} and {published.mean():.0f}")
    axes.set_yticks(rows, VARIANTS, fontsize=8)
    axes.set_xlim(left=0)
    axes.set_xlabel("regret over the scripts' mean: median, 10–90 %", fontsize=8)
    axes.legend(fontsize=8, frameon=False)
    words = "Mean final regret of the scripts' variant and of the published one. "
    return {"defects": Picture(figure, words + "; ".join(alt) + ".")}


def check_claims(results: Mapping[str, Result]) -> list[Claim]:
    """Measure the regret of each published definition over that of the scripts' variant."""
    parts = []
    for label in VARIANTS:
        scripts, ours = _samples(results, label)
        text = f"{label}: published over scripts"
        parts.append(ratio(text, ours, scripts, at_least=1 / 1.1, at_most=1.1))
    return [
        Claim(
            "With the published definitions in place of the scripts' variants the regrets stay "
            "within 10 %.",
            "our question, which a reader of the public scripts must ask",
            parts,
        )
    ]


def _samples(results: Mapping[str, Result], label: str) -> list[Any]:
    result = results[
        "df = 1.02" if f"{label}: scripts" in results["df = 1.02"].curves else "filter"
    ]
    return [final(result, f"{label}: {kind}") for kind in ("scripts", "published")]
