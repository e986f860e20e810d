"""Checking a journal: the chain of its outcomes, and every decision made again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from struct import error as StructError  # noqa: N812
from typing import Any

from tailproof.live.batch import group_of
from tailproof.live.journal import BEFORE, Journal, Request, sealed_event, sealed_outcome
from tailproof.live.learner import Learner, certain, packed
from tailproof.live.offer import Offer
from tailproof.live.recipe import Recipe
from tailproof.live.replay import blank, offers, replay
from tailproof.policies.base import Policy

__all__ = ["Verification", "verify"]

_DECIDED = (
    "SELECT r.id, r.unit, r.offer, r.after, r.repeats, e.offer, r.arm, r.propensity, r.shares,"
    " r.grp, e.arm, e.propensity, e.shares, e.grp FROM request r"
    " LEFT JOIN request e ON e.id = r.repeats WHERE r.recipe = ? ORDER BY r.after, r.id"
)
_CHAIN = (
    "SELECT o.number, o.reward, o.why, o.at, o.seal, r.id, r.ticket, r.unit, r.at,"
    " r.ends, r.recipe, r.arm, r.propensity, r.grp, r.again, e.name, e.value, e.at FROM outcome o"
    " LEFT JOIN request r ON r.id = o.request"
    " LEFT JOIN event e ON e.request = o.request AND e.late = 0 ORDER BY o.number, e.name"
)
_OUT = range(5)
"""The columns of `_CHAIN` that belong to the outcome."""
_ORPHANS = {
    "event {} without a request": "SELECT e.request FROM event e LEFT JOIN request r"
    f" ON r.id = e.request WHERE r.id IS NULL AND e.request <> {BEFORE} ORDER BY 1",
    "outcome of request {}": "SELECT r.id FROM request r LEFT JOIN outcome o ON o.request = r.id"
    " WHERE o.number IS NULL AND r.id NOT IN (SELECT request FROM due) ORDER BY 1",
    "request {}": "SELECT d.request FROM due d LEFT JOIN request r ON r.id = d.request"
    " WHERE r.id IS NULL ORDER BY 1",
}
"""Queries for rows whose counterpart is missing, by the name that a finding gives them."""


@dataclass
class Verification:
    """The result of replaying a journal and making every decision again.

    It finds an outcome, or an event behind one, that was changed, added or removed; an outcome that
    does not follow from its events by the rules of its recipe; any change of a request with an
    outcome; a request whose arm, propensity, shares, recipe or window was changed; a changed event,
    a request that was removed while it was pending; and a snapshot that is not the state after its
    outcomes. It cannot find: a late event that was removed, another ticket or unit of a request
    that is still pending, notes of a pause that were changed, and rows that somebody forged with
    their checksums from there to the end of the chain.

    Attributes
    ----------
    requests, outcomes : int
        How many there are.
    differing : list of int
        Requests whose arm, group or propensity came out differently.
    changed : list of str
        Rows that are not as they were written, such as ``event 17``.
    snapshots : dict
        By number of outcomes learned, whether the snapshot equals the replayed state.
    state : bool
        Whether the state of the agent equals the replayed state.
    since : int
        After how many outcomes the checked decisions begin; above 0 if earlier ones were pruned.
    unchecked : dict
        Recipes whose decisions were not made again, by their text, each with the reason.
    """

    requests: int = 0
    outcomes: int = 0
    differing: list[int] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    snapshots: dict[int, bool] = field(default_factory=dict)
    state: bool = True
    since: int = 0
    unchecked: dict[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing differs."""
        right = not self.differing and not self.changed
        return right and all(self.snapshots.values()) and self.state


def verify(
    journal: Journal, policy: Policy[Any] | None = None, current: Learner | None = None
) -> Verification:
    """Check every outcome, replay the journal, make every decision again, and compare.

    `policy` stands for recipes of its text; `current` is an agent's learner. Whether an experiment
    was paused is an input. Others may use the journal meanwhile, if it is called within
    `Journal.moment`.
    """
    known, notes = journal.recipes(), journal.notes()
    pruned: Any = next((note.text for note in reversed(notes) if note.kind == "prune"), {})
    found = Verification(outcomes=journal.outcome_count())
    ((found.requests,),) = journal.execute("SELECT COUNT(*) FROM request")
    recipes = {
        number: Recipe.of(policy if policy is not None and text == repr(policy) else text, rules)
        for number, text, rules, *_ in known
    }
    _check_chain(journal, found, pruned, recipes)
    _check_rows(journal, found, recipes)
    for number, recipe in recipes.items():
        last = number == len(recipes) - 1
        if isinstance(recipe.policy, str):
            found.unchecked[recipe.text] = "it cannot be built from its text"
            continue
        if number <= pruned.get("recipe", -1) and not journal.snapshots(number, kept=True):
            found.unchecked[recipe.text] = "what it had learned was pruned"
            continue
        try:
            learner = blank(recipe.policy, journal, recipe=number)
            _decide_again(learner, recipe, journal, found, current, last=last)
        except (RuntimeError, KeyError, TypeError, ValueError) as error:
            if last and not found.changed:
                raise
            # a row was changed, or it never had to learn what came after it
            found.unchecked[recipe.text] = str(error)
    return found


