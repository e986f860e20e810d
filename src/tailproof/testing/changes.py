"""Changes of all rewards that a policy may declare to be harmless."""

from collections.abc import Callable

import numpy as np

from tailproof.typing import Array

__all__ = ["CHANGES"]

CHANGES: dict[str, list[Callable[[Array], Array]]] = {
    "units": [lambda x: x / 1024, lambda x: x * 2.0**40],
    "offset": [lambda x: x + 10_000, lambda x: x - 2.0**20],
}
CHANGES["increasing"] = [
    *(change for changes in CHANGES.values() for change in changes),
    lambda x: 3 * x + 7,
    lambda x: x**3,
    np.exp,
    np.arctan,
]
