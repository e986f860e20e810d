"""Replaying a journal: to restore what was learned, to verify it, to teach another policy."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tailproof.live.journal import Journal
from tailproof.live.journal.rows import CANCELLED, Outcome, seal
from tailproof.live.learner import RECENT, Belief, Choice, Control, Learner
from tailproof.live.offers import Offer
from tailproof.policies.base import Policy

__all__ = ["Verification", "blank", "jump", "replay", "restored", "same_state", "verify"]

_LOG = logging.getLogger("tailproof.live")
_SPOKEN = 5.0
"""Seconds between two lines on the progress of a long replay."""
_SEALED = {
    "recipe": ("number, text, after, at", 1),
    "note": ("number, at, kind, text", 1),
    "decision": (
        "id, offer, arm, propensity, shares, explore, grp, recipe, worker, after, since, at",
        1,
    ),
    "ticket": ("decision, place, id, unit, asked, ends", 2),
    "event": ("decision, place, id, reward, at", 3),
}
"""The columns of each table that its checksum covers, and how many of them name a row."""


@dataclass(frozen=True)
class Verification:
    """The result of replaying a journal and making every decision again.

    Attributes
    ----------
    decisions, outcomes : int
        How many there are.
    differing : list of int
        Decisions whose arm or propensity came out differently.
    changed : list of str
        Rows that are not as they were written, such as ``event 17 0``, and counts that do not add
        up, as when rows are missing.
    snapshots : dict
        By number of outcomes learned, whether the snapshot equals the replayed state.
    state : bool
        Whether the state of the agent equals the replayed state.
    """

    decisions: int
    outcomes: int
    differing: list[int]
    changed: list[str]
    snapshots: dict[int, bool]
    state: bool = True

    @property
    def ok(self) -> bool:
        """Whether nothing differs."""
        right = not self.differing and not self.changed
        return right and all(self.snapshots.values()) and self.state


def replay(
    learner: Learner,
    journal: Journal,
    stop: int,
    each: Callable[[Outcome], None] | None = None,
) -> None:
    """Learn the outcomes of a journal up to number `stop`; `each` is called after each.

    Restarts, several processes, `verify`, other policies and changed recipes all do this.
    """
    said = time.monotonic()
    for outcome in journal.outcomes(learner.learned, stop):
        try:
            if outcome.decision.name not in learner.numbers:
                learner.numbers = journal.arms()
            learner.learn(outcome, remember=outcome.number >= stop - RECENT)
        except ValueError as error:  # due to an earlier request, not to this one
            raise RuntimeError(
                f"cannot learn the outcome of decision {outcome.decision.id}: {error}"
            ) from error
        if each is not None:
            each(outcome)
        if learner.learned % 1000 == 0 and time.monotonic() > said + _SPOKEN:
            said = time.monotonic()
            _LOG.info("replayed %s of %s outcomes", learner.learned, stop)


def restored(policy: Policy[Any], journal: Journal) -> Learner:
    """Return the learner after the whole journal, replayed from the latest intact snapshot."""
    learner = blank(policy, journal)
    jump(learner, journal)
    replay(learner, journal, journal.counts()[0])
    return learner


def jump(learner: Learner, journal: Journal) -> None:
    """Load the latest intact snapshot, if it is later than what was learned."""
    for after, state in journal.snapshots(len(journal.recipes()) - 1):
        if after <= learner.learned:
            return
        try:
            learner.from_bytes(state, after)
        except ValueError as error:
            _LOG.warning("ignoring corrupt snapshot; replaying the journal: %s", error)
            continue
        if learner.imputes:
            for outcome in journal.outcomes(max(0, after - RECENT), after):
                learner.remember(outcome)
        return


def blank(policy: Policy[Any], journal: Journal, room: int = 0) -> Learner:
    """Return a learner that has learned nothing yet but knows the arms of the journal.

    If arms have no features, it has room for at least `room` of them.
    """
    meta = journal.meta()
    learner = Learner(policy, int(meta["seed"]), int(meta["dim"]) if "dim" in meta else None)
    learner.numbers = journal.arms()
    if "arms" in meta:
        dim = int(meta["dim"])
        if meta["features"] == "no":
            dim = max(dim, room)
        learner.begin(int(meta["arms"]), dim)
    return learner


def verify(policy: Policy[Any], journal: Journal, own: Learner | None = None) -> Verification:
    """Check every row of a journal, replay it, make every decision again, and compare.

    The group of a decision and the arm that everyone gets while an experiment is fixed are inputs.
    `own` is an agent's learner. Others may use the journal meanwhile, if it is called within
    `Journal.moment`.
    """
    outcomes = journal.counts()[0]
    recipe = len(journal.recipes()) - 1
    learner, snapshots = blank(policy, journal), dict(journal.snapshots(recipe))
    found: dict[int, bool] = {}
    beliefs: dict[int, Belief] = {}
    controls = {
        note.text["worker"]: Control(note.text["arm"], note.text["share"])
        for note in journal.notes()
        if note.kind == "control"
    }
    differing = journal.unlike()
    same = True

    def learned(outcome: Outcome) -> None:
        nonlocal same
        for belief in beliefs.values():
            belief.pending.pop(outcome.decision.id, None)
        if learner.learned in snapshots:
            found[learner.learned] = same_state(learner, snapshots[learner.learned])
        if own is not None and learner.learned == own.learned:
            same = same_state(learner, own.to_bytes())

    for row in journal.decisions():
        decision = row.decision
        if row.recipe != recipe:
            continue
        replay(learner, journal, row.after, learned)
        belief = beliefs.setdefault(row.worker, Belief(learner))
        if belief.since != row.since:
            belief.start_at(row.since)
        if row.group == "fixed":
            choice = Choice.fixed(decision.offer, decision.name)
        else:
            state, control = belief.state(), controls.get(row.worker)
            choice = learner.choose(
                decision.id, decision.offer, state, row.explore, control, row.group
            )
        if (choice.arm, choice.propensity, choice.packed) != (
            decision.arm,
            decision.propensity,
            row.shares,
        ):
            differing.append(decision.id)
        if learner.imputes:
            belief.add(decision)
    replay(learner, journal, outcomes, learned)
    changed = _changed(journal, outcomes)
    ((decisions,),) = journal.execute("SELECT COUNT(*) FROM decision")
    return Verification(decisions, outcomes, differing, changed, found, same)


def _changed(journal: Journal, outcomes: int) -> list[str]:
    """Return rows whose checksum is wrong, and counts that are."""
    found = []
    for table, (columns, names) in _SEALED.items():
        for *row, mark in journal.stream(f"SELECT {columns}, seal FROM {table}"):
            if seal(*map(_plain, row)) != mark:
                found.append(" ".join([table, *map(str, row[:names])]))
    for number, digest, *row in journal.stream(
        "SELECT id, digest, names, dim, features FROM offer"
    ):
        if Offer.from_row(*row).key != bytes(digest):
            found.append(f"offer {number}")
    chain, count = 0, 0
    for *row, mark in journal.stream(
        "SELECT number, decision, rewards, tickets, at, seal FROM outcome ORDER BY number"
    ):
        number, decision, rewards, tickets, at = map(_plain, row)
        if seal(chain, (number, decision, rewards, tickets, at)) != mark or number != count:
            found.append(f"outcome {number}")
        chain, count = mark, number + 1
    told = journal.tally().values()
    asked, came = sum(one.asked for one in told), sum(one.told + one.late for one in told)
    ((cancelled,),) = journal.execute("SELECT COUNT(*) FROM event WHERE id = ?", (CANCELLED,))
    for what, table, where, expected in (
        ("outcomes without a decision", "decision", "JOIN outcome o ON o.decision = id", outcomes),
        ("tickets", "ticket", "", asked + cancelled),
        ("events", "event", "WHERE decision >= 0", came + cancelled),
    ):
        ((counted,),) = journal.execute(f"SELECT COUNT(*) FROM {table} {where}")
        if counted != expected:
            found.append(f"{what}: {counted} instead of {expected}")
    return found


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value


def same_state(learner: Learner, snapshot: bytes) -> bool:
    """Return whether a snapshot equals the state of a learner, number by number."""
    other = Learner(learner.policy, learner.seed, learner.dim)
    try:
        other.from_bytes(snapshot, learner.learned)
    except ValueError:
        return False
    if learner.told != other.told:
        return False
    mine, state = learner.state, other.state
    if state.arms > mine.arms:  # the snapshot has room for arms without updates
        mine = learner.policy._resized(mine, state.arms)
    ours, theirs = mine.to_arrays(), state.to_arrays()
    return all(
        np.array_equal(array, theirs[name], equal_nan=array.dtype.kind == "f")
        for name, array in ours.items()
    )
