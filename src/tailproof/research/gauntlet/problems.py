"""The problems of the gauntlet, by names that can be typed.

Unless its name says otherwise, a problem has 20 arms in ten dimensions, ‖x‖ = ‖θ‖ = 1 and noise of
scale one. "fresh-…" offers new arms at each decision, "fixed-…" always the same; "k5-…" has five
arms without features (unit vectors) whose locations are ¼ apart.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from tailproof.checks import meant, number, require, whole
from tailproof.environments.arm_sets import GivenArms
from tailproof.environments.linear import Bandit, LinearBandit, k_armed, neutral, orthant
from tailproof.environments.shops import Visitors
from tailproof.noise import (
    Cauchy,
    Changing,
    Degenerate,
    Laplace,
    LogNormal,
    Mixture,
    Noise,
    Normal,
    Pareto,
    PerArm,
    Rademacher,
    Rounded,
    Stable,
    StudentT,
    SymmetricPareto,
    TwoPoint,
    Uniform,
    Varying,
    ZeroInflated,
)
from tailproof.policies import OFUL, Policy
from tailproof.research.gauntlet.score import BLOCKS

__all__ = ["PROBLEMS", "QUARTERS", "TUNING", "Problem", "named", "problem_sets", "problems"]

ORACLE_BONUSES = (0.1, 0.2, 0.3, 0.5)
"""The best of these bonuses of OFUL is the oracle."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A bandit with rewards in units of c, and its horizon.

    rewards c·(xᵀθ + offset + η)

    Parameters
    ----------
    name : str
    environment : Bandit
        The bandit with its offset, before it is multiplied by the unit.
    horizon : int
        T, in pulls.
    unit : float
        c.
    delay : int
        Decisions after which a reward is known, see `simulate`.
    block : str
        The part of a score that shows it: one of `tailproof.research.gauntlet.score.BLOCKS`.

    Examples
    --------
    >>> problem = PROBLEMS["units-mega"]
    >>> problem.bandit.noise, problem.horizon
    (Cauchy(scale=1000000.0), 3000)
    """

    name: str
    environment: Bandit
    horizon: int
    unit: float = 1.0
    delay: int = 0
    block: str = ""
    whole: ClassVar[bool] = False
    """Whether the quick size, too, plays it to its end."""

    def __post_init__(self) -> None:
        ok = isinstance(self.name, str) and self.name != "" and "," not in self.name
        require(ok, "name", "a text without commas", self.name)
        ok = isinstance(self.environment, Bandit)
        require(ok, "environment", "a bandit to play", self.environment)
        whole("horizon", self.horizon, at_least=2)
        whole("delay", self.delay, at_least=0)
        require(self.block in BLOCKS, "block", f"one of {', '.join(BLOCKS)}", self.block)
        number("unit", self.unit, above=0)

    @property
    def bandit(self) -> Bandit:
        """The bandit as it is played, with its unit."""
        return self.environment if self.unit == 1 else self.environment.scaled(self.unit)

    @property
    def text(self) -> str:
        """The problem in a few words.

        >>> PROBLEMS["units-micro-offset"].text
        '10 fresh arms, d = 5, Cauchy(scale=1.0), offset 10000, unit 1e-06, 3000 pulls'
        """
        bandit, contexts = self.environment, self.environment.contexts
        if isinstance(bandit, LinearBandit):
            kind = "arms" if self.k_armed else "fresh arms" if contexts.fresh else "fixed arms"
            parts = [f"{contexts.arms} {kind}", f"d = {contexts.dim}", repr(bandit.noise)]
        else:
            parts = [str(bandit)]
        parts += [f"offset {bandit.offset:g}"] if bandit.offset else []
        parts += [f"unit {self.unit:g}"] if self.unit != 1 else []
        parts += [repr(bandit.motion)] if isinstance(bandit, LinearBandit) and bandit.motion else []
        parts += [f"rewards {self.delay} decisions late"] if self.delay else []
        return ", ".join([*parts, f"{self.horizon} pulls"])

    @property
    def k_armed(self) -> bool:
        """Whether the arms are the unit vectors, so that policies that ignore features can play."""
        contexts = self.environment.contexts
        return isinstance(contexts, GivenArms) and np.array_equal(
            contexts.vectors, np.eye(contexts.arms, contexts.dim)
        )

    @property
    def same_vectors(self) -> bool:
        """Whether arms have the visitor's features alone, so that vectors do not tell them apart.

        >>> from tailproof.research.gauntlet import money
        >>> money.REPORT["money-banners"].same_vectors
        True
        """
        return isinstance(self.environment.contexts, Visitors)

    @cached_property
    def oracle(self) -> LinearBandit | None:
        """The same bandit with normal noise of equal Fisher information, no offset and unit one.

        None if θ is not drawn from the sphere or the noise has no finite Fisher information. It is
        kept, as the information of a stable law is an integral that takes a second.
        """
        bandit = self.environment
        if not isinstance(bandit, LinearBandit) or bandit.theta != "sphere":
            return None
        law = bandit.noise
        if not isinstance(law, Noise):
            return None
        if not (law.symmetric and law.continuous):
            return None
        information = law.fisher_information
        if not information < math.inf:
            return None
        return replace(bandit, noise=Normal(1 / math.sqrt(information)), offset=0.0)

    def oracle_forms(self) -> dict[str, Policy[Any]]:
        """Return the policies of which the best is the oracle: OFUL, told ‖θ‖ and the scale."""
        oracle: Any = self.oracle
        told = OFUL(noise_scale=oracle.noise.scale, norm_bound=oracle.size)
        return {f"oracle {bonus}": replace(told, bonus=bonus) for bonus in ORACLE_BONUSES}


def problems(which: str | Sequence[str | Problem]) -> tuple[Problem, ...]:
    """Return the problems of sets such as "report" and "tuning", or those with the given names.

    >>> len(problems("report")) >= 40
    True
    >>> len(problems("money,k5-t1"))
    17
    >>> problems(["fresh-t1", "k3-offset-10"])[1].horizon
    5000
    >>> problems(["fresh-t7"])
    Traceback (most recent call last):
    ValueError: problems: 'fresh-t7' is unknown; choose report, tuning, money, money-tuning, moving,
    moving-tuning, worlds, worlds-tuning, or
    names from tailproof list; did you mean fresh-t3 or fresh-t1 or
    fresh-still?
    """
    sets = problem_sets()
    by_name = {name: problem for group in sets.values() for name, problem in group.items()}
    names = which.split(",") if isinstance(which, str) else list(which)
    require(len(names) > 0, "problems", "at least one", which)
    chosen: list[Problem] = []
    for name in names:
        if isinstance(name, Problem):
            chosen.append(name)
        elif name in sets:
            chosen += sets[name].values()
        elif name in by_name:
            chosen.append(by_name[name])
        else:
            raise ValueError(
                f"problems: {name!r} is unknown; choose {', '.join(sets)}, or names from "
                f"tailproof list{meant(str(name), [*sets, *by_name])}"
            )
    return tuple(named(*chosen).values())


def problem_sets() -> dict[str, dict[str, Problem]]:
    """Return every set of problems by its name."""
    from tailproof.research.gauntlet import money, moving, worlds

    return {
        "report": PROBLEMS,
        "tuning": TUNING,
        "money": money.REPORT,
        "money-tuning": money.TUNING,
        "moving": moving.REPORT,
        "moving-tuning": moving.TUNING,
        "worlds": worlds.REPORT,
        "worlds-tuning": worlds.TUNING,
    }


def named(*made: Problem) -> dict[str, Problem]:
    """Return problems by their names, which must differ."""
    names = [problem.name for problem in made]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"problems: {name!r} occurs twice; give each problem its own name")
    return dict(zip(names, made, strict=True))


def _linear(
    kind: str, name: str, noise: Noise | Varying, horizon: int = 5000, **settings: Any
) -> Problem:
    environment = neutral(noise, fresh=kind == "fresh", **settings)
    return Problem(name=f"{kind}-{name}", environment=environment, horizon=horizon)


_fresh, _fixed = partial(_linear, "fresh"), partial(_linear, "fixed")


def _arms(
    name: str, noise: Noise | Varying, locations: Sequence[float], horizon: int = 10_000
) -> Problem:
    return Problem(
        name=f"k{len(locations)}-{name}",
        environment=k_armed(noise, locations=locations),
        horizon=horizon,
    )


def _units(name: str, offset: float = 0.0, unit: float = 1.0) -> Problem:
    environment = neutral(Cauchy(), arms=10, dim=5, offset=offset)
    return Problem(name=f"units-{name}", environment=environment, horizon=3000, unit=unit)


def _bernoulli(*means: float) -> PerArm:
    """Return the noise of arms whose rewards are 1 with these probabilities and 0 otherwise."""
    return PerArm(tuple(TwoPoint(1 - p, -p, p) for p in means))


QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""The locations of five arms."""
_CONTAMINATED = Mixture((Normal(), Normal(100)), (0.95, 0.05))
_LIES = Mixture((Normal(), TwoPoint(-100, -101, 0.5)), (0.95, 0.05))
"""One reward in twenty is false, to make its arm look bad."""

