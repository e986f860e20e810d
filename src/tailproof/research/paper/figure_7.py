"""Figure 7 of the paper: the regret of SupBTC_mom against the ε of its filter."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tailproof.drawing import PALETTE, canvas
from tailproof.research.paper import published
from tailproof.research.paper.claims import (
    Claim,
    Picture,
    Sweep,
    below,
    fewest,
    final,
    ratio,
    student_plan,
)
from tailproof.results.regret import Result
from tailproof.stats.estimators import MeanOfMedians
from tailproof.wrappers.base import innermost
from tailproof.wrappers.filtered import Filtered

__all__ = ["DIFFERENCES", "SETTINGS", "TITLE", "check_claims", "draw", "run"]

TITLE = "SupBTC_mom against the ε of its filter, df = 1"
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "smoke": {"horizon": 600, "paths": 3},
    "quick": {"horizon": 10_000, "paths": 1000},
    "paper": {"horizon": 10_000, "paths": 1000},
}
DIFFERENCES: Sequence[str] = (
    "1000 paths instead of the paper's 100, to tell neighbouring ε apart.",
    "The paper lets ñ vary with ε. A path has only a few dozen decisions, so the regret jumps "
    "wherever ñ(ε) does; the right panel shows ñ.",
    "The public script omits the factor 2 before 4^(2/α), uses ⌊ñ^ε⌋ for the block length and the "
    "grid 0.3, 0.4, …, 0.8, so that ñ(0.6) = 268. We simulate its form and the form of the text.",
)
EPSILONS = tuple(round(0.3 + 0.05 * i, 2) for i in range(11))
SCRIPT_EPSILONS = EPSILONS[::2]


def pulls(epsilon: float, factor: int = 2) -> int:
    """Return ñ(ε) = ⌊256 ln M(ε)/ln M(½)⌋, where M is the larger of the two terms of Theorem 2.

    The `factor` stands before 4^(2/α) in the second term; the public script has none.

    >>> pulls(0.5), pulls(0.6), pulls(0.6, factor=1)
    (256, 308, 268)
    """

    def log_larger(e: float) -> float:
        horizon, delta, alpha = 10_000, 0.01, 1
        first = math.log(16 * math.log(2 * horizon / delta)) / e
        return max(first, math.log(factor * 4 ** (2 / alpha) * math.log(4 / delta)) / (1 - e))

    return math.floor(256 * log_larger(epsilon) / log_larger(0.5))


def run(sweep: Sweep, size: str, seed: int) -> dict[str, Result]:
    """Simulate each ε with its own number of pulls, as in the text and as in the script."""
    inner = innermost(published.policies(1, SETTINGS[size]["horizon"])["SupBTC_mom"])
    policies = {
        f"ε = {e}": Filtered(inner, repeats=pulls(e), estimator=MeanOfMedians(block_exponent=e))
        for e in EPSILONS
    }
    for e in SCRIPT_EPSILONS:
        repeats = pulls(e, factor=1)
        block = MeanOfMedians(block=math.floor(repeats**e))
        policies[f"script, ε = {e}"] = Filtered(inner, repeats=repeats, estimator=block)
    return sweep({"df = 1": student_plan(policies, 1, seed=seed, **SETTINGS[size])})


def draw(results: Mapping[str, Result]) -> dict[str, Picture]:
    """Draw mean and median regret, and the pulls per decision, against ε."""
    result = results["df = 1"]
    sample = np.array([final(result, f"ε = {e}") for e in EPSILONS])
    error = 1.96 * sample.std(axis=1, ddof=1) / math.sqrt(sample.shape[1])
    figure, ((left, right),) = canvas(1, 2, height=2.8, share=False)
    left.errorbar(EPSILONS, sample.mean(axis=1), error, color=PALETTE[0], capsize=2, label="mean")
    left.plot(EPSILONS, np.median(sample, axis=1), "--", color=PALETTE[1], label="median")
    scripts = [final(result, f"script, ε = {e}").mean() for e in SCRIPT_EPSILONS]
    label = "mean, public script"
    left.plot(SCRIPT_EPSILONS, scripts, "s", color=PALETTE[3], markersize=4, label=label)
    left.set(xlabel="ε", ylabel="regret at the horizon", ylim=(0, None))
    left.legend(fontsize=8, frameon=False)
    right.plot(EPSILONS, [pulls(e) for e in EPSILONS], "o-", color=PALETTE[2], markersize=3)
    right.set(xlabel="ε", ylabel="pulls per decision ñ(ε)", ylim=(0, None))
    best = EPSILONS[int(sample.mean(axis=1).argmin())]
    alt = (
        "Mean regret with 95 % intervals and median regret (left), and the pulls per decision "
        f"(right), against ε. The mean is smallest at ε = {best}."
    )
    return {"figure-7": Picture(figure, alt)}


def check_claims(results: Mapping[str, Result]) -> list[Claim]:
    """Compare the worst ε with the best, and the best between 0.5 and 0.6 with all others."""
    sample = {e: final(results["df = 1"], f"ε = {e}") for e in EPSILONS}
    best, *_, worst = ordered = sorted(EPSILONS, key=lambda e: float(sample[e].mean()))
    inside = next(e for e in ordered if 0.5 <= e <= 0.6)
    made = fewest(results["df = 1"], *(f"ε = {e}" for e in EPSILONS))
    text = f"regret at ε = {worst}, the worst, over ε = {best}, the best"
    return [
        Claim(
            "Results vary little with ε empirically.",
            "the paper, section 5; “little” is our measure, a factor of at most 1.5 over the grid",
            [ratio(text, sample[worst], sample[best], at_most=1.5, decisions=made)],
        ),
        Claim(
            "The optimal ε is between 0.5 and 0.6.",
            "the paper, appendix B",
            [
                below(
                    f"regret at ε = {inside} minus at ε = {e}",
                    sample[inside],
                    sample[e],
                    decisions=made,
                )
                for e in EPSILONS
                if not 0.5 <= e <= 0.6
            ],
        ),
    ]
