"""Where the arms of a linear bandit come from."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import array, number, require, whole
from tailproof.simulation.streams import drawn_together
from tailproof.typing import Array

__all__ = [
    "ArmSet",
    "FixedArms",
    "FreshArms",
    "GivenArms",
    "SharedContext",
    "UnitBall",
    "directions",
]

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


def directions(
    law: Law, rng: np.random.Generator, paths: int, arms: int, dim: int, lean: float = 0.0
) -> Array:
    """Draw unit vectors of shape (paths, arms, dim), stored with the coordinates first.

    To each of them `lean` times the first unit vector is added, and the sum made a unit vector.
    """
    x = np.empty((paths, dim, arms))
    step = drawn_together(arms * dim)
    for start in range(0, paths, step):
        part = x[start : start + step]
        part[:] = _LAWS[law](rng, part.shape)
        part *= (1 / np.sqrt(np.einsum("pda,pda->pa", part, part)))[:, None]
        if lean > 0:
            part[:, 0] += lean
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
class FixedArms(ArmSet):
    """Vectors drawn once for each path.

    x = r u,  u ∝ lean·e₁ + v,  v a random direction,  ln r uniform between those of `norms`

    Parameters
    ----------
    law : "orthant" or "sphere"
        Of the directions v.
    arms, dim : int
    norms : float or pair of floats
        Of the vectors, or the least and the largest.
    lean : float
        Large values make the vectors nearly collinear, at angles of about 1/lean.

    Examples
    --------
    >>> FixedArms(law="sphere", arms=20, dim=10).draw(np.random.default_rng(0), 3).shape
    (3, 20, 10)
    """

    law: Law
    arms: int
    dim: int
    norms: float | tuple[float, float] = 1.0
    lean: float = 0.0

    def __post_init__(self) -> None:
        require(self.law in _LAWS, "law", f"one of {', '.join(_LAWS)}", self.law)
        whole("arms", self.arms)
        whole("dim", self.dim)
        norms = array("norms", self.norms)
        ok = norms.shape in ((), (2,)) and bool((np.sort(norms.ravel()) == norms.ravel()).all())
        ok = ok and bool((norms > 0).all() and np.isfinite(norms).all())
        require(ok, "norms", "a positive number, or the least and the largest", self.norms)
        object.__setattr__(self, "norms", tuple(norms.tolist()) if norms.ndim else norms.item())
        number("lean", self.lean, at_least=0)

    def draw(self, rng: np.random.Generator, paths: int) -> Array:
        """Draw vectors of shape (paths, arms, dim)."""
        x = directions(self.law, rng, paths, self.arms, self.dim, self.lean)
        if self.norms == 1:
            return x
        if isinstance(self.norms, tuple):
            low, high = np.log(self.norms)
            x *= np.exp(rng.uniform(low, high, x.shape[:2]))[..., None]
        else:
            x *= self.norms
        return x


@dataclass(frozen=True, kw_only=True)
class FreshArms(FixedArms):
    """Vectors as those of `FixedArms`, drawn anew for each decision and kept while it is pulled.

    >>> FreshArms(law="orthant", arms=20, dim=10).fresh
    True
    """

    fresh = True


@dataclass(frozen=True)
class GivenArms(ArmSet):
    """The same given vectors in every path.

    >>> GivenArms(((1.0, 0.0), (0.6, 0.8))).arms
    2
    """

    vectors: Sequence[Sequence[float]] | Array

    def __post_init__(self) -> None:
        vectors = array("vectors", self.vectors)
        ok = vectors.ndim == 2 and vectors.size > 0
        require(ok, "vectors", "of shape (arms, dim)", vectors.shape)
        require(bool(np.isfinite(vectors).all()), "vectors", "finite", self.vectors)
        object.__setattr__(self, "vectors", tuple(tuple(row) for row in vectors.tolist()))

    @property
    def arms(self) -> int:  # type: ignore[override]
        """The number of vectors."""
        return len(self.vectors)

    @property
    def dim(self) -> int:  # type: ignore[override]
        """Their dimension."""
        return len(self.vectors[0])

    def draw(self, rng: np.random.Generator, paths: int) -> Array:
        """Return the vectors as every path sees them, of shape (paths, arms, dim)."""
        return np.broadcast_to(np.asarray(self.vectors), (paths, self.arms, self.dim))


@dataclass(frozen=True, kw_only=True)
class SharedContext(ArmSet):
    """A context x for all arms, a unit vector drawn anew for each decision: arm k is e_k ⊗ x.

    So each arm has a θ of its own, and ‖θ‖² is the sum of all of theirs.

    >>> contexts = SharedContext(law="sphere", arms=2, features=3)
    >>> contexts.dim, contexts.draw(np.random.default_rng(0), 1).astype(bool).tolist()
    (6, [[[True, True, True, False, False, False], [False, False, False, True, True, True]]])
    """

    fresh = True
    law: Law
    arms: int
    features: int

    def __post_init__(self) -> None:
        require(self.law in _LAWS, "law", f"one of {', '.join(_LAWS)}", self.law)
        whole("arms", self.arms)
        whole("features", self.features)

    @property
    def dim(self) -> int:  # type: ignore[override]
        """Features for each arm."""
        return self.arms * self.features

    def draw(self, rng: np.random.Generator, paths: int) -> Array:
        """Draw vectors of shape (paths, arms, dim)."""
        x = directions(self.law, rng, paths, 1, self.features)
        blocks = np.eye(self.arms)[:, :, None] * x[:, :, None, :]
        return blocks.reshape(paths, self.arms, self.dim)


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
