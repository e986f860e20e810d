"""Rows that cannot be read: refused with their lines, or left out and counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tailproof.typing import Index

if TYPE_CHECKING:
    from tailproof.tables.cells import Column

__all__ = ["Refusals"]

_SHOWN = 5
"""How many refused rows a sentence names."""


class Refusals:
    """One policy for every reader: the first kind of bad rows is an error, unless they are skipped.

    Parameters
    ----------
    where : callable
        From the number of a row to where it is, such as "line 12".
    skip : bool
        Whether to leave bad rows out.

    Examples
    --------
    >>> refused = Refusals(lambda row: f"line {row + 2}", skip=True)
    >>> refused.rows([3, 5], "no arm")
    >>> refused.kept(8).tolist(), refused.sentence
    ([0, 1, 2, 4, 6, 7], '2 rows were left out: line 5 (no arm), line 7 (no arm).')
    >>> Refusals(lambda row: f"line {row + 2}", skip=False).rows([3], "no arm")
    Traceback (most recent call last):
    ValueError: no arm in line 5: mend it, or leave such rows out with skip_bad=True (--skip-bad)
    """

    def __init__(self, where: Callable[[int], str], *, skip: bool) -> None:
        self.where, self.skip = where, skip
        self._reasons: dict[int, str] = {}

    def rows(self, rows: Sequence[int] | Index, reason: str) -> None:
        """Refuse rows for one reason."""
        self.refuse({int(row): "" for row in rows}, reason)

    def cells(self, column: Column, texts: Sequence[int], reason: str) -> None:
        """Refuse the rows of a column that have one of these texts, and show their texts."""
        if texts and column.codes is not None:
            rows = column.rows(texts).tolist()
            self.refuse({row: repr(column.texts[column.codes[row]]) for row in rows}, reason)

    def refuse(self, shown: dict[int, str], reason: str) -> None:
        """Refuse rows for one reason, each with its value."""
        if not shown:
            return
        if not self.skip:
            first = list(shown.items())[:3]
            words = ", ".join(f"{text} in {self.where(row)}" for row, text in first if text)
            words = words or f"in {', '.join(self.where(row) for row, _ in first)}"
            count = f" ({len(shown)} in all)" if len(shown) > 1 else ""
            them = "them" if len(shown) > 1 else "it"
            raise ValueError(
                f"{reason} {words}{count}: mend {them}, or leave such rows out with skip_bad=True "
                "(--skip-bad)"
            )
        for row, text in shown.items():
            self._reasons.setdefault(row, f"{reason} {text}".rstrip())

    def kept(self, n: int) -> Index:
        """Return the rows that were not refused; an error if there are none."""
        mask: NDArray[np.bool_] = np.ones(n, dtype=np.bool_)
        mask[list(self._reasons)] = False
        if n and not mask.any():
            raise ValueError(f"no row can be read. {self.sentence}")
        return np.flatnonzero(mask)

    @property
    def sentence(self) -> str:
        """How many rows were left out, and the first five; empty if none."""
        count = len(self._reasons)
        if not count:
            return ""
        first = [f"{self.where(row)} ({self._reasons[row]})" for row in sorted(self._reasons)]
        more = f" and {count - _SHOWN} more" if count > _SHOWN else ""
        rows = "1 row was" if count == 1 else f"{count} rows were"
        return f"{rows} left out: {', '.join(first[:_SHOWN])}{more}."
