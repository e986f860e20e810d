"""Results of simulations, with their settings and versions, and their files."""

from tailproof.results.differences import PairwiseDifferences, RegretDifference
from tailproof.results.identification import Identification, Verdicts
from tailproof.results.many import SweepResult
from tailproof.results.regret import Curves, Result

__all__ = [
    "Curves",
    "Identification",
    "PairwiseDifferences",
    "RegretDifference",
    "Result",
    "SweepResult",
    "Verdicts",
]
