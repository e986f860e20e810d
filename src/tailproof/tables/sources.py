"""What a table is made of before it is checked: named columns, and where each row is."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from difflib import get_close_matches

from tailproof.tables.cells import Column
from tailproof.tables.refusals import Refusals

__all__ = ["Arrays", "Source", "named"]

_SHOWN = 40
"""How many columns a message names."""


def named(wanted: Sequence[str], known: Sequence[str], *, exact: bool = False) -> str | None:
    """Return the first wanted name that a column has; unless `exact`, case does not matter.

    >>> named(["time", "at"], ["Arm", "at"]), named(["arm"], ["Arm"]), named(["arm"], ["price"])
    ('at', 'Arm', None)
    """
    there = next((name for name in wanted if name in known), None)
    if there is not None or exact:
        return there
    alike = {name.casefold(): name for name in known}
    return next((alike[name] for name in wanted if name in alike), None)


class Source(ABC):
    """A table whose columns can be loaded by name."""

    name: str = "the table"
    """What messages call it."""
    names: Sequence[str] = ()
    """Its columns."""
    journal: bool = False
    """Whether it is a journal of `tailproof.live`, whose choices followed rewards."""
    silence: float | None = None
    """The reward that the journal gives to a request that brought none."""

    @abstractmethod
    def load(self, wanted: Sequence[str], refusals: Refusals) -> dict[str, Column]:
        """Return some columns."""

    def where(self, row: int) -> str:
        """Return where a row is, counted from 0, in words."""
        return f"row {row + 1}"

    def prefer(self, wanted: Sequence[str]) -> None:
        """Take the part that has these columns, if there are several."""
        return

    def check(self, wanted: dict[str, str]) -> None:
        """Raise ``ValueError`` unless the column of every option is here, and once."""
        if not any(self.names):
            raise ValueError(f"{self.name} is empty")
        for option, column in wanted.items():
            count = list(self.names).count(column)
            if count > 1:
                raise ValueError(
                    f"{self.name} has {count} columns named {column}: rename all but one"
                )
            if not count:
                columns = ", ".join(self.names[:_SHOWN])
                close = get_close_matches(column, self.names, n=1)
                hint = f": did you mean {close[0]!r}?" if close else ""
                raise ValueError(
                    f"{option} must be one of the columns {columns} of {self.name}, "
                    f"got {column!r}{hint}"
                )


class Arrays(Source):
    """No table: all columns are given as arrays."""

    def load(self, wanted: Sequence[str], refusals: Refusals) -> dict[str, Column]:
        """Return nothing."""
        return {}

    def check(self, wanted: dict[str, str]) -> None:
        """Raise ``ValueError`` if a column is asked for by name."""
        for option, column in wanted.items():
            raise ValueError(f"{option} must be an array, as there is no table, got {column!r}")
