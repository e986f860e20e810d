"""Where the arms of a linear bandit come from."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import Count, NonNegative, array, check_fields, require
from tailproof.environments.streams import drawn_together
from tailproof.typing import Array

__all__ = ["ArmSet", "FixedArms", "FreshArms", "GivenArms", "SharedContext", "UnitBall"]

Law = Literal["orthant", "sphere"]


def _sphere(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Draw normal coordinates: once normalised, all directions are equally likely.

    A simulation with fresh arms spends most of its time here, so this is Box and
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
    "orthant": lambda rng, shape: rng.random(shape),  # the paper's contexts, once normalised
    "sphere": _sphere,
}


def directions(
    law: Law, rng: np.random.Generator, paths: int, arms: int, dim: int, lean: float = 0.0
) -> Array:
    """Draw unit vectors of shape (paths, arms, dim), stored with the coordinates first.

    `lean` times the first unit vector is added to each, and the sum normalised again.
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
    """Offers of `arms` vectors of dimension `dim`, drawn anew at each decision if `fresh`.

    A dataclass of your own has its fields checked by their types, see `tailproof.checks`.
    """

    arms: int
    dim: int
    fresh: bool = False

    def __post_init__(self) -> None:
        check_fields(self)

    @abstractmethod
    def draw(self, rng: np.random.Generator, paths: int) -> Array:
        """Draw vectors of shape (paths, arms, dim)."""


def draw_offers(contexts: ArmSet, rng: np.random.Generator, paths: int) -> Array:
    """Draw vectors and check their shape: an extra arm would be an arm of the next path."""
    vectors = np.asarray(contexts.draw(rng, paths))
    shape = paths, contexts.arms, contexts.dim
    if vectors.shape != shape:
        raise ValueError(f"{contexts!r} must draw vectors of shape {shape}, got {vectors.shape}")
    return vectors


@dataclass(frozen=True, kw_only=True)
class FixedArms(ArmSet):
    """Vectors drawn once for each path.

    x = r u, u ∝ lean·e₁ + v, v a random direction, ln r uniform between the logarithms of `norms`

    Parameters
    ----------
    law : "orthant" or "sphere"
        The law of the directions v.
    arms, dim : int
    norms : float or pair of floats
        The length of all vectors, or the least and the largest length.
    lean : float
        Large values make the vectors nearly collinear, at angles of about 1/lean.

    Examples
    --------
    >>> FixedArms(law="sphere", arms=20, dim=10).draw(np.random.default_rng(0), 3).shape
    (3, 20, 10)
    """

    law: Law
    arms: Count
    dim: Count
    norms: float | tuple[float, float] = 1.0
    lean: NonNegative = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        norms = array("norms", self.norms)
        ok = norms.shape in ((), (2,)) and 0 < norms.flat[0] <= norms.flat[-1] < math.inf
        require(ok, "norms", "a positive number, or the least and the largest", self.norms)
        object.__setattr__(self, "norms", tuple(norms.tolist()) if norms.ndim else norms.item())

    def draw(self, rng: np.random.Generator, paths: int) -> Array:
        """Draw vectors of shape (paths, arms, dim)."""
        x = directions(self.law, rng, paths, self.arms, self.dim, self.lean)
        if isinstance(self.norms, tuple):
            low, high = np.log(self.norms)
            x *= np.exp(rng.uniform(low, high, x.shape[:2]))[..., None]
        elif self.norms != 1:
            x *= self.norms
        return x


@dataclass(frozen=True, kw_only=True)
class FreshArms(FixedArms):
    """Vectors like those of `FixedArms`, but new for each decision.

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
    arms: int = field(init=False, repr=False, compare=False)
    dim: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        vectors = array("vectors", self.vectors)
        ok = vectors.ndim == 2 and vectors.size > 0
        require(ok, "vectors", "of shape (arms, dim)", vectors.shape)
        require(bool(np.isfinite(vectors).all()), "vectors", "finite", self.vectors)
        object.__setattr__(self, "vectors", tuple(tuple(row) for row in vectors.tolist()))
        for name, length in zip(("arms", "dim"), vectors.shape, strict=True):
            object.__setattr__(self, name, length)

    def draw(self, rng: np.random.Generator, paths: int) -> Array:
        """Return the vectors as every path sees them, of shape (paths, arms, dim)."""
        return np.broadcast_to(np.asarray(self.vectors), (paths, self.arms, self.dim))


@dataclass(frozen=True, kw_only=True)
class SharedContext(ArmSet):
    """A context x for all arms, a new unit vector for each decision: arm k is e_k ⊗ x.

    So each arm has coefficients of its own, and ‖θ‖² is the sum of their squares over all arms.

    >>> contexts = SharedContext(law="sphere", arms=2, features=3)
    >>> contexts.dim, contexts.draw(np.random.default_rng(0), 1).astype(bool).tolist()
    (6, [[[True, True, True, False, False, False], [False, False, False, True, True, True]]])
    """

    fresh = True
    law: Law
    arms: Count
    features: Count

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
    """Every vector of length one or less: policies propose a vector instead of choosing.

    >>> UnitBall(dim=3).draw(np.random.default_rng(0), 2).shape
    (2, 1, 3)
    """

    dim: Count
    arms: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.arms == 1, "arms", "left out: the ball counts as one arm", self.arms)

    def draw(self, rng: np.random.Generator, paths: int) -> Array:
        """Return the centre of the ball, as if it were the only arm."""
        return np.zeros((paths, 1, self.dim))
