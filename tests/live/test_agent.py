"""The agent: tickets, refusals, restarts, arms that come and go."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clocks import Clock
from mabwiser.mab import LearningPolicy
from river import bandit

from tailproof import (
    OFUL,
    UCB1,
    AdaRUCB,
    AutoFiltered,
    Filtered,
    LinStudentUCB,
    LinTS,
    Median,
    MedianUCB,
    OrderStatisticUCB,
    Policy,
    RobustUCB,
    ThompsonSampling,
    Uniform,
    guests,
)
from tailproof.live import Agent, Ask, SQLite, Tell, read
from tailproof.live.recipe import seconds

FIVE = Filtered(UCB1(), repeats=5, estimator=Median())
COLOURS = ["red", "blue", "green"]


def play(agent: Agent, cycles: int, offer: Any = COLOURS, seed: int = 0) -> list[str]:
    rng, arms = np.random.default_rng(seed), []
    for _ in range(cycles):
        ticket = agent.ask(offer)
        arms.append(ticket.arm)
        agent.tell(ticket.id, COLOURS.index(ticket.arm) + rng.standard_cauchy())
    return arms


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda agent: agent.ask([]), "offer must have 1 to"),
        (lambda agent: agent.ask("red"), "offer must be a list of arm names"),
        (lambda agent: agent.ask(["red", "red"]), "arm names must be unique"),
        (lambda agent: agent.ask(["red", 3]), "arm names must be printable strings"),
        (lambda agent: agent.ask({"red": [1.0], "blue": [1.0, 2.0]}), "all of the same length"),
        (lambda agent: agent.ask({"red": [np.inf]}), "features must be finite"),
        (lambda agent: agent.ask(COLOURS, ticket=""), "ticket must be a string"),
        (lambda agent: agent.ask(COLOURS, ticket="#9"), "ticket '#9' is reserved"),
        (lambda agent: agent.tell("x", np.nan), "reward must be a float .*, got nan"),
        (lambda agent: agent.tell("x", 10**400), "reward must be a float"),
        (lambda agent: agent.tell("x", True), "reward must be a float"),
        (lambda agent: agent.tell(3, 1.0), "ticket must be a string"),
    ],
)
def test_what_is_refused_changes_nothing(act: Callable[[Agent], Any], words: str) -> None:
    agent = Agent(FIVE, ":memory:")
    with pytest.raises(ValueError, match=words):
        act(agent)
    assert agent.journal.outcome_count() == 0
    assert agent.ask(COLOURS).id == "#0"


def test_one_refusal_of_several_acts_leaves_the_others() -> None:
    agent = Agent(FIVE, ":memory:")
    agent.ask({"a": [1.0, 0.0], "b": [0.0, 1.0]}, ticket="one")
    linear = Agent(LinStudentUCB(), ":memory:")
    linear.ask({"a": [1.0, 0.0], "b": [0.0, 1.0]})
    good, bad = linear.act([Ask({"a": [1.0, 2.0]}), Ask({"a": [1.0, 2.0, 3.0]})])
    assert good.arm == "a"  # type: ignore[union-attr]
    assert "features must have length 2 in this journal, got length 3" in str(bad)
    assert linear.verify().ok


def test_what_a_guest_refuses_leaves_no_trace() -> None:
    agent = Agent(guests.mabwiser(LearningPolicy.LinUCB(0.5)), ":memory:")
    with pytest.raises(ValueError, match="one context for all"):
        agent.ask({"a": [1.0, 0.0], "b": [0.5, 1.0]})
    with pytest.raises(ValueError, match="one context for all"):
        agent.ask({"c": [1.0, 0.0, 3.0], "d": [0.5, 1.0, 2.0]})
    for _ in range(3):
        agent.tell(agent.ask({"x": [1.0, 2.0], "y": [1.0, 2.0]}).id, 1.0)
    assert agent.learner.numbers == agent.journal.arms() == {"x": 0, "y": 1}
    assert agent.verify().ok


def test_infinite_rewards_are_rewards() -> None:
    agent = Agent(FIVE, ":memory:")
    told = [agent.tell(agent.ask(COLOURS).id, r) for r in (np.inf, -np.inf, 1e308, 1, 2)]
    assert told == ["kept"] * 5
    assert read(agent.journal).frame["reward"].tolist() == [np.inf, -np.inf, 1e308, 1, 2]
    play(agent, 20)
    assert agent.verify().ok


@pytest.mark.parametrize(
    "policy",
    [
        FIVE,
        AutoFiltered(UCB1()),
        AutoFiltered(OFUL(bonus=0.4)),
        LinStudentUCB(),
        LinTS(),
        OrderStatisticUCB(),
        ThompsonSampling(),
        Uniform(),
        Filtered(guests.vw("--cb_explore_adf --squarecb", view="arms"), repeats=5),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_the_state_is_the_fold_of_the_journal(policy: Policy[Any], tmp_path: Path) -> None:
    """An agent that is opened again goes on as one that never stopped would."""
    names = {"red": [1.0, 0.0], "blue": [0.0, 1.0], "green": [0.6, 0.8]}
    with Agent(policy, ":memory:", explore=0.1, seed=3) as one:
        whole = play(one, 120, names)
    parts: list[str] = []
    for start in (0, 40, 80):
        rng = np.random.default_rng(0)
        rng.standard_cauchy(start)
        quick = SQLite(tmp_path / "b.db", durable=False)
        with Agent(policy, quick, explore=0.1, seed=3) as other:
            for _ in range(40):
                ticket = other.ask(names)
                parts.append(ticket.arm)
                other.tell(ticket.id, COLOURS.index(ticket.arm) + rng.standard_cauchy())
    assert parts == whole
    with Agent(policy, tmp_path / "b.db") as again:
        assert again.verify().ok


@pytest.mark.parametrize(
    "policy",
    [
        AdaRUCB(),
        AutoFiltered(UCB1(), repeats=3),
        MedianUCB(),
        OrderStatisticUCB(),
        RobustUCB(),
        ThompsonSampling(),
        guests.vw("--cb_explore_adf --epsilon 0.2"),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_arms_come_and_go(policy: Policy[Any]) -> None:
    agent = Agent(policy, ":memory:", dim=4)
    for offer in (["red", "blue"], COLOURS, ["green", "blue"], ["green"], ["black", "red"]):
        for _ in range(40):
            ticket = agent.ask(offer)
            assert ticket.arm in offer
            agent.tell(ticket.id, float(len(ticket.arm)))
    assert list(agent.learner.numbers) == ["blue", "red", "green", "black"]
    assert agent.verify().ok


@pytest.mark.parametrize("policy", [UCB1(), LinStudentUCB(), Uniform()], ids=["K", "d", "none"])
def test_rewards_go_to_the_arm_that_was_shown(policy: Policy[Any]) -> None:
    agent, rng = Agent(policy, ":memory:", explore=0.3), np.random.default_rng(3)
    shown = {}
    for i in range(60):
        ticket = agent.ask(rng.permutation(COLOURS).tolist(), ticket=f"visit {i}")
        shown[ticket.id] = ticket.arm
        assert agent.ask(COLOURS, ticket=ticket.id) == ticket
        agent.tell(ticket.id, COLOURS.index(ticket.arm))
    frame = read(agent.journal).frame
    assert dict(zip(frame["ticket"], frame["arm"], strict=True)) == shown
    assert agent.verify().ok


def test_a_restart_with_a_new_arm_pending_is_no_difference(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Agent(UCB1(), SQLite(path, durable=False)) as agent:
        for _ in range(300):
            agent.tell(agent.ask(["a", "b"]).id, 1.0)
        agent.ask(["a", "c"])
    with Agent(UCB1(), SQLite(path, durable=False)) as agent:
        for _ in range(300):
            agent.tell(agent.ask(["a", "b"]).id, 1.0)
        assert agent.verify().ok


def test_what_was_refused_is_not_remembered() -> None:
    agent = Agent(guests.river(bandit.UCB(delta=1)), ":memory:")
    agent.tell(agent.ask(["a", "b"]).id, 1.0)
    with pytest.raises(ValueError, match="all 3 that"):
        agent.ask(["a", "c"])
    agent.ask(["a", "b"])
    assert agent.verify().ok


def test_a_guest_with_a_context_behind_a_filter_meets_a_new_arm() -> None:
    guest = guests.vw("--cb_explore_adf --epsilon 0.2", view="context")
    agent = Agent(AutoFiltered(guest, repeats=3), ":memory:")
    for names in (["a", "b"], ["a", "b", "c"]):
        for _ in range(12):
            agent.tell(agent.ask({name: [1.0, 0.5] for name in names}).id, 1.0)
    assert agent.verify().ok


def test_offers_that_come_again_are_taken_after_many_that_did_not() -> None:
    clock = Clock()
    agent = Agent(Filtered(OFUL(), repeats=3), ":memory:", wait=60, clock=clock)
    for i in range(100):
        agent.ask({"a": [float(i)], "b": [1.0]})
    with pytest.raises(
        ValueError, match=r"needs offers that repeat.*LinStudentUCB, which learns from"
    ):
        agent.ask({"a": [0.5], "b": [0.25]})
    assert agent.ask({"a": [0.5], "b": [0.25]}).id == "#100"
    single = Agent(LinStudentUCB(), ":memory:")
    for i in range(110):
        single.tell(single.ask({"a": [float(i)], "b": [1.0]}).id, 1.0)
    assert single.verify().ok


def test_a_clock_that_goes_back_loses_nothing() -> None:
    clock = Clock()
    agent = Agent(FIVE, ":memory:", wait=10, clock=clock)
    clock.now += 1e7
    tickets = [agent.ask(COLOURS) for _ in range(5)]
    clock.now -= 1e7
    assert {agent.tell(ticket.id, 1.0) for ticket in tickets} == {"kept"}
    assert agent.standing()[:2] == (0, 5)
    assert agent.verify().ok


def test_a_few_offers_that_come_once_do_no_harm() -> None:
    agent = Agent(FIVE, ":memory:")
    for i in range(1000):
        offer = ["red", "blue", f"campaign {i}"] if i % 20 == 0 else ["red", "blue"]
        agent.tell(agent.ask(offer).id, 1.0)
    assert agent.learner.state.decisions[0] > 150


def test_files_of_others_are_left_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("CREATE TABLE users (name TEXT)")
    before = path.read_bytes()
    for use in (lambda: read(path), lambda: Agent(UCB1(), path)):
        with pytest.raises(ValueError, match="not a journal of tailproof"):
            use()
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["app.db"]


def test_a_copy_that_may_only_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.db"
    with Agent(UCB1(), path) as agent:
        agent.tell(agent.ask(COLOURS, ticket="a").id, 1.0)
    monkeypatch.setattr(os, "access", lambda *_: False)
    log = read(path)
    assert log.journal.read_only
    assert log.frame["status"].tolist() == ["told"]
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        log.journal.execute("DELETE FROM request")
    log.journal.close()


@pytest.mark.parametrize("journal", [None, 3, "", b"a.db"])
def test_what_is_no_journal(journal: Any) -> None:
    with pytest.raises(ValueError, match="journal must be a path"):
        Agent(UCB1(), journal)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_an_agent_does_not_cross_a_fork() -> None:
    agent = Agent(UCB1(), ":memory:")
    child = os.fork()
    if child == 0:
        try:
            agent.ask(COLOURS)
        except RuntimeError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_lessons_for_policies_of_another_kind() -> None:
    agent = Agent(UCB1(), ":memory:")
    for offer in (["a", "b"], ["a", "b", "c"]):
        for _ in range(20):
            agent.tell(agent.ask(offer).id, 1.0)
    assert read(agent.journal).replay(LinStudentUCB()).decisions.tolist() == [40]
    with pytest.raises(ValueError, match="cannot replay an empty journal"):
        read(Agent(UCB1(), ":memory:").journal).replay(UCB1())


def test_names_alone_for_a_policy_that_sees_vectors() -> None:
    agent = Agent(LinStudentUCB(), ":memory:", dim=3)
    agent.ask(["red", "blue"])
    agent.ask(COLOURS)
    with pytest.raises(ValueError, match="LinStudentUCB takes at most 3 arms without features"):
        agent.ask(["black"])


def test_several_acts_in_one_commit() -> None:
    agent = Agent(FIVE, ":memory:")
    before = agent.commits
    agent.act([Ask(COLOURS, "a"), Tell("a", 1.0), Ask(COLOURS, "b"), Tell("b", 2.0)])
    assert agent.commits == before + 1
    assert agent.act([]) == []


@pytest.mark.parametrize(
    ("text", "value"), [("90s", 90), ("15min", 900), ("2 h", 7200), ("1d", 86400), (5, 5)]
)
def test_time_spans(text: Any, value: float) -> None:
    assert seconds(text) == value
