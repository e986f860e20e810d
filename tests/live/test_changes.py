"""Another policy takes over a journal; policies that forget raise alarms."""

from typing import Any

import numpy as np
import pytest

import tailproof as tp
from tailproof.live import Agent, open_journal, prune, read
from tailproof.live.recipe import built

NAMES = ["blue", "red"]
FIVE = tp.Filtered(tp.UCB1(), repeats=5, estimator=tp.Median())


class Unbuilt(tp.UCB1):
    """A policy that recipes do not know."""


def play(agent: Agent, rounds: int, seed: int = 0, wait: bool = False) -> list[str]:
    """Ask and tell; with `wait`, all rewards after all asks."""
    rng = np.random.default_rng(seed)
    tickets = []
    for _ in range(rounds):
        ticket = agent.ask(NAMES)
        tickets.append(ticket.id)
        if not wait:
            agent.tell(ticket.id, float(rng.normal() + (ticket.arm == "red")))
    return tickets


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (tp.UCB1(), tp.ThompsonSampling()),
        (FIVE, tp.UCB1()),
        (tp.UCB1(), FIVE),
        (tp.UCB1(), tp.LinStudentUCB()),
    ],
    ids=["same", "split", "group", "vectors"],
)
def test_the_new_policy_learns_everything(place: str, old: Any, new: Any) -> None:
    with Agent(old, place) as agent:
        play(agent, 120)
    known = r"belongs to .* not .*`tailproof change FILE EXPERIMENT` or Agent\(…, change=True\)"
    with pytest.raises(ValueError, match=known):
        Agent(new, place)
    with Agent(new, place, change=True) as agent:
        assert [row[1] for row in agent.journal.recipes()] == [repr(old), repr(new)]
        (note,) = agent.journal.notes()
        assert (note.kind, note.text["from"], note.text["to"]) == ("change", repr(old), repr(new))
        waiting = sum(len(left) for left in agent.learner.left.values())
        assert agent.learner.state.decisions * new.pulls + waiting == 120
        play(agent, 60, 1)
        found = agent.verify()
        assert found.ok, found
        assert not found.unchecked
        assert set(read(agent.journal).frame.recipe) == {0, 1}
        while not agent.tick():
            pass
        state = agent.learner.to_bytes()
    with Agent(new, place, change=True) as again:  # nothing changes
        assert again.learner.to_bytes() == state
        assert len(again.journal.recipes()) == 2
        assert len(again.journal.notes()) == 1


def test_each_request_goes_by_the_rules_that_it_was_asked_under() -> None:
    """Reopened with another silence, no reward changes; in 0.3 39 of 40 did."""
    now = [0.0]
    agent = Agent(tp.UCB1(), ":memory:", wait=10, silence=0.0, clock=lambda: now[0])
    play(agent, 40, wait=True)
    now[0] = 11.0
    while not agent.tick():
        pass
    before = read(agent.journal).frame
    pending = play(agent, 3, wait=True)
    for rules in ({"silence": "lost"}, {"wait": 99}, {"rewards": "sum"}, {"explore": 0.5}):
        with pytest.raises(ValueError, match=next(iter(rules))):
            Agent(tp.UCB1(), agent.journal, **rules)
    agent = Agent(
        tp.UCB1(), agent.journal, silence="lost", wait=99, change=True, clock=lambda: now[0]
    )
    fresh = play(agent, 3, wait=True)
    assert agent.tell(pending[0], 7.0) == "kept"
    now[0] = 30.0
    assert agent.tell(pending[1], 7.0) == "late"
    assert agent.tell(fresh[0], 7.0) == "kept"
    while not agent.tick():
        pass
    frame = read(agent.journal).frame
    assert frame.head(40).equals(before)
    assert frame.status.tolist()[40:] == ["told", "silent", "silent", "told", *["pending"] * 2]
    assert frame.reward.tolist()[40:44] == [7, 0, 0, 7]
    assert agent.verify().ok


def test_agents_that_run_follow_a_change(place: str) -> None:
    with Agent(tp.UCB1(), place, explore=0.1) as running:
        play(running, 30)
        with Agent(tp.ThompsonSampling(), place, explore=0.5, change=True) as changed:
            ticket = running.ask(NAMES)
            assert repr(running.policy) == repr(changed.policy)
            assert running.recipe.explore == 0.5
            assert running.tell(ticket.id, 1.0) == "kept"
            play(running, 20, 1)
            play(changed, 20, 2)
            frame = read(running.journal).frame
            assert frame.recipe.tolist() == [0] * 30 + [1] * 41
            for agent in (running, changed):
                assert agent.verify().ok
        with Agent(Unbuilt(), place, change=True) as own:
            with pytest.raises(
                RuntimeError, match=r"replaced by Unbuilt.*start this process again"
            ):
                running.ask(NAMES)
            play(own, 5)
            assert own.verify().ok


