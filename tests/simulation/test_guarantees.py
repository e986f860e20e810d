"""What policies and theorems declare, measured: coverage, exits, scales and bounds on regret.

Statistical tests count bad paths and compare with the declared probability by an exact binomial
test; each fails a true guarantee with probability at most `FALSE_ALARM`.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import betainc, expit, log_expit
from scipy.stats import binomtest

from tailproof import (
    OFUL,
    Filtered,
    Median,
    Policy,
    SymmetricOFUL,
    environments,
    noise,
    policies,
    theory,
)
from tailproof.typing import Array

FALSE_ALARM = 1e-6
LAWS: list[noise.Noise] = [
    noise.Normal(),
    noise.StudentT(3),
    noise.StudentT(1),
    noise.StudentT(0.5),
    noise.SymmetricPareto(1),
]
SHORT, LONG = (24, 250), (200, 2000)
"""Paths and pulls."""


def as_often_as_declared(bad: int, of: int, probability: float) -> bool:
    test = binomtest(bad, of, min(probability, 1.0), alternative="greater")
    return bool(test.pvalue > FALSE_ALARM)


def unit(law: noise.Noise, alpha: float) -> noise.Noise:
    """Return the law with P(|η| > y) ≤ y^(−α)."""
    scale: Any = {"scale": law.scale / law.unit_scale(alpha)}
    return type(law)(**{**vars(law), **scale})


class Watched(NamedTuple):
    missed: NDArray[np.bool_]
    """Whether a certified set ever missed θ."""
    certified: float
    """The share of decisions with a certified set."""
    worst: float
    """The largest ‖θ̂ − θ‖/β of a certified set."""
    regret: Array


def watch(
    policy: SymmetricOFUL, law: noise.Noise, fresh: bool, size: tuple[int, int], seed: int = 1
) -> Watched:
    paths, horizon = size
    rng = np.random.default_rng([seed, 1])
    world = environments.neutral(law, arms=20, dim=5, fresh=fresh).start(
        paths, np.random.default_rng([seed, 2])
    )
    state = policy.init(paths, 20, 5)
    missed, regret = np.zeros(paths, dtype=bool), np.zeros(paths)
    certified = worst = 0.0
    for _ in range(horizon):
        chosen = policy.choose(state, world.arms, rng)
        location = world.locations[np.arange(paths), chosen]
        regret += world.best - location
        policy.learn(state, world.arms, chosen, (location + law.sample(rng, (paths,)))[:, None])
        world.advance()
        sure = policy.certified(state)
        missed |= sure & ~policy.covers(state, world.theta)
        worst = max(worst, float(np.max(np.where(sure, policy.position(state, world.theta), 0))))
        certified += float(sure.mean()) / horizon
    return Watched(missed, certified, worst, regret)


def forms(law: noise.Noise, horizon: int, delta: float = 0.01) -> dict[str, SymmetricOFUL]:
    mass = float(1 - 2 * law.cdf(-4.0))  # P(|η| ≤ τ/2), exactly
    return {
        "theorem": SymmetricOFUL(tau=8, radius="theorem", mass=mass, horizon=horizon, delta=delta),
        "observable": SymmetricOFUL(tau=8, radius="observable", delta=delta),
        "refined": SymmetricOFUL(tau=8, delta=delta),
        "refined, pilot": SymmetricOFUL(delta=delta),
        "refined, light ridge": SymmetricOFUL(tau=8, ridge=1, delta=delta),
    }


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("form", ["theorem", "observable", "refined", "refined, pilot"])
def test_certified_sets_cover(form: str, law: noise.Noise, fresh: bool) -> None:
    policy = forms(law, SHORT[1], delta=0.1)[form]
    found = watch(policy, law, fresh, SHORT)
    assert as_often_as_declared(int(found.missed.sum()), SHORT[0], policy.delta)
    assert found.certified > 0.9
    assert found.worst > 0.2  # a radius five times as small would be caught


@pytest.mark.slow
@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_no_certified_set_ever_misses(law: noise.Noise, fresh: bool) -> None:
    """Where all of 200 paths cover, the probability to miss is below 0.034 at level 0.999."""
    for name, policy in forms(law, LONG[1]).items():
        found = watch(policy, law, fresh, LONG, seed=2)
        assert not found.missed.any(), name
        assert name == "refined, light ridge" or found.certified > 0.9


@pytest.mark.parametrize("law", [noise.Normal(), noise.StudentT(0.5)], ids=repr)
def test_the_regret_of_theorem_2_stays_below_its_bound(law: noise.Noise) -> None:
    policy = forms(law, SHORT[1])["theorem"]
    found = watch(policy, law, True, SHORT)
    dim, (paths, horizon), mass = 5, SHORT, float(policy.mass or 0)
    ridge = theory.huber_ridge(dim=dim, horizon=horizon, delta=0.005, mass=mass)
    log_det = dim * math.log1p(mass * horizon / dim / ridge)
    radius = theory.huber_radius(log_det=log_det, tau=8, ridge=ridge, delta=0.005, mass=mass)
    switching = math.sqrt(9 / 8)
    bound = switching * 2 * radius * math.sqrt(2 * horizon * log_det / mass)
    assert as_often_as_declared(int((found.regret > bound).sum()), paths, 0.01)


def test_a_wrong_certificate_is_withdrawn() -> None:
    """Too little penalty, too small a τ, arms too long, or more pulls than were told."""
    good = forms(noise.Normal(), 50)["theorem"]
    rng = np.random.default_rng(0)

    def certified(policy: SymmetricOFUL, length: float = 1.0, pulls: int = 50) -> bool:
        state = policy.init(1, 2, 5)
        for _ in range(pulls):
            x = rng.standard_normal((1, 2, 5))
            x *= length / np.linalg.norm(x, axis=-1, keepdims=True)
            policy.learn(state, x, [0], rng.standard_normal((1, 1)))
        return bool(policy.certified(state)[0])

    settings: dict[str, Any] = {name: getattr(good, name) for name in good.__dataclass_fields__}
    assert certified(good)
    assert not certified(SymmetricOFUL(**settings | {"ridge": 1.0}))
    assert not certified(SymmetricOFUL(**settings | {"tau": 7.9}))
    assert not certified(good, length=1.1)
    assert not certified(good, pulls=70)
    assert not certified(SymmetricOFUL(radius="practical", tau=8))
    assert not certified(SymmetricOFUL(tau=1.0, norm_bound=1.0))


def test_whatever_says_covers_is_watched_here() -> None:
    found = {name for name in policies.__all__ if hasattr(getattr(policies, name), "covers")}
    assert found == {"OFUL", "SymmetricOFUL"}


@pytest.mark.parametrize("alpha", [0.5, 1, 3])
@pytest.mark.parametrize("law", [*LAWS, noise.Cauchy(3)], ids=repr)
def test_medians_leave_the_cut_no_more_often_than_declared(law: noise.Noise, alpha: float) -> None:
    if alpha > law.alpha:
        return
    horizon, delta = 10_000, 0.01
    constant = law.tail_constant(alpha)
    found = theory.median_pulls(horizon=horizon, delta=delta, alpha=alpha, tail_constant=constant)
    half, medians = (found.block + 1) / 2, math.ceil(horizon / found.block) - 1
    exits = medians * 2 * float(betainc(half, half, law.cdf(-found.cut)))
    assert exits <= delta * (1 + 1e-9)
    if isinstance(law, noise.SymmetricPareto) and alpha == law.alpha:
        assert exits == pytest.approx(delta)


@pytest.mark.parametrize("alpha", [0.5, 1, 3])
@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_clipped_medians_are_sub_gaussian_with_the_declared_scale(
    law: noise.Noise, alpha: float
) -> None:
    if alpha > law.alpha:
        return
    constant = law.tail_constant(alpha)
    found = theory.median_pulls(horizon=10_000, delta=0.01, alpha=alpha, tail_constant=constant)
    half = (found.block + 1) / 2
    u = np.linspace(0, 60, 60_001)  # the logit of Beta(m, m) has the density (F(1 − F))^m/B
    weight = np.exp(half * (log_expit(u) + log_expit(-u)))
    size = np.minimum(law.ppf(expit(np.minimum(u, 30))), found.cut)
    for s in np.geomspace(1e-2, 30, 40) / found.cut:
        mean = np.trapezoid(weight * np.cosh(s * size), u) / np.trapezoid(weight, u)
        assert math.log(mean) <= found.scale**2 * s**2 / 2 * (1 + 1e-6)


def test_the_schedule_spends_no_more_than_delta() -> None:
    law, total = noise.SymmetricPareto(1), 0.0
    for decision in range(1, 300):
        found = theory.median_schedule(decision=decision, delta=0.05, alpha=1, cut=4)
        half = (found.block + 1) / 2
        total += 2 * float(betainc(half, half, law.cdf(-4.0)))
    assert total <= 0.05


@pytest.mark.parametrize("alpha", [0.5, 1, 3])
def test_oful_behind_usable_pulls_covers(alpha: float) -> None:
    """A set misses with probability at most δ for the exits and δ for OFUL."""
    law = unit(noise.StudentT(alpha), alpha)
    horizon, paths, delta = 3000, 100, 0.05
    with pytest.warns(UserWarning, match="too short"):  # the bound is, the coverage is not
        filtered: Policy[Any] = Filtered.from_theory(
            OFUL(delta=delta), horizon=horizon, delta=delta, alpha=alpha
        )
    assert isinstance(filtered, Filtered)
    assert filtered.estimator == Median()
    policy: Any = filtered.policy
    rng = np.random.default_rng(5)
    world = environments.neutral(law, arms=10, dim=4).start(paths, np.random.default_rng(6))
    state = filtered.init(paths, 10, 4)
    missed = np.zeros(paths, dtype=bool)
    for _ in range(horizon // filtered.pulls):
        chosen = filtered.choose(state, world.arms, rng)
        location = world.locations[np.arange(paths), chosen][:, None]
        rewards = location + law.sample(rng, (paths, filtered.pulls))
        filtered.learn(state, world.arms, chosen, rewards)
        world.advance()
        missed |= ~policy.covers(state.inner, world.theta)
    assert as_often_as_declared(int(missed.sum()), paths, 2 * delta)
