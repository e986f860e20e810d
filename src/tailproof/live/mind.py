"""A policy and what it has learned so far: the fold of the lessons of a journal."""

import hashlib
import io
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tailproof.checks import require
from tailproof.guests.base import Guest
from tailproof.live.offers import Offer
from tailproof.live.records import Closing, Decision
from tailproof.policies.base import Array, Policy
from tailproof.policies.state.counts import clip
from tailproof.wrappers.base import innermost
from tailproof.wrappers.pilot import Piloted

__all__ = ["RECENT", "Choice", "Mind"]

_COPIES = 200
"""How many copies of a path tell how probable a choice was, where the policy cannot."""
RECENT = 256
"""The lessons that tell what a pending pull may bring."""


class Choice(NamedTuple):
    """An arm of an offer, and how probable it was."""

    arm: int
    propensity: float | None


@dataclass(frozen=True)
class _Lesson:
    """What is remembered of a lesson to guess what pending pulls bring."""

    key: object
    vector: Array
    value: float
    noise: Array


class Mind:
    """A policy on one path, with the state that the lessons so far have led to.

    The state after n lessons depends on these lessons and their order alone, and the choice of a
    hold on this state, on the pulls that were pending, and on random numbers of (seed, hold).

    Pending pulls are learned in a copy of the state, as if each had brought what is expected of its
    arm, so that choices made while rewards are awaited differ. What is expected is x·θ + c, θ the
    policy's estimate and c the median of what recent lessons were beyond theirs, or, where there is
    no estimate, the median of the recent lessons of the arm, or of all.

    Parameters
    ----------
    policy : Policy
    seed : int
    dim : int, optional
        The length of the features; by default that of the first offer, or its number of arms.

    Source: Ginsbourger, Le Riche and Carraro 2010 for learning what is expected of pending trials.
    Differences: any policy, with the noise of a recent lesson.
    """

    def __init__(self, policy: Policy[Any], seed: int, dim: int | None = None) -> None:
        self.policy, self.seed, self.dim = policy, seed, dim
        self.uses_vectors = policy.view != "arms"
        self.numbers: dict[str, int] = {}
        self.state: Any = None
        self.lessons = 0
        self._recent: deque[_Lesson | None] = deque(maxlen=RECENT)
        self.expect_anew()

    @property
    def numbered(self) -> bool:
        """Whether the policy knows an arm by its number."""
        return self.policy.view != "vectors" or self.state.fixed_arms

    @property
    def believes(self) -> bool:
        """Whether pending pulls are expected to bring something; a copy of a guest is dear."""
        return not isinstance(innermost(self.policy), Guest)

    def meet(self, offer: Offer) -> None:
        """Take note of an offer: arms are numbered in the order in which they are first seen.

        Offers must be met in the order of the journal; one that does not fit is refused.
        """
        self.check(offer)
        for name in offer.names:
            self.numbers.setdefault(name, len(self.numbers))
        if self.dim is None:
            self.dim = len(offer.names) if offer.dim is None else offer.dim
        if self.state is None:
            self.state = self.policy.init(1, len(self.numbers), self._width())

    @contextmanager
    def meeting(self, offer: Offer) -> Iterator[None]:
        """Take note of an offer, unless it is refused in the end."""
        numbers, dim, state = dict(self.numbers), self.dim, self.state
        try:
            self.meet(offer)
            yield
        except ValueError:
            self.numbers, self.dim, self.state = numbers, dim, state
            raise

    def check(self, offer: Offer) -> None:
        """Refuse an offer that the policy could never learn from."""
        kind = type(innermost(self.policy)).__name__
        new = [name for name in offer.names if name not in self.numbers]
        if self.uses_vectors and self.dim is not None:
            got = self.dim if offer.dim is None else offer.dim
            require(got == self.dim, "features", f"vectors of length {self.dim}", got)
            if offer.dim is None:
                rule = f"of at most {self.dim} arms, or with features, for {kind}"
                require(len(self.numbers) + len(new) <= self.dim, "offer", rule, list(offer.names))
        if offer.vectors is not None and self.uses_vectors:
            length, most = np.linalg.norm(offer.vectors, axis=1).max(), self.policy._longest
            require(length <= most, "features", f"no longer than {most:g}", float(length))
        if self.state is not None and self.state.fixed_arms:
            rule = f"of the arms that {kind} began with"
            require(not new, "offer", rule, list(offer.names))
        if self.state is not None and self.numbered and self.uses_vectors:
            rule = f"of all {len(self.numbers)} arms so far, for {kind}"
            require(len(offer.names) >= len(self.numbers), "offer", rule, list(offer.names))

    def choose(
        self, hold: int, offer: Offer, explore: float, pending: Mapping[int, Decision]
    ) -> Choice:
        """Return the arm of a hold; with probability `explore` it is any arm of the offer."""
        rng = np.random.default_rng([self.seed, hold])
        lot, any_arm = rng.random(), int(rng.integers(len(offer.names)))
        state = self._offered(self._expecting(pending), offer)
        arms = self._arms(offer, all_known=False)
        own = int(self.policy.choose(state, arms, rng)[0])
        order = self._order(offer)
        arm = any_arm if lot < explore else order[own]
        share = self._share(state, arms, order.index(arm), own, rng)
        if share is not None:
            share = explore / len(order) + (1 - explore) * share
        return Choice(arm, share)

    def fold(self, closing: Closing) -> None:
        """Learn from the end of a hold; of one that was given up there is nothing to learn."""
        if closing.learned:
            self._teach(self.state, closing.decision, closing.rewards)
        self.remember(closing)
        self.lessons += 1
        self.expect_anew()

    def remember(self, closing: Closing) -> None:
        """Keep a lesson in mind, to guess what pending pulls of its arm bring."""
        decision, learned, rewards = closing
        lesson = None
        if learned:
            rewards = clip(rewards)
            ordered = np.sort(rewards)
            value = float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
            lesson = _Lesson(*self._arm(decision), value, rewards - value)
        self._recent.append(lesson)

    def expect_anew(self) -> None:
        """Forget what was expected of pending pulls."""
        self._belief: Any = None
        self._believed: set[int] = set()

    def _teach(self, state: Any, decision: Decision, rewards: Array) -> None:
        """Let the policy learn a decision."""
        arms = self._arms(decision.offer, all_known=True)
        chosen = self.numbers[decision.name] if self.numbered else decision.arm
        known = None if decision.propensity is None else [decision.propensity]
        self.policy.learn(state, arms, [chosen], rewards[None], known)

    def _expecting(self, pending: Mapping[int, Decision]) -> Any:
        """Return the state as if pending pulls had brought what is expected."""
        if not pending:
            return self.state
        if self._belief is None:
            self._belief = self.state.copy()
        for hold, decision in pending.items():
            if hold not in self._believed:
                self._teach(self._belief, decision, self._guess(decision))
                self._believed.add(hold)
        return self._belief

    def _guess(self, decision: Decision) -> Array:
        """Return rewards that a pending hold may bring."""
        pulls, recent = self.policy.pulls, [lesson for lesson in self._recent if lesson]
        if not recent:
            return np.zeros(pulls)
        key, vector = self._arm(decision)
        theta = self.policy.estimate(self.state) if self.uses_vectors else None
        if theta is not None and np.isfinite(theta).all():
            beyond = [lesson.value - float(lesson.vector @ theta[0]) for lesson in recent]
            middle = float(vector @ theta[0]) + float(np.median(beyond))
        else:
            own = [lesson.value for lesson in recent if lesson.key == key]
            middle = float(np.median(own or [lesson.value for lesson in recent]))
        noise = recent[decision.hold % len(recent)].noise
        return middle + noise[np.arange(pulls) % len(noise)]

    def _share(
        self, state: Any, arms: Array, arm: int, own: int, rng: np.random.Generator
    ) -> float | None:
        """Return how probable it was that the policy chose an arm."""
        known = self.policy.propensities(state, arms)
        if known is not None:
            return float(known[0, arm])
        if isinstance(innermost(self.policy), Guest):
            return None
        slim = copy(state)
        if isinstance(slim, Piloted):
            slim.forget()  # a choice does not look at them
        copies = slim.take(np.zeros(_COPIES, dtype=np.int64))
        drawn = self.policy.choose(copies, np.broadcast_to(arms, (_COPIES, *arms.shape[1:])), rng)
        return float(((drawn == arm).sum() + (own == arm)) / (_COPIES + 1))

    def _arm(self, decision: Decision) -> tuple[object, Array]:
        """Return what tells the arm from others, and its vector."""
        name, vectors = decision.name, decision.offer.vectors
        if self.uses_vectors and vectors is not None:
            vector = vectors[decision.arm]
            return vector.tobytes(), vector
        return name, np.eye(1, self._width(), self.numbers[name])[0]

    def _width(self) -> int:
        """Return d of the vectors for the policy."""
        return (self.dim or 1) if self.uses_vectors else 1

    def _order(self, offer: Offer) -> list[int]:
        """Return the arms of an offer in the order in which the policy is shown them."""
        places = range(len(offer.names))
        if not self.numbered:
            return list(places)
        return sorted(places, key=lambda i: self.numbers[offer.names[i]])

    def _arms(self, offer: Offer, *, all_known: bool) -> Array:
        """Return the arms for the policy, of shape (1, K, d).

        A policy that knows arms by their number learns with all arms so far, K-armed ones.
        """
        if not self.uses_vectors:
            every = all_known and self.numbered
            k = 1 + max(self.numbers[name] for name in offer.names) if every else len(offer.names)
            return np.zeros((1, k, 1))
        order = self._order(offer)
        if offer.vectors is not None:
            return offer.vectors[order][None]
        return np.eye(self._width())[[self.numbers[offer.names[i]] for i in order]][None]

    def _offered(self, state: Any, offer: Offer) -> Any:
        """Return the state for a choice among the arms of an offer."""
        if not self.numbered:
            return state
        numbers = sorted(self.numbers[name] for name in offer.names)
        if numbers == list(range(len(numbers))) and len(numbers) >= state.arms:
            return state
        if state.arms <= numbers[-1]:
            state = self.policy._resized(state, numbers[-1] + 1)
        return state.among(np.array(numbers))

    def to_bytes(self) -> bytes:
        """Return everything learned, for a snapshot: a digest and an npz file."""
        file = io.BytesIO()
        np.savez(file, allow_pickle=False, **self.state.to_arrays())
        packed = file.getvalue()
        return hashlib.sha256(packed).digest() + packed

    def from_bytes(self, snapshot: bytes, lessons: int) -> None:
        """Take over a snapshot; one that is damaged or of another version raises ``ValueError``."""
        digest, packed = snapshot[:32], snapshot[32:]
        ok = hashlib.sha256(packed).digest() == digest
        require(ok, "snapshot", "whole", f"{len(snapshot)} bytes that are not")
        with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
            self.state = self.policy.restore(dict(arrays))
        self.lessons = lessons
        self.expect_anew()
