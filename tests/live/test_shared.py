"""Decisions that several tickets share, rows that were changed, and rewards that are imputed."""

from typing import Any

import numpy as np
import pytest

from tailproof import UCB1, Filtered, LinRevenueUCB, RevenueUCB
from tailproof.live import Agent
from tailproof.live.journal import Chosen, Told
from tailproof.live.shared import OpenDecisions

COLOURS = ["red", "blue", "green"]


def told(count: int, asked: float, wait: float, delay: float | None) -> list[Told]:
    """Return tickets, with a reward after a delay if there is one."""
    events = [] if delay is None else [("", 1.0, asked + delay)]
    return [Told(place, asked, asked + wait, events) for place in range(count)]


def test_the_loss_is_never_all() -> None:
    some = OpenDecisions(5, 3, 60.0, lossless=False)
    one = some.open(Chosen(0, 0, None), b"")
    some.check(one, told(5, 0.0, 60.0, None), 100.0, ended=True)
    assert some.loss == pytest.approx(5 / 6)


@pytest.mark.parametrize(("delay", "patience"), [(1.0, 5.0), (9.0, 10.0)])
def test_patience_is_five_delays_and_at_most_the_wait(delay: float, patience: float) -> None:
    some = OpenDecisions(9, 5, 10.0, lossless=False)
    one = some.open(Chosen(0, 0, None), b"")
    for _ in range(9):
        some.issue(one, 0.0)
    for _ in range(8):
        some.tell(0, delay)
    assert some.patience == patience
    assert some.overdue(patience - 0.1) == []
    assert some.overdue(patience + 0.1) == [one]


ROWS = {
    "decision": "explore = explore + 0.1",
    "ticket": "ends = ends + 1",
    "event": "reward = reward + 1000",
    "outcome": "at = at + 1",
    "offer": "names = replace(names, 'red', 'rad')",
    "recipe": "after = after + 1",
}


@pytest.mark.parametrize("table", ROWS)
@pytest.mark.parametrize("row", [0, 7, 19])
def test_a_changed_row_is_noticed(table: str, row: int) -> None:
    """Late, kept and learned ones alike."""
    clock = [0.0]
    agent = Agent(UCB1(), ":memory:", wait=30, clock=lambda: clock[0])
    for i in range(20):
        ticket = agent.ask(COLOURS).id
        clock[0] += 31 * (i % 5 == 2)
        agent.tell(ticket, float(i))
    assert agent.verify().ok
    key = {"outcome": "number", "recipe": "number", "offer": "id", "decision": "id"}
    which = 0 if table in ("offer", "recipe") else row
    name = key.get(table, "decision")
    agent.journal.execute(f"UPDATE {table} SET {ROWS[table]} WHERE {name} = {which}")
    found = agent.verify()
    assert not found.ok
    assert any(one.startswith(f"{table} {which}") for one in found.changed)


@pytest.mark.parametrize("table", ["event", "ticket"])
def test_a_missing_row_is_noticed(table: str) -> None:
    agent = Agent(UCB1(), ":memory:")
    for _ in range(5):
        agent.tell(agent.ask(COLOURS).id, 1.0)
    agent.journal.execute(f"DELETE FROM {table} WHERE decision = 2")
    assert agent.verify().changed == [f"{table}s: 4 instead of 5"]


def test_pending_rewards_are_imputed_by_those_of_the_same_arm() -> None:
    """On average by the mean of the arm, although most rewards are zero."""
    agent = Agent(UCB1(), ":memory:", explore=1.0)
    for i in range(200):
        agent.tell(agent.ask(["a", "b"]).id, 20.0 * (i % 20 == 0))
    agent.ask(["a", "b"])
    found: dict[str, list[float]] = {"a": [], "b": []}
    for row in agent.journal.decisions():
        found[row.decision.name].append(float(agent.learner.imputed(row.decision)[0]))
    means = [np.mean(agent.learner.state.sums[0] / agent.learner.state.counts[0])]
    assert np.mean(found["a"] + found["b"]) == pytest.approx(means[0], rel=0.5)
    assert np.mean(found["a"] + found["b"]) > 0


@pytest.mark.parametrize("policy", [RevenueUCB(), LinRevenueUCB()])
def test_policies_that_choose_at_random_impute_nothing(policy: Any) -> None:
    agent = Agent(policy, ":memory:")
    for _ in range(20):
        agent.ask({"a": [1.0], "b": [1.0]})
    assert not agent._belief.pending
    assert agent.verify().ok


def test_a_policy_with_a_context_may_be_offered_some_arms() -> None:
    agent, rng = Agent(LinRevenueUCB(), ":memory:", explore=0.2), np.random.default_rng(0)
    for i in range(200):
        names = ["a", "b", "c"] if i % 3 else ["a", "c"]
        ticket = agent.ask(dict.fromkeys(names, rng.normal(size=2)))
        assert ticket.arm in names
        agent.tell(ticket.id, float(rng.random() < 0.1) * {"a": 1, "b": 2, "c": 9}[ticket.arm])
    assert agent.verify().ok


def test_silence_and_a_filter_open_again(tmp_path: Any) -> None:
    policy = Filtered(UCB1(), repeats=3)
    clock = [0.0]
    for _ in range(4):
        with Agent(
            policy, tmp_path / "a.db", wait=10, silence=0.0, clock=lambda: clock[0]
        ) as agent:
            assert agent.ask(COLOURS).hold in (0, 1)
            clock[0] += 11
    with Agent(policy, tmp_path / "a.db", wait=10, silence=0.0, clock=lambda: clock[0]) as agent:
        agent.ask(COLOURS)
        assert agent.journal.counts() == (1, 3)
        assert agent.verify().ok
