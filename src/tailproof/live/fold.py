"""Replaying a journal: to restore what was learned, and to verify every decision."""

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np

from tailproof.live.journal import Journal
from tailproof.live.mind import RECENT, Mind
from tailproof.policies.base import Policy

__all__ = ["Verification", "blank", "restored", "same_state", "verify"]

_LOG = logging.getLogger("tailproof.live")


@dataclass(frozen=True)
class Verification:
    """The result of replaying a journal and making every decision again.

    Attributes
    ----------
    holds, lessons : int
        Number of decisions, and how many of them have ended.
    differing : list of int
        Decisions whose arm or propensity came out differently.
    snapshots : dict
        By number of outcomes learned, whether the snapshot equals the replayed state.
    state : bool
        Whether the state of the agent equals the replayed state.
    """

    holds: int
    lessons: int
    differing: list[int]
    snapshots: dict[int, bool]
    state: bool = True

    @property
    def ok(self) -> bool:
        """Whether nothing differs."""
        return not self.differing and all(self.snapshots.values()) and self.state


def restored(policy: Policy[Any], journal: Journal) -> Mind:
    """Return the learner after the whole journal, replayed from the latest intact snapshot."""
    mind = blank(policy, journal)
    for after, state in journal.snapshots():
        try:
            mind.from_bytes(state, after)
        except ValueError as error:
            _LOG.warning("ignoring corrupt snapshot; replaying the journal: %s", error)
            continue
        for closing in journal.closings(max(0, after - RECENT), after):
            mind.remember(closing)
        break
    for closing in journal.closings(mind.lessons, journal.counts()[1]):
        mind.fold(closing)
    return mind


def verify(policy: Policy[Any], journal: Journal, own: Mind | None = None) -> Verification:
    """Replay a journal, make every decision again, and compare; `own` is an agent's learner.

    The rows it reads never change, so that others may use the journal meanwhile.
    """
    holds, lessons = journal.counts()
    mind, snapshots = blank(policy, journal), dict(journal.snapshots())
    found: dict[int, bool] = {}
    state = True
    pending: dict[int, Any] = {}
    known: dict[int, Any] = {}
    differing, since, closings = [], 0, journal.closings(0, lessons)

    def learn_until(after: int) -> None:
        nonlocal state
        while mind.lessons < after:
            closing = next(closings)
            mind.fold(closing)
            for some in (pending, known):
                some.pop(closing.decision.hold, None)
            if mind.lessons in snapshots:
                found[mind.lessons] = same_state(mind, snapshots[mind.lessons])
            if own is not None and mind.lessons == own.lessons:
                state = same_state(mind, own.to_bytes())

    for row in journal.holds(0, holds):
        decision = row.decision
        learn_until(row.after)
        if row.since != since:
            since = row.since
            mind.expect_anew()
            known = {hold: one for hold, one in pending.items() if hold >= since}
        choice = mind.choose(decision.hold, decision.offer, row.explore, known)
        if (choice.arm, choice.propensity) != (decision.arm, decision.propensity):
            differing.append(decision.hold)
        if mind.believes:
            pending[decision.hold] = known[decision.hold] = decision
    learn_until(lessons)
    return Verification(holds, lessons, differing, found, state)


def blank(policy: Policy[Any], journal: Journal, room: int = 0) -> Mind:
    """Return a learner that has learned nothing yet but knows the arms of the journal.

    If arms have no features, it has room for at least `room` of them.
    """
    meta = journal.meta()
    mind = Mind(policy, int(meta["seed"]), int(meta["dim"]) if "dim" in meta else None)
    for row in journal.holds(0, 1):
        if mind.dim is not None and row.decision.offer.vectors is None:
            mind.dim = max(mind.dim, room)
        mind.meet(row.decision.offer)
    mind.numbers = journal.arms()
    return mind


def same_state(mind: Mind, snapshot: bytes) -> bool:
    """Return whether a snapshot equals the state of a learner, number by number."""
    other = Mind(mind.policy, mind.seed, mind.dim)
    try:
        other.from_bytes(snapshot, mind.lessons)
    except ValueError:
        return False
    mine, state = mind.state, other.state
    if state.arms > mine.arms:  # the snapshot has room for arms without updates
        mine = mind.policy._resized(mine, state.arms)
    ours, theirs = mine.to_arrays(), state.to_arrays()
    return all(
        np.array_equal(array, theirs[name], equal_nan=array.dtype.kind == "f")
        for name, array in ours.items()
    )
