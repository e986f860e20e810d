"""Bandits whose rewards may have no mean."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from tailproof import bestarm, noise
from tailproof.advice import Advice, calibrate
from tailproof.policies import (
    CRT,
    MENU,
    OFUL,
    PEGE,
    TOFU,
    UCB1,
    AdaRUCB,
    ClippedSGDUCB,
    ConfidenceBall,
    FixedArm,
    HeavyOFUL,
    HvtUCB,
    LinStudentUCB,
    LinTS,
    MedianUCB,
    MoM,
    OrderStatisticUCB,
    Policy,
    RobustUCB,
    State,
    SupBMM,
    SupBTC,
    SupLinRel,
    SupLinUCB,
    SymmetricOFUL,
    ThompsonSampling,
    Uniform,
)
from tailproof.results import Curves, Identification, Result, Verdicts
from tailproof.simulation import (
    IdentificationPlan,
    Plan,
    environments,
    identify,
    simulate,
    sweep,
)
from tailproof.stats import (
    Aim,
    Calibration,
    CappedMean,
    Estimator,
    Mean,
    MeanOfMedians,
    Median,
    MedianOfMeans,
    Quantile,
    TrimmedMean,
    TruncatedMean,
    WinsorizedMean,
    mean_of_medians,
    median_of_means,
    theory,
    truncated_mean,
)
from tailproof.wrappers import (
    AutoFiltered,
    Capped,
    Filtered,
    FromRegret,
    Intercept,
    Negated,
    Scaled,
    Wrapper,
    compositions,
)

if TYPE_CHECKING:
    from tailproof import figures, gauntlet, guests, live, testing

__all__ = [
    "CRT",
    "MENU",
    "OFUL",
    "PEGE",
    "TOFU",
    "UCB1",
    "AdaRUCB",
    "Advice",
    "Aim",
    "AutoFiltered",
    "Calibration",
    "Capped",
    "CappedMean",
    "ClippedSGDUCB",
    "ConfidenceBall",
    "Curves",
    "Estimator",
    "Filtered",
    "FixedArm",
    "FromRegret",
    "HeavyOFUL",
    "HvtUCB",
    "Identification",
    "IdentificationPlan",
    "Intercept",
    "LinStudentUCB",
    "LinTS",
    "Mean",
    "MeanOfMedians",
    "Median",
    "MedianOfMeans",
    "MedianUCB",
    "MoM",
    "Negated",
    "OrderStatisticUCB",
    "Plan",
    "Policy",
    "Quantile",
    "Result",
    "RobustUCB",
    "Scaled",
    "State",
    "SupBMM",
    "SupBTC",
    "SupLinRel",
    "SupLinUCB",
    "SymmetricOFUL",
    "ThompsonSampling",
    "TrimmedMean",
    "TruncatedMean",
    "Uniform",
    "Verdicts",
    "WinsorizedMean",
    "Wrapper",
    "__version__",
    "bestarm",
    "calibrate",
    "compositions",
    "environments",
    "figures",
    "gauntlet",
    "guests",
    "identify",
    "live",
    "mean_of_medians",
    "median_of_means",
    "noise",
    "simulate",
    "sweep",
    "testing",
    "theory",
    "truncated_mean",
]

__version__ = version("tailproof")


def __getattr__(name: str) -> Any:
    """Load what is seldom needed when it is asked for."""
    if name in ("figures", "gauntlet", "guests", "live", "testing"):
        return import_module(f"tailproof.{name}")
    raise AttributeError(f"module 'tailproof' has no attribute {name!r}")
