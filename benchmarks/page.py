"""The page of a service with 10⁶ tickets: the first read, a refresh, and memory.

Run it with ``make bench-live``. Requests for the page read the journal on, for a second each;
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

from tailproof import UCB1, CappedMean, Filtered, Median
from tailproof.live import Recipe, SQLite
from tailproof.live.config import Config, Settings
from tailproof.live.journal import Request
from tailproof.live.offer import Offer
from tailproof.service.app import create_app
from tailproof.service.page.summary import Summary
from tailproof.stats.aims import Aim

ARMS, PULLS, LOSS, LATE = 20, 15, 0.1, 0.05
LOOKS = 30
AIM: Aim = CappedMean(0.99) if "mean" in sys.argv else Median()
SHARE = 0.02
POLICY = Filtered(UCB1(), repeats=PULLS)
NAMES = [f"arm {i}" for i in range(ARMS)]


RECIPE = Recipe(policy=POLICY, wait=1.5, control=(NAMES[0], SHARE), explore=0.05, seed=0)


def write(journal: SQLite, first: int, requests: int) -> None:
    """Write requests with Cauchy rewards, some of them late or lost."""
    rng, offer = np.random.default_rng(first), Offer.of(NAMES)
    shares = f"[{','.join([str(1 / ARMS)] * ARMS)}]"
    arms, rewards = rng.integers(ARMS, size=requests), rng.standard_cauchy(requests)
    lots, rows, events, outcomes = rng.random(requests), [], [], []
    for i, arm, reward, lot in zip(
        range(first, first + requests), arms.tolist(), rewards.tolist(), lots.tolist(), strict=True
    ):
        group = "control" if arm == 0 and lot < SHARE else None
        about = (i, None, None, float(i), i + 1.5, 0)
        rows.append((*about, 0, arm, 1 / ARMS, shares, group, 0, None, i))
        late = lot < LOSS + LATE
        if lot >= LOSS:
            events.append((i, "", reward, i + 1.0 + late, int(late)))
        request = Request(*about, arm, 1 / ARMS, group, 0)
        outcomes.append((request, None if late else reward, "lost" if late else "told"))
    with journal.transaction():
        if not first:
            journal.add_offer(0, offer.key, *offer.row())
        journal.add_requests(rows)
        journal.add_events(events)
        journal.add_outcomes(outcomes, float(first + requests + 3), first)


def make(path: Path, requests: int) -> None:
    """Make a journal with this many requests."""
    journal = SQLite(path, durable=False)
    with journal.transaction():
        journal.set_meta(version="0", arms=str(ARMS), dim=str(ARMS), features="no")
        journal.add_recipe(RECIPE.text, RECIPE.rules, 0.0)
        journal.add_arms({name: i for i, name in enumerate(NAMES)})
    for first in range(0, requests, 100_000):
        write(journal, first, min(100_000, requests - first))
    journal.close()


def answers(path: Path) -> tuple[float, list[float]]:
    """Return the seconds until a service has read its journal, and those of later answers."""
    settings = Settings(name=path.stem, recipe=RECIPE, aim=AIM)
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
        summary, steps, done = Summary(SQLite(path, durable=False), AIM), [], False
        while not done:
            start = time.process_time()
            done = summary.refresh()
            steps.append(time.process_time() - start)
        row(table, f"the first read in {len(steps)} steps, ms each", steps, "")
        journal, refreshes, texts = SQLite(path, durable=False), [], []
        for _ in range(LOOKS):
            write(journal, summary.counts.ended, 1050)
            start = time.process_time()
            summary.refresh()
            refreshes.append(time.process_time() - start)
            start = time.process_time()
            text = json.dumps(summary.to_dict())
            texts.append(time.process_time() - start)
        row(table, "read 1050 new tickets, ms", refreshes, "")
        row(table, "make the JSON, ms", texts, "")
        table.add_row("JSON, kB", f"{len(text) / 1000:.0f}", "", "")
        tracemalloc.start()
        again = Summary(SQLite(path, durable=False), AIM)
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
