"""Replaying a journal: to restore a state, and to teach another policy."""

import json
import logging
import math
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from tailproof.live.journal import Journal
from tailproof.live.learner import Learner
from tailproof.live.offer import Offer
from tailproof.policies.base import Policy

__all__ = ["blank", "jump", "offers", "replay", "restored"]

_LOG = logging.getLogger("tailproof.live")
_SPOKEN = 5.0
"""Seconds between two lines on the progress of a long replay."""
_CHUNK = 1000
"""Outcomes that are read at once."""
_OFFERS = 1024
"""Offers that are kept in memory."""


def offers(journal: Journal) -> Callable[[int], Offer]:
    """Return a function that returns an offer by its id, and keeps the latest ones."""
    return lru_cache(_OFFERS)(lambda number: Offer.from_row(*journal.offer(number)))


def replay(
    learner: Learner,
    journal: Journal,
    stop: int,
    after_each: Callable[[], None] | None = None,
    offer: Callable[[int], Offer] | None = None,
) -> None:
    """Learn the outcomes of a journal up to number `stop`; `after_each` is called after each.

    Restarts, several processes, `verify`, other policies and changed recipes all do this.
    """
    logged, offer = time.monotonic(), offer or offers(journal)
    while learner.learned < stop:
        some = journal.learnable(learner.learned, min(stop, learner.learned + _CHUNK))
        for number, reward, arm, offered, propensity in some:
            if number > learner.learned:  # what comes next was pruned
                break
            given = offer(offered)
            if not learner.knows(given):  # another agent offered them first
                learner.know(journal.arms())
            try:
                learner.learn(given, arm, reward, propensity)
            except ValueError as error:  # due to an earlier request, not to this one
                raise RuntimeError(f"cannot learn outcome {number}: {error}") from error
            if after_each is not None:
                after_each()
        else:
            if learner.learned < stop and time.monotonic() > logged + _SPOKEN:
                logged = time.monotonic()
                _LOG.info("replayed %s of %s outcomes", learner.learned, stop)
            if some:
                continue
        was = learner.learned
        jump(learner, journal)
        if learner.learned == was:
            raise RuntimeError(f"outcome {was} is not in the journal, nor is a later snapshot")


def restored(
    policy: Policy[Any], journal: Journal, recipe: int | None = None, stop: int | None = None
) -> Learner:
    """Return the learner after so many outcomes, by default all, from the latest snapshot."""
    learner = blank(policy, journal, recipe=recipe)
    jump(learner, journal, math.inf if stop is None else stop)
    replay(learner, journal, journal.outcome_count() if stop is None else stop)
    return learner


def jump(learner: Learner, journal: Journal, stop: float = math.inf) -> None:
    """Load the latest intact snapshot up to `stop`, if it is later than the outcomes learned."""
    for after, state in () if learner.recipe is None else journal.snapshots(learner.recipe):
        if after <= learner.learned:
            return
        if after > stop:
            continue
        try:
            learner.from_bytes(state, after)
            return
        except ValueError as error:
            _LOG.warning("ignoring corrupt snapshot; replaying the journal: %s", error)


def blank(
    policy: Policy[Any], journal: Journal, room: int = 0, recipe: int | None = None
) -> Learner:
    """Return a learner that has learned nothing yet but knows the arms of the journal.

    If arms have no features, it has room for at least `room` of them. If the journal was pruned, it
    starts from the snapshot that was kept for this recipe, by default the latest of this policy;
    without a snapshot, it begins with the first outcome left.
    """
    meta, recipes = journal.meta(), journal.recipes()
    if recipe is None:
        same = [number for number, text, *_ in recipes if text == repr(policy)]
        recipe = same[-1] if same else None
    rules = json.loads(recipes[-1 if recipe is None else recipe][2])
    learner = Learner(policy, rules["seed"], rules["dim"])
    learner.room = max(room, len(rules["arms"] or ()))
    learner.know(journal.arms())
    if "arms" in meta:
        dim = int(meta["dim"])
        if meta["features"] == "no":
            dim = max(dim, room, rules["dim"] or 0)
        learner.begin(int(meta["arms"]), dim)
    learner.recipe, learner.learned = recipe, journal.first()
    for after, state in () if recipe is None else journal.snapshots(recipe, kept=True):
        try:
            learner.from_bytes(state, after)
        except ValueError as error:
            raise ValueError(
                f"cannot restore what was learned before the journal was pruned: {error}; use a "
                "backup of the journal"
            ) from error
    return learner
