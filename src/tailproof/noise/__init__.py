"""Symmetric noise laws, from tame to those without a mean.

Each law states its truths (tail index, tail constant, Fisher information, quantiles) and can draw
the median of k samples from its exact law, at the price of one draw instead of k.
"""

from tailproof.noise.base import Noise
from tailproof.noise.cauchy import Cauchy
from tailproof.noise.laplace import Laplace
from tailproof.noise.normal import Normal
from tailproof.noise.stable import Stable
from tailproof.noise.student_t import StudentT
from tailproof.noise.symmetric_pareto import SymmetricPareto

__all__ = ["Cauchy", "Laplace", "Noise", "Normal", "Stable", "StudentT", "SymmetricPareto"]
