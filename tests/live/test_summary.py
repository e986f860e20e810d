"""Summaries against the journals that they follow."""

import json
from typing import Any

import numpy as np
import pytest

from tailproof import (
    UCB1,
    AutoFiltered,
    CappedMean,
    LinStudentUCB,
    Mean,
    Median,
    Negated,
    Quantile,
    calibrate,
)
from tailproof.live import Agent, open_journal, read
from tailproof.live.summary import Summary
from tailproof.policies.base import Policy
from tailproof.stats.aims import Aim

WAIT = 100.0
LAWS = {"red": 0.0, "blue": 2.0, "<b>green</b>": 1.0}


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def use(agent: Agent, clock: Clock, requests: int, seed: int = 0) -> None:
    """Make requests whose rewards are wild, late, lost, or come after their hold has ended."""
    rng = np.random.default_rng(seed)
    out: list[tuple[float, str, float]] = []
    for _ in range(requests):
        clock.now += 1
        ticket = agent.ask(list(LAWS))
        lot, reward = rng.random(), LAWS[ticket.arm] + rng.standard_cauchy()
        delay = rng.exponential(10) if lot > 0.1 else 5 * WAIT
        if lot > 0.05:
            out.append((clock.now + delay, ticket.id, reward))
        for due in [one for one in out if one[0] <= clock.now]:
            agent.tell(*due[1:])
            out.remove(due)


def caught_up(agent: Agent, clock: Clock, aim: Aim | None = None, **more: Any) -> Summary:
    summary = Summary(agent.journal, agent.policy, aim or Median(), wait=WAIT, clock=clock, **more)
    while not summary.refresh():
        pass
    return summary


@pytest.mark.parametrize("policy", [AutoFiltered(UCB1(), repeats=5), LinStudentUCB()], ids=repr)
def test_numbers_are_those_of_the_journal(policy: Policy[Any]) -> None:
    clock = Clock()
    agent = Agent(policy, ":memory:", wait=WAIT, clock=clock)
    use(agent, clock, 700)
    found = caught_up(agent, clock).to_dict()
    frame = read(agent.journal).frame
    told, late = frame["reward"].notna(), frame["fate"] == "late"
    tickets = found["tickets"]
    assert late.any()
    assert tickets["asked"] == len(frame) == 700
    assert tickets["rewards"] == (told & ~late).sum()
    assert tickets["late"] == late.sum()
    assert tickets["pending"] + tickets["overdue"] + tickets["lost"] == (~told).sum()
    for arm in found["arms"]:
        mine = frame["arm"] == arm["name"]
        assert arm["pulls"] == mine.sum()
        assert arm["rewards"] == (mine & told & ~late).sum()
        assert arm["pending"] + arm["missing"] == (mine & (~told | late)).sum()
    ended = [ticket for ticket in frame["hold"] if ticket in agent.journal.ended(0)]
    history = found["history"]
    by_arm = {arm["name"]: sum(arm["pulls"]) for arm in history["arms"]}
    assert sum(by_arm.values()) + sum(history["others"]) == len(ended)
    assert history["ends"] == sorted(history["ends"])
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_overdue_tickets_are_those_older_than_the_wait() -> None:
    clock = Clock()
    agent = Agent(AutoFiltered(UCB1()), ":memory:", wait=WAIT, clock=clock)
    for _ in range(5):
        agent.ask(["red", "blue"])
    clock.now += WAIT / 2
    agent.ask(["red", "blue"])
    clock.now += WAIT / 2 + 1
    tickets = caught_up(agent, clock).to_dict()["tickets"]
    assert (tickets["pending"], tickets["overdue"], tickets["lost"]) == (1, 5, 0)


def test_following_is_reading_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    agent = Agent(AutoFiltered(UCB1(), repeats=3), ":memory:", wait=WAIT, clock=clock)
    aims: list[Aim] = [Median(), Mean(), CappedMean(0.9), Quantile(0.8)]
    following = [Summary(agent.journal, agent.policy, a, wait=WAIT, clock=clock) for a in aims]
    for part in range(20):
        use(agent, clock, 130, seed=part)
        for one in following:
            one.refresh()
    monkeypatch.setattr("tailproof.live.summary._CHUNK", 250)  # many chunks of other sizes
    for one, aim in zip(following, aims, strict=True):
        pair = one.to_dict(), caught_up(agent, clock, aim).to_dict()
        first, second = ({**found, "tail": 0, "filter": 0} for found in pair)  # kept for a while
        assert first == second
        assert first["aim"] == aim.name
        assert first["tickets"]["asked"] == 2600
        assert len(first["history"]["ends"]) > 20


def test_windows_and_intervals_are_those_of_the_last_rewards() -> None:
    clock = Clock()
    agent = Agent(UCB1(), ":memory:", wait=WAIT, clock=clock, explore=1.0)
    rewards: dict[str, list[float]] = {"red": [], "blue": []}
    rng = np.random.default_rng(1)
    for _ in range(2500):
        ticket = agent.ask(["red", "blue"])
        rewards[ticket.arm].append(float(rng.standard_cauchy()))
        agent.tell(ticket.id, rewards[ticket.arm][-1])
    arms = caught_up(agent, clock).to_dict()["arms"]
    last = [np.array(rewards[arm["name"]][-1000:]) for arm in arms]
    assert min(map(len, rewards.values())) > 1000
    found = [[arm["estimate"], arm["low"], arm["high"]] for arm in arms]
    np.testing.assert_array_equal(found, Median().estimates(last, 0.975))


