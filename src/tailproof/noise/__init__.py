"""Noise laws, from light tails to laws without a mean, some with atoms or skew.

Each law knows its tail index, mean, median and quantiles, and, if it is symmetric and has a
density, its tail constant and Fisher information. It can draw the median of k samples directly
from the exact law of that median, at the cost of one or two draws instead of k. `PerArm`,
`Changing` and `PassedOn` combine laws when the noise depends on the arm or on the number of pulls.
"""

from tailproof.discovery import declared
from tailproof.noise.base import Noise
from tailproof.noise.varying import Varying

_LAWS = declared(__name__, (Noise, Varying))  # the names are collected by `tailproof.discovery`
globals().update(_LAWS)

__all__ = ["Noise", "Varying"]
__all__ += _LAWS


def __dir__() -> list[str]:
    return __all__
