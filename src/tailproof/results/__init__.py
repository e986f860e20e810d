"""Results of simulations, with their settings and versions, and their files."""

from tailproof.results.base import BaseResult
from tailproof.results.identification import Identification, Verdicts
from tailproof.results.provenance import provenance
from tailproof.results.regret import Curves, Difference, Result

__all__ = [
    "BaseResult",
    "Curves",
    "Difference",
    "Identification",
    "Result",
    "Verdicts",
    "provenance",
]
