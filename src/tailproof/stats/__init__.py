"""Estimators of a location, their exact laws and the theory behind them: no bandits here."""

from tailproof.stats import theory
from tailproof.stats.calibration import Calibration, calibrate
from tailproof.stats.estimators import (
    Estimator,
    Mean,
    MeanOfMedians,
    Median,
    MedianOfMeans,
    TruncatedMean,
    mean_of_medians,
    median_of_means,
    truncated_mean,
)

__all__ = [
    "Calibration",
    "Estimator",
    "Mean",
    "MeanOfMedians",
    "Median",
    "MedianOfMeans",
    "TruncatedMean",
    "calibrate",
    "mean_of_medians",
    "median_of_means",
    "theory",
    "truncated_mean",
]
