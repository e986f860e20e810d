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
)
from tailproof.live import Agent, import_history, open_journal, prune, read
from tailproof.policies.base import Policy
from tailproof.service.page.summary import Summary
from tailproof.stats.aims import Aim
from tailproof.stats.any_look import compared
from tailproof.stats.comparison import Comparison

WAIT = 100.0
LAWS = {"red": 0.0, "blue": 2.0, "<b>green</b>": 1.0}


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def use(agent: Agent, clock: Clock, requests: int, seed: int = 0) -> None:
    """Make requests whose rewards are wild, late, or lost."""
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
    summary = Summary(agent.journal, aim or Median(), **more)
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
    told, late = frame["reward"].notna(), frame["late"].notna()
    tickets = found["tickets"]
    assert late.any()
    assert tickets["asked"] == len(frame) == 700
    assert tickets["rewards"] == told.sum()
    assert tickets["late"] == late.sum()
    ended = frame["status"] != "pending"
    assert tickets["pending"] == (~ended).sum()
    assert tickets["lost"] == (frame["status"] == "lost").sum()
    for arm in found["arms"]:
        mine = frame["arm"] == arm["name"]
        assert arm["pulls"] == mine.sum()
        assert arm["rewards"] == (mine & told & ended).sum()
        assert arm["pending"] == (mine & ~ended).sum()
        assert arm["missing"] == (mine & ended & ~told).sum()
        assert arm["late"] == (mine & late).sum()
        assert arm["late_sum"] == pytest.approx(frame["late"][mine].sum())
    history = found["history"]
    by_arm = {arm["name"]: sum(arm["pulls"]) for arm in history["arms"]}
    assert sum(by_arm.values()) + sum(history["others"]) == ended.sum()
    assert history["ends"] == sorted(history["ends"])
    assert json.loads(json.dumps(found, allow_nan=False)) == found


@pytest.mark.parametrize("rewards", ["first", "sum"])
def test_silence_is_judged_too(rewards: Any) -> None:
    """Of a hundred visitors ten buy for 20, five of them twice."""
    clock = Clock()
    agent = Agent(
        UCB1(), ":memory:", wait=WAIT, silence=0.0, rewards=rewards, clock=clock, explore=1.0
    )
    tickets = [agent.ask(["red", "blue"]) for _ in range(100)]
    for i, ticket in enumerate(tickets[:10]):
        agent.tell(ticket.id, 20.0, "one")
        if i % 2:
            agent.tell(ticket.id, 5.0, "two")
    clock.now += WAIT + 1
    agent.tell(tickets[50].id, 77.0)
    summary = caught_up(agent, clock, Mean())
    found = summary.to_dict()
    shown = found["tickets"]
    assert (shown["asked"], shown["pending"], shown["silent"]) == (100, 0, 90)
    assert (shown["late"], shown["late_sum"], shown["lost"]) == (1, 77.0, 0)
    assert sum(arm["rewards"] for arm in found["arms"]) == 100
    total = sum(arm["estimate"] * arm["rewards"] for arm in found["arms"])
    assert total == pytest.approx(225 if rewards == "sum" else 200)
    assert (found["silence"], found["rewards"]) == (0.0, rewards)


def test_following_is_reading_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    agent = Agent(AutoFiltered(UCB1(), repeats=3), ":memory:", wait=WAIT, clock=clock)
    aims: list[Aim] = [Median(), Mean(), CappedMean(0.9), Quantile(0.8)]
    following = [Summary(agent.journal, a) for a in aims]
    for part in range(20):
        use(agent, clock, 130, seed=part)
        for one in following:
            one.refresh()
    monkeypatch.setattr("tailproof.service.page.counts._CHUNK", 250)  # many chunks of other sizes
    for one, aim in zip(following, aims, strict=True):
        pair = one.to_dict(), caught_up(agent, clock, aim).to_dict()
        first, second = pair
        assert first == second
        assert first["aim"] == aim.name
        assert first["tickets"]["asked"] == 2600
        assert len(first["history"]["ends"]) > 10