@pytest.mark.parametrize(("costs", "best"), [(False, "b"), (True, "a")])
def test_who_leads_and_how_sure_that_is(costs: bool, best: str) -> None:
    policy: Policy[Any] = Negated(UCB1()) if costs else UCB1()
    agent, clock = Agent(policy, ":memory:", explore=1.0), Clock()
    summary = caught_up(agent, clock, costs=costs)
    assert summary.to_dict()["arms"] == []
    agent.ask(["a", "b"])
    summary.refresh()
    lead = summary.to_dict()["lead"]
    assert (lead["arm"], lead["sure"]) == (None, False)
    noise = iter(np.random.default_rng(0).standard_normal(1000))

    def ask(times: int, offer: list[str], gap: float) -> None:
        for _ in range(times):
            ticket = agent.ask(offer)
            agent.tell(ticket.id, gap * (ticket.arm == "b") + next(noise))

    ask(60, ["a", "b"], 0.0)
    lead = caught_up(agent, clock, costs=costs).to_dict()["lead"]
    other = "a" if lead["arm"] == "b" else "b"
    assert lead["words"] == f"{lead['arm']} leads; its interval overlaps that of {other}."
    assert not lead["sure"]
    ask(300, ["a", "b"], 5.0)
    lead = caught_up(agent, clock, costs=costs).to_dict()["lead"]
    assert lead["words"] == f"{best} leads; its interval overlaps no other."
    assert lead["sure"]
    agent.ask(["a", "b", "c"])
    lead = caught_up(agent, clock, costs=costs).to_dict()["lead"]
    assert lead["words"] == f"{best} leads; c has too few rewards."


def test_an_arm_that_is_no_longer_offered_leads_no_more() -> None:
    agent, clock = Agent(UCB1(), ":memory:"), Clock()
    for day in (["old", "a", "b"], ["a", "b"]):
        for _ in range(1200):
            ticket = agent.ask(day)
            agent.tell(ticket.id, {"old": 9.0, "a": 1.0, "b": 2.0}[ticket.arm])
    found = caught_up(agent, clock).to_dict()
    assert found["lead"]["arm"] == "b"
    assert [arm["name"] for arm in found["arms"] if not arm["here"]] == ["old"]


def test_infinite_rewards_are_words() -> None:
    agent, clock = Agent(UCB1(), ":memory:"), Clock()
    for reward in [-np.inf, np.inf] * 100:
        agent.tell(agent.ask(["a", "b"]).id, reward)
    for aim in (Median(), Mean(), CappedMean(), Quantile(0.9)):
        found = caught_up(agent, clock, aim).to_dict()
        json.dumps(found, allow_nan=False)
    assert "Infinity" in [arm["high"] for arm in found["arms"]]


def test_the_tail_is_judged_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, judge, calls = Clock(), calibrate, []
    agent = Agent(UCB1(), ":memory:", clock=clock)
    summary = Summary(agent.journal, agent.policy, Median(), clock=clock)

    def counted(**more: Any) -> Any:
        calls.append(more)
        return judge(**more)

    monkeypatch.setattr("tailproof.live.summary.calibrate", counted)
    rng = np.random.default_rng(0)
    for _ in range(500):
        agent.tell(agent.ask(["a", "b"]).id, float(rng.standard_cauchy()))
        summary.refresh()
    assert 5 < len(calls) < 40
    tail = summary.to_dict()["tail"]
    assert "no mean" in tail["words"]
    assert 450 < tail["rewards"] <= 500


def test_memory_does_not_grow_with_the_journal() -> None:
    clock = Clock()
    agent = Agent(LinStudentUCB(), ":memory:", clock=clock)
    summary = Summary(agent.journal, agent.policy, Median(), clock=clock)
    history, arms = summary._history, 3
    for first in range(0, 2_000_000, 50_000):
        chosen = np.arange(50_000) % arms
        history.add(first, chosen, np.zeros(50_000), np.ones(50_000), arms)
    assert history._pulls.shape == (64, arms)
    assert 64 * 100 < len(history._rewards) < 64 * 300
    found = history.to_dict(["a", "b", "c"], [0])
    totals = [sum(arm["pulls"]) for arm in found["arms"]]
    assert totals == [666_680, 666_680, 666_640]
    sampled = np.bincount(history._arms)
    assert sampled.max() < 1.1 * sampled.min()  # although the arms take turns


def test_an_agent_writes_while_a_summary_reads(place: str) -> None:
    clock = Clock()
    with Agent(UCB1(), place, clock=clock) as agent:
        for reward in range(60):
            agent.tell(agent.ask(["a", "b"]).id, reward)
        summary = Summary(open_journal(place), agent.policy, Median(), clock=clock)
        with summary.journal.moment():
            before = summary.journal.counts()
            agent.tell(agent.ask(["a", "b"]).id, 1.0)  # nobody waits
            assert summary.journal.counts() == before
        agent.ask(["a", "b"])
        summary.refresh()
        tickets = summary.to_dict()["tickets"]
        assert (tickets["rewards"], tickets["pending"]) == (61, 1)
        summary.journal.close()
