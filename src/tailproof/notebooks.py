"""Tables and sentences as notebooks show them."""

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["html"]


def html(cells: Sequence[Sequence[str]], sentences: Iterable[str] = ()) -> str:
    """Return a table, whose first row is the header, and sentences below it.

    >>> html([["arm"], ["<b>"]], ["It leads."])
    '<table><tr><th>arm</th></tr><tr><td>&lt;b&gt;</td></tr></table><p>It leads.</p>'
    """
    rows = [
        "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row)
        for tag, row in zip(["th", *["td"] * len(cells)], cells, strict=False)
    ]
    table = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table>{table}</table>" + "".join(f"<p>{escape(text)}</p>" for text in sentences)
