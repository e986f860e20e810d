"""Type aliases for arrays."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Index"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]
"""Integers: counts, or positions in another array."""
