"""Measure the service with several workers: acts per second, and how long an ask takes.

Callers ask and tell over many connections; UCB1, four arms, nothing waits for the disk. Rates and
delays are by the clock, so that they mean something on idle cores only, where callers have cores of
their own (``--callers 4 --connections 32`` on sixteen). It needs the ``dev`` extra.
"""

import argparse
import selectors
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from service import answered, request, send

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from servers import postgres_server, running

SETTINGS = """
[service]
journal = "{journal}"
durable = false
[experiments.{name}]
recipe = "ucb1"
arms = ["a", "b", "c", "d"]
wait = "7d"
silence = "lost"
"""
NUMBERS = count()


@contextmanager
def service(
    folder: Path, journal: str, workers: int, connections: int
) -> Iterator[tuple[str, list[socket.socket]]]:
    """Serve a new experiment; yield its path and connections to it."""
    name = f"shop{next(NUMBERS)}"
    file = folder / f"{name}.toml"
    file.write_text(SETTINGS.format(journal=journal, name=name))
    with running(file, "--workers", str(workers)) as (_, address), ExitStack() as open_:
        while (folder / "stderr").read_text().count("startup complete") < workers:
            time.sleep(0.1)  # or the first one would get all connections
        port = int(address.rpartition(":")[2])
        sockets = [
            open_.enter_context(socket.create_connection(("127.0.0.1", port)))
            for _ in range(connections)
        ]
        send(sockets, request(f"/experiments/{name}/ask", {}), 4 * connections)
        yield f"/experiments/{name}", sockets


def fill(path: str, one: socket.socket, tickets: int) -> None:
    """Leave so many tickets pending."""
    acts = [{"do": "ask"}] * 100
    send([one], request(f"{path}/batch", {"acts": acts}), tickets // len(acts))


def rate(path: str, sockets: list[socket.socket], seconds: float, callers: int) -> float:
    """Let callers share the connections; return acts per second of all."""
    fork = get_context("fork")
    out = fork.SimpleQueue()
    crew = [
        fork.Process(
            target=lambda some: out.put(call(path, some, seconds)), args=(sockets[i::callers],)
        )
        for i in range(callers)
    ]
    for caller in crew:
        caller.start()
    for caller in crew:
        caller.join()
    total: float = sum(out.get() for _ in crew)
    return total


def call(path: str, sockets: list[socket.socket], seconds: float) -> float:
    """Let each connection ask and tell in turn for a while; return acts per second."""
    done, start, ask = 0, time.monotonic(), request(f"{path}/ask", {})
    with selectors.DefaultSelector() as waiting:
        for each in sockets:
            waiting.register(each, selectors.EVENT_READ, bytearray())
            each.sendall(ask)
        while waiting.get_map():
            for one, said in answered(waiting):
                done += 1
                if time.monotonic() > start + seconds:
                    waiting.unregister(one)
                elif "arm" in said:
                    told = {"ticket": said["ticket"], "reward": 1.0}
                    one.sendall(request(f"{path}/tell", told))
                else:
                    one.sendall(ask)
    return done / (time.monotonic() - start)


def delays(path: str, sockets: list[socket.socket], seconds: float, a_second: float) -> list[float]:
    """Send asks at random times, at a given rate; return how long each took, in milliseconds."""
    rng = np.random.default_rng(0)
    ask, free, took = request(f"{path}/ask", {}), list(sockets), []
    asked: dict[socket.socket, float] = {}
    start = time.monotonic()
    times = iter(start + np.cumsum(rng.exponential(1 / a_second, int(seconds * a_second))))
    due: float | None = next(times)
    with selectors.DefaultSelector() as waiting:
        while due is not None or waiting.get_map():
            now = time.monotonic()
            while due is not None and due <= now and free:
                one = free.pop(0)  # in turn, so that none is idle for long
                asked[one] = due
                waiting.register(one, selectors.EVENT_READ, bytearray())
                one.sendall(ask)
                due = next(times, None)
            left = None if due is None or not free else max(0.0, due - time.monotonic())
            for one, _ in answered(waiting, left):
                took.append(1e3 * (time.monotonic() - asked.pop(one)))
                waiting.unregister(one)
                free.append(one)
    return took


def main() -> None:
    """Start services and measure them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--callers", type=int, default=1, help="processes that ask and tell")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, postgres_server() as server:
        folder = Path(name)
        for database, journal in {"SQLite": "journals", "PostgreSQL": server.get_uri()}.items():
            for pending in (0, 10_000):
                rates = []
                for workers in (1, 2, 4):
                    with service(folder, journal, workers, given.connections) as (path, sockets):
                        fill(path, sockets[0], pending)
                        rates.append(rate(path, sockets, given.seconds, given.callers))
                shown = ", ".join(f"{found:.0f}" for found in rates)
                print(
                    f"{database}, {pending} pending: {shown} acts/s with 1, 2, 4 workers; 2 over 1:"
                    f" {rates[1] / rates[0]:.2f}, 4 over 1: {rates[2] / rates[0]:.2f}"
                    " (PostgreSQL: at least 1.6 and 2.5)",
                    flush=True,
                )
            for workers in (1, 4):
                with service(folder, journal, workers, given.connections) as (path, sockets):
                    took = delays(path, sockets, 3 * given.seconds, 300.0)
                p50, p99, p999 = np.quantile(took, [0.5, 0.99, 0.999])
                print(
                    f"{database}, {workers} workers, 300 asks/s: p50 {p50:.1f}, p99 {p99:.1f}, "
                    f"p99.9 {p999:.1f} ms (at most 50)",
                    flush=True,
                )


if __name__ == "__main__":
    main()
