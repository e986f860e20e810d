"""Bandits of other libraries and ours: regret with and without the filter, and time per pull.

Run it with ``make bench-peers``; ``--only``, ``--noise``, ``--problem``, ``--who`` and ``--paths``
run a part. ``--page docs/guest-tables.md`` writes the tables into that page, each below its own
mark; the rows of a part replace the old ones. Libraries that are not installed are skipped.
"""

from timing import one_core

one_core()

import argparse
import importlib.util
import math
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from tailproof import (
    OFUL,
    UCB1,
    AutoFiltered,
    Filtered,
    LinStudentUCB,
    Median,
    Policy,
    Uniform,
    environments,
    guests,
    hosts,
    noise,
    simulate,
)
from tailproof.environments.arm_sets import SharedContext
from tailproof.environments.linear import LinearBandit

SEED = 2026
HORIZONS = {"normal": 3000, "t1": 6000, "t½": 6000}
"""Pulls by noise; without a filter a guest learns from every pull, which takes most of the time."""
LAWS: dict[str, noise.Noise] = {
    "normal": noise.Normal(),
    "t1": noise.StudentT(1),
    "t½": noise.StudentT(0.5),
}
LIBRARIES = ("mabwiser", "river", "vowpalwabbit", "bayesianbandits", "coba", "pymab")
HERE = {name for name in LIBRARIES if importlib.util.find_spec(name)}
ADF = "--cb_explore_adf"


def said(lines: Iterator[str]) -> list[str]:
    """Print each line as soon as it is ready, and return all of them."""
    kept = []
    for line in lines:
        print(line, flush=True)
        kept.append(line)
    return kept


def put(page: Path, name: str, lines: list[str]) -> None:
    """Write a table below its mark on a page; keep old rows if the head is the same."""
    mark = f"<!-- make bench-peers: {name} -->\n"
    before, _, after = page.read_text(encoding="utf-8").partition(mark)
    old, cut, rest = after.partition("<!--")
    body = joined(old.splitlines()[1:-1], lines) if name == "regret" else lines
    text = "\n".join([before + mark, *body, "", cut + rest])
    page.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def joined(old: list[str], new: list[str]) -> list[str]:
    """Return the new table with the old rows that it does not replace, by problem and noise."""
    rows: dict[tuple[str, ...], str] = {}
    head = [line for line in new if not line.startswith(ROWS)]
    for line in (old if head == old[: len(head)] else []) + new:
        if line.startswith(ROWS):
            rows[tuple(line.split(" | ")[:3])] = line
    order: list[tuple[str, ...]] = [(f"| {problem}", law) for problem in PROBLEMS for law in LAWS]
    return [*head, *(rows[key] for key in sorted(rows, key=lambda key: order.index(key[:2])))]


def k_armed(law: str) -> LinearBandit:
    """Return five arms, one of them better by 1."""
    return environments.k_armed(LAWS[law], locations=(0, 0, 0, 0, 1))


def shared_context(law: str) -> LinearBandit:
    """Return four arms with five features; θ of all arms has norm 1, the noise scale ½."""
    kinds: dict[str, noise.Noise] = {
        "normal": noise.Normal(0.5),
        "t1": noise.StudentT(1, 0.5),
        "t½": noise.StudentT(0.5, 0.5),
    }
    contexts = SharedContext(law="sphere", arms=4, features=5)
    return LinearBandit(contexts=contexts, theta="sphere", noise=kinds[law])


def action_features(law: str) -> LinearBandit:
    """Return ten fresh arms with five features."""
    return environments.neutral(LAWS[law], arms=10, dim=5)


PROBLEMS: dict[str, Callable[[str], LinearBandit]] = {
    "K arms": k_armed,
    "shared context": shared_context,
    "action features": action_features,
}


