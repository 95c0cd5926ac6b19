# SPDX-License-Identifier: Apache-2.0
"""The gateway to files that others made: regular files only, confined where a folder is theirs, and recorded.

Every reader of the package opens files and asks for them through these functions; tests/test_reading.py finds others.
All errors are OSErrors with a reason in `strerror`, which readers turn into errors that name the place, or BudgetErrors
for a file that is larger than the budget; what is read from `open_file` is counted by its reader.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import suppress
from difflib import get_close_matches
from io import BufferedReader
from pathlib import Path

from ferrule import record
from ferrule.budget import Resource, afford
from ferrule.record import CONTENTS, FILE, FOLDER, KIND, NAMES

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
"""O_NONBLOCK: a pipe that replaced the file since its kind was asked must not block."""
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class IrregularFileError(OSError):
    """The path is that of a pipe, a socket or a device, whose contents may never end."""

    def __init__(self, path: Path, mode: int) -> None:
        kind = _KINDS.get(stat.S_IFMT(mode), "no file")
        super().__init__(errno.EINVAL, f"it is {kind}, expected a regular file", str(path))


class OutsideError(OSError):
    """The path leads out of the folder that it must stay in."""

    def __init__(self, path: Path, folder: Path) -> None:
        super().__init__(errno.EXDEV, f"it leads out of {folder}", str(path))


def open_file(path: Path, *, within: Path | None = None) -> BufferedReader:
    """Open a regular file for reading; the caller closes it.

    Raises:
        IrregularFileError: the path is that of something else than a file.
        OutsideError: the file is not below `within`, after links are followed.
        OSError: the file cannot be opened.
    """
    if within is not None:
        confined(path, within)
    with record.unnoted():
        try:
            _require_regular(path, path.stat())  # before it is opened, which alone can change a device
            handle = os.open(path, _FLAGS)
        except OSError:
            record.note(str(path), CONTENTS)
            raise
        try:
            status = os.fstat(handle)
            _require_regular(path, status)
            record.note(str(path), CONTENTS, record.signature_of(status))
            return os.fdopen(handle, "rb")
        except BaseException:
            os.close(handle)
            raise


def read_bytes(path: Path, *, within: Path | None = None, held_per_byte: int = 1) -> bytes:
    """Return the contents of a regular file.

    `held_per_byte` is what a byte of it may become when its reader has made values of it.

    Raises:
        BudgetError: the file is too large for the present budget.
        OSError: as `open_file` does.
    """
    with open_file(path, within=within) as file:
        size = os.fstat(file.fileno()).st_size
        afford(Resource.BYTES, held_per_byte * size, str(path))
        data = file.read(size + 1)
        while len(data) > size:  # it has grown, or is a file of the system's, which states no size
            size = 2 * len(data)
            afford(Resource.BYTES, held_per_byte * size, str(path))
            data += file.read(size + 1 - len(data))
        return data


def read_text(path: Path, *, errors: str = "strict", within: Path | None = None) -> str:
    """Return the text of a regular file in UTF-8, in which lines end as in Python; raises as `open_file` does."""
    text = read_bytes(path, within=within).decode("utf-8", errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_standard_input(most_bytes: int) -> bytes:
    """Return what standard input has, to its end.

    Raises:
        OSError: it is closed, a terminal or a folder, or has more than `most_bytes`.
    """
    stream = sys.stdin
    if stream is None or stream.closed:
        raise OSError(errno.EBADF, "standard input is closed, expected a file or a pipe")
    if stream.isatty():
        raise OSError(errno.ENOTTY, "standard input is a terminal, expected a file or a pipe")
    data = stream.buffer.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"standard input has more than {most_bytes:,} bytes")
    return data


def near_names(path: Path) -> str | None:
    """Return a hint for a path at which there is nothing: like names in its folder; None if there are none."""
    if not is_folder(path.parent):
        return f"there is no folder '{path.parent}' either"
    try:
        names = [entry.name for entry in list_folder(path.parent)]
    except OSError:
        return None
    found = get_close_matches(path.name, names, n=3, cutoff=0.6)
    return f"did you mean {', '.join(str(path.with_name(name)) for name in found)}?" if found else None


def is_file(path: Path) -> bool:
    """Return whether a path is that of a regular file, after links are followed."""
    return _kind(path) == FILE


def is_folder(path: Path) -> bool:
    """Return whether a path is that of a folder, after links are followed."""
    return _kind(path) == FOLDER


def exists(path: Path) -> bool:
    """Return whether there is anything at a path, after links are followed."""
    return _kind(path) != record.ABSENT


def list_folder(folder: Path, pattern: str = "*") -> list[Path]:
    """Return the sorted paths of what a folder contains, as far as names match; a pattern that ends with / has folders.

    Python's caches are left out. Without such a folder, there is nothing. Raises OSError if it cannot be listed.
    """
    record.note(str(folder), f"{NAMES}{pattern}")
    with record.unnoted():
        try:
            return [folder / name for name in record.names_in(str(folder), pattern)]
        except FileNotFoundError:
            return []


def files_below(folder: Path, pattern: str = "*") -> list[Path]:
    """Return the sorted paths of all regular files in a folder and its folders, as far as their names match.

    Links to folders are not followed, and Python's caches are left out. Without such a folder, there is no file.
    """
    found: list[Path] = []
    with record.unnoted():
        for place, folders, names in os.walk(folder):
            folders[:] = [name for name in folders if name != "__pycache__"]
            record.note(place, f"{NAMES}*/")
            record.note(place, f"{NAMES}{pattern}")
            found += [Path(place, name) for name in names if Path(name).match(pattern)]
    return sorted(path for path in found if record.kind_of(str(path)) == FILE)


def require_regular(path: Path, *, within: Path) -> None:
    """Raise as `open_file` does if what is at a path is no regular file below a folder; nothing may be there."""
    confined(path, within)
    with suppress(FileNotFoundError):
        _require_regular(path, path.stat())


def confined(path: Path, folder: Path) -> Path:
    """Return a path after links are followed; OutsideError if it is not below a folder."""
    resolved = path.resolve()
    if not resolved.is_relative_to(folder.resolve()):
        raise OutsideError(path, folder)
    return resolved


def _kind(path: Path) -> str:
    kind = record.kind_of(str(path))
    record.note(str(path), KIND, kind)
    return kind


def _require_regular(path: Path, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise IrregularFileError(path, status.st_mode)
