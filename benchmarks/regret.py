"""The recommended tools against their targets: regret, ratios to an oracle, units and cost.

Run with ``make bench-regret``. Problems, oracle and most targets are those of
`tailproof.research.gauntlet`; ``make gauntlet`` prints the targets over all of its problems.
"""

import time
from dataclasses import replace
from typing import Any

from timing import one_core, show, start_table

one_core()

import numpy as np

from tailproof import (
    OFUL,
    UCB1,
    Filtered,
    LinStudentUCB,
    Policy,
    ThompsonSampling,
    Uniform,
    gauntlet,
    noise,
    simulate,
)
from tailproof.environments.linear import neutral
from tailproof.research.gauntlet import PROBLEMS, RECOMMENDED, Problem, Score, Target

LINEAR = "LinStudentUCB"
DFS, SCALES = (3, 1.02, 1, 0.5), (1, 10, 0.1)
UNITS = [name for name in PROBLEMS if name.startswith("units-")]
FREE_OF_UNITS = 1e-6
"""Regrets whose relative difference is smaller are equal up to rounding."""


def run(tools: dict[str, Policy[Any]], problems: Any) -> Score:
    return gauntlet.run(tools, problems=problems, size="full", workers=2)


def recorded() -> dict[str, Any]:
    """Return records of rewards from the problem "k3-offset-10"."""
    rng = np.random.default_rng(3)
    arms = np.repeat(["a", "b", "c"], 1000)
    rewards = np.repeat([10, 10.5, 11], 1000) + rng.standard_cauchy(3000)
    return {"rewards": rewards, "arms": arms}


def oracle_problems() -> list[tuple[Problem, Target]]:
    """Return problems with Student-t noise of many scales, and the target for each."""
    found = []
    for fresh in (True, False):
        for df in DFS:
            for scale in SCALES:
                law, arms = noise.StudentT(df, scale), "fresh" if fresh else "fixed"
                bandit = neutral(law, fresh=fresh)
                name = f"{arms} t({df}) × {scale}"
                problem = Problem(name=name, environment=bandit, horizon=10_000)
                most = 1.5 if df == 0.5 else 1.25
                if scale == 0.1 and not fresh:
                    most = float("inf") if df == 0.5 else 2.5
                found.append((problem, Target(name, LINEAR, "over_oracle", most)))
    return found


def targets() -> None:
    """Print every target of a single problem."""
    table = start_table(
        "Targets, 100 paths", *("what", "tool", "found", "± s.e. of the regret", "target")
    )
    tools = {target.tool: RECOMMENDED[target.tool] for target in gauntlet.TARGETS}
    names = {target.problem for target in gauntlet.TARGETS} & PROBLEMS.keys()
    found = [(run(tools, sorted(names)), gauntlet.TARGETS)]
    calibrated = Filtered.calibrated(OFUL(), **recorded())
    target = Target("k3-offset-10", "Filtered.calibrated(OFUL)", "regret", 250)
    found.append((run({target.tool: calibrated}, [target.problem]), (target,)))
    arms = next(target.tool for target in gauntlet.TARGETS if target.problem == "k5-t1")
    score = run({arms: RECOMMENDED[arms], "UCB1": UCB1()}, ["k3-bernoulli"])
    most = 2 * score.regret["k3-bernoulli"]["UCB1"][:, 1].mean()
    found.append((score, (Target("k3-bernoulli", arms, "regret", round(float(most), 1)),)))
    cases = oracle_problems()
    score = run({LINEAR: RECOMMENDED[LINEAR]}, [problem for problem, _ in cases])
    found.append((score, tuple(target for _, target in cases)))
    for score, own in found:
        for checked in gauntlet.check_targets(score, own):
            target, value = checked.target, f"{checked.value:.3g}"
            regret = score.regret[target.problem][target.tool][:, 1]
            error = f"{regret.std(ddof=1) / np.sqrt(len(regret)):.2g}"
            limit = "none" if target.at_most == float("inf") else f"≤ {target.at_most:g}"
            word = "" if checked.passed else " missed"
            table.add_row(target.text, target.tool, value, error, limit + word)
    show(table)


def units() -> None:
    """Print how much a unit or an offset changes the regret of the tools for contexts."""
    tools = {name: RECOMMENDED[name] for name in (LINEAR, "AutoFiltered(OFUL)")}
    table = start_table("Change of regret / c by units and offsets", "what", *tools, "target")
    score = run(tools, UNITS)
    for name in UNITS[1:]:
        gaps = []
        for tool in tools:
            plain, other = (score.regret[which][tool][:, 1] for which in (UNITS[0], name))
            gaps.append(float(np.abs(other - plain).max() / plain.mean()))
        word = "" if max(gaps) <= FREE_OF_UNITS else " missed"
        table.add_row(name, *(f"{gap:.1g}" for gap in gaps), f"≤ {FREE_OF_UNITS:g}{word}")
    show(table)


