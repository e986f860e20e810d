"""Bandits whose rewards may have no mean."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from tailproof import bestarm, noise
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
    StudentUCB,
    SupBMM,
    SupBTC,
    SupLinRel,
    SupLinUCB,
    SymmetricOFUL,
    ThompsonSampling,
    Uniform,
)
from tailproof.results import Curves, Identification, Result, Verdicts
from tailproof.simulation import IdentificationPlan, Plan, environments, identify, simulate, sweep
from tailproof.stats import (
    Calibration,
    Estimator,
    Mean,
    MeanOfMedians,
    Median,
    MedianOfMeans,
    TruncatedMean,
    calibrate,
    mean_of_medians,
    median_of_means,
    theory,
    truncated_mean,
)
from tailproof.wrappers import AutoFiltered, Filtered, FromRegret, Wrapper, compositions

if TYPE_CHECKING:
    from tailproof import figures, guests, testing

__all__ = [
    "CRT",
    "MENU",
    "OFUL",
    "PEGE",
    "TOFU",
    "UCB1",
    "AdaRUCB",
    "AutoFiltered",
    "Calibration",
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
    "LinStudentUCB",
    "LinTS",
    "Mean",
    "MeanOfMedians",
    "Median",
    "MedianOfMeans",
    "MedianUCB",
    "MoM",
    "OrderStatisticUCB",
    "Plan",
    "Policy",
    "Result",
    "RobustUCB",
    "State",
    "StudentUCB",
    "SupBMM",
    "SupBTC",
    "SupLinRel",
    "SupLinUCB",
    "SymmetricOFUL",
    "ThompsonSampling",
    "TruncatedMean",
    "Uniform",
    "Verdicts",
    "Wrapper",
    "__version__",
    "bestarm",
    "calibrate",
    "compositions",
    "environments",
    "figures",
    "guests",
    "identify",
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
    """Load what is seldom needed when it is asked for: pictures, contract checks, guests."""
    if name in ("figures", "guests", "testing"):
        return import_module(f"tailproof.{name}")
    raise AttributeError(f"module 'tailproof' has no attribute {name!r}")
