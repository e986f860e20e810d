"""The cost of live use, and the regret that delayed and lost rewards cause.

Run it with ``make bench-live``; ``--only cost,users`` runs some parts. It prints CPU time, ratios
and counts, not wall time. The parts kills and postgres need the ``dev`` extra.
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
from tailproof.live.fold import blank

from tailproof import OFUL, Filtered, LinStudentUCB, Median, Policy
from tailproof.live import Agent, SQLite

ARMS, DIM = 20, 10
OFUL_15 = Filtered(OFUL(noise_scale=0.45, bonus=0.4), repeats=15, estimator=Median())
HORIZON, USERS_SEED = 10_000, 77
TARGETS = {(0, 0.0): 0.16, (30, 0.3): 0.22, (300, 0.3): 0.40, (30, 0.7): 0.32}
"""The most regret over that of uniform choices, by mean delay and share of lost rewards."""


def offer(rng: np.random.Generator) -> dict[str, Any]:
    """Return arms with features on the unit sphere."""
    x = rng.normal(size=(ARMS, DIM))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return {f"arm {i}": row for i, row in enumerate(x)}


def cost(folder: Path) -> None:
    """Print CPU time and bytes per ask and tell, the speed of a replay, and the time to reopen."""
    rng, path = np.random.default_rng(0), folder / "cost.db"
    arms, rewards, cycles = offer(rng), rng.standard_cauchy(30_000), 30_000
    agent = Agent(OFUL_15, SQLite(path, durable=False))
    start = time.process_time()
    for n in range(cycles):
        agent.tell(agent.ask(arms).id, rewards[n])
    spent = time.process_time() - start
    print(f"ask + tell, K = 20, d = 10, filter of 15: {spent / cycles * 1e6:.0f} µs CPU (≤ 150)")
    agent.journal.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    print(f"journal: {path.stat().st_size / cycles:.0f} bytes per ask + tell (≤ 150), short ids")
    lessons = agent.journal.counts()[1]
    start = time.process_time()
    mind = blank(OFUL_15, agent.journal)
    for closing in agent.journal.closings(0, lessons):
        mind.fold(closing)
    spent = time.process_time() - start
    print(f"replay: {lessons / spent:.0f} updates per second of CPU (≥ 4000)")
    start = time.process_time()
    Agent(OFUL_15, path).close()
    print(f"reopen: {(time.process_time() - start) * 1e3:.0f} ms CPU (≤ 100)")
    agent.close()


def named(folder: Path) -> None:
    """Print the bytes per ask and tell if the ids of tickets have 36 characters."""
    rng, path, cycles = np.random.default_rng(0), folder / "named.db", 10_000
    arms = offer(rng)
    agent = Agent(OFUL_15, SQLite(path, durable=False))
    for n in range(cycles):
        agent.tell(agent.ask(arms, f"{n:036d}").id, 1.0)
    agent.journal.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    print(f"journal: {path.stat().st_size / cycles:.0f} bytes per ask + tell, ids of 36 characters")
    agent.close()


def together(folder: Path) -> None:
    """Print how many asks and tells share a commit when many threads call."""
    for threads in (8, 32):
        share = calls_per_commit(folder / f"threads-{threads}.db", threads)
        target = " (≥ 4)" if threads == 8 else ""
        print(f"{threads} threads, durable: {share:.1f} calls per commit{target}")


def calls_per_commit(place: str | Path, threads: int) -> float:
    """Return how many asks and tells share a commit."""
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
    """Print the agent's CPU time with PostgreSQL, and how many calls share a commit."""
    arms, cycles = offer(np.random.default_rng(0)), 2000
    with postgres_server() as server:
        with Agent(OFUL_15, f"{server.get_uri()}#cost") as agent:
            start = time.process_time()
            for n in range(cycles):
                agent.tell(agent.ask(arms).id, n)
            spent = time.process_time() - start
        share = calls_per_commit(f"{server.get_uri()}#threads", 8)
    print(f"PostgreSQL, ask + tell: {spent / cycles * 1e6:.0f} µs CPU of the agent")
    print(f"PostgreSQL, 8 threads: {share:.1f} calls per commit")


def kills(folder: Path) -> None:
    """Print what agents lose that are killed at random moments."""
    numbers = count()

    def show(name: str, new_place: Callable[[], str], journals: int, lives: int) -> None:
        tally = kill(new_place, journals, lives, seed=1)
        print(
            f"{name}: {tally.kills} processes killed, {tally.acts} calls answered,"
            f" {len(tally.lost)} lost, {len(tally.broken)} errors,"
            f" {len(tally.differing)} states differ (targets 0)"
        )
        middle, most = np.median(tally.cpu) * 1e3, max(tally.cpu) * 1e3
        print(f"{name}, reopen: median {middle:.0f} ms CPU, worst {most:.0f} (≤ 100)", flush=True)

    show("SQLite", lambda: f"{folder}/{next(numbers)}.db", 34, 20)
    with postgres_server() as server:
        show("PostgreSQL", lambda: f"{server.get_uri()}#{next(numbers)}", 4, 17)


def memory(folder: Path) -> None:
    """Print the memory of an agent as it is used."""
    arms = offer(np.random.default_rng(0))
    agent = Agent(OFUL_15, SQLite(folder / "memory.db", durable=False))
    tracemalloc.start()
    for tens in range(3):
        for _ in range(20_000):
            agent.tell(agent.ask(arms).id, 1.0)
        gc.collect()
        used = tracemalloc.get_traced_memory()[0]
        print(f"memory after {20_000 * (tens + 1)} asks and tells: {used} bytes")
    tracemalloc.stop()
    agent.close()


def regret(policy: Policy[Any], delay: float, loss: float, seed: int, law: str) -> float:
    """Return the regret of simulated users over that of uniform choices.

    There is one request per second. A reward is lost with probability `loss`; otherwise it comes
    after `delay` seconds, or after an exponential time with this mean.
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
    targets = {("OFUL behind 15", "fixed", at): most for at, most in TARGETS.items()}
    targets["LinStudentUCB", "fixed", (300, 0.3)] = 0.09
    for law, cases in {"fixed": list(TARGETS), "exponential": [(30, 0.3)]}.items():
        for name, policy in tools.items():
            for delay, loss in cases:
                found = [regret(policy, delay, loss, seed, law) for seed in range(paths)]
                most = targets.get((name, law, (delay, loss)))
                words = "no target" if most is None else f"≤ {most:.2f}"
                spread = np.std(found, ddof=1) / paths**0.5
                print(
                    f"{name}, {law} delay {delay}, loss {loss:.0%}:"
                    f" {np.mean(found):.3f} ± {spread:.3f} of uniform ({words})",
                    flush=True,
                )


def main() -> None:
    """Run all parts, or those asked for."""
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
