"""Problems that were not drawn for the tools: each breaks an assumption of a tool.

"k5-modes-…" has noise around several centres in one arm or in all, "fixed-…" and "fresh-…" the same
with features; "k5-shapes" an arm of each shape. "dear-…" are shops whose best arm sells rarely and
dear, or never; "week-…" and "ramp-…" shops whose buyers come and go for all arms alike.
"""

import numpy as np
from scipy.special import ndtri

from tailproof.environments import k_armed, neutral
from tailproof.environments.shops import Shop
from tailproof.noise import (
    Cauchy,
    Empirical,
    Laplace,
    LogNormal,
    Mixture,
    Noise,
    Normal,
    PerArm,
    StudentT,
    Varying,
)
from tailproof.research.gauntlet.problems import QUARTERS, Problem, named

__all__ = ["REPORT", "TUNING", "clusters", "modes"]

_WEEK = (0.6, 0.6, 0.6, 0.6, 0.6, 2.0, 2.0)
"""Factors of the share of buyers on weekdays and on the two days of a weekend."""
_RAMP = tuple(float(x) for x in np.linspace(0.5, 1.5, 20))
"""A share of buyers that grows from half to one and a half times in twenty steps."""
_QUANTILES = ndtri((np.arange(200) + 0.5) / 200)
"""200 equally likely values in place of the normal law."""


def modes(*centres: float, spread: float, outliers: float = 0.0) -> Noise:
    """Return noise in normal clusters at ± these centres; `outliers` makes a tenth Cauchy.

    >>> drawn = modes(3, spread=0.2).sample(np.random.default_rng(0), (1000,))
    >>> float(np.abs(drawn).min()) > 2
    True
    """
    at = np.array([sign * centre for centre in centres for sign in ((-1, 1) if centre else (1,))])
    law = Empirical((at[:, None] + spread * _QUANTILES).ravel())
    return Mixture((law, Cauchy(outliers)), (0.9, 0.1)) if outliers else law


def clusters(*shares: float, spread: float = 0.1) -> PerArm:
    """Return the noise of rewards near 1 with these probabilities and near 0 otherwise."""
    wiggle = spread * _QUANTILES[::4]
    laws = []
    for share in shares:
        ones = round(100 * share)
        values = np.concatenate([np.tile(wiggle, 100 - ones), np.tile(wiggle + 1, ones)])
        laws.append(Empirical(values - values.mean()))
    return PerArm(tuple(laws))


def _arms(
    name: str,
    noise: Noise | Varying,
    locations: tuple[float, ...] = QUARTERS,
    horizon: int = 10_000,
) -> Problem:
    bandit = k_armed(noise, locations=locations)
    return Problem(name=f"k{len(locations)}-{name}", environment=bandit, horizon=horizon)


def _linear(name: str, noise: Noise, *, arms: int = 8, dim: int = 4) -> Problem:
    bandit = neutral(noise, fresh=name.startswith("fresh"), arms=arms, dim=dim)
    return Problem(name=name, environment=bandit, horizon=5000)


def _shop(
    name: str,
    horizon: int,
    buyers: tuple[float, ...],
    prices: tuple[float, ...],
    *,
    spread: float = 0.3,
    cycle: tuple[float, ...] = (),
    phase: int = 1000,
    delay: int = 0,
) -> Problem:
    baskets = tuple(LogNormal(spread, "none", price) for price in prices)
    shop = Shop(buyers=buyers, baskets=baskets, cycle=cycle, phase=phase)
    return Problem(name=name, environment=shop, horizon=horizon, delay=delay, block="money")


_THREE = (40.0, 30.0, 50.0)  # mean baskets
REPORT = named(
    _arms("modes-best", PerArm((Cauchy(0.5),) * 4 + (modes(1, spread=0.3, outliers=3),))),
    _arms("modes-worst", PerArm((modes(3, spread=0.2, outliers=10),) + (Cauchy(),) * 4)),
    _arms("modes-all", modes(3, spread=0.2, outliers=10)),
    _arms("three-modes", modes(0, 2.5, spread=0.3, outliers=5)),
    _arms("clusters", clusters(0.3, 0.4, 0.5, 0.6, 0.7), (0.3, 0.4, 0.5, 0.6, 0.7)),
    _arms("close-clusters", clusters(0.45, 0.5, 0.55), (0.45, 0.5, 0.55)),
    _arms(
        "shapes",
        PerArm(
            (Normal(), Cauchy(), Laplace(0.5), LogNormal(1, "median"), StudentT(0.8, scale=0.5))
        ),
    ),
    _linear("fixed-modes", modes(1.5, spread=0.3, outliers=4)),
    _linear("fresh-modes", modes(1.5, spread=0.3, outliers=4)),
    _shop("dear-twice", 30_000, (0.06, 0.003), (14, 520)),
    _shop("dear-three", 40_000, (0.07, 0.05, 0.002), (12, 18, 1300)),
    _shop("dear-late", 40_000, (0.05, 0.004), (10, 380), delay=1000),
    _shop("dear-four", 60_000, (0.03, 0.04, 0.035, 0.003), (20, 16, 18, 700)),
    _shop("never-sells", 40_000, (0.06, 0.05, 1e-9), (14, 15, 500)),
    _shop("week-shop", 56_000, (0.05, 0.04, 0.03), _THREE, spread=0.8, cycle=_WEEK),
    _shop("ramp-shop", 60_000, (0.05, 0.04, 0.03), _THREE, spread=0.8, cycle=_RAMP, phase=3000),
)
"""Problems on which no setting was chosen."""
TUNING = named(
    _arms("tuning-modes", PerArm((Cauchy(),) * 4 + (modes(3, spread=0.2, outliers=10),))),
    _arms("tuning-modes-all", modes(3, spread=0.2, outliers=10), (0, 0.4, 0.7, 1)),
    _linear("fixed-tuning-modes", modes(1, spread=0.3, outliers=3)),
    _linear("fresh-tuning-modes", modes(1, spread=0.3, outliers=3)),
    _shop("tuning-dear", 20_000, (0.05, 0.003), (9.99, 499), spread=1e-3),
    _shop("tuning-dear-twice", 20_000, (0.05, 0.005), (9.99, 199), spread=1e-3),
    _shop("tuning-never-sells", 20_000, (0.05, 1e-9), (9.99, 499), spread=1e-3),
    _shop("tuning-week", 56_000, (0.05, 0.04, 0.03), (20, 20, 20), spread=0.8, cycle=_WEEK),
)
"""Problems on which settings may be chosen."""
