"""Statements of the paper without a figure: Definition 1, symmetry, rates of the estimators."""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from tailproof.drawing import PALETTE, canvas
from tailproof.noise import Cauchy, Noise, Normal, Stable, StudentT
from tailproof.research.paper.claims import Claim, Part, Picture, below, simulate_nothing
from tailproof.research.paper.drawing import legend_below
from tailproof.results import Result
from tailproof.stats import Estimator, MeanOfMedians, MedianOfMeans, TruncatedMean
from tailproof.typing import Array

__all__ = ["DIFFERENCES", "SETTINGS", "TITLE", "check_claims", "draw", "run"]

TITLE = "Statements of the paper without a figure"
SETTINGS: Mapping[str, Mapping[str, Any]] = {size: {} for size in ("smoke", "quick", "paper")}
DIFFERENCES: Sequence[str] = (
    "Definition 1 bounds the tail from above, so lighter tails satisfy it too; the constants are "
    "exact suprema of y^α P(|η| > y).",
    "The rates are slopes on logarithmic axes: the 90 % quantile of the error against the number "
    "of samples, from 300 to 30 000, over 10 batches of 50 samples with a fixed seed. The noise is "
    "Student-t with df = 1 + ε for ε = 0.3 and 0.7: moments of lower orders exist. The truncated "
    "mean has the best threshold of its guarantee, the median of means 8 ln(1/δ) blocks at δ = "
    "0.1, the mean of medians ε = ¼ for its block length.",
    "We do not measure the remark that the lower bound Ω(T^(1/(1+ε))) does not apply because more "
    "is assumed about the tails. What removes that bound is the symmetry of the noise.",
)
ORDERS, SIZES = (0.3, 0.7), (300, 3000, 30_000)
BATCHES, BATCH = 10, 50
run = simulate_nothing


def largest_alpha(law: Noise) -> float:
    """Return the largest α with P(|η| > y) ≤ 1/y^α for every y > 0.

    α = inf_{y > 1} −ln P(|η| > y)/ln y

    >>> round(largest_alpha(Normal()), 3), round(largest_alpha(StudentT(3)), 3)
    (4.45, 2.578)
    """
    y = np.concatenate([1 + np.geomspace(1e-6, 30, 20_000), np.geomspace(31, 1e12, 2000)])
    with np.errstate(divide="ignore"):
        slopes = -np.log(2 * law.cdf(-y)) / np.log(y)
    return float(min(slopes.min(), law.alpha))


def estimators(n: int, order: float) -> dict[str, Estimator]:
    """Return the three estimators of sections 3.1 and 3.2, set for n samples and an ε."""
    delta, law = 0.1, StudentT(1 + order)
    moment = _absolute_moment(law, 1 + order - 0.01)
    threshold = (moment * n / math.log(1 / delta)) ** (1 / (1 + order - 0.01))
    return {
        "truncated mean": TruncatedMean(threshold=threshold),
        "median of means": MedianOfMeans(blocks=math.ceil(8 * math.log(1 / delta))),
        "mean of medians": MeanOfMedians(block_exponent=0.25),
    }


@cache
def errors(order: float) -> Mapping[str, Array]:
    """Return the 90 % quantile of each estimator's error for an ε, of shape (batches, sizes)."""
    rng, law = np.random.default_rng(2021), StudentT(1 + order)
    quantiles: dict[str, Array] = {
        name: np.empty((BATCHES, len(SIZES))) for name in estimators(SIZES[0], order)
    }
    for column, n in enumerate(SIZES):
        for batch in range(BATCHES):
            samples = law.sample(rng, (BATCH, n))
            for name, estimator in estimators(n, order).items():
                quantiles[name][batch, column] = np.quantile(np.abs(estimator(samples)), 0.9)
    return quantiles