def _decide_again(
    learner: Learner,
    recipe: Recipe,
    journal: Journal,
    found: Verification,
    current: Learner | None,
    *,
    last: bool,
) -> None:
    """Make the decisions of one recipe again, and compare snapshots on the way."""
    number: Any = learner.recipe
    snapshots, offer, start = dict(journal.snapshots(number)), offers(journal), learner.learned
    found.since = max(found.since, start)
    alarms = set[tuple[int, str]]()

    def learned() -> None:
        at = learner.learned
        if at in snapshots:
            found.snapshots[at] = learner.same(snapshots[at]) and found.snapshots.get(at, True)
        if last and current is not None and at == current.learned:
            found.state = learner.same(current.to_bytes())
        alarms.update(learner.alarms)
        learner.alarms = []

    for id_, unit, offered, after, repeats, earlier, *decided in journal.stream(
        _DECIDED, (number,)
    ):
        if after < start or decided[3] == "history":
            continue
        replay(learner, journal, after, learned, offer)
        if repeats is None:
            same = _again(learner, recipe, id_, unit, offer(offered), decided)
        elif decided[4] is None:
            same = start > 0  # the request that it repeats was pruned
        else:
            was = decided[4:]
            was[2] = was[2] if earlier == offered else None
            same = decided[:4] == was
        if not same:
            found.differing.append(id_)
    if last:
        replay(learner, journal, found.outcomes, learned, offer)
        texts = [note.text for note in journal.notes() if note.kind == "alarm"]
        noted = {(text["outcome"], text["arm"]) for text in texts if text["recipe"] == number}
        unseen = sorted(at for at, _ in noted - alarms if at >= start)
        found.changed += [f"alarm after outcome {at}" for at in unseen]


def _again(
    learner: Learner,
    recipe: Recipe,
    id_: int,
    unit: str | None,
    offer: Offer,
    decided: Sequence[Any],
) -> bool:
    """Return whether arm, propensity, shares and group of a request come out as they are."""
    arm, share, shares, group, *_ = decided
    name = learner.names.get(arm)
    if name is None or name not in offer.names:
        return False
    place = offer.names.index(name)
    every: list[float] | None = certain(offer, name)
    if group != "fixed":
        if group != group_of(learner.seed, id_, unit, recipe.control, offer):
            return False
        chosen, every = learner.choose(id_, offer, recipe.even(offer), recipe.control, group)
        if chosen != place:
            return False
    return (None if every is None else every[place], packed(every)) == (share, shares)


def _check_chain(
    journal: Journal, found: Verification, pruned: dict[str, Any], recipes: dict[int, Recipe]
) -> None:
    """Check the seals of outcomes, that no number is missing, and that events explain outcomes."""
    chain, expected = pruned.get("seal", 0), pruned.get("first", 0)
    for (number, reward, why, at, mark), rows in groupby(journal.stream(_CHAIN), itemgetter(*_OUT)):
        request: Request | None = None
        for row in rows:
            if row[5] is not None:
                request = Request(*row[5:15]) if request is None else request
            if request is not None and row[15] is not None:
                request.events[row[15]] = (row[16], row[17], 0)
        same = request is not None and number == expected
        if request is not None:
            same &= mark == _sealed(sealed_outcome, chain, number, request, reward, why, at)
            if request.group != "history" and request.recipe in recipes:
                same &= recipes[request.recipe].outcome(request, over=True) == (reward, why)
        if not same:
            found.changed.append(f"outcome {number}")
        chain, expected = mark, number + 1


def _check_rows(journal: Journal, found: Verification, recipes: dict[int, Recipe]) -> None:
    """Check the seals of events, and that every request has its window, and waits or has ended."""
    columns = "request, name, value, at, late, seal"
    for *row, mark in journal.stream(f"SELECT {columns} FROM event ORDER BY request, name"):
        if _sealed(sealed_event, *row) != mark:
            found.changed.append(f"event {row[0]}")
    for words, sql in _ORPHANS.items():
        found.changed += [words.format(number) for (number,) in journal.execute(sql)]
    wrong = [f"SELECT id FROM request WHERE recipe NOT IN ({', '.join(map(str, recipes))})"]
    wrong.append("SELECT id FROM request WHERE offer NOT IN (SELECT id FROM offer)")
    for number, recipe in recipes.items():
        window = f"ends <> at + {float(recipe.wait)!r} AND ends <> at"
        wrong.append(f"SELECT id FROM request WHERE recipe = {number} AND {window}")
    ids = {id_ for sql in wrong for (id_,) in journal.execute(sql)}
    found.changed += [f"request {id_}" for id_ in sorted(ids)]
    names = journal.arms().keys()
    digests = journal.stream("SELECT id, digest, names, features FROM offer ORDER BY id")
    for number, digest, listed, features in digests:
        offer = Offer.from_row(listed, features)
        if offer.key != bytes(digest) or not names >= set(offer.names):
            found.changed.append(f"offer {number}")


def _sealed(seal: Callable[..., int], *row: Any) -> int | None:
    """Return the seal of a row, None if a number in it was changed to something else."""
    try:
        return seal(*row)
    except StructError:
        return None
