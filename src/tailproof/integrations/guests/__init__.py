"""Bandits of other libraries as policies.

A guest can be filtered, simulated, served, saved and restored, and the bandit in it is unchanged.
Each library is an optional extra, imported when one of its guests is created.
"""

from tailproof.integrations.guests.base import Guest, GuestState, Made, made, rewards_cut
from tailproof.integrations.guests.bayesianbandits import bayesianbandits
from tailproof.integrations.guests.coba import coba
from tailproof.integrations.guests.contextualbandits import contextualbandits
from tailproof.integrations.guests.mabwiser import mabwiser
from tailproof.integrations.guests.pymab import pymab
from tailproof.integrations.guests.river import river
from tailproof.integrations.guests.vw import vw

__all__ = [
    "Guest",
    "GuestState",
    "Made",
    "bayesianbandits",
    "coba",
    "contextualbandits",
    "mabwiser",
    "made",
    "pymab",
    "rewards_cut",
    "river",
    "vw",
]


def __dir__() -> list[str]:
    return __all__
