"""Tables and sentences as notebooks and papers show them."""

from collections.abc import Iterable, Sequence
from html import escape
from numbers import Real
from typing import TYPE_CHECKING

from tailproof.formatting import short

if TYPE_CHECKING:
    import pandas

__all__ = ["cells", "html", "latex"]

_SPECIAL = {char: f"\\{char}" for char in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "–": "--",
    "−": "$-$",
    "×": r"$\times$",
    "≤": r"$\le$",
}
"""Characters that mean something else in LaTeX, and characters that its fonts may lack."""


def cells(frame: "pandas.DataFrame", *index: str) -> list[list[str]]:
    """Return a data frame as text, with a header; `index` names the columns of its index."""
    header = [*index, *(str(name).replace("_", " ") for name in frame.columns)]
    rows = []
    for key, *row in frame.itertuples():
        names = map(str, key) if isinstance(key, tuple) else [str(key)]
        rows.append([*names, *(short(float(x)) if isinstance(x, Real) else str(x) for x in row)])
    return [header, *rows]


def latex(table: Sequence[Sequence[str]], caption: str | None, label: str | None) -> str:
    r"""Return a table, whose first row is the header, for LaTeX with booktabs.

    >>> print(latex([["policy", "mean"], ["a_1", "2 ± 1"]], None, None))
    \begin{tabular}{lr}
    \toprule
    policy & mean \\
    \midrule
    a\_1 & 2 $\pm$ 1 \\
    \bottomrule
    \end{tabular}
    """
    header, *rows = [" & ".join(map(_escaped, row)) + r" \\" for row in table]
    columns = "l" + "r" * (len(table[0]) - 1)
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", header, r"\midrule", *rows]
    lines += [r"\bottomrule", r"\end{tabular}"]
    if caption is not None:
        named = [] if label is None else [rf"\label{{{label}}}"]
        above = [r"\begin{table}", r"\centering", rf"\caption{{{_escaped(caption)}}}", *named]
        lines = [*above, *lines, r"\end{table}"]
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(char, char) for char in text)


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
