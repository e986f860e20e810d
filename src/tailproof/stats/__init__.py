"""Estimators of a location, their exact laws and the theory behind them: no bandits here."""

from tailproof.stats import intervals, theory
from tailproof.stats.aims import Aim, CappedMean
from tailproof.stats.calibration import Calibration, calibrate_filter
from tailproof.stats.estimators import (
    Estimator,
    Location,
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
    truncated_mean,
)

__all__ = [
    "Aim",
    "Calibration",
    "CappedMean",
    "Estimator",
    "Location",
    "Mean",
    "MeanOfMedians",
    "Median",
    "MedianOfMeans",
    "Quantile",
    "TrimmedMean",
    "TruncatedMean",
    "WinsorizedMean",
    "calibrate_filter",
    "intervals",
    "mean_of_medians",
    "median_of_means",
    "theory",
    "truncated_mean",
]
