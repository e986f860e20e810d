"""A policy with its state, learned so far from the outcomes of a journal."""

import hashlib
import io
import json
import math
from bisect import bisect_right
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from tailproof.checks import require
from tailproof.integrations.guests.base import Guest
from tailproof.live.offer import MOST_ARMS, Offer
from tailproof.policies.base import Policy, unwarned
from tailproof.typing import Array
from tailproof.wrappers.base import Wrapper, innermost
from tailproof.wrappers.pilot import Piloted
from tailproof.wrappers.vigilant import Vigilant, Watched

__all__ = ["Learner", "certain", "draws", "packed"]

_COPIES = 200
"""Choices drawn where the policy does not report propensities; one of them is then taken."""
_ENOUGH = 100
"""Rewards after which an arm is no longer new, so that the first share of a new arm is a tenth."""
_CACHED = 64
"""Offers whose arrays are kept; a service has few that repeat."""


@dataclass(slots=True)
class _Seen:
    """An offer as the policy sees it: order and numbers of its arms, and their vectors."""

    order: list[int]
    numbers: list[int]
    arms: Array
    plain: bool
    """Whether the policy sees the arms in the order of the offer."""
    old: bool = False
    """Whether every arm has rewards enough, so that none is new."""


def draws(seed: int, *words: object) -> tuple[float, float]:
    """Return two numbers from 0 to 1 that look random, always the same for the same words.

    >>> draws(0, 17) == draws(0, 17) != draws(0, 18)
    True
    """
    digest = hashlib.blake2b(f"{seed} {words}".encode(), digest_size=16).digest()
    return int.from_bytes(digest[:8]) / 2**64, int.from_bytes(digest[8:]) / 2**64


def certain(offer: Offer, arm: str) -> list[float]:
    """Return the shares of an offer if everyone gets one arm."""
    return [float(name == arm) for name in offer.names]


def packed(shares: Sequence[float] | None) -> str | None:
    """Return the propensities of all arms as JSON, with nine digits.

    >>> packed([0.5, 0.25, 0.25])
    '[0.5,0.25,0.25]'
    """
    return None if shares is None else f"[{','.join(['%.9g'] * len(shares))}]" % (*shares,)


