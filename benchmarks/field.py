"""Algorithms of the field, each with the figure that it is known for, as tables for the docs.

Run ``python benchmarks/field.py [smoke|quick|full] [CLAIM …]``; quick takes about ten minutes on
one core, full an hour, which ``--workers 8`` divides among processes. `CLAIMS` has the names.
"Ratio" is regret over that of the rival, of means over the same paths, with its standard error.
"""

import argparse
import math
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from timing import one_core

one_core()

import numpy as np

from tailproof import (
    OFUL,
    UCB1,
    Filtered,
    LinStudentUCB,
    LinTS,
    OrderStatisticUCB,
    Policy,
    RobustUCB,
    Uniform,
    bestarm,
    environments,
    identify,
    noise,
    policies,
    simulate,
)
from tailproof.environments.arm_sets import GivenArms
from tailproof.environments.linear import Bandit, LinearBandit
from tailproof.policies.state.moment_bets import MomentClass
from tailproof.stats.designs import exploration_rates

Tools = Mapping[str, Policy[Any]]


class Size(NamedTuple):
    """Paths, the factor by which horizons are shortened, and the processes to use."""

    paths: int
    shorter: int
    workers: int = 1


SIZES = {"smoke": Size(3, 100), "quick": Size(20, 1), "full": Size(200, 1)}


