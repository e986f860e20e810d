"""The bars of ``make bench-worlds``, a line each, and the cells that they are read from."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from scipy import special
from world_cells import Cell, Events

Measured = list[tuple[Cell, Events]]
HEAVY = "wholesale: 20", "extreme: 10"


class Bar(NamedTuple):
    """A bar: which cells count, and the figure of a cell.

    `at_most` or `at_least` is what the worst cell must keep to.
    """

    words: str
    part: tuple[str, ...]
    names: tuple[str, ...]
    figure: Callable[[Events], float | None]
    at_most: float | None = None
    at_least: float | None = None


def bounds(hits: int, runs: int) -> tuple[float, float]:
    """Return exact 99 % bounds on a rate."""
    low = float(special.betaincinv(hits, runs - hits + 1, 0.005)) if hits else 0.0
    return low, float(special.betaincinv(hits + 1, runs - hits, 0.995)) if hits < runs else 1.0


def rate(events: Events) -> float:
    """Return the rate of wrong runs."""
    return events["wrong"] / events["runs"]


def of_trusted(events: Events) -> float | None:
    """Return the share of trusted intervals that miss; None if none was trusted."""
    return events["wrong"] / events["trusted"] if events["trusted"] else None


def of_welch(events: Events) -> float | None:
    """Return how often it is sure, as a share of a planned test on totals."""
    return events["sure"] / events["Welch"] if events["Welch"] else None


def width(events: Events) -> float | None:
    """Return the mean width over that of the delta method."""
    return events["width"] / events["width of"] if events["width of"] else None


def told(events: Events) -> float:
    """Return how often it was said."""
    return events["told"] / events["runs"]


def seconds(events: Events) -> float | None:
    """Return the mean CPU time."""
    return 5 * events["CPU, of 5 s"] / events["CPU, of 5 s of"]


BARS = (
    Bar(
        "A/A, wholesale and extreme, calibrate with units", ("calibrate", "file"), HEAVY, rate, 0.05
    ),
    Bar("A/A, live, 20 looks", ("live", "again"), ("20",), rate, 0.05),
    Bar(
        "sure of the wrong arm, rare and dear",
        ("file", "rare", "calibrate"),
        ("rare and",),
        rate,
        0.03,
    ),
    Bar(
        "ramped shares, an arm added midway, time told",
        ("calibrate", "file"),
        ("share 5", "midway"),
        rate,
        0.05,
    ),
    Bar(
        "arms shown at night, on weekends, by a policy's day",
        ("calibrate",),
        ("shown", "shares set", "90 %"),
        rate,
        0.05,
    ),
    Bar("trusted means of few prices that miss", ("judge",), ("9.99",), of_trusted, 0.05),
    Bar(
        "+30 %, 60 000 visits: sure over Welch on totals",
        ("power",),
        ("+30%",),
        of_welch,
        None,
        0.95,
    ),
    Bar("judge: width over the delta method", ("judge",), ("ordinary", "resellers"), width, 1.2),
    Bar(
        "a loss that the cap hides, shown beside 'it paid'",
        ("pay",),
        ("hides a loss",),
        told,
        None,
        1.0,
    ),
    Bar("three arms against a control (Holm)", ("control",), ("",), rate, 0.05),
    Bar("a location advised where aims disagree", ("location",), ("",), rate, 0.05),
    Bar("calibrate, 10⁶ rows, CPU seconds", ("speed",), ("",), seconds, 5.0),
)


def bar_lines(measured: Measured) -> Iterator[str]:
    """Yield a line for each bar: the worst cell, its figure, and whether it keeps to the bar.

    A rate above its bar whose exact bounds hold the bar is open, as in the table.
    """
    for bar in BARS:
        found = []
        for cell, events in measured:
            named = any(name in cell.name for name in bar.names) and "broken" not in cell.name
            named |= bar.figure is told and cell.part in bar.part and bar.names[0] in cell.name
            if cell.part in bar.part and named and events["runs"]:
                figure = bar.figure(events)
                if figure is not None:
                    lowest = bounds(events["wrong"], events["runs"])[0]
                    found.append((figure, cell.name, lowest))
        if not found:
            yield f"{bar.words}: not measured"
            continue
        figure, name, least = max(found) if bar.at_most is not None else min(found)
        limit = bar.at_least if bar.at_most is None else bar.at_most
        assert limit is not None
        good = figure <= limit if bar.at_most is not None else figure >= limit
        sign, mark = "≤" if bar.at_most is not None else "≥", "yes" if good else "NO"
        if not good and bar.figure is rate and least <= limit:
            mark = "open"
        worst = f"{len(found)} cells, worst: {name}"
        yield f"{bar.words}: {figure:.3g} {sign} {limit:g} {mark} ({worst})"
