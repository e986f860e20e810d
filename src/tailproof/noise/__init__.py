"""Noise laws, from tame to those without a mean, with atoms and skew among them.

Each law states its truths (tail index, mean, median, quantiles; tail constant and Fisher
information where it is symmetric and has a density) and can draw the median of k samples from its
exact law, at the price of one draw instead of k. `PerArm` and `Changing` put laws together where
the noise depends on the arm or on the number of pulls.
"""

from tailproof.noise.base import Noise
from tailproof.noise.cauchy import Cauchy
from tailproof.noise.degenerate import Degenerate
from tailproof.noise.empirical import Empirical
from tailproof.noise.laplace import Laplace
from tailproof.noise.log_normal import LogNormal
from tailproof.noise.mixture import Mixture
from tailproof.noise.normal import Normal
from tailproof.noise.pareto import Pareto
from tailproof.noise.rounded import Rounded
from tailproof.noise.stable import Stable
from tailproof.noise.student_t import StudentT
from tailproof.noise.symmetric_pareto import SymmetricPareto
from tailproof.noise.two_point import Rademacher, TwoPoint
from tailproof.noise.uniform import Uniform
from tailproof.noise.varying import Changing, PerArm, Varying
from tailproof.noise.zero_inflated import ZeroInflated

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
