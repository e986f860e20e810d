"""The cost of live use, and the regret that delayed and lost rewards cause.

Run it with ``make bench-live``; ``--only cost,users`` runs some parts. It prints CPU time, ratios
and counts, not wall time, except where several processes share a journal. ``cost`` compares an ask
and a tell with a loop that does the same work in the fewest statements, in one run. The parts
kills, postgres and processes need the ``dev`` extra.
"""

from timing import one_core

one_core()

import argparse
import gc
import hashlib
import heapq
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from killing import kill
from servers import postgres_server

from tailproof import OFUL, UCB1, Filtered, LinStudentUCB, Median, Policy, RevenueUCB
from tailproof.live import Agent, SQLite, open_journal
from tailproof.live.replay import blank, replay
from tailproof.policies.base import unwarned

ARMS, DIM = 20, 10
OFUL_15 = Filtered(OFUL(noise_scale=0.45, bonus=0.4), repeats=15, estimator=Median())
HORIZON, USERS_SEED, DELAYED_SEED = 10_000, 77, 4107
TARGETS = {(0, 0.0): 0.16, (30, 0.3): 0.22, (300, 0.3): 0.40, (30, 0.7): 0.32}
"""The most regret over that of uniform choices, by mean delay and share of lost rewards."""


def offer(rng: np.random.Generator) -> dict[str, Any]:
    """Return arms with features on the unit sphere."""
    x = rng.normal(size=(ARMS, DIM))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return {f"arm {i}": row for i, row in enumerate(x)}


class Loop:
    """The yardstick: an ask is one transaction of five statements, a tell one of five.

    It keeps the promises of a kill, and has no units, no control group, no recipes, no retries.
    """

    TABLES = """
    create table request(id integer primary key, ticket text unique, at real, ends real, arm int,
        share real, shares blob, after int);
    create index request_ends on request(ends, id);
    create table event(request int, name text, value real, at real, primary key(request, name))
        without rowid;
    create table outcome(n integer primary key, request int unique, reward real, why text, at real,
        seal blob);
    """

    def __init__(self, policy: Policy[Any], path: Path, arms: int, *, durable: bool) -> None:
        self.database = sqlite3.connect(path, isolation_level=None)
        flush = "full" if durable else "normal"
        self.database.executescript(f"pragma journal_mode=wal; pragma synchronous={flush};")
        self.database.executescript(self.TABLES)
        self.run, self.policy, self.arms = self.database.execute, policy, arms
        self.state, self.vectors = policy.init(1, arms, 1), np.zeros((1, arms, 1))
        self.learned = self.next = 0
        self.seal = b""

    def ask(self, ticket: str) -> int:
        """Return an arm."""
        now = time.time()
        self.run("begin immediate")
        self.run("select id, arm from request where ticket = ?", (ticket,)).fetchone()
        sql = (
            "select o.n, r.arm, o.reward from outcome o join request r on r.id = o.request"
            " where o.n > ? order by o.n limit 256"
        )
        for n, arm, reward in self.run(sql, (self.learned,)).fetchall():
            with unwarned():
                chosen = np.array([arm])
                self.policy.learn_unchecked(
                    self.state, self.vectors, chosen, np.array([[reward]]), None
                )
            self.learned = n
        with unwarned():
            shares = self.policy.propensities_unchecked(self.state, self.vectors)
        assert shares is not None
        digest = hashlib.blake2b(b"0 %d" % self.next, digest_size=8).digest()
        reached = shares[0].cumsum()
        lot = int.from_bytes(digest) / 2**64 * reached[-1]
        arm = int(reached.searchsorted(lot, "right"))
        packed = shares[0].astype("<f4").tobytes()
        row = (self.next, ticket, now, now + 7200, arm, float(shares[0, arm]), packed, self.learned)
        self.run("insert into request values (?, ?, ?, ?, ?, ?, ?, ?)", row)
        self.run("commit")
        self.next += 1
        return arm

    def tell(self, ticket: str, reward: float) -> None:
        """Store a reward, and number its outcome."""
        now = time.time()
        self.run("begin immediate")
        sql = (
            "select r.id, r.ends, o.n from request r left join outcome o on o.request = r.id"
            " where r.ticket = ?"
        )
        (request, _, _) = self.run(sql, (ticket,)).fetchone()
        self.run("insert into event values (?, ?, ?, ?)", (request, "", reward, now))
        sealed = self.seal + b"%d %r" % (request, reward)
        self.seal = hashlib.blake2b(sealed, digest_size=16).digest()
        outcome = (request, reward, "told", now, self.seal)
        sql = "insert into outcome(request, reward, why, at, seal) values (?, ?, ?, ?, ?)"
        self.run(sql, outcome)
        self.run("commit")


