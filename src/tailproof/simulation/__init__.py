"""The loops that play policies in environments, for many paths at a time."""

from tailproof.simulation.identification import IdentificationPlan, identify
from tailproof.simulation.metrics import Snapshot
from tailproof.simulation.plan import Plan, simulate
from tailproof.simulation.sweeps import sweep

__all__ = ["IdentificationPlan", "Plan", "Snapshot", "identify", "simulate", "sweep"]
