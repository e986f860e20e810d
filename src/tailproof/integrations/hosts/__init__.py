"""Our policies in other libraries. Each host is imported when it is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tailproof.integrations.hosts.player import Player

if TYPE_CHECKING:
    from tailproof.integrations.hosts.coba import CobaLearner
    from tailproof.integrations.hosts.gymnasium import BanditEnv, register
    from tailproof.integrations.hosts.litellm import LiteLLMStrategy
    from tailproof.integrations.hosts.openfeature import BanditFlag, BanditProvider
    from tailproof.integrations.hosts.river import RiverPolicy

__all__ = [
    "BanditEnv",
    "BanditFlag",
    "BanditProvider",
    "CobaLearner",
    "LiteLLMStrategy",
    "Player",
    "RiverPolicy",
    "register",
]

_HOSTS = {
    "BanditEnv": "gymnasium",
    "BanditFlag": "openfeature",
    "BanditProvider": "openfeature",
    "CobaLearner": "coba",
    "LiteLLMStrategy": "litellm",
    "RiverPolicy": "river",
    "register": "gymnasium",
}


def __getattr__(name: str) -> Any:
    """Import the adapters that subclass another library's classes when they are first used."""
    if name in _HOSTS:
        return getattr(import_module(f"{__name__}.{_HOSTS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
