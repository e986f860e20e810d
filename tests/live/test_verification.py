"""`verify` finds rows that somebody changed, removed or added."""

from typing import Any

import pytest

from tailproof import UCB1, Uniform
from tailproof.live import Agent

COLOURS = ["red", "blue", "green"]


def played(place: str = ":memory:", policy: Any = None) -> Agent:
    """Return an agent with told, late, lost, cancelled and pending requests, and units."""
    clock = [0.0]
    agent = Agent(
        policy or UCB1(), place, wait=30, explore=0.3, control=("red", 0.2),
        clock=lambda: clock[0],
    )  # fmt: skip
    for i in range(40):
        ticket = agent.ask(COLOURS, f"v{i}", f"user {i % 9}" if i % 3 else None)
        clock[0] += 31 * (i % 5 == 2) + 1
        if i % 7 == 5:
            agent.cancel([ticket.id])
        elif i % 4:
            agent.tell(ticket.id, float(i))
    agent.ask(COLOURS, "pending")
    agent.tick()
    return agent


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("UPDATE outcome SET reward = 99 WHERE number = 7", "outcome 7"),
        ("UPDATE outcome SET reward = 'much' WHERE number = 7", "outcome 7"),
        ("UPDATE event SET value = 'much' WHERE request = 1", "event 1"),
        ("UPDATE outcome SET why = 'lost' WHERE number = 0", "outcome 0"),
        ("UPDATE outcome SET at = at + 1 WHERE number = 19", "outcome 19"),
        ("DELETE FROM outcome WHERE number = 7", "outcome 8"),
        ("DELETE FROM outcome WHERE number = (SELECT MAX(number) FROM outcome)", "outcome of"),
        ("UPDATE event SET value = 1000 WHERE request = 1", "event 1"),
        ("UPDATE event SET value = 1000 WHERE late = 1", "event"),
        ("DELETE FROM event WHERE request = 1", "outcome"),
        ("INSERT INTO event VALUES (3, 'more', 1.0, 2.0, 0, 17)", "event 3"),
        ("INSERT INTO event VALUES (999, '', 1.0, 2.0, 0, 17)", "event 999 without a request"),
        ("UPDATE request SET unit = 'other' WHERE id = 4", "outcome"),
        ("UPDATE request SET ends = ends + 1 WHERE id = 4", "outcome"),
        ("UPDATE request SET recipe = 0, ticket = 'x' WHERE id = 4", "outcome"),
        ("DELETE FROM request WHERE id = 4", "outcome"),
        ("DELETE FROM request WHERE id = 40", "request 40"),
        ("UPDATE offer SET names = replace(names, 'blue', 'blau')", "offer 0"),
        ("UPDATE arm SET name = 'blau' WHERE name = 'blue'", "offer 0"),
        ("UPDATE request SET offer = 77 WHERE id = 4", "request 4"),
        ("UPDATE request SET recipe = 1 WHERE id = 40", "request 40"),
        ("UPDATE request SET ends = ends + 1 WHERE id = 40", "request 40"),
        ("UPDATE request SET at = at - 1 WHERE id = 40", "request 40"),
        ("UPDATE recipe SET rules = replace(rules, '30.0', '90.0')", "request"),
        (
            "UPDATE recipe SET rules = replace(rules, '\"silence\": null', '\"silence\": 0.0')",
            "outcome",
        ),
    ],
)
def test_a_changed_row_is_found(change: str, found: str) -> None:
    agent = played()
    assert agent.verify().ok
    agent.journal.execute(change)
    checked = agent.verify()
    assert not checked.ok
    assert any(row.startswith(found) for row in checked.changed), checked.changed


@pytest.mark.parametrize(
    "change",
    [
        "arm = (arm + 1) % 3",
        "propensity = 0.123",
        "shares = '[0.2,0.3,0.5]'",
        "grp = 'control'",
    ],
)
def test_a_changed_decision_is_found_also_before_its_outcome(place: str, change: str) -> None:
    with played(place) as agent:
        ids = [
            id_
            for (id_,) in agent.journal.execute(
                "SELECT id FROM request WHERE grp IS NULL AND repeats IS NULL ORDER BY id"
            )
        ]
        agent.journal.execute(f"UPDATE request SET {change} WHERE id = ?", (ids[-1],))
        assert ids[-1] in agent.verify().differing


def test_a_request_of_another_recipe_is_found() -> None:
    agent = played()
    agent = Agent(Uniform(), agent.journal, change=True)
    for _ in range(10):
        agent.tell(agent.ask(COLOURS).id, 1.0)
    assert agent.verify().ok
    agent.journal.execute("UPDATE request SET recipe = 0 WHERE id = 45")
    checked = agent.verify()
    assert checked.differing == [45]
    assert checked.changed[0].startswith("outcome")
