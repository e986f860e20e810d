"""How often advice from records is right, and the regret of following it.

Run with ``make bench-calibrate``.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tailproof import (
    OFUL,
    UCB1,
    AutoFiltered,
    Capped,
    CappedMean,
    Filtered,
    LinStudentUCB,
    Mean,
    Median,
    Negated,
    OrderStatisticUCB,
    Policy,
    Quantile,
    calibrate,
    environments,
    noise,
    simulate,
)
from tailproof.stats.diagnostics import Rewards
from tailproof.stats.medians import NoiseQuantile, scale as scale_of
from tailproof.typing import Array

SEED, SAMPLES = 2026, 200
CONTAMINATED = noise.Mixture((noise.Normal(), noise.Normal(100)), (0.95, 0.05))


def sales(rng: np.random.Generator) -> Array:
    return np.where(rng.random(5000) < 0.95, 0, rng.exponential(size=5000))


DRAWS: dict[str, Callable[[np.random.Generator], Array]] = {
    "exponential, 95 % zeros": sales,
    "normal": lambda rng: rng.standard_normal(1000),
    "Laplace": lambda rng: rng.laplace(size=1000),
    "t3": lambda rng: rng.standard_t(3, 1000),
    "t1": lambda rng: rng.standard_t(1, 1000),
    "t1/2": lambda rng: rng.standard_t(0.5, 1000),
    "Pareto 1.3": lambda rng: rng.pareto(1.3, 1000),
}


def verdicts() -> None:
    """Print how often the advice is that a mean is reliable."""
    rng = np.random.default_rng(SEED)
    print(f"The mean is called reliable: share of {SAMPLES} samples")
    for name, draw in DRAWS.items():
        safe = [Rewards.of(10 * draw(rng)).mean_is_safe for _ in range(SAMPLES)]
        print(f"  {name:24s} {np.mean(safe):.3f}")


def filters(samples: int = SAMPLES) -> None:
    """Print how often the advice for 10⁵ rewards is a filter."""
    print(f"A filter is advised, 10^5 rewards: share of {samples} samples")
    for name, law in (("t1.8", noise.StudentT(1.8)), ("contaminated", CONTAMINATED)):
        rng = np.random.default_rng(SEED)
        advised = [calibrate(reward=law.sample(rng, (100_000,))).pulls > 1 for _ in range(samples)]
        print(f"  {name:24s} {np.mean(advised):.3f}")


def following() -> None:
    """Compare the advised tool with the others, for K arms and for vectors."""
    print("Regret after 10^4 pulls, 100 paths: advised tool, best tool, ratio")
    for name, law in (("t1.8", noise.StudentT(1.8)), ("contaminated", CONTAMINATED)):
        rewards = law.sample(np.random.default_rng(SEED), (100_000,))
        plain = calibrate(reward=rewards)
        told: dict[str, Any] = {"repeats": plain.pulls, "estimator": plain.estimator}
        tools: dict[str, Policy[Any]] = {
            "AutoFiltered": AutoFiltered(UCB1()),
            "LinStudentUCB": LinStudentUCB(),
            "OrderStatisticUCB": OrderStatisticUCB(),
            "calibrated": Filtered(UCB1(bonus=plain.scale), **told),
        }
        bandit = environments.k_armed(law, locations=(0, 0.25, 0.5, 0.75, 1))
        _compare(f"{name}, K = 5", plain.policy(), tools, bandit)
        tools = {
            "AutoFiltered": AutoFiltered(OFUL()),
            "LinStudentUCB": LinStudentUCB(),
            "calibrated": Filtered(OFUL(noise_scale=plain.scale), **told),
        }
        advised = calibrate(reward=rewards, dim=5).policy()
        for fresh in (True, False):
            words = "fresh" if fresh else "fixed"
            bandit = environments.neutral(law, arms=10, dim=5, fresh=fresh)
            _compare(f"{name}, d = 5, {words}", advised, tools, bandit)


def _compare(title: str, advised: Policy[Any], tools: dict[str, Policy[Any]], bandit: Any) -> None:
    if advised not in tools.values():
        tools = {"advised": advised, **tools}
    result = simulate(tools, bandit, horizon=10_000, paths=100, seed=SEED, checkpoints=1)
    regret = {name: float(result.mean(name)[-1]) for name in tools}
    own = next(regret[name] for name, tool in tools.items() if tool == advised)
    best = min(regret, key=lambda name: regret[name])
    print(f"  {title:28s} {own:7.0f} {regret[best]:7.0f} ({best}) {own / regret[best]:.2f}")


def aims() -> None:
    """Count the paths on which the advised tool finds the best arm for each aim."""
    print("Two skewed arms, 10^4 pulls: paths of 100 that settle on the best arm for the aim")
    rng, n = np.random.default_rng(SEED), 4000
    samples = [
        median * np.exp(np.sqrt(2 * np.log(mean / median)) * rng.standard_normal(n))
        for median, mean in ((10.2, 18.8), (13.1, 14.7))
    ]
    rewards, arms = np.concatenate(samples), np.repeat(["first", "second"], n)
    for aim in (Mean(), Median(), CappedMean(0.99), Quantile(0.9)):
        advice = calibrate(reward=rewards, arm=arms, aim=aim)
        bandit = environments.from_records(rewards, arms, aim=aim)
        half = simulate(
            {"": advice.policy()}, bandit, horizon=10_000, paths=100, seed=SEED, checkpoints=2
        )
        regret, gap = half.curves[""].regret, float(np.ptp(np.array(bandit.theta)))
        right = int(np.sum((regret[:, 1] - regret[:, 0]) / gap < 2500))
        lead = advice.leaders[aim.name]
        print(f"  {aim.name:20s} {lead.arm:8s} {'sure' if lead.sure else 'not sure':8s} {right}")


def quantiles() -> None:
    """Print how often the fastest server is chosen in the second half."""
    laws = tuple(noise.Pareto(1.2, scale=c) for c in (1.0, 1.5, 1.75, 2.0, 2.5))
    latency, paths = noise.PerArm(laws), 100
    print("Pareto latencies of index 1.2, five servers: share of the best in the second half")
    for repeats, decisions in ((59, 600), (99, 600), (1, 35_000)):
        if repeats == 1:
            policy: Policy[Any] = Negated(OrderStatisticUCB(quantile=0.05))
        else:
            bonus = scale_of(NoiseQuantile(laws[0], repeats, Quantile(0.95)), 1, 0.01)
            inner = Negated(UCB1(bonus=bonus))
            policy = Filtered(inner, repeats=repeats, estimator=Quantile(0.95))
        rng, arms = np.random.default_rng(SEED), np.broadcast_to(np.eye(5), (paths, 5, 5))
        state, best = policy.init(paths, 5, 5), []
        for _ in range(decisions):
            chosen = policy.choose(state, arms, rng)
            best.append(np.mean(chosen == 0))
            policy.learn(state, arms, chosen, latency.sample(rng, chosen, 0, repeats))
        name = type(policy).__name__
        print(f"  {name}, {repeats * decisions} pulls {np.mean(best[decisions // 2 :]):.3f}")


def caps() -> None:
    """Compare UCB1 with and without a cap on the rewards."""
    print("Pareto sales of index 1.1 and zeros, 2·10^4 pulls, 50 paths: capped-mean regret")
    for zeros in ((0.7, 0.8, 0.9), (0.9, 0.95, 0.97)):
        rng = np.random.default_rng(SEED)
        laws = [noise.ZeroInflated(noise.Pareto(1.1, scale=20), share) for share in zeros]
        rewards = np.concatenate([law.sample(rng, (20_000,)) for law in laws])
        bandit = environments.from_records(
            rewards, np.repeat(np.arange(3), 20_000), aim=CappedMean(0.99)
        )
        tools: dict[str, Policy[Any]] = {"plain": UCB1(), "capped": Capped(UCB1())}
        result = simulate(tools, bandit, horizon=20_000, paths=50, seed=SEED, checkpoints=1)
        plain, capped = (float(result.mean(name)[-1]) for name in tools)
        print(f"  zeros {zeros}: {plain:.0f} and {capped:.0f}, {plain / capped:.1f} times")


PARTS: tuple[Callable[[], None], ...] = (verdicts, filters, following, aims, quantiles, caps)

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for part in PARTS:
        part()
