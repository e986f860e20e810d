"""A policy and what it has learned so far from the outcomes of a journal."""

import hashlib
import io
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tailproof.checks import require
from tailproof.guests.base import Guest
from tailproof.live.journal.rows import Decision, Outcome
from tailproof.live.offers import Offer
from tailproof.policies.base import Policy
from tailproof.policies.baselines import Uniform
from tailproof.policies.lin_ts import LinTS
from tailproof.policies.randomised import Randomised
from tailproof.policies.state.counts import clip
from tailproof.policies.thompson import ThompsonSampling
from tailproof.typing import Array
from tailproof.wrappers.base import Wrapper, innermost
from tailproof.wrappers.pilot import Piloted
from tailproof.wrappers.vigilant import Vigilant, Watched

__all__ = ["RECENT", "Alarm", "Belief", "Choice", "Learner"]

_COPIES = 200
"""Choices drawn to estimate propensities that the policy does not report."""
RECENT = 256
"""Latest outcomes that pending rewards are imputed from, and latest decisions that they are for."""
_LEFT = ("left keys", "left sizes", "left rewards")
"""The arrays of a snapshot with the rewards that are too few for an update."""
_VARIED = (Guest, LinTS, Randomised, ThompsonSampling, Uniform)
"""Policies that need no imputed rewards: choices vary by themselves, or a copy is expensive."""


class Choice(NamedTuple):
    """The arm, as an index into the offer, and the propensity of every arm, None if unknown."""

    arm: int
    shares: Array | None

    @property
    def propensity(self) -> float | None:
        """The propensity of the arm."""
        return None if self.shares is None else float(self.shares[self.arm])

    @property
    def packed(self) -> bytes | None:
        """The propensities as a journal stores them."""
        return None if self.shares is None else self.shares.astype("<f4").tobytes()


class Alarm(NamedTuple):
    """A restart of a policy that is `Vigilant`: after which outcome, and of which arm."""

    outcome: int
    arm: str


@dataclass(frozen=True)
class _Recent:
    """What is kept of an outcome to impute pending rewards."""

    key: object
    vector: Array
    value: float
    rewards: Array


