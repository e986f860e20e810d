"""Figure 6 of the paper: the ε that balances the two terms of Theorem 2, against α."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tailproof.drawing import PALETTE, canvas
from tailproof.research.paper.claims import Claim, Part, Picture, simulate_nothing
from tailproof.results.regret import Result
from tailproof.stats.theory import balancing_exponent, filter_pulls

__all__ = ["DIFFERENCES", "SETTINGS", "TITLE", "check_claims", "draw", "run"]

TITLE = "The ε that balances the two terms of Theorem 2"
HORIZON, DELTA = 10_000, 0.01
"""Those of the paper's experiments."""
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    size: {"horizon": HORIZON, "delta": DELTA} for size in ("smoke", "quick", "paper")
}
DIFFERENCES: Sequence[str] = (
    "We add the right panel, the pulls per decision ñ that the balancing ε needs.",
    "The public script balances (16 ln(T/δ))^(1/ε) with (4^(2/α) ln(4/δ))^(1/(1−ε)), without the "
    "two factors 2 of the text; its curve is dashed.",
)
ALPHAS = np.linspace(0.2, 3, 141)
run = simulate_nothing


def draw(results: Mapping[str, Result]) -> dict[str, Picture]:
    """Draw ε and the pulls per decision that it needs, against α."""
    epsilons = [exponent(alpha) for alpha in ALPHAS]
    figure, ((left, right),) = canvas(1, 2, height=2.8, share=False)
    left.plot(ALPHAS, epsilons, color=PALETTE[0], label="formula of the text")
    scripts = [script_exponent(alpha) for alpha in ALPHAS]
    left.plot(ALPHAS, scripts, "--", color=PALETTE[1], label="formula of the public script")
    left.set(xlabel="α", ylabel="balancing ε", ylim=(0, 1))
    for colour, name, exponents in (
        (PALETTE[0], "balancing ε", epsilons),
        (PALETTE[1], "ε = ½", [0.5] * len(ALPHAS)),
    ):
        pulls = [pulls_at(alpha, e) for alpha, e in zip(ALPHAS, exponents, strict=True)]
        right.semilogy(ALPHAS, pulls, color=colour, label=name)
    right.axhline(HORIZON, color="0.4", linestyle=":", label="the whole horizon")
    right.set(xlabel="α", ylabel="ñ of Theorem 2")
    for axes in (left, right):
        axes.legend(fontsize=8, frameon=False)
    alt = (
        "The balancing ε (left) and the pulls per decision that it needs (right), against α. As "
        f"the tail grows heavier, from α = 3 to α = 0.2, ε falls from {epsilons[-1]:.2f} to "
        f"{epsilons[0]:.2f} and the pulls grow from "
        f"{pulls_at(3, epsilons[-1]):.0f} to billions."
    )
    return {"figure-6": Picture(figure, alt)}


def check_claims(results: Mapping[str, Result]) -> list[Claim]:
    """Compute the balancing ε for the values of α that the paper speaks of."""
    at = {alpha: exponent(alpha) for alpha in (0.5, 1, 3)}
    return [
        Claim(
            "For α = 1 the optimal ε of this figure lies between 0.5 and 0.6.",
            "the paper, appendix B",
            [
                Part("ε at α = 1, formula of the text", at[1], 0.5, 0.6),
                Part("ε at α = 1, formula of the public script", script_exponent(1.0), 0.5, 0.6),
            ],
        ),
        Claim(
            "The balancing ε falls as the tail grows heavier.",
            "the paper, figure 6, as drawn",
            [Part("ε at α = 0.5 minus ε at α = 3", at[0.5] - at[3], -1, 0)],
        ),
    ]


def exponent(alpha: float) -> float:
    """Return the balancing ε of the text."""
    return balancing_exponent(horizon=HORIZON, delta=DELTA, alpha=alpha)


def pulls_at(alpha: float, epsilon: float) -> float:
    """Return the ñ of Theorem 2 at an ε."""
    return filter_pulls(horizon=HORIZON, delta=DELTA, alpha=alpha, block_exponent=epsilon)


def script_exponent(alpha: float) -> float:
    """Return the balancing ε of the public script, which omits both factors 2 of the text.

    >>> round(script_exponent(1.0), 3)
    0.542
    """
    block = math.log(16 * math.log(HORIZON / DELTA))
    count = 2 / alpha * math.log(4) + math.log(math.log(4 / DELTA))
    return block / (block + count)
