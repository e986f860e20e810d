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
    "smoke": {"horizon": 300, "paths": 3},
    "quick": {"horizon": 10_000, "paths": 20},
    "paper": {"horizon": 10_000, "paths": 100},
}
DIFFERENCES: Sequence[str] = (
    "A fixed set is drawn once for each path, by the same law. TOFU and SupBTC are left out, which "
    "are slow.",
)
RIVALS = ("MoM", "CRT", "MENU", "SupBMM", "uniform")
OURS = ("SupBMM_mom", "SupBTC_mom")


def _world(df: float, fixed: bool) -> LinearBandit:
    if not fixed:
        return orthant(StudentT(df))
    arms = FixedArms(law="orthant", arms=20, dim=10)
    return LinearBandit(contexts=arms, theta="diagonal", noise=StudentT(df))


def run(sweep: Sweep, size: str, seed: int) -> dict[str, Result]:
    """Simulate both decision sets under two noises."""
    plans, settings = {}, SETTINGS[size]
    for df in DFS:
        known = published.policies(df, settings["horizon"])
        policies = {name: known[name] for name in (*RIVALS, *OURS)}
        for name in ("drawn each round", "fixed"):
            plans[f"{name}, df = {df}"] = Plan(
                policies=policies, environment=_world(df, name == "fixed"), seed=seed, **settings
            )
    return sweep(plans)


def draw(results: Mapping[str, Result]) -> dict[str, Picture]:
    """Draw the regrets of both decision sets."""
    ends = "; ".join(f"{name}: {means(result)}" for name, result in results.items())
    alt = f"Cumulative regret with a decision set drawn each round, and a fixed one. Means, {ends}."
    return {"decision-set": Picture(regret_figure(dict(results)), alt)}


def check_claims(results: Mapping[str, Result]) -> list[Claim]:
    """Compare each filtered algorithm with the others, on either decision set."""

    def ahead(kind: str) -> list[Part]:
        pairs = ((df, ours, rival) for df in DFS for ours in OURS for rival in RIVALS)
        return [
            less_regret(f"{kind}, df = {df}", results[f"{kind}, df = {df}"], ours, rival)
            for df, ours, rival in pairs
        ]

    return [
        Claim(
            "SupBMM_mom and SupBTC_mom outperform MoM, CRT, MENU, SupBMM and a random arm where "
            "the decision set is drawn each round.",
            "the paper, section 5, “every contextual information of time t”",
            ahead("drawn each round"),
        ),
        Claim(
            "SupBMM_mom and SupBTC_mom outperform MoM, CRT, MENU, SupBMM and a random arm over a "
            "fixed finite-arm decision set.",
            "the paper, section 5, “a fixed finite-arm decision set”",
            ahead("fixed"),
        ),
    ]