def cost() -> None:
    """Print the time of a decision and the size of a state, at d = 10 with 20 arms."""
    table = start_table("Cost of LinStudentUCB", "what", "found", "target")
    policy, problem = RECOMMENDED[LINEAR], PROBLEMS["fresh-t1"]
    sizes = {}
    for paths, decisions, most in ((1, 5000, 200.0), (500, 2000, 9.0)):
        rng = np.random.default_rng(0)
        world, state = problem.bandit.start(paths, rng), policy.init(paths, 20, 10)
        spent = 0.0
        for done in range(1, decisions + 1):
            rewards = rng.standard_cauchy((paths, 1))
            start = time.process_time()
            chosen = policy.choose(state, world.arms, rng)
            rewards += world.locations[np.arange(paths), chosen][:, None]
            policy.learn(state, world.arms, chosen, rewards)
            spent += time.process_time() - start
            if done in (1000, decisions):
                arrays = state.to_arrays().values()
                sizes[done] = sum(array.nbytes for array in arrays) / paths / 1000
            world.advance()
        each = 1e6 * spent / decisions / paths
        word = "" if each <= most else " missed"
        what = "µs per decision, live" if paths == 1 else "µs per decision, batch of 500"
        table.add_row(what, f"{each:.1f}", f"≤ {most:g}{word}")
    for done, size in sorted(sizes.items()):
        table.add_row(
            f"kB of state after {done} decisions",
            f"{size:.1f}",
            "≤ 100" + ("" if size <= 100 else " missed"),
        )
    show(table)


def coverage() -> None:
    """Print how often the locations of all arms lie within two predicted deviations."""
    policy, paths, seen = LinStudentUCB(), 100, (100, 1000, 3000)
    table = start_table(
        "Arms within two deviations that LinStudentUCB predicts, per cent, by decisions",
        *("problem", *map(str, seen)),
    )
    for name in ("fresh-normal", "fresh-t1", "fresh-t-half", "fixed-quiet-normal", "fixed-t1"):
        bandit, rng = PROBLEMS[name].bandit, np.random.default_rng(5)
        world, state = bandit.start(paths, rng), policy.init(paths, 20, 10)
        law = world.noise
        shares = []
        for done in range(1, seen[-1] + 1):
            chosen = policy.choose(state, world.arms, rng)
            location = world.locations[np.arange(paths), chosen][:, None]
            policy.learn(state, world.arms, chosen, location + law.sample(rng, (paths, 1)))
            if done in seen:
                mean, deviation = policy.predict(state, world.arms)
                inside = np.abs(mean - world.locations) <= 2 * deviation
                shares.append(f"{100 * inside.mean():.1f}")
            world.advance()
        table.add_row(name, *shares)
    show(table)


def stuck() -> None:
    """Print regret and stuck paths in k20-t1, beside policies that are told the scale.

    These play under normal noise of the same Fisher information, with several bonuses. The seed is
    not that of the report.
    """
    problem, scale = PROBLEMS["k20-t1"], float(np.sqrt(2))
    arms, length = problem.environment, float(np.linalg.norm(np.linspace(0, 2, 20)))
    told: dict[str, Policy[Any]] = {
        "Thompson sampling": ThompsonSampling(noise_scale=scale, prior_scale=1000)
    }
    for bonus in (0.3, 0.5, 0.7, 1.0):
        told[f"UCB1, {bonus}"] = UCB1(bonus=bonus * scale)
    for bonus in (0.1, 0.2, 0.3):
        told[f"OFUL, {bonus}"] = OFUL(noise_scale=scale, norm_bound=length, bonus=bonus)
    plays: list[tuple[dict[str, Policy[Any]], Any]] = [
        ({LINEAR: LinStudentUCB()}, arms),
        (told, replace(arms, noise=noise.Normal(scale))),  # type: ignore[type-var]
    ]
    title = "k20-t1, 400 paths: per cent of random arms, and of paths stuck"
    table = start_table(title, "what", "regret", "stuck")
    half, end = problem.horizon // 2, problem.horizon
    for policies, bandit in plays:
        tools = {"random arm": Uniform(), **policies}
        result = simulate(tools, bandit, horizon=end, paths=400, seed=99, checkpoints=(half, end))
        first, last = result.mean("random arm")
        for name in policies:
            regret = result.curves[name].regret
            share = (np.diff(regret)[:, 0] > 0.1 * (last - first)).mean()
            table.add_row(name, f"{100 * regret[:, 1].mean() / last:.1f}", f"{100 * share:.1f}")
    show(table)


if __name__ == "__main__":
    cost()
    coverage()
    stuck()
    units()
    targets()
