"""Problems that move: jumps, a swap, a riser that nobody pulls, walks, rotations and shifts.

"k5-…" has five arms whose locations are ½ apart at first, "fixed-…" 20 fixed arms and "fresh-…" 20
new arms at each decision, both in ten dimensions; "shop-…" has four arms that nine visitors in ten
or more do not buy from. "still" in a name means without motion, to see what a precaution costs
there.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri

from tailproof.environments import LinearBandit, k_armed, motions, neutral
from tailproof.noise import Cauchy, Empirical, Noise, Normal, PassedOn, StudentT
from tailproof.policies import LinStudentUCB, Policy, RevenueUCB
from tailproof.policies.base import Array, Index
from tailproof.research.gauntlet.problems import Problem, named
from tailproof.wrappers.base import Wrapped, Wrapper
from tailproof.wrappers.renewed import Renewed
from tailproof.wrappers.vigilant import Vigilant

__all__ = ["RECOMMENDED", "REPORT", "TUNING", "MovingProblem", "Restarted"]

RECOMMENDED: dict[str, Policy[Any]] = {
    "LinStudentUCB": LinStudentUCB(),
    "Vigilant(LinStudentUCB)": Vigilant(LinStudentUCB()),
    "Renewed(LinStudentUCB), 2000": Renewed(LinStudentUCB(), memory=2000),
    "Vigilant(RevenueUCB)": Vigilant(RevenueUCB()),
}
"""The tools that docs/choosing.md names for worlds that move, and a policy that never forgets."""
SPACINGS = (500, 1000, 2000, 4000)
"""Where θ moves all the time, the oracle restarts after the number of decisions that serves it
best, or never."""


@dataclass(frozen=True)
class Restarted(Wrapper[Wrapped]):
    """Any policy, restarted after given numbers of decisions: it is told when θ changes.

    >>> from tailproof import UCB1
    >>> policy, arms = Restarted(UCB1(), at=(2,)), np.eye(2)[None]
    >>> state = policy.init(paths=1, arms=2, dim=2)
    >>> for _ in range(3):
    ...     policy.learn(state, arms, [0], [[1.0]])
    >>> state.inner.counts.tolist()
    [[1, 0]]
    """

    at: tuple[int, ...] = field(kw_only=True)

    def _learn_weighted(
        self, state: Wrapped, arms: Array, chosen: Index, rewards: Array, propensity: Array | None
    ) -> None:
        super()._learn_weighted(state, arms, chosen, rewards, propensity)
        rows = np.flatnonzero(np.isin(state.decisions + 1, self.at))
        if len(rows):
            state.inner.put(rows, self.policy.init(len(rows), state.arms, state.dim))


@dataclass(frozen=True, kw_only=True)
class MovingProblem(Problem):
    """A problem whose oracle is a policy that suits it, restarted whenever θ changes.

    >>> REPORT["k5-swap"].oracle_forms()["oracle"].at
    (5000,)
    """

    suited: Policy[Any] = field(default_factory=LinStudentUCB)
    environment: LinearBandit
    block: str = "moving"
    whole = True

    @property
    def oracle(self) -> LinearBandit:
        """The bandit itself."""
        return self.environment

    def oracle_forms(self) -> dict[str, Policy[Any]]:
        """Return the policy restarted at every change, or at even spacings if it never stops."""
        motion = self.environment.motion
        if motion is None:
            return {"oracle": self.suited}
        if isinstance(motion, motions.Walk | motions.Rotation):
            at = {n: tuple(range(n, self.horizon, n)) for n in (*SPACINGS, self.horizon)}
        else:
            at = {0: tuple(motion.marks())}
        return {
            f"oracle {n or ''}".strip(): Restarted(self.suited, at=marks) for n, marks in at.items()
        }


def _linear(
    fresh: bool, name: str, law: Noise, motion: motions.Motion | None, **settings: Any
) -> MovingProblem:
    kind = "fresh" if fresh else "fixed"
    bandit = neutral(law, fresh=fresh, motion=motion, **settings)
    return MovingProblem(name=f"{kind}-{name}", environment=bandit, horizon=10_000)


_fixed, _fresh = partial(_linear, False), partial(_linear, True)


def _arms(
    name: str,
    law: Noise,
    motion: motions.Motion | None,
    locations: tuple[float, ...] = (0, 0.5, 1, 1.5, 2),
) -> MovingProblem:
    bandit = k_armed(law, locations=locations, motion=motion)
    return MovingProblem(name=f"k{len(locations)}-{name}", environment=bandit, horizon=10_000)


def _shop(
    name: str,
    at: tuple[int, ...],
    buyers: tuple[float, ...] = (0.1, 0.07, 0.05, 0.03),
    spread: float = 0.8,
) -> MovingProblem:
    """Return a shop whose arms sell log-normal baskets and pass their laws on."""
    baskets = 20 * np.exp(spread * ndtri((np.arange(200) + 0.5) / 200))
    sales = [np.concatenate([baskets, np.zeros(round(200 / p) - 200)]) for p in buyers]
    means = [float(sample.mean()) for sample in sales]
    laws = tuple(Empirical(sample - mean) for sample, mean in zip(sales, means, strict=True))
    motion = motions.PassOn(at=at) if at else None
    bandit = k_armed(PassedOn(laws, at), locations=means, motion=motion)
    return MovingProblem(
        name=f"shop-{name}", environment=bandit, horizon=40_000, suited=RevenueUCB()
    )


_THRICE = (2500, 5500, 7500)  # pulls after which θ changes
REPORT = named(
    _arms("still", Cauchy(), None),
    _arms("still-normal", Normal(), None),
    _arms("jumps", Cauchy(), motions.Jump(at=_THRICE)),
    _arms("jumps-t-half", StudentT(0.5), motions.Jump(at=_THRICE)),
    _arms("jumps-normal", Normal(), motions.Jump(at=_THRICE)),
    _arms("swap", Cauchy(), motions.Swap(at=(5000,))),
    _arms("rise", Cauchy(), motions.Rise(at=(5000,), by=1)),
    _arms("walk", Cauchy(), motions.Walk(stride=0.2, every=100)),
    _arms("shift", Cauchy(), motions.Shift(at=_THRICE, by=3)),
    _fixed("still", Cauchy(0.5), None),
    _fixed("jumps", Cauchy(0.5), motions.Jump(at=_THRICE)),
    _fixed("rotation", Cauchy(0.5), motions.Rotation(period=30_000)),
    _fresh("still", Cauchy(0.5), None),
    _fresh("jumps", Cauchy(0.5), motions.Jump(at=_THRICE)),
    _fresh("jumps-t-half", StudentT(0.5, scale=0.5), motions.Jump(at=_THRICE)),
    _fresh("walk-normal", Normal(0.5), motions.Walk(stride=0.05, keeps_length=True)),
    _shop("still", ()),
    _shop("trade", (15_000, 28_000)),
)
TUNING = named(
    *(
        replace(problem, name=f"tuning-{problem.name}")
        for problem in (
            _arms("still", StudentT(0.8), None, (0, 0.4, 0.9, 1.3, 1.8, 2)),
            _arms("jumps", StudentT(0.8), motions.Jump(at=(2000, 5000, 7000)), (0, 0.5, 1.1, 1.9)),
            _arms("swap", StudentT(1.5), motions.Swap(at=(4000,)), (0, 0.7, 1.1, 1.7)),
            _arms("rise", StudentT(1.5), motions.Rise(at=(4000,), by=1.3), (0, 0.7, 1.1)),
            _arms("walk", StudentT(0.8), motions.Walk(stride=0.3, every=200), (0, 1, 2)),
            _arms("shift", StudentT(1.5), motions.Shift(at=(3000, 6000), by=2), (0, 0.7, 1.1, 1.7)),
            _fixed("still", StudentT(1.5, scale=0.4), None, arms=15, dim=7),
            _fixed(
                "jumps", StudentT(0.8, scale=0.4), motions.Jump(at=(4000, 6500)), arms=15, dim=7
            ),
            _fixed("rotation", Normal(0.4), motions.Rotation(period=20_000), arms=15, dim=7),
            _fresh(
                "jumps", StudentT(0.8, scale=0.4), motions.Jump(at=(4000, 6500)), arms=15, dim=7
            ),
            _fresh("still", StudentT(1.5), None, arms=15, dim=7),
            _shop("trade", (12_000,), (0.08, 0.05, 0.04), 1.1),
        )
    )
)
