"""Bandits whose rewards may have no mean."""

# ruff: noqa: F401, F403 (type checkers and editors read the imports)

import sys
from importlib import import_module
from typing import TYPE_CHECKING

_MODULES = {
    "bestarm": "bestarm",
    "environments": "environments",
    "features": "features",
    "figures": "figures",
    "gauntlet": "research.gauntlet",
    "guests": "integrations.guests",
    "hosts": "integrations.hosts",
    "live": "live",
    "noise": "noise",
    "recipes": "recipes",
    "routing": "integrations.routing",
    "service": "service",
    "testing": "testing",
}
"""The public modules, and where they are. Each is imported when it is first used."""
_ROOMS = (
    "stats",
    "policies",
    "wrappers",
    "results",
    "simulation",
    "tables",
    "advice",
    "judging",
)
"""The rooms whose public names are also names of the library; rooms with few imports come first."""

if TYPE_CHECKING:
    from tailproof import (
        bestarm,
        environments,
        features,
        figures,
        live,
        noise,
        recipes,
        service,
        testing,
    )
    from tailproof.advice import *
    from tailproof.integrations import guests as guests, hosts as hosts, routing as routing
    from tailproof.judging import *
    from tailproof.policies import *
    from tailproof.research import gauntlet as gauntlet
    from tailproof.results import *
    from tailproof.simulation import *
    from tailproof.stats import *
    from tailproof.tables import *
    from tailproof.wrappers import *

    __all__: list[str]
    __version__: str
else:  # hidden from type checkers, which would accept any name

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            value = version("tailproof")
        elif name == "__all__":
            rooms = [import_module(f"tailproof.{room}") for room in _ROOMS]
            public = {name for room in rooms for name in room.__all__}
            value = sorted({"__version__", *_MODULES, *public})
        elif name in _MODULES:
            value = import_module(f"tailproof.{_MODULES[name]}")
        else:
            value = _from_a_room(name)
        globals()[name] = value
        return value

    def _from_a_room(name: str) -> object:
        for room in () if name.startswith("_") else _ROOMS:
            module = import_module(f"tailproof.{room}")
            if name in module.__all__:
                return getattr(module, name)
        message = f"module 'tailproof' has no attribute {name!r}"
        raise AttributeError(message, name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    names: list[str] = sys.modules[__name__].__all__
    return names
