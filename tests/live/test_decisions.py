"""The life of a decision: late, lost and repeated rewards, restarts, and commits that fail."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clocks import Clock

from tailproof import UCB1, Filtered, Mean, Median, ThompsonSampling, Uniform
from tailproof.live import Agent, Ask, Tell, open_journal, prune, read
from tailproof.live.export import csv_pieces
from tailproof.service.page.offline import summarised

FIVE = Filtered(UCB1(), repeats=5, estimator=Median())
COLOURS = ["red", "blue", "green"]


def full(*_: Any) -> None:
    raise OSError("no space left")


def interrupted(*_: Any) -> None:
    raise KeyboardInterrupt


def test_a_failed_commit_teaches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first reward is in the journal; the second was undone."""
    agent = Agent(UCB1(), ":memory:")
    first, second = agent.ask(COLOURS), agent.ask(COLOURS)
    agent.tell(first.id, 1.0)
    with monkeypatch.context() as patch:
        patch.setattr(agent.journal, "add_requests", full)
        with pytest.raises(OSError, match="no space left"):
            agent.act([Tell(second.id, 9.0), Ask(COLOURS)])
    assert agent.learner.learned == 1
    assert agent.tell(second.id, 5.0) == "kept"
    agent.ask(COLOURS)
    assert agent.learner.state.sums.sum() == 6
    assert agent.verify().ok


def test_another_seed_is_not_a_later_decision() -> None:
    one, two = (Agent(Uniform(), ":memory:", seed=seed) for seed in (0, 1))
    first, second = ([agent.ask(COLOURS).arm for _ in range(30)] for agent in (one, two))
    assert first[1:] != second[:-1]


def test_what_was_chosen_was_not_impossible() -> None:
    """Of 500 arms, most are not drawn by any of the 200 copies that estimate propensities."""
    agent, names = Agent(ThompsonSampling(), ":memory:"), [f"{i}" for i in range(500)]
    found = [agent.ask(names).propensity for _ in range(5)]
    assert all(share is not None and 0 < share <= 1 for share in found)


def test_names_that_spreadsheets_take_for_formulas() -> None:
    agent, names = Agent(UCB1(), ":memory:"), ["=x", "+x", "-x", "@x", "x=@"]
    for name in names:
        agent.ask(["a"], ticket=name)
    lines = "".join(csv_pieces(agent.journal)).splitlines()[1:]
    assert [line.split(",")[0] for line in lines] == ["'=x", "'+x", "'-x", "'@x", "x=@"]