PROBLEMS = named(
    _fresh("t1", StudentT(1), 10_000),
    _fresh("t-half", StudentT(0.5), 10_000),
    _fresh("normal", Normal(), 10_000),
    _fresh("theta-100", StudentT(1), 10_000, size=100),
    _fresh("two-point", TwoPoint(9, -1, 0.1), 10_000),
    _fresh("pareto", Pareto(1.5, "mean"), 10_000),
    _fresh("t3", StudentT(3)),
    _fresh("laplace", Laplace()),
    _fresh("uniform", Uniform()),
    _fresh("rademacher", Rademacher()),
    _fresh("stable", Stable(1.2)),
    _fresh("symmetric-pareto", SymmetricPareto(1)),
    _fresh("contaminated", _CONTAMINATED),
    _fresh("rounded", Rounded(StudentT(1), 1)),
    _fresh("zeros", ZeroInflated(Cauchy(), 0.9)),
    _fresh("log-normal", LogNormal(1)),
    _fresh("heteroscedastic", PerArm((Cauchy(0.1),) * 10 + (Cauchy(3),) * 10)),
    _fresh("mixed-norms", StudentT(1), norms=(0.03, 30)),
    _fresh("collinear", StudentT(1, scale=0.1), lean=10),
    _fresh("d50", StudentT(1, scale=0.3), 1500, dim=50),
    _fresh("short", StudentT(1), 300),
    _fixed("noiseless", Degenerate(), 10_000),
    _fixed("quiet-normal", Normal(0.03), 10_000),
    _fixed("quiet-t1", StudentT(1, scale=0.1), 10_000),
    _fixed("quiet-t-half", StudentT(0.5, scale=0.1), 10_000),
    _fixed("t1", StudentT(1), 10_000),
    _fixed("t-half", StudentT(0.5), 10_000),
    _fixed("normal", Normal()),
    _fixed("quieter-normal", Normal(0.01)),
    _fixed("noisy-t1", StudentT(1, scale=10)),
    _fixed("drowned-normal", Normal(100)),
    _fixed("changing", Changing((StudentT(1, scale=0.1), StudentT(1)), (1000,))),
    _fixed("calming", Changing((StudentT(1), StudentT(1, scale=0.1)), (1000,))),
    _fixed("short-arms", StudentT(1, scale=0.01), norms=0.03),
    _fixed("long-arms", StudentT(1), norms=30),
    _fixed("mixed-norms", StudentT(1, scale=0.3), norms=(0.03, 30)),
    _fixed("collinear", StudentT(1, scale=0.1), lean=10),
    _fixed("d1", StudentT(1), 2000, dim=1, arms=10, norms=(0.03, 30)),
    _fixed("d2-k2-long", StudentT(1), 100_000, dim=2, arms=2),
    _fixed("k100", StudentT(1, scale=0.3), arms=100),
    _fixed("offset-10000", StudentT(1, scale=0.3), offset=10_000),
    _fixed("short", StudentT(1, scale=0.1), 300),
    Problem(name="orthant-t1", environment=orthant(StudentT(1)), horizon=10_000),
    _units("plain"),
    _units("micro", unit=1e-6),
    _units("mega", unit=1e6),
    _units("offset-10", offset=10),
    _units("offset-minus-10", offset=-10),
    _units("offset-10000", offset=10_000),
    _units("offset-minus-10000", offset=-10_000),
    _units("micro-offset", offset=10_000, unit=1e-6),
    _arms("offset-10", Cauchy(), (10, 10.5, 11), 5000),
    _arms("offset-minus-10000", Cauchy(), (-10_000, -9999.5, -9999), 5000),
    _arms("t1", StudentT(1), QUARTERS),
    _arms("t-half", StudentT(0.5), QUARTERS),
    _arms("rademacher", Rademacher(), QUARTERS),
    _arms("rounded", Rounded(Cauchy(), 0.5), QUARTERS, 5000),
    _arms("normal", Normal(), QUARTERS, 5000),
    _arms("noisy-best", PerArm(tuple(Cauchy(s) for s in (0.1, 0.3, 0.5, 1, 3))), QUARTERS),
    _arms("noisy-worst", PerArm(tuple(Cauchy(s) for s in (3, 1, 0.5, 0.3, 0.1))), QUARTERS, 5000),
    _arms("lies", PerArm((Normal(),) * 4 + (_LIES,)), QUARTERS, 5000),
    _arms("changing", Changing((Cauchy(0.3), Cauchy(3)), (1000,)), QUARTERS),
    _arms("zeros", ZeroInflated(Cauchy(), 0.4), QUARTERS, 5000),
    _arms("bernoulli", _bernoulli(0.3, 0.5, 0.7), (0.3, 0.5, 0.7)),
    _arms("ties", Cauchy(), (0, 1, 1), 5000),
    _arms("pareto", Pareto(0.7), (0, 1, 2), 5000),
    _arms("t1", Cauchy(), tuple(np.linspace(0, 2, 20).tolist()), 5000),
    _arms("short", Cauchy(0.5), (0, 1), 300),
)
"""Every problem, by its name."""
TUNING = named(
    *(
        replace(problem, name=f"tuning-{problem.name}")
        for problem in (
            _fresh("t-0.8", StudentT(0.8, scale=0.7), 4000, arms=12, dim=6),
            _fresh("t-2", StudentT(2, scale=2), 4000, arms=8, dim=4, offset=-300),
            _fresh("skew", LogNormal(1.3, scale=0.5), 4000, arms=12, dim=6),
            _fresh("outliers", Mixture((Laplace(), Normal(30)), (0.9, 0.1)), 4000, arms=15, dim=8),
            _fresh("norms", StudentT(1.3), 4000, arms=12, dim=6, norms=(0.1, 10)),
            _fresh("theta-30", StudentT(0.8), 4000, arms=12, dim=6, size=30),
            _fixed("noiseless", Degenerate(), 4000, arms=9, dim=4),
            _fixed("quiet", Laplace(0.05), 4000, arms=15, dim=7),
            _fixed("quiet-t-0.6", StudentT(0.6, scale=0.2), 4000, arms=15, dim=7, offset=55),
            _fixed("t-1.3", StudentT(1.3, scale=0.6), 4000, arms=15, dim=7),
            _fixed("t-0.6", StudentT(0.6), 4000, arms=12, dim=5),
            _fixed("pair", StudentT(0.8), 20_000, arms=3, dim=2),
            _arms("offset-37", Stable(1.3), (37.0, 37.4, 38.1, 38.2), 4000),
            _arms("t-0.8", StudentT(0.8), (0, 0.3, 0.4, 0.8, 0.9, 1.2), 8000),
            _arms("coin", TwoPoint(2, -2, 0.5), (0, 0.4, 0.9, 1), 4000),
            _arms("bernoulli", _bernoulli(0.2, 0.45), (0.2, 0.45), 4000),
            _arms(
                "noisy-best", PerArm((Laplace(0.2), Laplace(), StudentT(1.5, 4))), (0, 1, 2), 4000
            ),
            _arms("rounded", Rounded(StudentT(1.5), 0.7), (0, 0.5, 0.6, 1.3), 4000),
        )
    ),
    Problem(
        name="tuning-thousandths",
        environment=neutral(StudentT(1.5), arms=12, dim=6, fresh=False, offset=70),
        horizon=4000,
        unit=1e-3,
    ),
)
