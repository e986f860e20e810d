"""Policies around policies: each is a policy that changes some verbs and forwards the others."""

from tailproof.discovery import declared
from tailproof.wrappers import compositions
from tailproof.wrappers.base import Wrapped, Wrapper

_WRAPPERS = declared(__name__, Wrapper)  # `tailproof.discovery` says where the names are from
globals().update(_WRAPPERS)

__all__ = ["Wrapped", "Wrapper", "compositions"]
__all__ += _WRAPPERS
