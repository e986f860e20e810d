"""Serving: processes that listen, stop gracefully, and count together."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import uvicorn
from fastapi import FastAPI

from tailproof.checks import whole
from tailproof.live.config import Config, load
from tailproof.live.experiments import open_all
from tailproof.live.gate import LOGGING, check_token
from tailproof.live.metrics import SHARED
from tailproof.live.service import create_app

__all__ = ["TOKEN", "from_environment", "serve"]

TOKEN = "TAILPROOF_TOKEN"
"""The environment variable that has the token."""
_FILE = "TAILPROOF_CONFIG"
"""The environment variable by which workers know their file."""
_GRACE = 30
"""Seconds that requests in flight may take when the service is told to stop."""


def serve(
    path: Path,
    *,
    address: str | None = None,
    port: int | None = None,
    workers: int = 1,
    say: Callable[[str, Config], None] = lambda url, config: None,
) -> None:
    """Serve the experiments of a file until told to stop.

    Everything that can be refused is refused before anything listens. `say` is told the address.
    """
    whole("workers", workers)
    config = load(path).at(address, port)
    check_token(config.address, os.environ.get(TOKEN))
    for experiment in open_all(config).values():
        experiment.agent.close()
    ipv6 = ":" in config.address
    family = socket.AF_INET6 if ipv6 else socket.AF_INET
    with socket.create_server((config.address, config.port), family=family) as free:
        port = free.getsockname()[1]
    host = f"[{config.address}]" if ipv6 else config.address
    say(f"http://{host}:{port}", config)
    os.environ[_FILE] = str(path.resolve())
    with TemporaryDirectory(prefix="tailproof-") as counts:
        if workers > 1:
            os.environ[SHARED] = counts
        uvicorn.run(
            "tailproof.live.serving:from_environment",
            factory=True,
            host=config.address,
            port=port,
            workers=workers,
            log_config=LOGGING,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE,
        )


def from_environment() -> FastAPI:
    """Return the service of the file that the environment names, as `serve` has checked it."""
    return create_app(load(os.environ[_FILE]), os.environ.get(TOKEN))
