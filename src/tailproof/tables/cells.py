"""Cells of a column as numbers or labels; an unreadable cell is refused by its line."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal as Exact
from numbers import Real
from typing import Any, Literal

import numpy as np

from tailproof.formatting import often
from tailproof.tables.refusals import Refusals
from tailproof.typing import Array, Index

__all__ = [
    "LONG",
    "MISSING",
    "Column",
    "Decimal",
    "Gatherer",
    "Spelling",
    "filled",
    "labels",
    "numbers",
]

Decimal = Literal[".", ","]
Spelling = Literal["ask", "merge", "keep"]

MISSING = {"", "na", "n/a", "nan", "none", "null", "-", "#n/a", "<na>"}
_WORDS = {"true": 1.0, "false": 0.0, "inf": np.inf, "infinity": np.inf}
_STRIPPED = dict.fromkeys(map(ord, " '’\u00a0\u2009\u202f"), "") | {ord("−"): "-"}
_SHAPES: dict[str, re.Pattern[str]] = {
    mark: re.compile(
        rf"[+-]?(?=[\d.,]*\d)(?:\d+|\d{{1,3}}(?:{other}\d{{2,3}})*{other}\d{{3}})?(?:{point}\d*)?(?:[eE][+-]?\d+)?"
    )
    for mark, point, other in ((".", r"\.", ","), (",", ",", r"\."))
}
"""Numbers with a point or a comma as decimal mark, and the other as thousands separator."""
_CODES = (
    "AED|ARS|AUD|BGN|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|EUR|GBP|HKD|HUF|IDR|ILS|INR|ISK|JPY|KRW|KZT|MXN|"
    "MYR|NGN|NOK|NZD|PHP|PLN|RON|RSD|RUB|SAR|SEK|SGD|THB|TRY|TWD|UAH|USD|VND|ZAR"
)
_WORDED = r"[Kk]r\.?|zł|Kč|Ft|lei|лв\.?|руб\.?|р\.|грн\.?|TL|Rp|RM|R"
"""Currencies that are written as words: none of them is part of a longer word."""
_CURRENCY = re.compile(
    rf"(?:US|CA|AU|NZ|HK|MX|[ACRS])?\$|[€£¥₹₩₽₺₴₪₫₦₱₸฿₡]|(?<![^\W\d_])(?:{_CODES}|{_WORDED})(?![^\W\d_])"
)
_SHORTENED = re.compile(r"\d(?:[.,]\d+)?E\+\d\d")
"""A long number as a spreadsheet shows it, without its last digits."""
_LATIN = str.maketrans("авекмнорстухіјѕαβεζηικμνορτυχ", "abekmhopctyxijsabezhikmnoptyx")
"""Cyrillic and Greek letters whose small or large form looks like a Latin letter."""
LONG = 10**15
"""Whole numbers from this size on are kept as text: as floats, two customers would become one."""


@dataclass(frozen=True, eq=False)
class Column:
    """The cells of a column: numbers, and texts as the number of each distinct text.

    Attributes
    ----------
    numbers : array, optional
        NaN where the cell is text or missing; None if all cells are text.
    codes : array, optional
        The number of the cell's text, −1 if it is no text; None if no cell is text.
    texts : sequence of str
        The distinct texts, as they stand.
    dates : bool
        Whether numbers are times, in seconds since 1970.
    zoned : bool
        Whether these times name their zone.
    raw : array, optional
        The cells themselves, if they are lists or mappings.
    """

    numbers: Array | None
    codes: Index | None
    texts: Sequence[str] = ()
    dates: bool = False
    raw: Any = None
    zoned: bool = False

    def __len__(self) -> int:
        return len(self.codes if self.numbers is None else self.numbers)  # type: ignore[arg-type]

    @classmethod
    def of(cls, values: Any) -> "Column":
        """Return the column of an array or sequence."""
        gatherer = Gatherer()
        gatherer.add(values)
        return gatherer.column()

    def take(self, rows: Index) -> "Column":
        """Return some of the cells."""
        return replace(
            self,
            numbers=None if self.numbers is None else self.numbers[rows],
            codes=None if self.codes is None else self.codes[rows],
            raw=None if self.raw is None else [self.raw[row] for row in rows.tolist()],
        )

    @property
    def blank(self) -> Any:
        """Whether each cell is missing."""
        blank = np.ones(len(self), dtype=np.bool_)
        if self.numbers is not None:
            blank &= np.isnan(self.numbers)
        if self.codes is not None:
            empty = np.array([is_missing(text) for text in self.texts] + [True])
            blank &= empty[self.codes]
        return blank

    def units(self, name: str) -> Index:
        """Return the number of each row's unit, by their first rows; −1 if missing."""
        if self.numbers is None or self.codes is not None:
            named = labels(self, name)
            _check_units(named.names, name)
            return named.codes
        import pandas

        return np.asarray(pandas.factorize(self.numbers)[0], dtype=np.int64)

    def rows(self, chosen: Iterable[int]) -> Index:
        """Return the rows whose text has one of the chosen numbers."""
        if self.codes is None:
            return np.empty(0, np.int64)
        return np.flatnonzero(np.isin(self.codes, list(chosen)))


