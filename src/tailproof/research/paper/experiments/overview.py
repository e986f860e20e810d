"""The first picture: OFUL alone and behind the filter, as the noise loses its mean.

The environment favours no policy, and one setting of the filter is used for every noise.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tailproof.environments.linear import neutral
from tailproof.figures import regret_figure
from tailproof.policies import OFUL, Policy, Uniform
from tailproof.research.paper.claims import Claim, Picture, Sweep, less_regret, means, student_plan
from tailproof.results.regret import Result
from tailproof.stats.estimators import Median
from tailproof.wrappers.filtered import Filtered

__all__ = ["DIFFERENCES", "SETTINGS", "TITLE", "check_claims", "draw", "run"]

TITLE = "OFUL alone and behind the filter, as the noise loses its mean"
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "smoke": {"horizon": 300, "paths": 4},
    "quick": {"horizon": 10_000, "paths": 100},
    "paper": {"horizon": 10_000, "paths": 500},
}
DIFFERENCES: Sequence[str] = (
    "Not a figure of the paper: its idea in a neutral environment, with an algorithm for which it "
    "proves a corollary.",
)
NOISES = {3: "finite variance", 1.02: "no variance", 1: "no mean", 0.5: "no mean"}
ALONE, FILTERED, CHANCE = "OFUL", "OFUL behind a median of 15", "uniformly random arm"
POLICIES: dict[str, Policy[Any]] = {
    ALONE: OFUL(),
    FILTERED: Filtered(OFUL(noise_scale=0.45), repeats=15, estimator=Median()),
    CHANCE: Uniform(),
}


def run(sweep: Sweep, size: str, seed: int) -> dict[str, Result]:
    """Simulate the four noises."""
    return sweep(
        {
            f"df = {df}": student_plan(POLICIES, df, neutral, seed=seed, **SETTINGS[size])
            for df in NOISES
        }
    )


def draw(results: Mapping[str, Result]) -> dict[str, Picture]:
    """Draw one panel for each noise."""
    ends = "; ".join(f"df = {df}: {means(results[f'df = {df}'])}" for df in NOISES)
    figure = regret_figure(
        {f"Student-t, df = {df}: {tail}": results[f"df = {df}"] for df, tail in NOISES.items()}
    )
    return {"overview": Picture(figure, f"Cumulative regret against pulls. Final means, {ends}.")}


def check_claims(results: Mapping[str, Result]) -> list[Claim]:
    """Compare filtered OFUL with OFUL alone and with a random arm."""
    return [
        Claim(
            "A filter lets an ordinary algorithm learn where there is no mean: OFUL behind a "
            "median of 15 pulls beats OFUL alone and a random arm, for df = 1.02, 1 and 0.5.",
            "our question, after the paper's framework (section 4)",
            [
                less_regret(f"df = {df}", results[f"df = {df}"], FILTERED, rival)
                for df in (1.02, 1, 0.5)
                for rival in (ALONE, CHANCE)
            ],
        )
    ]
