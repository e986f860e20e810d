"""Calls to an application without a server, and to one that is served in a thread."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from fastapi.testclient import TestClient

from tailproof.live.config import Config
from tailproof.service.server import listening, server

__all__ = ["Caller", "connected", "served"]


class Caller(TestClient):
    """Calls an application as a program on this machine does."""

    def __init__(self, app: Any) -> None:
        super().__init__(app, base_url="http://localhost")


@contextmanager
def served(config: Config) -> Iterator[tuple[str, Any]]:
    """Serve a configuration in a thread, and give its address and the application."""
    with listening(config) as (place, url):
        service = server(config)
        thread = threading.Thread(target=service.run, kwargs={"sockets": [place]})
        thread.start()
        try:
            connected(url)
            yield url, service.config.app
        finally:
            service.should_exit = True
            thread.join()


def connected(url: str) -> None:
    """Wait until a service answers."""
    with httpx.Client(transport=httpx.HTTPTransport(retries=8), trust_env=False) as http:
        assert http.get(f"{url}/health", timeout=60).status_code == 200