def test_charts_begin_with_the_first_request_after_an_imported_history() -> None:
    clock = Clock()
    agent = Agent(UCB1(), ":memory:", wait=WAIT, clock=clock)
    import_history(agent, arm=["red", "blue"] * 50, reward=np.arange(100.0))
    assert caught_up(agent, clock, Mean()).to_dict()["history"]["ends"] == []
    use(agent, clock, 40, seed=1)
    found = caught_up(agent, clock, Mean()).to_dict()
    ended = agent.journal.outcome_count() - 100
    assert sum(sum(arm["pulls"]) for arm in found["history"]["arms"]) == ended > 20
    assert sum(arm["rewards"] for arm in found["arms"]) > 100


def test_an_experiment_whose_rewards_are_all_lost_has_a_page() -> None:
    clock = Clock()
    agent = Agent(UCB1(), ":memory:", wait=WAIT, clock=clock)
    for _ in range(600):
        agent.ask(["red", "blue"])
    clock.now += 2 * WAIT
    while not agent.tick():
        pass
    found = caught_up(agent, clock, Mean()).to_dict()
    assert found["tickets"]["lost"] == 600
    assert found["pay"]["verdict"] != "paid"


def test_what_was_pruned_is_not_pending() -> None:
    clock = Clock()
    agent = Agent(LinStudentUCB(), ":memory:", wait=WAIT, clock=clock)
    use(agent, clock, 1500, seed=1)
    followed = caught_up(agent, clock, Mean())
    before = followed.to_dict()["tickets"]["pending"]
    assert prune(agent, clock.now).outcomes > 500
    assert caught_up(agent, clock, Mean()).to_dict()["tickets"]["pending"] == before
    followed.refresh()
    assert followed.to_dict()["tickets"]["pending"] == before


def test_estimates_and_intervals_are_those_of_all_rewards() -> None:
    clock = Clock()
    agent = Agent(UCB1(), ":memory:", wait=WAIT, clock=clock, explore=1.0)
    rewards: dict[str, list[float]] = {"red": [], "blue": []}
    rng = np.random.default_rng(1)
    for _ in range(2500):
        ticket = agent.ask(["red", "blue"])
        rewards[ticket.arm].append(float(rng.standard_cauchy()))
        agent.tell(ticket.id, rewards[ticket.arm][-1])
    assert min(map(len, rewards.values())) > 1000
    for aim in (Median(), CappedMean(0.9), Quantile(0.8)):
        arms = caught_up(agent, clock, aim).to_dict()["arms"]
        samples = [np.sort(rewards[arm["name"]]) for arm in arms]
        found = Comparison.of(aim.among(samples), ["red", "blue"], samples, any_look=True)
        shown = [[arm["estimate"], arm["low"], arm["high"]] for arm in arms]
        np.testing.assert_array_equal(shown, found.table)


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
    first, forecast = lead["words"].split(". ")
    assert first == f"{lead['arm']} leads so far; not sure yet against {other}"
    assert forecast.startswith("About ")
    assert not lead["sure"]
    ask(300, ["a", "b"], 5.0)
    lead = caught_up(agent, clock, costs=costs).to_dict()["lead"]
    assert lead["words"] == (
        f"{best} leads, and that is sure: the evidence over every other arm holds at any look."
    )
    assert lead["sure"]
    assert "at every look" in lead["how"]
    agent.ask(["a", "b", "c"])
    lead = caught_up(agent, clock, costs=costs).to_dict()["lead"]
    assert lead["words"] == f"{best} leads so far; c has too few rewards."
    assert not lead["sure"]