def k_armed_guests() -> Iterator[tuple[str, Policy[Any]]]:
    if "mabwiser" in HERE:
        from mabwiser.mab import LearningPolicy

        yield "MABWiser UCB1", guests.mabwiser(LearningPolicy.UCB1(1.25))
        yield "MABWiser ε-greedy", guests.mabwiser(LearningPolicy.EpsilonGreedy(0.1))
    if "river" in HERE:
        from river import bandit, stats

        yield "River UCB", guests.river(bandit.UCB(delta=1))
        yield (
            "River ε-greedy, medians",
            guests.river(
                bandit.EpsilonGreedy(epsilon=0.1, burn_in=1, reward_obj=stats.Quantile(0.5))
            ),
        )
    if "bayesianbandits" in HERE:
        from bayesianbandits import NormalInverseGammaRegressor, ThompsonSampling

        gamma = NormalInverseGammaRegressor()
        yield "bayesianbandits Thompson", guests.bayesianbandits(ThompsonSampling(), gamma)
    if "coba" in HERE:
        from coba.learners import BanditUCBLearner

        yield "coba UCB", guests.coba(BanditUCBLearner, view="arms")
    if "pymab" in HERE:
        from pymab.policies import UCBPolicy

        yield "pymab UCB", guests.pymab(UCBPolicy)
    if "vowpalwabbit" in HERE:
        yield "VW ε-greedy", guests.vw(f"{ADF} --epsilon 0.1", view="arms")
        yield "VW ε-greedy, dm", guests.vw(f"{ADF} --epsilon 0.1 --cb_type dm", view="arms")
        quantile = "--cb_type dm --loss_function quantile"
        yield "VW ε-greedy, quantile", guests.vw(f"{ADF} --epsilon 0.1 {quantile}", view="arms")


def context_guests() -> Iterator[tuple[str, Policy[Any]]]:
    """Give the guests; those that sample use half of 0.2, the deviation of filtered noise."""
    if "mabwiser" in HERE:
        from mabwiser.mab import LearningPolicy

        yield "MABWiser LinUCB", guests.mabwiser(LearningPolicy.LinUCB(1.0))
        yield "MABWiser LinTS", guests.mabwiser(LearningPolicy.LinTS(0.1))
    if "river" in HERE:
        from river import bandit

        yield "River LinUCBDisjoint", guests.river(bandit.LinUCBDisjoint())
    if "bayesianbandits" in HERE:
        from bayesianbandits import NormalRegressor, ThompsonSampling

        normal = NormalRegressor(alpha=10.0, beta=100.0)
        agent = guests.bayesianbandits(ThompsonSampling(), normal, contextual=True)
        yield "bayesianbandits Thompson", agent
    if "vowpalwabbit" in HERE:
        yield "VW ε-greedy, defaults", guests.vw(f"{ADF} --epsilon 0.1 -q sa", view="context")
        crossed = f"{ADF} -q sa --ignore_linear a --ignore_linear s --noconstant"
        squarecb = f"{crossed} --squarecb --gamma_scale 100"
        yield "VW SquareCB", guests.vw(squarecb, view="context")
        greedy = f"{crossed} --epsilon 0.05 --clip_p 1 -l 0.2"
        yield "VW ε-greedy", guests.vw(greedy, view="context")
        quantile = f"{greedy} --loss_function quantile"
        yield "VW ε-greedy, quantile", guests.vw(quantile, view="context")


def action_guests() -> Iterator[tuple[str, Policy[Any]]]:
    if "coba" in HERE:
        from coba.learners import LinUCBLearner

        yield "coba LinUCB", guests.coba(LinUCBLearner, features=(1, "a"))
    if "pymab" in HERE:
        from pymab.policies import LinUCBPolicy

        yield "pymab LinUCB", guests.pymab(LinUCBPolicy)
    if "vowpalwabbit" in HERE:
        yield "VW SquareCB", guests.vw(f"{ADF} --squarecb")
        yield "VW ε-greedy", guests.vw(f"{ADF} --epsilon 0.1")


ROWS = tuple(f"| {problem} |" for problem in PROBLEMS)
GUESTS = {
    "K arms": k_armed_guests,
    "shared context": context_guests,
    "action features": action_guests,
}
OURS: dict[str, dict[str, Policy[Any]]] = {
    "K arms": {"ours: UCB1": UCB1(), "ours: LinStudentUCB": LinStudentUCB()},
    "shared context": {"ours: OFUL": OFUL(), "ours: LinStudentUCB": LinStudentUCB()},
    "action features": {"ours: OFUL": OFUL(), "ours: LinStudentUCB": LinStudentUCB()},
}
FILTERS: dict[str, Callable[[Policy[Any]], Policy[Any]]] = {
    "alone": lambda policy: policy,
    "Filtered(15)": lambda policy: Filtered(policy, repeats=15, estimator=Median()),
    "AutoFiltered": lambda policy: AutoFiltered(policy),
}


