"""What was judged: a table, a picture, a page of text."""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tailproof.formatting import difference, interval, or_blank, p_value, short
from tailproof.notebooks import html

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["LOGGED", "Difference", "Judgement", "RuleValue", "Verdict"]

LOGGED = "as logged"
"""The name of the logged choices among the rules."""

Verdict = Literal["trust", "beware", "refused"]
_MARKS = {"trust": "o", "beware": "D", "refused": "x"}


class Difference(NamedTuple):
    """How much more a rule earns than another, with its interval and its p value.

    `p` is the one-sided p value of "it is not better", of a normal law with the standard error.
    """

    value: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class RuleValue:
    """What a rule would have earned.

    Attributes
    ----------
    estimate, low, high : float
        NaN if the answer is refused.
    verdict : str
        "trust", "beware" or "refused".
    reason : str
        Why it is not "trust", in a sentence.
    effective_size : float
        The number of rewards of the rule itself that would be as informative; NaN for a replay.
    mean_weight : float
        About one if propensities are right.
    largest_share : float
        The share of the variance that one row, or one unit, has.
    to_logged, to_control : Difference, optional
    horizon : int, optional
        For how many decisions a policy that learns was replayed.
    """

    estimate: float = math.nan
    low: float = math.nan
    high: float = math.nan
    verdict: Verdict = "trust"
    reason: str = ""
    effective_size: float = math.nan
    mean_weight: float = math.nan
    largest_share: float = math.nan
    to_logged: Difference | None = None
    to_control: Difference | None = None
    horizon: int | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Judgement:
    """What each rule would have earned on the traffic of a log.

    Attributes
    ----------
    values : dict
        A `RuleValue` for each rule, and for what was done (``"as logged"``).
    aim : str
    level : float
    interval : str
        "score", "exact" or "anytime".
    control : str, optional
        The rule that others are compared with, beside what was done.
    cap : tuple, optional
        The range to which rewards were cut for a capped mean.
    capped_by : str
        Who chose it: "rewards" or "totals" of the log, "bounds" that were named, or "given".
    rows : int
    unknown : float
        The share of rows without a reward.
    settings : dict
        How the log was taken: adaptive, units, estimated propensities, unknown rewards.

    Examples
    --------
    >>> import numpy as np, tailproof as tp
    >>> rng = np.random.default_rng(0)
    >>> arm = rng.integers(0, 2, 2000)
    >>> log = tp.records(
    ...     arm=np.array(["A", "B"])[arm], propensity=np.full(2000, 0.5),
    ...     reward=rng.standard_cauchy(2000) + arm,
    ... )
    >>> found = tp.judge(log, ["A", "B"], tp.Median(), control="A")
    >>> found["always B"].verdict, [round(x, 1) for x in found["always B"].to_control]
    ('trust', [0.9, 0.8, 1.1, 0.0])
    >>> print(found.text())
    What would each rule have earned? median, 2,000 rows, 95 % score intervals
    as logged   0.6132  0.4919 to 0.7201   trust
    always A   0.06323  -0.05624 to 0.157  trust
    always B     1.011   0.9017 to 1.109   trust
    as logged earns 0.55 more than always A (+0.4382 to +0.6618); evidence against no difference:
    p < 0.001, one-sided.
    always B earns 0.9479 more than always A (+0.7989 to +1.097); evidence against no difference:
    p < 0.001, one-sided.
    Each interval and p value is for its rule alone: of 2 rules that change nothing, about 0.1 would
    be called different.

    """

    values: dict[str, RuleValue]
    aim: str
    level: float
    interval: str
    control: str | None
    cap: tuple[float, float] | None
    rows: int
    unknown: float
    capped_by: str = "given"
    costs: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __getitem__(self, rule: str) -> RuleValue:
        return self.values[rule]

    def to_frame(self) -> "pandas.DataFrame":
        """Return a row for each rule, with the columns of `RuleValue`; differences are spread."""
        import pandas

        rows = []
        for name, value in self.values.items():
            row: dict[str, Any] = {"rule": name, **vars(value)}
            for other in ("to_logged", "to_control"):
                difference = row.pop(other) or Difference(*[math.nan] * 4)
                ends = (
                    ("", difference.value),
                    ("_low", difference.low),
                    ("_high", difference.high),
                )
                row |= {f"{other}{end}": number for end, number in ends}
                row[f"{other}_p"] = difference.p
            rows.append(row)
        return pandas.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON; None where there is no number."""

        def plain(value: Any) -> Any:
            if isinstance(value, float):
                return value if math.isfinite(value) else None
            if isinstance(value, Difference):
                return {name: plain(about) for name, about in value._asdict().items()}
            if isinstance(value, dict):
                return {name: plain(about) for name, about in value.items()}
            return [plain(about) for about in value] if isinstance(value, tuple | list) else value

        about = {name: plain(value) for name, value in vars(self).items() if name != "values"}
        rules = {name: plain(vars(value)) for name, value in self.values.items()}
        return about | {"rules": rules}

    @property
    def title(self) -> str:
        """The question, with the aim and the cap of the answer."""
        of = "per row," if self._rows_share_units else "of"
        cut = "" if self.cap is None else f" {of} {self._cap_words}"
        return (
            f"What would each rule have earned? {self.aim}{cut}, {_rows(self.rows)}, "
            f"{100 * self.level:.4g} % {self.interval} intervals"
        )

    @property
    def _rows_share_units(self) -> bool:
        """Whether some unit has several rows, so that its total is no row's reward."""
        units = self.settings.get("units")
        return units is not None and units < self.rows

    @property
    def _cap_words(self) -> str:
        """Say what the cap cuts, at which values, and who chose it."""
        assert self.cap is not None
        low, high = self.cap
        what = "totals of units" if self._rows_share_units else "rewards"
        if self.capped_by == "bounds":
            if self.settings.get("smallest") is not None:
                return f"{what} between {short(low)} and {short(high)}, as you said"
            least = f"at least {short(low)}, as here"
            return f"{what} of at most {short(high)}, as you said, and {least}"
        ends = f"at {short(high)}" if not low else f"at {short(low)} and {short(high)}"
        if self.capped_by not in ("rewards", "totals"):
            return f"rewards capped {ends}"
        return f"{what} capped {ends}, a quantile of this log"

    def cells(self) -> list[list[str]]:
        """Return a header and a row of words for each rule."""
        header = ["rule", "earns", f"{100 * self.level:.4g} %", "verdict", "worth", "to logged"]
        rows = [header + ([f"to {self.control}"] if self.control else [])]
        for name, value in self.values.items():
            size = "" if math.isnan(value.effective_size) else _rows(value.effective_size)
            if value.horizon:
                size = f"{value.horizon:,} decisions"
            ends = interval(value.low, value.high)
            row = [name, or_blank(value.estimate), ends, value.verdict, size]
            others = [value.to_logged] + ([value.to_control] if self.control else [])
            row += [difference(x.value, x.low, x.high) if x else "" for x in others]
            rows.append(row)
        return rows

    def text(self) -> str:
        """Return a page of text."""
        shown = [
            [name, or_blank(value.estimate), interval(value.low, value.high), value.verdict]
            for name, value in self.values.items()
        ]
        widths = [max(len(row[i]) for row in shown) for i in range(3)]
        lines = [self.title]
        for name, estimate, ends, verdict in shown:
            pad = f"{name:<{widths[0]}}  {estimate:>{widths[1]}}  {ends:^{widths[2]}}"
            lines.append(f"{pad}  {verdict}")
        return "\n".join([*lines, *self.sentences()])

    def sentences(self) -> list[str]:
        """Return sentences on the rules: why some are doubted, and which are better."""
        sentences = [
            f"{name}: {value.verdict}, {value.reason}."
            for name, value in self.values.items()
            if value.reason
        ]
        if self.settings.get("estimated_propensities"):
            sentences.append(
                "Propensities were estimated from counts: all of this holds if arms were drawn at "
                "random."
            )
        sentences += self.notes
        compared = 0
        for name, value in self.values.items():
            to, other = value.to_control, self.control
            if self.control is None:
                to, other = value.to_logged, "what was done"
            if to is None or math.isnan(to.low) or value.verdict == "refused":
                continue
            verb, word = "costs" if self.costs else "earns", "less" if to.value < 0 else "more"
            compared += 1
            sentences.append(
                f"{name} {verb} {abs(to.value):,.4g} {word} than {other} "
                f"({to.low:+,.4g} to {to.high:+,.4g}); "
                f"evidence against no difference: {p_value(min(to.p, 1 - to.p))}, one-sided."
            )
        if compared > 1:
            sentences.append(
                f"Each interval and p value is for its rule alone: of {compared} rules that change "
                f"nothing, about {compared * (1 - self.level):.2g} would be called different."
            )
        return sentences

    def _repr_html_(self) -> str:
        return html(self.cells(), [self.title, *self.sentences()])

    def plot(self) -> "Figure":
        """Draw each rule with its interval, and the difference to control or to what was done."""
        from tailproof.drawing import PALETTE, canvas

        names = list(self.values)[::-1]
        height = 1.1 + 0.32 * len(names)
        figure, ((left, right),) = canvas(1, 2, height=height, share=False)
        logged = self.values[LOGGED].estimate
        if math.isfinite(logged):
            left.axvline(logged, color="0.6", linestyle="--", linewidth=0.8)
        right.axvline(0, color="0.6", linestyle="--", linewidth=0.8)
        for place, name in enumerate(names):
            value = self.values[name]
            other = value.to_control if self.control else value.to_logged
            for axes, ends in ((left, value), (right, other)):
                middle = getattr(ends, "estimate", getattr(ends, "value", math.nan))
                if ends is None or not math.isfinite(middle):
                    continue
                colour = PALETTE[0] if value.verdict == "trust" else PALETTE[1]
                fill = colour if value.verdict == "trust" else "white"
                if math.isfinite(ends.low) and math.isfinite(ends.high):
                    axes.plot([ends.low, ends.high], [place, place], color=colour, linewidth=1.6)
                axes.plot(
                    middle,
                    place,
                    _MARKS[value.verdict],
                    color=colour,
                    markerfacecolor=fill,
                    markersize=5,
                )
            if value.verdict == "refused":
                left.text(
                    0.5,
                    place,
                    "refused",
                    transform=left.get_yaxis_transform(),
                    ha="center",
                    va="center",
                    fontsize=8,
                    color="0.4",
                )
        left.set_yticks(range(len(names)), names, fontsize=8, parse_math=False)
        right.set_yticks(range(len(names)), [])
        for axes in (left, right):
            axes.set_ylim(-0.6, len(names) - 0.4)
        left.set_xlabel(f"earned: {self.aim}", fontsize=9)
        right.set_xlabel(f"more than {self.control or 'what was done'}", fontsize=9)
        kinds = {value.verdict for value in self.values.values()}
        note = "  ◇ beware, see the reasons" if "beware" in kinds else ""
        figure.suptitle(f"{100 * self.level:.4g} % {self.interval} intervals{note}", fontsize=9)
        return figure


def _rows(count: float) -> str:
    return f"{count:,.0f} row" + ("" if round(count) == 1 else "s")
