# Written by `make stubs` from the files of tailproof.bestarm: do not edit.

from tailproof.bestarm.alba import ALBA
from tailproof.bestarm.allocation import GAllocation
from tailproof.bestarm.allocation import XYAllocation
from tailproof.bestarm.base import BestArm
from tailproof.bestarm.behind_filter import behind_filter
from tailproof.bestarm.design import complexity
from tailproof.bestarm.design import lower_bound
from tailproof.bestarm.heavy_track_and_stop import HeavyTrackAndStop
from tailproof.bestarm.lazy_track_and_stop import LazyTrackAndStop
from tailproof.bestarm.lin_gap_e import LinGapE
from tailproof.bestarm.quantile_elimination import QuantileElimination
from tailproof.bestarm.quantile_lucb import QuantileLUCB
from tailproof.bestarm.rage import RAGE
from tailproof.bestarm.successive_elimination import SuccessiveElimination
from tailproof.bestarm.track_and_stop import TrackAndStop
from tailproof.bestarm.xy_adaptive import XYAdaptive
from tailproof.stats.designs import optimal_design

__all__ = [
    "ALBA",
    "BestArm",
    "GAllocation",
    "HeavyTrackAndStop",
    "LazyTrackAndStop",
    "LinGapE",
    "QuantileElimination",
    "QuantileLUCB",
    "RAGE",
    "SuccessiveElimination",
    "TrackAndStop",
    "XYAdaptive",
    "XYAllocation",
    "behind_filter",
    "complexity",
    "lower_bound",
    "optimal_design",
]
