"""The paper describes its decision set twice, differently: fixed, and drawn anew each round.

Section 5 plots regret "over a fixed finite-arm decision set" and then draws "every contextual
information of time t". The public scripts draw anew; here both are run.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tailproof.environments.arm_sets import FixedArms
from tailproof.environments.linear import LinearBandit, orthant
from tailproof.figures import regret_figure
from tailproof.noise import StudentT
from tailproof.research.paper import published
from tailproof.research.paper.claims import Claim, Part, Picture, Sweep, less_regret, means
from tailproof.results.regret import Result
from tailproof.simulation.plan import Plan

__all__ = ["DIFFERENCES", "SETTINGS", "TITLE", "check_claims", "draw", "run"]

TITLE = "The decision set, drawn each round and fixed"
DFS = (1.02, 1)
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "smoke": {"horizon": 300, "paths": 3, "paths_of_slow_algorithms": 2},
    "quick": {"horizon": 10_000, "paths": 20, "paths_of_slow_algorithms": 0},
    "paper": {"horizon": 10_000, "paths": 100, "paths_of_slow_algorithms": 10},
}
DIFFERENCES: Sequence[str] = (
    "A fixed set is drawn once for each path, by the same law. TOFU and SupBTC are slow: they play "
    "fewer paths, and none at the quick size.",
)
RIVALS = ("MoM", "CRT", "MENU", "SupBMM", "uniform")
SLOW = ("TOFU", "SupBTC")
OURS = ("SupBMM_mom", "SupBTC_mom")
KINDS = ("drawn each round", "fixed")


def _world(df: float, fixed: bool) -> LinearBandit:
    if not fixed:
        return orthant(StudentT(df))
    arms = FixedArms(law="orthant", arms=20, dim=10)
    return LinearBandit(contexts=arms, theta="diagonal", noise=StudentT(df))


def run(sweep: Sweep, size: str, seed: int) -> dict[str, Result]:
    """Simulate both decision sets under two noises, the slow algorithms on fewer paths."""
    settings, plans = SETTINGS[size], {}
    few, horizon = settings["paths_of_slow_algorithms"], settings["horizon"]
    for df in DFS:
        policies = published.policies(df, horizon)
        for kind in KINDS:
            for start, names, paths in (("", RIVALS, settings["paths"]), ("slow, ", SLOW, few)):
                if paths:
                    plans[f"{start}{kind}, df = {df}"] = Plan(
                        policies={name: policies[name] for name in (*names, *OURS)},
                        environment=_world(df, kind == "fixed"),
                        horizon=horizon,
                        paths=paths,
                        seed=seed,
                    )
    return sweep(plans)


def draw(results: Mapping[str, Result]) -> dict[str, Picture]:
    """Draw the regrets of both decision sets."""
    shown = {name: result for name, result in results.items() if not name.startswith("slow")}
    ends = "; ".join(f"{name}: {means(result)}" for name, result in shown.items())
    alt = f"Cumulative regret with a decision set drawn each round, and a fixed one. Means, {ends}."
    return {"decision-set": Picture(regret_figure(shown), alt)}


def check_claims(results: Mapping[str, Result]) -> list[Claim]:
    """Compare each filtered algorithm with the others, on either decision set."""
    played = (*RIVALS[:-1], *(SLOW if any(key.startswith("slow") for key in results) else ()))
    named = f"{', '.join(played)} and a random arm"

    def ahead(kind: str) -> list[Part]:
        labels = [f"{kind}, df = {df}" for df in DFS]
        runs = [(label, results.get(start + label)) for label in labels for start in ("", "slow, ")]
        return [
            less_regret(label, result, ours, rival)
            for label, result in runs
            if result is not None
            for ours in OURS
            for rival in result.curves
            if rival not in OURS
        ]

    return [
        Claim(
            f"SupBMM_mom and SupBTC_mom outperform {named} where the decision set is drawn each "
            "round.",
            "the paper, section 5, “every contextual information of time t”",
            ahead("drawn each round"),
        ),
        Claim(
            f"SupBMM_mom and SupBTC_mom outperform {named} over a fixed finite-arm decision set.",
            "the paper, section 5, “a fixed finite-arm decision set”",
            ahead("fixed"),
        ),
    ]