def draw(results: Mapping[str, Result]) -> dict[str, Picture]:
    """Draw the error of the three estimators against the number of samples."""
    figure, (panels,) = canvas(1, len(ORDERS), height=3.0)
    ends = []
    for axes, order in zip(panels, ORDERS, strict=True):
        measured = errors(order)
        for colour, (name, error) in zip(PALETTE, measured.items(), strict=False):
            low, middle, high = np.quantile(error, (0.1, 0.5, 0.9), axis=0)
            axes.fill_between(SIZES, low, high, color=colour, alpha=0.15, linewidth=0)
            axes.loglog(SIZES, middle, "o-", color=colour, markersize=3, label=name)
        last = (f"{name} {np.median(error[:, -1]):.3g}" for name, error in measured.items())
        ends.append(f"df = {1 + order:g}: {', '.join(last)}")
        start = float(np.median(measured["mean of medians"][:, 0]))
        guide = start * (np.array(SIZES) / SIZES[0]) ** -0.5
        axes.loglog(SIZES, guide, ":", color="0.4", label="n^(−½)")
        axes.set(xlabel="samples n")
        axes.set_title(f"df = {1 + order:g}; bands: 10–90 % of 10 batches of 50", fontsize=9)
    panels[0].set_ylabel("90 % quantile of the error")
    legend_below(figure, panels[0], 2)
    alt = (
        "Error of three estimators against samples, Student-t noise. "
        f"At {SIZES[-1]} samples, {'; '.join(ends)}."
    )
    return {"statements": Picture(figure, alt)}


def check_claims(results: Mapping[str, Result]) -> list[Claim]:
    """Compute the constants of Definition 1 and the limit, and measure the slopes."""
    laws: dict[str, Noise] = {
        "Student-t, df = 3": StudentT(3),
        "Cauchy": Cauchy(),
        "Student-t, df = 0.5": StudentT(0.5),
        "½-stable": Stable(0.5),
    }
    alpha = 1.5
    centred_median = 2 ** (1 / alpha) - alpha / (alpha - 1)
    limit = f"limit of the mean of medians for a centred Pareto law of index {alpha}"
    return [
        Claim(
            "Student's t(df) has α = df and the α-stable law its own α in Definition 1, with the "
            "constant 1 of that definition.",
            "the paper, section 2.3, read literally; its remark allows another constant",
            [
                Part(f"{name}: largest y^α P(|η| > y)", law.tail_constant(), 0, 1)
                for name, law in laws.items()
            ],
        ),
        Claim(
            "The normal distribution is not α-heavy tail for any finite α.",
            "the paper, section 2.3; judged by Definition 1, an upper bound on the tail",
            [
                Part(
                    "largest α of Definition 1 for the standard normal law",
                    largest_alpha(Normal()),
                    0,
                    0,
                )
            ],
        ),
        Claim(
            "For α > 1 the assumption of symmetry can be relaxed to E η = 0.",
            "the paper, section 2.3; for its estimator, whose limit is the median",
            [Part(limit, centred_median, -0.01, 0.01)],
        ),
        Claim(
            "When 0 < ε < 1 the mean of medians converges faster than the truncated empirical mean "
            "and the median of means.",
            "the paper, section 3.3, where it compares bounds; measured under symmetric noise for "
            "two ε",
            [part for order in ORDERS for part in _slower(order)],
        ),
    ]


def _slower(order: float) -> list[Part]:
    """Compare the slope of the mean of medians with those of the two other estimators."""
    slopes = {
        name: np.log(error[:, -1] / error[:, 0]) / math.log(SIZES[-1] / SIZES[0])
        for name, error in errors(order).items()
    }
    ours = slopes.pop("mean of medians")
    return [
        below(f"ε = {order}: slope of the mean of medians minus the {name}", ours, slope)
        for name, slope in slopes.items()
    ]


def _absolute_moment(law: StudentT, order: float) -> float:
    """Return E|η|^order of Student's t, order < df."""
    df = law.df
    log = order / 2 * math.log(df) + math.lgamma((order + 1) / 2) + math.lgamma((df - order) / 2)
    return math.exp(log - math.lgamma(0.5) - math.lgamma(df / 2))
