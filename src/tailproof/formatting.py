"""Numbers and lists in sentences and tables."""

from collections.abc import Sequence

__all__ = ["listed", "several", "short", "signed", "two_digits"]


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


def signed(x: float) -> str:
    """Return `short` with a sign, as ends of a difference have.

    >>> signed(3.14159), signed(-0.2), signed(0.0)
    ('+3.142', '-0.2', '0')
    """
    return f"+{short(x)}" if x > 0 else short(x)


def listed(names: Sequence[str]) -> str:
    """Return names in a sentence, the first three of many.

    >>> listed(["a", "b"]), listed(list("abcdef"))
    ('a, b', 'a, b, c and 3 more')
    """
    return (
        ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"
    )
