# Written by `make stubs` from the files of tailproof.noise: do not edit.

from tailproof.noise.base import Noise
from tailproof.noise.empirical import Empirical
from tailproof.noise.heavy_tailed import Cauchy
from tailproof.noise.heavy_tailed import StudentT
from tailproof.noise.heavy_tailed import SymmetricPareto
from tailproof.noise.light_tailed import Degenerate
from tailproof.noise.light_tailed import Laplace
from tailproof.noise.light_tailed import Normal
from tailproof.noise.light_tailed import Uniform
from tailproof.noise.mixture import Mixture
from tailproof.noise.one_sided import LogNormal
from tailproof.noise.one_sided import Pareto
from tailproof.noise.stable import Stable
from tailproof.noise.transformed import Rounded
from tailproof.noise.transformed import ZeroInflated
from tailproof.noise.two_point import Rademacher
from tailproof.noise.two_point import TwoPoint
from tailproof.noise.varying import Changing
from tailproof.noise.varying import PassedOn
from tailproof.noise.varying import PerArm
from tailproof.noise.varying import Varying

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
