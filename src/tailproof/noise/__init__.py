"""Noise laws, from light tails to laws without a mean, some with atoms or skew.

Each law knows its tail index, mean, median and quantiles, and, if it is symmetric and has a
density, its tail constant and Fisher information. It can draw the median of k samples directly
from the exact law of that median, at the cost of one or two draws instead of k. `PerArm`,
`Changing` and `PassedOn` combine laws when the noise depends on the arm or on the number of pulls.
"""

from tailproof.noise.base import Noise
from tailproof.noise.empirical import Empirical
from tailproof.noise.heavy_tailed import Cauchy, StudentT, SymmetricPareto
from tailproof.noise.light_tailed import Degenerate, Laplace, Normal, Uniform
from tailproof.noise.mixture import Mixture
from tailproof.noise.one_sided import LogNormal, Pareto
from tailproof.noise.stable import Stable
from tailproof.noise.transformed import Rounded, ZeroInflated
from tailproof.noise.two_point import Rademacher, TwoPoint
from tailproof.noise.varying import Changing, PassedOn, PerArm, Varying

__all__ = [
    "Cauchy",
    "Changing",
    "Degenerate",
    "Empirical",
    "Laplace",
    "LogNormal",
    "Mixture",
    "Noise",
    "Normal",
    "Pareto",
    "PassedOn",
    "PerArm",
    "Rademacher",
    "Rounded",
    "Stable",
    "StudentT",
    "SymmetricPareto",
    "TwoPoint",
    "Uniform",
    "Varying",
    "ZeroInflated",
]
