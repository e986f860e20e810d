"""`Records`: checked rows of arms and rewards, with times, units, propensities and features."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tailproof.formatting import short
from tailproof.notebooks import html
from tailproof.typing import Array, Index

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["Records"]

_GROUPS = 20
"""The most groups that a model tells apart."""
_BY_ROW = (
    "arm",
    "reward",
    "unit",
    "time",
    "propensity",
    "propensities",
    "offered",
    "features",
    "vectors",
    "group",
    "status",
    "weight",
)
"""The attributes with an entry for each row."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Records:
    """Rows of an arm and its reward, in the order of time. `tailproof.records` makes one.

    Attributes
    ----------
    arms : tuple of str
        The names of the K arms; one empty name if the rows have none.
    arm : array of shape (n,)
        The number of each row's arm.
    reward : array of shape (n,)
        NaN if it is not known.
    unit : array of shape (n,), optional
        Rows with the same number are of the same customer, or were decided together.
    time : array of shape (n,), optional
        Seconds since 1970, or numbers as they were given.
    propensity : array of shape (n,), optional
        The probability with which the arm was chosen.
    propensities : array of shape (n, K), optional
        The same for every arm.
    estimated : bool
        Whether propensities were estimated from counts.
    offered : array of shape (n, K), optional
        Which arms could have been chosen; all if it is None.
    features : array of shape (n, d), optional
    names : tuple of str
        The names of the features.
    vectors : array of shape (n, K, d), optional
        The features of each arm, if arms have their own; `features` has then the features that
        vary.
    group : array of shape (n,), optional
        The group of each visitor, as text.
    status : array of shape (n,), optional
        What became of the row, as text: told, silent, lost, …
    weight : array of shape (n,), optional
        How many rows of the source a row stands for; its reward is their sum.
    rows : Records, optional
        If rows are sums, the arms and rewards of the rows behind them.
    twice : int
        If rows are sums, how many rows with a purchase occur twice.
    adaptive : bool, optional
        Whether propensities depend on earlier rewards; None if that is not known.
    floor : float, optional
        The least propensity that an offered arm can have.
    notes : tuple of str
        What was left out or changed on the way, as sentences.

    Examples
    --------
    >>> import tailproof as tp
    >>> table = tp.records(arm=["A", "B", "A"], reward=[0, 3.5, None], unit=["u", "v", "u"])
    >>> table.arms, table.arm.tolist(), table.unit.tolist(), table.unknown
    (('A', 'B'), [0, 1, 0], [0, 1, 0], 0.3333333333333333)
    >>> print(table)
    3 rows of 2 arms, 2 units; 1 reward is missing
    """

    arms: tuple[str, ...]
    arm: Index
    reward: Array
    unit: Index | None = None
    time: Array | None = None
    propensity: Array | None = None
    propensities: Array | None = None
    estimated: bool = False
    offered: NDArray[np.bool_] | None = None
    features: Array | None = None
    names: tuple[str, ...] = ()
    vectors: Array | None = None
    group: NDArray[Any] | None = None
    status: NDArray[Any] | None = None
    weight: Array | None = None
    rows: "Records | None" = None
    twice: int = 0
    adaptive: bool | None = None
    floor: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.arm)

    @property
    def unknown(self) -> float:
        """The share of rows whose reward is not known."""
        return float(np.isnan(self.reward).mean())

    @cached_property
    def contexts(self) -> tuple[tuple[str, ...], Array | None]:
        """Names and values of what models see: features, and whether a visitor is of a group."""
        parts = [] if self.features is None else [self.features]
        names = self.names
        if self.group is not None:
            groups, place = np.unique(self.group.astype(str), return_inverse=True)
            often = np.argsort(-np.bincount(place), kind="stable")[:_GROUPS]
            some = often[: len(groups) - 1]  # the last one is all others
            parts.append((place[:, None] == some).astype(np.float64))
            names += tuple(f"group {groups[i]}" for i in some)
        return names, np.concatenate(parts, axis=1) if parts else None

    @property
    def known_propensity(self) -> Array:
        """The propensities of the chosen arms; an error if there are none."""
        if self.propensity is None:
            raise ValueError("propensities are needed: pass propensity=")
        return self.propensity

    @property
    def samples(self) -> list[Array]:
        """The known rewards of each arm that has some."""
        rewarded = ~np.isnan(self.reward)
        samples = [self.reward[rewarded & (self.arm == a)] for a in range(len(self.arms))]
        return [sample for sample in samples if len(sample)]

    def take(self, rows: Any) -> "Records":
        """Return the records with some of their rows."""
        parts: dict[str, Any] = {
            name: value[rows] for name in _BY_ROW if (value := getattr(self, name)) is not None
        }
        if self.unit is not None:
            parts["unit"] = numbered(self.unit[rows])
        return replace(self, **parts)

    def filled(self, reward: Array) -> "Records":
        """Return the records with other rewards."""
        return replace(self, reward=reward)

    def to_frame(self) -> "pandas.DataFrame":
        """Return a table with a row for each row, that `tailproof.records` reads again."""
        import pandas

        columns: dict[str, Any] = {"arm": np.array(self.arms, dtype=object)[self.arm]}
        if self.arms == ("",):
            columns = {}
        names = ("reward", "unit", "time", "propensity", "group", "status", "weight")
        columns |= {name: x for name in names if (x := getattr(self, name)) is not None}
        if self.features is not None:
            columns |= {f"x:{name}": x for name, x in zip(self.names, self.features.T, strict=True)}
        return pandas.DataFrame(columns)

    def summary(self) -> "pandas.DataFrame":
        """Return a row for each arm: rows, units, missing rewards, share of zeros, mean, largest.

        >>> import tailproof as tp
        >>> tp.records(arm=list("ABAB"), reward=[0, 2, 4, None]).summary()
               rows  missing  zeros  mean  largest
        arm
        A         2        0    0.5   2.0      4.0
        B         2        1    0.0   2.0      2.0
        """
        import pandas

        table = []
        for number, name in enumerate(self.arms):
            of_arm = self.arm == number
            rewards = self.reward[of_arm & ~np.isnan(self.reward)]
            with np.errstate(invalid="ignore", over="ignore"):
                mean = float(rewards.mean()) if len(rewards) else math.nan
            row: dict[str, Any] = {"arm": name or "all", "rows": int(of_arm.sum())}
            if self.unit is not None:
                row["units"] = len(np.unique(self.unit[of_arm]))
            row["missing"] = row["rows"] - len(rewards)
            row["zeros"] = float((rewards == 0).mean()) if len(rewards) else math.nan
            row |= {"mean": mean, "largest": float(rewards.max()) if len(rewards) else math.nan}
            table.append(row)
        return pandas.DataFrame(table).set_index("arm")

    def plot(self) -> "Figure":
        """Return a picture: for each arm, the share of rewards that are at least as large."""
        from tailproof.tables.drawing import records_figure

        figure: Figure = records_figure(self)
        return figure

    def __str__(self) -> str:
        count, several = len(self.arms), "s" if len(self.arms) > 1 else ""
        rows = "rows" if self.weight is None else f"sums of {self.weight.sum():,.0f} rows"
        about = f"{self.n} {rows}" + ("" if self.arms == ("",) else f" of {count} arm{several}")
        if self.unit is not None:
            about += f", {int(self.unit.max()) + 1 if self.n else 0} units"
        if missing := int(np.isnan(self.reward).sum()):
            rewards = "reward is" if missing == 1 else "rewards are"
            about += f"; {missing} {rewards} missing"
        return "\n".join([about, *self.notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        frame = self.summary().reset_index()
        rows = [[short(x) if isinstance(x, float) else str(x) for x in row] for row in frame.values]
        return html([list(map(str, frame.columns)), *rows], str(self).split("\n"))


def numbered(values: Any) -> Index:
    """Return the number of each value, in the order in which they come; −1 if missing."""
    import pandas

    codes: Index = pandas.factorize(np.asarray(values))[0].astype(np.int64)
    return codes
