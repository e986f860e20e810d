"""Shops: problems whose rewards are mostly zero and wild otherwise, for `benchmarks/money.py`.

Each arm converts a share of its visitors and sells them baskets of a log-normal law, or of a
Pareto law from zero. Settings are chosen on `TUNING` alone.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tailproof.gauntlet.problems import Problem
from tailproof.noise import LogNormal, Noise, Pareto, PerArm, ZeroInflated
from tailproof.simulation.environments import k_armed
from tailproof.typing import Array

__all__ = ["REPORT", "TUNING", "Problem", "baskets", "capped_means", "conversions"]


def _shop(
    name: str, horizon: int, buyers: Sequence[float], sold: Sequence[Noise] | Noise
) -> Problem:
    laws = [sold] * len(buyers) if isinstance(sold, Noise) else list(sold)
    pairs = zip(laws, buyers, strict=True)
    arms = tuple(law if p == 1 else ZeroInflated(law, 1 - p) for law, p in pairs)
    return Problem(
        name=f"k{len(arms)}-{name}",
        environment=k_armed(PerArm(arms), locations=(0.0,) * len(arms)),
        horizon=horizon,
    )


def _log_normal(sigma: float, *scales: float) -> list[Noise]:
    return [LogNormal(sigma, "left", scale) for scale in scales]


def _spreads(sigmas: Sequence[float], medians: Sequence[float]) -> list[Noise]:
    return [LogNormal(s, "left", x) for s, x in zip(sigmas, medians, strict=True)]


def _pareto(index: float, *scales: float) -> list[Noise]:
    return [Pareto(index, "left", scale) for scale in scales]


def _steps(first: float, last: float, arms: int) -> list[float]:
    return [float(x) for x in np.linspace(first, last, arms)]


TUNING: Sequence[Problem] = (
    _shop("conversion-20", 100_000, (0.03, 0.036), _log_normal(1, 20)[0]),
    _shop("basket-30", 100_000, (0.03, 0.03), _log_normal(1.5, 20, 26)),
    _shop("opposite", 20_000, (0.06, 0.03), _log_normal(0.5, 20, 30)),
    _shop("pareto-1.5", 100_000, (0.02, 0.022, 0.025, 0.03), _pareto(1.5, 50)[0]),
    _shop("pareto-1.1", 100_000, (0.05,) * 4, _pareto(1.1, 10, 10, 12, 15)),
    _shop("few-buyers", 200_000, (0.003, 0.004, 0.0045, 0.006), _log_normal(1, 100)[0]),
    _shop("conversion-30", 200_000, _steps(0.05, 0.065, 10), _log_normal(1.5, 20)[0]),
    _shop("basket-40", 100_000, (0.1,) * 10, _pareto(2.5, *_steps(25, 35, 10))),
    _shop("whales", 100_000, (0.05, 0.065), _log_normal(2.5, 5)[0]),
    _shop("rare-best", 50_000, (0.05, 0.05, 0.04, 0.01), _log_normal(1, 20, 22, 25, 250)),
    _shop("opposite", 200_000, _steps(0.06, 0.02, 10), _log_normal(2, *_steps(10, 45, 10))),
    _shop("conversion-5", 200_000, (0.1, 0.105), _pareto(3, 40)[0]),
    _shop("spreads", 10_000, (1, 1), _spreads((1.106, 0.48), (10.2, 13.1))),
    _shop("spreads", 20_000, (1,) * 4, _spreads((0.2, 0.4, 0.8, 1.2), (20, 19, 16, 12))),
    _shop("spreads", 50_000, (1,) * 10, _spreads(_steps(0.1, 1.5, 10), _steps(20, 8, 10))),
)
"""Settings may be chosen on these."""
REPORT: Sequence[Problem] = (
    _shop("conversion-15", 100_000, (0.05, 0.0575), _log_normal(1.4, 25)[0]),
    _shop("basket-25", 100_000, (0.04, 0.04), _pareto(2.8, 30, 37.5)),
    _shop("opposite", 50_000, (0.07, 0.04), _log_normal(1, 15, 32)),
    _shop("whales", 100_000, (0.03, 0.04), _log_normal(2.4, 6)[0]),
    _shop("pareto-1.4", 100_000, (0.04, 0.044, 0.05, 0.055), _pareto(1.4, 20)[0]),
    _shop("pareto-1.1", 100_000, (0.06,) * 4, _pareto(1.1, 8, 9, 10, 13)),
    _shop("few-buyers", 200_000, (0.003, 0.003, 0.004, 0.0055), _log_normal(1.2, 80)[0]),
    _shop("rare-best", 100_000, (0.04, 0.01, 0.04, 0.03), _log_normal(1.2, 20, 110, 18, 25)),
    _shop("conversion-40", 100_000, _steps(0.04, 0.056, 10), _log_normal(1, 30)[0]),
    _shop("basket-50", 100_000, (0.08,) * 10, _pareto(2, *_steps(30, 20, 10))),
    _shop("opposite", 200_000, _steps(0.03, 0.08, 10), _log_normal(1.8, *_steps(50, 12, 10))),
    _shop("spreads", 20_000, (1,) * 4, _spreads((1.3, 0.3, 0.6, 0.9), (11, 18, 16, 14))),
)
"""Nothing was chosen on these."""


def conversions(problem: Problem) -> Array:
    """Return the share of visitors who buy, for each arm."""
    return np.array(
        [1 - law.share if isinstance(law, ZeroInflated) else 1 for law in _arms(problem)]
    )


def baskets(problem: Problem) -> list[Noise]:
    """Return the law of purchases of each arm."""
    return [law.law if isinstance(law, ZeroInflated) else law for law in _arms(problem)]


def _arms(problem: Problem) -> Sequence[Noise]:
    return problem.bandit.noise.laws  # type: ignore[union-attr]


def capped_means(problem: Problem, share: float = 0.99) -> tuple[float, Array]:
    """Return the cap, the `share`-quantile of evenly shared purchases, and each arm's capped mean.

    The mean of min(X, cap) is P(X > 0) ∫ P(basket > x) dx from 0 to the cap.
    """
    from scipy.integrate import quad
    from scipy.optimize import brentq

    p, laws = conversions(problem), baskets(problem)

    def beyond(x: float) -> float:
        return float(np.dot(p, [1 - law.cdf(x) for law in laws]) - (1 - share) * p.sum())

    cap = float(brentq(beyond, 0, max(float(law.ppf(share)) for law in laws) + 1))

    def capped(law: Noise) -> float:
        ends = np.unique(np.clip([0, *law.ppf(np.linspace(0.05, 0.95, 10)), cap], 0, cap))
        pieces = pairwise(ends.tolist())
        return float(sum(quad(lambda x: 1 - float(law.cdf(x)), *piece)[0] for piece in pieces))

    return cap, p * [capped(law) for law in laws]
