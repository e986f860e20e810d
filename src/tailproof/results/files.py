"""Files of results: plain arrays and a header, whole or not at all."""

import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import require

try:
    import fcntl
except ImportError:  # no locks on this system
    fcntl = None  # type: ignore[assignment]

__all__ = ["locked", "opened", "whole_file", "write_file"]


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Give a file to write; it takes its place when all of it is on the disk, or not at all."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder for one process at a time; the system frees it when the process ends."""
    with (folder / ".lock").open("ab") as file:
        with suppress(OSError):  # a file system without locks
            try:
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                rule = "a folder that no other run is using"
                raise ValueError(f"out must be {rule}, got {str(folder)!r}") from None
        yield


def write_file(
    path: str | Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> Path:
    """Write plain arrays and a header to an ``.npz`` file; an existing file is refused.

    Nothing is packed, so that no file holds more than its own size.
    """
    target = Path(path)
    require(not target.exists(), "path", "a file that does not exist yet", str(target))
    with whole_file(target) as file:
        np.savez(file, allow_pickle=False, header=np.array(json.dumps(header)), **arrays)
    return target


@contextmanager
def opened(
    path: str | Path, file_format: str
) -> Iterator[tuple[dict[str, Any], dict[str, NDArray[Any]]]]:
    """Give the header and arrays that `write_file` wrote; anything else is refused."""
    try:
        with Path(path).open("rb") as stream:
            with zipfile.ZipFile(stream) as archive:
                plain = all(not entry.compress_type for entry in archive.filelist)
                size = sum(entry.file_size for entry in archive.filelist)
            require(plain and size <= os.fstat(stream.fileno()).st_size, "path", "unpacked", path)
            stream.seek(0)
            with np.load(stream, allow_pickle=False) as file:
                arrays = dict(file)
        header = json.loads(str(arrays["header"]))
        require(header["format"] == file_format, "format", file_format, header["format"])
        yield header, arrays
    except OSError:
        raise
    except Exception as error:  # whatever a damaged or foreign file may lead to
        raise ValueError(
            f"path must be a whole result file written by save, got {str(path)!r}"
        ) from error
