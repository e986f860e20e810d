"""Measure how long calls of the clients take against servers that fail in every way.

Each kind of fault gets the same number of calls, with the circuit breaker held closed, so that
every call is made. A call that raises, or gets no default, ends the run. The time above the timeout
depends on what else the machine does: the last column is by how much a sleep of 1 ms in another
process was late at the same time, at worst.
"""

import argparse
import asyncio
import logging
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.queues import Queue
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from tailproof.live import Ticket
from tailproof.service import AsyncClient, Client

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from faults import KINDS, faulty


def held(url: str, kind: str) -> str:
    """Return the URL of a kind of fault."""
    return "http://127.0.0.1:9" if kind == "refuse" else f"{url}/{kind}"


def checked(ticket: Ticket) -> None:
    """Stop if a call got anything but the default."""
    if not (ticket.default and ticket.arm == "red"):
        raise SystemExit(f"not the default: {ticket}")


def in_threads(url: str, calls: int, timeout: float, at_once: int) -> Sequence[float]:
    """Return the seconds of each call of a `Client` that threads share."""
    with Client(url, default="red", timeout=timeout) as client:

        def call(_: int) -> float:
            client._failures = 0
            start = time.perf_counter()
            ticket = client.ask("shop", ["red", "blue"])
            seconds = time.perf_counter() - start
            checked(ticket)
            return seconds

        with ThreadPoolExecutor(at_once) as threads:
            return list(threads.map(call, range(calls)))


def in_tasks(url: str, calls: int, timeout: float, at_once: int) -> Sequence[float]:
    """Return the seconds of each call of an `AsyncClient` that tasks share."""

    async def main() -> Sequence[float]:
        async with AsyncClient(url, default="red", timeout=timeout) as client:

            async def some() -> Sequence[float]:
                found = []
                for _ in range(calls // at_once):
                    client._failures = 0
                    start = time.perf_counter()
                    ticket = await client.ask("shop", ["red", "blue"])
                    found.append(time.perf_counter() - start)
                    checked(ticket)
                return found

            parts = await asyncio.gather(*(some() for _ in range(at_once)))
            return [seconds for part in parts for seconds in part]

    return asyncio.run(main())


def serve(url: "Queue[str]", late: "Synchronized[float]") -> None:
    """Be the other side, in a process of its own; keep by how much a sleep of 1 ms was late."""
    with faulty() as (found, _):
        url.put(found)
        while True:
            start = time.perf_counter()
            time.sleep(0.001)
            late.value = max(late.value, 1e3 * (time.perf_counter() - start) - 1)


def main() -> None:
    """Measure both clients."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000, help="of all kinds together")
    parser.add_argument("--timeout", type=float, default=0.2)
    parser.add_argument("--at-once", type=int, default=4)
    given = parser.parse_args()
    logging.getLogger("tailproof").setLevel(logging.ERROR)
    calls = -(-given.calls // len(KINDS) // given.at_once) * given.at_once
    table = Table("fault", "client", "calls", "median ms", "worst above timeout, ms", "late, ms")
    worst = -np.inf
    fresh = multiprocessing.get_context("spawn")
    address, late = fresh.Queue(), fresh.Value("d", 0.0)
    server = fresh.Process(target=serve, args=(address, late), daemon=True)
    server.start()
    url = address.get()
    try:
        for kind in KINDS:
            for name, run in {"sync": in_threads, "async": in_tasks}.items():
                seconds = np.array(run(held(url, kind), calls, given.timeout, given.at_once))
                above = 1e3 * (seconds.max() - given.timeout)
                worst = max(worst, above)
                row = f"{1e3 * np.median(seconds):.1f}", f"{above:.1f}", f"{late.value:.1f}"
                table.add_row(kind, name, str(len(seconds)), *row)
                late.value = 0.0
    finally:
        server.terminate()
    Console(width=100).print(table)
    load = os.getloadavg()[0]
    print(f"worst: {worst:.1f} ms above the timeout (target: at most 20); load {load:.1f}")


if __name__ == "__main__":
    main()