@pytest.mark.parametrize(("old", "new"), [(FIVE, tp.UCB1()), (tp.UCB1(), FIVE)])
@pytest.mark.parametrize("silence", ["lost", 0.0])
def test_requests_that_were_open_end(old: Any, new: Any, silence: Any) -> None:
    now = [0.0]
    more: dict[str, Any] = {"wait": 100, "silence": silence, "clock": lambda: now[0]}
    agent = Agent(old, ":memory:", **more)
    tickets = play(agent, 13, wait=True)
    agent = Agent(new, agent.journal, change=True, **more)
    assert {agent.tell(ticket, 1.0) for ticket in tickets} == {"kept"}
    fresh = play(agent, 7, wait=True)
    assert {agent.tell(ticket, 1.0) for ticket in fresh} == {"kept"}
    now[0] = 200.0
    while not agent.tick():
        pass
    log = read(agent.journal).frame
    assert (log.recipe[log.status == "told"] == 0).sum() == 13
    assert agent.verify().ok
    done = int(agent.learner.state.decisions[0]) * new.pulls
    assert done + sum(map(len, agent.learner.left.values())) == 20


def test_there_and_back_again() -> None:
    agent = Agent(tp.UCB1(), ":memory:")
    for policy in (tp.ThompsonSampling(), tp.UCB1(), tp.UCB1(bonus=0.5)):
        play(agent, 40)
        agent = Agent(policy, agent.journal, change=True)
    play(agent, 40)
    assert agent.verify().ok
    assert [after for _, _, _, after, _ in agent.journal.recipes()] == [0, 40, 80, 120]


def test_a_recipe_that_cannot_be_built_is_said_not_to_be_checked() -> None:
    assert built("Unbuilt(bonus=1.0)") is None
    agent = Agent(Unbuilt(), ":memory:")
    play(agent, 40)
    agent = Agent(tp.UCB1(), agent.journal, change=True)
    play(agent, 40)
    found = agent.verify()
    assert found.ok
    assert found.unchecked == {
        "Unbuilt(bonus=1.0, random=False)": "it cannot be built from its text"
    }


def test_a_policy_that_cannot_learn_the_journal_changes_nothing() -> None:
    agent = Agent(tp.UCB1(), ":memory:")
    play(agent, 5)
    agent.tell(agent.ask(["blue"]).id, 1.0)
    with pytest.raises(ValueError, match=r"SuccessiveElimination.* cannot take over from UCB1"):
        Agent(tp.bestarm.SuccessiveElimination(), agent.journal, change=True)
    assert len(agent.journal.recipes()) == 1
    play(Agent(tp.UCB1(), agent.journal), 5)


def test_pruned_and_changed_in_any_order() -> None:
    now = [0.0]
    more: dict[str, Any] = {"clock": lambda: now[0]}
    agent = Agent(tp.UCB1(), ":memory:", **more)
    for policy in (tp.LinStudentUCB(), tp.UCB1(bonus=0.5)):
        for _ in range(400):
            now[0] += 1
            play(agent, 1, int(now[0]))
        prune(agent, now[0] - 300)
        assert agent.verify().ok
        agent = Agent(policy, agent.journal, change=True, **more)
        now[0] += 1
        play(agent, 100, 5)
        assert agent.verify().ok
    prune(agent, now[0])
    found = agent.verify()
    assert found.ok
    assert set(found.unchecked.values()) == {"what it had learned was pruned"}


def moved(agent: Agent, rounds: int = 900) -> None:
    """Let the better arm become the worse one half-way."""
    rng = np.random.default_rng(2)
    for i in range(rounds):
        ticket = agent.ask(NAMES)
        better = NAMES[i < rounds // 2]
        agent.tell(ticket.id, float(rng.normal() + 4 * (ticket.arm == better)))


def test_a_restart_is_an_alarm_in_the_journal(place: str) -> None:
    policy = tp.Vigilant(tp.ThompsonSampling())
    journals = (open_journal(place, durable=False) for _ in range(2))
    with Agent(policy, next(journals)) as agent, Agent(policy, next(journals)) as other:
        moved(agent)
        while not (agent.tick() and other.tick()):
            pass
        alarms = [note for note in agent.journal.notes() if note.kind == "alarm"]
        assert len(alarms) == agent.learner.state.restarts[0] == agent.standing().alarms >= 1
        assert alarms[0].text["arm"] == "red"
        assert 450 <= alarms[0].text["outcome"] < 600
        assert agent.verify().ok
        with agent.journal.transaction():
            agent.journal.add_note("alarm", {"arm": "red", "outcome": 3, "recipe": 0}, 0.0)
        assert agent.verify().changed == ["alarm after outcome 3"]
    with Agent(policy, place) as again:
        assert again.standing().alarms == len(alarms) + 1


def test_an_alarm_is_written_although_the_first_commit_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent, failed = Agent(tp.Vigilant(tp.ThompsonSampling()), ":memory:"), list[bool]()
    monkeypatch.setattr(agent.journal, "_end", _failing(agent, failed))
    rng = np.random.default_rng(2)
    for i in range(900):
        try:
            ticket = agent.ask(NAMES)
            better = NAMES[i < 450]
            agent.tell(ticket.id, float(rng.normal() + 4 * (ticket.arm == better)))
        except OSError:
            pass
    assert failed
    agent.tick()
    assert agent.standing().alarms == agent.learner.state.restarts[0] >= 1
    assert agent.verify().ok


def _failing(agent: Agent, failed: list[bool]) -> Any:
    end = agent.journal._end

    def fail(ending: str) -> None:
        if ending == "COMMIT" and agent.learner.alarms and not failed:
            failed.append(True)
            raise OSError("no space left")
        end(ending)

    return fail
