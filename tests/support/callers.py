"""Calls to an application without a server."""

from typing import Any

from fastapi.testclient import TestClient

__all__ = ["Caller"]


class Caller(TestClient):
    """Calls an application as a program on this machine does."""

    def __init__(self, app: Any) -> None:
        super().__init__(app, base_url="http://localhost")
