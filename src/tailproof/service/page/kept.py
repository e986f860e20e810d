"""What of "did it pay" survives `prune`: sums and histograms, no rows."""

import json
import zlib
from typing import Any

import numpy as np

from tailproof.stats.first_windows import FirstWindows, Open
from tailproof.stats.histograms import Histogram
from tailproof.stats.totals import RunningTotal
from tailproof.stats.uplift import Decided, Estimate, Gain, Scale, Worth

__all__ = ["packed", "unpacked"]

_RECORDS: dict[str, Any] = {
    known.__name__: known
    for known in (Decided, Estimate, FirstWindows, Gain, Histogram, Open, RunningTotal, Scale)
}


def packed(state: dict[str, Any]) -> bytes:
    """Return numbers, arrays and the records of "did it pay" as compressed JSON.

    >>> unpacked(packed({"worth": (1, np.inf), "found": np.arange(2.0)}))
    {'worth': [1, inf], 'found': array([0., 1.])}
    """
    return zlib.compress(json.dumps(_plain(state)).encode())


def unpacked(text: bytes) -> dict[str, Any]:
    """Return the packed value; tuples without a name are lists."""
    return dict(_made(json.loads(zlib.decompress(text))))


def of_worth(worth: Worth) -> dict[str, Any]:
    """Return the counts of a `Worth`, without its aim."""
    return {key: value for key, value in vars(worth).items() if key not in ("aim", "level")}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"": "array", "type": value.dtype.str, "size": value.shape, "of": value.tolist()}
    if isinstance(value, np.generic):
        return value.item()
    if type(value).__name__ in _RECORDS:
        fields = getattr(value, "_asdict", lambda: vars(value))()
        return {"": type(value).__name__, "of": _plain(dict(fields))}
    if isinstance(value, dict):
        return {"": "pairs", "of": [[_plain(key), _plain(entry)] for key, entry in value.items()]}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value


def _made(value: Any) -> Any:
    if isinstance(value, list):
        return [_made(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    kind, of = value[""], value["of"]
    if kind == "array":
        return np.array(of, dtype=np.dtype(value["type"])).reshape(value["size"])
    if kind == "pairs":
        return {_made(key): _made(entry) for key, entry in of}
    fields, record = _made(of), _RECORDS[kind]
    if issubclass(record, tuple):
        return record(**fields)
    made = record.__new__(record)
    vars(made).update(fields)
    return made
