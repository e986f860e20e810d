"""Warning 3: the paper's environment rewards shrinkage.

Its contexts lie in the positive orthant and θ is their mean direction, so a heavy ridge penalty
alone finds θ. The two other environments do not help in this way.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tailproof import environments
from tailproof.drawing import READING, band, canvas
from tailproof.noise import Cauchy
from tailproof.policies import OFUL
from tailproof.research.paper.claims import Claim, Picture, Sweep, below, final, ratio
from tailproof.research.paper.drawing import legend_below
from tailproof.results.regret import Result
from tailproof.simulation.plan import Plan
from tailproof.stats.estimators import Median
from tailproof.wrappers.filtered import Filtered

__all__ = ["DIFFERENCES", "SETTINGS", "TITLE", "check_claims", "draw", "run"]

TITLE = "Shrinkage alone does well in the paper's environment"
RIDGES = (0.1, 0.3, 1, 3, 10, 30, 100)
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "smoke": {"horizon": 300, "paths": 3},
    "quick": {"horizon": 10_000, "paths": 50},
    "paper": {"horizon": 10_000, "paths": 200},
}
DIFFERENCES: Sequence[str] = (
    "The paper has no such comparison. The policy is OFUL behind a median of 15 pulls, with one "
    "tenth of its published bonus, which grows with √λ; the noise is Cauchy.",
)
ENVIRONMENTS = {
    "paper": environments.orthant(Cauchy()),
    "neutral": environments.neutral(Cauchy()),
    "fixed": environments.neutral(Cauchy(), fresh=False),
}
LABELS = ("the paper's environment", "neutral, fresh contexts", "neutral, fixed arms")


def run(sweep: Sweep, size: str, seed: int) -> dict[str, Result]:
    """Simulate every penalty in every environment."""
    policies = {
        f"λ = {ridge:g}": Filtered(
            OFUL(noise_scale=0.45, ridge=ridge, bonus=0.1), repeats=15, estimator=Median()
        )
        for ridge in RIDGES
    }
    return sweep(
        {
            name: Plan(policies=policies, environment=bandit, seed=seed, **SETTINGS[size])
            for name, bandit in ENVIRONMENTS.items()
        }
    )


def draw(results: Mapping[str, Result]) -> dict[str, Picture]:
    """Draw the final regret against the penalty, one curve for each environment."""
    figure, ((axes,),) = canvas(1, 1, height=3.0)
    ends = []
    for number, (name, label) in enumerate(zip(ENVIRONMENTS, LABELS, strict=True)):
        sample = {ridge: final(results[name], f"λ = {ridge:g}") for ridge in RIDGES}
        band(axes, RIDGES, np.array(list(sample.values())).T, number, label)
        ends.append(
            f"{label}: {sample[1].mean():.0f} at λ = 1, {sample[100].mean():.0f} at λ = 100"
        )
    axes.set(xscale="log", yscale="log", xlabel="ridge penalty λ", ylabel="regret at the horizon")
    legend_below(figure, axes, 3, READING)
    first = results["paper"]
    axes.set_title(
        f"Cauchy noise, T = {first.pulls[-1]} pulls, {first.settings['paths']} paths", fontsize=9
    )
    alt = f"Final regret against the ridge penalty. Means, {'; '.join(ends)}."
    return {"shrinkage": Picture(figure, alt)}


def check_claims(results: Mapping[str, Result]) -> list[Claim]:
    """Compare λ = 100 with λ = 1 in each environment."""
    heavy, light = (
        {name: final(results[name], f"λ = {ridge}") for name in ENVIRONMENTS} for ridge in (100, 1)
    )
    return [
        Claim(
            "In the paper's environment a ridge penalty of 100 instead of 1 divides the regret by "
            "more than three.",
            "our question",
            [ratio("paper: λ = 100 over λ = 1", heavy["paper"], light["paper"], at_most=1 / 3)],
        ),
        Claim(
            "The same penalty increases the regret in a neutral environment and on a fixed set of "
            "arms.",
            "our question",
            [
                below("neutral: λ = 1 minus λ = 100", light["neutral"], heavy["neutral"]),
                below("fixed arms: λ = 1 minus λ = 100", light["fixed"], heavy["fixed"]),
            ],
        ),
    ]
