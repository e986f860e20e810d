"""Linear bandits: an arm set, a parameter θ and a noise.

Pulling arm x gives xᵀθ + η. A K-armed bandit is the case of unit vectors.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tailproof.batches import batches, stock
from tailproof.checks import number, require, whole
from tailproof.noise import Noise

__all__ = [
    "ArmSet",
    "Drawn",
    "Fresh",
    "Given",
    "LinearBandit",
    "UnitBall",
    "k_armed",
    "near_tie",
    "neutral",
    "paper",
    "unit_ball",
]

Array = NDArray[np.float64]
Law = Literal["orthant", "sphere"]


def _orthant(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Coordinates uniform in [0, 1]: the paper's contexts, once normalised."""
    return rng.random(shape)


def _sphere(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Normal coordinates: directions without preference, once normalised.

    Drawing contexts is what a simulation with fresh arms spends most time on, so this is Box and
    Muller in single precision, plenty for a direction. The 0.5 keeps the logarithm finite, the
    1e-9 keeps a vector from zero.
    """
    size = math.prod(shape)
    bits = rng.bit_generator.random_raw((size + 1) // 2).view(np.uint32)
    uniform = bits.astype(np.float32)
    uniform += 0.5
    uniform *= 2.0**-32
    radius, angle = uniform.reshape(2, -1)
    np.log(radius, out=radius)
    np.subtract(1e-9, radius, out=radius)
    np.sqrt(radius, out=radius)
    angle *= 2 * math.pi
    x = np.empty((2, len(radius)), dtype=np.float32)
    np.cos(angle, out=x[0])
    np.sin(angle, out=x[1])
    x *= radius
    return x.reshape(-1)[:size].reshape(shape)


_LAWS: dict[Law, Callable[[np.random.Generator, tuple[int, ...]], NDArray[np.floating]]] = {
    "orthant": _orthant,
    "sphere": _sphere,
}


def _directions(law: Law, rng: np.random.Generator, paths: int, arms: int, dim: int) -> Array:
    """Draw unit vectors of shape (paths, arms, dim), stored with the coordinates first."""
    x = np.empty((paths, dim, arms))
    for rows in batches(paths, arms * dim):
        part = x[rows]
        part[:] = _LAWS[law](rng, part.shape)
        part *= (1 / np.sqrt(np.einsum("pda,pda->pa", part, part)))[:, None]
    return x.mT


class ArmSet(ABC):
    """The vectors on offer: `arms` of them, of dimension `dim`."""

    arms: int
    dim: int
    fresh: bool = False
    """Whether each decision sees new vectors."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, paths: int) -> Array:
        """Draw vectors of shape (paths, arms, dim)."""


@dataclass(frozen=True, kw_only=True)
class Drawn(ArmSet):
    """Unit vectors drawn once for each path.

    >>> Drawn(law="sphere", arms=20, dim=10).draw(np.random.default_rng(0), 3).shape
    (3, 20, 10)
    """

    law: Law
    arms: int
    dim: int

    def __post_init__(self) -> None:
        require(self.law in _LAWS, "law", f"one of {', '.join(_LAWS)}", self.law)
        whole("arms", self.arms)
        whole("dim", self.dim)

    def draw(self, rng: np.random.Generator, paths: int) -> Array:
        """Draw vectors of shape (paths, arms, dim)."""
        return _directions(self.law, rng, paths, self.arms, self.dim)


@dataclass(frozen=True, kw_only=True)
class Fresh(Drawn):
    """Unit vectors drawn anew for each decision, and kept while it is pulled.

    >>> Fresh(law="orthant", arms=20, dim=10).fresh
    True
    """

    fresh = True


@dataclass(frozen=True)
class Given(ArmSet):
    """The same given vectors in every path.

    >>> Given(((1.0, 0.0), (0.6, 0.8))).arms
    2
    """

    vectors: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        shape = np.asarray(self.vectors, dtype=np.float64).shape
        require(len(shape) == 2 and 0 not in shape, "vectors", "of shape (arms, dim)", shape)
        require(bool(np.isfinite(self.vectors).all()), "vectors", "finite", self.vectors)

    @property
    def arms(self) -> int:  # type: ignore[override]
        """The number of vectors."""
        return len(self.vectors)

    @property
    def dim(self) -> int:  # type: ignore[override]
        """Their dimension."""
        return len(self.vectors[0])

    def draw(self, rng: np.random.Generator, paths: int) -> Array:
        """Return copies of the vectors, of shape (paths, arms, dim)."""
        return np.tile(np.asarray(self.vectors, dtype=np.float64), (paths, 1, 1))


@dataclass(frozen=True, kw_only=True)
class UnitBall(ArmSet):
    """Every vector of length one or less: policies propose one instead of choosing.

    >>> UnitBall(dim=3).draw(np.random.default_rng(0), 2).shape
    (2, 1, 3)
    """

    dim: int
    arms: int = 1

    def __post_init__(self) -> None:
        whole("dim", self.dim)
        require(self.arms == 1, "arms", "left out: the ball is one set", self.arms)

    def draw(self, rng: np.random.Generator, paths: int) -> Array:
        """Return the centre of the ball, as if it were the only arm."""
        return np.zeros((paths, 1, self.dim))


@dataclass(frozen=True, kw_only=True)
class LinearBandit:
    """Rewards xᵀθ + η.

    Parameters
    ----------
    contexts : ArmSet
        Where the arms come from.
    theta : "sphere", "diagonal" or a tuple of numbers
        θ uniform on the unit sphere in each path, θ = (1, …, 1)/√d, or θ itself.
    noise : Noise
        The law of η.

    Examples
    --------
    >>> from tailproof.noise import Cauchy
    >>> bandit = LinearBandit(
    ...     contexts=Given(((1.0, 0.0), (0.0, 1.0))), theta=(0.0, 1.0), noise=Cauchy()
    ... )
    >>> bandit.start(paths=3, rng=np.random.default_rng(0)).locations.shape
    (3, 2)
    """

    contexts: ArmSet
    theta: Literal["sphere", "diagonal"] | tuple[float, ...]
    noise: Noise

    def __post_init__(self) -> None:
        require(isinstance(self.contexts, ArmSet), "contexts", "an arm set", self.contexts)
        require(isinstance(self.noise, Noise), "noise", "a noise law", self.noise)
        if isinstance(self.theta, tuple):
            rule = f"{self.contexts.dim} finite numbers"
            require(len(self.theta) == self.contexts.dim, "theta", rule, self.theta)
            for entry in self.theta:
                number("an entry of theta", entry)
        else:
            rule = "'sphere', 'diagonal' or a tuple of numbers"
            require(self.theta in ("sphere", "diagonal"), "theta", rule, self.theta)

    def start(self, paths: int, rng: np.random.Generator) -> "World":
        """Draw what stays the same on each path, and the first arms."""
        return World(self, paths, rng)


class World:
    """A linear bandit as it unfolds on many paths.

    Attributes
    ----------
    theta : array of shape (paths, d)
    arms : array of shape (paths, K, d)
        The vectors on offer for the decision at hand.
    locations, best : arrays of shape (paths, K) and (paths,)
        Their true locations xᵀθ, and the largest of them.
    """

    def __init__(self, bandit: LinearBandit, paths: int, rng: np.random.Generator) -> None:
        self._contexts, self._rng, self._paths = bandit.contexts, rng, paths
        dim = bandit.contexts.dim
        self._ahead = stock(paths * bandit.contexts.arms * dim)
        if bandit.theta == "sphere":
            self.theta = _directions("sphere", rng, paths, 1, dim)[:, 0]
        elif bandit.theta == "diagonal":
            self.theta = np.full((paths, dim), 1 / math.sqrt(dim))
        else:
            self.theta = np.tile(np.asarray(bandit.theta, dtype=np.float64), (paths, 1))
        if self._contexts.fresh:
            self._coming = self._offers()
            self.advance()
        else:  # arms that own their data and are read-only come again
            self.arms = self._contexts.draw(rng, paths).copy(order="K")
            self.arms.flags.writeable = False
            self.locations = np.matvec(self.arms, self.theta)
            self.best = self.locations.max(axis=1)

    def _offers(self) -> Iterator[tuple[Array, Array, Array]]:
        """Draw the arms of several decisions at a time: few paths are then no slower than many."""
        while True:
            arms = self._contexts.draw(self._rng, self._ahead * self._paths)
            arms = arms.reshape(self._ahead, self._paths, *arms.shape[1:])
            locations = np.matvec(arms, self.theta)
            yield from zip(arms, locations, locations.max(axis=2), strict=True)

    def offer(self, x: Array) -> None:
        """Take proposed vectors of the unit ball, of shape (paths, d), as the only arms."""
        self.arms = x[:, None, :]
        self.locations = np.matvec(self.arms, self.theta)
        self.best = np.linalg.norm(self.theta, axis=1)

    def advance(self) -> None:
        """Move on to the next decision."""
        if self._contexts.fresh:
            self.arms, self.locations, self.best = next(self._coming)


def paper(noise: Noise, *, arms: int = 20, dim: int = 10) -> LinearBandit:
    """Return the paper's setting: contexts in the positive orthant, θ their mean direction.

    >>> from tailproof.noise import StudentT
    >>> paper(StudentT(1)).theta
    'diagonal'

    Source: section 5 of Zhong et al. 2021. Note that a heavy ridge penalty alone finds this θ.
    Differences: none.
    """
    contexts = Fresh(law="orthant", arms=arms, dim=dim)
    return LinearBandit(contexts=contexts, theta="diagonal", noise=noise)


def neutral(noise: Noise, *, arms: int = 20, dim: int = 10, fresh: bool = True) -> LinearBandit:
    """Return the neutral setting: contexts and θ uniform on the sphere.

    The contexts are drawn anew for each decision, or with ``fresh=False`` once for each path.

    >>> from tailproof.noise import Cauchy
    >>> neutral(Cauchy(), fresh=False).contexts
    Drawn(law='sphere', arms=20, dim=10)

    Source: our own. Differences: none.
    """
    require(isinstance(fresh, bool), "fresh", "true or false", fresh)
    contexts = (Fresh if fresh else Drawn)(law="sphere", arms=arms, dim=dim)
    return LinearBandit(contexts=contexts, theta="sphere", noise=noise)


def near_tie(noise: Noise, *, dim: int = 5, angle: float = 0.3) -> LinearBandit:
    """Return the unit vectors and one more at a small angle ω to the best of them.

    X = {e₁, …, e_d, cos ω e₁ + sin ω e₂},  θ = 2e₁:  the gap is 2(1 − cos ω), and pulling neither
    of the two arms in question but e₂ tells them apart

    >>> from tailproof.noise import Cauchy
    >>> near_tie(Cauchy(), dim=2, angle=0.1).contexts.arms
    3

    Source: Soare et al. 2014, section 6. Differences: the angle may be given.
    """
    whole("dim", dim, at_least=2)
    number("angle", angle, above=0, below=math.pi)
    last = (math.cos(angle), math.sin(angle), *(0.0,) * (dim - 2))
    basis = tuple(tuple(row) for row in np.eye(dim).tolist())
    theta = (2.0, *(0.0,) * (dim - 1))
    return LinearBandit(contexts=Given((*basis, last)), theta=theta, noise=noise)


def unit_ball(noise: Noise, *, dim: int = 10) -> LinearBandit:
    """Return the unit ball as arm set, with θ uniform on the sphere.

    >>> from tailproof.noise import Cauchy
    >>> unit_ball(Cauchy(), dim=3).contexts
    UnitBall(dim=3, arms=1)

    Source: the infinite arm sets of section 1.1 of Zhong et al. 2021. Differences: none.
    """
    return LinearBandit(contexts=UnitBall(dim=dim), theta="sphere", noise=noise)


def k_armed(noise: Noise, *, locations: Sequence[float]) -> LinearBandit:
    """Return K arms with the given locations.

    >>> from tailproof.noise import Cauchy
    >>> k_armed(Cauchy(), locations=(0.0, 0.5, 1.0)).contexts.arms
    3

    Source: section 2.2 of Zhong et al. 2021. Differences: none.
    """
    ok = isinstance(locations, Sequence) and len(locations) > 0
    require(ok, "locations", "a sequence of at least one number", locations)
    basis = tuple(tuple(row) for row in np.eye(len(locations)).tolist())
    return LinearBandit(contexts=Given(basis), theta=tuple(locations), noise=noise)
