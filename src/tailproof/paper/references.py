"""Figures computed independently of this code, and how to set a result beside them."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tailproof.paper.exhibit import final
from tailproof.results import Result

__all__ = ["FIGURES_2_3", "Row", "compare"]

FIGURES_2_3: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "df = 3": {
        "uniform": (797, 5),
        "MoM": (1348, 41),
        "CRT": (1493, 13),
        "MENU": (1015, 32),
        "TOFU": (1587, 26),
        "SupBMM": (560, 66),
        "SupBTC": (694, 60),
        "SupBMM_mom": (491, 275),
        "SupBTC_mom": (200, 68),
    },
    "df = 1": {
        "uniform": (797, 5),
        "MoM": (1723, 36),
        "CRT": (1826, 4),
        "MENU": (1763, 21),
        "TOFU": (1826, 4),
        "SupBMM": (1771, 21),
        "SupBTC": (1826, 4),
        "SupBMM_mom": (577, 310),
        "SupBTC_mom": (272, 63),
    },
}
"""Mean and standard deviation of the regret of 10 paths, computed independently of this code."""


class Row(NamedTuple):
    """One comparison with the reference."""

    policy: str
    mean: float
    deviation: float
    reference: float
    errors: float
    """The difference in standard errors, from both samples."""


def compare(result: Result, reference: Mapping[str, tuple[float, float]]) -> list[Row]:
    """Put the final regrets beside a reference of 10 paths, in standard errors."""
    rows = []
    for name, (mean, deviation) in reference.items():
        regret = final(result, name)
        own = float(np.std(regret, ddof=1))
        error = math.sqrt(own**2 / len(regret) + deviation**2 / 10)
        found = float(regret.mean())
        rows.append(Row(name, found, own, mean, (found - mean) / error))
    return rows