class Learner:
    """A policy on one path, with its current state.

    The state after n outcomes depends only on these outcomes and their order. A choice depends only
    on a state, and on random numbers seeded with (seed, decision).

    Parameters
    ----------
    policy : Policy
    seed : int
    dim : int, optional
        The length of the feature vectors; by default that of the first offer, or its number of arms
        if it has no features.
    """

    def __init__(self, policy: Policy[Any], seed: int, dim: int | None = None) -> None:
        self.policy, self.seed, self.dim = policy, seed, dim
        inner = innermost(policy)
        self.kind = type(inner).__name__
        self.uses_vectors = policy.view != "arms"
        self.imputes = not isinstance(inner, _VARIED)
        """Whether choices are made as if pending rewards had come."""
        self._whole_offers = policy.view == "context" and isinstance(inner, Guest)
        self.numbers: dict[str, int] = {}
        self.state: Any = None
        self.learned = 0
        self.first_arms = 0
        """The number of arms of the first offer."""
        self.recipe: int | None = None
        """The number of the recipe in the journal, None for a policy that never decided there."""
        self.left: dict[tuple[str, str], Array] = {}
        """Rewards that are too few for an update, by offer and arm; see `_updates`."""
        self.alarms: list[Alarm] = []
        """Restarts that are not yet in the journal."""
        self._watched = _is_watched(policy)
        self._recent: deque[_Recent | None] = deque(maxlen=RECENT)
        self._means: tuple[Any, ...] | None = None

    @property
    def numbered(self) -> bool:
        """Whether the policy knows an arm by its number."""
        return self.policy.view != "vectors" or self.state.fixed_arms

    def begin(self, arms: int, dim: int) -> None:
        """Start from nothing, with so many arms and features."""
        self.dim, self.first_arms = dim, arms
        self.state = self.policy.init(1, arms, self._width())

    @contextmanager
    def meeting(self, offer: Offer) -> Iterator[None]:
        """Number the new arms of an offer, and undo that if the body raises.

        An offer that does not fit raises ``ValueError``.
        """
        numbers, dim, state = dict(self.numbers), self.dim, self.state
        try:
            self.check(offer)
            for name in offer.names:
                self.numbers.setdefault(name, len(self.numbers))
            if self.state is None:
                features = len(offer.names) if offer.dim is None else offer.dim
                self.begin(len(self.numbers), self.dim or features)
            yield
        except BaseException:
            self.numbers, self.dim, self.state = numbers, dim, state
            raise

    def check(self, offer: Offer) -> None:
        """Raise ``ValueError`` if the policy could not learn from this offer."""
        new = [name for name in offer.names if name not in self.numbers]
        if self.uses_vectors and self.dim is not None:
            got = self.dim if offer.dim is None else offer.dim
            if got != self.dim:
                raise ValueError(
                    f"features must have length {self.dim} in this journal, got length {got}"
                )
            if offer.dim is None and len(self.numbers) + len(new) > self.dim:
                raise ValueError(
                    f"{self.kind} takes at most {self.dim} arms without features, and {new} would "
                    "be too many: offer features, or start a new journal with a larger dim"
                )
        if offer.vectors is not None and self.uses_vectors:
            length, most = np.linalg.norm(offer.vectors, axis=1).max(), self.policy._longest
            require(length <= most, "the norm of features", f"at most {most:g}", float(length))
        if self.state is None:
            return
        if self.state.fixed_arms and new:
            raise ValueError(
                f"{self.kind} takes no new arms after the first offer, got {new}: "
                "start a new journal for another set of arms"
            )
        whole = self._whole_offers or (self.uses_vectors and self.state.fixed_arms)
        if whole and len(offer.names) < len(self.numbers):
            raise ValueError(
                f"{self.kind} needs all {len(self.numbers)} arms in every offer, got "
                f"{list(offer.names)}"
            )

    def choose(self, decision: int, offer: Offer, explore: float, state: Any) -> Choice:
        """Choose an arm; with probability `explore`, uniformly among the arms of the offer."""
        rng = np.random.default_rng([self.seed, decision])
        lot, any_arm = rng.random(), int(rng.integers(len(offer.names)))
        state = self._offered(state, offer)
        arms = self._arms(offer)
        own = int(self.policy.choose(state, arms, rng)[0])
        order = self._order(offer)
        known = self._shares(state, arms, own, rng)
        shares = None
        if known is not None:
            shares = np.empty(len(order))
            shares[order] = explore / len(order) + (1 - explore) * known
        return Choice(any_arm if lot < explore else order[own], shares)

    def learn(self, outcome: Outcome, *, remember: bool = True) -> None:
        """Learn an outcome; it is counted even if its decision was given up.

        Without `remember` it is not used to impute rewards, because many more follow.
        """
        if outcome.rewards is not None:
            before = _restarts(self.state) if self._watched else 0
            for rewards in self._updates(outcome.decision, outcome.rewards):
                self.teach(self.state, outcome.decision, rewards)
            if self._watched and _restarts(self.state) > before:
                self.alarms.append(Alarm(outcome.number, outcome.decision.name))
        if remember:
            self.remember(outcome)
        self.learned += 1

    def _updates(self, decision: Decision, rewards: Array) -> list[Array]:
        """Return the rewards of each update.

        An outcome is one update, unless it is of another recipe or of a history: rewards beyond
        `pulls` are further updates, and fewer than `least` wait for others of the same arm and
        offer.
        """
        pulls, least = self.policy.pulls, self.policy.least
        if least <= len(rewards) <= pulls:
            return [rewards]
        parts = [rewards[start : start + pulls] for start in range(0, len(rewards), pulls)]
        if len(parts[-1]) < least:
            key = decision.offer.key.hex() if self.uses_vectors else "", decision.name
            left = np.append(self.left.pop(key, np.empty(0)), parts.pop())
            if len(left) >= pulls:
                parts.append(left[:pulls])
                left = left[pulls:]
            if len(left):
                self.left[key] = left
        return parts

    def remember(self, outcome: Outcome) -> None:
        """Keep an outcome for imputing pending rewards."""
        self._means = None
        if not self.imputes:
            return
        found = None
        if outcome.rewards is not None:
            rewards = clip(outcome.rewards)
            ordered = np.sort(rewards)
            value = float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
            found = _Recent(*self._arm(outcome.decision), value, rewards)
        self._recent.append(found)

    def teach(self, state: Any, decision: Decision, rewards: Array) -> None:
        """Update a state with the rewards of a decision."""
        offer, chosen = decision.offer, decision.arm
        if self.numbered:
            chosen = self.numbers[decision.name]
        if not self.uses_vectors:
            known = 1 + max(self.numbers[name] for name in offer.names) if self.numbered else 0
            arms = np.zeros((1, known or len(offer.names), 1))
        elif self.numbered and not self.state.fixed_arms:  # only the chosen arm's vector counts
            known = 1 + max(self.numbers[name] for name in offer.names)
            arms = self._arms(offer)[:, [self._order(offer).index(decision.arm)] * known]
        else:
            arms = self._arms(offer)
        share = None if decision.propensity is None else [decision.propensity]
        self.policy.learn(state, arms, [chosen], rewards[None], share)

    def imputed(self, decision: Decision) -> Array:
        """Return rewards to expect of a pending decision.

        They are x·θ + c plus the deviations of a recent outcome, where θ is the policy's estimate
        and c the median residual of recent outcomes. If the policy has no estimate, they are those
        of a recent outcome of the same arm, in turn, so that their mean is the arm's.

        Source: Ginsbourger, Le Riche and Carraro 2010 for imputing pending trials. Differences:
        any policy; deviations are added.
        """
        pulls, recent = self.policy.pulls, [one for one in self._recent if one]
        if not recent:
            return np.zeros(pulls)
        key, vector = self._arm(decision)
        if self._means is None:
            theta = self.policy.estimate(self.state) if self.uses_vectors else None
            if theta is not None and np.isfinite(theta).all():
                beyond = [one.value - float(one.vector @ theta[0]) for one in recent]
                self._means = theta[0], float(np.median(beyond))
            else:
                self._means = (None,)
        if self._means[0] is None:
            like = [one for one in recent if one.key == key] or recent
            rewards = like[decision.id % len(like)].rewards
        else:
            theta, centre = self._means
            one = recent[decision.id % len(recent)]
            rewards = float(vector @ theta) + centre + (one.rewards - one.value)
        return rewards[np.arange(pulls) % len(rewards)]

    def _shares(self, state: Any, arms: Array, own: int, rng: np.random.Generator) -> Array | None:
        """Return the probability that the policy chooses each arm, None if it is not known."""
        known = self.policy.propensities(state, arms)
        if known is not None:
            return np.asarray(known[0])
        if isinstance(innermost(self.policy), Guest):
            return None
        slim = copy(state)
        if isinstance(slim, Piloted):
            slim.forget()  # choices do not use the pilot rewards
        copies = slim.take(np.zeros(_COPIES, dtype=np.int64))
        drawn = self.policy.choose(copies, np.broadcast_to(arms, (_COPIES, *arms.shape[1:])), rng)
        counts = np.bincount(np.append(drawn, own), minlength=arms.shape[1])
        return np.asarray(counts / (_COPIES + 1))

    def _arm(self, decision: Decision) -> tuple[object, Array]:
        """Return a key that identifies the arm, and its vector."""
        name, vectors = decision.name, decision.offer.vectors
        if self.uses_vectors and vectors is not None:
            vector = vectors[decision.arm]
            return (name if self.numbered else vector.tobytes()), vector
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

    def _arms(self, offer: Offer) -> Array:
        """Return the arms of an offer as the policy sees them, of shape (1, K, d)."""
        if not self.uses_vectors:
            return np.zeros((1, len(offer.names), 1))
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
        file, arrays = io.BytesIO(), self.state.to_arrays()
        if self.left:
            sizes = [len(rewards) for rewards in self.left.values()]
            some = np.array(list(self.left)), np.array(sizes), np.concatenate([*self.left.values()])
            arrays |= dict(zip(_LEFT, some, strict=True))
        np.savez(file, allow_pickle=False, **arrays)
        packed = file.getvalue()
        return hashlib.sha256(packed).digest() + packed

    def from_bytes(self, snapshot: bytes, learned: int) -> None:
        """Restore a snapshot; raises ``ValueError`` if it is corrupt or of another version."""
        digest, packed = snapshot[:32], snapshot[32:]
        if hashlib.sha256(packed).digest() != digest:
            raise ValueError("snapshot checksum mismatch")
        with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
            found = dict(arrays)
        keys, sizes, rewards = (found.pop(name, np.empty(0)) for name in _LEFT)
        self.state = self.policy.restore(found)
        ends = np.cumsum(sizes, dtype=np.int64)[:-1]
        parts = np.split(rewards, ends) if len(keys) else []
        self.left = {
            (str(key), str(arm)): part for (key, arm), part in zip(keys, parts, strict=True)
        }
        self.learned = learned


