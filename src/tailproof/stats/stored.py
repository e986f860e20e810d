"""Counts of "did it pay" as compressed JSON: sums and histograms, no rows."""

import json
import zlib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from tailproof.stats.first_windows import FirstWindows, Open
from tailproof.stats.histograms import Histogram
from tailproof.stats.totals import RunningTotal
from tailproof.stats.uplift import Decided, Estimate, Gain, Scale

__all__ = ["packed", "unpacked"]

_RECORDS: dict[str, Any] = {
    known.__name__: known
    for known in (Decided, Estimate, FirstWindows, Gain, Histogram, Open, RunningTotal, Scale)
}
"""What is kept whole: each record is made from its own fields."""


def packed(state: Mapping[str, Any]) -> bytes:
    """Return numbers, arrays and records as compressed JSON.

    >>> unpacked(packed({"counts": (1, np.inf), "found": np.arange(2.0), "scale": Scale(0, 9, 1)}))
    {'counts': [1, inf], 'found': array([0., 1.]), 'scale': Scale(low=0, high=9, base=1,
    threshold=nan)}
    """
    return zlib.compress(json.dumps(_plain(state)).encode())


def unpacked(text: bytes) -> dict[str, Any]:
    """Return the packed value; tuples without a name are lists."""
    return dict(_made(json.loads(zlib.decompress(text))))


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"": "array", "type": value.dtype.str, "size": value.shape, "of": value.tolist()}
    if isinstance(value, np.generic):
        return value.item()
    if type(value).__name__ in _RECORDS:
        names = getattr(value, "_fields", None) or [known.name for known in fields(value)]
        record = {name: getattr(value, name) for name in names}
        return {"": type(value).__name__, "of": _plain(record)}
    if isinstance(value, Mapping):
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
    return _RECORDS[kind](**_made(of))
