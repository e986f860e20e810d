"""Figures 4 and 5 of the paper: each algorithm against its own filtered form.

Every algorithm has the horizon that the public scripts give it, so that algorithms are set beside
one another only where they share one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tailproof.figures import band, canvas
from tailproof.noise import StudentT
from tailproof.paper import published
from tailproof.paper.exhibit import Claim, Picture, Sweep, below, final, mean_within, ratio
from tailproof.policies import Policy
from tailproof.results import Result
from tailproof.simulation import Plan
from tailproof.simulation.environments import orthant
from tailproof.typing import Array
from tailproof.wrappers.compositions import (
    crt_filtered,
    menu_filtered,
    mom_filtered,
    sup_bmm_filtered,
    sup_btc_filtered,
    tofu_filtered,
)

__all__ = ["DIFFERENCES", "REFERENCE", "SETTINGS", "TITLE", "check_claims", "draw", "run"]

TITLE = "Each baseline against its own filtered form"
HORIZONS = {
    "MoM": 1_000_000,
    "CRT": 20_000,
    "MENU": 100_000,
    "TOFU": 10_000,
    "SupBMM": 100_000,
    "SupBTC": 10_000,
}
"""Those of the public scripts."""
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "smoke": {
        "horizons": {**dict.fromkeys(HORIZONS, 400), "MENU": 4000, "MoM": 120_000},
        "paths": {3: 3, 1.02: 3},
    },
    "quick": {"horizons": HORIZONS, "paths": {3: 10, 1.02: 5}},
    "paper": {"horizons": HORIZONS, "paths": {3: 10, 1.02: 10}},
}
DIFFERENCES: Sequence[str] = (
    "The horizons are those of the public scripts (10⁶ pulls for MoM, 2·10⁴ for CRT, 10⁵ for MENU "
    "and SupBMM, 10⁴ for TOFU and SupBTC); the text does not name them.",
    "The algorithm behind a filter of ñ pulls is told the horizon T/ñ, as in Theorem 2.",
    "TOFU_mom and MENU_mom are set beside one another at 10⁴ pulls, the longest horizon that both "
    "have; by then MENU_mom has made three decisions.",
)
REFERENCE: Mapping[str, Mapping[str, tuple[float, float]]] = {}
ESTIMATORS = ("MoM", "CRT", "MENU", "TOFU")
COMMON = 10_000


def filtered(name: str, horizon: int) -> Policy[Any]:
    """Return the filtered form of an algorithm with the settings of the published curves."""
    if name == "MoM":
        return mom_filtered(
            repeats=64, horizon=horizon // 64, moment_bound=1 / 500, blocks=42, bonus=1 / 40
        )
    if name == "CRT":
        return crt_filtered(repeats=400, moment_bound=1, bonus=1 / 10)
    if name == "MENU":
        return menu_filtered(
            repeats=64, horizon=max(horizon // 64, 51), moment_bound=1, replicates=51, bonus=1 / 50
        )
    if name == "TOFU":
        inner = max(horizon // 400, 1)
        return tofu_filtered(repeats=400, horizon=inner, moment_bound=1, exponent=0.5, bonus=1 / 5)
    if name == "SupBMM":
        return sup_bmm_filtered(
            repeats=64, moment_bound=1, horizon=max(horizon, 31), **published.FLAT_BMM
        )
    return sup_btc_filtered(repeats=256, moment_bound=0.5, horizon=horizon, **published.FLAT_BTC)


def run(sweep: Sweep, size: str, seed: int) -> dict[str, Result]:
    """Simulate every pair under two noises, each at its own horizon."""
    plans = {}
    for df, paths in SETTINGS[size]["paths"].items():
        for name, horizon in SETTINGS[size]["horizons"].items():
            alone = published.policies(df, horizon)[name]
            marks = np.unique(np.linspace(horizon / 200, horizon, 200).round().astype(int))
            common = {COMMON} if horizon > COMMON else set()
            plans[f"{name}, df = {df}"] = Plan(
                policies={name: alone, f"{name}_mom": filtered(name, horizon)},
                environment=orthant(StudentT(df)),
                horizon=horizon,
                paths=paths,
                seed=seed,
                checkpoints=tuple(sorted({*marks.tolist(), *common})),
            )
    return sweep(plans)


def draw(results: Mapping[str, Result]) -> dict[str, Picture]:
    """Draw one figure for each noise: regret above, the error of θ̂ below."""
    pictures = {}
    for figure_name, df in {"figure-4": "df = 3", "figure-5": "df = 1.02"}.items():
        figure, panels = canvas(4, 3, height=1.9, share=False)
        for i, name in enumerate(HORIZONS):
            result = results[f"{name}, {df}"]
            above, under = panels[2 * (i // 3) : 2 * (i // 3) + 2, i % 3]
            for place, form in enumerate((name, f"{name}_mom")):
                curves = result.curves[form]
                band(above, result.pulls, curves.regret, place, ("alone", "filtered")[place])
                if curves.error is not None:
                    band(under, result.pulls, curves.error, place)
            above.set_title(f"{name}, T = {result.pulls[-1]:,}".replace(",", " "), fontsize=9)
            above.set_ylim(bottom=0)
            for axes in (above, under):
                axes.ticklabel_format(axis="x", style="sci", scilimits=(0, 4))
            if name in ESTIMATORS:
                under.set(yscale="log", ylim=(0.02, 20))
                under.set_xlabel("pulls", fontsize=8)
            else:
                under.remove()
                above.set_xlabel("pulls", fontsize=8)
        for row, label in enumerate(("regret", "error of θ̂") * 2):
            panels[row, 0].set_ylabel(label, fontsize=8)
        panels[0, 0].legend(fontsize=7, frameon=False)
        paths = results[f"MoM, {df}"].settings["paths"]
        figure.suptitle(f"Student-t noise, {df}, {paths} paths", fontsize=10)
        alt = f"Student-t noise, {df}. Final mean regret alone and filtered: " + "; ".join(
            f"{name} {_final(results, name, df).mean():.0f} and "
            f"{_final(results, name, df, '_mom').mean():.0f}"
            for name in HORIZONS
        )
        pictures[figure_name] = Picture(figure, alt + ".")
    return pictures


def check_claims(results: Mapping[str, Result]) -> list[Claim]:
    """Compare regrets and errors of the two forms, each at its own horizon."""
    wild = "df = 1.02"
    errors = {name: _errors(results, name, wild) for name in ESTIMATORS}
    filtered = {name: _errors(results, name, wild, "_mom") for name in ESTIMATORS}
    quarter = {name: error.shape[1] // 4 for name, error in errors.items()}
    return [
        Claim(
            "When df = 3, all algorithms make an accurate estimation of θ*, thus perform well.",
            "the paper, appendix A; “accurate” is our measure, a mean error of at most 0.5",
            [
                mean_within(
                    f"mean error of {name} at its horizon",
                    _errors(results, name, "df = 3")[:, -1],
                    0.0,
                    0.5,
                )
                for name in ESTIMATORS
            ],
        ),
        Claim(
            "When df = 1.02, the estimation error of other algorithms seems to vary more and even "
            "not converge, while the counterparts by our framework have estimation error "
            "approaching 0 stably.",
            "the paper, appendix A; “approaching 0” is our measure, an error that still falls over "
            "the last three quarters of the horizon",
            [
                *(
                    below(
                        f"error of {name}_mom minus {name}",
                        filtered[name][:, -1],
                        errors[name][:, -1],
                    )
                    for name in ESTIMATORS
                ),
                *(
                    ratio(
                        f"error of {name}_mom at the horizon over a quarter of it",
                        filtered[name][:, -1],
                        filtered[name][:, quarter[name]],
                        at_most=1,
                    )
                    for name in ESTIMATORS
                ),
            ],
        ),
        Claim(
            "Under df = 1.02 each algorithm behind the filter has a smaller regret than alone.",
            "the paper, figure 5, as drawn",
            [
                below(
                    f"regret of {name}_mom minus {name}",
                    _final(results, name, wild, "_mom"),
                    _final(results, name, wild),
                )
                for name in HORIZONS
            ],
        ),
        Claim(
            "The performance of TOFU_mom is not as good as MENU_mom, even though TOFU and MENU "
            "have comparable performance.",
            "the paper, appendix A; judged at the common horizon",
            [
                below(
                    "regret of MENU_mom minus TOFU_mom",
                    _common(results, "MENU", wild, "_mom"),
                    _common(results, "TOFU", wild, "_mom"),
                ),
                ratio(
                    "regret of TOFU over MENU, comparable within a factor of 1.25",
                    _common(results, "TOFU", wild),
                    _common(results, "MENU", wild),
                    at_least=0.8,
                    at_most=1.25,
                ),
            ],
        ),
    ]


def _final(results: Mapping[str, Result], name: str, df: str, form: str = "") -> Array:
    return final(results[f"{name}, {df}"], name + form)


def _common(results: Mapping[str, Result], name: str, df: str, form: str = "") -> Array:
    """Return the regret at the common horizon, or at the end where that comes first."""
    result = results[f"{name}, {df}"]
    place = min(int(np.searchsorted(result.pulls, COMMON)), len(result.pulls) - 1)
    return result.curves[name + form].regret[:, place]


def _errors(results: Mapping[str, Result], name: str, df: str, form: str = "") -> Array:
    error = results[f"{name}, {df}"].curves[name + form].error
    assert error is not None  # each of the four has an estimate
    return error
