"""Laws with jumps, atoms or skew, for the tests of laws."""

import numpy as np

from tailproof.noise import (
    Cauchy,
    Degenerate,
    Empirical,
    Laplace,
    LogNormal,
    Mixture,
    Noise,
    Normal,
    Pareto,
    Rademacher,
    Rounded,
    StudentT,
    TwoPoint,
    Uniform,
    ZeroInflated,
)

ROUGH: list[Noise] = [
    Uniform(3),
    Degenerate(),
    Rademacher(0.5),
    TwoPoint(9, -1, 0.1),
    TwoPoint(0.7, -0.3, 0.3, scale=2),
    Rounded(Cauchy(), 0.1),
    Rounded(Normal(), 1.0, scale=0.3),
    Rounded(Pareto(1.5), 1.0),
    ZeroInflated(Cauchy(), 0.5),
    Empirical(np.array([-1.0, 0.0, 0.0, 5.0])),
    ZeroInflated(LogNormal(1, "left"), 0.9, scale=7),
    Mixture((Normal(), Normal(100)), (0.95, 0.05)),
    Mixture((Normal(), StudentT(0.5, scale=4), Cauchy()), (0.5, 0.2, 0.3), scale=2),
    Mixture((Degenerate(), TwoPoint(1, -1, 0.5), Uniform()), (0.2, 0.2, 0.6)),
    Mixture((Laplace(), TwoPoint(101, 100, 0.5)), (0.95, 0.05)),
    Pareto(0.7),
    Pareto(0.7, "left"),
    Pareto(1.5, "mean", scale=3),
    Pareto(3, "median"),
    LogNormal(1),
    LogNormal(0.3, "mean", scale=2),
    LogNormal(2, "left"),
    Empirical(np.array([-1.0, 0.0, 0.0, 3.0])),
    Empirical(Cauchy().sample(np.random.default_rng(0), (200,)), scale=2),
]
