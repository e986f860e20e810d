"""Warning 2: with oversized bonuses an algorithm does worse than a random arm; tune them.

In the paper's environment the unit vectors that were explored least are the worst arms. So we
choose one multiplier of the bonus for each algorithm, on seeds that the comparison does not use.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tailproof.drawing import canvas
from tailproof.policies import Policy
from tailproof.research.paper import published
from tailproof.research.paper.claims import Claim, Picture, Sweep, below, best, final, student_plan
from tailproof.research.paper.drawing import legend_below, mark_rows
from tailproof.results.regret import Result
from tailproof.wrappers.base import altered, innermost

__all__ = ["DIFFERENCES", "SETTINGS", "TITLE", "check_claims", "draw", "run"]

TITLE = "The same algorithms, each with one tuned bonus multiplier"
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "smoke": {"horizon": 300, "paths": {1: 3}, "tuning_paths": 2, "multipliers": (0, 1)},
    "quick": {"horizon": 5000, "paths": {1: 4}, "tuning_paths": 2, "multipliers": (0, 0.01, 1)},
    "paper": {
        "horizon": 10_000,
        "paths": {3: 10, 1.02: 10, 1: 10, 0.5: 10},
        "tuning_paths": 10,
        "multipliers": (0, 0.001, 0.01, 0.1, 1),
    },
}
DIFFERENCES: Sequence[str] = (
    "The paper has no such comparison. The bonus of figures 2 and 3 is multiplied by a number that "
    "is chosen for each algorithm and noise by the mean regret on other seeds. The smallest "
    "multiplier, 0, plays greedily; where it is chosen, the best one may be anything between 0 "
    "and the next.",
)
ALGORITHMS = (*published.BASELINES, "SupBMM_mom", "SupBTC_mom")
TUNING_SEEDS = 1_000_003
"""Added to the seed, so that the comparison uses paths that no tuning has seen."""


def scaled(policy: Policy[Any], factor: float) -> Policy[Any]:
    """Return the policy with its bonus multiplied."""
    scaled: Policy[Any] = altered(policy, bonus=factor * innermost(policy).bonus)
    return scaled


def run(sweep: Sweep, size: str, seed: int) -> dict[str, Result]:
    """Tune on separate seeds, then simulate the published and the tuned bonuses."""
    settings = SETTINGS[size]
    horizon, factors = settings["horizon"], settings["multipliers"]
    recipes = {df: published.policies(df, horizon) for df in settings["paths"]}
    plan, trials = partial(student_plan, horizon=horizon), {}
    for df, policies in recipes.items():
        tried = {f"{n} × {f:g}": scaled(policies[n], f) for n in ALGORITHMS for f in factors}
        paths, seeds = settings["tuning_paths"], seed + TUNING_SEEDS
        trials[f"tuning, df = {df}"] = plan(tried, df, paths=paths, seed=seeds)
    trial_results, plans = sweep(trials), {}
    for df, paths in settings["paths"].items():
        chosen = multipliers(trial_results[f"tuning, df = {df}"])
        tuned = {name: scaled(recipes[df][name], chosen[name]) for name in ALGORITHMS}
        chance = {"uniform": recipes[df]["uniform"]}
        plans[f"tuned, df = {df}"] = plan(chance | tuned, df, paths=paths, seed=seed)
        plans[f"published, df = {df}"] = plan(recipes[df], df, paths=paths, seed=seed)
    return trial_results | sweep(plans)


def multipliers(trial: Result) -> dict[str, float]:
    """Return the multiplier with the smallest mean regret for each algorithm."""
    labels = {
        name: [label for label in trial.curves if label.startswith(f"{name} ×")]
        for name in ALGORITHMS
    }
    return {name: float(best(trial, tried).split(" × ")[1]) for name, tried in labels.items()}


def draw(results: Mapping[str, Result]) -> dict[str, Picture]:
    """Draw the final regrets, as published and tuned, one panel for each noise."""
    noises = _noises(results)
    figure, panels = canvas(-(-len(noises) // 2), min(len(noises), 2), height=3.2, share=False)
    descriptions = []
    for axes, noise in zip(panels.flat, noises, strict=False):
        samples = {
            kind: [final(results[f"{kind}, {noise}"], name) for name in ALGORITHMS]
            for kind in ("published", "tuned")
        }
        chosen = multipliers(results[f"tuning, {noise}"])
        labels = [f"{n}  × {chosen[n]:g}" if chosen[n] else f"{n}  greedy" for n in ALGORITHMS]
        mark_rows(axes, labels, samples)
        chance = float(final(results[f"published, {noise}"], "uniform").mean())
        axes.axvline(chance, color="0.4", linestyle=":", label="random arm")
        paths = results[f"tuned, {noise}"].settings["paths"]
        axes.set_title(f"Student-t, {noise}, {paths} paths", fontsize=9)
        ends = (
            f"{name} {published.mean():.0f} and {tuned.mean():.0f}"
            for name, published, tuned in zip(ALGORITHMS, *samples.values(), strict=True)
        )
        descriptions.append(f"{noise}: {', '.join(ends)}")
    for axes in panels.flat[len(noises) :]:
        axes.remove()
    widest = max(axes.get_xlim()[1] for axes in panels.flat)
    for axes in panels.flat:
        axes.set_xlim(0, widest)
    for axes in panels[-1]:
        axes.set_xlabel("regret: median and 10–90 %", fontsize=8)
    legend_below(figure, panels[0, 0], 3)
    alt = (
        f"Final regret with the published and with a tuned bonus. Means, {'; '.join(descriptions)}."
    )
    return {"bonus": Picture(figure, alt)}


def check_claims(results: Mapping[str, Result]) -> list[Claim]:
    """Compare tuned SupBTC_mom with the best tuned baseline, and that with a random arm."""
    ahead, chance = [], []
    for noise in _noises(results):
        tuned = results[f"tuned, {noise}"]
        rival = best(tuned, published.BASELINES)
        text = f"{noise}: tuned SupBTC_mom minus tuned {rival}, the best baseline"
        ahead.append(below(text, final(tuned, "SupBTC_mom"), final(tuned, rival)))
        text = f"{noise}: tuned {rival} minus a random arm"
        chance.append(below(text, final(tuned, rival), final(tuned, "uniform")))
    return [
        Claim(
            "SupBTC_mom outperforms the baselines also when one bonus multiplier is tuned for each "
            "algorithm on other seeds.",
            "our question",
            ahead,
        ),
        Claim(
            "With a tuned bonus the best baseline does better than a random arm.",
            "our question: do the baselines fail because of the noise or because of their bonus?",
            chance,
        ),
    ]


def _noises(results: Mapping[str, Result]) -> list[str]:
    return [name.removeprefix("tuned, ") for name in results if name.startswith("tuned, ")]
