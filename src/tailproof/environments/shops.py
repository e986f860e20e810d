"""Shops: visitors who mostly buy nothing, and spend wildly otherwise."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from tailproof.checks import Count, array, number, require, whole
from tailproof.environments.arm_sets import ArmSet, GivenArms, draw_offers
from tailproof.environments.linear import Bandit
from tailproof.environments.streams import drawn_together
from tailproof.noise import Noise, Varying, ZeroInflated
from tailproof.noise.base import check_laws
from tailproof.stats.aims import Aim, CappedMean, check_aim
from tailproof.typing import Array, Index

__all__ = ["Shop", "Visitors"]

_MOST = 0.5
"""The largest probability of a purchase where features decide."""


@dataclass(frozen=True, kw_only=True)
class Visitors(ArmSet):
    """A visitor for each decision, with normal features that are the same for all arms.

    >>> Visitors(arms=3, dim=2).draw(np.random.default_rng(0), 5).shape
    (5, 3, 2)
    """

    fresh = True
    arms: Count
    dim: Count

    def draw(self, rng: np.random.Generator, paths: int) -> Array:
        """Draw vectors of shape (paths, arms, dim)."""
        x = rng.standard_normal((paths, 1, self.dim))
        return np.broadcast_to(x, (paths, self.arms, self.dim))


@dataclass(frozen=True, kw_only=True)
class Shop(Bandit):
    """Arm a sells to a share of its visitors, and its baskets have a law of its own.

    P(purchase) = p_a, or min(p_a exp(w_aᵀx − ‖w_a‖²/2), ½) for a visitor with features x ~ N(0, I)

    Regret is counted in the aim. Where visitors have features, each visitor is compared with the
    best arm for that visitor, and the cap of a capped mean is computed at w = 0.

    Parameters
    ----------
    buyers : numbers
        p_a, of each arm, in (0, 1].
    baskets : Noise laws
        What buyers of each arm spend.
    weights : array of shape (K, d), optional
        w_a: how features of a visitor move the probability of a purchase.
    unused : int
        How many features visitors have that do not matter.
    aim : CappedMean or Mean
        What regret is counted in.
    cycle : numbers, optional
        By what factors the shares of buyers of all arms are multiplied, one phase after another and
        then from the first phase again; such as the days of a week. Not with features.
    phase : int
        How many visitors a phase has.

    Examples
    --------
    >>> from tailproof import RevenueUCB, simulate
    >>> from tailproof.noise import LogNormal
    >>> baskets = LogNormal(0.5, "left", 20), LogNormal(0.5, "left", 30)
    >>> two = Shop(buyers=(0.06, 0.03), baskets=baskets)
    >>> two.values.round(2).tolist()
    [1.36, 1.01]
    >>> result = simulate({"it": RevenueUCB()}, two, horizon=2000, paths=10, delay=100)
    >>> bool(result.mean("it")[-1] < 2000 * (1.36 - 1.01) / 2)
    True
    """

    buyers: Sequence[float] | Array
    baskets: tuple[Noise, ...]
    weights: Sequence[Sequence[float]] | Array | None = None
    unused: int = 0
    aim: Aim = field(default_factory=CappedMean)
    cycle: Sequence[float] = ()
    phase: Count = 1000

    def __post_init__(self) -> None:
        baskets = check_laws(self.baskets)
        buyers = tuple(number("buyers", p, above=0, at_most=1) for p in self.buyers)
        require(
            len(buyers) == len(baskets), "buyers", f"one for each of {len(baskets)} arms", buyers
        )
        for law in baskets:
            require(law.support[0] >= 0, "baskets", "laws of numbers that are not negative", law)
        check_aim("aim", self.aim)
        whole("unused", self.unused, at_least=0)
        whole("phase", self.phase)
        most = 1 / max(buyers)
        cycle = tuple(number("cycle", by, above=0, at_most=most) for by in self.cycle)
        require(not cycle or self.weights is None, "cycle", "empty with weights", self.cycle)
        object.__setattr__(self, "cycle", cycle)
        if self.weights is not None:
            weights = array("weights", self.weights)
            ok = (
                weights.ndim == 2
                and len(weights) == len(buyers)
                and bool(np.isfinite(weights).all())
            )
            require(ok, "weights", f"a row of numbers for each of {len(buyers)} arms", self.weights)
            object.__setattr__(self, "weights", tuple(map(tuple, weights.tolist())))
        elif self.unused:
            raise ValueError(
                f"unused={self.unused} needs weights: without, no visitor has features"
            )
        object.__setattr__(self, "buyers", buyers)
        object.__setattr__(self, "baskets", baskets)

    def __str__(self) -> str:
        """Describe the shop in a few words."""
        low, high = min(self.buyers), max(self.buyers)
        share = f"{low:.3g} to {high:.3g}" if low < high else f"{low:.3g}"
        laws = ", ".join(map(repr, dict.fromkeys(self.baskets)))
        seen = f", {self.contexts.dim} features" if self.weights is not None else ""
        return f"shop with {len(self.buyers)} arms{seen}, buyers {share}, baskets {laws}"

    @property
    def contexts(self) -> ArmSet:  # type: ignore[override]
        """Unit vectors, or the features of visitors."""
        if self.weights is None:
            return GivenArms(np.eye(len(self.buyers)))
        return Visitors(arms=len(self.buyers), dim=np.shape(self.weights)[1] + self.unused)

    @cached_property
    def values(self) -> Array:
        """The aim of each arm for visitors whose purchases do not depend on features."""
        laws = [
            law if p == 1 else ZeroInflated(law, 1 - p)
            for law, p in zip(self.baskets, self.buyers, strict=True)
        ]
        return self.aim.of(laws, [0.0] * len(laws))

    def conversion(self, x: Array) -> Array:
        """Return P(purchase) for visitors with these features, of shape (…, K)."""
        w = np.asarray(self.weights)
        lift = x[..., : w.shape[1]] @ w.T - np.square(w).sum(axis=1) / 2
        return np.asarray(np.minimum(np.asarray(self.buyers) * np.exp(lift), _MOST))

    def scaled(self, c: float) -> Self:
        """Return the same shop in another currency: every reward is multiplied by c > 0."""
        return replace(self, baskets=tuple(law.scaled(c) for law in self.baskets))

    def start(self, paths: int, rng: np.random.Generator) -> "ShopWorld":
        """Draw the first visitors."""
        return ShopWorld(self, paths, rng)


class ShopWorld:
    """A shop on many paths, at one visitor after another; see `environments.World`.

    Attributes
    ----------
    theta : array of shape (paths, K), or None
        The aim of each arm; None if visitors have features.
    conversion : array of shape (paths, K)
        The probability that the next visitor buys.
    """

    theta: Array | None

    def __init__(self, bandit: Shop, paths: int, rng: np.random.Generator) -> None:
        self._shop, self._rng, self._paths, k = bandit, rng, paths, len(bandit.buyers)
        self._purchase_value = bandit.values / np.asarray(bandit.buyers)  # of a purchase
        self.theta = None
        self.most = _MOST
        if bandit.weights is None:
            self.arms = np.broadcast_to(np.eye(k), (paths, k, k))
            self.theta = np.tile(bandit.values, (paths, 1))
            self.conversion = np.tile(np.asarray(bandit.buyers), (paths, 1))
            self.most = max(bandit.buyers) * max(bandit.cycle, default=1.0)
            self._still, self._visitor = (self.conversion, self.theta), -1
            self._enter_phase()
        else:
            self._left = 0
            self.advance()
        self.noise = _Sales(bandit.baskets, self)

    @property
    def changes(self) -> bool:
        """Whether visitors differ by their features, or the shares of buyers go through a cycle."""
        return self.theta is None or len(self._shop.cycle) > 0

    def _enter_phase(self) -> None:
        """Move on to a visitor without features, who may be the first of a phase."""
        self._visitor += 1
        cycle = self._shop.cycle
        if self._visitor % self._shop.phase == 0:
            factor = cycle[self._visitor // self._shop.phase % len(cycle)] if cycle else 1.0
            self.conversion, self.theta = (factor * still for still in self._still)
            self.locations, self.best = self.theta, self.theta.max(axis=1)

    def advance(self, pulled: int = 0) -> None:
        """Move on to the next visitor."""
        if self._shop.weights is None:
            self._enter_phase()
            return
        if not self._left:
            contexts = self._shop.contexts
            self._left = drawn_together(self._paths * contexts.arms * contexts.dim)
            drawn = draw_offers(contexts, self._rng, self._left * self._paths)
            self._coming = drawn.reshape(self._left, self._paths, *drawn.shape[1:])
        self.arms = self._coming[-self._left]
        self._left -= 1
        self.conversion = self._shop.conversion(self.arms[:, 0])
        self.locations = self.conversion * self._purchase_value
        self.best = self.locations.max(axis=1)


class _Sales(Varying):
    """The noise: what visitors spend less its mean; drawn for many visitors at a time.

    The draws do not depend on the arms chosen, so every policy has the same visitors. Baskets are
    drawn only for visitors who would buy from some arm.
    """

    def __init__(self, baskets: tuple[Noise, ...], world: ShopWorld) -> None:
        self.laws, self._world, self._left = baskets, world, 0

    def which(self, chosen: Index, pulled: int, pulls: int) -> Index:
        """Return the chosen arm."""
        return chosen[:, None]

    def sample(self, rng: np.random.Generator, chosen: Index, pulled: int, pulls: int) -> Array:
        """Draw the noise of a decision, of shape (paths, pulls)."""
        if not self._left:
            self._draw(rng, len(chosen) * pulls)
        now = slice(*self._starts[-1 - self._left :][:2])
        self._left -= 1
        visitor, chance, basket = self._who[now], self._chance[now], self._basket[now]
        path = visitor // pulls
        arm = chosen[path]
        expected = self._world.locations[np.arange(len(chosen)), chosen]
        noise = np.repeat(-expected, pulls)
        buys = chance < self._world.conversion[path, arm]
        noise[visitor[buys]] += basket[np.arange(len(visitor)), arm][buys]
        return noise.reshape(len(chosen), pulls)

    def _draw(self, rng: np.random.Generator, visitors: int) -> None:
        """Draw the chances of visitors in many decisions, and the baskets of those who may buy."""
        self._left = drawn_together(visitors)
        chance = rng.random((self._left, visitors))
        step, self._who = np.nonzero(chance < self._world.most)
        self._chance = chance[step, self._who]
        self._starts = np.searchsorted(step, np.arange(self._left + 1))
        kinds = list(dict.fromkeys(self.laws))  # arms with equal laws share a sample
        drawn = [law.sample(rng, (len(step),)) for law in kinds]
        self._basket = np.stack([drawn[kinds.index(law)] for law in self.laws], axis=1)
