"""Files of results: plain arrays and a header, nothing else."""

import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import require

__all__ = ["opened", "write_file"]

_DAMAGE = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    EOFError,
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What reading a damaged or foreign file may raise."""


def write_file(
    path: str | Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> Path:
    """Write plain arrays and a header to an ``.npz`` file; an existing file is refused."""
    target = Path(path)
    try:
        file = target.open("xb")
    except FileExistsError:
        raise ValueError(
            f"path must be a file that does not exist yet, got {str(target)!r}"
        ) from None
    try:
        with file:
            text = np.array(json.dumps(header))
            np.savez_compressed(file, allow_pickle=False, header=text, **arrays)
    except BaseException:
        target.unlink()
        raise
    return target


@contextmanager
def opened(
    path: str | Path, file_format: str
) -> Iterator[tuple[dict[str, Any], dict[str, NDArray[Any]]]]:
    """Give the header and arrays that `write_file` wrote; anything else is refused."""
    try:
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = dict(file)
        header = json.loads(str(arrays["header"]))
        require(header["format"] == file_format, "format", file_format, header["format"])
        yield header, arrays
    except _DAMAGE as error:
        raise ValueError(
            f"path must be a whole result file written by save, got {str(path)!r}"
        ) from error
