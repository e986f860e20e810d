"""Warning 1: the pulls that the theorem asks for, those used, and those needed."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import betainc

from tailproof.figures import PALETTE, band, canvas
from tailproof.noise import Noise, StudentT
from tailproof.paper.exhibit import Claim, Picture, Sweep, fact, final, ratio
from tailproof.policies import OFUL
from tailproof.results.regret import Result
from tailproof.simulation.environments import neutral
from tailproof.simulation.plan import Plan
from tailproof.stats.estimators import Median
from tailproof.stats.medians import NoiseMedian, scale
from tailproof.stats.theory import filter_pulls, median_pulls
from tailproof.wrappers.filtered import Filtered

__all__ = ["DIFFERENCES", "REFERENCE", "SETTINGS", "TITLE", "check_claims", "draw", "run"]

TITLE = "The theorem's pulls, the pulls used, the pulls needed"
HORIZON, DELTA = 10_000, 0.01
DFS = (3, 1.02, 1, 0.5)
USED = {3: 256, 1.02: 256, 1: 256, 0.5: 400}
"""The ñ of SupBTC_mom in figures 2 and 3."""
PULLS = (1, 3, 5, 7, 9, 15, 31, 63, 127, 255)
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "smoke": {"horizon": 600, "paths": 3},
    "quick": {"horizon": HORIZON, "paths": 50},
    "paper": {"horizon": HORIZON, "paths": 200},
}
DIFFERENCES: Sequence[str] = (
    "“Errors below 1” is the smallest odd ñ whose median misses by more than 1 with probability at "
    "most δ/T, from the exact law of the median: what the theorem promises of each decision.",
    "“Proved” is the median of `theory.median_pulls`, for any law with P(|η| > y) ≤ c/y^α: fewer "
    "than that, since medians may go beyond 1 where A is told their scale; see docs/theory.md.",
    "The regret on the right is that of OFUL behind a median of ñ pulls in the neutral "
    "environment, told the scale of that median: the deviation of the normal noise that is as "
    "often as far off at level δ.",
)
REFERENCE: Mapping[str, Mapping[str, tuple[float, float]]] = {}


def needed(noise: Noise) -> int:
    """Return the smallest odd k with P(|median of k samples| > 1) ≤ δ/T.

    P(median > 1) = I_{1−F(1)}((k+1)/2, (k+1)/2)
    """
    tail = float(noise.cdf(-1.0))
    k = 1
    while 2 * betainc((k + 1) / 2, (k + 1) / 2, tail) > DELTA / HORIZON:
        k += 2
    return k


def proved(alpha: float) -> int:
    """Return the length of the median that is proved to be enough for any law with this α."""
    return median_pulls(horizon=HORIZON, delta=DELTA, alpha=alpha).block


def run(sweep: Sweep, size: str, seed: int) -> dict[str, Result]:
    """Simulate OFUL behind ever longer medians."""
    return sweep(
        {
            f"df = {df}": Plan(
                policies={
                    f"ñ = {k}": Filtered(
                        OFUL(noise_scale=scale(NoiseMedian(StudentT(df), k), 1, DELTA)),
                        repeats=k,
                        estimator=Median(),
                    )
                    for k in PULLS
                },
                environment=neutral(StudentT(df)),
                seed=seed,
                **SETTINGS[size],
            )
            for df in DFS
        }
    )


def draw(results: Mapping[str, Result]) -> dict[str, Picture]:
    """Draw the three numbers of pulls, and the regret against the pulls."""
    figure, ((bars, curves),) = canvas(1, 2, height=3.0, share=False)
    numbers: dict[str, list[float]] = {
        "Theorem 2": [filter_pulls(horizon=HORIZON, delta=DELTA, alpha=df) for df in DFS],
        "used in the figures": [USED[df] for df in DFS],
        "proved to be enough": [proved(df) for df in DFS],
        "errors below 1 (exact law)": [needed(StudentT(df)) for df in DFS],
    }
    places = np.arange(len(DFS))
    for i, (name, values) in enumerate(numbers.items()):
        drawn = bars.bar(places + 0.21 * (i - 1.5), values, 0.19, color=PALETTE[i], label=name)
        bars.bar_label(
            drawn, [f"{value:.0f}" for value in values], fontsize=6, rotation=90, padding=2
        )
    bars.axhline(HORIZON, color="0.4", linestyle=":", label="the whole horizon")
    bars.set(yscale="log", ylim=(1, 1e9), ylabel="pulls of a decision", xticks=places)
    bars.set_xticklabels([f"df = {df}" for df in DFS])
    bars.legend(fontsize=7, frameon=False, loc="upper left")
    for place, df in enumerate(DFS):
        result = results[f"df = {df}"]
        sample = np.array([final(result, f"ñ = {k}") for k in PULLS])
        band(curves, PULLS, sample.T, place, f"df = {df}")
    curves.set(xscale="log", yscale="log", xlabel="pulls ñ of a decision", ylabel="regret")
    curves.legend(fontsize=7, frameon=False)
    first = results["df = 1"]
    size = f"T = {first.pulls[-1]} pulls, {first.settings['paths']} paths"
    reading = "median (line), 10–90 % (band), mean (dashes)"
    curves.set_title(f"OFUL behind medians, {size}\n{reading}", fontsize=7)
    alt = "Left: pulls of a decision. " + "; ".join(
        f"df = {df}: theorem {numbers['Theorem 2'][i]:.0f}, used {USED[df]}, "
        f"proved {proved(df)}, for errors below 1 {needed(StudentT(df))}"
        for i, df in enumerate(DFS)
    )
    alt += ". Right: regret against the pulls, smallest at " + ", ".join(
        f"{_best(results, df)} for df = {df}" for df in DFS
    )
    return {"pulls": Picture(figure, alt + ".")}


def check_claims(results: Mapping[str, Result]) -> list[Claim]:
    """Set the theorem's ñ beside the horizon, what the figures used, and what does best."""
    asked = {df: filter_pulls(horizon=HORIZON, delta=DELTA, alpha=df) for df in DFS}
    longest = f"ñ = {PULLS[-1]}"
    return [
        Claim(
            "ñ is set according to Theorem 2.",
            "the paper, section 5; the ñ of the figures is that of the public scripts",
            [
                fact(
                    f"df = {df}: the theorem's ñ over the ñ used", asked[df] / USED[df], 0.99, 1.01
                )
                for df in DFS
            ],
        ),
        Claim(
            "The theorem's ñ fits into the horizon of the experiments.",
            "our question",
            [
                fact(f"df = {df}: the theorem's ñ over the horizon", asked[df] / HORIZON, 0, 1)
                for df in DFS
            ],
        ),
        Claim(
            f"More pulls are better: {PULLS[-1]} pulls of a decision do no worse than fewer.",
            "our question",
            [
                ratio(
                    f"df = {df}: regret at {longest} over ñ = {_best(results, df)}, the best",
                    final(results[f"df = {df}"], longest),
                    final(results[f"df = {df}"], f"ñ = {_best(results, df)}"),
                    at_most=1,
                )
                for df in (1, 0.5)
            ],
        ),
    ]


def _best(results: Mapping[str, Result], df: float) -> int:
    return min(PULLS, key=lambda k: float(final(results[f"df = {df}"], f"ñ = {k}").mean()))
