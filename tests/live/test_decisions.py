"""The life of a decision: late, lost and repeated rewards, restarts, and commits that fail."""

from pathlib import Path
from typing import Any

import pytest

from tailproof import UCB1, Filtered, Median, ThompsonSampling, Uniform
from tailproof.live import Agent, Ask, Tell, read
from tailproof.live.agent import _Pending
from tailproof.live.export import _escaped
from tailproof.live.offers import Offer

FIVE = Filtered(UCB1(), repeats=5, estimator=Median())
COLOURS = ["red", "blue", "green"]


class Clock:
    """A time that tests move."""

    now = 1e9

    def __call__(self) -> float:
        return self.now


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
        patch.setattr(agent.journal, "add_tickets", full)
        with pytest.raises(OSError, match="no space left"):
            agent.act([Tell(second.id, 9.0), Ask(COLOURS)])
    assert agent.learner.learned == 1
    assert agent.tell(second.id, 5.0) == "kept"
    agent.ask(COLOURS)
    assert agent.learner.state.sums.sum() == 6
    assert agent.verify().ok


def test_ctrl_c_is_for_its_own_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread that shares the commit is told that it was rolled back."""
    agent, other = Agent(FIVE, ":memory:"), _Pending(Ask(COLOURS))
    agent._enqueue([other])
    with monkeypatch.context() as patch:
        patch.setattr(agent.journal, "add_tickets", interrupted)
        with pytest.raises(KeyboardInterrupt):
            agent.ask(COLOURS)
    assert other.done
    assert isinstance(other.error, RuntimeError)


def test_a_duplicate_changes_nothing_while_its_decision_is_open() -> None:
    agent = Agent(FIVE, ":memory:")
    first, *others = [agent.ask(COLOURS).id for _ in range(5)]
    assert [agent.tell(first, 1.0), agent.tell(first, 9.0)] == ["kept", "duplicate"]
    assert [agent.tell(ticket, 2.0) for ticket in others] == ["kept"] * 4
    assert rewards(agent) == [[1, 2, 2, 2, 2]]


def test_late_rewards_are_kept_and_not_learned() -> None:
    clock = Clock()
    agent = Agent(FIVE, ":memory:", wait=60, clock=clock)
    tickets = [agent.ask(COLOURS).id for _ in range(5)]
    for ticket in tickets[:3]:
        agent.tell(ticket, 1.0)
    clock.now += 61
    assert agent.tell(tickets[3], 7.0) == "late"
    agent.ask(COLOURS)
    assert rewards(agent) == [[1, 1, 1]]


def test_rewards_after_the_wait_count_as_lost() -> None:
    """Three of five came in time: the loss is 1 − (3 + 1)/(5 + 1)."""
    clock = Clock()
    agent = Agent(FIVE, ":memory:", wait=60, clock=clock)
    tickets = [agent.ask(COLOURS).id for _ in range(5)]
    for ticket in tickets[:3]:
        agent.tell(ticket, 1.0)
    clock.now += 61
    assert {agent.tell(ticket, 1.0) for ticket in tickets[3:]} == {"late"}
    agent.ask(COLOURS)
    assert agent.loss == pytest.approx(1 / 3)


def test_a_restart_knows_what_came_and_when(tmp_path: Path) -> None:
    clock = Clock()
    with Agent(FIVE, tmp_path / "a.db", wait=60, clock=clock) as agent:
        for ticket in [agent.ask(COLOURS).id for _ in range(3)][:2]:
            agent.tell(ticket, 1.0)
    with Agent(FIVE, tmp_path / "a.db", wait=60, clock=clock) as again:
        assert again.standing().pending == 3
        tickets = [again.ask(COLOURS) for _ in range(3)]
        assert [ticket.hold for ticket in tickets] == [0, 0, 1]
        again.tell(tickets[0].id, 1.0)
    clock.now += 59
    with Agent(FIVE, tmp_path / "a.db", wait=60, clock=clock) as last:
        last.ask(COLOURS)
        assert last.journal.counts()[0] == 0
        clock.now += 5
        last.ask(COLOURS)
        assert last.journal.counts()[0] == 1


def test_a_snapshot_is_what_was_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailproof.live.agent._LEAST_APART", 4)
    monkeypatch.setattr("tailproof.live.agent._BYTES_AN_OUTCOME", 10**9)
    with Agent(UCB1(), tmp_path / "a.db") as agent:
        for reward in range(10):
            agent.tell(agent.ask(COLOURS).id, reward)
        agent.ask(COLOURS)
        state, recent = (
            agent.learner.to_bytes(),
            [one and one.value for one in agent.learner._recent],
        )
        assert len(agent.journal.snapshots()) == 2
    with Agent(UCB1(), tmp_path / "a.db") as again:
        assert again.learner.learned == 10
        assert again.learner.to_bytes() == state
        assert [one and one.value for one in again.learner._recent] == recent


def test_a_propensity_that_was_changed_is_found() -> None:
    agent = Agent(UCB1(), ":memory:")
    for _ in range(5):
        agent.tell(agent.ask(COLOURS).id, 1.0)
    agent.journal.execute("UPDATE decision SET propensity = 0.123 WHERE id = 3")
    found = agent.verify()
    assert found.differing == [3]
    assert found.changed == ["decision 3"]


def test_another_seed_is_not_a_later_decision() -> None:
    one, two = (Agent(Uniform(), ":memory:", seed=seed) for seed in (0, 1))
    first, second = ([agent.ask(COLOURS).arm for _ in range(30)] for agent in (one, two))
    assert first[1:] != second[:-1]


def test_what_was_chosen_was_not_impossible() -> None:
    """Of 500 arms, most are not drawn by any of the 200 copies that estimate propensities."""
    agent, names = Agent(ThompsonSampling(), ":memory:"), [f"{i}" for i in range(500)]
    found = [agent.ask(names).propensity for _ in range(5)]
    assert all(share is not None and 0 < share <= 1 for share in found)


def test_offers_differ_by_every_vector() -> None:
    keys = {Offer.of({"a": [1.0], "b": [x]}).key for x in (2.0, 3.0)}
    assert len(keys) == 2


def test_what_is_left_of_an_outcome_is_learned_if_it_is_enough() -> None:
    agent = Agent(FIVE, ":memory:")
    for ticket in [agent.ask(COLOURS).id for _ in range(5)]:
        agent.tell(ticket, 1.0)
    log = read(agent.journal)
    assert log.replay(Filtered(UCB1(), repeats=3)).decisions.tolist() == [2]  # 3 and 2 of 5
    assert log.replay(Filtered(UCB1(), repeats=4)).decisions.tolist() == [1]  # 1 is too few


def test_names_that_spreadsheets_take_for_formulas() -> None:
    assert [_escaped(f"{sign}x") for sign in "=+-@"] == ["'=x", "'+x", "'-x", "'@x"]
    assert _escaped("x=@") == "x=@"


def test_an_offer_that_was_rolled_back_is_stored_again(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent(UCB1(), ":memory:")
    with monkeypatch.context() as patch:
        patch.setattr(agent.journal, "add_tickets", full)
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


def rewards(agent: Agent) -> list[list[float]]:
    """Return the rewards of all outcomes, [] for one that was given up."""
    found = agent.journal.outcomes(0, agent.journal.counts()[0])
    return [[] if one.rewards is None else one.rewards.tolist() for one in found]


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
    assert rewards(agent) == [[30.0], [0.0]]
    clock.now += 100
    assert agent.tell(tickets[3], 5.0) == "late"
    assert rewards(agent)[:4] == [[30.0], [0.0], [20.0], [0.0]]
    frame = read(agent.journal).frame
    assert frame.fate.tolist()[:4] == ["learned", "silent", "learned", "late"]
    assert frame.late.tolist()[3] == 5.0
    assert agent.verify().ok


def test_silence_fills_up_a_shared_decision() -> None:
    clock = Clock()
    agent = Agent(FIVE, ":memory:", wait=60, silence=0.0, clock=clock)
    tickets = [agent.ask(COLOURS) for _ in range(6)]
    assert [ticket.hold for ticket in tickets] == [0] * 5 + [1]
    assert agent.tell(tickets[1].id, 7.0) == "kept"
    clock.now += 60
    agent.ask(COLOURS)
    assert rewards(agent) == [[0.0, 7.0, 0.0, 0.0, 0.0]]
    assert agent.loss == 0


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
    assert rewards(agent) == [[17.0]]
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
    assert rewards(agent) == [[3.0], []]  # the other was lost
    assert read(agent.journal).frame.fate.tolist() == ["learned", "lost", "pending"]


@pytest.mark.parametrize("wrong", [{"silence": float("nan")}, {"rewards": "last"}])
def test_what_rewards_cannot_mean(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Agent(UCB1(), ":memory:", **wrong)
