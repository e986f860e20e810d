"""Bandits on one path: the vectors of the arms, their rewards, and how θ moves.

The vectors of the arms are stored with the coordinates first, so that cores add up several arms at
a time. The numbers `w` of a bandit are its size, the logarithms of the least and the largest norm
of its arms, their `lean` (see `FixedArms`), its offset, the size of its motion, θ where it is
given, and the factors of the phases of a shop.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tailproof.compiled.laws import LawTable
from tailproof.compiled.motions import motion_of, still
from tailproof.compiled.streams import Words, point, skip, uniform, unit, word_at
from tailproof.compiled.targets import Bound, bind
from tailproof.environments import FixedArms, FreshArms, GivenArms, LinearBandit
from tailproof.environments.linear import Bandit
from tailproof.environments.shops import Shop
from tailproof.noise import (
    Changing,
    Noise,
    PassedOn,
    PerArm,
    Varying,
    ZeroInflated,
)
from tailproof.typing import Array, Index

__all__ = ["World", "world_of"]

_BEFORE_THETA = 6  # numbers of w
CYCLE = 1
"""A placeholder: how many phases a shop has."""
ARMS = 1
"""A placeholder: K. Arrays may have room for a few arms more, whose numbers do not matter."""


@dataclass(frozen=True)
class World:
    """A bandit as functions and numbers.

    `begin` writes θ, the offered vectors and their locations, `renew` new vectors, `move` another
    θ after the pulls in `moves`. The law of a reward is `rows[passed, arm]`, where `passed` counts
    the pulls in `changes` that are over. Arms that the policy knows by number alone take no room.
    """

    begin: Bound
    renew: Bound
    move: Bound
    draw: Bound
    arms: int
    dim: int
    reads: bool
    fresh: bool
    pays_location: bool
    numbers: Array
    vectors: Array
    laws: Array
    values: Array
    rows: Index
    changes: Index
    moves: Index


def world_of(
    bandit: Bandit, horizon: int, vectors: bool, pulls: int = 1, general: bool = False
) -> World:
    """Return the compiled form of a bandit, or raise if it has none.

    `vectors` says whether the policy reads the vectors of the arms, and `pulls` how many it makes
    at each decision; the code of a `general` world draws from any law.
    """
    if type(bandit) is Shop:
        return _shop(bandit, horizon, vectors, pulls, general)
    if type(bandit) is not LinearBandit:
        raise ValueError(
            f"environment {bandit!r} has no compiled form; LinearBandit and Shop have one"
        )
    contexts = bandit.contexts
    reads = vectors or not _is_k_armed(contexts)
    place = locate if reads else same_locations
    offer, norms = _offer(contexts, reads)
    theta_of, given = (sphere_theta, []) if isinstance(bandit.theta, str) else (given_theta, [])
    if bandit.theta == "diagonal":
        theta_of, given = given_theta, [1 / math.sqrt(contexts.dim)] * contexts.dim
    elif not isinstance(bandit.theta, str):
        given = [float(x) for x in bandit.theta]
    step, size = motion_of(bandit.motion) if bandit.motion else (still, 0.0)
    w = [bandit.size, *norms, bandit.offset, size * bandit.size, *given]
    table, rows, changes = _laws(bandit.noise, contexts.arms, general)
    marks = bandit.motion.marks() if bandit.motion else iter(())
    fresh = bind(renewed, offer=offer, place=place)
    return World(
        begin=bind(begin, theta_of=theta_of, offer=offer, place=place),
        renew=fresh if contexts.fresh else bind(unchanged),
        move=bind(moved, step=step, place=place),
        draw=table.draw,
        arms=contexts.arms,
        dim=contexts.dim,
        reads=reads,
        fresh=contexts.fresh,
        pays_location=True,
        numbers=np.array(w),
        vectors=_vectors(contexts),
        laws=table.rows,
        values=table.values,
        rows=rows,
        changes=changes,
        moves=np.array(list(itertools.takewhile(lambda at: at < horizon, marks)), dtype=np.int64),
    )


def _shop(shop: Shop, horizon: int, vectors: bool, pulls: int, general: bool) -> World:
    """Return a shop whose visitors have no features: K arms with zeros and baskets."""
    if shop.weights is not None:
        raise ValueError(f"{shop} has no compiled form, as its visitors have features")
    cycle = shop.cycle or (1.0,)
    laws = [
        law if p * factor == 1 else ZeroInflated(law, 1 - p * factor)
        for factor in cycle
        for law, p in zip(shop.baskets, shop.buyers, strict=True)
    ]
    contexts = shop.contexts
    offer, norms = _offer(contexts, vectors)
    table = LawTable(laws, general=general)
    of = np.array(table.of).reshape(len(cycle), -1)
    phases = np.arange(shop.phase * pulls, horizon, shop.phase * pulls) if shop.cycle else ()
    moves = np.array(phases, dtype=np.int64)
    place = locate if vectors else same_locations
    return World(
        begin=bind(begin, theta_of=first_phase, offer=offer, place=place),
        renew=bind(unchanged),
        move=bind(next_phase, place=place, CYCLE=len(cycle)),
        draw=table.draw,
        arms=contexts.arms,
        dim=contexts.dim,
        reads=vectors,
        fresh=False,
        pays_location=False,
        numbers=np.array([1.0, *norms, 0.0, 0.0, *shop.values, *cycle]),
        vectors=_vectors(contexts),
        laws=table.rows,
        values=table.values,
        rows=of[np.arange(len(moves) + 1) % len(cycle)],
        changes=moves,
        moves=moves,
    )


def _is_k_armed(contexts: Any) -> bool:
    return isinstance(contexts, GivenArms) and np.array_equal(
        contexts.vectors, np.eye(contexts.arms, contexts.dim)
    )


def _vectors(contexts: Any) -> Array:
    given = contexts.vectors if isinstance(contexts, GivenArms) else [[0.0]]
    return np.array(given, dtype=np.float64)


def _offer(contexts: Any, reads: bool) -> tuple[Any, list[float]]:
    """Return the function that writes the offered vectors, and the settings `norms` and `lean`."""
    if isinstance(contexts, GivenArms):
        return (given_offers if reads else no_offers), [0.0, 0.0, 0.0]
    if type(contexts) in (FixedArms, FreshArms):
        norms = contexts.norms if isinstance(contexts.norms, tuple) else (contexts.norms,) * 2
        direction = {"sphere": sphere, "orthant": orthant}[contexts.law]
        numbers = [*(math.log(norm) for norm in norms), contexts.lean]
        return bind(drawn_offers, direction=direction), numbers
    raise ValueError(
        f"contexts {contexts!r} have no compiled form; FixedArms, FreshArms and GivenArms have one"
    )


def _laws(noise: Noise | Varying, arms: int, general: bool) -> tuple[LawTable, Index, Index]:
    """Return the laws, the row of each by change and arm, and after which pulls they change."""
    if isinstance(noise, Noise):
        table = LawTable([noise], general=general)
        return table, np.full((1, arms), table.of[0]), np.zeros(0, dtype=np.int64)
    if type(noise) not in (PerArm, Changing, PassedOn):
        raise ValueError(f"noise {noise!r} has no compiled form")
    table, at = LawTable(noise.laws, general=general), getattr(noise, "at", ())
    of = np.array(table.of)
    if isinstance(noise, Changing):
        rows = np.repeat(of[:, None], arms, axis=1)
    else:
        rows = np.stack([np.roll(of, -passed) for passed in range(len(at) + 1)])
    return table, rows, np.array(at, dtype=np.int64)


def theta_of(theta: Array, w: Array, g: Words) -> None:
    """Write θ; a placeholder."""
    raise NotImplementedError


def offer(offers: Array, w: Array, vectors: Array, g: Words) -> None:
    """Write the offered vectors; a placeholder."""
    raise NotImplementedError


def place(theta: Array, offers: Array, locations: Array) -> None:
    """Write the location of each arm; a placeholder."""
    raise NotImplementedError


def step(theta: Array, size: float, g: Words) -> None:
    """Move θ; a placeholder."""
    raise NotImplementedError


def direction(offers: Array, g: Words) -> None:
    """Write random unit vectors; a placeholder."""
    raise NotImplementedError


def begin(
    theta: Array, offers: Array, locations: Array, w: Array, vectors: Array, g: Words
) -> None:
    theta_of(theta, w, g)
    offer(offers, w, vectors, g)
    place(theta, offers, locations)


def renewed(
    theta: Array, offers: Array, locations: Array, w: Array, vectors: Array, g: Words
) -> None:
    offer(offers, w, vectors, g)
    place(theta, offers, locations)


def unchanged(
    theta: Array, offers: Array, locations: Array, w: Array, vectors: Array, g: Words
) -> None:
    return


def moved(theta: Array, offers: Array, locations: Array, w: Array, g: Words, before: int) -> None:
    step(theta, w[5], g)
    place(theta, offers, locations)


def first_phase(theta: Array, w: Array, g: Words) -> None:
    for i in range(theta.shape[0]):
        theta[i, 0] = w[_BEFORE_THETA + i] * w[_BEFORE_THETA + theta.shape[0]]


def next_phase(
    theta: Array, offers: Array, locations: Array, w: Array, g: Words, before: int
) -> None:
    """Multiply the values of all arms by the factor of the next phase of a shop."""
    factor = w[_BEFORE_THETA + theta.shape[0] + (before + 1) % CYCLE]
    for i in range(theta.shape[0]):
        theta[i, 0] = w[_BEFORE_THETA + i] * factor
    place(theta, offers, locations)


def locate(theta: Array, offers: Array, locations: Array) -> None:
    for k in range(offers.shape[1]):
        locations[k] = 0.0
    for i in range(offers.shape[0]):
        for k in range(offers.shape[1]):
            locations[k] += offers[i, k] * theta[i, 0]


def same_locations(theta: Array, offers: Array, locations: Array) -> None:
    for k in range(ARMS):
        locations[k] = theta[k, 0]


def given_theta(theta: Array, w: Array, g: Words) -> None:
    for i in range(theta.shape[0]):
        theta[i, 0] = w[0] * w[_BEFORE_THETA + i]


def sphere_theta(theta: Array, w: Array, g: Words) -> None:
    sphere(theta, g)
    for i in range(theta.shape[0]):
        theta[i, 0] *= w[0]


def no_offers(offers: Array, w: Array, vectors: Array, g: Words) -> None:
    return


def given_offers(offers: Array, w: Array, vectors: Array, g: Words) -> None:
    for i in range(offers.shape[0]):
        for k in range(offers.shape[1]):
            offers[i, k] = vectors[k, i] if k < ARMS else 0.0


def drawn_offers(offers: Array, w: Array, vectors: Array, g: Words) -> None:
    low, high, lean = w[1], w[2], w[3]
    direction(offers, g)
    if lean > 0.0:
        for k in range(offers.shape[1]):
            offers[0, k] += lean
        normalise(offers)
    if low != 0.0 or high != 0.0:
        for k in range(ARMS):
            norm = math.exp(low + (high - low) * uniform(g)) if low < high else math.exp(low)
            for i in range(offers.shape[0]):
                offers[i, k] *= norm


def orthant(offers: Array, g: Words) -> None:
    for i in range(offers.shape[0]):
        for k in range(offers.shape[1]):
            offers[i, k] = unit(word_at(g, k + 1))
        skip(g, ARMS)
    normalise(offers)


def normalise(offers: Array) -> None:
    for k in range(offers.shape[1]):
        square = 0.0
        for i in range(offers.shape[0]):
            square += offers[i, k] * offers[i, k]
        size = 1.0 / math.sqrt(square)
        for i in range(offers.shape[0]):
            offers[i, k] *= size


def sphere(offers: Array, g: Words) -> None:
    """Write unit vectors, all directions equally likely.

    Pairs of coordinates are points of circles, and the squares of the radii are the gaps between
    sorted uniform numbers: normal coordinates, once normalised, have the same law. So no logarithm
    is needed, and a core computes several arms at a time: its compiler needs short loops for that.
    With an odd number of coordinates half of the last pair is dropped, and the vector is brought
    back to length one.
    """
    dim, width = offers.shape
    pairs = (dim + 1) // 2
    for i in range(pairs - 1):
        for k in range(width):
            offers[i, k] = unit(word_at(g, k + 1))
        skip(g, ARMS)
        for j in range(i):
            for k in range(width):
                one, other = offers[j, k], offers[i, k]
                offers[j, k] = one if one < other else other
                offers[i, k] = other if one < other else one
    for i in range(pairs - 1, -1, -1):  # radii, each to the row of its pair
        for k in range(width):
            below = offers[i - 1, k] if i > 0 else 0.0
            above = offers[i, k] if i + 1 < pairs else 1.0
            offers[2 * i, k] = math.sqrt(above - below)
    for i in range(0, dim - 1, 2):
        for k in range(width):
            x, y = point(unit(word_at(g, k + 1)))
            offers[i + 1, k] = offers[i, k] * y
            offers[i, k] *= x
        skip(g, ARMS)
    if dim % 2 == 1:
        for k in range(width):
            offers[dim - 1, k] *= point(unit(word_at(g, k + 1)))[0]
        skip(g, ARMS)
        normalise(offers)
