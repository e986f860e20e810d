"""A policy and what it has learned so far by replaying a journal."""

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
"""Choices drawn to estimate a propensity that the policy does not report."""
RECENT = 256
"""Latest updates that pending rewards are imputed from."""


class Choice(NamedTuple):
    """The arm, as an index into the offer, and its propensity."""

    arm: int
    propensity: float | None


@dataclass(frozen=True)
class _Lesson:
    """What is kept of an update to impute pending rewards."""

    key: object
    vector: Array
    value: float
    noise: Array


class Mind:
    """A policy on one path, with its current state.

    The state after n updates depends only on these updates and their order. A choice depends only
    on the state, on the pending decisions, and on random numbers seeded with (seed, decision).

    Choices are made with a copy of the state that has also learned imputed rewards for the pending
    decisions, so that choices made while rewards are outstanding differ. The imputed reward is

    x·θ + c plus the noise of a recent update

    where θ is the policy's estimate and c the median residual of recent updates. If the policy has
    no estimate, the median of the arm's recent updates takes the place of x·θ + c, or the median of
    all recent updates if the arm has none.

    Parameters
    ----------
    policy : Policy
    seed : int
    dim : int, optional
        The length of the feature vectors; by default that of the first offer, or its number of arms
        if it has no features.

    Source: Ginsbourger, Le Riche and Carraro 2010 for imputing pending trials. Differences: any
    policy; noise is added.
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
        """Whether pending rewards are imputed; not for a guest, as copying one is expensive."""
        return not isinstance(innermost(self.policy), Guest)

    def meet(self, offer: Offer) -> None:
        """Register an offer, numbering its arms in the order in which they are first seen.

        Offers must come in the order of the journal; one that does not fit raises ``ValueError``.
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
        """Register an offer, and undo that if the body raises ``ValueError``."""
        numbers, dim, state = dict(self.numbers), self.dim, self.state
        try:
            self.meet(offer)
            yield
        except ValueError:
            self.numbers, self.dim, self.state = numbers, dim, state
            raise

    def check(self, offer: Offer) -> None:
        """Raise ``ValueError`` if the policy could not learn from this offer."""
        kind = type(innermost(self.policy)).__name__
        new = [name for name in offer.names if name not in self.numbers]
        if self.uses_vectors and self.dim is not None:
            got = self.dim if offer.dim is None else offer.dim
            if got != self.dim:
                raise ValueError(
                    f"features must have length {self.dim} in this journal, got length {got}"
                )
            if offer.dim is None and len(self.numbers) + len(new) > self.dim:
                raise ValueError(
                    f"{kind} takes at most {self.dim} arms without features, and {new} would be "
                    "too many: offer features, or start a new journal with a larger dim"
                )
        if offer.vectors is not None and self.uses_vectors:
            length, most = np.linalg.norm(offer.vectors, axis=1).max(), self.policy._longest
            require(length <= most, "the norm of features", f"at most {most:g}", float(length))
        if self.state is not None and self.state.fixed_arms and new:
            raise ValueError(
                f"{kind} takes no new arms after the first offer, got {new}: "
                "start a new journal for another set of arms"
            )
        every = len(offer.names) >= len(self.numbers)
        if self.state is not None and self.numbered and self.uses_vectors and not every:
            raise ValueError(
                f"{kind} needs all {len(self.numbers)} arms in every offer, got {list(offer.names)}"
            )

    def choose(
        self, hold: int, offer: Offer, explore: float, pending: Mapping[int, Decision]
    ) -> Choice:
        """Choose an arm; with probability `explore`, uniformly among the arms of the offer."""
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
        """Learn from an outcome; it counts as an update even if the decision was given up."""
        if closing.learned:
            self._teach(self.state, closing.decision, closing.rewards)
        self.remember(closing)
        self.lessons += 1
        self.expect_anew()

    def remember(self, closing: Closing) -> None:
        """Keep an update for imputing pending rewards."""
        decision, learned, rewards = closing
        lesson = None
        if learned:
            rewards = clip(rewards)
            ordered = np.sort(rewards)
            value = float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
            lesson = _Lesson(*self._arm(decision), value, rewards - value)
        self._recent.append(lesson)

    def expect_anew(self) -> None:
        """Discard imputed rewards."""
        self._belief: Any = None
        self._believed: set[int] = set()

    def _teach(self, state: Any, decision: Decision, rewards: Array) -> None:
        """Update a state with the rewards of a decision."""
        arms = self._arms(decision.offer, all_known=True)
        chosen = self.numbers[decision.name] if self.numbered else decision.arm
        known = None if decision.propensity is None else [decision.propensity]
        self.policy.learn(state, arms, [chosen], rewards[None], known)

    def _expecting(self, pending: Mapping[int, Decision]) -> Any:
        """Return the state updated with imputed rewards for the pending decisions."""
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
        """Return imputed rewards for a pending decision."""
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
        """Return the probability that the policy chooses an arm, None if it is not known."""
        known = self.policy.propensities(state, arms)
        if known is not None:
            return float(known[0, arm])
        if isinstance(innermost(self.policy), Guest):
            return None
        slim = copy(state)
        if isinstance(slim, Piloted):
            slim.forget()  # choices do not use the pilot rewards
        copies = slim.take(np.zeros(_COPIES, dtype=np.int64))
        drawn = self.policy.choose(copies, np.broadcast_to(arms, (_COPIES, *arms.shape[1:])), rng)
        return float(((drawn == arm).sum() + (own == arm)) / (_COPIES + 1))

    def _arm(self, decision: Decision) -> tuple[object, Array]:
        """Return a key that identifies the arm, and its vector."""
        name, vectors = decision.name, decision.offer.vectors
        if self.uses_vectors and vectors is not None:
            vector = vectors[decision.arm]
            return vector.tobytes(), vector
        return name, np.eye(1, self._width(), self.numbers[name])[0]

    def _width(self) -> int:
        """Return the dimension of the vectors that the policy sees."""
        return (self.dim or 1) if self.uses_vectors else 1

    def _order(self, offer: Offer) -> list[int]:
        """Return the indices of an offer's arms in the order in which the policy sees them."""
        places = range(len(offer.names))
        if not self.numbered:
            return list(places)
        return sorted(places, key=lambda i: self.numbers[offer.names[i]])

    def _arms(self, offer: Offer, *, all_known: bool) -> Array:
        """Return the arms as the policy sees them, of shape (1, K, d).

        A K-armed policy learns by arm number, so `all_known` also counts arms not on offer.
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
        """Return the state restricted to the arms of an offer."""
        if not self.numbered:
            return state
        numbers = sorted(self.numbers[name] for name in offer.names)
        if numbers == list(range(len(numbers))) and len(numbers) >= state.arms:
            return state
        if state.arms <= numbers[-1]:
            state = self.policy._resized(state, numbers[-1] + 1)
        return state.among(np.array(numbers))

    def to_bytes(self) -> bytes:
        """Return the state as a snapshot: a SHA-256 digest, then an npz file."""
        file = io.BytesIO()
        np.savez(file, allow_pickle=False, **self.state.to_arrays())
        packed = file.getvalue()
        return hashlib.sha256(packed).digest() + packed

    def from_bytes(self, snapshot: bytes, lessons: int) -> None:
        """Restore a snapshot; raises ``ValueError`` if it is corrupt or of another version."""
        digest, packed = snapshot[:32], snapshot[32:]
        if hashlib.sha256(packed).digest() != digest:
            raise ValueError("snapshot checksum mismatch")
        with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
            self.state = self.policy.restore(dict(arrays))
        self.lessons = lessons
        self.expect_anew()
