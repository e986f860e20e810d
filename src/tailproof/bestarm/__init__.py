"""Policies that find the best arm, one file each; `base` holds what they share.

`recommend` returns the best arm of each path, −1 while it is not known, and `stopped` whether it
is. The arms are the same at every decision.
"""

from tailproof.bestarm.base import BestArm
from tailproof.bestarm.behind_filter import behind_filter
from tailproof.bestarm.design import complexity, lower_bound, optimal_design
from tailproof.discovery import declared
from tailproof.policies.base import Policy

_POLICIES = declared(__name__, Policy)  # the names are collected by `tailproof.discovery`
globals().update(_POLICIES)

__all__ = [
    "BestArm",
    "behind_filter",
    "complexity",
    "lower_bound",
    "optimal_design",
]
__all__ += _POLICIES


def __dir__() -> list[str]:
    return __all__
