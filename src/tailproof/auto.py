"""A filter that tunes itself: no tail index, no scale and no pilot data are needed."""

import math
from dataclasses import dataclass, make_dataclass
from functools import cache
from typing import Any

import numpy as np

from tailproof.batches import batches
from tailproof.checks import require, whole
from tailproof.estimators import Median
from tailproof.policies.base import Array, Index, Memory, Policy

__all__ = ["AutoFiltered"]


@dataclass(eq=False)
class Tuned(Memory):
    """What a self-tuning filter knows beside the memory of the policy inside.

    Attributes
    ----------
    spread : array of shape (paths,)
        The median distance of a reward from its location; 1 before the first decision.
    pilot_arms, pilot_chosen, pilot_rewards : arrays of shape (paths, decisions, …)
        The first decisions, until the spread has settled; empty from then on.
    """

    spread: Array
    pilot_arms: Array
    pilot_chosen: Index
    pilot_rewards: Array


@dataclass(frozen=True, init=False, repr=False)
class AutoFiltered(Policy[Any]):
    """Any policy A, given one tame number of known scale in place of ñ rewards of any scale.

    A learns r_t / unit, where r_t = ∫ m Π_i f(r_i − m) dm / ∫ Π_i f(r_i − m) dm over m,
    f(x) = 1/(spread² + x²), unit = spread √(2/ñ), spread = median |r_i − median of its decision|

    r_t is Pitman's estimator, the best one that follows every shift, for Cauchy noise with this
    spread. It remains unbiased for any other symmetric noise, and its error stays within a small
    factor of the smallest possible, from normal noise to noise without a mean. The
    noise in r_t / unit has a scale of about one, which is what `OFUL` and its relatives assume.

    The spread is learned anew in each of the first `settle` decisions, from all rewards so far,
    and A learns those decisions anew with it; from then on it stays. The memory is the memory of
    A with a few arrays more; `estimate` is in the units of the rewards.

    Parameters
    ----------
    policy : Policy
        The algorithm A.
    pulls : int
        ñ, the rewards behind each reward that A is given, at least 3.
    settle : int
        The number of decisions after which the spread stays as it is.

    Examples
    --------
    >>> from tailproof import OFUL, environments, noise, simulate
    >>> wild = environments.k_armed(noise.StudentT(0.5, scale=100), locations=(0, 100, 200))
    >>> result = simulate(
    ...     {"alone": OFUL(), "tuned": AutoFiltered(OFUL())}, wild, horizon=3000, paths=20
    ... )
    >>> bool(result.median("tuned")[-1] < 0.3 * result.median("alone")[-1])
    True

    Source: Algorithm 2 of Zhong et al. 2021 for the idea of a filter; Pitman 1939 for the
    estimator. Differences: Pitman's estimator in place of the mean of medians; the scale.
    """

    policy: Policy[Any]
    each: int
    settle: int

    def __init__(self, policy: Policy[Any], *, pulls: int = 21, settle: int = 8) -> None:
        require(isinstance(policy, Policy), "policy", "a policy", policy)
        object.__setattr__(self, "policy", policy)
        object.__setattr__(self, "each", whole("pulls", pulls, at_least=3))
        object.__setattr__(self, "settle", whole("settle", settle))

    def __repr__(self) -> str:
        return f"AutoFiltered({self.policy!r}, pulls={self.each}, settle={self.settle})"

    @property
    def pulls(self) -> int:
        """The raw rewards wanted for one decision."""
        return self.policy.pulls * self.each

    def propose(self, memory: Any, rng: np.random.Generator) -> Array:
        """Return the proposal of the policy inside."""
        return self.policy.propose(memory, rng)

    def estimate(self, memory: Any) -> Array | None:
        """Return the estimate of the policy inside, in the units of the rewards."""
        inside = self.policy.estimate(memory)
        return None if inside is None else inside * self._unit(memory.spread)[:, None]

    def _unit(self, spread: Array) -> Array:
        return spread * math.sqrt(2 / self.each)  # half is the Fisher information of a Cauchy law

    def _init(self, paths: int, arms: int, dim: int) -> Any:
        inside: Memory = self.policy._init(paths, arms, dim)
        kind: Any = type(inside)
        return _tuned(kind)(
            **{name: getattr(inside, name) for name in inside._names()},
            spread=np.ones(paths),
            pilot_arms=np.empty((paths, 0, arms, dim)),
            pilot_chosen=np.empty((paths, 0), dtype=np.int64),
            pilot_rewards=np.empty((paths, 0, self.policy.pulls, self.each)),
        )

    def _choose(self, memory: Any, arms: Array, rng: np.random.Generator) -> Index:
        return self.policy._choose(memory, arms, rng)

    def _learn(self, memory: Any, arms: Array, chosen: Index, rewards: Array) -> None:
        raw = rewards.reshape(memory.paths, self.policy.pulls, self.each)
        age = int(memory.decisions[0])
        if age >= self.settle:
            self.policy._learn(memory, arms, chosen, self._filter(raw, memory.spread))
            return
        arms_so_far = np.concatenate([memory.pilot_arms, arms[:, None]], axis=1)
        chosen_so_far = np.concatenate([memory.pilot_chosen, chosen[:, None]], axis=1)
        rewards_so_far = np.concatenate([memory.pilot_rewards, raw[:, None]], axis=1)
        spread = _spread(rewards_so_far)
        again = self.policy.init(memory.paths, memory.arms, memory.dim)
        for t in range(age + 1):
            filtered = self._filter(rewards_so_far[:, t], spread)
            self.policy.learn(again, arms_so_far[:, t], chosen_so_far[:, t], filtered)
        vars(memory).update(vars(again), decisions=memory.decisions, spread=spread)
        kept = slice(0 if age + 1 == self.settle else None)
        memory.pilot_arms = arms_so_far[:, kept].copy()
        memory.pilot_chosen = chosen_so_far[:, kept].copy()
        memory.pilot_rewards = rewards_so_far[:, kept].copy()

    def _filter(self, raw: Array, spread: Array) -> Array:
        """Return the rewards for A, of shape (paths, A.pulls)."""
        return pitman(raw, spread[:, None]) / self._unit(spread)[:, None]


