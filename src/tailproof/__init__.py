"""Bandits whose rewards may have no mean."""

from tailproof import environments, noise, theory
from tailproof.estimators import (
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
from tailproof.filters import Filtered
from tailproof.policies import OFUL, UCB1, FixedArm, Memory, Policy, Uniform
from tailproof.result import Curves, Result
from tailproof.simulation import simulate

__all__ = [
    "OFUL",
    "UCB1",
    "Curves",
    "Estimator",
    "Filtered",
    "FixedArm",
    "Mean",
    "MeanOfMedians",
    "Median",
    "MedianOfMeans",
    "Memory",
    "Policy",
    "Result",
    "TruncatedMean",
    "Uniform",
    "environments",
    "mean_of_medians",
    "median_of_means",
    "noise",
    "simulate",
    "theory",
    "truncated_mean",
]
