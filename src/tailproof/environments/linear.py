"""Linear bandits: an arm set, a parameter θ, a noise and an offset.

Pulling arm x gives xᵀθ + offset + η. In a K-armed bandit the arms are the unit vectors.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tailproof.checks import array, number, require, whole
from tailproof.environments.arm_sets import (
    ArmSet,
    FixedArms,
    FreshArms,
    GivenArms,
    UnitBall,
    directions as draw_directions,
    draw_offers,
)
from tailproof.environments.motions import Motion
from tailproof.environments.streams import drawn_together
from tailproof.noise import Empirical, Noise, PassedOn, PerArm, Varying
from tailproof.stats.aims import Aim, check_aim
from tailproof.stats.diagnostics import Rewards
from tailproof.stats.estimators import Median
from tailproof.typing import Array

__all__ = [
    "ArmSet",
    "Bandit",
    "FixedArms",
    "FreshArms",
    "GivenArms",
    "LinearBandit",
    "UnitBall",
    "from_records",
    "k_armed",
    "near_tie",
    "neutral",
    "orthant",
    "unit_ball",
]


class Bandit(ABC):
    """What a simulation plays: arms, the location of the rewards of each, and the noise around it.

    Attributes
    ----------
    contexts : ArmSet
        Where the arms come from.
    offset : float
        A constant in every reward, which does not count in the regret.
    """

    contexts: ArmSet
    offset: float = 0.0

    @abstractmethod
    def scaled(self, c: float) -> Self:
        """Return the same bandit in another unit: every reward is multiplied by c > 0."""

    @abstractmethod
    def start(self, paths: int, rng: np.random.Generator) -> Any:
        """Return a `World`, or an object with its attributes, at the first decision."""


@dataclass(frozen=True, kw_only=True)
class LinearBandit(Bandit):
    """Rewards xᵀθ + offset + η.

    Parameters
    ----------
    contexts : ArmSet
        Where the arms come from.
    theta : "sphere", "diagonal" or numbers
        θ uniform on the unit sphere in each path, θ = (1, …, 1)/√d, or θ itself.
    noise : Noise, PerArm, Changing or PassedOn
        The law of η, for each arm if it is a `PerArm` or `PassedOn`.
    offset : float
        What is added to every reward.
    size : float
        Multiplies θ.
    motion : Motion, optional
        How θ changes with the pulls, see `tailproof.environments.motions`; by default it does not.

    Examples
    --------
    >>> from tailproof.noise import Cauchy
    >>> bandit = LinearBandit(
    ...     contexts=GivenArms(((1.0, 0.0), (0.0, 1.0))), theta=(0.0, 1.0), noise=Cauchy()
    ... )
    >>> bandit.start(paths=3, rng=np.random.default_rng(0)).locations.shape
    (3, 2)
    """

    contexts: ArmSet
    theta: Literal["sphere", "diagonal"] | Sequence[float] | Array
    noise: Noise | Varying
    offset: float = 0.0
    size: float = 1.0
    motion: Motion | None = None

    def __post_init__(self) -> None:
        require(isinstance(self.contexts, ArmSet), "contexts", "an ArmSet", self.contexts)
        require(isinstance(self.noise, Noise | Varying), "noise", "a noise law", self.noise)
        arms, dim = self.contexts.arms, self.contexts.dim
        if isinstance(self.noise, PerArm | PassedOn):
            ok = len(self.noise.laws) == arms
            require(ok, "noise", f"one law for each of {arms} arms", self.noise)
        number("offset", self.offset)
        number("size", self.size, above=0)
        ok = self.motion is None or isinstance(self.motion, Motion)
        require(ok, "motion", "a motion such as motions.Jump(at=(5000,)), or None", self.motion)
        rule = f"'sphere', 'diagonal', or a finite number for each of {dim} dimensions"
        if isinstance(self.theta, str):
            require(self.theta in ("sphere", "diagonal"), "theta", rule, self.theta)
        else:
            theta = array("theta", self.theta)
            ok = theta.shape == (dim,) and bool(np.isfinite(theta).all())
            require(ok, "theta", rule, self.theta)
            object.__setattr__(self, "theta", tuple(theta.tolist()))

    def scaled(self, c: float) -> Self:
        """Return the same bandit in another unit: every reward is multiplied by c > 0.

        >>> from tailproof.noise import Cauchy
        >>> cents = neutral(Cauchy(), offset=3.0).scaled(100)
        >>> cents.noise, cents.offset, cents.size
        (Cauchy(scale=100.0), 300.0, 100.0)
        """
        c = number("c", c, above=0)
        noise = self.noise.scaled(c)
        return replace(self, noise=noise, offset=self.offset * c, size=self.size * c)

    def start(self, paths: int, rng: np.random.Generator) -> "World":
        """Draw θ and the first arms of each path."""
        return World(self, paths, rng)


class World:
    """A linear bandit on many paths, at one decision after another.

    Attributes
    ----------
    theta : array of shape (paths, d)
    arms : array of shape (paths, K, d)
        The vectors on offer.
    locations, best : arrays of shape (paths, K) and (paths,)
        Their true locations xᵀθ, and the largest of them.
    noise : Noise or Varying
        The law of a reward less its location and the offset.
    """

    def __init__(self, bandit: LinearBandit, paths: int, rng: np.random.Generator) -> None:
        self._contexts, self._rng, self._paths = bandit.contexts, rng, paths
        self.noise = bandit.noise
        self._motion, self._size, dim = bandit.motion, bandit.size, bandit.contexts.dim
        if self._motion is not None:  # a stream of its own: the offers stay the same
            self._marks, (self._moves,) = self._motion.marks(), rng.spawn(1)
            self._mark = next(self._marks, math.inf)
        self._ahead = drawn_together(paths * bandit.contexts.arms * dim)
        if not isinstance(bandit.theta, str):
            self.theta = np.tile(np.asarray(bandit.theta), (paths, 1))
        elif bandit.theta == "sphere":
            self.theta = draw_directions("sphere", rng, paths, 1, dim)[:, 0]
        else:
            self.theta = np.full((paths, dim), 1 / math.sqrt(dim))
        self.theta = self.theta * bandit.size
        if self._contexts.fresh:
            self._coming = self._offers()
            self.advance()
        else:  # a read-only copy, so that nobody can change fixed arms
            drawn = draw_offers(self._contexts, rng, paths)
            stored = drawn[: 1 if drawn.strides[0] == 0 else paths].copy(order="K")
            self.arms = np.broadcast_to(stored, drawn.shape)
            self._locate()

    def _offers(self) -> Iterator[tuple[Array, Array, Array]]:
        """Draw the arms of several decisions at a time, which is faster for few paths."""
        while True:
            arms = draw_offers(self._contexts, self._rng, self._ahead * self._paths)
            arms = arms.reshape(self._ahead, self._paths, *arms.shape[1:])
            locations = np.matvec(arms, self.theta)
            yield from zip(arms, locations, locations.max(axis=2), strict=True)

    def offer(self, x: Array) -> None:
        """Take proposed vectors of the unit ball, of shape (paths, d), as the only arms."""
        self.arms = x[:, None, :]
        self.locations = np.matvec(self.arms, self.theta)
        self.best = np.linalg.norm(self.theta, axis=1)

    @property
    def changes(self) -> bool:
        """Whether decisions differ, by their arms or by θ."""
        return self._contexts.fresh or self._motion is not None

    def advance(self, pulled: int = 0) -> None:
        """Move on to the next decision; `pulls` counts all pulls so far."""
        if self._contexts.fresh:
            self.arms, self.locations, self.best = next(self._coming)
        if self._motion is not None:
            moved = pulled >= self._mark
            while pulled >= self._mark:
                raw = self._motion.step(self.theta / self._size, self._moves)
                self.theta = self._size * raw
                self._mark = next(self._marks, math.inf)
            if moved or self._contexts.fresh:
                self._locate()

    def _locate(self) -> None:
        self.locations = np.matvec(self.arms, self.theta)
        self.best = self.locations.max(axis=1)

    def keep(self, paths: NDArray[np.bool_]) -> None:
        """Continue with these paths only; the arms must be fixed."""
        self.theta, self.arms = self.theta[paths], self.arms[paths]
        self.locations, self.best = self.locations[paths], self.best[paths]


def orthant(noise: Noise | Varying, *, arms: int = 20, dim: int = 10) -> LinearBandit:
    """Return the paper's setting: contexts in the positive orthant, θ their mean direction.

    >>> from tailproof.noise import StudentT
    >>> orthant(StudentT(1)).theta
    'diagonal'

    Source: section 5 of Zhong et al. 2021. Differences: none. Note that a heavy ridge penalty alone
    finds this θ.
    """
    contexts = FreshArms(law="orthant", arms=arms, dim=dim)
    return LinearBandit(contexts=contexts, theta="diagonal", noise=noise)


def neutral(
    noise: Noise | Varying,
    *,
    arms: int = 20,
    dim: int = 10,
    fresh: bool = True,
    norms: float | tuple[float, float] = 1.0,
    lean: float = 0.0,
    offset: float = 0.0,
    size: float = 1.0,
    motion: Motion | None = None,
) -> LinearBandit:
    """Return the neutral setting: contexts and θ uniform on the sphere.

    The contexts are new for each decision, or with ``fresh=False`` drawn once for each path; see
    `FixedArms` for `norms` and `lean`, `LinearBandit` for `offset`, `size` and `motion`.

    >>> from tailproof.noise import Cauchy
    >>> neutral(Cauchy(), fresh=False).contexts
    FixedArms(law='sphere', arms=20, dim=10, norms=1.0, lean=0.0)
    """
    require(isinstance(fresh, bool), "fresh", "true or false", fresh)
    kind = FreshArms if fresh else FixedArms
    contexts = kind(law="sphere", arms=arms, dim=dim, norms=norms, lean=lean)
    return LinearBandit(
        contexts=contexts, theta="sphere", noise=noise, offset=offset, size=size, motion=motion
    )


def near_tie(noise: Noise | Varying, *, dim: int = 5, angle: float = 0.3) -> LinearBandit:
    """Return the unit vectors and one more at a small angle ω to the best of them.

    X = {e₁, …, e_d, cos ω e₁ + sin ω e₂},  θ = 2e₁:  the gap is 2(1 − cos ω), and it is pulling e₂
    that tells the two best arms apart

    >>> from tailproof.noise import Cauchy
    >>> near_tie(Cauchy(), dim=2, angle=0.1).contexts.arms
    3

    Source: Soare et al. 2014, section 6. Differences: the angle may be given.
    """
    whole("dim", dim, at_least=2)
    number("angle", angle, above=0, below=math.pi)
    basis = np.eye(dim)
    arms = np.vstack([basis, math.cos(angle) * basis[0] + math.sin(angle) * basis[1]])
    return LinearBandit(contexts=GivenArms(arms), theta=2 * basis[0], noise=noise)


def unit_ball(noise: Noise | Varying, *, dim: int = 10) -> LinearBandit:
    """Return the unit ball as arm set, with θ uniform on the sphere.

    >>> from tailproof.noise import Cauchy
    >>> unit_ball(Cauchy(), dim=3).contexts
    UnitBall(dim=3, arms=1)

    Source: the infinite arm sets of section 1.1 of Zhong et al. 2021. Differences: none.
    """
    return LinearBandit(contexts=UnitBall(dim=dim), theta="sphere", noise=noise)


def k_armed(
    noise: Noise | Varying,
    *,
    locations: Sequence[float] | Array,
    motion: Motion | None = None,
) -> LinearBandit:
    """Return K arms with the given locations, which may move, see `LinearBandit`.

    >>> from tailproof.noise import Cauchy
    >>> k_armed(Cauchy(), locations=(0.0, 0.5, 1.0)).contexts.arms
    3

    Source: section 2.2 of Zhong et al. 2021. Differences: none.
    """
    values = array("locations", locations)
    ok = values.ndim == 1 and values.size > 1 and bool(np.isfinite(values).all())
    require(ok, "locations", "a sequence of at least two numbers, all finite", locations)
    contexts = GivenArms(np.eye(len(values)))
    return LinearBandit(contexts=contexts, theta=values, noise=noise, motion=motion)


def from_records(
    rewards: ArrayLike, arms: ArrayLike, *, aim: Aim | None = None, costs: bool = False
) -> LinearBandit:
    """Return K arms that draw from recorded rewards, with regret under an aim.

    The arms are in the order of their names, with arm 10 after arm 9. The regret of a pull is the
    largest aim of any arm less the aim of the pulled arm, both computed exactly from the records.
    With the same seed and another aim the rewards are the same, and only the regret differs.

    Parameters
    ----------
    rewards, arms : arrays
        Recorded rewards, NaN where missing, and the arm of each.
    aim : Aim
        What regret is counted in, by default the median.
    costs : bool
        Whether smaller is better: a policy then learns from −cost, and the regret is in costs.

    Examples
    --------
    >>> from tailproof import CappedMean, Mean, UCB1, simulate
    >>> rng = np.random.default_rng(0)
    >>> sales = np.where(rng.random(4000) < 0.9, 0.0, 1 + rng.pareto(1.1, 4000))
    >>> arms = np.repeat(["old", "new"], 2000)
    >>> bandit = from_records(sales, arms, aim=CappedMean(0.99))
    >>> result = simulate({"UCB1": UCB1()}, bandit, horizon=200, paths=5)
    >>> bool(result.mean("UCB1")[-1] >= 0)
    True
    """
    counted = Median() if aim is None else aim
    check_aim("aim", counted)
    samples = Rewards.of(-np.asarray(rewards) if costs else rewards, arms).samples
    locations = (counted.mirrored if costs else counted).values(samples)
    require(bool(np.isfinite(locations).all()), "aim", "finite for every arm", locations)
    laws = (
        Empirical(sample - location) for sample, location in zip(samples, locations, strict=True)
    )
    return k_armed(PerArm(tuple(laws)), locations=locations)