class Learner:
    """A policy on one path, with its current state.

    The state after n outcomes depends only on these outcomes and their order. A choice depends only
    on a state, and on random numbers that are a hash of (seed, request). Rewards of a policy that
    takes several for one decision wait until there are enough of the same arm and offer. By default
    feature vectors are as long as those of the first offer, or as its number of arms (`dim`).
    """

    def __init__(self, policy: Policy[Any], seed: int, dim: int | None = None) -> None:
        self.policy, self.seed, self.dim, self.pulls = policy, seed, dim, policy.pulls
        inner = innermost(policy)
        self.kind = type(inner).__name__
        self.uses_vectors, self._by_number = policy.view != "arms", policy.view != "vectors"
        self._guest = isinstance(inner, Guest)
        self._whole_offers = policy.view == "context" and self._guest
        self.numbers: dict[str, int] = {}
        self.names: dict[int, str] = {}
        self.state: Any = None
        self.learned = 0
        self.first_arms, self.room = (
            0,
            0,
        )  # arms of the first offer, and arms there will be at least
        self.recipe: int | None = None  # its number in the journal, None if it never decided there
        # rewards that are too few for an update, by offer and arm
        self.left: dict[tuple[str, str], list[float]] = {}
        # restarts of a policy that is `Vigilant`, not yet in the journal: outcome and arm
        self.alarms: list[tuple[int, str]] = []
        self._watched = _is_watched(policy)
        self.told: dict[int, int] = {}  # rewards learned by the number of the arm, up to `_ENOUGH`
        self._seen: dict[bytes, _Seen] = {}

    @property
    def numbered(self) -> bool:
        """Whether the policy knows an arm by its number."""
        return self._by_number or self.state.fixed_arms

    @property
    def whole(self) -> bool:
        """Whether every offer must have all arms."""
        return self._whole_offers or (self.uses_vectors and bool(self.state.fixed_arms))

    def know(self, numbers: dict[str, int]) -> None:
        """Know the numbers of these arms."""
        self.numbers, self.names = numbers, {number: name for name, number in numbers.items()}
        self._seen = {}

    def knows(self, offer: Offer) -> bool:
        """Return whether every arm of an offer has a number."""
        return offer.key in self._seen or self.numbers.keys() >= {*offer.names}

    def begin(self, arms: int, dim: int) -> None:
        """Start from nothing, with these numbers of arms and features."""
        self.dim, self.first_arms = dim, arms
        self.state = self.policy.init(1, arms, self._width())
        self._seen = {}

    def number(self, offer: Offer) -> list[str]:
        """Number the new arms of an offer and return them; ``ValueError`` if it does not fit."""
        known = len(self.numbers)
        new = [name for name in offer.names if name not in self.numbers]
        if known + len(new) > MOST_ARMS:
            raise ValueError(
                f"this experiment has {known} arms, and {new[:10]} would be too many: there may be "
                f"{MOST_ARMS}"
            )
        self._check(offer, new)
        if new:
            self.know(self.numbers | {name: known + i for i, name in enumerate(new)})
        if self.state is None:
            features = max(len(offer.names), self.room) if offer.dim is None else offer.dim
            self.begin(len(self.numbers), self.dim or features)
        return new

    def _check(self, offer: Offer, new: list[str]) -> None:
        """Raise ``ValueError`` if the policy could not learn from this offer."""
        if self.uses_vectors:
            self._check_features(offer, new)
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

    def _check_features(self, offer: Offer, new: list[str]) -> None:
        if self.dim is not None:
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
        if offer.vectors is not None:
            length, most = float(np.linalg.norm(offer.vectors, axis=1).max()), self.policy._longest
            require(length <= most, "the norm of features", f"at most {most:g}", length)

    # ---- choosing

    def choose(
        self,
        request: int,
        offer: Offer,
        explore: float = 0.0,
        control: tuple[str, float] | None = None,
        group: str | None = None,
    ) -> tuple[int, list[float] | None]:
        """Choose an arm; return its place in the offer, and all propensities, None if not known.

        With probability `explore` it is drawn uniformly from the arms of the offer, otherwise from
        the shares that the policy gives them, of which a new arm gets a part; see `_policy_shares`.
        In the group "control" it is the control arm. The shares hold before the group of the
        request is drawn: c·1{control arm} + (1 − c)·(explore/K + (1 − explore)·preferred).
        """
        with unwarned():
            preferred, known = self._policy_shares(offer, request)
        shares = preferred.tolist()
        if explore:
            least = explore / len(shares)
            shares = [least + (1 - explore) * share for share in shares]
        reached = list(accumulate(shares))
        arm = bisect_right(reached, draws(self.seed, request)[0] * reached[-1])
        if control is not None and control[0] in offer.names:
            place = offer.names.index(control[0])
            shares = [share * (1 - control[1]) for share in shares]
            shares[place] += control[1]
            arm = place if group == "control" else arm
        return arm, shares if known else None

    def _policy_shares(self, offer: Offer, request: int) -> tuple[Array, bool]:
        """Return the shares that arms get from the policy, and whether they are its propensities.

        Where at least half of the arms on offer have 100 rewards, an arm with n < 100 gets at most
        √((n + 1)/100), as the width of its interval falls with √n; the share beyond that goes to
        the well-known arms, as the policy chooses among them.
        """
        seen = self._sees(offer)
        shares, known = self._shares(seen, request)
        if seen.old:
            return shares, known
        told = [self.told.get(self.numbers[name], 0) for name in offer.names]
        old = [place for place, n in enumerate(told) if n >= _ENOUGH]
        seen.old = len(old) == len(told) or self.whole
        if seen.old or 2 * len(old) < len(told):
            return shares, known
        most = [math.sqrt((n + 1) / _ENOUGH) if n < _ENOUGH else math.inf for n in told]
        beyond = np.maximum(shares - most, 0)
        if beyond.any():
            among, known = self._shares(self._sees(offer.among(old)), request)
            shares = shares - beyond
            shares[old] += beyond.sum() * among
        return shares, known

    def _shares(self, seen: _Seen, request: int) -> tuple[Array, bool]:
        """Return the shares that the policy gives to arms, and whether they are its propensities.

        If the policy does not report propensities, shares are counted among many of its choices; if
        choices are expensive, a single choice has the whole share, and its propensity is not known.
        """
        state = self._among(seen)
        reported = self.policy.propensities_unchecked(state, seen.arms)
        known = reported is not None or not self._guest
        if reported is None:
            copies, rng = state, np.random.default_rng([self.seed, request])
            if known:
                copies = copy(state)
                if isinstance(copies, Piloted):
                    copies.forget()  # choices do not use the pilot rewards
                copies = copies.take(np.zeros(_COPIES, dtype=np.int64))
            many = np.broadcast_to(seen.arms, (copies.paths, *seen.arms.shape[1:]))
            drawn = self.policy.choose_unchecked(copies, many, rng)
            reported = np.bincount(drawn, minlength=len(seen.order))[None] / len(drawn)
        if seen.plain:
            return np.asarray(reported[0]), known
        shares = np.empty(len(seen.order))
        shares[seen.order] = reported[0]
        return shares, known

    def _sees(self, offer: Offer) -> _Seen:
        """Return an offer as the policy sees it."""
        seen = self._seen.get(offer.key)
        if seen is None:
            order = list(range(len(offer.names)))
            numbers = [self.numbers[name] for name in offer.names]
            if self.numbered:
                order.sort(key=numbers.__getitem__)
            if not self.uses_vectors:
                arms = np.zeros((1, len(order), 1))
            elif offer.vectors is not None:
                arms = offer.vectors[order][None]
            else:
                arms = np.eye(self._width())[[numbers[place] for place in order]][None]
            plain = order == list(range(len(order)))
            seen = _Seen(order, [numbers[place] for place in order], arms, plain)
            if len(self._seen) >= _CACHED:
                self._seen.clear()
            self._seen[offer.key] = seen
        return seen

    def _among(self, seen: _Seen) -> Any:
        """Return the state of as many arms as an offer has, of just these if they have numbers."""
        state, numbers = self.state, seen.numbers
        last = len(numbers) - 1
        if self.numbered and (last + 1 < state.arms or numbers[last] != last):
            if state.arms <= numbers[last]:
                state = self.policy.resized(state, numbers[last] + 1)
            state = state.among(np.array(numbers))
        return self.policy.resized(state, last + 1)

    def _width(self) -> int:
        """Return the dimension of the vectors that the policy sees."""
        return (self.dim or 1) if self.uses_vectors else 1

    # ---- learning

    def learn(self, offer: Offer, arm: int, reward: float | None, share: float | None) -> None:
        """Learn the next outcome, of the arm with this number; count it even if it was lost."""
        if reward is not None:
            before = _restarts(self.state) if self._watched else 0
            rewards = [reward] if self.pulls == 1 else self._enough(offer, self.names[arm], reward)
            if rewards:
                self._teach(offer, arm, rewards, share)
            if self._watched and _restarts(self.state) > before:
                self.alarms.append((self.learned, self.names[arm]))
            self.told[arm] = min(_ENOUGH, self.told.get(arm, 0) + 1)
        self.learned += 1

    def _enough(self, offer: Offer, arm: str, reward: float) -> list[float]:
        """Return the rewards of an update, none while there are too few of this arm and offer."""
        key = offer.key.hex() if self.uses_vectors else "", arm
        rewards = [*self.left.pop(key, ()), reward]
        if len(rewards) < self.pulls:
            self.left[key] = rewards
            return []
        return rewards

    def _teach(self, offer: Offer, arm: int, rewards: list[float], share: float | None) -> None:
        """Update the state with the rewards of an arm."""
        policy, state, seen, chosen = self.policy, self.state, self._sees(offer), arm
        arms, known = seen.arms, 1 + seen.numbers[-1]
        if self.uses_vectors and not (self.numbered and not state.fixed_arms):
            chosen = seen.numbers.index(arm)
        elif known > arms.shape[1] or self.uses_vectors:  # only the vector of the arm counts
            arms = arms[:, [seen.numbers.index(arm)] * known]
        if arms.shape[1] != state.arms:
            if state.fixed_arms:
                raise ValueError(
                    f"{self.kind} must keep its {state.arms} arms, got {arms.shape[1]}"
                )
            if arms.shape[1] > state.arms:
                self.state = state = policy.resized(state, arms.shape[1])
        with unwarned():
            propensity = None if share is None else np.array([share])
            policy.learn_unchecked(state, arms, np.array([chosen]), np.array([rewards]), propensity)

    # ---- snapshots

    def to_bytes(self) -> bytes:
        """Return the state as a snapshot: a SHA-256 digest, then an npz file."""
        left = [[*key, rewards] for key, rewards in self.left.items()]
        kept, file = json.dumps({"told": sorted(self.told.items()), "left": left}), io.BytesIO()
        np.savez(file, allow_pickle=False, live=np.array(kept), **self.state.to_arrays())
        packed = file.getvalue()
        return hashlib.sha256(packed).digest() + packed

    def from_bytes(self, snapshot: bytes, learned: int) -> None:
        """Restore a snapshot; raises ``ValueError`` if it is corrupt or of another version."""
        digest, packed = snapshot[:32], snapshot[32:]
        if hashlib.sha256(packed).digest() != digest:
            raise ValueError("snapshot checksum mismatch")
        with np.load(io.BytesIO(packed), allow_pickle=False) as file:
            arrays = dict(file)
        kept = json.loads(str(arrays.pop("live")))
        self.state = self.policy.restore(arrays)
        self.left = {(key, arm): rewards for key, arm, rewards in kept["left"]}
        self.told = dict(kept["told"])
        self.learned, self._seen = learned, {}

    def same(self, snapshot: bytes) -> bool:
        """Return whether a snapshot equals the state, number by number."""
        other = Learner(self.policy, self.seed, self.dim)
        try:
            other.from_bytes(snapshot, self.learned)
        except ValueError:
            return False
        mine, state = self.state, other.state
        if state.arms > mine.arms:  # the snapshot has room for arms without updates
            mine = self.policy.resized(mine, state.arms)
        if (self.told, self.left) != (other.told, other.left):  # no reward is NaN
            return False
        ours, theirs = mine.to_arrays(), state.to_arrays()
        return all(
            np.array_equal(array, theirs[name], equal_nan=array.dtype.kind == "f")
            for name, array in ours.items()
        )


def _is_watched(policy: Policy[Any]) -> bool:
    inside = isinstance(policy, Wrapper) and _is_watched(policy.policy)
    return inside or isinstance(policy, Vigilant)


def _restarts(state: Any) -> int:
    """Return how often `Vigilant` has restarted a policy."""
    restarts = int(state.restarts[0]) if isinstance(state, Watched) else 0
    inner = getattr(state, "inner", None)
    return restarts if inner is None else restarts + _restarts(inner)
