"""Rows that cannot be read: refused with their lines, or left out and counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tailproof.typing import Index

if TYPE_CHECKING:
    from tailproof.tables.cells import Column

__all__ = ["Refusals"]

_SHOWN = 3
"""How many refused rows of a reason a sentence names."""


class Refusals:
    """One policy for every reader: the first kind of bad rows is an error, unless they are skipped.

    Parameters
    ----------
    where : callable
        Turns the number of a row into its place, such as "line 12".
    skip : bool
        Whether to leave bad rows out.

    Examples
    --------
    >>> refused = Refusals(lambda row: f"line {row + 2}", skip=True)
    >>> refused.rows([3, 5], "no arm")
    >>> refused.kept(8).tolist(), refused.sentence
    ([0, 1, 2, 4, 6, 7], '2 rows were left out: no arm in line 5, line 7.')
    >>> Refusals(lambda row: f"line {row + 2}", skip=False).rows([3], "no arm")
    Traceback (most recent call last):
    ValueError: no arm in line 5: mend it, or leave such rows out with skip_bad=True (--skip-bad)
    """

    def __init__(self, where: Callable[[int], str], *, skip: bool) -> None:
        self.where, self.skip = where, skip
        self._reasons: dict[int, tuple[str, str]] = {}

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
            count = f" ({len(shown)} in all)" if len(shown) > 1 else ""
            them = "them" if len(shown) > 1 else "it"
            raise ValueError(
                f"{reason} {self._places(shown)}{count}: mend {them}, or leave such rows out with "
                "skip_bad=True (--skip-bad)"
            )
        for row, text in shown.items():
            self._reasons.setdefault(row, (reason, text))

    def _places(self, shown: dict[int, str]) -> str:
        """Return where the first rows are, each with its value."""
        first = list(shown.items())[:_SHOWN]
        with_values = [f"{text} in {self.where(row)}" for row, text in first if text]
        return ", ".join(with_values) or f"in {', '.join(self.where(row) for row, _ in first)}"

    def kept(self, n: int) -> Index:
        """Return the rows that were not refused; an error if there are none."""
        mask: NDArray[np.bool_] = np.ones(n, dtype=np.bool_)
        mask[list(self._reasons)] = False
        if n and not mask.any():
            raise ValueError(f"no row can be read. {self.sentence}")
        return np.flatnonzero(mask)

    @property
    def sentence(self) -> str:
        """How many rows were left out, and the first rows of each reason; empty if none."""
        if not self._reasons:
            return ""
        shown: defaultdict[str, dict[int, str]] = defaultdict(dict)
        for row, (reason, text) in sorted(self._reasons.items()):
            shown[reason][row] = text
        parts = []
        for reason, of in shown.items():
            more = f" and {len(of) - _SHOWN:,} more" if len(of) > _SHOWN else ""
            parts.append(f"{reason} {self._places(of)}{more}")
        count = len(self._reasons)
        rows = "1 row was" if count == 1 else f"{count:,} rows were"
        return f"{rows} left out: {'; '.join(parts)}."
