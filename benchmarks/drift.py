"""Worlds that move: regret beside peers and restarts by an oracle, false restarts, and cost.

Run with ``make bench-drift``; ``--only`` runs a part. The problems are those of `gauntlet.moving`.
Regret is in per cent of that of random arms. Peers have the best of several bonuses, for each
problem in hindsight, and their memory follows Garivier and Moulines 2011: γ = 1 − 1/(4√n) and
τ = 4√(n ln n) for n decisions.
"""

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

from timing import one_core, show, start_table

one_core()

import numpy as np
from scipy.stats import beta

from tailproof import (
    UCB1,
    AutoFiltered,
    DiscountedUCB,
    FixedArm,
    LinRevenueUCB,
    LinStudentUCB,
    Policy,
    Renewed,
    RevenueUCB,
    SlidingWindowUCB,
    Uniform,
    Vigilant,
    environments,
    guests,
    noise,
    simulate,
)
from tailproof.research.gauntlet import SEEDS, problems
from tailproof.research.gauntlet.moving import MovingProblem
from tailproof.typing import Array

BONUSES = (0.1, 0.3, 1.0, 3.0)
TOOLS = ["alone", "Vigilant", "Renewed, 2000", "both"]
LEVEL = 0.01
TIED_LEVEL, TIED_DECISIONS = 0.1, 3000
"""Where rewards tie, the level is not proved: a large one shows sooner by how much it is missed."""
LAWS: dict[str, noise.Noise] = {
    "normal": noise.Normal(),
    "Cauchy": noise.Cauchy(),
    "t½": noise.StudentT(0.5),
    "coin": noise.Rademacher(),
    "97 % zeros": noise.ZeroInflated(noise.Pareto(1.1), 0.97),
    "log-normal": noise.LogNormal(1.5),
    "Pareto 1.2": noise.Pareto(1.2),
    "contaminated": noise.Mixture((noise.Normal(), noise.Normal(100)), (0.95, 0.05)),
}


def our_tools(problem: MovingProblem) -> dict[str, Policy[Any]]:
    """Return the policy that suits a problem, alone and with each wrapper."""
    own = problem.suited
    return {
        "alone": own,
        "Vigilant": Vigilant(own, level=LEVEL),
        "Renewed, 2000": Renewed(own, memory=2000),
        "both": Vigilant(Renewed(own, memory=4000), level=LEVEL),
    }


