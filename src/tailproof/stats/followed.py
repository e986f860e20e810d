"""Customers of an experiment that runs, from decisions as they get their outcomes."""

from dataclasses import dataclass, field

import numpy as np

from tailproof.stats.aims import Aim
from tailproof.stats.first_windows import FirstWindows
from tailproof.stats.histograms import FEWEST, Histogram
from tailproof.stats.stored import packed, unpacked
from tailproof.stats.uplift import OTHER, Decided, Flags, Worth
from tailproof.typing import Array

__all__ = ["Followed"]

_ALL_CELLS = 2**20
"""Cells in all histograms, 24 MB; with more than 64 arms each has fewer than 2¹⁴, at least 2¹²."""


@dataclass(eq=False)
class Followed:
    """Customers of an experiment that runs: each once, under the arm of its first request.

    A customer is a unit, with what it brought in its first window. Without units each request is
    another customer. The result does not depend on how decisions are split between calls, and takes
    memory for customers with an open window only.

    Parameters
    ----------
    aim : Aim

    Attributes
    ----------
    worth : Worth
        Whether the rule paid, and the cost of exploring.
    samples : list of Histogram
        The totals of the customers of each arm.
    by_arm : dict of arrays
        How many ``customers`` and ``buyers`` each arm has, and their ``revenue``.
    windows : FirstWindows
        The customers that are not counted yet.
    count, start : int
        Customers that are counted, and the outcome at which counting began; they and `worth` go on
        after a `restore`, with decisions that are gone.
    units, restored : bool
        Whether customers were named, and whether counts were restored.

    Examples
    --------
    >>> from tailproof import Mean
    >>> zeros, shop = np.zeros(3), Followed(Mean())
    >>> number, flag, reward = zeros.astype(int), zeros > 0, np.array([0.0, 20.0, 5.0])
    >>> rows = Decided(number, zeros + 1, zeros + 1, zeros, zeros, number, zeros, flag, reward,
    ...                np.zeros((3, 0), bool), zeros + 1)
    >>> shop.add_arms(1)
    >>> shop.add(rows, units=[None] * 3, again=flag, asked=zeros, length=zeros)
    >>> shop.count, shop.by_arm["buyers"].tolist(), shop.by_arm["revenue"].tolist()
    (3, [2.0], [25.0])
    """

    aim: Aim
    count: int = 0
    start: int = 0
    units: bool = False
    restored: bool = False
    worth: Worth = field(init=False)
    samples: list[Histogram] = field(default_factory=list)
    by_arm: dict[str, Array] = field(init=False)
    windows: FirstWindows = field(default_factory=FirstWindows)
    _brought: Histogram = field(default_factory=Histogram)

    def __post_init__(self) -> None:
        self.worth = Worth(self.aim)
        self.by_arm = {name: np.zeros(0) for name in ("customers", "buyers", "revenue")}

    @property
    def positive(self) -> bool:
        """Whether no customer brought less than zero, so that percentages mean something."""
        return all(len(sample.lows) == 0 or sample.lows[0] >= 0 for sample in self.samples)

    def add_arms(self, number: int) -> None:
        """Add so many arms; all arms together share the cells."""
        self.samples += [Histogram() for _ in range(number)]
        for sample in self.samples if number else ():
            sample.limit(max(FEWEST, _ALL_CELLS // len(self.samples)))
        for name, counts in self.by_arm.items():
            self.by_arm[name] = np.pad(counts, (0, number))

    def add(
        self, rows: Decided, *, units: list[str | None], again: Flags, asked: Array, length: Array
    ) -> None:
        """Add decisions with outcomes; the arguments are those of `FirstWindows.add`."""
        named = np.array([unit is not None for unit in units])
        drawn, rewards = np.where(rows.control_share > 0, rows.group, OTHER), rows.reward
        self.units |= bool(named.any())
        if self.units:
            again = again & named
            rows = self.windows.add(rows, units=units, again=again, asked=asked, length=length)
        known = ~np.isnan(rows.reward)
        if self.units or self.restored:
            self._brought.add(rows.reward[known & ((rows.group != OTHER) | (not self.units))])
        self.worth.add(rows)
        self.worth.add_rewards(drawn, rewards)
        self.count += len(rows.arm)
        arms, totals = rows.arm[known], rows.reward[known]
        for number in np.unique(arms).tolist():
            self.samples[number].add(totals[arms == number])
        np.add.at(self.by_arm["customers"], arms, 1)
        np.add.at(self.by_arm["buyers"], arms[totals != 0], 1)
        with np.errstate(invalid="ignore"):  # opposite infinities
            np.add.at(self.by_arm["revenue"], arms, totals)

    def until(self, outcomes: int) -> int:
        """Return the number of outcomes after which `settle` must be called next."""
        return self.start + self.worth.until(outcomes - self.start)

    def settle(self, outcomes: int, at: float) -> None:
        """Learn the range of rewards again, and keep an interval for the chart; see `Worth`."""
        self.worth.settle(outcomes - self.start, self._judged, at)

    @property
    def _judged(self) -> list[Histogram]:
        """All totals; those of the arms, where they are all that there are."""
        return [self._brought] if self.units or self.restored else self.samples

    def packed(self) -> bytes:
        """Return what "did it pay" needs to go on without the decisions so far."""
        brought = Histogram()
        for sample in self._judged:
            brought.join(sample)
        kept = {name: getattr(self, name) for name in ("count", "start", "units", "windows")}
        return packed(kept | {"aim": repr(self.aim), "worth": self.worth.state, "brought": brought})

    def restore(self, text: bytes) -> None:
        """Go on from packed counts, if they are for the same aim."""
        state = unpacked(text)
        if state["aim"] == repr(self.aim):
            self.worth, self._brought = Worth(self.aim, **state["worth"]), state["brought"]
            self.count, self.start, self.units = state["count"], state["start"], state["units"]
            self.windows, self.restored = state["windows"], True
