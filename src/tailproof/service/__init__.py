"""The agent over HTTP: the service, its page, and its clients."""

from tailproof.service.client import AsyncClient, Client

__all__ = ["AsyncClient", "Client"]


def __dir__() -> list[str]:
    return __all__
