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

from tailproof import UCB1, CappedMean, Filtered, Median
from tailproof.live import SQLite
from tailproof.live.config import Config, Settings
from tailproof.live.journal import Counts, Decision, DecisionRow
from tailproof.live.offers import Offer
from tailproof.service.app import create_app
from tailproof.service.page.summary import Summary
from tailproof.stats.aims import Aim

ARMS, PULLS, LOSS, LATE = 20, 15, 0.1, 0.05
LOOKS = 30
AIM: Aim = CappedMean(0.99) if "mean" in sys.argv else Median()
SHARE = 0.02
POLICY = Filtered(UCB1(), repeats=PULLS)
NAMES = [f"arm {i}" for i in range(ARMS)]


def write(journal: SQLite, first: int, holds: int) -> None:
    """Write ended decisions with Cauchy rewards, some of them late or lost."""
    rng = np.random.default_rng(first)
    ids = range(first, first + holds)
    offer, shares = Offer.of(NAMES), np.full(ARMS, 1 / ARMS, dtype="<f4").tobytes()
    arms = rng.integers(ARMS, size=holds).tolist()
    rewards = rng.standard_cauchy((holds, PULLS))
    lots = rng.random((holds, PULLS))
    with journal.transaction():
        journal.look(offers=[offer.key])  # so that it is stored once
        for hold, arm, own, lot in zip(ids, arms, rewards, lots, strict=True):
            decision = Decision(hold, offer, offer.names.index(NAMES[arm]), 1 / ARMS)
            group = "control" if arm == 0 and lot[0] < SHARE else None
            row = DecisionRow(decision, shares, 0.05, group, 0, 0, hold, hold, float(hold))
            journal.add_decisions([(row, arm)])
            at = [hold + (1.0 if u > LOSS + LATE else 2.0) for u in lot]
            told = [i for i, u in enumerate(lot) if u >= LOSS]
            journal.add_tickets([(hold, i, None, None, hold, hold + 1.5) for i in range(PULLS)])
            journal.add_events([(hold, i, "", float(own[i]), at[i]) for i in told])
        values = [
            own[lot > LOSS + LATE].astype("<f8") for own, lot in zip(rewards, lots, strict=True)
        ]
        learned = [x.tobytes() if len(x) >= POLICY.least else None for x in values]
        rows = [(hold, packed, PULLS) for hold, packed in zip(ids, learned, strict=True)]
        journal.add_outcomes(rows, float(first + holds + 3))
        journal.count(0, {arm: Counts(asked=PULLS * arms.count(arm)) for arm in set(arms)})


def make(path: Path, tickets: int) -> None:
    """Make a journal with this many tickets."""
    journal = SQLite(path, durable=False)
    with journal.transaction():
        journal.set_meta(seed="0", wait="1.5", silence="lost", rewards="first", version="0")
        journal.set_meta(arms=str(ARMS), dim=str(ARMS), features="no")
        journal.set_meta(control=f'{{"arm": "{NAMES[0]}", "share": {SHARE}}}')
        journal.add_recipe(repr(POLICY), 0, 0.0)
        journal.add_arms({name: i for i, name in enumerate(NAMES)})
    holds = -(-tickets // PULLS)
    for first in range(0, holds, 10_000):
        write(journal, first, min(10_000, holds - first))
    journal.close()


def answers(path: Path) -> tuple[float, list[float]]:
    """Return the seconds until a service has read its journal, and those of later answers."""
    settings = Settings(name=path.stem, policy=POLICY, aim=AIM, control=(NAMES[0], SHARE))
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
        summary, steps, done = Summary(SQLite(path, durable=False), POLICY, AIM), [], False
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
        again = Summary(SQLite(path, durable=False), POLICY, AIM)
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
