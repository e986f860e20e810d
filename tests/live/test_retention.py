"""Old records can be removed, and what was learned stays."""

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tailproof as tp
from tailproof.live import Agent, open_journal, prune, read
from tailproof.live.retention import pruning_notice

NAMES = ["blue", "red"]


def played(place: str, policy: tp.Policy[Any], rounds: int = 700, **more: Any) -> Agent:
    """Return an agent whose clock has moved by a second with each request."""
    now = [0.0]
    journal = open_journal(place, durable=False)
    agent = Agent(policy, journal, wait=5, clock=lambda: now[0], **more)
    rng = np.random.default_rng(0)
    for i in range(rounds):
        now[0] += 1.0
        ticket = agent.ask(tp.features.share(NAMES, [float(i % 50)]), ticket=f"v{i}")
        if rng.random() < 0.8:
            agent.tell(ticket.id, float(rng.normal() + (ticket.arm == "red")))
    now[0] += 10
    while not agent.tick():
        pass
    return agent


@pytest.mark.parametrize(
    ("policy", "silence"),
    [(tp.UCB1(), "lost"), (tp.LinRevenueUCB(), 0.0)],
    ids=lambda value: type(value).__name__,
)
def test_what_was_learned_stays(place: str, policy: tp.Policy[Any], silence: float | str) -> None:
    agent = played(place, policy, silence=silence, explore=0.1)
    before, log = agent.learner.to_bytes(), read(agent.journal)
    events = log.events
    removed = prune(agent, 300.0)
    assert removed.outcomes > 250
    assert agent.learner.to_bytes() == before
    left = read(agent.journal).frame
    assert len(left) == len(log.frame) - removed.outcomes
    assert left.asked.min() > log.frame.asked.min()
    (note,) = agent.journal.notes()
    arms = note.text["arms"].values()
    assert sum(one["requests"] for one in arms) == removed.outcomes == note.text["outcomes"]
    gone = log.frame[log.frame.ticket.isin(set(log.frame.ticket) - set(left.ticket))]
    assert sum(one["rewards"] for one in arms) == gone.reward.notna().sum()
    assert sum(one["sum"] for one in arms) == pytest.approx(gone.reward.sum())
    assert len(events) - len(read(agent.journal).events) == removed.events
    found = agent.verify()
    assert found.ok, found
    assert found.since == removed.since >= removed.outcomes
    assert agent.tell("v0", 1.0) == "unknown"
    for i in range(300):
        agent.tell(agent.ask(tp.features.share(NAMES, [float(i % 50)])).id, 1.0)
    assert agent.verify().ok
    agent.close()
    with Agent(policy, place, wait=5, silence=silence, explore=0.1, clock=lambda: 2000.0) as again:
        assert again.verify().ok
        second = prune(again, 2000.0)
        assert second.outcomes > 0
        assert again.verify().ok
        assert prune(again, 2000.0).outcomes == 0


def test_features_of_removed_decisions_go() -> None:
    agent, count = played(":memory:", tp.LinRevenueUCB(), silence=0.0), "SELECT COUNT(*) FROM offer"
    ((before,),) = agent.journal.execute(count)
    assert prune(agent, 1000.0).outcomes == 699  # the latest stays
    ((after,),) = agent.journal.execute(count)
    assert (before, after) == (50, 1)
    ticket = agent.ask(tp.features.share(NAMES, [3.0]))  # its offer is stored again
    assert read(agent.journal).frame["x:0"].tolist()[-1] == 3.0
    assert agent.tell(ticket.id, 1.0) == "kept"


def test_ids_are_not_given_again() -> None:
    now = [0.0]
    agent = Agent(tp.ThompsonSampling(), ":memory:", wait=1000, clock=lambda: now[0])
    waiting = [agent.ask(NAMES).id for _ in range(20)]
    last = agent.ask(NAMES)
    agent.tell(last.id, 1.0)
    now[0] = 10.0
    for ticket in waiting:
        agent.tell(ticket, 1.0)
    assert prune(agent, 5.0).outcomes == 0  # the latest request stays
    assert int(agent.ask(NAMES).id[1:]) > int(last.id[1:])


