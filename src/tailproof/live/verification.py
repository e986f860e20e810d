"""Checking a journal: the chain of its outcomes, and every decision made again."""

from collections.abc import Callable
from dataclasses import dataclass, field
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
    "SELECT r.id, r.unit, r.offer, r.arm, r.propensity, r.shares, r.grp, r.repeats, r.after,"
    " e.arm, e.propensity, e.shares, e.grp, e.offer FROM request r"
    " LEFT JOIN request e ON e.id = r.repeats WHERE r.recipe = ? ORDER BY r.after, r.id"
)
_CHAIN = (
    "SELECT o.number, o.request, o.reward, o.why, o.at, o.seal, r.id, r.ticket, r.unit, r.at,"
    " r.ends, r.recipe, r.arm, r.propensity, r.grp, r.again, e.name, e.value, e.at FROM outcome o"
    " LEFT JOIN request r ON r.id = o.request"
    " LEFT JOIN event e ON e.request = o.request AND e.late = 0 ORDER BY o.number, e.name"
)


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
    recipes_there, notes = journal.recipes(), journal.notes()
    pruned: dict[str, Any] = next(
        (note.text for note in reversed(notes) if note.kind == "prune"), {}
    )
    verification = Verification(outcomes=journal.outcome_count())
    ((verification.requests,),) = journal.execute("SELECT COUNT(*) FROM request")
    recipes = {
        number: Recipe.of(policy if policy is not None and text == repr(policy) else text, rules)
        for number, text, rules, *_ in recipes_there
    }
    _check_chain(journal, verification, pruned, recipes)
    _check_rows(journal, verification, recipes)
    for number, text, *_ in recipes_there:
        recipe = recipes[number]
        last = number == recipes_there[-1][0]
        if isinstance(recipe.policy, str):
            verification.unchecked[text] = "it cannot be built from its text"
        elif number <= pruned.get("recipe", -1) and not journal.snapshots(number, kept=True):
            verification.unchecked[text] = "what it had learned was pruned"
        else:
            learner = blank(recipe.policy, journal, recipe=number)
            try:
                _decide_again(
                    learner, recipe, journal, verification, current if last else None, last=last
                )
            except (RuntimeError, KeyError, TypeError, ValueError) as error:
                if last and not verification.changed:
                    raise
                verification.unchecked[text] = str(
                    error
                )  # or it never had to learn what came after it
    return verification


def _decide_again(
    learner: Learner,
    recipe: Recipe,
    journal: Journal,
    verification: Verification,
    current: Learner | None,
    *,
    last: bool,
) -> None:
    """Make the decisions of one recipe again, and compare snapshots on the way."""
    assert learner.recipe is not None
    snapshots, offer = dict(journal.snapshots(learner.recipe)), offers(journal)
    start = learner.learned
    verification.since = max(verification.since, start)
    alarms = list[tuple[int, str]]()

    def learned() -> None:
        if learner.learned in snapshots:
            same = learner.same(snapshots[learner.learned])
            verification.snapshots[learner.learned] = same and verification.snapshots.get(
                learner.learned, True
            )
        if current is not None and learner.learned == current.learned:
            verification.state = learner.same(current.to_bytes())
        alarms.extend(learner.alarms)
        learner.alarms = []

    for id_, unit, offered, *decided, after, arm, share, shares, group, earlier in journal.stream(
        _DECIDED, (learner.recipe,)
    ):
        if after < start or decided[3] == "history":
            continue
        replay(learner, journal, after, learned, offer)
        if decided[4] is not None and arm is None:
            same = start > 0  # the request that it repeats was pruned
        elif decided[4] is not None:
            was = (arm, share, shares if earlier == offered else None, group)
            same = tuple(decided[:4]) == was
        else:
            same = _again(learner, recipe, id_, unit, offer(offered), decided)
        if not same:
            verification.differing.append(id_)
    if last:
        replay(learner, journal, verification.outcomes, learned, offer)
        noted = [note.text for note in journal.notes() if note.kind == "alarm"]
        other = {
            (alarm["outcome"], alarm["arm"]) for alarm in noted if alarm["recipe"] == learner.recipe
        }
        unseen = sorted(other - set(alarms))
        verification.changed += [f"alarm after outcome {at}" for at, _ in unseen if at >= start]


