"""The first picture: OFUL alone and behind the filter, as the noise loses its mean.

The neutral environment gives no policy a gift, and one setting of the filter serves every noise.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tailproof.figures import regret_figure
from tailproof.noise import StudentT
from tailproof.paper.exhibit import Claim, Picture, Sweep, below, final
from tailproof.policies import OFUL, Policy, Uniform
from tailproof.results.regret import Result
from tailproof.simulation.environments import neutral
from tailproof.simulation.plan import Plan
from tailproof.stats.estimators import Median
from tailproof.wrappers.filtered import Filtered

__all__ = ["DIFFERENCES", "REFERENCE", "SETTINGS", "TITLE", "check_claims", "draw", "run"]

TITLE = "OFUL alone and behind the filter, as the noise loses its mean"
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "smoke": {"horizon": 300, "paths": 4},
    "quick": {"horizon": 10_000, "paths": 100},
    "paper": {"horizon": 10_000, "paths": 500},
}
DIFFERENCES: Sequence[str] = (
    "Not a figure of the paper: its idea in a neutral environment, with an algorithm of which it "
    "proves a corollary.",
)
REFERENCE: Mapping[str, Mapping[str, tuple[float, float]]] = {}
DFS = (3, 1.02, 1, 0.5)
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
            f"df = {df}": Plan(
                policies=POLICIES, environment=neutral(StudentT(df)), seed=seed, **SETTINGS[size]
            )
            for df in DFS
        }
    )


def draw(results: Mapping[str, Result]) -> dict[str, Picture]:
    """Draw one panel for each noise."""
    ends = "; ".join(
        f"df = {df}: "
        + ", ".join(f"{name} {final(results[f'df = {df}'], name).mean():.0f}" for name in POLICIES)
        for df in DFS
    )
    figure = regret_figure({_title(df): results[f"df = {df}"] for df in DFS})
    return {"overview": Picture(figure, f"Cumulative regret against pulls. Final means, {ends}.")}


def check_claims(results: Mapping[str, Result]) -> list[Claim]:
    """Set the filtered form against OFUL alone and against chance."""
    parts = [
        below(
            f"df = {df}: {FILTERED} minus {other}",
            final(results[f"df = {df}"], FILTERED),
            final(results[f"df = {df}"], other),
        )
        for df in (1.02, 1, 0.5)
        for other in (ALONE, CHANCE)
    ]
    return [
        Claim(
            "A filter lets an ordinary algorithm learn where there is no mean: OFUL behind a "
            "median of 15 pulls beats OFUL alone, and chance, for df = 1.02, 1 and 0.5.",
            "our question, after the paper's framework (section 4)",
            parts,
        )
    ]


def _title(df: float) -> str:
    means = "no mean" if df <= 1 else "no variance" if df <= 2 else "finite variance"
    return f"Student-t, df = {df}: {means}"
