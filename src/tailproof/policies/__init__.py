"""Bandit algorithms, one file each; `base` holds the contract."""

from tailproof.policies.base import Memory, Policy
from tailproof.policies.baselines import FixedArm, Uniform
from tailproof.policies.oful import OFUL
from tailproof.policies.ucb1 import UCB1

__all__ = ["OFUL", "UCB1", "FixedArm", "Memory", "Policy", "Uniform"]
