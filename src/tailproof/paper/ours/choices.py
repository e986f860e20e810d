"""Past the paper: which tool for which tail, with default settings for every one of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tailproof.figures import READING, band, canvas
from tailproof.noise import StudentT
from tailproof.paper import published
from tailproof.paper.exhibit import Claim, Picture, Sweep, best, final, ratio
from tailproof.policies import OFUL, LinStudentUCB, Policy, Uniform
from tailproof.results.regret import Result
from tailproof.simulation.environments import neutral
from tailproof.simulation.plan import Plan
from tailproof.wrappers.auto import AutoFiltered
from tailproof.wrappers.filtered import Filtered

__all__ = ["DIFFERENCES", "REFERENCE", "SETTINGS", "TITLE", "draw", "judge", "run"]

TITLE = "Regret against the tail, for every choice of tool"
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "smoke": {"horizon": 300, "paths": 3, "dfs": (3, 1, 0.5)},
    "quick": {"horizon": 5000, "paths": 30, "dfs": (3, 1, 0.5)},
    "paper": {"horizon": 10_000, "paths": 100, "dfs": (10, 3, 2, 1.5, 1, 0.7, 0.5)},
}
DIFFERENCES: Sequence[str] = (
    "Not in the paper. The neutral environment with fresh contexts, Student-t noise; every tool "
    "with the same settings for every df, except that the calibrated filter is told the law and "
    "SupBTC_mom has its published ñ.",
)
REFERENCE: Mapping[str, Mapping[str, tuple[float, float]]] = {}
SINGLE = "LinStudentUCB, single pulls"


def policies(df: float, horizon: int) -> dict[str, Policy[Any]]:
    """Return the tools for one noise."""
    calibrated = Filtered.calibrated(OFUL(), noise=StudentT(df), horizon=10_000, dim=10)
    return {
        "OFUL": OFUL(),
        "OFUL, filter calibrated": calibrated,
        "OFUL, filter tunes itself": AutoFiltered(OFUL()),
        SINGLE: LinStudentUCB(),
        "SupBTC_mom": published.policies(df, horizon)["SupBTC_mom"],
        "random arm": Uniform(),
    }


def run(sweep: Sweep, size: str, seed: int) -> dict[str, Result]:
    """Simulate every tool under every tail."""
    settings = SETTINGS[size]
    return sweep(
        {
            f"df = {df}": Plan(
                policies=policies(df, settings["horizon"]),
                environment=neutral(StudentT(df)),
                horizon=settings["horizon"],
                paths=settings["paths"],
                seed=seed,
            )
            for df in settings["dfs"]
        }
    )


def draw(results: Mapping[str, Result]) -> dict[str, Picture]:
    """Draw the final regret against df, one curve for each tool."""
    figure, ((axes,),) = canvas(1, 1, height=3.8)
    dfs = [float(key.removeprefix("df = ")) for key in results]
    first = next(iter(results.values()))
    for place, name in enumerate(first.curves):
        sample = np.array([final(result, name) for result in results.values()])
        band(axes, dfs, sample.T, place, name)
    axes.set(xscale="log", yscale="log", ylabel="regret at the horizon")
    axes.set_xlabel("degrees of freedom (no mean up to 1, no variance up to 2)", fontsize=9)
    axes.set_xticks(dfs, [f"{df:g}" for df in dfs])
    axes.set_xticks([], minor=True)
    size = f"T = {first.pulls[-1]} pulls, {first.settings['paths']} paths"
    axes.set_title(f"neutral environment, {size}", fontsize=9)
    figure.legend(
        loc="outside lower center",
        ncols=3,
        fontsize=8,
        frameon=False,
        title=READING,
        title_fontsize=8,
    )
    words = "; ".join(
        f"{key}: " + ", ".join(f"{name} {final(result, name).mean():.0f}" for name in first.curves)
        for key, result in results.items()
    )
    alt = f"Final regret of six tools against the degrees of freedom. Means, {words}."
    return {"choices": Picture(figure, alt)}


def judge(results: Mapping[str, Result]) -> list[Claim]:
    """Set the single-pull policy against the best other tool, for every tail."""
    parts = []
    for key, result in results.items():
        rival = best(result, (name for name in result.curves if name != SINGLE))
        text = f"{key}: {SINGLE} over {rival}, the best other"
        parts.append(ratio(text, final(result, SINGLE), final(result, rival), at_most=1.1))
    return [
        Claim(
            "LinStudentUCB, which needs no repeated pulls, no tail index and no scale, is within "
            "10 % of the best tool for every df, light tails included, in this environment.",
            "our question",
            parts,
        )
    ]
