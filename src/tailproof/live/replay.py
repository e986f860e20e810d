"""Replaying a journal: to restore what was learned, to verify it, to teach another policy."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tailproof import recipes
from tailproof.live.journal import Journal
from tailproof.live.journal.rows import CANCELLED, DecisionRow, Outcome, seal
from tailproof.live.learner import RECENT, Belief, Choice, Control, Learner
from tailproof.live.offers import Offer
from tailproof.policies.base import Policy

__all__ = [
    "Verification",
    "blank",
    "built",
    "jump",
    "replay",
    "restored",
    "same_state",
    "verify",
]

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
    since : int
        After how many outcomes the checked decisions begin; above 0 if earlier ones were pruned.
    unchecked : dict
        Recipes whose decisions were not made again, by their text, each with the reason.
    """

    decisions: int
    outcomes: int
    differing: list[int]
    changed: list[str]
    snapshots: dict[int, bool]
    state: bool = True
    since: int = 0
    unchecked: dict[str, str] = field(default_factory=dict)

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
        if outcome.number > learner.learned:
            break
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
    if learner.learned < stop:  # what comes next was pruned
        was = learner.learned
        jump(learner, journal)
        if learner.learned == was:
            raise RuntimeError(f"outcome {was} is not in the journal, nor is a later snapshot")
        replay(learner, journal, stop, each)


def restored(policy: Policy[Any], journal: Journal) -> Learner:
    """Return the learner after the whole journal, replayed from the latest intact snapshot."""
    learner = blank(policy, journal)
    jump(learner, journal)
    replay(learner, journal, journal.counts()[0])
    return learner


def jump(learner: Learner, journal: Journal) -> None:
    """Load the latest intact snapshot, if it is later than what was learned."""
    if learner.recipe is None:
        return
    for after, state in journal.snapshots(learner.recipe):
        if after <= learner.learned:
            return
        try:
            _load(learner, journal, after, state)
            return
        except ValueError as error:
            _LOG.warning("ignoring corrupt snapshot; replaying the journal: %s", error)


def _load(learner: Learner, journal: Journal, after: int, state: bytes) -> None:
    learner.from_bytes(state, after)
    if learner.imputes:
        for outcome in journal.outcomes(max(0, after - RECENT), after):
            learner.remember(outcome)


def blank(
    policy: Policy[Any], journal: Journal, room: int = 0, recipe: int | None = None
) -> Learner:
    """Return a learner that has learned nothing yet but knows the arms of the journal.

    If arms have no features, it has room for at least `room` of them. If the journal was pruned,
    it has learned what the snapshot kept for this recipe has, the latest of this policy by default;
    without one, it begins with the first outcome that is left.
    """
    meta = journal.meta()
    if recipe is None:
        same = [number for number, text, *_ in journal.recipes() if text == repr(policy)]
        recipe = same[-1] if same else None
    learner = Learner(policy, int(meta["seed"]), int(meta["dim"]) if "dim" in meta else None)
    learner.numbers = journal.arms()
    if "arms" in meta:
        dim = int(meta["dim"])
        if meta["features"] == "no":
            dim = max(dim, room)
        learner.begin(int(meta["arms"]), dim)
    learner.recipe, learner.learned = recipe, journal.first()
    kept = None if recipe is None else journal.kept_snapshot(recipe)
    if kept is not None:
        try:
            _load(learner, journal, *kept)
        except ValueError as error:
            raise ValueError(
                f"cannot restore what was learned before the journal was pruned: {error}; use a "
                "backup of the journal"
            ) from error
    return learner


def built(text: str) -> Policy[Any] | None:
    """Return the policy of a recipe's text, None if it cannot be built from it."""
    try:
        policy: Policy[Any] = recipes.build("policy", text)
    except ValueError:
        return None
    return policy if repr(policy) == text else None


def verify(policy: Policy[Any], journal: Journal, own: Learner | None = None) -> Verification:
    """Check every row of a journal, replay it, make every decision again, and compare.

    The group of a decision and the arm that everyone gets while an experiment is fixed are inputs.
    `own` is an agent's learner. Others may use the journal meanwhile, if it is called within
    `Journal.moment`.
    """
    outcomes, known = journal.counts()[0], journal.recipes()
    pruned: dict[str, Any] = {}
    for note in journal.notes():
        pruned = note.text if note.kind == "prune" else pruned
    found = _Found(differing=journal.unlike())
    for number, text, *_ in known:
        rule = policy if text == repr(policy) else built(text)
        if rule is None:
            found.unchecked[text] = "it cannot be built from its text"
        elif number <= pruned.get("recipe", -1) and journal.kept_snapshot(number) is None:
            found.unchecked[text] = "what it had learned was pruned"
        elif number == known[-1][0]:
            _make_again(blank(rule, journal, recipe=number), journal, found, outcomes, own)
        else:
            try:
                _make_again(blank(rule, journal, recipe=number), journal, found)
            except RuntimeError as error:  # it never had to learn what came after it
                found.unchecked[text] = str(error)
    changed = _changed(journal, outcomes) + found.changed
    ((decisions,),) = journal.execute("SELECT COUNT(*) FROM decision")
    return Verification(
        decisions,
        outcomes,
        found.differing,
        changed,
        found.snapshots,
        found.state,
        found.since,
        found.unchecked,
    )


