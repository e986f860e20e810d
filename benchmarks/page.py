"""The page of a service with 10⁶ tickets: the first read, a refresh, and memory.

Run it with ``make bench-live``. When it starts, a service reads its journal once in the background;
after that it answers from memory. Times are CPU times, except for the answers.
"""

import json
import sys
import tempfile
import threading
import time
import tracemalloc
from pathlib import Path
from statistics import median

from timing import one_core, show, start_table

one_core()

import httpx
import numpy as np
import uvicorn
from rich.table import Table

from tailproof import UCB1, Filtered, Median
from tailproof.live import SQLite
from tailproof.live.config import Config, Settings
from tailproof.live.http.app import create_app
from tailproof.live.offers import Offer
from tailproof.live.summary import Summary

ARMS, PULLS, LOSS, LATE = 20, 15, 0.1, 0.05
LOOKS = 30
POLICY = Filtered(UCB1(), repeats=PULLS)


def write(journal: SQLite, first: int, holds: int) -> None:
    """Write closed decisions with Cauchy rewards, some of them late or lost."""
    rng = np.random.default_rng(first)
    ids = range(first, first + holds)
    arms = rng.integers(ARMS, size=holds).tolist()
    rewards = rng.standard_cauchy((holds, PULLS)).tolist()
    lots = rng.random((holds, PULLS)).tolist()
    with journal.transaction():
        for hold, arm, own, lot in zip(ids, arms, rewards, lots, strict=True):
            learned = sum(u > LOSS + LATE for u in lot) >= POLICY.least
            values = (hold, arm, hold, hold, hold, int(learned))
            journal.execute("INSERT INTO hold VALUES (?, 0, ?, NULL, 0, ?, ?, ?, ?)", values)
            for number, (reward, u) in enumerate(zip(own, lot, strict=True)):
                told = (None, None) if u < LOSS else (reward, 1 if u > LOSS + LATE else 2)
                sql = "INSERT INTO ticket VALUES (?, ?, NULL, ?, ?, ?, ?)"
                journal.execute(sql, (hold, number, float(hold), told[0], 1.0, told[1]))


def make(path: Path, tickets: int) -> None:
    """Make a journal with this many tickets."""
    journal = SQLite(path, durable=False)
    names = [f"arm {i}" for i in range(ARMS)]
    with journal.transaction():
        for i, name in enumerate(names):
            journal.execute("INSERT INTO arm VALUES (?, ?, 0)", (i, name))
        offer = (0, Offer.of(names).key, *Offer.of(names).row())
        journal.execute("INSERT INTO offer VALUES (?, ?, ?, ?)", offer)
    holds = -(-tickets // PULLS)
    for first in range(0, holds, 10_000):
        write(journal, first, min(10_000, holds - first))
    journal.close()


def answers(path: Path) -> tuple[float, list[float]]:
    """Return the seconds until a service has read its journal, and those of later answers."""
    settings = Settings(name=path.stem, policy=POLICY, aim=Median())
    config = Config(experiments={path.stem: settings}, journal=str(path.parent), durable=False)
    server = uvicorn.Server(uvicorn.Config(create_app(config), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    took = []
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        start = time.perf_counter()
        while client.get(f"/experiments/{path.stem}/summary").json()["read"] < 1:
            time.sleep(0.1)
        first = time.perf_counter() - start
        for _ in range(LOOKS):
            start = time.perf_counter()
            client.get(f"/experiments/{path.stem}/summary")
            took.append(time.perf_counter() - start)
            time.sleep(0.1)
    server.should_exit = True
    thread.join()
    return first, took


def measure(tickets: int) -> None:
    """Print the cost of the first read and of a refresh."""
    table = start_table(f"The page of {tickets:,} tickets", "what", "median", "worst", "target")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "shop.db")
        make(path, tickets)
        first, took = answers(path)
        table.add_row("until a service has read its journal, s", f"{first:.1f}", "", "")
        row(table, "an answer with the page's JSON, ms", took, "≤ 50")
        summary, steps, done = Summary(SQLite(path, durable=False), POLICY, Median()), [], False
        while not done:
            start = time.process_time()
            done = summary.refresh()
            steps.append(time.process_time() - start)
        row(table, f"the first read in {len(steps)} steps, ms each", steps, "")
        journal, refreshes, texts = SQLite(path, durable=False), [], []
        for _ in range(LOOKS):
            write(journal, summary.ended, 70)
            start = time.process_time()
            summary.refresh()
            refreshes.append(time.process_time() - start)
            start = time.process_time()
            text = json.dumps(summary.to_dict())
            texts.append(time.process_time() - start)
        row(table, "in the background: read 1050 new tickets, ms", refreshes, "")
        row(table, "in the background: make the JSON, ms", texts, "")
        table.add_row("JSON, kB", f"{len(text) / 1000:.0f}", "", "")
        tracemalloc.start()
        again = Summary(SQLite(path, durable=False), POLICY, Median())
        while not again.refresh():
            pass
        now, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    table.add_row("memory of the summary, MB", f"{now / 1e6:.1f}", f"{peak / 1e6:.1f}", "")
    show(table)


def row(table: Table, what: str, took: list[float], target: str) -> None:
    table.add_row(what, f"{1000 * median(took):.1f}", f"{1000 * max(took):.1f}", target)


if __name__ == "__main__":
    measure(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
