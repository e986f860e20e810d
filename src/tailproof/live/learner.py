"""A policy and what it has learned so far from the outcomes of a journal."""

import hashlib
import io
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from tailproof.checks import require
from tailproof.integrations.guests.base import Guest
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

__all__ = ["RECENT", "Alarm", "Belief", "Choice", "Control", "Learner"]

_COPIES = 200
"""Choices drawn where the policy does not report propensities; one of them is then taken."""
_ENOUGH = 100
"""Rewards after which an arm is no longer new, so that the first share of a new one is a tenth."""
RECENT = 256
"""Latest outcomes that pending rewards are imputed from, and latest decisions that they are for."""
_LEFT = ("live_left", "live_left_sizes", "live_left_rewards")
"""The arrays of a snapshot with the rewards that are too few for an update."""
_VARIED = (Guest, LinTS, Randomised, ThompsonSampling, Uniform)
"""Policies that need no imputed rewards: choices vary by themselves, or a copy is expensive."""


class Control(NamedTuple):
    """The arm of the control group, and the share of requests that get it whatever is learned."""

    arm: str
    share: float


class Choice(NamedTuple):
    """The arm, as an index into the offer, and the propensity of every arm, None if unknown."""

    arm: int
    shares: Array | None

    @classmethod
    def fixed(cls, offer: Offer, arm: str) -> Self:
        """Return the choice of an arm that everyone gets."""
        place = offer.names.index(arm)
        return cls(place, np.eye(1, len(offer.names), place)[0])

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
        self.room = 0
        """How many arms there will be at least, where they have no features."""
        self.told: dict[int, int] = {}
        """Rewards learned by the number of the arm, up to `_ENOUGH`."""
        self._recent: deque[_Recent | None] = deque(maxlen=RECENT)
        self._means: tuple[Any, ...] | None = None

    @property
    def numbered(self) -> bool:
        """Whether the policy knows an arm by its number."""
        return self.policy.view != "vectors" or self.state.fixed_arms

    @property
    def whole(self) -> bool:
        """Whether every offer must have all arms."""
        return self._whole_offers or (self.uses_vectors and bool(self.state.fixed_arms))

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
                features = max(len(offer.names), self.room) if offer.dim is None else offer.dim
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
                if not new:
                    raise ValueError(
                        f"{self.kind} needs {self.dim} features for each arm in this journal, got "
                        "none: offer a mapping from arm names to features"
                    )
                raise ValueError(
                    f"{self.kind} takes at most {self.dim} arms without features in this journal, "
                    f"and {new} would be too many: begin a journal with a list of all arms (arms) "
                    "or with room for them (dim), or offer features"
                )
        if offer.vectors is not None and self.uses_vectors:
            length, most = float(np.linalg.norm(offer.vectors, axis=1).max()), self.policy._longest
            require(length <= most, "the norm of features", f"at most {most:g}", length)
        if self.state is None:
            return
        if self.state.fixed_arms and new:
            raise ValueError(
                f"{self.kind} takes no new arms after the first offer, got {new}: "
                "start a new journal for another set of arms"
            )
        if self.whole and len(offer.names) < len(self.numbers):
            raise ValueError(
                f"{self.kind} needs all {len(self.numbers)} arms in every offer, got "
                f"{list(offer.names)}"
            )

    def choose(
        self,
        decision: int,
        offer: Offer,
        state: Any,
        explore: float = 0.0,
        control: Control | None = None,
        group: str | None = None,
    ) -> Choice:
        """Choose an arm.

        With probability `explore` it is drawn uniformly from the arms of the offer, otherwise from
        the shares that the policy gives them, of which a new arm gets a part; see `_own`. In the
        group "control" it is the control arm. The shares of the choice are those of a request
        before its group is drawn: c·1{control arm} + (1 − c)·(explore/K + (1 − explore)·own).
        """
        rng = np.random.default_rng([self.seed, decision])
        lot = rng.random()
        own, known = self._own(state, offer, rng)
        shares = explore / len(own) + (1 - explore) * own
        reached = shares.cumsum()
        arm = int(reached.searchsorted(lot * reached[-1], "right"))
        if control is not None and control.arm in offer.names:
            place = offer.names.index(control.arm)
            shares *= 1 - control.share
            shares[place] += control.share
            arm = place if group == "control" else arm
        return Choice(arm, shares if known else None)

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
            arm = self.numbers[outcome.decision.name]
            self.told[arm] = min(_ENOUGH, self.told.get(arm, 0) + len(outcome.rewards))
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

    def _own(self, state: Any, offer: Offer, rng: np.random.Generator) -> tuple[Array, bool]:
        """Return the shares that arms get from the policy, and whether they are its propensities.

        Where at least half of the arms on offer have 100 rewards, an arm with n < 100 gets at most
        √((n + 1)/100), as the width of its interval falls with √n; the policy chooses among the
        well-known arms in place of what is beyond that.
        """
        shares, known = self._shares(state, offer, rng)
        told = [self.told.get(self.numbers[name], 0) for name in offer.names]
        new = [n < _ENOUGH for n in told]
        if 0 < 2 * sum(new) <= len(new) and not self.whole:
            beyond = np.maximum(shares - np.sqrt((np.array(told) + 1) / _ENOUGH), 0) * new
            if beyond.any():
                old = [place for place, few in enumerate(new) if not few]
                among, known = self._shares(state, offer.among(old), rng)
                shares = shares - beyond
                shares[old] += beyond.sum() * among
        return shares, known

    def _shares(self, state: Any, offer: Offer, rng: np.random.Generator) -> tuple[Array, bool]:
        """Return the shares that the policy gives to arms, and whether they are its propensities.

        If the policy does not report them, they are those among many of its choices; if these are
        expensive, one has it all, and its propensity is not known.
        """
        state, arms, order = self._offered(state, offer), self._arms(offer), self._order(offer)
        reported = self.policy.propensities(state, arms)
        known = reported is not None or not isinstance(innermost(self.policy), Guest)
        if reported is None:
            copies = state
            if known:
                copies = copy(state)
                if isinstance(copies, Piloted):
                    copies.forget()  # choices do not use the pilot rewards
                copies = copies.take(np.zeros(_COPIES, dtype=np.int64))
            many = np.broadcast_to(arms, (copies.paths, *arms.shape[1:]))
            drawn = self.policy.choose(copies, many, rng)
            reported = np.bincount(drawn, minlength=len(order))[None] / len(drawn)
        shares = np.empty(len(order))
        shares[order] = reported[0]
        return shares, known

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
            state = self.policy.resized(state, numbers[-1] + 1)
        return state.among(np.array(numbers))

    def to_bytes(self) -> bytes:
        """Return the state as a snapshot: a SHA-256 digest, then an npz file."""
        file, arrays = io.BytesIO(), self.state.to_arrays()
        if self.left:
            sizes = [len(rewards) for rewards in self.left.values()]
            some = np.array(list(self.left)), np.array(sizes), np.concatenate([*self.left.values()])
            arrays |= dict(zip(_LEFT, some, strict=True))
        told = np.array([self.told.get(arm, 0) for arm in range(1 + max(self.told, default=-1))])
        np.savez(file, allow_pickle=False, live_told=told, **arrays)
        packed = file.getvalue()
        return hashlib.sha256(packed).digest() + packed

    def from_bytes(self, snapshot: bytes, learned: int) -> None:
        """Restore a snapshot; raises ``ValueError`` if it is corrupt or of another version."""
        digest, packed = snapshot[:32], snapshot[32:]
        if hashlib.sha256(packed).digest() != digest:
            raise ValueError("snapshot checksum mismatch")
        with np.load(io.BytesIO(packed), allow_pickle=False) as file:
            arrays = dict(file)
        told = arrays.pop("live_told", None)
        if told is None:
            raise ValueError("snapshot of an earlier version")
        keys, sizes, rewards = (arrays.pop(name, np.empty(0)) for name in _LEFT)
        self.state = self.policy.restore(arrays)
        ends = np.cumsum(sizes, dtype=np.int64)[:-1]
        parts = np.split(rewards, ends) if len(keys) else []
        self.left = {
            (str(key), str(arm)): part for (key, arm), part in zip(keys, parts, strict=True)
        }
        self.told = {arm: n for arm, n in enumerate(told.tolist()) if n}
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