@dataclass
class _Found:
    """What a verification has found so far."""

    differing: list[int] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    snapshots: dict[int, bool] = field(default_factory=dict)
    unchecked: dict[str, str] = field(default_factory=dict)
    state: bool = True
    since: int = 0


def _make_again(
    learner: Learner, journal: Journal, found: _Found, stop: int = 0, own: Learner | None = None
) -> None:
    """Make the decisions of one recipe again; replay at least up to outcome `stop`."""
    assert learner.recipe is not None
    beliefs: dict[int, Belief] = {}
    snapshots = dict(journal.snapshots(learner.recipe))
    start = learner.learned
    found.since = max(found.since, start)
    before = {outcome.decision.id for outcome in journal.outcomes(journal.first(), start)}
    controls = {
        note.text["worker"]: Control(note.text["arm"], note.text["share"])
        for note in journal.notes()
        if note.kind == "control"
    }

    def learned(outcome: Outcome) -> None:
        for belief in beliefs.values():
            belief.pending.pop(outcome.decision.id, None)
        if learner.learned in snapshots:
            same = same_state(learner, snapshots[learner.learned])
            found.snapshots[learner.learned] = same and found.snapshots.get(learner.learned, True)
        if own is not None and learner.learned == own.learned:
            found.state = same_state(learner, own.to_bytes())

    for row in journal.decisions(learner.recipe):
        decision = row.decision
        replay(learner, journal, row.after, learned)
        belief = beliefs.setdefault(row.worker, Belief(learner))
        if belief.since != row.since:
            belief.start_at(row.since)
        if row.after >= start and _decide_again(learner, row, belief, controls) != (
            decision.arm,
            decision.propensity,
            row.shares,
        ):
            found.differing.append(decision.id)
        if learner.imputes and decision.id not in before:
            belief.add(decision)
    replay(learner, journal, stop, learned)
    if stop:
        alarms = [note.text for note in journal.notes() if note.kind == "alarm"]
        noted = {(one["outcome"], one["arm"]) for one in alarms if one["recipe"] == learner.recipe}
        noted -= set(learner.alarms)
        found.changed += [f"alarm after outcome {at}" for at, _ in sorted(noted) if at >= start]


def _decide_again(
    learner: Learner, row: DecisionRow, belief: Belief, controls: Mapping[int, Control]
) -> tuple[Any, ...]:
    """Return the arm that a decision should have, its propensity, and those of all arms."""
    decision = row.decision
    if row.group == "fixed":
        choice = Choice.fixed(decision.offer, decision.name)
    else:
        control = controls.get(row.worker)
        choice = learner.choose(
            decision.id, decision.offer, belief.state(), row.explore, control, row.group
        )
    return choice.arm, choice.propensity, choice.packed


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
    pruned = [note.text for note in journal.notes() if note.kind == "prune"]
    first, chain = (pruned[-1]["first"], pruned[-1]["seal"]) if pruned else (0, 0)
    count = first
    for *row, mark in journal.stream(
        "SELECT number, decision, rewards, tickets, at, seal FROM outcome ORDER BY number"
    ):
        number, decision, rewards, tickets, at = map(_plain, row)
        if seal(chain, (number, decision, rewards, tickets, at)) != mark or number != count:
            found.append(f"outcome {number}")
        chain, count = mark, number + 1
    told = journal.tally().values()
    ((cancelled,),) = journal.execute("SELECT COUNT(*) FROM event WHERE id = ?", (CANCELLED,))
    cancelled += sum(one["cancelled"] for one in pruned)
    asked = sum(one.asked for one in told) - sum(one["tickets"] for one in pruned)
    came = sum(one.told + one.late for one in told) - sum(one["events"] for one in pruned)
    joined = "JOIN outcome o ON o.decision = id"
    for what, table, where, expected in (
        ("outcomes without a decision", "decision", joined, outcomes - first),
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
        mine = learner.policy.resized(mine, state.arms)
    ours, theirs = mine.to_arrays(), state.to_arrays()
    if learner.left.keys() != other.left.keys():
        return False
    ours |= {" ".join(key): rewards for key, rewards in learner.left.items()}
    theirs |= {" ".join(key): rewards for key, rewards in other.left.items()}
    return all(
        np.array_equal(array, theirs[name], equal_nan=array.dtype.kind == "f")
        for name, array in ours.items()
    )