def peers(n: int) -> dict[str, dict[str, Policy[Any]]]:
    """Return peers for n decisions on K arms, each with several bonuses."""
    found: dict[str, dict[str, Policy[Any]]] = {}
    makers: dict[str, Callable[[int, float], Policy[Any]]] = {
        "D-UCB": lambda n, b: DiscountedUCB(gamma=1 - 1 / (4 * math.sqrt(n)), bonus=b),
        "SW-UCB": lambda n, b: SlidingWindowUCB(
            window=int(4 * math.sqrt(n * math.log(n))), bonus=b
        ),
    }
    for name, make in makers.items():
        found[name] = {f"{name} {b}": make(n, b) for b in BONUSES}
        filtered = {f"filtered {name} {b}": make(n // 5, b) for b in BONUSES}
        found[f"filtered {name}"] = {
            label: AutoFiltered(policy, repeats=5) for label, policy in filtered.items()
        }
    return found


def guest_peers(n: int) -> dict[str, dict[str, Policy[Any]]]:
    """Return bandits of other libraries that forget."""
    from bayesianbandits import (
        ExponentialForgetting,
        NormalInverseGammaRegressor,
        ThompsonSampling,
    )
    from river import bandit, stats

    keep = 1 - 1 / (4 * math.sqrt(n))
    agent = guests.bayesianbandits(
        ThompsonSampling(), NormalInverseGammaRegressor(forgetting=ExponentialForgetting(keep))
    )
    forgetful = bandit.UCB(delta=1, reward_obj=stats.EWMean(1 - keep))
    return {
        "bayesianbandits": {"bayesianbandits": agent},
        "River": {"River": guests.river(forgetful)},
    }


def compare(
    which: str, paths: int, names: list[str], tools: list[str], others: bool, few: int
) -> None:
    """Print the regret of our tools and of peers in every problem.

    Bandits of other libraries take about a hundred times as long, and have `few` paths.
    """
    ratios: dict[str, list[float]] = {"oracle": [], "peer": [], "price": []}
    columns = (*tools, "oracle", "best peer", "its name")
    title = f"Regret in % of random arms, {which}, {paths} paths"
    table = start_table(title, "what", *columns)
    for problem in problems(which):
        assert isinstance(problem, MovingProblem)
        if names and problem.name not in names:
            continue
        mine, told = our_tools(problem), problem.oracle_forms()
        mine = {name: mine[name] for name in tools}
        groups = peers(problem.horizon) if problem.k_armed and others else {}
        seed = SEEDS["tuning" if which == "moving-tuning" else "report"]
        settings: dict[str, Any] = {
            "horizon": problem.horizon,
            "seed": seed,
            "checkpoints": 1,
        }
        policies: dict[str, Policy[Any]] = {"chance": Uniform(), **mine, **told}
        policies |= {name: policy for group in groups.values() for name, policy in group.items()}
        result = simulate(policies, problem.environment, paths=paths, **settings)
        found = {name: float(result.mean(name)[-1]) for name in policies}
        if groups and few and problem.horizon <= 10_000:
            more = guest_peers(problem.horizon)
            guest: dict[str, Policy[Any]] = {"chance": Uniform()}
            guest |= {name: policy for group in more.values() for name, policy in group.items()}
            result = simulate(guest, problem.environment, paths=few, **settings)
            share = found["chance"] / float(result.mean("chance")[-1])
            found |= {
                name: share * float(result.mean(name)[-1]) for name in guest if name != "chance"
            }
            groups |= more
        percent = {name: 100 * value / found["chance"] for name, value in found.items()}
        oracle = min(percent[name] for name in told)
        best = {name: min(percent[own] for own in group) for name, group in groups.items()}
        peer = min(best, key=lambda name: best[name]) if best else ""
        cells = [f"{percent[name]:.2f}" for name in mine] + [f"{oracle:.2f}"]
        cells += [f"{best[peer]:.1f}" if best else "–", peer]
        print(
            problem.name,
            *cells,
            {name: round(value, 1) for name, value in best.items()},
            flush=True,
        )
        table.add_row(problem.name, *cells)
        if "Vigilant" not in tools:
            continue
        if problem.environment.motion is None:
            ratios["price"] += [percent["Vigilant"] / percent["alone"]] if "alone" in tools else []
        else:
            ratios["oracle"].append(percent["Vigilant"] / oracle)
            if best:
                ratios["peer"].append(percent["Vigilant"] / best[peer])
    show(table)
    table = start_table("Vigilant relative to", "what", "median", "worst")
    words = {
        "oracle": "restarts by an oracle, where θ moves",
        "peer": "the best peer of each problem, where θ moves",
        "price": "the same policy alone, where nothing moves",
    }
    for name, own in ratios.items():
        if own:
            table.add_row(words[name], f"{np.median(own):.2f}", f"{max(own):.2f}")
    show(table)


def alarms(paths: int, decisions: int) -> None:
    """Print how many paths are restarted though nothing changes, with an exact 99 % interval."""
    title = f"Paths restarted in {decisions} decisions where nothing changes, level {LEVEL}"
    table = start_table(title, "what", "paths", "restarted", "99 % interval")
    from tailproof.research.gauntlet import money, moving

    watched: list[tuple[str, Policy[Any], environments.Bandit, int, int]] = []
    for name, law in LAWS.items():
        bandit = environments.k_armed(law, locations=(0, 0, 0.2, 0.5))
        watched.append((f"UCB1, K = 4, {name}", UCB1(), bandit, paths, decisions))
    shop, banners = moving.REPORT["shop-still"], money.REPORT["money-banners"]
    watched.append(("RevenueUCB, four arms", RevenueUCB(), shop.environment, paths, decisions))
    few, fewer = paths // 5, decisions // 5
    watched.append(("LinRevenueUCB, banners", LinRevenueUCB(), banners.environment, few, fewer))
    for name, law in LAWS.items():
        bandit = environments.neutral(law, arms=10, dim=4)
        watched.append((f"LinStudentUCB, new arms, {name}", LinStudentUCB(), bandit, few, fewer))
    for label, policy, world, count, length in watched:
        restarted = _restarted(Vigilant(policy, level=LEVEL), world, count, length)
        _report(table, f"{label}, {length} decisions", int((restarted > 0).sum()), count)
    for buyers in (0.003, 0.01, 0.03, 0.1, 0.3):
        label = f"one arm, {buyers:.1%} buy, {TIED_DECISIONS} decisions, level {TIED_LEVEL}"
        _report(table, label, _restarted_by_ties(buyers, 6 * paths), 6 * paths)
    show(table)


def _restarted(
    policy: Policy[Any], bandit: environments.Bandit, paths: int, decisions: int
) -> Array:
    """Return how often every path was restarted."""
    rng = np.random.default_rng([19, paths])
    world, rows = bandit.start(paths, rng), np.arange(paths)
    state = policy.init(paths, bandit.contexts.arms, bandit.contexts.dim)
    for done in range(decisions):
        chosen = policy.choose(state, world.arms, rng)
        law = world.noise
        if isinstance(law, noise.Noise):
            eta = law.sample(rng, (paths, 1))
        else:
            eta = law.sample(rng, chosen, done, 1)
        policy.learn(state, world.arms, chosen, world.locations[rows, chosen, None] + eta)
        world.advance()
    restarts: Array = state.restarts
    return restarts


def _restarted_by_ties(buyers: float, paths: int) -> int:
    """Return how many paths were restarted whose rewards are zero, or one price."""
    rng, arms = np.random.default_rng([20, round(1000 * buyers)]), np.ones((paths, 1, 1))
    policy = Vigilant(FixedArm(arm=0), level=TIED_LEVEL)
    state, chosen = policy.init(paths, 1, 1), np.zeros(paths, dtype=np.int64)
    for _ in range(TIED_DECISIONS):
        policy.learn(state, arms, chosen, 20.0 * (rng.random((paths, 1)) < buyers))
    return int(np.count_nonzero(state.restarts))


def _report(table: Any, label: str, count: int, paths: int) -> None:
    low = beta.ppf(0.005, count, paths - count + 1) if count else 0.0
    high = beta.ppf(0.995, count + 1, paths - count) if count < paths else 1.0
    print(label, paths, count, f"{low:.4f} – {high:.4f}", flush=True)
    table.add_row(label, str(paths), str(count), f"{low:.4f} – {high:.4f}")


def cost() -> None:
    """Print the time of a decision, and what the wrappers add."""
    table = start_table(
        "CPU time of a decision, µs, 20 arms, d = 10", "what", "live", "batch of 500"
    )
    own = LinStudentUCB()
    tools: dict[str, Policy[Any]] = {
        "LinStudentUCB": own,
        "Vigilant": Vigilant(own),
        "Renewed": Renewed(own, memory=2000),
    }
    for name, policy in tools.items():
        cells = []
        for paths, decisions in ((1, 2000), (500, 1000)):
            rng = np.random.default_rng(0)
            state = policy.init(paths, 20, 10)
            arms = rng.standard_normal((paths, 20, 10))
            rewards, spent = rng.standard_cauchy((decisions, paths, 1)), 0.0
            for reward in rewards:
                start = time.process_time()
                chosen = policy.choose(state, arms, rng)
                policy.learn(state, arms, chosen, reward)
                spent += time.process_time() - start
            cells.append(f"{1e6 * spent / decisions / paths:.1f}")
        table.add_row(name, *cells)
    show(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", choices=["moving", "moving-tuning"], default="moving")
    parser.add_argument("--names", nargs="*", default=[], help="of problems, by default all")
    parser.add_argument("--paths", type=int, default=100)
    parser.add_argument("--decisions", type=int, default=100_000, help="of the false restarts")
    parser.add_argument("--tools", nargs="*", choices=TOOLS, default=TOOLS)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--guests", type=int, default=8, help="paths of other libraries")
    parser.add_argument("--only", choices=["regret", "alarms", "cost"])
    given = parser.parse_args()
    if given.only in (None, "cost"):
        cost()
    if given.only in (None, "regret"):
        others = not given.no_peers
        compare(given.problems, given.paths, given.names, given.tools, others, given.guests)
    if given.only in (None, "alarms"):
        alarms(5 * given.paths, given.decisions)
