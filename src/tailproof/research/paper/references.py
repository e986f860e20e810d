"""Regrets computed independently of this code, and the comparison with ours."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tailproof.research.paper.claims import final
from tailproof.results import Result

__all__ = ["FIGURES_2_3", "REFERENCES", "ReferenceRow", "compare"]

_REGRETS = {
    "uniform": ((797, 5), (797, 5)),
    "MoM": ((1348, 41), (1723, 36)),
    "CRT": ((1493, 13), (1826, 4)),
    "MENU": ((1015, 32), (1763, 21)),
    "TOFU": ((1587, 26), (1826, 4)),
    "SupBMM": ((560, 66), (1771, 21)),
    "SupBTC": ((694, 60), (1826, 4)),
    "SupBMM_mom": ((491, 275), (577, 310)),
    "SupBTC_mom": ((200, 68), (272, 63)),
}
FIGURES_2_3: Mapping[str, Mapping[str, tuple[float, float]]] = {
    noise: {name: regrets[i] for name, regrets in _REGRETS.items()}
    for i, noise in enumerate(("df = 3", "df = 1"))
}
"""Mean and standard deviation of the regret of 10 paths, by result and policy."""
REFERENCES = {"2-3": FIGURES_2_3}
"""By study."""


class ReferenceRow(NamedTuple):
    """Our regret next to the reference."""

    policy: str
    mean: float
    deviation: float
    reference: float
    errors: float
    """The difference in standard errors, from both samples."""


def compare(result: Result, reference: Mapping[str, tuple[float, float]]) -> list[ReferenceRow]:
    """Compare the final regrets with a reference of 10 paths."""
    rows = []
    for name, (mean, deviation) in reference.items():
        regret = final(result, name)
        our_deviation = float(np.std(regret, ddof=1))
        error = math.sqrt(our_deviation**2 / len(regret) + deviation**2 / 10)
        our_mean = float(regret.mean())
        rows.append(ReferenceRow(name, our_mean, our_deviation, mean, (our_mean - mean) / error))
    return rows
