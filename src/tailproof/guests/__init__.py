"""Bandits of other libraries behind our contract, and ours behind theirs.

A guest is a policy: it goes behind a filter, into a simulation or a service, and is saved and
restored, with nothing changed in it. Each library is an extra of this one and is imported when one
of its guests is made.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tailproof.guests.base import Guest, History, Made, made, rewards_cut
from tailproof.guests.bayesianbandits import bayesianbandits
from tailproof.guests.coba import coba
from tailproof.guests.contextualbandits import contextualbandits
from tailproof.guests.mabwiser import mabwiser
from tailproof.guests.player import Player
from tailproof.guests.pymab import pymab
from tailproof.guests.river import river
from tailproof.guests.vw import vw

if TYPE_CHECKING:
    from tailproof.guests.in_coba import CobaLearner
    from tailproof.guests.in_gymnasium import BanditEnv, register
    from tailproof.guests.in_river import RiverPolicy

__all__ = [
    "BanditEnv",
    "CobaLearner",
    "Guest",
    "History",
    "Made",
    "Player",
    "RiverPolicy",
    "bayesianbandits",
    "coba",
    "contextualbandits",
    "mabwiser",
    "made",
    "pymab",
    "register",
    "rewards_cut",
    "river",
    "vw",
]

_HOSTS = {
    "BanditEnv": "in_gymnasium",
    "CobaLearner": "in_coba",
    "RiverPolicy": "in_river",
    "register": "in_gymnasium",
}


def __getattr__(name: str) -> Any:
    """Load what is made of classes of another library when it is asked for."""
    if name in _HOSTS:
        return getattr(import_module(f"tailproof.guests.{_HOSTS[name]}"), name)
    raise AttributeError(f"module 'tailproof.guests' has no attribute {name!r}")
