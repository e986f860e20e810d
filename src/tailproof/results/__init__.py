"""What simulations found: frozen values with provenance, and their files."""

from tailproof.results.identification import Identification, Verdicts
from tailproof.results.provenance import provenance
from tailproof.results.regret import Curves, Difference, Result

__all__ = ["Curves", "Difference", "Identification", "Result", "Verdicts", "provenance"]
