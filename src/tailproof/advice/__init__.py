"""What recorded rewards say: who leads, how sure that is, and which policy to run next."""

from tailproof.advice.advice import Advice
from tailproof.advice.calibrating import Targets, calibrate

__all__ = ["Advice", "Targets", "calibrate"]
