"""The results of a sweep, by the names of its plans."""

from typing import TYPE_CHECKING, TypeVar, Unpack

from tailproof.drawing import PlotOptions
from tailproof.notebooks import html, latex
from tailproof.results.regret import Result

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["SweepResult"]

R = TypeVar("R")


class SweepResult(dict[str, R]):
    """A dictionary of results, `Result` or `Identification`, that is one table and one picture.

    >>> from tailproof import OFUL, Plan, environments, noise, sweep
    >>> bandits = {df: environments.neutral(noise.StudentT(df), arms=5, dim=3) for df in (3, 1)}
    >>> results = sweep({
    ...     f"df = {df}": Plan(policies={"OFUL": OFUL()}, environment=bandit, horizon=100, paths=10)
    ...     for df, bandit in bandits.items()
    ... }, engine="serial")
    >>> results
    <SweepResult of 2 plans: df = 3, df = 1>
    >>> list(results.to_frame().index)
    [('df = 3', 'OFUL'), ('df = 1', 'OFUL')]
    """

    def to_frame(self) -> "pandas.DataFrame":
        """Return the summary as a table with a row for each plan and policy; needs pandas."""
        import pandas

        frames = {name: result.to_frame() for name, result in self._results().items()}
        return pandas.concat(frames, names=["plan", "policy"])

    def plot(self, **options: Unpack[PlotOptions]) -> "Figure":
        """Draw a panel for each plan; options as for `tailproof.figures.regret_figure`."""
        from tailproof.results.drawing import regret_figure

        regrets = {name: result for name, result in self.items() if isinstance(result, Result)}
        if len(regrets) < len(self):
            raise ValueError("plot draws regrets; for best arms use tailproof.figures.pulls_figure")
        return regret_figure(regrets, **options)

    def to_latex(self, caption: str | None = None, label: str | None = None) -> str:
        """Return the summary as a table for LaTeX with the package booktabs."""
        return latex(self._cells(), caption, label)

    def __repr__(self) -> str:
        names = ", ".join(list(self)[:8]) + (", …" if len(self) > 8 else "")
        return f"<SweepResult of {len(self)} plans: {names}>"

    def _repr_html_(self) -> str:
        return html(self._cells())

    def _cells(self) -> list[list[str]]:
        table: list[list[str]] = []
        for name, result in self._results().items():
            header, *rows = result._cells()
            table = table or [["plan", *header]]
            table += [[name, *row] for row in rows]
        return table or [["plan"]]

    def _results(self) -> dict[str, Result]:
        """Return the results, all of which have a table."""
        return dict(self)  # type: ignore[arg-type]
