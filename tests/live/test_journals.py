"""What every journal does: the same acts in SQLite and in PostgreSQL, with the same outcome."""

import json
import math
import stat
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from clocks import Clock

import tailproof.live.journal.postgres
from tailproof import OFUL, UCB1, Filtered, LinStudentUCB, LinTS, Uniform
from tailproof.live import Agent, Journal, Postgres, SQLite, Ticket, open_journal, read
from tailproof.live.journal import ConflictError, base
from tailproof.live.journal.tables import TABLES
from tailproof.live.replay import restored

ON_POSTGRES = pytest.mark.xdist_group("postgres")
ARMS = ["red", "blue"]
THREE = Filtered(UCB1(), repeats=3)


def test_asking_again_gives_the_same_answer(journal: Journal) -> None:
    agent = Agent(THREE, journal)
    first = agent.ask(ARMS, ticket="a")
    assert agent.ask(ARMS, ticket="a") == agent.ask(["green"], ticket="a") == first
    own = agent.ask(ARMS)
    assert agent.ask(["green"], ticket=own.id) == own
    assert agent.learner.numbers.keys() == set(ARMS)
    assert agent.tell("#999999", 1.0) == agent.tell("of nobody", 1.0) == "unknown"
    assert len(read(journal).frame) == 2
    with pytest.raises(ValueError, match=r"ticket '#17' is reserved"):
        agent.ask(ARMS, ticket="#17")


def test_each_reward_has_its_status(journal: Journal) -> None:
    clock = Clock(0.0)
    agent = Agent(THREE, journal, wait=10, clock=clock)
    for ticket in "abc":
        agent.ask(ARMS, ticket=ticket)
    assert [agent.tell(t, r) for t, r in [("b", 2), ("b", 3), ("a", 1), ("x", 0)]] == [
        *("kept", "duplicate", "kept", "unknown")
    ]
    clock.now = 11
    assert agent.tell("c", 9) == "late"
    assert agent.tell("c", 9) == agent.tell("a", 9) == "duplicate"
    clock.now = 13
    for ticket in "def":
        agent.ask(ARMS, ticket=ticket)
    assert [agent.tell(ticket, 1) for ticket in "fde"] == ["kept"] * 3
    while not agent.tick():
        pass
    frame = read(journal).frame.set_index("ticket")
    assert frame.status.to_dict() == dict.fromkeys("abdef", "told") | {"c": "lost"}
    assert frame.reward.dropna().to_dict() == {"a": 1, "b": 2, "d": 1, "e": 1, "f": 1}
    assert frame.late.dropna().to_dict() == {"c": 9}
    assert agent.learner.state.decisions[0] + len(agent.learner.left) > 1
    assert agent.verify().ok