class Gatherer:
    """Gathers the batches of a column, so that equal texts are kept once."""

    def __init__(self) -> None:
        self._texts: defaultdict[str, int] = defaultdict()
        self._texts.default_factory = self._texts.__len__
        self._parts: list[tuple[Array | None, Index | None, int]] = []
        self._raw: list[Any] | None = None
        self._dates = self._zoned = False

    def add(self, values: Any, *, zoned: bool = False) -> None:
        """Add a batch: an array of numbers, of dates or of objects, or a list of texts."""
        self._zoned |= zoned
        kind = getattr(getattr(values, "dtype", None), "kind", "")
        if kind == "b" or (kind and kind in "iu" and _is_long(values)):
            self._exact(values)
        elif kind and kind in "iuf":
            numbers = np.asarray(values, dtype=np.float64)
            self._parts.append((numbers, None, len(numbers)))
        elif kind == "M":
            dates = np.asarray(values).astype("datetime64[us]")
            seconds = np.where(np.isnat(dates), np.nan, dates.astype(np.int64) / 1e6)
            self._dates = True
            self._parts.append((seconds, None, len(seconds)))
        else:
            self._objects(values)

    def _exact(self, values: Any) -> None:
        """Add whole numbers or truth values as texts."""
        import pandas

        codes, distinct = pandas.factorize(values)
        place = np.array([self._texts[str(number)] for number in distinct.tolist()])
        self._parts.append((None, place[codes], len(codes)))

    def strings(self, cells: Sequence[str]) -> None:
        """Add a batch of texts."""
        texts = self._texts
        codes = np.fromiter((texts[cell] for cell in cells), np.int64, count=len(cells))
        self._parts.append((None, codes, len(codes)))

    def _objects(self, values: Any) -> None:
        cells = values.tolist() if isinstance(values, np.ndarray) else list(values)
        if all(type(cell) is str for cell in cells):
            return self.strings(cells)
        numbers, codes = np.full(len(cells), np.nan), np.full(len(cells), -1, np.int64)
        lists = self._raw is not None
        for row, cell in enumerate(cells):
            if cell is None:
                continue
            if isinstance(cell, bool | np.bool_) or (
                isinstance(cell, int | np.integer) and abs(int(cell)) >= LONG
            ):
                codes[row] = self._texts[str(cell)]
            elif isinstance(cell, Real | Exact):
                numbers[row] = _float(cell)
            elif isinstance(cell, list | tuple | dict | np.ndarray):
                lists = True
            elif isinstance(cell, bytes):
                codes[row] = self._texts[cell.decode(errors="replace")]
            elif str(cell) not in ("NaT", "<NA>"):
                text = cell.isoformat() if isinstance(cell, date | datetime) else str(cell)
                codes[row] = self._texts[text]
        if lists:
            before: list[Any] = [None] * sum(n for *_, n in self._parts)
            self._raw = (before if self._raw is None else self._raw) + cells
        self._parts.append((numbers, codes if (codes >= 0).any() else None, len(cells)))
        return None

    def column(self) -> Column:
        """Return the column of all batches."""
        any_number = any(numbers is not None for numbers, _, _ in self._parts)
        any_text = any(codes is not None for _, codes, _ in self._parts)
        numbers = [np.full(n, np.nan) if part is None else part for part, _, n in self._parts]
        codes = [np.full(n, -1, np.int64) if part is None else part for _, part, n in self._parts]
        return Column(
            _joined(numbers) if any_number or not self._parts else None,
            _joined(codes) if any_text else None,
            tuple(self._texts),
            self._dates,
            self._raw,
            self._zoned,
        )


