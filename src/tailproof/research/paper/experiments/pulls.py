"""Warning 1: pulls per decision: asked by the theorem, used by the scripts, and needed."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import betainc

from tailproof.drawing import PALETTE, band, canvas
from tailproof.environments.linear import neutral
from tailproof.noise import Noise, StudentT
from tailproof.policies import OFUL
from tailproof.research.paper.claims import (
    Claim,
    Part,
    Picture,
    Sweep,
    best,
    final,
    ratio,
    student_plan,
)
from tailproof.results.regret import Result
from tailproof.stats.estimators import Median
from tailproof.stats.medians import NoiseMedian, scale
from tailproof.stats.theory import filter_pulls, median_pulls
from tailproof.wrappers.filtered import Filtered

__all__ = ["DIFFERENCES", "SETTINGS", "TITLE", "check_claims", "draw", "run"]

TITLE = "Pulls per decision: asked for by the theorem, used, and needed"
HORIZON, DELTA = 10_000, 0.01
USED = {3: 256, 1.02: 256, 1: 256, 0.5: 400}
"""The ñ of SupBTC_mom in figures 2 and 3, by df."""
PULLS = (1, 3, 5, 7, 9, 15, 31, 63, 127, 255)
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "smoke": {"horizon": 600, "paths": 3},
    "quick": {"horizon": HORIZON, "paths": 50},
    "paper": {"horizon": HORIZON, "paths": 200},
}
DIFFERENCES: Sequence[str] = (
    "The theorem promises “errors below 1” for each decision: the smallest odd ñ whose "
    "median is off by more than 1 with probability at most δ/T, from the exact law of the median.",
    "“Proved to be enough” is the block of `theory.median_pulls`, for any law with P(|η| > y) ≤ "
    "c/y^α. It can be shorter, since medians may be off by more than 1 if the algorithm is told "
    "their scale; see docs/theory.md.",
    "The right panel shows OFUL behind a median of ñ pulls in the neutral environment. OFUL is "
    "told the scale of that median: the deviation of normal noise with the same quantile at "
    "level δ.",
)


def needed(noise: Noise) -> int:
    """Return the smallest odd k with P(|median of k samples| > 1) ≤ δ/T.

    P(median > 1) = I_{1−F(1)}((k+1)/2, (k+1)/2)
    """
    tail = float(noise.cdf(-1.0))
    k = 1
    while 2 * betainc((k + 1) / 2, (k + 1) / 2, tail) > DELTA / HORIZON:
        k += 2
    return k


def asked(df: float) -> float:
    """Return the pulls per decision that Theorem 2 asks for."""
    return filter_pulls(horizon=HORIZON, delta=DELTA, alpha=df)


def run(sweep: Sweep, size: str, seed: int) -> dict[str, Result]:
    """Simulate OFUL behind medians of ever more pulls."""
    plans = {}
    for df in USED:
        told = {k: OFUL(noise_scale=scale(NoiseMedian(StudentT(df), k), 1, DELTA)) for k in PULLS}
        policies = {
            f"ñ = {k}": Filtered(policy, repeats=k, estimator=Median())
            for k, policy in told.items()
        }
        plans[f"df = {df}"] = student_plan(policies, df, neutral, seed=seed, **SETTINGS[size])
    return sweep(plans)


def draw(results: Mapping[str, Result]) -> dict[str, Picture]:
    """Draw the numbers of pulls per decision, and the regret against them."""
    figure, ((bars, curves),) = canvas(1, 2, height=3.2, share=False)
    numbers: dict[str, list[float]] = {
        "Theorem 2": [asked(df) for df in USED],
        "used in the figures": [*USED.values()],
        "proved to be enough": [
            median_pulls(horizon=HORIZON, delta=DELTA, alpha=df).block for df in USED
        ],
        "errors below 1 (exact law)": [needed(StudentT(df)) for df in USED],
    }
    positions = np.arange(len(USED))
    for i, (name, values) in enumerate(numbers.items()):
        drawn = bars.bar(positions + 0.21 * (i - 1.5), values, 0.19, color=PALETTE[i], label=name)
        bars.bar_label(
            drawn, [f"{value:.0f}" for value in values], fontsize=6, rotation=90, padding=2
        )
    bars.axhline(HORIZON, color="0.4", linestyle=":", label="the whole horizon")
    bars.set(yscale="log", ylim=(1, 1e9), ylabel="pulls per decision", xticks=positions)
    bars.set_xticklabels([f"df = {df}" for df in USED])
    for number, (key, result) in enumerate(results.items()):
        band(curves, PULLS, np.array([final(result, f"ñ = {k}") for k in PULLS]).T, number, key)
    curves.set(xscale="log", yscale="log", xlabel="pulls per decision ñ", ylabel="regret")
    for axes, columns in ((bars, 2), (curves, 4)):
        axes.legend(
            ncols=columns,
            fontsize=7,
            frameon=False,
            loc="upper center",
            bbox_to_anchor=(0.5, -0.22),
        )
    first = results["df = 1"]
    size = f"T = {first.pulls[-1]} pulls, {first.settings['paths']} paths"
    reading = "median (line), 10–90 % (band), mean (dashes)"
    curves.set_title(f"OFUL behind medians, {size}\n{reading}", fontsize=7)
    alt = (
        "Pulls per decision (left), and regret against the pulls per decision (right). "
        + "; ".join(
            f"df = {df}: "
            + ", ".join(f"{name} {values[i]:.0f}" for name, values in numbers.items())
            for i, df in enumerate(USED)
        )
    )
    least = ", ".join(f"{best(result, result.curves)} for {key}" for key, result in results.items())
    return {"pulls": Picture(figure, f"{alt}. The regret is smallest at {least}.")}


def check_claims(results: Mapping[str, Result]) -> list[Claim]:
    """Compare the theorem's ñ with the horizon and the ñ used, and long medians with the best."""
    longest, costs = f"ñ = {PULLS[-1]}", []
    for key in ("df = 1", "df = 0.5"):
        least = best(results[key], results[key].curves)
        text = f"{key}: regret at {longest} over {least}, the best"
        costs.append(
            ratio(text, final(results[key], longest), final(results[key], least), at_most=1)
        )
    return [
        Claim(
            "ñ is set according to Theorem 2.",
            "the paper, section 5; the ñ of the figures is from the public scripts",
            [
                Part(f"df = {df}: the theorem's ñ over the ñ used", asked(df) / used, 0.99, 1.01)
                for df, used in USED.items()
            ],
        ),
        Claim(
            "The theorem's ñ fits into the horizon of the experiments.",
            "our question",
            [
                Part(f"df = {df}: the theorem's ñ over the horizon", asked(df) / HORIZON, 0, 1)
                for df in USED
            ],
        ),
        Claim(
            f"More pulls are better: {PULLS[-1]} pulls per decision do no worse than fewer.",
            "our question",
            costs,
        ),
    ]
