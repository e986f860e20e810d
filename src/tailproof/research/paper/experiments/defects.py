"""Warning 4: the regret of the published definitions, in place of the variants of the scripts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tailproof.drawing import canvas
from tailproof.policies import Policy
from tailproof.research.paper import published
from tailproof.research.paper.claims import Claim, Picture, Sweep, final, ratio, student_plan
from tailproof.research.paper.drawing import legend_below, mark_rows
from tailproof.results.regret import Result
from tailproof.typing import Array
from tailproof.wrappers.base import innermost
from tailproof.wrappers.filtered import Filtered

__all__ = ["DIFFERENCES", "SETTINGS", "TITLE", "check_claims", "draw", "run"]

TITLE = "Published definitions instead of the scripts' variants"
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "smoke": {"horizon": 300, "paths": 3, "filter_horizon": 600, "filter_paths": 3},
    "quick": {"horizon": 1500, "paths": 4, "filter_horizon": 10_000, "filter_paths": 100},
    "paper": {"horizon": 4000, "paths": 10, "filter_horizon": 10_000, "filter_paths": 500},
}
DIFFERENCES: Sequence[str] = (
    "The paper makes no such claim; a reader of its scripts has to ask.",
    "SupBTC with its own norm reads its whole history at each decision, so the horizon is shorter "
    "here.",
    "One of the scripts that average results mixes up algorithms; there is no published definition "
    "to compare it with.",
    "“Flat → layered” changes the layers alone. Bonus and threshold stay as in the scripts, so "
    "this is not yet the published algorithm.",
)
FILTER = "SupBMM_mom: one number → 31 replicates"
CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "TOFU: exponent ½ → 1/(1+ε)": ("TOFU", {"exponent": None}),
    "SupBTC: Euclidean → own threshold": ("SupBTC", {"threshold": "own"}),
    "SupBTC: flat → layered": ("SupBTC", {"layered": True}),
    "SupBMM: flat → layered": ("SupBMM", {"layered": True}),
    "SupBMM: scripts’ → published width": ("SupBMM", {"width": "published"}),
}
"""The algorithm, and the settings that turn the scripts' variant into the published definition."""


def run(sweep: Sweep, size: str, seed: int) -> dict[str, Result]:
    """Simulate every pair under df = 1.02, and the two filters of SupBMM_mom under df = 1."""
    settings = SETTINGS[size]
    horizon, filter_horizon = settings["horizon"], settings["filter_horizon"]
    scripts: dict[str, Any] = published.policies(1.02, horizon)
    policies: dict[str, Policy[Any]] = {}
    for label, (name, change) in CHANGES.items():
        policies[f"{label}: scripts"] = scripts[name]
        policies[f"{label}: published"] = replace(scripts[name], **change)
    whole = published.policies(1, filter_horizon)["SupBMM_mom"]
    collapsed = Filtered(replace(innermost(whole), replicates=1), repeats=whole.pulls)
    filters = {f"{FILTER}: scripts": collapsed, f"{FILTER}: published": whole}
    many, plan = settings["filter_paths"], partial(student_plan, seed=seed)
    return sweep(
        {
            "df = 1.02": plan(policies, 1.02, horizon=horizon, paths=settings["paths"]),
            "filter": plan(filters, 1, horizon=filter_horizon, paths=many),
        }
    )


def draw(results: Mapping[str, Result]) -> dict[str, Picture]:
    """Draw each pair of final regrets, divided by the mean of the scripts' variant."""
    figure, ((axes,),) = canvas(1, 1, height=3.2)
    pairs = _pairs(results)
    samples = {
        kind: [pair[i] / pair[0].mean() for pair in pairs.values()]
        for i, kind in enumerate(("scripts", "published"))
    }
    mark_rows(axes, list(pairs), samples)
    axes.set_xlim(left=0)
    axes.set_xlabel("regret over the scripts' mean: median, 10–90 %", fontsize=8)
    legend_below(figure, axes, 2)
    ends = "; ".join(
        f"{label}: {a.mean():.0f} and {b.mean():.0f}" for label, (a, b) in pairs.items()
    )
    alt = f"Final regret of the scripts' variants and of the published definitions. Means, {ends}."
    return {"defects": Picture(figure, alt)}


def check_claims(results: Mapping[str, Result]) -> list[Claim]:
    """Divide the regret of each published definition by the regret of the scripts' variant."""
    return [
        Claim(
            "With the published definitions instead of the scripts' variants the regrets stay "
            "within 10 %.",
            "our question, which a reader of the public scripts has to ask",
            [
                ratio(
                    f"{label}: published over scripts", ours, scripts, at_least=1 / 1.1, at_most=1.1
                )
                for label, (scripts, ours) in _pairs(results).items()
            ],
        )
    ]


def _pairs(results: Mapping[str, Result]) -> dict[str, tuple[Array, Array]]:
    """Return the final regrets of each variant: the scripts', the published."""
    keys = dict.fromkeys(CHANGES, "df = 1.02") | {FILTER: "filter"}
    return {
        label: (
            final(results[key], f"{label}: scripts"),
            final(results[key], f"{label}: published"),
        )
        for label, key in keys.items()
    }
