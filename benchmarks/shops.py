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
    arms = tuple(ZeroInflated(law, 1 - p) for law, p in zip(laws, buyers, strict=True))
    return Problem(
        name=f"k{len(arms)}-{name}",
        environment=k_armed(PerArm(arms), locations=(0.0,) * len(arms)),
        horizon=horizon,
    )


def _log_normal(sigma: float, *scales: float) -> list[Noise]:
    return [LogNormal(sigma, "left", scale) for scale in scales]


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
)
"""Settings may be chosen on these."""
REPORT: Sequence[Problem] = (
    _shop("conversion-10", 200_000, (0.08, 0.088), _log_normal(1.2, 30)[0]),
    _shop("basket-50", 50_000, (0.025, 0.025), _pareto(2.2, 20, 30)),
    _shop("opposite", 50_000, (0.02, 0.05), _log_normal(1.5, 40, 20)),
    _shop("pareto-1.3", 100_000, (0.03, 0.033, 0.036, 0.045), _pareto(1.3, 15)[0]),
    _shop("few-buyers", 200_000, (0.0045, 0.0035, 0.003, 0.0035), _pareto(2, 200)[0]),
    _shop("both", 50_000, (0.04, 0.045, 0.05, 0.05), _log_normal(1, 20, 20, 22, 24)),
    _shop("basket-30", 200_000, (0.03,) * 10, _log_normal(1.3, *_steps(26, 20, 10))),
    _shop("conversion-50", 50_000, _steps(0.1, 0.15, 10), _pareto(1.8, 10)[0]),
    _shop("rare-best", 100_000, (0.03, 0.006, 0.02, 0.03), _log_normal(1.5, 30, 260, 50, 35)),
    _shop("whales", 100_000, (0.04, 0.045, 0.05, 0.06), _log_normal(2.3, 4)[0]),
    _shop("pareto-1.1", 100_000, (0.07, 0.05), _pareto(1.1, 10)[0]),
    _shop("opposite", 100_000, _steps(0.02, 0.07, 10), _pareto(2.5, *_steps(60, 12, 10))),
)
"""Nothing was chosen on these."""


def conversions(problem: Problem) -> Array:
    """Return the share of visitors who buy, for each arm."""
    return np.array([1 - law.share for law in problem.bandit.noise.laws])  # type: ignore[union-attr]


def baskets(problem: Problem) -> list[Noise]:
    """Return the law of purchases of each arm."""
    return [law.law for law in problem.bandit.noise.laws]  # type: ignore[union-attr]


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
