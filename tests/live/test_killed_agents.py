"""Journals as operators meet them: killed processes, full disks, torn files, clocks that jump."""

import os
import random
import resource
import shutil
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from clocks import Clock
from killing import Tally, kill

from tailproof import OFUL, UCB1, Filtered, LinStudentUCB
from tailproof.live import Agent, SQLite, Ticket, read

ARMS = ["red", "blue"]
THREE = Filtered(UCB1(), repeats=3)


@pytest.fixture
def new_place(place: str) -> Callable[[], str]:
    numbers = count()
    return lambda: f"{place} {next(numbers)}"


def check(tally: Tally) -> None:
    assert tally.lost == []
    assert tally.broken == []
    assert tally.differing == []
    assert max(tally.cpu, default=0.0) <= 0.1


def test_a_few_killed_processes_lose_nothing(new_place: Callable[[], str]) -> None:
    tally = kill(new_place, journals=2, lives=2)
    check(tally)
    assert tally.kills == 6
    assert tally.acts > 20


@pytest.mark.slow
def test_killed_processes_lose_nothing(new_place: Callable[[], str], place: str) -> None:
    journals, lives = (4, 17) if place.startswith("postgres") else (34, 20)
    tally = kill(new_place, journals, lives, seed=1)
    check(tally)
    assert tally.kills >= (100 if place.startswith("postgres") else 1000)
    assert tally.cpu  # some had a snapshot


@pytest.mark.xdist_group("postgres")
def test_a_server_killed_at_work_loses_nothing(postgres: str, server: Any) -> None:
    """Its processes end at once, as in a crash; it comes back by its own log."""
    agent, answered, stop = Agent(THREE, postgres), dict[str, Ticket](), threading.Event()

    def work(thread: int) -> None:
        for i in count():
            try:
                ticket = agent.ask(ARMS, ticket=f"{thread} {i}")
                answered[ticket.id] = ticket
                agent.tell(ticket.id, i)
            except Exception as error:
                assert type(error).__module__.startswith("psycopg")  # noqa: PT017
                time.sleep(0.01)
            if stop.is_set():
                return

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(2):
        time.sleep(0.5)
        os.kill(server.get_pid(), signal.SIGQUIT)
        while server.get_postmaster_info().is_running():
            time.sleep(0.01)
        before = len(answered)
        server.ensure_postgres_running()
        while len(answered) < before + 20:
            time.sleep(0.01)
    stop.set()
    for thread in threads:
        thread.join()
    frame = read(agent.journal).frame.set_index("ticket")
    assert {name: ticket.arm for name, ticket in answered.items()}.items() <= dict(
        frame.arm
    ).items()
    assert agent.verify().ok
    agent.close()