@cache
def _tuned(inside: type[Memory]) -> Any:
    """Return the memory of the policy inside with the arrays of the filter added."""
    return make_dataclass(f"Tuned{inside.__name__}", [], bases=(Tuned, inside), eq=False)


def _spread(pilot: Array) -> Array:
    """Return the median distance of the rewards from the median of their decision, by path.

    Where it is zero or infinite there is no scale to go by, and it is one.
    """
    centre = Median()(pilot)[..., None]
    distance = np.abs(pilot - np.where(np.isinf(centre), 0.0, centre)).reshape(len(pilot), -1)
    spread = Median()(distance)
    return np.where((spread > 0) & np.isfinite(spread), spread, 1.0)


_STEPS = 0.3 * np.sinh(np.linspace(-4, 4, 13))
"""Where the likelihood is looked at around each sample, in units of the spread."""
_REACH = _STEPS[-1] - _STEPS[-2]


def pitman(x: Array, spread: Array) -> Array:
    """Return Pitman's estimator of the location of Cauchy samples along the last axis.

    ∫ m Π_i f(x_i − m) dm / ∫ Π_i f(x_i − m) dm,  f(x) = 1/(spread² + x²)

    >>> float(pitman(np.array([-1.0, 0.0, 1.0, 1e300]), np.array(1.0)).round(3))
    0.0

    Source: Pitman 1939. Differences: the trapezoid rule, over 13 points around each sample;
    where more than half of the samples are infinite in one direction, so is the estimate.
    """
    spread = np.broadcast_to(spread, x.shape[:-1]).reshape(-1, 1)
    rows = x.reshape(-1, x.shape[-1])
    middle = Median()(rows)[:, None]
    # The score falls to zero far out, so that a sample may be moved there without a difference.
    with np.errstate(invalid="ignore", over="ignore"):
        u = np.clip(np.nan_to_num((rows - middle) / spread), -1e100, 1e100)
    centre = np.empty((len(u), 1))
    for part in batches(len(u), _STEPS.size * u.shape[1]):
        m = np.sort((u[part, :, None] + _STEPS).reshape(len(u[part]), -1))
        log = np.zeros_like(m)
        for sample in u[part].T:
            log -= np.log1p((m - sample[:, None]) ** 2)
        weight = np.exp(log - log.max(axis=1, keepdims=True))
        weight[:, 1:-1] *= np.minimum(m[:, 2:] - m[:, :-2], 2 * _REACH) / 2
        weight[:, [0, -1]] = 0  # hardly any likelihood is left here, nor in the middle of a gap
        centre[part, 0] = np.vecdot(weight, m) / weight.sum(axis=1)
    return (middle + spread * centre).reshape(x.shape[:-1])
