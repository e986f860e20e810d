# Written by `make stubs` from the files of tailproof.wrappers: do not edit.

from tailproof.wrappers import compositions
from tailproof.wrappers.auto import AutoFiltered
from tailproof.wrappers.base import Wrapped
from tailproof.wrappers.base import Wrapper
from tailproof.wrappers.capped import Capped
from tailproof.wrappers.filtered import Filtered
from tailproof.wrappers.from_regret import FromRegret
from tailproof.wrappers.intercept import Intercept
from tailproof.wrappers.negated import Negated
from tailproof.wrappers.renewed import Renewed
from tailproof.wrappers.scaled import Scaled
from tailproof.wrappers.vigilant import Vigilant

__all__ = [
    "AutoFiltered",
    "Capped",
    "Filtered",
    "FromRegret",
    "Intercept",
    "Negated",
    "Renewed",
    "Scaled",
    "Vigilant",
    "Wrapped",
    "Wrapper",
    "compositions",
]