def _joined(parts: list[Any]) -> Any:
    if not parts:
        return np.empty(0)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _is_long(values: Any) -> bool:
    """Return whether some whole numbers have too many digits for a float."""
    return bool(len(values)) and max(int(values.max()), -int(values.min())) >= LONG


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # a huge integer
        return float("inf") if value > 0 else float("-inf")


def numbers(column: Column, name: str, refusals: Refusals, decimal: Decimal | None = None) -> Array:
    """Return the cells as numbers, NaN if missing; other cells are refused.

    Each distinct text is read once. A currency sign is removed if all numbers but zeros have it.
    """
    if column.dates or column.raw is not None:
        kind = "dates" if column.dates else "lists or mappings"
        raise ValueError(f"column {name} must contain numbers, got {kind}")
    if column.codes is None:
        assert column.numbers is not None
        return column.numbers
    import pandas

    texts = pandas.Series(column.texts, dtype=object)
    plain = pandas.to_numeric(texts, errors="coerce").to_numpy(np.float64)
    values = np.append(plain, np.nan)  # the last one is of cells without text
    unread = np.flatnonzero(np.isnan(plain)).tolist()
    odd = [i for i in unread if not is_missing(column.texts[i])]
    mark = decimal if odd or decimal else _decimal_mark(column.texts, name)
    if not odd and mark != ",":
        return filled(column, values)
    asked = [i for i, text in enumerate(column.texts) if not is_missing(text)]
    values[:] = np.nan
    sign = _sign(column, asked, name, refusals)
    bare = {i: _without_currency(column.texts[i], sign) for i in asked}
    mark = mark or _decimal_mark(bare.values(), name)
    other: Decimal = "." if mark == "," else ","
    bad = []
    for i, text in bare.items():
        word = text.lower().lstrip("+-")
        if _SHAPES[mark].fullmatch(text):
            values[i] = float(text.replace(other, "").replace(mark, "."))
        elif word in _WORDS:
            values[i] = -_WORDS[word] if text.startswith("-") else _WORDS[word]
        else:
            bad.append(i)
    with_mark = f" with decimal mark {mark!r}" if mark in "".join(bare.values()) else ""
    two_words = len(bad) == len(bare) == 2 and all(text.isalpha() for text in bare.values())
    instead = " (1 and 0 for yes and no)" if two_words else ""
    refusals.cells(column, bad, f"column {name} must contain numbers{with_mark}{instead}, got")
    return filled(column, values)


def filled(column: Column, values: Array) -> Array:
    """Return the label of each cell, from its text or its number."""
    assert column.codes is not None
    translated: Array = values[column.codes]
    return (
        translated
        if column.numbers is None
        else np.where(column.codes < 0, column.numbers, translated)
    )


def is_missing(text: str) -> bool:
    return text.strip().lower() in MISSING


