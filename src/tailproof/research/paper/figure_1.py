"""Figure 1 of the paper: five densities, from light to heavy tails."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tailproof.drawing import PALETTE, canvas
from tailproof.noise import Noise, Normal, Stable, StudentT
from tailproof.research.paper.claims import Claim, Part, Picture, simulate_nothing
from tailproof.results.regret import Result

__all__ = ["DIFFERENCES", "SETTINGS", "TITLE", "check_claims", "draw", "run"]

TITLE = "Densities with light and heavy tails"
LAWS: dict[str, Noise] = {
    "normal": Normal(),
    "½-stable": Stable(0.5),
    "Student-t, df = 0.5": StudentT(0.5),
    "Student-t, df = 1": StudentT(1),
    "Student-t, df = 3": StudentT(3),
}
SETTINGS: Mapping[str, Mapping[str, Any]] = {size: {} for size in ("smoke", "quick", "paper")}
DIFFERENCES: Sequence[str] = (
    "We add the right panel, the tail probabilities: the densities on the left all look alike.",
    "The paper does not say which ½-stable law it draws; ours is symmetric with scale 1.",
)
run = simulate_nothing


def draw(results: Mapping[str, Result]) -> dict[str, Picture]:
    """Draw the densities, and next to them the tails on logarithmic axes."""
    figure, ((centre, tails),) = canvas(1, 2, height=3.0, share=False)
    x, y = np.linspace(-5, 5, 801), np.logspace(-1, 6, 400)
    for colour, (name, law) in zip(PALETTE, LAWS.items(), strict=False):
        centre.plot(x, law.pdf(x), color=colour, label=name)
        tails.loglog(y, 2 * law.cdf(-y), color=colour)
    centre.set(xlabel="x", ylabel="density", ylim=(0, 0.7))
    tails.set(xlabel="y", ylabel="P(|η| > y)", ylim=(1e-8, 2))
    figure.legend(loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    alt = (
        "Five densities (left) and their tail probabilities on logarithmic axes (right). All "
        "densities are bell-shaped around zero; the normal tail drops at once, the others become "
        "straight lines."
    )
    return {"figure-1": Picture(figure, alt)}


def check_claims(results: Mapping[str, Result]) -> list[Claim]:
    """Compute the slope of each tail between 10⁸ and 10¹⁰."""
    ends = np.array([1e8, 1e10])
    slopes = []
    for name, law in LAWS.items():
        if law.alpha < np.inf:
            slope = -float(np.diff(np.log(law.cdf(-ends)))[0] / np.log(100))
            text = f"{name}: slope of the tail, {law.alpha:g} according to the paper"
            slopes.append(Part(text, slope, law.alpha - 0.01, law.alpha + 0.01))
    return [
        Claim(
            "For a Cauchy variable α = 1, for Student's t-distribution α = df, and the α-stable "
            "law also has the α-heavy tail.",
            "the paper, section 2.3; judged far out in the tail, as its text on stable laws does",
            slopes,
        )
    ]