def regrets(problem: str, law: str, paths: int, who: str) -> Iterator[str]:
    """Give the rows of a table: regret over that of uniform play, with 95 % intervals."""
    bandit = PROBLEMS[problem](law)
    settings: dict[str, Any] = {
        "horizon": HORIZONS[law],
        "paths": paths,
        "seed": SEED,
        "checkpoints": [HORIZONS[law]],
    }
    chance = simulate({"uniform": Uniform()}, bandit, **settings).curves["uniform"]
    base = float(chance.regret[:, -1].mean())
    quantile = float(student.ppf(0.975, paths - 1))
    for name, policy in {**dict(GUESTS[problem]()), **OURS[problem]}.items():
        if who not in name:
            continue
        single = name.endswith("StudentUCB")
        cells = []
        for wrap in list(FILTERS.values())[: 1 if single else None]:
            curves = simulate({name: wrap(policy)}, bandit, **settings).curves[name]
            share = curves.regret[:, -1] / base
            half = quantile * float(share.std(ddof=1)) / math.sqrt(paths)
            cells.append(f"{share.mean():.3f} ± {half:.3f}")
        yield f"| {problem} | {law} | {name} | " + " | ".join([*cells, "–", "–"][:3]) + " |"


def show_regrets(laws: list[str], problems: list[str], paths: int, who: str) -> Iterator[str]:
    pulls = ", ".join(f"{horizon} ({law})" for law, horizon in HORIZONS.items())
    words = f"{paths} paths, mean with its 95 % interval; pulls: {pulls}"
    yield packages()
    yield f"\nRegret over that of uniform play, {words}\n"
    yield "| problem | noise | who | " + " | ".join(FILTERS) + " |"
    yield "|---|---|---|" + "---|" * len(FILTERS)
    for problem in problems:
        for law in laws:
            yield from regrets(problem, law, paths, who)


def packages() -> str:
    found = ", ".join(f"{name} {version(name)}" for name in ("numpy", "tailproof", *sorted(HERE)))
    return f"{found}; not tested: {', '.join(sorted(set(LIBRARIES) - HERE)) or 'none'}"


def cpu(run: Callable[[], int], rounds: int = 3) -> float:
    """Return the CPU time of one pull in microseconds, the best of several rounds."""
    best = math.inf
    for _ in range(rounds):
        start = time.process_time()
        pulls = run()
        best = min(best, (time.process_time() - start) / pulls)
    return best * 1e6