def test_an_arm_that_is_no_longer_offered_leads_no_more() -> None:
    agent, clock = Agent(UCB1(), ":memory:"), Clock()
    for day in (["old", "a", "b"], ["a", "b"]):
        for _ in range(1200):
            ticket = agent.ask(day)
            agent.tell(ticket.id, {"old": 9.0, "a": 1.0, "b": 2.0}[ticket.arm])
    found = caught_up(agent, clock).to_dict()
    assert found["lead"]["arm"] == "b"
    assert [arm["name"] for arm in found["arms"] if not arm["here"]] == ["old"]


def test_an_arm_of_two_offers_is_there_while_one_of_them_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of the offers that were read together, the one that came first is asked for to the end."""
    monkeypatch.setattr("tailproof.service.page.counts._LATELY", 5)
    agent, clock = Agent(UCB1(), ":memory:"), Clock()
    for offer in (["a", "b"], ["a", "b", "old"], *[["a", "b"]] * 20):
        agent.tell(agent.ask(offer).id, 1.0)
    arms = caught_up(agent, clock).to_dict()["arms"]
    assert {arm["name"]: arm["here"] for arm in arms} == {"a": True, "b": True, "old": False}


def told(rewards: dict[str, list[float]], aim: Aim, features: bool = False) -> dict[str, Any]:
    """Return the summary of an agent that was told these rewards."""
    policy: Policy[Any] = LinStudentUCB() if features else UCB1()
    agent, clock = Agent(policy, ":memory:"), Clock()
    for name, own in rewards.items():
        for reward in own:
            agent.tell(agent.ask({name: [1.0, reward]} if features else [name]).id, reward)
    return caught_up(agent, clock, aim).to_dict()


def test_equal_estimates_lead_nothing() -> None:
    zeros = {"a": [0.0] * 60 + [5.0] * 3, "b": [0.0] * 60, "c": [-1.0] * 40}
    lead = told(zeros, Median())["lead"]
    assert (lead["arm"], lead["sure"]) == (None, False)
    assert lead["words"] == "Nothing leads: a and b are equal so far."


def test_a_mean_without_bounds_is_never_sure() -> None:
    rng = np.random.default_rng(0)
    wild = {"a": rng.pareto(1.5, 50).tolist(), "b": (9 + rng.pareto(1.5, 400)).tolist()}
    found = told(wild, Mean())
    assert [(arm["low"], arm["high"]) for arm in found["arms"]] == [(None, None)] * 2
    assert found["arms"][0]["estimate"] == pytest.approx(np.mean(wild["b"]))
    words = "b leads so far; never sure, as a mean of rewards without bounds has no interval."
    assert (found["lead"]["words"], found["lead"]["sure"]) == (words, False)
    assert "no interval can hold" in found["lead"]["how"]
    clicks = {"a": [0.0, 0.0, 0.0, 1.0] * 100, "b": [0.0, 1.0, 1.0, 1.0] * 100}
    lead = told(clicks, Mean())["lead"]
    assert (lead["arm"], lead["sure"]) == ("b", True)
    assert "between 0 and 1" in lead["how"]


def test_a_learned_cap_is_named_with_what_is_proved() -> None:
    bought = {"a": [0.0, 0.0, 0.0, 10.0] * 100, "b": [0.0, 10.0, 10.0, 20.0] * 100}
    lead = told(bought, CappedMean(0.9))["lead"]
    assert (lead["arm"], lead["sure"]) == ("b", True)
    assert "Rewards are capped at 20." in lead["how"]
    assert "proved for a fixed cap" in lead["how"]


def test_arms_that_were_chosen_by_features_are_not_compared() -> None:
    found = told({"a": [0.0, 1.0] * 90, "b": [9.0, 8.0] * 90}, Median(), features=True)
    lead = found["lead"]
    assert (lead["arm"], lead["sure"]) == (None, False)
    assert lead["words"] == (
        "The policy chose arms by features, so these estimates cannot tell which arm leads; "
        "`tailproof judge` can."
    )
    assert "requests that got the arm" in lead["how"]
    assert [(arm["name"], arm["estimate"]) for arm in found["arms"]] == [("b", 8.5), ("a", 0.5)]
    assert {arm["low"] for arm in found["arms"]} == {arm["high"] for arm in found["arms"]} == {None}


def test_arms_are_compared_again_only_if_there_is_something_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[int] = []

    def counted(*given: Any, **more: Any) -> Comparison:
        calls.append(1)
        return compared(*given, **more)

    monkeypatch.setattr("tailproof.service.page.summary.compared", counted)
    agent, clock = Agent(UCB1(), ":memory:"), Clock()
    for reward in range(400):
        agent.tell(agent.ask(["a", "b"]).id, reward % 7)
    summary = caught_up(agent, clock)
    first = summary.to_dict()
    summary.refresh()
    assert summary.to_dict() == first
    assert len(calls) == 1
    agent.tell(agent.ask(["a", "b"]).id, 3.0)
    agent.ask(["a", "b"])
    summary.refresh()
    summary.to_dict()
    assert len(calls) == 2
    monkeypatch.setattr("tailproof.service.page.counts._CHUNK", 20)
    late = Summary(agent.journal, Median())
    while not late.refresh():
        late.to_dict()
    late.to_dict()
    assert 2 + 5 < len(calls) < 2 + 10  # at 20, 40, 80, 160, 320 and at the end


def test_cells_are_fewer_where_arms_are_many() -> None:
    agent, clock = Agent(UCB1(), ":memory:"), Clock()
    agent.ask([f"arm {i}" for i in range(500)])
    summary = caught_up(agent, clock)
    assert {sample.most for sample in summary.counts.followed.samples} == {4096}


def test_infinite_rewards_are_words() -> None:
    agent, clock = Agent(UCB1(), ":memory:"), Clock()
    for reward in [-np.inf, np.inf] * 100:
        agent.tell(agent.ask(["a", "b"]).id, reward)
    for aim in (Median(), Mean(), CappedMean(), Quantile(0.9)):
        found = caught_up(agent, clock, aim).to_dict()
        json.dumps(found, allow_nan=False)
    assert "Infinity" in [arm["estimate"] for arm in found["arms"]]


def test_an_agent_writes_while_a_summary_reads(place: str) -> None:
    clock = Clock()
    with Agent(UCB1(), place, clock=clock) as agent:
        for reward in range(60):
            agent.tell(agent.ask(["a", "b"]).id, reward)
        summary = Summary(open_journal(place), Median())
        with summary.counts.reader.moment():
            before = summary.counts.reader.count()
            agent.tell(agent.ask(["a", "b"]).id, 1.0)  # nobody waits
            assert summary.counts.reader.count() == before
        agent.ask(["a", "b"])
        summary.refresh()
        tickets = summary.to_dict()["tickets"]
        assert (tickets["rewards"], tickets["pending"]) == (61, 1)
        summary.counts.reader.close()


def test_the_chart_of_a_median_shows_rewards_and_its_trail_goes_on_in_time() -> None:
    """Rewards come out of order; those beyond 1 are no shares, and are not cut to them."""
    clock, rng = Clock(), np.random.default_rng(3)
    agent = Agent(UCB1(), ":memory:", wait=WAIT, clock=clock, control=("a", 0.3), explore=1.0)
    due: list[tuple[float, str]] = []
    for _ in range(1500):
        clock.now += 1
        due.append((clock.now + rng.uniform(0, 50), agent.ask(["a", "b"]).id))
        for entry in [entry for entry in due if entry[0] <= clock.now]:
            agent.tell(entry[1], float(rng.uniform(20, 30)))
            due.remove(entry)
    found = caught_up(agent, clock).to_dict()
    for arm in found["history"]["arms"]:
        assert all(20 < middle < 30 for middle in arm["middle"] if middle is not None)
    times = [at for at, *_ in found["pay"]["trail"]]
    assert len(times) > 3
    assert times == sorted(times)
