"""Running the service: one process or several workers on one address, stopped gracefully."""

import gc
import json
import logging
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from logging.config import dictConfig
from multiprocessing.context import SpawnProcess
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import uvicorn

from tailproof.checks import whole
from tailproof.live.config import Config, load
from tailproof.service.app import create_app
from tailproof.service.connections import LimitedConnection
from tailproof.service.experiments import open_all
from tailproof.service.metrics import SHARED
from tailproof.service.middleware import check_token

__all__ = ["LOGGING", "TOKEN", "listening", "serve", "server"]

TOKEN = "TAILPROOF_TOKEN"
"""The environment variable with the token."""
_GRACE = 30
"""Seconds that requests in flight get to finish at shutdown; a log may take most of them."""
_ACCEPTED, _BACKLOG = 1, 2048
"""Connections that a worker accepts at once, so that others get their share, and that may wait."""
_POLL = 0.2
"""Seconds between checks that the workers are alive."""
_LOG = logging.getLogger("tailproof.live")


class JsonLines(logging.Formatter):
    """Formats each record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {"time": f"{at}.{int(record.msecs):03}Z", "level": record.levelname}
        line |= record.msg if isinstance(record.msg, dict) else {"message": record.getMessage()}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"lines": {"()": "tailproof.service.server.JsonLines"}},
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "lines",
            "stream": "ext://sys.stderr",
        }
    },
    "loggers": {
        name: {"handlers": ["stderr"], "level": "INFO", "propagate": False}
        for name in ("uvicorn", "tailproof")
    },
}
"""Structured logs on standard error, for `logging.config.dictConfig`."""


def serve(
    path: Path,
    *,
    address: str | None = None,
    port: int | None = None,
    workers: int = 1,
    say: Callable[[str, list[str]], None],
) -> None:
    """Serve the experiments of a configuration file until told to stop.

    Mistakes in it are raised before anything listens. `say` is called with the URL and the names
    of the experiments.
    """
    whole("workers", workers)
    config = load(path).at(address, port)
    check_token(config.address, os.environ.get(TOKEN))
    for experiment in open_all(config).values():
        experiment.agent.close()
    with listening(config) as (place, url):
        say(url, list(config.experiments))
        if workers == 1:
            _work(config, place)
        else:
            _supervise(config, place, workers)


@contextmanager
def listening(config: Config) -> Iterator[tuple[socket.socket, str]]:
    """Yield a listening socket and its URL; raises ``OSError`` if the port is in use."""
    ipv6 = ":" in config.address
    family = socket.AF_INET6 if ipv6 else socket.AF_INET
    try:
        place = socket.create_server((config.address, config.port), family=family)
    except OSError as error:
        raise OSError(f"cannot listen on {config.address}, port {config.port}: {error}") from None
    with place:
        # A response is written in two parts: without this, the second waits for the client's ACK.
        place.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        host = f"[{config.address}]" if ipv6 else config.address
        yield place, f"http://{host}:{place.getsockname()[1]}"


def server(config: Config) -> uvicorn.Server:
    """Open the experiments and return a server; start it with ``run(sockets=[…])``."""
    app = create_app(config, os.environ.get(TOKEN))
    settings = uvicorn.Config(
        app,
        http=LimitedConnection,
        ws="none",
        backlog=_ACCEPTED,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
    )
    return _Server(settings)


class _Server(uvicorn.Server):
    """A server with a longer queue than asyncio would accept from at once."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        gc.collect()
        gc.freeze()  # a full collection would visit all modules, for a tenth of a second
        for listener in sockets or []:
            listener.listen(_BACKLOG)


def _work(config: Config, place: socket.socket) -> None:
    dictConfig(LOGGING)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    server(config).run(sockets=[place])


def _end_with(parent: BaseProcess) -> None:
    """Stop this worker if its supervisor is killed, so that another can take the address."""
    parent.join()
    _LOG.error("the supervisor is gone; stopping")
    os.kill(os.getpid(), signal.SIGTERM)


def _supervise(config: Config, place: socket.socket, workers: int) -> None:
    """Keep `workers` processes running until told to stop; replace processes that die."""
    dictConfig(LOGGING)
    stop, fresh = threading.Event(), multiprocessing.get_context("spawn")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with TemporaryDirectory(prefix="tailproof-") as counts:
        os.environ[SHARED] = counts
        crew: list[SpawnProcess] = []
        while not stop.wait(_POLL):
            for worker in [process for process in crew if not process.is_alive()]:
                _LOG.error(
                    "worker %s exited with code %s; restarting it", worker.pid, worker.exitcode
                )
                crew.remove(worker)
            while len(crew) < workers:
                crew.append(fresh.Process(target=_work, args=(config, place)))
                crew[-1].start()
        for worker in crew:
            worker.terminate()
        for worker in crew:
            worker.join()
