"""Figure 6 of the paper: the ε that balances the two terms of Theorem 2, against α."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tailproof.figures import PALETTE, canvas
from tailproof.paper.exhibit import Claim, Picture, Sweep, fact
from tailproof.results.regret import Result
from tailproof.stats.theory import balancing_exponent, filter_pulls

__all__ = ["DIFFERENCES", "REFERENCE", "SETTINGS", "TITLE", "check_claims", "draw", "run"]

TITLE = "The ε that balances the theorem"
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    size: {"horizon": 10_000, "delta": 0.01} for size in ("smoke", "quick", "paper")
}
DIFFERENCES: Sequence[str] = (
    "The right panel, the pulls that the balancing ε asks for, is ours.",
    "The public script balances (16 ln(T/δ))^(1/ε) with (4^(2/α) ln(4/δ))^(1/(1−ε)), without the "
    "factors 2 of the text; its curve is drawn dashed beside the text's.",
)
REFERENCE: Mapping[str, Mapping[str, tuple[float, float]]] = {}
ALPHAS = np.linspace(0.2, 3, 141)


def run(sweep: Sweep, size: str, seed: int) -> dict[str, Result]:
    """Simulate nothing: the theorem is a formula."""
    return {}


def draw(results: Mapping[str, Result]) -> dict[str, Picture]:
    """Draw ε against α, and the pulls per decision that it leads to."""
    settings = SETTINGS["paper"]
    epsilons = [balancing_exponent(alpha=alpha, **settings) for alpha in ALPHAS]
    figure, ((left, right),) = canvas(1, 2, height=2.8, share=False)
    left.plot(ALPHAS, epsilons, color=PALETTE[0], label="the text's formula")
    scripts = [_scripts(alpha) for alpha in ALPHAS]
    left.plot(ALPHAS, scripts, "--", color=PALETTE[1], label="the public script's")
    left.legend(fontsize=8, frameon=False)
    left.set(xlabel="α", ylabel="balancing ε", ylim=(0, 1))
    for colour, name, pairs in (
        (PALETTE[0], "balancing ε", zip(ALPHAS, epsilons, strict=True)),
        (PALETTE[1], "ε = ½", ((alpha, 0.5) for alpha in ALPHAS)),
    ):
        pulls = [
            filter_pulls(alpha=alpha, block_exponent=epsilon, **settings)
            for alpha, epsilon in pairs
        ]
        right.semilogy(ALPHAS, pulls, color=colour, label=name)
    right.axhline(settings["horizon"], color="0.4", linestyle=":", label="the whole horizon")
    right.set(xlabel="α", ylabel="ñ of Theorem 2")
    right.legend(fontsize=8, frameon=False)
    alt = (
        f"Left: the balancing ε falls from {epsilons[-1]:.2f} at α = 3 to {epsilons[0]:.2f} at "
        "α = 0.2, as the tail grows heavier. Right: the pulls that it asks for grow from "
        f"{filter_pulls(alpha=3, block_exponent=epsilons[-1], **settings):.0f} to billions."
    )
    return {"figure-6": Picture(figure, alt)}


def check_claims(results: Mapping[str, Result]) -> list[Claim]:
    """Evaluate the balancing ε where the paper speaks of it."""
    at = {alpha: balancing_exponent(alpha=alpha, **SETTINGS["paper"]) for alpha in (0.5, 1, 3)}
    return [
        Claim(
            "For α = 1 the optimal ε of this figure is consistent with one between 0.5 and 0.6.",
            "the paper, appendix B",
            [
                fact("ε at α = 1 by the text's formula", at[1], 0.5, 0.6),
                fact("ε at α = 1 by the public script's", _scripts(1.0), 0.5, 0.6),
            ],
        ),
        Claim(
            "The balancing ε falls as the tail grows heavier.",
            "the paper, figure 6, as drawn",
            [fact("ε at α = 0.5 minus ε at α = 3", at[0.5] - at[3], -1, 0)],
        ),
    ]


def _scripts(alpha: float) -> float:
    """Return the ε of the public script, which leaves both factors 2 of the text out.

    >>> round(_scripts(1.0), 3)
    0.542
    """
    horizon, delta = SETTINGS["paper"]["horizon"], SETTINGS["paper"]["delta"]
    block = math.log(16 * math.log(horizon / delta))
    count = 2 / alpha * math.log(4) + math.log(math.log(4 / delta))
    return block / (block + count)