def regrets(tools: Tools, bandit: Bandit, horizon: int, size: Size, **settings: Any) -> None:
    """Print the final regret of each tool, and its ratio to that of the first."""
    result = simulate(
        tools,
        bandit,
        horizon=max(horizon // size.shorter, 50),
        paths=size.paths,
        checkpoints=(max(horizon // size.shorter, 50),),
        seed=2026,
        engine="processes",
        workers=size.workers,
        **settings,
    )
    first: Any = None
    for name in tools:
        regret = result.curves[name].regret[:, -1]
        first = regret if first is None else first
        mean = regret.mean()
        error = (regret / mean - first / first.mean()).std(ddof=1) / math.sqrt(len(regret))
        ratio = f"{mean / first.mean():.2f} ± {error * mean / first.mean():.2f}"
        print(f"| {name} | {mean:.0f} | {regret.max():.0f} | {ratio} |", flush=True)


def header(text: str) -> None:
    """Print what is measured, and the head of its table."""
    print(f"\n{text}\n\n| | regret | worst path | ratio to the first |\n|---|---|---|---|")


def end_of_optimism(size: Size) -> None:
    """OSSB beats optimism where the optimum tells nothing; the bar is 0.5 of OFUL at T = 10⁵."""
    arms, theta = ((1.0, 0.0), (0.0, 1.0), (0.95, 0.1)), (1.0, 0.0)
    bandit = LinearBandit(contexts=GivenArms(arms), theta=theta, noise=noise.Normal())
    least = float(exploration_rates(np.array([arms]), np.array([theta]))[1][0])
    horizon = 10**5
    posterior = 1 / math.sqrt(9 * 2 * math.log(horizon * 100))
    header(
        f"Arms (1, 0), (0, 1), (0.95, 0.1), θ = (1, 0), normal noise, T = {horizon}; the lower "
        f"bound c ln T is {least * math.log(horizon):.0f}"
    )
    tools: Tools = {
        "OFUL": OFUL(),
        "LinTS, posterior": LinTS(bonus=posterior),
        "OSSB": policies.OSSB(),
        "EndOfOptimism": policies.EndOfOptimism(horizon=horizon),
        "EndOfOptimism, warm-up of 200": policies.EndOfOptimism(horizon=horizon, warmup=200),
    }
    regrets(tools, bandit, horizon, size)


def as_horizons_grow(size: Size) -> None:
    """Regret over ln T on the same arms, beside the least possible as T → ∞."""
    arms, theta = ((1.0, 0.0), (0.0, 1.0), (0.95, 0.1)), (1.0, 0.0)
    bandit = LinearBandit(contexts=GivenArms(arms), theta=theta, noise=noise.Normal())
    least = float(exploration_rates(np.array([arms]), np.array([theta]))[1][0])
    print(f"\nThe same arms: regret over ln T; consistent policies have ≥ {least:.1f} as T → ∞\n")
    print(f"| T | OFUL | LinTS, posterior | OSSB | EndOfOptimism, warm-up of 50 |\n|{'---|' * 5}")
    for horizon in (10**4, 10**5, 10**6):
        short, paths = max(horizon // size.shorter, 50), min(size.paths, 10**7 // horizon)
        tools: Tools = {
            "OFUL": OFUL(),
            "LinTS": LinTS(bonus=1 / math.sqrt(9 * 2 * math.log(horizon * 100))),
            "OSSB": policies.OSSB(),
            "EndOfOptimism": policies.EndOfOptimism(horizon=short, warmup=50),
        }
        found = simulate(
            tools,
            bandit,
            horizon=short,
            paths=paths,
            checkpoints=1,
            seed=2026,
            engine="processes",
            workers=size.workers,
        )
        ratios = [found.curves[name].regret[:, -1] / math.log(short) for name in tools]
        cells = [f"{r.mean():.1f} ± {r.std(ddof=1) / math.sqrt(paths):.1f}" for r in ratios]
        print(f"| {short} | {' | '.join(cells)} |", flush=True)


def abe_long(size: Size) -> None:
    """The regret of Abe and Long grows as T^{3/4}: ten times the pulls, 5.6 times the regret."""
    for arms, dim in ((20, 10), (3, 3)):
        print(
            f"\nAbe and Long, neutral environment, K = {arms}, d = {dim}, normal noise: T^{{3/4}}\n"
        )
        print("| T | regret | over chance | slope since the last |\n|---|---|---|---|")
        bandit, before = environments.neutral(noise.Normal(), arms=arms, dim=dim), math.nan
        for horizon in (10**3, 10**4, 10**5, 10**6):
            short, paths = max(horizon // size.shorter, 50), min(size.paths, 10**7 // horizon)
            tools: Tools = {"": policies.AbeLong(horizon=short, unit=2.0), "chance": Uniform()}
            found = simulate(tools, bandit, horizon=short, paths=paths, checkpoints=1, seed=2026)
            regret, chance = (float(found.curves[name].regret[:, -1].mean()) for name in tools)
            slope = math.log10(regret / before)
            print(f"| {short} | {regret:.0f} | {regret / chance:.2f} | {slope:.2f} |", flush=True)
            before = regret


def minimax(size: Size) -> None:
    """Robust MOSS and MR-APE lose the logarithm of RobustUCB; KL_inf-UCB is optimal as T → ∞."""
    law, locations, horizon = noise.StudentT(2.5), (0.0, 0.0, 0.5, 0.0, 0.0), 10**4
    moment = 5.0 + 0.25  # E t² = 5, and the location
    header(
        "Five arms, one ½ ahead, Student-t noise with df = 2.5, T = 10⁴, ε = 1; no policy that is "
        f"consistent for this moment has less than {_least(law, 1.0, moment):.1f} ln T as T → ∞"
    )
    tools: Tools = {
        "RobustUCB, truncated": RobustUCB(estimator="truncated", moment_bound=moment),
        "RobustUCB, median of means": RobustUCB(moment_bound=moment),
        "RobustMOSS": policies.RobustMOSS(horizon=horizon, moment_bound=moment),
        "KLInfUCB": policies.KLInfUCB(moment_bound=moment),
        'KLInfUCB(threshold="plain")': policies.KLInfUCB(moment_bound=moment, threshold="plain"),
        "APE2": policies.APE2(),
        "MR-APE": policies.APE2(perturbation="bounded", horizon=horizon),
        "MR-UCB": policies.APE2(perturbation="none", horizon=horizon),
        "UCB1, which needs sub-Gaussian noise": UCB1(),
        "LinStudentUCB": LinStudentUCB(),
    }
    regrets(tools, environments.k_armed(law, locations=locations), horizon, size)
    law, moment = noise.StudentT(1.6), 13.0  # E|t|^1.5 = 12.17, and the location
    header(
        "The same with df = 1.6, ε = ½: infinite variance, at least "
        f"{_least(law, 0.5, moment):.1f} ln T"
    )
    tools = {
        "RobustUCB, truncated": RobustUCB(estimator="truncated", epsilon=0.5, moment_bound=moment),
        "RobustMOSS": policies.RobustMOSS(horizon=horizon, epsilon=0.5, moment_bound=moment),
        "KLInfUCB": policies.KLInfUCB(epsilon=0.5, moment_bound=moment),
        "APE2": policies.APE2(epsilon=0.5),
        "MR-APE": policies.APE2(epsilon=0.5, perturbation="bounded", horizon=horizon),
        "UCB1": UCB1(),
        "LinStudentUCB": LinStudentUCB(),
    }
    regrets(tools, environments.k_armed(law, locations=locations), horizon, size)


def _least(law: noise.Noise, epsilon: float, moment: float) -> float:
    """Return Σ Δ/KL_inf of four arms at 0 beside one at ½, for laws with this moment bound."""
    known, unit, count = MomentClass(1 + epsilon), moment ** (1 / (1 + epsilon)), 20_000
    logs = known.growth(law.ppf((np.arange(count) + 0.5) / count) / unit).mean(axis=0)
    one = np.ones((1, 1), dtype=np.int64)
    return 4 * 0.5 / float(known.evidence(logs[None, None], one, np.array([[0.5 / unit]]))[0, 0])


def stable(size: Size) -> None:
    """Thompson sampling that knows the stable law beats policies that know only a moment."""
    for index, moment in ((1.3, 13.0), (1.8, 4.0)):  # E|η|^{1+ε} = 11.4 and 3.3
        law = noise.Stable(index)
        header(f"Five arms, one ½ ahead, stable noise with α = {index}, T = 10⁴")
        epsilon = (index - 1) * 0.8
        tools: Tools = {
            "RobustUCB, truncated": RobustUCB(
                estimator="truncated", epsilon=epsilon, moment_bound=moment
            ),
            "StableTS": policies.StableTS(index=index),
            "StableTS, told α = 1": policies.StableTS(index=1.0),
            "OrderStatisticUCB": OrderStatisticUCB(),
            "LinStudentUCB": LinStudentUCB(),
        }
        bandit = environments.k_armed(law, locations=(0.0, 0.0, 0.5, 0.0, 0.0))
        regrets(tools, bandit, 10**4, size)


def huber(size: Size) -> None:
    """Huber regression without a bonus, where contexts vary: beside those with one."""
    for df, moment in ((2.5, 5.0), (1.6, 12.17)):
        epsilon = 1.0 if df > 2 else 0.5
        header(f"Neutral environment, d = 10, K = 20, Student-t with df = {df}, T = 10⁴")
        tools: Tools = {
            "OFUL, bonus 0.3": OFUL(bonus=0.3),
            "HuberBandit": policies.HuberBandit(epsilon=epsilon, moment_bound=moment),
            "HuberBandit, greedy": policies.HuberBandit(
                epsilon=epsilon, moment_bound=moment, explore=0
            ),
            "LinStudentUCB": LinStudentUCB(),
        }
        regrets(tools, environments.neutral(noise.StudentT(df)), 10**4, size)


def alba(size: Size) -> None:
    """One near rival and d − 2 far ones: ALBA's pulls grow more slowly than those of others."""
    paths = min(size.paths, 20)
    print("\nBest arm, arms e_1 … e_d, gaps 0.3 and then 1.4, δ = 0.05, normal noise: mean pulls\n")
    tools: Tools = {
        "ALBA": bestarm.ALBA(),
        "GAllocation": bestarm.GAllocation(),
        "RAGE": bestarm.RAGE(),
        "LinGapE": bestarm.LinGapE(),
    }
    print(f"| d | {' | '.join(tools)} |\n|---|{'---|' * len(tools)}")
    for d in (4, 8, 16) if size.shorter == 1 else (3,):
        theta = (0.9, 0.6, *(d - 2) * (-0.5,))
        bandit = LinearBandit(contexts=GivenArms(np.eye(d)), theta=theta, noise=noise.Normal())
        found = identify(tools, bandit, paths=paths, max_pulls=300_000, delta=0.05, seed=2026)
        pulls = [f"{found.verdicts[name].pulls.mean():.0f}" for name in tools]
        print(f"| {d} | {' | '.join(pulls)} |", flush=True)
        assert all(found.errors(name) == 0 for name in tools)


def heavy_best_arm(size: Size) -> None:
    """The pulls of HeavyTrackAndStop over the least possible, as δ falls."""
    law, moment = noise.StudentT(2.5), 6.0
    locations = (0.0, 1.0, -0.5)
    least = _characteristic_time(law, locations, moment)
    bandit = environments.k_armed(law, locations=locations)
    print(
        f"\nBest of three arms at {locations}, Student-t with df = 2.5, E X² ≤ {moment}. The lower "
        f"bound is {least:.0f} ln(1/(2.4 δ)) pulls\n"
    )
    print("| δ | mean pulls | lower bound | ratio | wrong |\n|---|---|---|---|---|")
    for delta in (1e-1, 1e-2, 1e-4, 1e-8) if size.shorter == 1 else (0.5,):
        tool = bestarm.HeavyTrackAndStop(delta=delta, moment_bound=moment)
        found = identify(
            {"": tool}, bandit, paths=min(size.paths, 100), max_pulls=30_000, seed=2026
        )
        pulls, bound = found.verdicts[""].pulls.mean(), least * math.log(1 / (2.4 * delta))
        row = (f"{delta:g}", f"{pulls:.0f}", f"{bound:.0f}", f"{pulls / bound:.2f}")
        wrong = f"{found.errors('')} of {found.settings['paths']}"
        print(f"| {' | '.join(row)} | {wrong} |", flush=True)


def _characteristic_time(law: noise.Noise, locations: tuple[float, ...], moment: float) -> float:
    """Return T* = 1/max_w min_b inf_x w_â KL⁻(x) + w_b KL⁺(x), over shares w on a grid."""
    known, unit, count = MomentClass(2.0), math.sqrt(moment), 20_000
    levels = (np.arange(count) + 0.5) / count
    logs, losses = [], []
    for place in locations:
        y = (law.ppf(levels) + place) / unit
        logs.append(known.growth(y).mean(axis=0))
        losses.append(known.growth(-y).mean(axis=0))
    best = int(np.argmax(locations))
    x = np.linspace(-0.9, 0.9, 1801)[:, None]
    ones = np.ones_like(x, dtype=np.int64)
    own = known.evidence(np.broadcast_to(losses[best], (len(x), 1, *losses[best].shape)), ones, -x)
    rest = {
        b: known.evidence(np.broadcast_to(logs[b], (len(x), 1, *logs[b].shape)), ones, x)
        for b in range(len(locations))
        if b != best
    }
    top = 0.0
    for w in np.linspace(0.05, 0.95, 181):
        for v in np.linspace(0.01, 0.99, 197):
            shares = dict(zip(rest, ((1 - w) * v, (1 - w) * (1 - v)), strict=True))
            worst = min(float((w * own + shares[b] * rest[b]).min()) for b in rest)
            top = max(top, worst)
    return 1 / top


def unusable(size: Size) -> None:
    """Where tools with a proof cannot be used: regret over that of a random arm, T = 10⁴."""
    short = max(10**4 // size.shorter, 50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the horizon is too short for the bound
        print("\nFiltered.from_theory(OFUL()), neutral environment, regret over chance\n")
        print("| noise | no offset | offset 10⁶ |\n|---|---|---|")
        for df in (3.0, 1.0, 0.5):
            law = noise.StudentT(df)
            law = law.scaled(1 / law.unit_scale())
            tool = Filtered.from_theory(OFUL(), horizon=10**4, delta=0.01, alpha=df)
            cells = []
            for offset in (0.0, 1e6):
                bandit = environments.neutral(law, offset=offset)
                pair: Tools = {"": tool, "chance": Uniform()}
                found = simulate(
                    pair, bandit, horizon=short, paths=size.paths, checkpoints=1, seed=2026
                )
                ours, chance = (found.curves[name].regret[:, -1].mean() for name in pair)
                cells.append(f"{ours / chance:.0%}")
            print(f"| Student-t, df = {df:g} | {' | '.join(cells)} |", flush=True)
    modes = noise.Mixture((noise.TwoPoint(1.0, -1.0, 0.5), noise.Cauchy(3.0)), (0.9, 0.1))
    laws = noise.PerArm((noise.Cauchy(0.5), *[modes] * 4))
    bandit = environments.k_armed(laws, locations=(0.5, 0.0, 0.0, 0.0, 0.0))
    tools: Tools = {"OrderStatisticUCB": OrderStatisticUCB(), "LinStudentUCB": LinStudentUCB()}
    found = simulate(
        tools, bandit, horizon=short, paths=max(size.paths, 50), checkpoints=2, seed=2026
    )
    print("\nBest arm ½ + Cauchy(0.5); the others ±1, and Cauchy(3) in a tenth of the rewards\n")
    print("| | regret over chance | paths that lose half of what can be lost |\n|---|---|---|")
    for name in tools:
        half, end = found.curves[name].regret.T[-2:]
        lost = int((end - half > 0.5 * 0.5 * short / 2).sum())
        share = end.mean() / (0.8 * 0.5 * short)
        print(f"| {name} | {share:.0%} | {lost} of {len(end)} |", flush=True)


def rmm(size: Size) -> None:
    """RMM-UCB with 50 arms ends: 20 paths of 10⁴ pulls, in seconds of one core."""
    bandit = environments.k_armed(noise.StudentT(2.5), locations=(0.5, *[0.0] * 49))
    horizon, begin = 10**4 // size.shorter, time.process_time()
    simulate({"": policies.RMMUCB()}, bandit, horizon=horizon, paths=20, checkpoints=1)
    took = time.process_time() - begin
    print(f"\nRMMUCB, K = 50, 20 paths of {horizon} pulls: {took:.0f} s of one core")


CLAIMS: dict[str, Callable[[Size], None]] = {
    "end-of-optimism": end_of_optimism,
    "as-horizons-grow": as_horizons_grow,
    "abe-long": abe_long,
    "minimax": minimax,
    "stable": stable,
    "huber": huber,
    "alba": alba,
    "heavy-best-arm": heavy_best_arm,
    "rmm": rmm,
    "unusable": unusable,
}


def main() -> None:
    """Measure the claims that are named, all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", help=f"{', '.join(SIZES)}; {', '.join(CLAIMS)}")
    parser.add_argument("--workers", type=int, default=1, help="processes, at most one a policy")
    given = parser.parse_intermixed_args()
    sizes = [name for name in given.what if name in SIZES] or ["quick"]
    claims = [name for name in given.what if name not in SIZES] or list(CLAIMS)
    for name in claims:
        CLAIMS[name](SIZES[sizes[-1]]._replace(workers=given.workers))


if __name__ == "__main__":
    main()
