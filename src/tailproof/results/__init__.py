"""Results of simulations, with their settings and versions, and their files."""

from tailproof.results.identification import Identification, Verdicts
from tailproof.results.regret import Curves, Result

__all__ = ["Curves", "Identification", "Result", "Verdicts"]
