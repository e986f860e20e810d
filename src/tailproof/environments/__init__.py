"""Worlds to play in: linear bandits, K arms, recorded rewards, shops, and how they move."""

from tailproof.environments import motions, traffic
from tailproof.environments.arm_sets import ArmSet, FixedArms, FreshArms, GivenArms, UnitBall
from tailproof.environments.linear import (
    Bandit,
    LinearBandit,
    from_records,
    k_armed,
    near_tie,
    neutral,
    orthant,
    unit_ball,
)

__all__ = [
    "ArmSet",
    "Bandit",
    "FixedArms",
    "FreshArms",
    "GivenArms",
    "LinearBandit",
    "UnitBall",
    "from_records",
    "k_armed",
    "motions",
    "near_tie",
    "neutral",
    "orthant",
    "traffic",
    "unit_ball",
]


def __dir__() -> list[str]:
    return __all__