def _sign(column: Column, asked: list[int], name: str, refusals: Refusals) -> str:
    """Return the common currency sign of all numbers but zeros; refuse several signs."""
    of: dict[str, list[int]] = defaultdict(list)
    for i in asked:
        signs = _CURRENCY.findall(column.texts[i])
        if signs or any(
            x.isdigit() and x != "0" for x in column.texts[i]
        ):  # zeros have no currency
            of[signs[0] if signs else ""].append(i)
    plain = 0 if column.numbers is None else int(np.count_nonzero(np.nan_to_num(column.numbers)))
    if not of or (len(of) == 1 and not plain):
        return next(iter(of), "")
    count = {sign: len(column.rows(texts)) for sign, texts in of.items()}
    if plain:
        count[""] = count.get("", 0) + plain
    if set(count) == {""}:
        return ""
    usual = max(count, key=lambda sign: count[sign])
    rare = [i for sign, texts in of.items() if sign != usual for i in texts]
    beside = f"{count[usual]:,} with {usual}" if usual else f"{count[usual]:,} plain numbers"
    refusals.cells(column, rare, f"{name} must be in one currency; beside {beside} it has")
    asked[:] = [i for i in asked if i not in set(rare)]
    return usual


def _without_currency(text: str, sign: str) -> str:
    """Remove the currency sign, spaces and apostrophes; turn brackets into a minus."""
    bare = (text.replace(sign, "") if sign else text).translate(_STRIPPED).strip()
    bracketed = bare.startswith("(") and bare.endswith(")")
    return f"-{bare[1:-1]}" if bracketed else bare


def _decimal_mark(texts: Iterable[str], column: str) -> Decimal:
    """Return the decimal mark, from the first number that can be read in only one way.

    A comma before three digits is ambiguous. A point is ambiguous, too, if other numbers have no
    point and fewer than four digits: 1.234 beside 950 may be a thousand or one.
    """
    unclear, digits = {}, 0
    for text in texts:
        if "." not in text and "," not in text:
            whole = text.strip().lstrip("+-")
            digits = max(digits, len(whole) if whole.isdigit() else 0)
            continue
        as_point, as_comma = (bool(_SHAPES[mark].fullmatch(text)) for mark in (".", ","))
        if as_point != as_comma:
            return "." if as_point else ","
        if as_point and text.lstrip("+-").startswith("0."):
            return "."
        if as_point:
            unclear["," if "," in text else "."] = text
    if not 0 < digits < 4:
        unclear.pop(".", None)
    for mark, text in unclear.items():
        other, called = (".", "comma") if mark == "," else (",", "point")
        raise ValueError(
            f"{text!r} in column {column} is ambiguous: pass decimal={other!r} if its {called} "
            f"separates thousands, decimal={mark!r} if it marks decimals"
        )
    return "."


@dataclass(frozen=True, eq=False)
class Labels:
    """The distinct names of a column in the order of their first rows, and each row's number."""

    names: tuple[str, ...]
    codes: Index
    merged: str = ""
    """A sentence about names that were merged; empty if none were."""


def labels(column: Column, name: str, spelling: Spelling = "keep") -> Labels:
    """Return the names in a column, without blanks around them; −1 if missing.

    Parameters
    ----------
    spelling : "ask", "merge" or "keep"
        What to do about names that differ by case or blanks alone, or look alike.
    """
    import pandas

    if column.codes is None:
        assert column.numbers is not None
        codes, values = pandas.factorize(column.numbers)
        return Labels(_named(values, dates=column.dates), codes.astype(np.int64))
    texts = [text.strip() for text in column.texts]
    cells = column.codes
    if column.numbers is not None:
        extra, values = pandas.factorize(column.numbers)
        texts += _named(values, dates=column.dates)
        cells = np.where(cells < 0, np.where(extra < 0, -1, extra + len(column.texts)), cells)
    counts = np.bincount(cells[cells >= 0], minlength=len(texts))
    of_name: dict[str, int] = {}
    number = np.full(len(texts) + 1, -1)
    for i in np.flatnonzero(counts):
        if not is_missing(texts[i]):
            number[i] = of_name.setdefault(texts[i], len(of_name))
    codes = number[cells]
    named = Labels(tuple(of_name), codes)
    return named if spelling == "keep" else _merge_spellings(named, name, spelling)


