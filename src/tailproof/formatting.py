"""Numbers, times and lists as sentences and tables show them, and names in their usual order."""

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime

__all__ = [
    "amount",
    "brief",
    "clock",
    "difference",
    "gigabytes",
    "interval",
    "json_number",
    "listed",
    "moment",
    "natural_key",
    "odds",
    "often",
    "or_blank",
    "p_value",
    "percent",
    "plus_minus",
    "rounded",
    "several",
    "short",
    "signed",
    "three_digits",
    "two_digits",
    "with_sign",
]


def several(count: int, noun: str) -> str:
    """Return a number with its noun.

    >>> several(1, "feature"), several(3, "feature")
    ('1 feature', '3 features')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def two_digits(x: float) -> float:
    """Round to two digits, as a forecast deserves.

    >>> two_digits(123_456)
    120000.0
    """
    return float(f"{x:.2g}")


def short(x: float) -> str:
    """Return four digits, or all before the point of a large number.

    >>> short(3.14159), short(1_234_567.8), short(2e12)
    ('3.142', '1,234,568', '2e+12')
    """
    return f"{x:,.0f}" if 1e4 <= abs(x) < 1e9 else f"{x:.4g}"


def plus_minus(mean: str, error: str) -> str:
    """Return a mean with its standard error, which one value does not have.

    >>> plus_minus("1.5", "0.2"), plus_minus("1.5", "nan")
    ('1.5 ± 0.2', '1.5')
    """
    return mean if error == "nan" else f"{mean} ± {error}"


def with_sign(x: float) -> str:
    """Return `short` with a sign, as the ends of a difference have.

    >>> with_sign(3.14159), with_sign(-0.2), with_sign(0.0)
    ('+3.142', '-0.2', '0')
    """
    return f"+{short(x)}" if x > 0 else short(x)


def listed(names: Sequence[str]) -> str:
    """Return names as an English list, the first three of many.

    >>> listed(["a"]), listed(["a", "b", "c"]), listed(list("abcdef"))
    ('a', 'a, b and c', 'a, b, c and 3 more')
    """
    shown = [*names] if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def or_blank(value: float) -> str:
    """Return a number with four digits, and an empty text for NaN.

    >>> or_blank(1234.56), or_blank(math.nan)
    ('1,235', '')
    """
    return "" if math.isnan(value) else f"{value:,.4g}"


def interval(low: float, high: float) -> str:
    """Return the ends of an interval, and an empty text for NaN."""
    return "" if math.isnan(low) else f"{low:,.4g} to {high:,.4g}"


def difference(value: float, low: float, high: float) -> str:
    """Return a difference with its interval, and an empty text for NaN.

    >>> difference(0.5, -1, 2)
    '+0.5 (-1 to +2)'
    """
    return "" if math.isnan(low) else f"{value:+,.3g} ({low:+,.3g} to {high:+,.3g})"


def p_value(p: float) -> str:
    """Return a p value with two digits, at least 0.001.

    >>> p_value(0.0123), p_value(1e-9)
    ('p = 0.012', 'p < 0.001')
    """
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def percent(share: float) -> str:
    """Return a share in per cent; only a share of exactly 1 is 100%.

    >>> percent(0.964), percent(0.998), percent(1.0)
    ('96%', 'more than 99%', '100%')
    """
    return "more than 99%" if 0.995 <= share < 1 else f"{share:.0%}"


def brief(value: float) -> str:
    """Return a number in few digits.

    >>> brief(0.0123), brief(12.34), brief(1234.5), brief(float("nan"))
    ('0.012', '12', '1234', '–')
    """
    if math.isnan(value):
        return "–"
    return f"{value:.2g}" if abs(value) < 99.5 else f"{value:.0f}"


def three_digits(x: float) -> str:
    """Return three digits, with the signs of typography.

    >>> three_digits(-0.01234), three_digits(1234.5), three_digits(math.inf)
    ('−0.0123', '1234', '∞')
    """
    text = f"{x:.0f}" if 100 <= abs(x) < math.inf else f"{x:.3g}"
    return text.replace("-", "−").replace("inf", "∞")


def rounded(x: float) -> float:
    """Round to three digits, for code that is read and typed."""
    return float(f"{min(x, 1e300):.3g}") or 1.0


def amount(x: float) -> str:
    """Return a number with three digits, whole if it is large.

    >>> amount(0.12345), amount(-1234567.8), amount(math.inf)
    ('0.123', '−1,234,568', '∞')
    """
    if math.isinf(x):
        return "∞" if x > 0 else "−∞"
    size = abs(x)
    return ("−" if x < 0 else "") + (f"{size:,.0f}" if size >= 1000 else f"{size:.3g}")


def signed(x: float) -> str:
    """Return a rounded percentage with its sign.

    >>> signed(14.6), signed(-0.2), signed(0)
    ('+15', '−0.2', '0')
    """
    text = f"{abs(x):.2g}" if abs(x) < 10 else f"{abs(x):,.0f}"
    return text if float(text.replace(",", "")) == 0 else ("−" if x < 0 else "+") + text


def moment(at: float) -> str:
    """Return seconds since 1970 as a date and time in UTC.

    >>> moment(0)
    '1970-01-01 00:00:00+00:00'
    """
    return datetime.fromtimestamp(at, UTC).isoformat(" ", "seconds")


def clock(seconds: float) -> str:
    """Return minutes and seconds.

    >>> clock(75.4), clock(7200)
    ('1:15', '2:00:00')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def gigabytes(size: float) -> str:
    """Return a size in words.

    >>> gigabytes(24e9)
    '22.4 GiB'
    """
    return f"{size / 2**30:.3g} GiB"


def json_number(x: float) -> float | str | None:
    """Return a number as JSON allows: None for NaN, strings for infinities.

    >>> json_number(0.5), json_number(-math.inf), json_number(math.nan)
    (0.5, '-Infinity', None)
    """
    if math.isfinite(x):
        return x
    return None if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"


def often(count: int) -> str:
    """Return how often something happened.

    >>> often(1), often(2000)
    ('once', '2,000 times')
    """
    return "once" if count == 1 else f"{count:,} times"


def odds(p: float) -> str:
    """Return a small probability in words.

    >>> odds(1e-4), odds(1e-12)
    ('one of 10,000 files', 'less than one of a billion files')
    """
    if p < 1e-9:
        return "less than one of a billion files"
    return f"one of {1 / p:,.0f} files"


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key that puts 10 after 9.

    >>> sorted(["a10", "a9", "b"], key=natural_key)
    ['a9', 'a10', 'b']
    """
    parts = [part for part in re.split(r"(\d+)", name) if part]
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]