def test_dates_and_ages() -> None:
    agent = played(":memory:", tp.UCB1())
    assert pruning_notice(agent, "100000d") == "There is nothing to remove."
    said = pruning_notice(agent, "1s")
    assert said.startswith("This removes 699 outcomes with their requests. What was learned stays.")
    assert "recipe that takes over later learns only those" in said
    for before in ("1960-01-01", "100000d", datetime(1960, 1, 1, tzinfo=UTC), -5.0):
        assert prune(agent, before).outcomes == 0
    with pytest.raises(ValueError, match="a date such as '2026-01-01' or an age such as '90d'"):
        prune(agent, "soon")
    assert prune(agent, "1s").outcomes > 0


def test_a_worker_that_was_far_behind_goes_on_from_the_kept_state(tmp_path: Path) -> None:
    agent = played(str(tmp_path / "a.db"), tp.UCB1(), rounds=50)
    behind = Agent(tp.UCB1(), tmp_path / "a.db", wait=5, clock=lambda: 2000.0)
    for _ in range(600):
        agent.tell(agent.ask(NAMES).id, 1.0)
    assert prune(agent, 1e9).outcomes > 50
    while not behind.tick() or not agent.tick():
        pass
    assert behind.learner.to_bytes() == agent.learner.to_bytes()


def test_a_changed_note_or_a_corrupt_kept_snapshot_is_noticed(tmp_path: Path) -> None:
    agent = played(str(tmp_path / "a.db"), tp.UCB1())
    prune(agent, 300.0)
    with agent.journal.transaction():
        agent.journal.execute("UPDATE outcome SET reward = NULL WHERE number = ?", (400,))
    assert agent.verify().changed == ["outcome 400"]
    with agent.journal.transaction():
        agent.journal.execute("UPDATE snapshot SET state = ?", (b"",))
    with pytest.raises(ValueError, match=r"learned before the journal was pruned.*use a backup"):
        Agent(tp.UCB1(), tmp_path / "a.db")


_PRUNE = """
import sys
from tailproof import UCB1
from tailproof.live import Agent, prune
agent = Agent(UCB1(), sys.argv[1], wait=5, clock=lambda: 1000.0)
keep = agent.journal.keep_snapshots
def stall(*given):
    keep(*given)
    print("ready", flush=True)
    import time
    time.sleep(60)
agent.journal.keep_snapshots = stall
prune(agent, 300.0)
"""


def test_killed_in_the_middle(tmp_path: Path) -> None:
    file = str(tmp_path / "a.db")
    played(file, tp.UCB1()).close()
    process = subprocess.Popen(
        [sys.executable, "-c", _PRUNE, file], stdout=subprocess.PIPE, env=os.environ
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    time.sleep(0.05)
    with Agent(tp.UCB1(), file, wait=5, clock=lambda: 1000.0) as agent:
        assert len(read(agent.journal).frame) == 700
        assert not agent.journal.notes()
        found = agent.verify()
        assert (found.ok, found.since) == (True, 0)
        assert prune(agent, 300.0).outcomes > 0
        assert agent.verify().ok


def test_units_that_come_back_after_their_first_requests_are_gone(place: str) -> None:
    """They have been here before, in the control group too, and their decisions still verify."""
    now = [0.0]
    journal = open_journal(place, durable=False)
    control = ("red", 0.3)
    agent = Agent(tp.UCB1(), journal, wait=5, silence=0.0, control=control, clock=lambda: now[0])
    for visit in (0, 1):
        for unit in range(40):
            now[0] += 1.0
            agent.ask(NAMES, f"v{visit} {unit}", f"u{unit}")
    agent.ask(NAMES, "new", "v")
    assert prune(agent, 41.0).outcomes > 30
    checked = agent.verify()
    assert (checked.differing, checked.changed) == ([], [])
    assert 0 < checked.since < 41
    columns = "SELECT ticket, grp, again FROM request WHERE ticket NOT LIKE 'v0 %'"
    rows = list(journal.execute(columns))
    assert [again for ticket, _, again in rows if ticket != "new"] == [1] * 40
    assert [again for ticket, _, again in rows if ticket == "new"] == [0]
    assert 5 < sum(group == "control" for _, group, _ in rows) < 20
    agent.close()
