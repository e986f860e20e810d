"""Regret of policies for single pulls, beside an oracle that knows everything but θ.

The oracle is OFUL with its best bonus, under normal noise with the same Fisher information as the
Student-t noise that the contenders meet. Run it with ``make bench-regret``.
"""

import math
from typing import Any

from timing import one_core, show, start_table

one_core()


from tailproof import OFUL, AutoFiltered, LinStudentUCB, Policy, environments, noise, simulate
from tailproof.paper import published as paper

CONTENDERS: dict[str, Policy[Any]] = {
    "LinStudentUCB": LinStudentUCB(),
    "AutoFiltered": AutoFiltered(OFUL()),
}
DFS = (3, 1.02, 1, 0.5)
SCALES = (1, 10, 0.1)
BONUSES = {True: (0.1, 0.3, 0.5), False: (0.1, 0.2, 0.3, 0.5)}
PATHS, HORIZON, SEED = 100, 10_000, 0


def final(policies: dict[str, Policy[Any]], bandit: environments.LinearBandit) -> dict[str, Any]:
    """Return the last regret of every path."""
    settings = {"horizon": HORIZON, "paths": PATHS, "seed": SEED, "record": 1, "workers": 2}
    result = simulate(policies, bandit, **settings)  # type: ignore[arg-type]
    return {name: curves.regret[:, -1] for name, curves in result.curves.items()}


def mean_and_error(regret: Any) -> tuple[float, float]:
    return float(regret.mean()), float(regret.std(ddof=1)) / math.sqrt(len(regret))


def oracle(law: noise.Noise, fresh: bool) -> tuple[float, float, float]:
    """Return mean, standard error and bonus of the best OFUL."""
    scale = 1 / math.sqrt(law.fisher_information)
    bandit = environments.neutral(noise.Normal(scale), fresh=fresh)
    found = final({f"{b}": OFUL(noise_scale=scale, bonus=b) for b in BONUSES[fresh]}, bandit)
    best = min(found, key=lambda bonus: float(found[bonus].mean()))
    return *mean_and_error(found[best]), float(best)


def bar(name: str, fresh: bool, df: float, scale: float) -> float:
    """Return the ratio to the oracle that is allowed, inf where there is no bar."""
    if name == "AutoFiltered":
        return 2.2 if fresh and scale == 1 else math.inf
    if scale != 1:
        return {10: 1.25, 0.1: 2.0}[scale]
    usual, wild = (1.25, 1.5) if fresh else (1.5, 2.0)
    return wild if df == 0.5 else usual


def against_the_oracle() -> None:
    table = start_table(
        f"Regret / regret of the oracle, {PATHS} paths, T = {HORIZON}",
        *("what", "arms", "df", "scale", "oracle", "its bonus", "regret", "ratio", "bar"),
    )
    for fresh in (True, False):
        for df in DFS:
            for scale in SCALES:
                law = noise.StudentT(df, scale)
                base, base_error, bonus = oracle(law, fresh)
                found = final(CONTENDERS, environments.neutral(law, fresh=fresh))
                for name, regret in found.items():
                    mean, error = mean_and_error(regret)
                    ratio = mean / base
                    spread = ratio * math.hypot(error / mean, base_error / base)
                    arms = "fresh" if fresh else "fixed"
                    most = bar(name, fresh, df, scale)
                    told = "" if most == math.inf else f"≤ {most}"
                    table.add_row(
                        *(name, arms, f"{df}", f"{scale}"),
                        *(f"{base:.1f} ± {base_error:.1f}", f"{bonus}"),
                        *(f"{mean:.1f} ± {error:.1f}", f"{ratio:.2f} ± {spread:.2f}"),
                        told + ("" if ratio <= most else " missed"),
                    )
    show(table)


def on_the_papers_ground() -> None:
    table = start_table(
        f"Regret in the paper's environment, {PATHS} paths, T = {HORIZON}",
        *("what", "df", "SupBTC_mom", "regret", "ratio", "bar"),
    )
    for df in DFS:
        theirs = {"SupBTC_mom": paper.policies(df)["SupBTC_mom"]}
        found = final(theirs | CONTENDERS, environments.orthant(noise.StudentT(df)))
        base, base_error = mean_and_error(found["SupBTC_mom"])
        for name in CONTENDERS:
            mean, error = mean_and_error(found[name])
            table.add_row(
                *(name, f"{df}", f"{base:.1f} ± {base_error:.1f}", f"{mean:.1f} ± {error:.1f}"),
                *(f"{mean / base:.2f}", "≤ 0.75" + ("" if mean <= 0.75 * base else " missed")),
            )
    show(table)


if __name__ == "__main__":
    on_the_papers_ground()
    against_the_oracle()
