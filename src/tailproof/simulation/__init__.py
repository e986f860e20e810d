"""Environments, random streams, and the loops that play policies against them."""

from tailproof.simulation import environments
from tailproof.simulation.cells import Cell
from tailproof.simulation.identification import IdentificationPlan, identify
from tailproof.simulation.plan import Plan, simulate
from tailproof.simulation.sweeps import sweep

__all__ = ["Cell", "IdentificationPlan", "Plan", "environments", "identify", "simulate", "sweep"]
