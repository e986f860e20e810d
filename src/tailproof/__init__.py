"""Bandits whose rewards may have no mean."""

# ruff: noqa: F401, F403 (type checkers and editors read the imports)

from typing import TYPE_CHECKING

_NAMES = {
    "tailproof": "bestarm features figures gauntlet guests judging live noise testing",
    "tailproof.advice": "Advice calibrate",
    "tailproof.judging": "judge",
    "tailproof.policies": """
        AdaRUCB ClippedSGDUCB ConfidenceBall CRT DiscountedUCB FixedArm HeavyOFUL HTINF HvtUCB
        LinRevenueUCB LinStudentUCB LinTS MedianUCB MENU MoM OFUL OrderStatisticUCB PEGE Policy
        RevenueUCB RMMUCB RobustUCB SlidingWindowUCB State SupBMM SupBTC SupLinRel SupLinUCB
        SymmetricOFUL ThompsonSampling TOFU UCB1 Uniform
    """,
    "tailproof.results": "Curves Identification Result Verdicts",
    "tailproof.simulation": "IdentificationPlan Plan environments identify simulate sweep",
    "tailproof.stats": """
        Aim Calibration CappedMean Estimator Mean MeanOfMedians Median MedianOfMeans Quantile
        TrimmedMean TruncatedMean WinsorizedMean intervals mean_of_medians median_of_means theory
        truncated_mean
    """,
    "tailproof.wrappers": """
        AutoFiltered Capped Filtered FromRegret Intercept Negated Renewed Scaled Vigilant Wrapper
        compositions
    """,
}
"""The public names, by the module that has them. Each is imported when it is first used."""
_MODULE = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = ["__version__", *_MODULE]

if TYPE_CHECKING:
    from tailproof import (
        bestarm,
        features,
        figures,
        gauntlet,
        guests,
        judging,
        live,
        noise,
        testing,
    )
    from tailproof.advice import *
    from tailproof.judging import judge as judge
    from tailproof.policies import *
    from tailproof.results import *
    from tailproof.simulation import *
    from tailproof.stats import *
    from tailproof.wrappers import *

    __version__: str
else:  # hidden from type checkers, which would accept any name

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name == "__version__":
            from importlib.metadata import version

            found = version("tailproof")
        elif name not in _MODULE:
            raise AttributeError(f"module 'tailproof' has no attribute {name!r}")
        elif _MODULE[name] == "tailproof":
            found = import_module(f"tailproof.{name}")
        else:
            found = getattr(import_module(_MODULE[name]), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return __all__
