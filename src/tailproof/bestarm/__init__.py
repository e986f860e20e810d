"""Policies that find the best arm, one file each; `base` holds what they share.

`recommend` returns the best arm of each path, −1 while it is not known, and `stopped` whether it
is. The arms are the same at every decision.
"""

from tailproof.bestarm.allocation import GAllocation, XYAllocation
from tailproof.bestarm.base import BestArm
from tailproof.bestarm.behind_filter import behind_filter
from tailproof.bestarm.design import complexity, lower_bound, optimal_design
from tailproof.bestarm.lazy_track_and_stop import LazyTrackAndStop
from tailproof.bestarm.lin_gap_e import LinGapE
from tailproof.bestarm.quantile_elimination import QuantileElimination
from tailproof.bestarm.quantile_lucb import QuantileLUCB
from tailproof.bestarm.rage import RAGE
from tailproof.bestarm.successive_elimination import SuccessiveElimination
from tailproof.bestarm.track_and_stop import TrackAndStop
from tailproof.bestarm.xy_adaptive import XYAdaptive

__all__ = [
    "RAGE",
    "BestArm",
    "GAllocation",
    "LazyTrackAndStop",
    "LinGapE",
    "QuantileElimination",
    "QuantileLUCB",
    "SuccessiveElimination",
    "TrackAndStop",
    "XYAdaptive",
    "XYAllocation",
    "behind_filter",
    "complexity",
    "lower_bound",
    "optimal_design",
]
