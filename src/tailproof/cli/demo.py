"""A demo: the service with simulated visitors."""

import heapq
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from tailproof.live.config import Config, load
from tailproof.service.client import Client
from tailproof.service.server import listening, server

__all__ = ["demo"]

_MEDIANS = {"plain": 0.0, "badge": 0.5, "banner": 1.5}
_FILE = """
[service]
journal = "journals"
durable = false

[experiments.button]
recipe = "auto_filtered(ucb1(bonus=0.7))"
aim = "median"
arms = ["plain", "badge", "banner"]
wait = "4s"
silence = "lost"
control = { arm = "plain", share = 0.1 }
explore = 0.05
"""
_VISITORS_PER_SECOND = 100
_LONGEST_DELAY = 2.0
"""Seconds that a reward takes at most."""
_LOST = 0.2
"""Share of rewards that never come."""
_RECENT = 500


def demo(
    *,
    port: int = 0,
    seconds: float | None = None,
    say: Callable[[str], None],
    show: Callable[[str], None],
) -> None:
    """Serve one experiment to simulated visitors until Ctrl-C, or for `seconds`.

    Its journal is in a temporary folder. `say` gets lines to print, `show` the current status.
    """
    with TemporaryDirectory(prefix="tailproof-") as folder:
        file = Path(folder, "demo.toml")
        file.write_text(_FILE, encoding="utf-8")
        config = load(file).at(None, port)
        with listening(config) as (socket, url):
            service = server(config)
            thread = threading.Thread(target=service.run, kwargs={"sockets": [socket]})
            thread.start()
            say(f"Open {url}/ in a browser (Ctrl-C stops)")
            try:
                say(_visit(url, config, seconds, show))
            finally:
                service.should_exit = True
                thread.join()


def _visit(url: str, config: Config, seconds: float | None, show: Callable[[str], None]) -> str:
    """Simulate visitors whose rewards come late or never; return the last status."""
    rng, start = np.random.default_rng(), time.monotonic()
    due: list[tuple[float, str, float]] = []
    recent: deque[str] = deque(maxlen=_RECENT)
    asks, statuses = 0, Counter[str]()
    with Client(url, timeout=5) as client:
        while True:
            ticket = client.ask("button")
            asks += 1
            recent.append(ticket.arm)
            if rng.random() >= _LOST:
                reward = _MEDIANS[ticket.arm] + float(rng.standard_cauchy())
                at = time.monotonic() + rng.uniform(0, _LONGEST_DELAY)
                heapq.heappush(due, (at, ticket.id, reward))
            while due and due[0][0] <= time.monotonic():
                _, name, reward = heapq.heappop(due)
                statuses[client.tell("button", name, reward)] += 1
            best = max(_MEDIANS, key=_MEDIANS.__getitem__)
            share = recent.count(best) / len(recent)
            text = (
                f"{asks} visitors, {statuses.total()} rewards; {share:.0%} of the last "
                f"{len(recent)} visitors saw {best}, the best arm"
            )
            show(text)
            if seconds is not None and time.monotonic() > start + seconds:
                return text
            time.sleep(max(0.0, start + asks / _VISITORS_PER_SECOND - time.monotonic()))