def _is_watched(policy: Policy[Any]) -> bool:
    inside = isinstance(policy, Wrapper) and _is_watched(policy.policy)
    return inside or isinstance(policy, Vigilant)


def _restarts(state: Any) -> int:
    """Return how often `Vigilant` has restarted a policy."""
    own = int(state.restarts[0]) if isinstance(state, Watched) else 0
    inner = getattr(state, "inner", None)
    return own if inner is None else own + _restarts(inner)


class Belief:
    """The state of a learner as if the rewards of some pending decisions had come.

    Choices that are made from it while rewards are outstanding differ. Only the latest decisions of
    one worker are imputed, so that the cost does not grow with what is pending.
    """

    def __init__(self, learner: Learner) -> None:
        self._learner = learner
        self.pending: dict[int, Decision] = {}
        self.since = 0
        self.reset()

    def reset(self) -> None:
        """Forget what was imputed."""
        self._state: Any = None
        self._after, self._new = -1, list[Decision]()

    def add(self, decision: Decision) -> None:
        """Add a pending decision, later than all others."""
        self.pending[decision.id] = decision
        self._new.append(decision)

    def start_at(self, since: int) -> None:
        """Impute no decision before this one."""
        self.since = since
        for old in [old for old in self.pending if old < since]:
            del self.pending[old]
        self.reset()

    def state(self) -> Any:
        """Return the state to choose from."""
        learner = self._learner
        if not self.pending:
            return learner.state
        if self._after != learner.learned or self._state is None:
            self._after, self._state = learner.learned, learner.state.copy()
            self._new = list(self.pending.values())
        for decision in self._new:
            learner.teach(self._state, decision, learner.imputed(decision))
        self._new = []
        return self._state
