"""A figure that notebooks show by themselves, with fonts that journals take."""

from io import BytesIO
from typing import Any

from matplotlib import rc_context, rcParams
from matplotlib.figure import Figure

__all__ = ["NotebookFigure"]

_SCREEN = 96
"""Pixels of an inch, as browsers count them."""


class NotebookFigure(Figure):
    """A Matplotlib figure that a notebook draws without ``%matplotlib inline``.

    PDF and PostScript get TrueType fonts (type 42), since many venues refuse Matplotlib's type 3.

    >>> NotebookFigure(figsize=(1, 1))._repr_png_()[1]
    {'width': 96, 'height': 96}
    """

    def savefig(self, *args: Any, **kwargs: Any) -> None:
        """Save the figure as Matplotlib does; `pdf.fonttype` and `ps.fonttype` 3 become 42."""
        fonts: Any = {"pdf.fonttype": 42, "ps.fonttype": 42}
        chosen: Any = rcParams
        with rc_context({name: kind for name, kind in fonts.items() if chosen[name] == 3}):
            super().savefig(*args, **kwargs)

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        stream = BytesIO()
        self.savefig(stream, format="png")
        width, height = (round(_SCREEN * inches) for inches in self.get_size_inches())
        return stream.getvalue(), {"width": width, "height": height}
