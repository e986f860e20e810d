"""The problems of the gauntlet about revenue: most visitors buy nothing, some spend wildly.

"money-k4-…" has four arms, and the rest of the name says how they differ: in the share of visitors
who buy, in the size of purchases, or in both, with opposite signs. Problems without "k" have
visitors with features. The aim is `CappedMean(0.99)`; some rewards come 500 or 2000 visitors late.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tailproof.environments.shops import Shop
from tailproof.noise import LogNormal, Noise, Pareto
from tailproof.policies import UCB1, LinRevenueUCB, LinStudentUCB, Policy, RevenueUCB
from tailproof.research.gauntlet.problems import Problem, named
from tailproof.wrappers.capped import Capped

__all__ = ["RECOMMENDED", "REPORT", "TUNING"]

RECOMMENDED: Mapping[str, Policy[Any]] = {
    "RevenueUCB": RevenueUCB(),
    "LinRevenueUCB": LinRevenueUCB(),
    "Capped(UCB1)": Capped(UCB1()),
    "LinStudentUCB": LinStudentUCB(),
}
"""The tools that `docs/choosing.md` recommends for revenue, and two rivals."""


def _shop(
    name: str,
    horizon: int,
    buyers: Sequence[float],
    baskets: Sequence[Noise] | Noise,
    delay: int = 0,
) -> Problem:
    laws = (baskets,) * len(buyers) if isinstance(baskets, Noise) else tuple(baskets)
    return Problem(
        name=f"money-k{len(laws)}-{name}",
        environment=Shop(buyers=buyers, baskets=laws),
        horizon=horizon,
        delay=delay,
        block="money",
    )


def _visitors(
    name: str,
    horizon: int,
    buyers: Sequence[float],
    baskets: Sequence[Noise],
    *,
    features: int,
    size: float,
    seed: int,
    unused: int = 0,
    delay: int = 0,
) -> Problem:
    """Return a shop in which features matter: the weights are normal, of this size."""
    weights = np.random.default_rng(seed).normal(0, size, (len(buyers), features))
    laws = tuple(baskets)
    return Problem(
        name=f"money-{name}",
        environment=Shop(buyers=buyers, baskets=laws, weights=weights, unused=unused),
        horizon=horizon,
        delay=delay,
        block="money",
    )


def _log_normal(sigma: float, *scales: float) -> list[Noise]:
    return [LogNormal(sigma, "none", scale) for scale in scales]


def _spreads(sigmas: Sequence[float], medians: Sequence[float]) -> list[Noise]:
    return [LogNormal(s, "none", x) for s, x in zip(sigmas, medians, strict=True)]


def _pareto(index: float, *scales: float) -> list[Noise]:
    return [Pareto(index, "left", scale) for scale in scales]


def _whole_pareto(index: float, *least: float) -> list[Noise]:
    return [Pareto(index, "none", scale) for scale in least]


def _steps(first: float, last: float, arms: int) -> list[float]:
    return [float(x) for x in np.linspace(first, last, arms)]


_EVEN = (0.03,) * 4  # the shares of buyers
TUNING = named(
    *(
        replace(problem, name=f"tuning-{problem.name}")
        for problem in (
            _shop("conversion-20", 100_000, (0.03, 0.036), _log_normal(1, 20)[0]),
            _shop("basket-30", 100_000, (0.03, 0.03), _log_normal(1.5, 20, 26), 500),
            _shop("opposite", 20_000, (0.06, 0.03), _log_normal(0.5, 20, 30), 2000),
            _shop("pareto-1.5", 100_000, (0.02, 0.022, 0.025, 0.03), _pareto(1.5, 50)[0]),
            _shop("pareto-1.1", 100_000, (0.05,) * 4, _pareto(1.1, 10, 10, 12, 15), 500),
            _shop("few-buyers", 200_000, (0.003, 0.004, 0.0045, 0.006), _log_normal(1, 100)[0]),
            _shop("conversion-30", 200_000, _steps(0.05, 0.065, 10), _log_normal(1.5, 20)[0], 2000),
            _shop("basket-40", 100_000, (0.1,) * 10, _pareto(2.5, *_steps(25, 35, 10))),
            _shop("whales", 100_000, (0.05, 0.065), _log_normal(2.5, 5)[0], 500),
            _shop(
                "rare-best", 50_000, (0.05, 0.05, 0.04, 0.01), _log_normal(1, 20, 22, 25, 250)
            ),
            _shop(
                "opposite", 200_000, _steps(0.06, 0.02, 10), _log_normal(2, *_steps(10, 45, 10))
            ),
            _shop("conversion-5", 200_000, (0.1, 0.105), _pareto(3, 40)[0], 2000),
            _shop("spreads", 10_000, (1, 1), _spreads((1.106, 0.48), (10.2, 13.1))),
            _shop("spreads", 20_000, (1,) * 4, _spreads((0.2, 0.4, 0.8, 1.2), (20, 19, 16, 12))),
            _shop(
                "spreads", 50_000, (1,) * 10, _spreads(_steps(0.1, 1.5, 10), _steps(20, 8, 10))
            ),
            _visitors(
                "few", 20_000, (0.02, 0.025), _log_normal(1, 30, 25), features=2, size=0.6, seed=1
            ),
            _visitors(
                "many", 50_000, _EVEN, _whole_pareto(1.8, 20, 25, 22, 24),
                features=8, size=0.3, seed=2, unused=4, delay=500,
            ),
            _visitors(
                "useless", 50_000, (0.03, 0.036), _log_normal(1.2, 20) * 2,
                features=1, size=1e-9, seed=3, unused=9, delay=2000,
            ),
        )
    )
)  # fmt: skip
"""Problems on which settings may be chosen."""
REPORT = named(
    _shop("conversion-15", 100_000, (0.05, 0.0575), _log_normal(1.4, 25)[0]),
    _shop("basket-25", 100_000, (0.04, 0.04), _pareto(2.8, 30, 37.5), 500),
    _shop("opposite", 50_000, (0.07, 0.04), _log_normal(1, 15, 32), 2000),
    _shop("whales", 100_000, (0.03, 0.04), _log_normal(2.4, 6)[0]),
    _shop("pareto-1.4", 100_000, (0.04, 0.044, 0.05, 0.055), _pareto(1.4, 20)[0], 500),
    _shop("pareto-1.1", 100_000, (0.06,) * 4, _pareto(1.1, 8, 9, 10, 13), 2000),
    _shop("few-buyers", 200_000, (0.003, 0.003, 0.004, 0.0055), _log_normal(1.2, 80)[0]),
    _shop("rare-best", 100_000, (0.04, 0.01, 0.04, 0.03), _log_normal(1.2, 20, 110, 18, 25), 500),
    _shop("conversion-40", 100_000, _steps(0.04, 0.056, 10), _log_normal(1, 30)[0], 2000),
    _shop("basket-50", 100_000, (0.08,) * 10, _pareto(2, *_steps(30, 20, 10))),
    _shop("opposite", 200_000, _steps(0.03, 0.08, 10), _log_normal(1.8, *_steps(50, 12, 10)), 500),
    _shop("spreads", 20_000, (1,) * 4, _spreads((1.3, 0.3, 0.6, 0.9), (11, 18, 16, 14)), 2000),
    _visitors(
        "banners", 20_000, (0.027, 0.030, 0.030, 0.031), _whole_pareto(2.2, 40, 38, 34, 42),
        features=5, size=0.45, seed=11,
    ),
    _visitors(
        "banners-noise", 20_000, (0.027, 0.030, 0.030, 0.031), _whole_pareto(2.2, 40, 38, 34, 42),
        features=5, size=0.45, seed=11, unused=10,
    ),
    _visitors(
        "offers", 50_000, _steps(0.02, 0.03, 10), _log_normal(1.5, *_steps(40, 30, 10)),
        features=3, size=0.5, seed=12, delay=500,
    ),
    _visitors(
        "opposite-tastes", 20_000, (0.05, 0.04), _log_normal(1, 20, 26),
        features=4, size=0.4, seed=13, unused=4, delay=2000,
    ),
)  # fmt: skip
"""Problems on which no setting was chosen."""
