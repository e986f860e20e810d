"""Adapters: bandits of other libraries as policies here, and our policies in other libraries.

A guest is a policy: it can be filtered, simulated, served, saved and restored, and the bandit in
it is unchanged. Each library is an optional extra, imported when one of its guests is created.
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
    from tailproof.guests.in_litellm import LiteLLMStrategy
    from tailproof.guests.in_openfeature import BanditFlag, BanditProvider
    from tailproof.guests.in_river import RiverPolicy

__all__ = [
    "BanditEnv",
    "BanditFlag",
    "BanditProvider",
    "CobaLearner",
    "Guest",
    "History",
    "LiteLLMStrategy",
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
    "BanditFlag": "in_openfeature",
    "BanditProvider": "in_openfeature",
    "CobaLearner": "in_coba",
    "LiteLLMStrategy": "in_litellm",
    "RiverPolicy": "in_river",
    "register": "in_gymnasium",
}


def __getattr__(name: str) -> Any:
    """Import the adapters that subclass another library's classes when they are first used."""
    if name in _HOSTS:
        return getattr(import_module(f"tailproof.guests.{_HOSTS[name]}"), name)
    raise AttributeError(f"module 'tailproof.guests' has no attribute {name!r}")