def horizon(paths: int) -> int:
    """Return the pulls of a path, for our simulator and pymab's."""
    return max(1000, 100_000 // paths)


def ours(policy: Policy[Any], bandit: LinearBandit, paths: int) -> Callable[[], int]:
    pulls = horizon(paths)

    def run() -> int:
        simulate({"ours": policy}, bandit, horizon=pulls, paths=paths, checkpoints=1)
        return pulls * paths

    return run


def their_loop(policy: Any, bandit: LinearBandit, pulls: int = 500) -> Callable[[], int]:
    """Call the guest in a plain loop, with arms and noise drawn beforehand."""
    rng = np.random.default_rng(0)
    law = bandit.noise
    assert isinstance(law, noise.Noise)
    rewards = law.sample(rng, (pulls,)).tolist()
    k, dim = bandit.contexts.arms, bandit.contexts.dim
    seen = rng.standard_normal((pulls, k, dim))
    shared = seen[:, 0] if policy.view == "context" else seen

    def run() -> int:
        guest = policy._make(k)
        for n in range(pulls):
            arm = policy._ask(guest, k, shared[n], n)
            policy._tell(guest, k, shared[n], arm, rewards[n], 1.0)
        return pulls

    return run


def pymab_runner(policy: Any, environment: Any, paths: int) -> Callable[[], int]:
    from pymab import Experiment, ExperimentConfig

    pulls = horizon(paths)

    def run() -> int:
        config = ExperimentConfig(horizon=pulls, n_replicates=paths, seed=1)
        Experiment(environment=environment, policies={"p": policy}, config=config).run()
        return pulls * paths

    return run


def river_evaluate(pulls: int = 2000) -> Callable[[], int]:
    import gymnasium
    from river import bandit

    hosts.register()
    five = k_armed("normal")
    env = gymnasium.make("tailproof/Bandit-v0", bandit=five, max_episode_steps=pulls)

    def run() -> int:
        for _ in bandit.evaluate([bandit.UCB(delta=1)], env, n_episodes=1, seed=1):
            pass
        return pulls

    return run


def coba_experiment(learner: Any, actions: list[Any], pulls: int = 1000) -> Callable[[], int]:
    import coba

    def reward(index: int, context: Any, action: Any, rng: Any) -> float:
        return float(rng.gauss(0, 1))

    def run() -> int:
        worlds = coba.Environments.from_lambda(
            pulls, lambda i, rng: None, lambda i, c, rng: actions, reward, seed=1
        )
        coba.Experiment(worlds, [learner()]).run(quiet=True)
        return pulls

    return run


def show_costs() -> Iterator[str]:
    five, linear = k_armed("normal"), environments.neutral(noise.Normal(), arms=10, dim=5)
    rows: list[tuple[str, str, float]] = []
    for paths in (10, 100, 500):
        rows.append((f"ours, {paths} paths", "UCB1, K = 5", cpu(ours(UCB1(), five, paths))))
        rows.append((f"ours, {paths} paths", "LinUCB", cpu(ours(OFUL(), linear, paths))))
    if "pymab" in HERE:
        from pymab import BanditEnvironment, GaussianReward
        from pymab.policies import LinUCBPolicy, UCBPolicy

        means = (0.0, 0.0, 0.0, 0.0, 1.0)
        world = BanditEnvironment(np.array(means), GaussianReward())
        for paths in (10, 100, 500):
            run = pymab_runner(UCBPolicy(n_arms=5), world, paths)
            rows.append((f"pymab's runner, {paths} paths", "UCB1, K = 5", cpu(run)))
        loop = their_loop(guests.pymab(LinUCBPolicy), linear)
        rows.append(("pymab in a loop", "LinUCB", cpu(loop)))
    if "river" in HERE:
        from river import bandit

        rows.append(("River's evaluate", "UCB1, K = 5", cpu(river_evaluate())))
        loop = their_loop(guests.river(bandit.LinUCBDisjoint()), shared_context("normal"))
        rows.append(("River in a loop", "LinUCB", cpu(loop)))
    if "coba" in HERE:
        from coba.learners import BanditUCBLearner, LinUCBLearner

        run = coba_experiment(BanditUCBLearner, list("abcde"))
        rows.append(("coba's Experiment", "UCB1, K = 5", cpu(run)))
        vectors = [tuple(x) for x in np.random.default_rng(0).standard_normal((10, 5)).tolist()]
        run = coba_experiment(lambda: LinUCBLearner(features=[1, "a"]), vectors)
        rows.append(("coba's Experiment", "LinUCB", cpu(run)))
    if "mabwiser" in HERE:
        from mabwiser.mab import LearningPolicy

        loop = their_loop(guests.mabwiser(LearningPolicy.UCB1(1.25)), five)
        rows.append(("MABWiser in a loop", "UCB1, K = 5", cpu(loop)))
        loop = their_loop(guests.mabwiser(LearningPolicy.LinUCB(1.0)), shared_context("normal"))
        rows.append(("MABWiser in a loop", "LinUCB", cpu(loop)))
    yield packages()
    yield "\nProcessor time of a simulated pull, one core\n"
    yield "| who | what | µs a pull |\n|---|---|---|"
    for who, what, cost in rows:
        yield f"| {who} | {what} | {cost:.3g} |"
    for what in ("UCB1, K = 5", "LinUCB"):
        others = [row for row in rows if row[1] == what and not row[0].startswith("ours")]
        if others:
            fastest = min(others, key=lambda row: row[2])
            for who, kind, cost in rows:
                if kind == what and who.startswith("ours"):
                    yield f"\n{what}, {who}: {fastest[2] / cost:.1f} × {fastest[0]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--noise", choices=LAWS, action="append")
    parser.add_argument("--problem", choices=PROBLEMS, action="append")
    parser.add_argument("--paths", type=int, default=20)
    parser.add_argument("--who", default="", help="only policies whose name contains this")
    parser.add_argument("--page", type=Path, help="the page to write the tables into")
    parser.add_argument("--only", choices=("regret", "cost"))
    given = parser.parse_args()
    laws, problems = given.noise or list(LAWS), given.problem or list(PROBLEMS)
    parts = {
        "regret": lambda: show_regrets(laws, problems, given.paths, given.who),
        "cost": show_costs,
    }
    for name in [given.only] if given.only else parts:
        lines = said(parts[name]())
        if given.page:
            put(given.page, name, "\n".join(lines).splitlines())


if __name__ == "__main__":
    main()
