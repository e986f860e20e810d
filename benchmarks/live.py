"""What live use costs, and what delayed and lost rewards cost.

Run it with ``make bench-live``; ``--only cost,users`` takes a part. CPU time, ratios and counts are
printed, not wall time. Killing and PostgreSQL need the ``dev`` extra.
"""

from timing import one_core

one_core()

import argparse
import gc
import heapq
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "tests" / "live"))
from killing import kill
from servers import postgres_server

from tailproof import OFUL, Filtered, LinStudentUCB, Median, Policy
from tailproof.live import Agent, SQLite
from tailproof.live.fold import blank

ARMS, DIM = 20, 10
OFUL_15 = Filtered(OFUL(noise_scale=0.45, bonus=0.4), repeats=15, estimator=Median())
HORIZON, USERS_SEED = 10_000, 77
BARS = {(0, 0.0): 0.16, (30, 0.3): 0.22, (300, 0.3): 0.40, (30, 0.7): 0.32}


def offer(rng: np.random.Generator) -> dict[str, Any]:
    """Return arms with features on the unit sphere."""
    x = rng.normal(size=(ARMS, DIM))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return {f"arm {i}": row for i, row in enumerate(x)}


def cost(folder: Path) -> None:
    """Print CPU time and bytes of a cycle, the speed of a replay and the time to open again."""
    rng, path = np.random.default_rng(0), folder / "cost.db"
    arms, rewards, cycles = offer(rng), rng.standard_cauchy(30_000), 30_000
    agent = Agent(OFUL_15, SQLite(path, durable=False))
    start = time.process_time()
    for n in range(cycles):
        agent.tell(agent.ask(arms).id, rewards[n])
    spent = time.process_time() - start
    print(f"ask + tell: {spent / cycles * 1e6:.0f} µs CPU (bar 150); K = 20, d = 10, filter of 15")
    agent.journal.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    print(
        f"journal: {path.stat().st_size / cycles:.0f} bytes a cycle (bar 150), own ids of tickets"
    )
    lessons = agent.journal.counts()[1]
    start = time.process_time()
    mind = blank(OFUL_15, agent.journal)
    for closing in agent.journal.closings(0, lessons):
        mind.fold(closing)
    spent = time.process_time() - start
    print(f"replay: {lessons / spent:.0f} lessons a second of CPU (bar 4000)")
    start = time.process_time()
    Agent(OFUL_15, path).close()
    print(f"open again: {(time.process_time() - start) * 1e3:.0f} ms CPU (bar 100)")
    agent.close()


def named(folder: Path) -> None:
    """Print the bytes of a cycle whose tickets have ids of 36 letters."""
    rng, path, cycles = np.random.default_rng(0), folder / "named.db", 10_000
    arms = offer(rng)
    agent = Agent(OFUL_15, SQLite(path, durable=False))
    for n in range(cycles):
        agent.tell(agent.ask(arms, f"{n:036d}").id, 1.0)
    agent.journal.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    print(f"journal: {path.stat().st_size / cycles:.0f} bytes a cycle, ids of 36 letters")
    agent.close()


def together(folder: Path) -> None:
    """Print how many acts share a commit when threads come together."""
    for threads in (8, 32):
        share = acts_a_commit(folder / f"threads-{threads}.db", threads)
        bar = " (bar 4)" if threads == 8 else ""
        print(f"{threads} threads, FULL: {share:.1f} acts a commit{bar}")


def acts_a_commit(place: str | Path, threads: int) -> float:
    """Return how many acts share a commit."""
    arms = offer(np.random.default_rng(0))
    with Agent(OFUL_15, place) as agent:

        def work() -> None:
            for _ in range(50):
                agent.tell(agent.ask(arms).id, 1.0)

        crew = [threading.Thread(target=work) for _ in range(threads)]
        for one in crew:
            one.start()
        for one in crew:
            one.join()
        return 100 * threads / agent.commits


def postgres(_: Path) -> None:
    """Print what a cycle costs this side of PostgreSQL, and how many acts share a commit."""
    arms, cycles = offer(np.random.default_rng(0)), 2000
    with postgres_server() as server:
        with Agent(OFUL_15, f"{server.get_uri()}#cost") as agent:
            start = time.process_time()
            for n in range(cycles):
                agent.tell(agent.ask(arms).id, n)
            spent = time.process_time() - start
        share = acts_a_commit(f"{server.get_uri()}#threads", 8)
    print(f"PostgreSQL, ask + tell: {spent / cycles * 1e6:.0f} µs CPU of the agent")
    print(f"PostgreSQL, 8 threads: {share:.1f} acts a commit")


