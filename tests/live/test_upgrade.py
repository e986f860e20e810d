"""Journals of tailproof 0.2, made by that version, brought over."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tailproof import UCB1, Filtered, LinStudentUCB, Median, Policy
from tailproof.live import Agent, read

DATA = Path(__file__).parent / "data"
POLICIES: dict[str, Policy[Any]] = {
    "filtered": Filtered(UCB1(), repeats=5, estimator=Median()),
    "student": LinStudentUCB(),
}


@pytest.mark.parametrize("name", POLICIES)
def test_everything_is_brought_over(name: str, tmp_path: Path) -> None:
    path, policy = tmp_path / "a.db", POLICIES[name]
    with closing(sqlite3.connect(path)) as old:
        old.executescript((DATA / f"{name}-0.2.0.sql").read_text())
        tickets = old.execute("SELECT hold, id, asked, reward, told, fate FROM ticket").fetchall()
        ended = old.execute("SELECT id FROM hold WHERE closed IS NOT NULL ORDER BY closed")
        order = [hold for (hold,) in ended]
    clock = 1_700_000_000.0 + 61 * 3 + 70
    with Agent(policy, path, wait=60, explore=0.1, clock=lambda: clock) as agent:
        frame = read(agent.journal).frame
        assert frame.hold.tolist() == [row[0] for row in tickets]
        assert frame.reward.fillna(frame.late).dropna().tolist() == [
            row[3] for row in tickets if row[3] is not None
        ]
        assert (frame.fate == "late").sum() == sum(row[5] == 2 for row in tickets)
        outcomes = list(agent.journal.outcomes(0, agent.journal.counts()[0]))
        assert [outcome.decision.id for outcome in outcomes] == order
        assert agent.learner.learned == len(order)
        assert agent.verify().ok
        for _ in range(30):
            ticket = agent.ask({"red": [1.0, 0.0], "blue": [0.25, 0.5]})
            assert agent.tell(ticket.id, 1.0) == "kept"
        assert agent.verify().ok
    with Agent(policy, path) as again:
        assert again.verify().ok
        assert len(read(again.journal).frame) == len(tickets) + 30


def test_a_read_only_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as old:
        old.executescript((DATA / "student-0.2.0.sql").read_text())
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(ValueError, match=r"has schema 1, .* reads 2; open a writable copy"):
        read(path)