def _check_units(names: Sequence[str], column: str) -> None:
    """Raise ``ValueError`` if names of units were changed on the way, so units are mixed up."""
    if short := next(filter(_SHORTENED.fullmatch, names), None):
        raise ValueError(
            f"column {column} has {short!r}, a number without its last digits, so customers are "
            "mixed up: export it as text"
        )
    units = set(names)
    if twice := next((x for x in names if x.endswith(".0") and x[:-2] in units), None):
        raise ValueError(
            f"column {column} has {twice!r} beside {twice[:-2]!r}, which may be one customer: "
            "write all alike"
        )


def _named(values: Array, *, dates: bool) -> tuple[str, ...]:
    """Return numbers as names; times are dates."""
    if not dates:
        return tuple(f"{x:.15g}" for x in values.tolist())
    moments = [datetime.fromtimestamp(x, UTC).replace(tzinfo=None) for x in values.tolist()]
    return tuple(x.isoformat().removesuffix("T00:00:00") for x in moments)


def _merge_spellings(named: Labels, name: str, spelling: Spelling) -> Labels:
    """Ask about names that differ by case or blanks alone or look alike, or merge them."""
    counts = np.bincount(named.codes[named.codes >= 0], minlength=len(named.names)).tolist()
    alike: dict[str, list[int]] = defaultdict(list)
    for i, text in enumerate(named.names):
        alike[_normalised(text)].append(i)
    into, sentences = np.arange(len(named.names) + 1), []
    into[-1] = -1
    for several in alike.values():
        first, *others = sorted(several, key=lambda i: -counts[i])
        usual = named.names[first]
        for other in others:
            rare, count = named.names[other], often(counts[other])
            script = _script(rare) or _script(usual)
            foreign = f", one of them in {script} letters" if script else ""
            if spelling == "ask":
                raise ValueError(
                    f"column {name} has {rare!r} {count} beside {usual!r} "
                    f"{often(counts[first])}{foreign}: did you mean {usual!r}? "
                    "Pass spelling='merge' (--spelling merge) if so, 'keep' if they differ"
                )
            into[other] = first
            sentences.append(f"{rare!r} ({count}) was read as {usual!r}{foreign}.")
    kept = np.unique(into[:-1])
    place = np.full(len(into), -1)
    place[kept] = np.arange(len(kept))
    codes = place[into][named.codes]
    return Labels(tuple(named.names[i] for i in kept), codes, " ".join(sentences))


def _normalised(name: str) -> str:
    """Return a name in lower case, without blanks and invisible signs; 01 and 1.0 become 1.

    Letters that look Latin become Latin.

    >>> _normalised("New Page"), _normalised("01"), _normalised("1.0"), _normalised("\u0410")
    ('newpage', '1', '1', 'a')
    """
    visible = (x for x in unicodedata.normalize("NFKC", name) if unicodedata.category(x) != "Cf")
    bare = "".join("".join(visible).split()).casefold().translate(_LATIN)
    return f"{float(bare):.15g}" if re.fullmatch(r"\d{1,15}(\.\d*)?", bare) else bare


def _script(name: str) -> str:
    """Return the script of a name's first letter that may look Latin; empty if it has none.

    >>> _script("\u0410"), _script("A")
    ('Cyrillic', '')
    """
    scripts = [unicodedata.name(x).split()[0] for x in name.casefold() if ord(x) in _LATIN]
    return scripts[0].capitalize() if scripts else ""