@contextmanager
def little_room(size: int) -> Iterator[None]:
    """Let no file grow beyond a size, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_raises_and_loses_nothing(tmp_path: Path) -> None:
    """It is full in the middle of a page, at ten different places."""
    rng, path, answered = random.Random(0), tmp_path / "shop.db", list[Ticket]()
    agent = Agent(Filtered(OFUL(), repeats=3), SQLite(path, durable=False), dim=40)
    refused = 0
    for _ in range(10):
        room = (tmp_path / "shop.db-wal").stat().st_size + rng.randrange(20_000)
        with little_room(room):
            for i in count():
                try:
                    ticket = agent.ask([f"arm {len(answered) % 40}", f"arm {i % 20}a"])
                    answered.append(ticket)
                    agent.tell(ticket.id, i)
                except sqlite3.Error as error:
                    assert "full" in str(error) or "I/O" in str(error)  # noqa: PT017
                    refused += 1
                    break
        answered.append(agent.ask(ARMS))
        assert agent.verify().ok
    assert refused == 10
    with Agent(agent.policy, path) as again:
        for one in (agent, again):
            frame = read(one.journal).frame.set_index("ticket")
            assert dict(frame.arm) == {ticket.id: ticket.arm for ticket in answered}
            assert one.verify().ok
    agent.close()


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_torn_file_is_restored_to_a_prefix_of_the_acts(tmp_path: Path, damage: str) -> None:
    """What SQLite finds whole in its log is kept, in order; each act is there or not at all."""
    rng, source = random.Random(0), tmp_path / "shop.db"
    agent = Agent(LinStudentUCB(), SQLite(source, durable=False))
    acts = list[tuple[str, str]]()
    for i in range(40):
        acts.append(("ask", agent.ask(ARMS, ticket=f"{i}").id))
        if i % 3:
            agent.tell(f"{i}", i)
            acts.append(("tell", f"{i}"))
    log = (tmp_path / "shop.db-wal").read_bytes()
    lengths = set()
    for i in range(20):
        path = tmp_path / f"torn {i}.db"
        shutil.copy(source, path)
        cut = rng.randrange(len(log))
        rest = b"" if damage == "cut" else bytes([log[cut] ^ 1]) + log[cut + 1 :]
        path.with_name(f"{path.name}-wal").write_bytes(log[:cut] + rest)
        with Agent(LinStudentUCB(), path) as again:
            frame = read(again.journal).frame.set_index("ticket")
            told = set(frame.index[frame.reward.notna()])
            there = [(kind, t) for kind, t in acts if t in (frame.index if kind == "ask" else told)]
            assert there == acts[: len(there)]
            assert again.verify().ok
            again.ask(ARMS, ticket="go on")
            lengths.add(len(there))
    assert len(lengths) > 10
    agent.close()


def test_a_journal_without_its_end_is_refused(tmp_path: Path) -> None:
    """No log tells what was there: the database says so, and nothing is made up."""
    path = tmp_path / "shop.db"
    with Agent(LinStudentUCB(), path) as agent:
        for i in range(20):
            agent.tell(agent.ask(ARMS, ticket=f"{i}").id, i)
    whole = path.read_bytes()
    for share in (0.3, 0.6, 0.9):
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(ValueError, match=r"as a SQLite journal: .*(malformed|not a database)"):
            Agent(LinStudentUCB(), path)
    path.write_bytes(whole)
    with Agent(LinStudentUCB(), path) as agent:
        assert agent.verify().ok


@pytest.mark.xdist_group("postgres")
def test_machines_with_wrong_clocks_go_by_the_server(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Agent(LinStudentUCB(), postgres, wait=60) as one:
        one.ask(ARMS, ticket="a")
        monkeypatch.setattr(time, "time", lambda: 0.0)
        with Agent(LinStudentUCB(), postgres, wait=60) as two:
            two.ask(ARMS, ticket="b")
            assert [one.tell("b", 1), two.tell("a", 1)] == ["kept", "kept"]
            frame = read(two.journal).frame
        assert frame.asked.is_monotonic_increasing
        assert (frame.told >= frame.asked).all()


@pytest.mark.parametrize("jump", [-1e9, -3600, 3600, 1e12])
@pytest.mark.parametrize("policy", [THREE, LinStudentUCB()])
def test_clocks_may_jump(place: str, policy: Any, jump: float) -> None:
    """Of two agents one has its clock set: no reward is refused, and holds end after a while."""
    clocks = Clock(), Clock()
    with (
        Agent(policy, place, wait=60, clock=clocks[0]) as one,
        Agent(policy, place, wait=60, clock=clocks[1]) as two,
    ):
        tickets = [one.ask(ARMS, ticket=f"before {i}") for i in range(4)]
        clocks[0].now += jump
        tickets += [agent.ask(ARMS, ticket=f"{agent is one}") for agent in (one, two)]
        fates = {agent.tell(ticket.id, 1) for ticket in tickets for agent in (one, two)}
        assert fates <= {"kept", "duplicate", "late"}
        left = two.ask(ARMS, ticket="left")
        with Agent(policy, place, wait=60, clock=clocks[0]) as again:
            assert again.ask(ARMS, ticket="left") == left
            again.ask(ARMS, ticket="another")
            clocks[0].now += 61
            again.ask(ARMS, ticket="after")
            assert again.tell("another", 1) == "late"
            assert again.verify().ok
        assert one.verify().ok
