"""Files of results: plain arrays and a header, written completely or not at all."""

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
    """Open a file to write that replaces `path` only when all of it is on the disk."""
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
    """Lock a folder for this process; the system unlocks it when the process ends."""
    with (folder / ".lock").open("ab") as file:
        with suppress(OSError):  # a file system without locks
            try:
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ValueError(
                    f"another run is using the folder {folder}: wait for it, or choose another"
                ) from None
        yield


def write_file(
    path: str | Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> Path:
    """Write plain arrays and a header to an ``.npz`` file; an existing file is refused.

    Nothing is compressed, so reading a file takes no more memory than its size.
    """
    target = Path(path)
    if target.exists():
        raise ValueError(f"path {target} exists already: results are never overwritten")
    with whole_file(target) as file:
        np.savez(file, allow_pickle=False, header=np.array(json.dumps(header)), **arrays)
    return target


@contextmanager
def opened(
    path: str | Path, file_format: str
) -> Iterator[tuple[dict[str, Any], dict[str, NDArray[Any]]]]:
    """Yield the header and arrays that `write_file` wrote; any other file raises."""
    try:
        with Path(path).open("rb") as stream:
            with zipfile.ZipFile(stream) as archive:
                plain = all(not entry.compress_type for entry in archive.filelist)
                size = sum(entry.file_size for entry in archive.filelist)
            if not plain or size > os.fstat(stream.fileno()).st_size:
                raise ValueError("the file is compressed")
            stream.seek(0)
            try:
                with np.load(stream, allow_pickle=False) as file:
                    arrays = dict(file)
            except OSError as error:  # such as a seek to where a damaged directory points
                raise ValueError("the directory of the archive is damaged") from error
        header = json.loads(str(arrays["header"]))
        require(header["format"] == file_format, "format", repr(file_format), header["format"])
        yield header, arrays
    except OSError:
        raise
    except Exception as error:  # whatever a damaged or foreign file may lead to
        raise ValueError(f"path {path} is not a {file_format!r} file, or it is damaged") from error