def _again(
    learner: Learner,
    recipe: Recipe,
    id_: int,
    unit: str | None,
    offer: Offer,
    decided: list[Any],
) -> bool:
    """Return whether arm, propensity, shares and group of a request come out as they are."""
    (arm, share, shares, group, _), names = decided, learner.names
    every: list[float] | None
    if names.get(arm) not in offer.names:
        return False
    if group == "fixed":
        place, every = offer.names.index(names[arm]), certain(offer, names[arm])
    else:
        if group != group_of(learner.seed, id_, unit, recipe.control, offer):
            return False
        control: Any = recipe.control
        place, every = learner.choose(id_, offer, recipe.even(offer), control, group)
    propensity = None if every is None else every[place]
    return (offer.names[place], propensity, packed(every)) == (names[arm], share, shares)


def _check_chain(
    journal: Journal, verification: Verification, pruned: dict[str, Any], recipes: dict[int, Recipe]
) -> None:
    """Check the seals of outcomes, that no number is missing, and that events explain outcomes."""
    chain, expected = pruned.get("seal", 0), pruned.get("first", 0)
    last: list[Any] = []
    request = None

    def check() -> None:
        nonlocal chain, expected
        number, _, reward, why, at, mark = last
        same = request is not None and mark == _sealed(
            sealed_outcome, chain, number, request, reward, why, at
        )
        if request is not None and request.group != "history" and request.recipe in recipes:
            same &= recipes[request.recipe].outcome(request, over=True) == (reward, why)
        if not same or number != expected:
            verification.changed.append(f"outcome {number}")
        chain, expected = mark, number + 1

    for row in journal.stream(_CHAIN):
        if last and row[0] != last[0]:
            check()
            request = None
        last = list(row[:6])
        if row[6] is not None:
            request = Request(*row[6:16]) if request is None else request
            if row[16] is not None:
                request.events[row[16]] = (row[17], row[18], 0)
    if last:
        check()


def _check_rows(journal: Journal, verification: Verification, recipes: dict[int, Recipe]) -> None:
    """Check the seals of events, and that every request has its window, and waits or has ended."""
    columns = "request, name, value, at, late"
    for *row, mark in journal.stream(f"SELECT {columns}, seal FROM event ORDER BY request, name"):
        if _sealed(sealed_event, *row) != mark:
            verification.changed.append(f"event {row[0]}")
    for table, sql in {
        "event": "SELECT e.request FROM event e LEFT JOIN request r ON r.id = e.request"
        f" WHERE r.id IS NULL AND e.request <> {BEFORE}",
        "request": "SELECT r.id FROM request r LEFT JOIN outcome o ON o.request = r.id"
        " WHERE o.number IS NULL AND r.id NOT IN (SELECT request FROM due)",
        "due": "SELECT d.request FROM due d LEFT JOIN request r ON r.id = d.request"
        " WHERE r.id IS NULL",
    }.items():
        words = {"event": "event {} without a request", "request": "outcome of request {}"}
        words["due"] = "request {}"
        for (number,) in journal.execute(f"{sql} ORDER BY 1"):
            verification.changed.append(words[table].format(number))
    places = ", ".join(map(str, recipes))
    foreign = f"SELECT id FROM request WHERE recipe NOT IN ({places})"
    lost = "SELECT id FROM request WHERE offer NOT IN (SELECT id FROM offer)"
    wrong = [number for sql in (foreign, lost) for (number,) in journal.execute(sql)]
    window = "SELECT id FROM request WHERE recipe = ? AND ends <> at + ? AND ends <> at"
    for number, recipe in recipes.items():
        wrong += [id_ for (id_,) in journal.execute(window, (number, float(recipe.wait)))]
    verification.changed += [f"request {id_}" for id_ in sorted({*wrong})]
    names = journal.arms().keys()
    digests = journal.stream("SELECT id, digest, names, features FROM offer ORDER BY id")
    for number, digest, listed, features in digests:
        offer = Offer.from_row(listed, features)
        if offer.key != bytes(digest) or not names >= set(offer.names):
            verification.changed.append(f"offer {number}")


def _sealed(seal: Callable[..., int], *row: Any) -> int | None:
    """Return the seal of a row, None if a number in it was changed to something else."""
    try:
        return seal(*row)
    except StructError:
        return None