def cost(folder: Path, rounds: int = 20, each: int = 250) -> None:
    """Print the CPU time of an ask and a tell over that of the loop, in turn, K = 4."""
    names = [f"arm {i}" for i in range(4)]
    tools: list[Policy[Any]] = [UCB1(), RevenueUCB(), LinStudentUCB()]
    for durable in (False, True):
        for policy in tools:
            kind = f"{type(policy).__name__}{', flushed to disk' if durable else ''}"
            agent = Agent(policy, SQLite(folder / f"{kind}.db", durable=durable), wait="2h")
            loop = Loop(policy, folder / f"{kind} loop.db", 4, durable=durable)
            loop.vectors = loop.vectors if policy.view == "arms" else np.eye(4)[None]
            if policy.view != "arms":
                loop.state = policy.init(1, 4, 4)
            ours, theirs = list[float](), list[float]()
            try:
                for part in range(rounds):
                    start = time.process_time()
                    for n in range(each):
                        agent.ask(names, f"v{part} {n}")
                        agent.tell(f"v{part} {n}", float(n % 7))
                    ours.append((time.process_time() - start) / each * 1e6)
                    start = time.process_time()
                    for n in range(each):
                        loop.ask(f"v{part} {n}")
                        loop.tell(f"v{part} {n}", float(n % 7))
                    theirs.append((time.process_time() - start) / each * 1e6)
            except AssertionError:
                print(f"{kind}: it reports no propensities, so the loop cannot play it")
                continue
            one, other = (float(np.median(np.sort(x)[: rounds // 2])) for x in (ours, theirs))
            print(
                f"{kind}: an ask and a tell take {one:.0f} µs CPU, the loop {other:.0f}: "
                f"{one / other:.2f} times (target: at most 1.5)",
                flush=True,
            )
            agent.close()


def filtered(folder: Path, cycles: int = 10_000) -> None:
    """Print CPU time and bytes of a filter with features, the speed of a replay, and reopening."""
    rng, path = np.random.default_rng(0), folder / "cost.db"
    arms, rewards = offer(rng), rng.standard_cauchy(cycles)
    agent = Agent(OFUL_15, SQLite(path, durable=False))
    start = time.process_time()
    for n in range(cycles):
        agent.tell(agent.ask(arms).id, rewards[n])
    spent = time.process_time() - start
    print(f"ask + tell, K = 20, d = 10, filter of 15: {spent / cycles * 1e6:.0f} µs CPU")
    agent.journal.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    print(f"journal: {path.stat().st_size / cycles:.0f} bytes per ask + tell, short ids")
    start = time.process_time()
    replay(blank(OFUL_15, agent.journal), agent.journal, cycles)
    spent = time.process_time() - start
    print(f"replay: {cycles / spent:.0f} outcomes per second of CPU")
    start = time.process_time()
    Agent(OFUL_15, path).close()
    print(f"reopen: {(time.process_time() - start) * 1e3:.0f} ms CPU (at most 100)")
    agent.close()


def postgres(_: Path) -> None:
    """Print the agent's CPU time with PostgreSQL."""
    arms, cycles = [f"arm {i}" for i in range(4)], 2000
    with postgres_server() as server, Agent(UCB1(), f"{server.get_uri()}#cost") as agent:
        start = time.process_time()
        for n in range(cycles):
            agent.tell(agent.ask(arms).id, n)
        spent = time.process_time() - start
    print(f"PostgreSQL, ask + tell: {spent / cycles * 1e6:.0f} µs CPU of the agent")


def ask_and_tell(agent: Agent, arms: Any, cycles: int) -> float:
    """Return the CPU time of an ask and a tell in microseconds, of the better half of blocks."""
    found = []
    for _ in range(10):
        start = time.process_time()
        for n in range(cycles // 10):
            agent.tell(agent.ask(arms).id, float(n % 7))
        found.append((time.process_time() - start) / (cycles // 10) * 1e6)
    return float(np.median(np.sort(found)[:5]))


def sizes(folder: Path) -> None:
    """Print the cost of an ask and a tell by the number of arms and of features."""
    rng = np.random.default_rng(0)
    for k, d in ((2, 0), (10, 0), (100, 0), (10, 10), (10, 50), (100, 50)):
        names = [f"arm {i}" for i in range(k)]
        policy: Policy[Any] = LinStudentUCB() if d else UCB1()
        with Agent(policy, SQLite(folder / f"{k} {d}.db", durable=False)) as agent:
            arms = dict(zip(names, rng.normal(size=(k, d)) / 9, strict=True)) if d else names
            spent = ask_and_tell(agent, arms, 500)
        print(f"{type(policy).__name__}, K = {k}, d = {d}: {spent:.0f} µs CPU an ask and a tell")


def pending(folder: Path, most: int = 1_000_000) -> None:
    """Print the cost of an act of two agents that take turns, by how much is pending."""
    arms = [f"arm {i}" for i in range(4)]
    base = None
    for count_ in (100, 10_000, most):
        path = folder / f"pending {count_}.db"
        with (
            Agent(LinStudentUCB(), SQLite(path, durable=False), wait="7d", dim=4) as one,
            Agent(LinStudentUCB(), SQLite(path, durable=False), wait="7d") as two,
        ):
            one.ask(arms)
            fill(one, count_)
            found = []
            for _ in range(10):
                start = time.process_time()
                for n in range(20):
                    told = two.ask(arms).id
                    one.tell(told, float(n % 7))
                    told = one.ask(arms).id
                    two.tell(told, float(n % 5))
                found.append((time.process_time() - start) / 80 * 1e6)
            spent = float(np.median(np.sort(found)[:5]))
        base = base or spent
        print(
            f"two agents in turn, {count_} pending: {spent:.0f} µs CPU an act, "
            f"{spent / base:.2f} of the first (target for 10⁶: at most 1.3)",
            flush=True,
        )


def fill(agent: Agent, requests: int, told: int = 0) -> None:
    """Add requests to a journal, `told` of them with an outcome, faster than by asking."""
    journal, now = agent.journal, agent.journal.now()
    ((offered, arm, first),) = list(
        journal.execute("SELECT offer, arm, id + 1 FROM request ORDER BY id DESC LIMIT 1")
    )
    with journal.transaction():
        rows, many = range(first, first + requests), journal.execute_many
        ends = {i: now + 6e5 + i / 1e3 for i in rows}
        journal.add_requests(
            [
                (i, None, None, now, ends[i], 0, offered, arm, 0.25, None, None, 0, None, 0)
                for i in rows
            ]
        )
        start = journal.outcome_count()
        many(
            "INSERT INTO outcome VALUES (?, ?, 1.0, 'told', ?, 0)",
            [(start + n, first + n, now) for n in range(told)],
        )
        many("INSERT INTO due VALUES (?, ?)", [(ends[i], i) for i in rows[told:]])


def opening(folder: Path, tickets: int = 3_000_000, open_: int = 1_000_000) -> None:
    """Print the time and memory to open a large journal, with and without a snapshot."""
    path = folder / "large.db"
    with Agent(UCB1(), SQLite(path, durable=False), wait="7d") as agent:
        agent.ask(["a", "b"])
        fill(agent, tickets, told=tickets - open_)
    for what in ("without", "with"):
        command = [sys.executable, __file__, "--open", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        print(f"open, {tickets} tickets, {open_} pending, {what} a snapshot: {done.stdout.strip()}")


def open_one(path: str) -> None:
    """Open a journal, print what it took, and leave a snapshot there."""
    start = time.process_time()
    with Agent(UCB1(), SQLite(path, durable=False), wait="7d") as agent:
        spent = time.process_time() - start
        while not agent.tick():
            pass
        agent.ask(["a", "b"])
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    print(f"{spent:.2f} s CPU, at most {int(peak) / 1024:.0f} MB")


def work(place: str, seconds: float, start: Any, out: Any) -> None:
    """Ask and tell for a while, and report how often."""
    arms, count_, times = [f"arm {i}" for i in range(4)], 0, []
    with Agent(UCB1(), open_journal(place, durable=False)) as agent:
        agent.ask(arms)
        start.wait()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            begin = time.monotonic()
            ticket = agent.ask(arms)
            times.append(time.monotonic() - begin)
            agent.tell(ticket.id, 1.0)
            count_ += 2
    out.put((count_ / seconds, np.quantile(times, [0.5, 0.99, 0.999])))


def processes(folder: Path) -> None:
    """Print acts per second of 1, 2, 4 and 8 processes with an agent each, by the clock."""
    context = get_context("spawn")

    def rate(place: str, count_: int) -> float:
        start, out = context.Barrier(count_), context.Queue()
        crew = [context.Process(target=work, args=(place, 5.0, start, out)) for _ in range(count_)]
        for one in crew:
            one.start()
        found = [out.get() for _ in crew]
        for one in crew:
            one.join()
        rates, quantiles = zip(*found, strict=True)
        p50, p99, p999 = 1e3 * np.max(quantiles, axis=0)
        print(
            f"{place.partition(':')[0][:10]}, {count_} processes: {sum(rates):.0f} acts/s; an ask"
            f" takes {p50:.1f} ms at p50, {p99:.1f} at p99, {p999:.1f} at p99.9 (worst process)",
            flush=True,
        )
        return float(sum(rates))

    with postgres_server() as server:
        for base in (f"{folder}/many", f"{server.get_uri()}#many"):
            rates = [rate(f"{base} {count_}", count_) for count_ in (1, 2, 4, 8)]
            print(f"8 processes over 1: {rates[-1] / rates[0]:.2f} (PostgreSQL: at least 2)")


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

    show("SQLite", lambda: f"{folder}/{next(numbers)}.db", 50, 20)
    with postgres_server() as server:
        show("PostgreSQL", lambda: f"{server.get_uri()}#{next(numbers)}", 12, 17)


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


def delayed(paths: int) -> None:
    """Print the regret of five arms with Cauchy rewards, at once and 500 requests late."""
    tools: dict[str, Policy[Any]] = {
        f"UCB1(random={random}) behind 15": Filtered(
            UCB1(random=random), repeats=15, estimator=Median()
        )
        for random in (False, True)
    }
    tools |= {
        f"LinStudentUCB(random={random})": LinStudentUCB(random=random) for random in (False, True)
    }
    size, requests = 5, 2 * HORIZON
    print(f"{size} arms, {requests} requests, Cauchy rewards of scale 0.5, {paths} seeds")
    for delay in (0, 500):
        for name, tool in tools.items():
            found = [_five_arms(tool, delay, seed, size, requests) for seed in range(paths)]
            spread = np.std(found, ddof=1) / paths**0.5
            print(
                f"{name}, {delay} late: {np.mean(found):.3f} ± {spread:.3f} of uniform", flush=True
            )


def _five_arms(policy: Policy[Any], delay: int, seed: int, size: int, requests: int) -> float:
    """Return the regret over that of uniform choices."""
    rng, now = np.random.default_rng([DELAYED_SEED, seed]), 0.0
    value, names = rng.permutation(np.linspace(0, 1, size)), [f"a{i}" for i in range(size)]
    coming, lost = list[tuple[float, str, float]](), 0.0
    agent = Agent(policy, ":memory:", wait=3 * delay + 10, clock=lambda: now, seed=seed)
    for _ in range(requests):
        while coming and coming[0][0] <= now:
            agent.tell(*heapq.heappop(coming)[1:])
        ticket = agent.ask(names)
        arm = names.index(ticket.arm)
        lost += 1 - value[arm]
        reward = float(value[arm] + 0.5 * rng.standard_cauchy())
        heapq.heappush(coming, (now + delay, ticket.id, reward))
        now += 1
    return lost / requests / 0.5


def main() -> None:
    """Run all parts, or those asked for."""
    some = (cost, filtered, sizes, pending, opening, memory, postgres, processes, kills)
    parts = {part.__name__: part for part in some}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join([*parts, "users", "delayed"]))
    parser.add_argument("--paths", type=int, default=10)
    parser.add_argument("--open", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.open:
        open_one(given.open)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in given.only.split(","):
            if part in ("users", "delayed"):
                (users if part == "users" else delayed)(given.paths)
            else:
                parts[part](folder)


if __name__ == "__main__":
    main()