def kills(folder: Path) -> None:
    """Print what is left of agents killed at random moments."""
    numbers = count()

    def show(name: str, new_place: Callable[[], str], journals: int, lives: int) -> None:
        tally = kill(new_place, journals, lives, seed=1)
        print(
            f"{name}: {tally.kills} processes killed, {tally.acts} acts answered,"
            f" {len(tally.lost)} lost, {len(tally.broken)} errors,"
            f" {len(tally.differing)} states differ (bars 0)"
        )
        middle, most = np.median(tally.cpu) * 1e3, max(tally.cpu) * 1e3
        print(f"{name}, open again: {middle:.0f} ms CPU, at most {most:.0f} (bar 100)", flush=True)

    show("SQLite", lambda: f"{folder}/{next(numbers)}.db", 34, 20)
    with postgres_server() as server:
        show("PostgreSQL", lambda: f"{server.get_uri()}#{next(numbers)}", 4, 17)


def memory(folder: Path) -> None:
    """Print the memory of an agent as cycles go by."""
    arms = offer(np.random.default_rng(0))
    agent = Agent(OFUL_15, SQLite(folder / "memory.db", durable=False))
    tracemalloc.start()
    for tens in range(3):
        for _ in range(20_000):
            agent.tell(agent.ask(arms).id, 1.0)
        gc.collect()
        print(f"memory after {20_000 * (tens + 1)} cycles: {tracemalloc.get_traced_memory()[0]} B")
    tracemalloc.stop()
    agent.close()


def regret(policy: Policy[Any], delay: float, loss: float, seed: int, law: str) -> float:
    """Return the regret of simulated users over that of uniform choices.

    One request a second; a reward is lost with probability `loss`, or comes after `delay` seconds,
    or after an exponential time with this mean.
    """
    rng = np.random.default_rng([USERS_SEED, seed])
    arms = offer(rng)
    theta = rng.normal(size=DIM)
    value = np.array(list(arms.values())) @ (theta / np.linalg.norm(theta))
    now, coming, lost = 0.0, list[tuple[float, str, float]](), 0.0
    agent = Agent(policy, ":memory:", wait=3 * delay + 1, clock=lambda: now, seed=seed)
    names = {name: i for i, name in enumerate(arms)}
    for _ in range(HORIZON):
        ticket = agent.ask(arms)
        arm = names[ticket.arm]
        lost += value.max() - value[arm]
        if rng.random() >= loss:
            late = delay if law == "fixed" else rng.exponential(delay)
            heapq.heappush(coming, (now + late, ticket.id, value[arm] + rng.standard_cauchy()))
        while coming and coming[0][0] <= now:
            _, name, reward = heapq.heappop(coming)
            agent.tell(name, reward)
        now += 1
    return float(lost / HORIZON / (value.max() - value.mean()))


def users(paths: int) -> None:
    """Print the regret of simulated users with delayed and lost rewards."""
    print(f"simulated users, {HORIZON} requests, K = 20, d = 10, Cauchy rewards, {paths} seeds")
    tools: dict[str, Policy[Any]] = {"OFUL behind 15": OFUL_15, "LinStudentUCB": LinStudentUCB()}
    bars = {("OFUL behind 15", "fixed", at): bar for at, bar in BARS.items()}
    bars["LinStudentUCB", "fixed", (300, 0.3)] = 0.09
    for law, cases in {"fixed": list(BARS), "exponential": [(30, 0.3)]}.items():
        for name, policy in tools.items():
            for delay, loss in cases:
                found = [regret(policy, delay, loss, seed, law) for seed in range(paths)]
                bar = bars.get((name, law, (delay, loss)))
                words = "no bar" if bar is None else f"bar {bar:.2f}"
                spread = np.std(found, ddof=1) / paths**0.5
                print(
                    f"{name}, {law} delay {delay}, loss {loss:.0%}:"
                    f" {np.mean(found):.3f} ± {spread:.3f} of uniform ({words})",
                    flush=True,
                )


def main() -> None:
    """Print all parts, or those asked for."""
    parts = {part.__name__: part for part in (cost, named, together, memory, postgres, kills)}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join([*parts, "users"]))
    parser.add_argument("--paths", type=int, default=10)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in given.only.split(","):
            if part == "users":
                users(given.paths)
            else:
                parts[part](folder)


if __name__ == "__main__":
    main()
