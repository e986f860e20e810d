"""Bandit algorithms, one file each; `base` holds the contract.

The names are read from the files, see `tailproof.discovery`; ``__init__.pyi`` says them to type
checkers and editors, and ``make stubs`` writes it.
"""

from tailproof.discovery import declared
from tailproof.policies.base import Policy, State

_POLICIES = declared(__name__, Policy)
globals().update(_POLICIES)

__all__ = ["Policy", "State"]
__all__ += _POLICIES
