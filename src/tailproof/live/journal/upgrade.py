"""Bringing over a journal of tailproof 0.2."""

import json
from itertools import groupby
from typing import Any

import numpy as np

from tailproof.live.journal.base import SCHEMA, TABLES, Journal
from tailproof.live.journal.rows import Counts, seal

__all__ = ["upgrade"]

_WAIT = 86400.0
"""The window of tickets that were open; 0.2 did not store it, and this was its default."""
_BEFORE = -1
"""What `after` says of a decision whose choice cannot be made again, as 0.2 imputed otherwise."""


def upgrade(journal: Journal) -> None:
    """Rewrite schema 1, whose rows changed, as rows that are written once.

    Decisions, tickets, rewards and outcomes stay, in their order, and so does what was learned. The
    choices are not verified again. The window of an ended ticket ends when 0.2 stopped waiting.
    """
    run = journal.execute
    for index in ("hold_closed", "hold_open", "ticket_id", "ticket_late"):
        run(f"DROP INDEX {index}")
    for table in ("arm", "offer", "hold", "ticket", "snapshot"):
        run(f"ALTER TABLE {table} RENAME TO old_{table}")
    for statement in TABLES:
        run(statement)
    meta = journal.meta()
    run("INSERT INTO arm (number, name) SELECT number, name FROM old_arm")
    for number, digest, names, features in list(
        run("SELECT id, digest, names, features FROM old_offer ORDER BY id")
    ):
        dim = None if features is None else len(features) // 8 // len(json.loads(names))
        row = (number, bytes(digest), names, dim, features, 0.0)
        run("INSERT INTO offer VALUES (?, ?, ?, ?, ?, ?)", row)
    _decisions(journal)
    _tickets(journal)
    _outcomes(journal)
    if "recipe" in meta:
        journal.add_recipe(meta["recipe"], 0, 0.0)
    first = list(
        run(
            "SELECT names, features FROM old_hold h JOIN old_offer f ON f.id = offer WHERE h.id = 0"
        )
    )
    if first and "dim" in meta:
        ((names, features),) = first
        arms = len(json.loads(names))
        journal.set_meta(arms=str(arms), features="no" if features is None else "yes")
    for table in ("arm", "offer", "hold", "ticket", "snapshot"):
        run(f"DROP TABLE old_{table}")
    run("DELETE FROM meta WHERE key = 'recipe'")
    journal.set_meta(schema=str(SCHEMA), rewards="first", silence="lost", wait=repr(_WAIT))
    journal.reserve()


def _decisions(journal: Journal) -> None:
    rows = []
    for id_, offer, place, share, explore, names, asked in journal.execute(
        "SELECT h.id, offer, arm, propensity, explore, names, MIN(asked) FROM old_hold h"
        " JOIN old_offer f ON f.id = offer JOIN old_ticket t ON t.hold = h.id"
        " GROUP BY h.id, offer, arm, propensity, explore, names ORDER BY h.id"
    ):
        arm = json.loads(names)[place]
        rows.append((id_, offer, arm, share, None, explore, None, 0, 0, _BEFORE, 0, asked))
    numbers = journal.arms()
    sealed = [(*row[:2], numbers[row[2]], *row[3:]) for row in rows]
    marks = ", ".join("?" * 13)
    journal.execute_many(
        f"INSERT INTO decision VALUES ({marks})", [(*row, seal(*row)) for row in sealed]
    )


def _tickets(journal: Journal) -> None:
    tickets, events, due = [], [], []
    counts: dict[int, Counts] = {}
    for decision, place, name, asked, reward, told, fate, closed, arm in journal.execute(
        "SELECT hold, t.number, t.id, asked, reward, told, fate, closed, d.arm FROM old_ticket t"
        " JOIN old_hold h ON h.id = hold JOIN decision d ON d.id = hold ORDER BY hold, t.number"
    ):
        ends = asked + _WAIT
        if closed is not None:
            ends = max(asked, told) if fate == 1 else asked
        tickets.append((decision, place, name, None, asked, ends))
        one = counts.setdefault(arm, Counts())
        one.asked += 1
        if told is not None:
            told = max(told, np.nextafter(ends, np.inf)) if fate == 2 else told
            events.append((decision, place, "", reward, float(told)))
            one.told += fate == 1
            one.late += fate == 2
            one.late_sum += reward if fate == 2 else 0.0
        if closed is None:
            due.append((ends, decision))
    journal.add_tickets(tickets)
    journal.add_events(events)
    journal.add_due(due)
    journal.count(0, counts)


def _outcomes(journal: Journal) -> None:
    """Number the outcomes as 0.2 did."""
    rows: list[Any] = list(
        journal.execute(
            "SELECT closed, h.id, learned, fate, reward, told FROM old_hold h"
            " JOIN old_ticket t ON t.hold = h.id WHERE closed IS NOT NULL ORDER BY closed, t.number"
        )
    )
    at = 0.0
    for _, group in groupby(rows, key=lambda row: row[0]):
        some = list(group)
        (decision, learned), tickets = some[0][1:3], len(some)
        rewards = np.array([row[4] for row in some if row[3] == 1])
        at = max([at, *(row[5] for row in some if row[3] == 1)])
        packed = rewards.astype("<f8").tobytes() if learned else None
        journal.add_outcomes([(decision, packed, tickets)], at)
