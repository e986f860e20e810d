"""Agents that are killed at random moments, and what is left of what they had answered."""

import math
import os
import random
import select
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from tailproof import OFUL, Filtered, LinStudentUCB, Policy
from tailproof.live import Agent, open_journal, read
from tailproof.live.replay import blank, replay

__all__ = ["Tally", "kill"]

POLICIES: list[Policy[Any]] = [Filtered(OFUL(), repeats=3), LinStudentUCB()]


@dataclass
class Tally:
    """What killing has shown.

    Attributes
    ----------
    kills, acts : int
        Processes killed, and acts that they had answered.
    lost : list of str
        Answered acts that are not in the journal as they were answered.
    broken : list of str
        Errors of agents that were not killed yet.
    differing : list
        What is wrong with journals that are not what their full fold leads to.
    cpu, wall : list of float
        Seconds that each reopening took, where there was a snapshot.
    """

    kills: int = 0
    acts: int = 0
    lost: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    differing: list[Any] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing is lost, broken or different."""
        return not (self.lost or self.broken or self.differing)


def kill(new_place: Callable[[], str], journals: int, lives: int, seed: int = 0) -> Tally:
    """Let journals be served by one process, then by two, and so on, and look after each death."""
    rng, tally = random.Random(seed), Tally()
    for journal in range(journals):
        place, which, said = new_place(), journal % len(POLICIES), list[str]()
        for life in range(lives):
            processes = 1 + life % 2
            said += _serve_and_kill(place, which, f"life {life}", rng, processes)
            tally.kills += processes
            _look(place, which, said, tally, last=life == lives - 1)
        tally.acts += len(said)
    return tally


def _serve_and_kill(
    place: str, which: int, life: str, rng: random.Random, processes: int
) -> list[str]:
    """Let processes serve one journal, kill each at a random moment, and return what they said.

    Most die soon after some number of answers, a few while they begin.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(["pytest", "psycopg", "tailproof.live", "tailproof.policies"])
    running, due, least, durable = {}, {}, {}, rng.random() < 0.25
    for process in range(processes):
        mine, theirs = context.Pipe(duplex=False)
        given = (place, which, f"{life} {process}", rng.randint(1, 4), durable, theirs)
        running[mine] = context.Process(target=_serve, args=given, daemon=True)
        running[mine].start()
        theirs.close()
        due[mine] = time.monotonic() + rng.uniform(0, 0.1) if rng.random() < 0.1 else math.inf
        least[mine] = rng.randrange(100)
    said = dict.fromkeys(running, b"")
    while running:
        for mine in select.select(list(running), [], [], 0.002)[0]:
            got = os.read(mine.fileno(), 1 << 20)
            said[mine] += got
            if due[mine] == math.inf and said[mine].count(b"\n") > least[mine]:
                due[mine] = time.monotonic() + rng.uniform(0, 0.02)
            if not got:
                running.pop(mine).join()
                mine.close()
        for mine, child in running.items():
            if due[mine] < time.monotonic():
                child.kill()
    return b"".join(said.values()).decode().splitlines()


def _serve(
    place: str, which: int, life: str, threads: int, durable: bool, pipe: Connection
) -> None:
    """Ask and tell until the end, and say each act in a pipe after it was answered."""

    def say(*words: object) -> None:
        os.write(pipe.fileno(), ("\t".join(map(str, words)) + "\n").encode())

    def work(thread: int) -> None:
        rng, waiting, i = random.Random(f"{life} {thread}"), list[str](), 0
        while True:
            i += 1
            unit = f"unit {rng.randrange(50)}" if i % 3 == 0 else None
            name = f"{life} {thread} {i}" if i % 2 else None
            ticket = agent.ask(rng.choice(offers), name, unit)
            say("ask", ticket.id, ticket.arm, ticket.propensity)
            waiting.append(ticket.id)
            while rng.random() < 0.48 and waiting:
                told = waiting.pop(rng.randrange(len(waiting)))
                if rng.random() < 0.1:
                    say("cancel", told, *agent.cancel([told]))
                    continue
                reward = rng.gauss(0, 1) / rng.gauss(0, 1)
                say("tell", told, reward, agent.tell(told, reward))

    def guarded(thread: int) -> None:
        try:
            work(thread)
        except BaseException as error:
            say("error", repr(error))
            raise

    vectors = np.random.default_rng(which).standard_normal((6, 3)) / 2
    offers = [{f"arm {i}": vectors[i] for i in range(j, j + 4)} for j in range(3)]
    agent = _agent(place, which, durable)
    for thread in range(threads):
        threading.Thread(target=guarded, args=(thread,)).start()


def _agent(place: str, which: int, durable: bool) -> Agent:
    journal = open_journal(place, durable=durable)
    return Agent(
        POLICIES[which], journal, wait="1s", explore=0.1, floor=0.05, control=("arm 2", 0.2)
    )


def _look(place: str, which: int, said: list[str], tally: Tally, *, last: bool) -> None:
    """Reopen a journal, look for everything that was said, and learn all of it anew.

    When it was reopened for the last time, choose all holds again.
    """
    cpu, wall = time.process_time(), time.perf_counter()
    with _agent(place, which, durable=True) as agent:
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        if agent.journal.snapshots(agent.number):
            tally.cpu.append(cpu)
            tally.wall.append(wall)
        there = read(agent.journal).frame.set_index("ticket")
        for line in said:
            kind, ticket, *words = line.split("\t")
            if kind == "error":
                tally.broken.append(line)
            elif ticket not in there.index or not _kept(kind, words, there.loc[ticket]):
                tally.lost.append(line)
        whole = blank(agent.policy, agent.journal)
        replay(whole, agent.journal, agent.journal.outcome_count())
        if whole.learned and not whole.same(agent.learner.to_bytes()):
            tally.differing.append(place)
        verified = agent.verify() if last else None
        if verified and not verified.ok:
            tally.differing.append((place, verified))


def _kept(kind: str, words: list[str], row: Any) -> bool:
    """Whether an act is in a journal as it was answered.

    A reward that was kept counts as soon as an outcome is numbered.
    """
    if kind == "ask":
        return words == [row.arm, str(row.propensity)]
    if kind == "cancel":
        cancelled = bool(row.status in ("cancelled", "pending"))  # it ends with the next tick
        return (words != ["cancelled"]) or cancelled
    if words[1] == "late":
        return words[0] == str(row.late)
    counts = words[0] == str(row.reward) or row.status == "pending"
    return bool(counts and row.events == 1)
