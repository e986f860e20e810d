"""What a notebook shows of an agent."""

from typing import TYPE_CHECKING

from tailproof.live.journal import Journal
from tailproof.notebooks import html
from tailproof.tables import records

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["Shown"]


class Shown:
    """An agent as a table and a picture of its journal."""

    journal: Journal

    def to_frame(self) -> "pandas.DataFrame":
        """Return a row for each arm: requests, units, missing rewards, share of zeros, mean.

        >>> from tailproof import UCB1
        >>> from tailproof.live import Agent
        >>> agent = Agent(UCB1(), ":memory:")
        >>> agent.tell(agent.ask(["red", "blue"]).id, 3.5)
        'kept'
        >>> sorted(agent.to_frame()["rows"].tolist())
        [0, 1]
        """
        return records(self.journal).summary()

    def plot(self) -> "Figure":
        """Draw the share of each arm's rewards that are further from zero than z."""
        return records(self.journal).plot()

    def _repr_html_(self) -> str:
        if not list(self.journal.execute("SELECT 1 FROM request LIMIT 1")):
            return html([["arm"]], ["There are no requests yet."])
        return records(self.journal)._repr_html_()