def test_the_log_can_be_read_in_sql(journal: Journal) -> None:
    clock = Clock(0.0)
    agent = Agent(LinStudentUCB(), journal, wait=10, silence=0.0, clock=clock)
    agent.ask({"a": [1.0, 2.0], "b": [1.0, 2.0]}, ticket="v", unit="user 7")
    agent.ask({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    agent.tell("v", 3.5)
    clock.now = 11
    agent.ask({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    columns = "request, unit, arm, offered, features, reward, status, outcome_time, recipe"
    rows = list(journal.execute(f"SELECT {columns} FROM log ORDER BY number"))
    assert next(row[0] for row in rows) == "v"
    assert [row[1] for row in rows] == ["user 7", None, None]
    assert [row[3] for row in rows] == ['["a", "b"]'] * 3
    assert [row[4] for row in rows] == ["[[1.0, 2.0]]", *["[[1.0, 2.0], [3.0, 4.0]]"] * 2]
    assert [row[5:] for row in rows] == [
        (3.5, "told", 11.0, 0), (0.0, "silent", 11.0, 0), (None, "pending", None, 0),
    ]  # fmt: skip
    for share, shares in journal.execute("SELECT propensity, shares FROM log"):
        assert pytest.approx(1) == sum(json.loads(shares))
        assert min(abs(share - one) for one in json.loads(shares)) < 1e-8


def test_rewards_come_back_to_the_last_bit(journal: Journal) -> None:
    rewards = [math.inf, -math.inf, 0.0, 5e-324, 1.7976931348623157e308, 0.1 + 0.2, 1 / 3]
    agent = Agent(LinStudentUCB(), journal)
    for reward in rewards:
        agent.tell(agent.ask(ARMS).id, reward or -0.0)  # zero has no sign
    kept = read(journal).frame.reward.to_numpy()
    assert kept.tobytes() == np.array(rewards).tobytes()
    assert agent.verify().ok


def test_names_come_back(journal: Journal) -> None:
    names = ["'; DROP TABLE arm; --", '"', "%s ? :x", "über ☃ 𝛼", "\\"]
    agent = Agent(THREE, journal)
    for name in names:
        assert agent.ask(names, ticket=name).arm in names
        assert agent.tell(name, 1) == "kept"
    assert read(journal).frame.ticket.tolist() == names
    assert sorted(journal.arms()) == sorted(names)


def test_an_undone_transaction_leaves_nothing(
    journal: Journal, opened: Callable[..., Journal]
) -> None:
    agent = Agent(Filtered(OFUL(), repeats=3), journal, dim=2)
    agent.ask(ARMS, ticket="before")
    add = journal.add_requests

    def fail(*_: object) -> None:
        add([(17, "half", None, 0.0, 1.0, 0, 0, 0, None, None, None, 0, None, 0)])
        raise OSError("no room")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal, "add_requests", fail)
        with pytest.raises(OSError, match="no room"):
            agent.ask({"green": [1.0, 0.0], "red": [0.0, 1.0]}, ticket="new")
    for one in (journal, opened()):
        assert sorted(one.arms()) == sorted(ARMS)
        assert one.outcome_count() == 0
        assert read(one).frame.ticket.tolist() == ["before"]
    assert agent.ask(ARMS, ticket="after").arm in ARMS
    assert agent.verify().ok


def test_a_later_schema_is_refused(opened: Callable[..., Journal]) -> None:
    opened().set_meta(schema="5")
    with pytest.raises(ValueError, match=r"has schema 5, .* knows schema 4: upgrade tailproof"):
        opened()


@pytest.mark.parametrize("schema", ["2", "3"])
def test_an_earlier_schema_is_refused_with_the_way_to_carry_it_over(
    opened: Callable[..., Journal], schema: str
) -> None:
    opened().set_meta(schema=schema)
    with pytest.raises(ValueError, match=rf"schema {schema} of an earlier .*`tailproof log`.*imp"):
        opened()


def test_tables_that_cannot_all_be_made_are_not_made(
    opened: Callable[..., Journal], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(base, "TABLES", (*TABLES, "CREATE TABLE x (y no_such (z)) z"))
        with pytest.raises(Exception, match=r"syntax|no_such"):
            opened()
    assert Agent(THREE, opened()).ask(ARMS).arm in ARMS


def test_many_may_make_one_journal_at_once(opened: Callable[..., Journal], place: str) -> None:
    """Forty times six: SQLite alone refused one in 200 to 2000 of them."""
    start, made = threading.Barrier(6, timeout=30), list[str]()

    def work() -> None:
        for i in range(5 if place.startswith("postgres") else 40):
            start.wait()
            made.append(opened(f"{place} {i}").meta()["schema"])

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == ["4"] * len(made)
    assert len(made) in (30, 240)


def test_another_recipe_is_refused_and_both_are_named(
    journal: Journal, opened: Callable[..., Journal]
) -> None:
    Agent(THREE, journal, seed=3).ask(ARMS)
    with pytest.raises(
        ValueError, match=r"the journal belongs to Filtered\(.*policy LinStudent.*, not Filtered\("
    ):
        Agent(LinStudentUCB(), opened())
    with pytest.raises(ValueError, match="seed 4, not 3"):
        Agent(THREE, opened(), seed=4)
    assert Agent(THREE, opened()).learner.seed == 3


@pytest.mark.parametrize(
    "damage", [lambda s: s[:-7], lambda s: s[:40] + b"!" + s[41:], lambda s: b""]
)
def test_a_damaged_snapshot_is_left_aside(
    journal: Journal,
    opened: Callable[..., Journal],
    caplog: pytest.LogCaptureFixture,
    damage: Callable[[bytes], bytes],
) -> None:
    agent = Agent(LinStudentUCB(), journal)
    for reward in np.random.default_rng(0).standard_cauchy(20):
        agent.tell(agent.ask(ARMS).id, reward)
    with journal.transaction():
        journal.add_snapshot(20, 0, damage(restored(agent.policy, journal).to_bytes()))
    again = Agent(agent.policy, opened())
    assert "ignoring corrupt snapshot" in caplog.text
    assert again.learner.learned == 20
    verified = again.verify()
    assert verified.state
    assert not verified.differing
    assert verified.snapshots == {20: False}


def test_a_snapshot_of_another_state_is_found(journal: Journal) -> None:
    agent = Agent(LinStudentUCB(), journal)
    for reward in range(20):
        agent.tell(agent.ask(ARMS).id, reward)
    with journal.transaction():
        journal.add_snapshot(10, 0, restored(agent.policy, journal).to_bytes())
    assert agent.verify().snapshots == {10: False}


@pytest.mark.parametrize("policy", [Filtered(OFUL(), repeats=3), LinStudentUCB(), LinTS()])
def test_two_agents_on_one_journal(opened: Callable[..., Journal], policy: Any) -> None:
    """They take turns at random; arms come and go, rewards come late or never."""
    rng, clock = np.random.default_rng(7), Clock(0.0)
    agents = [Agent(policy, opened(), wait=20, explore=0.1, clock=clock) for _ in range(2)]
    vectors = {f"arm {i}": x for i, x in enumerate(rng.standard_normal((8, 3)) / 3)}
    offers = [dict(list(vectors.items())[i : i + 4]) for i in (0, 2, 4)]
    waiting: list[Ticket] = []
    for i in range(120):
        clock.now += 1
        offer = offers[int(rng.integers(1 + min(i // 30, 2)))]
        waiting.append(agents[rng.integers(2)].ask(offer, ticket=None if i % 2 else f"visit {i}"))
        while waiting and rng.random() < 0.45:
            told = waiting.pop(int(rng.integers(len(waiting))))
            agents[rng.integers(2)].tell(told.id, rng.standard_cauchy())
    for agent in agents:
        verified = agent.verify()
        assert verified.ok
        assert verified.outcomes > 15
    whole = Agent(policy, opened(), clock=clock)
    assert whole.verify().ok
    assert whole.ask(offers[0], ticket="visit 0").arm == agents[0].ask(offers[1], "visit 0").arm


def test_an_agent_learns_from_an_offer_whose_arms_only_another_agent_knows(
    opened: Callable[..., Journal],
) -> None:
    first, second = (Agent(Uniform(), opened()) for _ in range(2))
    first.tell(first.ask(ARMS).id, 1.0)
    while (ticket := second.ask(["green", "red"])).arm != "red":  # which both agents know
        pass
    second.tell(ticket.id, 1.0)
    assert first.ask(ARMS).arm in ARMS
    assert first.verify().ok


def test_a_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    with Agent(THREE, SQLite(tmp_path / "shop.db")) as agent:
        agent.ask(ARMS)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == dict.fromkeys(["shop.db", "shop.db-wal", "shop.db-shm"], 0o600)


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_deleted_or_replaced_under_an_agent_is_noticed(
    tmp_path: Path, replaced: bool
) -> None:
    path, other = tmp_path / "a.db", tmp_path / "b.db"
    Agent(UCB1(), other).close()
    with Agent(UCB1(), path) as agent:
        agent.ask(["red", "blue"])
        if replaced:
            other.rename(path)
        else:
            path.unlink()
        for _ in range(2):
            with pytest.raises(OSError, match="deleted or replaced while in use"):
                agent.ask(["red", "blue"])


def test_processes_go_by_one_clock_even_if_it_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not Path("/proc/sys/kernel/random/boot_id").exists():
        pytest.skip("only Linux tells when the machine started")
    with Agent(LinStudentUCB(), tmp_path / "a.db", wait=60) as one:
        tickets = [one.ask(["red", "blue"]).id for _ in range(10)]
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() + 90_000)
        with Agent(LinStudentUCB(), tmp_path / "a.db", wait=60) as two:
            two.ask(["red", "blue"])
            assert {two.tell(ticket, 1.0) for ticket in tickets} == {"kept"}


def test_a_journal_that_is_not_there_is_not_made_by_reading(place: str) -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match=r"journal .* does not exist"):
            read(place)


def test_postgres_is_asked_for_by_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(
        ImportError, match=r"PostgreSQL journal needs psycopg: pip install 'psycopg\["
    ):
        Agent(THREE, "postgresql://localhost/shop")


@pytest.mark.parametrize("name", ["", "pg_shop", "a" * 64, "ü" * 32, "a\0b", 7])
def test_names_that_postgres_would_change_are_refused(name: Any) -> None:
    with pytest.raises(ValueError, match="name must be a printable string of 1 to 63 bytes"):
        Postgres("postgresql://localhost/shop", name=name)


@ON_POSTGRES
def test_journals_of_one_database_do_not_meet(postgres: str) -> None:
    url = postgres.partition("#")[0]
    names = ["Store", "store", 'a"b; DROP SCHEMA store; --', "x" * 63]
    with ExitStack() as stack:
        agents = [stack.enter_context(Agent(THREE, f"{url}#{name}")) for name in names]
        for i, agent in enumerate(agents):
            agent.ask(ARMS, ticket=f"only {i}")
        for i, agent in enumerate(agents):
            assert read(agent.journal).frame.ticket.tolist() == [f"only {i}"]


def kill_sessions(journal: Journal, admin: Journal) -> None:
    """Have the server end the connection of a journal."""
    backend = cast(Any, journal)._connection.info.backend_pid
    list(admin.execute("SELECT pg_terminate_backend(?::int)", (backend,)))


@ON_POSTGRES
def test_a_connection_lost_between_acts_is_made_anew(postgres: str) -> None:
    with Agent(THREE, postgres) as agent, Agent(THREE, postgres) as other:
        first = agent.ask(ARMS, ticket="a")
        kill_sessions(agent.journal, other.journal)
        other.tell("a", 1)
        assert agent.tell("a", 1) == "duplicate"
        assert agent.ask(ARMS, ticket="a") == first
        assert agent.verify().ok


@ON_POSTGRES
def test_a_connection_lost_during_an_act_raises_and_undoes_it(postgres: str) -> None:
    with Agent(THREE, postgres) as agent, Agent(THREE, postgres) as other:
        agent.ask(ARMS, ticket="a")
        add = agent.journal.add_requests

        def lose(*given: Any) -> None:
            add(*given)
            kill_sessions(agent.journal, other.journal)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(agent.journal, "add_requests", lose)
            with pytest.raises(Exception, match=r"terminat|closed"):
                agent.ask(ARMS, ticket="b")
        assert read(other.journal).frame.ticket.tolist() == ["a"]
        assert agent.ask(ARMS, ticket="b").arm in ARMS
        assert [agent.tell(ticket, 1) for ticket in "ab"] == ["kept", "kept"]
        assert read(agent.journal).frame.ticket.tolist() == ["a", "b"]
        assert agent.verify().ok


@ON_POSTGRES
def test_a_statement_first_prepared_in_a_failed_transaction_works_later(postgres: str) -> None:
    with closing(open_journal(postgres)) as journal:

        def run(*sql: str) -> None:
            with journal.transaction():
                for one in sql:
                    journal.execute(one)

        for before in range(8):  # psycopg prepares what was sent five times
            sql = f"SELECT {before}"
            for _ in range(before):
                run(sql)
            with pytest.raises(ConflictError):
                run("INSERT INTO meta VALUES ('schema', '4')", sql)
            run(sql)


@ON_POSTGRES
def test_a_server_that_stops_and_starts_loses_nothing(postgres: str, server: Any) -> None:
    with Agent(THREE, postgres) as agent:
        first = agent.ask(ARMS, ticket="a")
        server.stop()
        for _ in range(2):
            with pytest.raises(Exception, match="connection"):
                agent.tell("a", 1)
        server.ensure_postgres_running()
        assert agent.tell("a", 1) == "kept"
        assert agent.ask(ARMS, ticket="a") == first
        assert agent.verify().ok


@ON_POSTGRES
def test_nobody_waits_for_one_who_goes_silent(postgres: str) -> None:
    """Others ask and tell meanwhile; the server ends the transaction, here because it is told to.

    Its own timer is set, but PostgreSQL 18 lets it pass in some runs, so nothing rests on it.
    """
    with Agent(THREE, postgres) as other:
        other.ask(ARMS, ticket="first")
        with Agent(THREE, postgres) as silent:
            add = silent.journal.add_requests
            shown = silent.journal.execute("SHOW idle_in_transaction_session_timeout").fetchall()
            assert shown == [("1min",)]
            ((session,),) = silent.journal.execute("SELECT pg_backend_pid()")

            def stall(*given: Any) -> None:
                for ticket in "abc":
                    other.ask(ARMS, ticket=ticket)
                    assert other.tell(ticket, 1) == "kept"
                other.journal.execute("SELECT pg_terminate_backend(?)", (session,))
                add(*given)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(silent.journal, "add_requests", stall)
                with pytest.raises(Exception, match=r"terminat|closed"):
                    silent.ask(["green", "blue"], ticket="b2")
            assert sorted(other.journal.arms()) == sorted(ARMS)
            assert silent.ask(["green", "blue"], ticket="b2").arm in ("green", "blue")
            assert silent.verify().ok
        assert other.verify().ok


@ON_POSTGRES
def test_one_who_waits_too_long_for_new_arms_says_so(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Agent(THREE, postgres) as other:
        monkeypatch.setattr(tailproof.live.journal.postgres, "_PATIENCE", "100ms")
        with Agent(THREE, postgres) as waiting:
            with other.journal.transaction():
                other.journal.lock("arms")
                other.journal.arms()
                with pytest.raises(Exception, match="lock timeout"):
                    waiting.ask(ARMS, ticket="a")
            assert waiting.ask(ARMS, ticket="a").arm in ARMS


@pytest.mark.parametrize("policy", [THREE, LinStudentUCB(), UCB1()], ids=["several", "d", "K"])
def test_two_who_both_believe_to_order_do_no_harm(
    opened: Callable[..., Journal], policy: Any
) -> None:
    """The keys of outcomes refuse the second one, which then tries again."""
    agents = [Agent(policy, opened(), wait=30) for _ in range(2)]
    for journal in [agent.journal for agent in agents]:
        own = journal.read_batch
        journal.read_batch = lambda *a, own=own: own(*a)._replace(orders=True)  # type: ignore
    answered: list[str] = []

    def work(agent: Agent, thread: int) -> None:
        for i in range(40):
            ticket = agent.ask(ARMS, ticket=f"{thread} {i}")
            answered.append(ticket.id)
            assert agent.tell(ticket.id, 1.0) == "kept"

    threads = [threading.Thread(target=work, args=(agents[i % 2], i)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    frame = read(agents[0].journal).frame
    assert set(frame.ticket) == set(answered)
    assert (frame.events == 1).all()
    for agent in agents:
        agent.ask(ARMS)
        assert agent.verify().ok
