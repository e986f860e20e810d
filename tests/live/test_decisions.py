"""The life of a decision: late, lost and repeated rewards, restarts, and commits that fail."""

from pathlib import Path
from typing import Any

import pytest

from tailproof import UCB1, Filtered, Median, ThompsonSampling, Uniform
from tailproof.live import Agent, Ask, Tell, read
from tailproof.live.agent import _Pending
from tailproof.live.holds import Desk, Hold
from tailproof.live.log import _escaped
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
        patch.setattr(agent.journal, "add_ticket", full)
        with pytest.raises(OSError, match="no space left"):
            agent.act([Tell(second.id, 9.0), Ask(COLOURS)])
    assert agent.mind.lessons == 1
    assert agent.tell(second.id, 5.0) == "learned"
    agent.ask(COLOURS)
    assert agent.mind.state.sums.sum() == 6
    assert agent.verify().ok


def test_ctrl_c_is_for_its_own_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread that shares the commit is told that it was rolled back."""
    agent, other = Agent(FIVE, ":memory:"), _Pending(Ask(COLOURS))
    agent._queue.append([other])
    with monkeypatch.context() as patch:
        patch.setattr(agent.journal, "add_ticket", interrupted)
        with pytest.raises(KeyboardInterrupt):
            agent.ask(COLOURS)
    assert other.done
    assert isinstance(other.error, RuntimeError)


def test_a_duplicate_changes_nothing_while_its_decision_is_open() -> None:
    agent = Agent(FIVE, ":memory:")
    first, *others = [agent.ask(COLOURS).id for _ in range(5)]
    assert [agent.tell(first, 1.0), agent.tell(first, 9.0)] == ["kept", "duplicate"]
    assert [agent.tell(ticket, 2.0) for ticket in others] == ["kept"] * 3 + ["learned"]
    (closing,) = agent.journal.closings(0, 1)
    assert closing.rewards.tolist() == [1, 2, 2, 2, 2]


def test_late_rewards_are_kept_and_not_learned() -> None:
    clock = Clock()
    agent = Agent(FIVE, ":memory:", wait=60, clock=clock)
    tickets = [agent.ask(COLOURS).id for _ in range(5)]
    for ticket in tickets[:3]:
        agent.tell(ticket, 1.0)
    clock.now += 61
    assert agent.tell(tickets[3], 7.0) == "late"
    (closing,) = agent.journal.closings(0, 1)
    assert closing.rewards.tolist() == [1, 1, 1]


def test_rewards_after_the_wait_count_as_lost() -> None:
    """Two of five came in time: the loss is 1 − (2 + 1)/(5 + 1)."""
    clock = Clock()
    agent = Agent(FIVE, ":memory:", wait=60, clock=clock)
    tickets = [agent.ask(COLOURS).id for _ in range(5)]
    for ticket in tickets[:2]:
        agent.tell(ticket, 1.0)
    clock.now += 61
    assert [agent.tell(ticket, 1.0) for ticket in tickets[2:]] == ["kept", "kept", "learned"]
    agent.ask(COLOURS)
    assert agent.loss == pytest.approx(0.5)


def test_the_loss_is_never_all() -> None:
    desk = Desk(5, 3, 60.0)
    desk.count(5, 0)
    assert desk.loss == pytest.approx(5 / 6)


@pytest.mark.parametrize(("delay", "patience"), [(1.0, 5.0), (9.0, 10.0)])
def test_patience_is_five_delays_and_at_most_the_wait(delay: float, patience: float) -> None:
    """A decision with enough rewards still waits for the others."""
    desk, hold = Desk(pulls=9, least=5, wait=10.0), Hold(0, b"")
    desk.add(hold, new=True)
    for number in [hold.issue(0.0) for _ in range(8)]:
        desk.tell(hold, number, delay)
    assert desk.patience == patience
    assert desk.due(9.5) == []
    assert desk.due(10.5) == [(hold, True)]


def test_a_restart_knows_what_came_and_when(tmp_path: Path) -> None:
    clock = Clock()
    with Agent(FIVE, tmp_path / "a.db", wait=60, clock=clock) as agent:
        for ticket in [agent.ask(COLOURS).id for _ in range(3)][:2]:
            agent.tell(ticket, 1.0)
    with Agent(FIVE, tmp_path / "a.db", wait=60, clock=clock) as again:
        assert again.standing().pending == 1
        tickets = [again.ask(COLOURS) for _ in range(3)]
        assert [ticket.hold for ticket in tickets] == [0, 0, 1]
        again.tell(tickets[0].id, 1.0)
    clock.now += 59
    with Agent(FIVE, tmp_path / "a.db", wait=60, clock=clock) as last:
        last.ask(COLOURS)
        assert last.journal.counts()[1] == 0
        clock.now += 5
        last.ask(COLOURS)
        assert last.journal.counts()[1] == 1


def test_a_snapshot_is_what_was_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailproof.live.agent._LEAST_APART", 4)
    monkeypatch.setattr("tailproof.live.agent._BYTES_A_LESSON", 10**9)
    with Agent(UCB1(), tmp_path / "a.db") as agent:
        for reward in range(10):
            agent.tell(agent.ask(COLOURS).id, reward)
        agent.ask(COLOURS)
        state, recent = agent.mind.to_bytes(), [one and one.value for one in agent.mind._recent]
        assert len(agent.journal.snapshots()) == 2
    with Agent(UCB1(), tmp_path / "a.db") as again:
        assert again.mind.lessons == 10
        assert again.mind.to_bytes() == state
        assert [one and one.value for one in again.mind._recent] == recent


def test_a_propensity_that_was_changed_is_found() -> None:
    agent = Agent(UCB1(), ":memory:")
    for _ in range(5):
        agent.tell(agent.ask(COLOURS).id, 1.0)
    agent.journal.execute("UPDATE hold SET propensity = 0.123 WHERE id = 3")
    assert agent.verify().differing == [3]


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
    agent, calls = Agent(UCB1(), ":memory:"), list[Any]()
    add = agent.journal.add_ticket

    def second_fails(*ticket: Any) -> None:
        calls.append(ticket)
        add(*ticket) if len(calls) == 1 else full()

    with monkeypatch.context() as patch:
        patch.setattr(agent.journal, "add_ticket", second_fails)
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
    assert agent.mind.state.sums.tolist() == [[1, 7]]


def test_a_ticket_with_a_reward_is_not_overdue() -> None:
    clock = Clock()
    agent = Agent(FIVE, ":memory:", clock=clock)
    first, _ = (agent.ask(COLOURS).id for _ in range(2))
    agent.tell(first, 1.0)
    ((_, _, tickets, told, overdue),) = agent.journal.open_tickets(clock.now + 1)
    assert (tickets, told, overdue) == (2, 1, 1)