def test_an_offer_that_was_rolled_back_is_stored_again(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent(UCB1(), ":memory:")
    with monkeypatch.context() as patch:
        patch.setattr(agent.journal, "add_requests", full)
        with pytest.raises(OSError, match="no space left"):
            agent.act([Ask(COLOURS), Ask(COLOURS)])
    ticket = agent.ask(COLOURS, ticket="a")
    assert agent.ask(COLOURS, ticket="a") == ticket
    assert read(agent.journal).frame["arm"].tolist() == [ticket.arm]


def test_rewards_go_to_the_number_of_the_arm() -> None:
    """Numbers are given as names come, not as they are sorted within an offer."""
    agent = Agent(UCB1(), ":memory:")
    for name, reward in (("b", 1.0), ("a", 7.0)):
        agent.tell(agent.ask([name]).id, reward)
    agent.ask(["a", "b"])
    assert agent.learner.state.sums.tolist() == [[1, 7]]


def test_silence_is_a_reward_at_the_end_of_the_window() -> None:
    """In the order of the asks, purchases and zeros alike."""
    clock = Clock()
    agent = Agent(UCB1(), ":memory:", wait=60, silence=0.0, clock=clock)
    tickets = []
    for _ in range(4):
        tickets.append(agent.ask(COLOURS).id)
        clock.now += 10
    assert agent.tell(tickets[2], 20.0) == "kept"
    assert agent.tell(tickets[0], 30.0) == "kept"
    agent.ask(COLOURS)
    assert rewards(agent) == []
    clock.now += 39
    agent.ask(COLOURS)
    assert rewards(agent) == [30.0, 0.0]
    clock.now += 100
    assert agent.tell(tickets[3], 5.0) == "late"
    assert rewards(agent)[:4] == [30.0, 0.0, 20.0, 0.0]
    frame = read(agent.journal).frame
    assert frame.status.tolist()[:4] == ["told", "silent", "told", "silent"]
    assert frame.late.tolist()[3] == 5.0
    assert agent.verify().ok


def test_events_add_up() -> None:
    clock = Clock()
    agent = Agent(UCB1(), ":memory:", wait=60, silence=0.0, rewards="sum", clock=clock)
    ticket = agent.ask(COLOURS).id
    assert [agent.tell(ticket, 20.0, "order 1"), agent.tell(ticket, 20.0, "order 1")] == [
        *("kept", "duplicate")
    ]
    assert [agent.tell(ticket, 5.0), agent.tell(ticket, 5.0)] == ["kept", "duplicate"]
    assert agent.tell(ticket, -8.0, event="refund 1") == "kept"
    with pytest.raises(ValueError, match="added to others must be finite"):
        agent.tell(ticket, float("inf"), "order 2")
    clock.now += 61
    assert agent.tell(ticket, 100.0, "order 3") == "late"
    agent.ask(COLOURS)
    assert rewards(agent) == [17.0]
    frame = read(agent.journal).frame
    assert (frame.reward[0], frame.late[0], frame.events[0]) == (17.0, 100.0, 4)
    assert agent.verify().ok


def test_sums_without_silence_are_learned_at_the_end_of_the_window() -> None:
    clock = Clock()
    agent = Agent(UCB1(), ":memory:", wait=60, rewards="sum", clock=clock)
    one, _ = agent.ask(COLOURS).id, agent.ask(COLOURS).id
    agent.tell(one, 1.0, "a")
    agent.tell(one, 2.0, "b")
    assert rewards(agent) == []
    clock.now += 61
    agent.ask(COLOURS)
    assert rewards(agent) == [3.0, None]  # the other was lost
    assert read(agent.journal).frame.status.tolist() == ["told", "lost", "pending"]


def test_only_the_first_event_counts_unless_they_add_up() -> None:
    agent = Agent(FIVE, ":memory:")
    ticket = agent.ask(COLOURS).id
    statuses = [agent.tell(ticket, float(i), event) for i, event in enumerate(["a", "b", None])]
    assert statuses == ["kept", "duplicate", "duplicate"]
    assert read(agent.journal).frame.events.tolist() == [1]


def rewards(agent: Agent) -> list[float | None]:
    """Return the rewards that count, in the order of their outcomes; None for one that is lost."""
    return [row[1] for row in agent.journal.outcomes(0, agent.journal.outcome_count())]


def test_a_restart_knows_what_came_and_when(tmp_path: Path) -> None:
    clock = Clock()
    with Agent(FIVE, tmp_path / "a.db", wait=60, clock=clock) as agent:
        for ticket in [agent.ask(COLOURS).id for _ in range(3)][:2]:
            agent.tell(ticket, 1.0)
    with Agent(FIVE, tmp_path / "a.db", clock=clock) as again:
        assert again.standing().pending == 1
        assert again.recipe.wait == 60
        clock.now += 61
        again.ask(COLOURS)
        assert rewards(again) == [1, 1, None]


def test_a_filter_learns_when_there_are_enough_rewards_of_an_arm(tmp_path: Path) -> None:
    """Each request is a decision of its own; rewards wait in the learner, also over a restart."""
    with Agent(FIVE, tmp_path / "a.db", explore=1.0, seed=1) as agent:
        for i in range(23):
            agent.tell(agent.ask(COLOURS).id, float(i))
    with Agent(FIVE, tmp_path / "a.db") as agent:
        frame = read(agent.journal).frame
        counts = frame.arm.value_counts()
        waiting = {name: len(left) for (_, name), left in agent.learner.left.items()}
        assert waiting == {name: n % 5 for name, n in counts.items() if n % 5}
        assert agent.learner.state.decisions[0] == sum(n // 5 for n in counts)
        for name, number in agent.learner.numbers.items():
            own = frame.reward[frame.arm == name].to_numpy()
            groups = own[: len(own) // 5 * 5].reshape(-1, 5)
            assert agent.learner.state.inner.sums[0, number] == np.median(groups, axis=1).sum()
        assert read(agent.journal).replay(UCB1()).decisions.tolist() == [23]
        assert agent.verify().ok


def test_an_interrupted_act_leaves_the_agent_free(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent(FIVE, ":memory:")
    with monkeypatch.context() as patch:
        patch.setattr(agent.journal, "add_requests", interrupted)
        with pytest.raises(KeyboardInterrupt):
            agent.ask(COLOURS)
    assert agent.ask(COLOURS).id == "#0"
    with monkeypatch.context() as patch:
        patch.setattr(agent.journal, "add_requests", lambda *_: agent.tell("x", 1.0))
        with pytest.raises(RuntimeError, match="within its own ask or tell"):
            agent.ask(COLOURS)
    assert agent.ask(COLOURS).id == "#1"
    assert agent.verify().ok


def test_an_interrupt_in_the_middle_of_learning_teaches_nothing_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent = Agent(UCB1(), ":memory:")
    for _ in range(3):
        agent.tell(agent.ask(COLOURS).id, 1.0)
    teach = agent.learner._teach

    def half(*given: Any) -> None:
        teach(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(agent.learner, "_teach", half)
        with pytest.raises(KeyboardInterrupt):
            agent.ask(COLOURS)
    agent.ask(COLOURS)
    assert agent.learner.state.counts.sum() == 3
    assert agent.verify().ok


def test_a_policy_without_chance_is_the_same_for_all_until_a_reward_comes() -> None:
    """No reward is imagined; the first choices are random among what was never tried."""
    agent = Agent(UCB1(), ":memory:", seed=3)
    first = {agent.ask(COLOURS).arm for _ in range(40)}
    assert first == set(COLOURS)
    for reward, colour in enumerate(COLOURS):
        agent.tell(agent.ask([colour]).id, float(reward))
    later = [agent.ask(COLOURS) for _ in range(40)]
    assert {ticket.arm for ticket in later} == {"green"}
    assert {ticket.propensity for ticket in later} == {1.0}


def test_everything_the_constructor_takes_can_be_read_back(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "wait": "2h", "silence": 0.5, "rewards": "sum", "control": ("red", 0.1), "floor": 0.02,
        "explore": 0.05, "arms": COLOURS, "seed": 7, "dim": 5,
    }  # fmt: skip
    with Agent(UCB1(), tmp_path / "a.db", **given) as agent:
        recipe = agent.recipe
    with Agent(UCB1(), tmp_path / "a.db") as again:
        assert again.recipe == recipe
        assert (recipe.wait, recipe.silence, recipe.rewards) == (7200, 0.5, "sum")
        assert (recipe.control, recipe.arms) == (("red", 0.1), tuple(sorted(COLOURS)))
    with Agent(recipe, tmp_path / "a.db") as again:
        assert not again.changed


def test_sums_beyond_all_floats_poison_nothing(place: str) -> None:
    """Two rewards of 1e308 of one ticket: the outcome is infinite, and all goes on."""
    clock, file = Clock(), open_journal(place, durable=False)
    agent = Agent(UCB1(), file, wait=60, silence=0.0, rewards="sum", clock=clock)
    ticket, other = agent.ask(COLOURS).id, agent.ask(COLOURS).id
    statuses = [agent.tell(ticket, 1e308, event) for event in ("a", "b", "b", "b")]
    assert [*statuses, agent.tell("v1", 1e308), agent.tell("v1", 1e308)] == [
        *("kept", "kept", "duplicate", "duplicate", "unknown", "unknown")
    ]
    clock.now += 61
    while not agent.tick():
        pass
    for name in "ab":
        assert agent.tell(other, -1e308, name) == "late"
    rows = read(agent.journal).frame
    assert rows["reward"].tolist() == [math.inf, 0.0]
    assert rows["late"].tolist()[1] == -math.inf
    page = summarised(agent.journal, Mean(), name="shop")
    assert page["tickets"]["late_sum"] == "-Infinity"
    clock.now += 1
    agent.tell(agent.ask(COLOURS).id, 1.0)
    clock.now += 61
    while not agent.tick():
        pass
    assert prune(agent, clock.now).outcomes == 2
    assert agent.verify().ok
    agent.close()
