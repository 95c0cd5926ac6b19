# SPDX-License-Identifier: Apache-2.0
"""Locks, atomic writes, and temporary files and folders of which a killed process leaves nothing for good.

The process that made a temporary file or folder holds a lock on it. The system releases the lock when the process ends,
however it ends. So a temporary file without a lock is a leftover, and the next process that makes one beside it deletes
the leftover. Windows and some network file systems have no such locks: there, nothing is locked and nothing is swept.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ferrule._typing import override
from ferrule.closing import Closing
from ferrule.errors import FerruleError
from ferrule.record import made

PREFIX = "ferrule-scratch-"
"""Beginning of the name of each temporary file and folder; in a folder of the user's, a full stop precedes it."""
_ATTEMPTS = 100
_OWNED: set[Path] = set()
"""The temporary files and folders of this process."""
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)


@contextmanager
def locked(folder: Path, *, waiting: Callable[[], object] = lambda: None) -> Iterator[int]:
    """Hold a lock on a folder and yield its file descriptor, or -1 without locks; OSError if there is no such folder.

    `waiting` is called once if another process or thread holds the lock. A child process that inherits the descriptor
    holds the lock too, until it ends.
    """
    handle = _open_locked(folder, waiting)
    try:
        yield handle
    finally:
        _close(handle)


class ScratchFolder(Closing):
    """A temporary folder, deleted when it is closed or collected, or when the process ends.

    Raises:
        FerruleError: it cannot be made in the system's folder for temporary files.
        OSError: it cannot be made in `parent`.
    """

    def __init__(self, parent: Path | None = None) -> None:
        self.path, handle = _own_temporary() if parent is None else _own(parent, f".{PREFIX}", folder=True)
        made(self.path)
        self._delete = weakref.finalize(self, _delete, self.path, handle, os.getpid())

    @property
    def is_open(self) -> bool:
        """Whether the folder has not been closed."""
        return self._delete.alive

    @override
    def close(self) -> None:
        """Delete the folder, unless it has been moved."""
        self._delete()


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """Yield a path that is written in the block; FerruleError if that fails."""
    try:
        yield path
    except OSError as error:
        raise FerruleError(f"{path} cannot be written: {error.strerror or error}") from error


def write_file(path: Path, data: bytes, *, scratch: Path | None = None, private: bool = False) -> None:
    """Write a file atomically: readers see either the old file or the complete new one; OSError leaves the old one.

    The data are first written to a temporary file in the folder `scratch`, by default that of the file. A device, a
    pipe, or a file in a folder that cannot be written, is written in place. A `private` file can be written by this
    user only, whatever the process's mask is; other files keep the permissions of the old one.
    """
    target = path.resolve() if path.is_symlink() else path
    if target.exists() and not (target.is_file() and os.access(target.parent, os.W_OK)):
        target.write_bytes(data)
        return
    temporary, handle = _own(scratch or target.parent, PREFIX if scratch else f".{PREFIX}", folder=False)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if private:
                temporary.chmod(0o644)
            elif target.exists():
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        _OWNED.discard(temporary)


def sweep(folder: Path) -> None:
    """Delete this user's temporary files and folders in a folder whose processes have ended."""
    if sys.platform == "win32":
        return
    try:
        names = [name for name in os.listdir(folder) if name.removeprefix(".").startswith(PREFIX)]  # noqa: PTH208
    except OSError:
        return
    for name in names:
        path = folder / name
        with contextlib.suppress(OSError):  # in use, another user's, or deleted by another process
            # a link must not lead elsewhere, nor a pipe of another user hold up the sweep
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                if os.fstat(handle).st_uid == os.getuid() and _lock(handle, wait=False):
                    _remove(path)
            finally:
                os.close(handle)


def _own_temporary() -> tuple[Path, int]:
    try:
        return _own(Path(tempfile.gettempdir()), PREFIX, folder=True)
    except OSError as error:
        raise FerruleError(
            f"{error.filename or 'a temporary folder'} cannot be made: {error.strerror or error}",
            hint="set TMPDIR to a folder that you may write",
        ) from error


def _own(parent: Path, prefix: str, *, folder: bool) -> tuple[Path, int]:
    """Make a locked temporary file or folder, after a sweep; return its path and its file descriptor."""
    sweep(parent)
    attempts = 0
    while True:
        attempts += 1
        path = parent / f"{prefix}{secrets.token_hex(6)}"
        try:
            if folder:
                path.mkdir(mode=0o777 if prefix.startswith(".") else 0o700)
                handle = os.open(path, os.O_RDONLY) if sys.platform != "win32" else -1
            else:
                handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        except FileExistsError:
            continue
        except FileNotFoundError:
            if parent.is_dir() and attempts < _ATTEMPTS:  # swept between its creation and this; not so in /proc
                continue
            raise
        _lock(handle, wait=True)
        if _is_at(path, handle):
            _OWNED.add(path)
            return path, handle
        _close(handle)


def _open_locked(folder: Path, waiting: Callable[[], object]) -> int:
    if sys.platform == "win32":
        return -1
    while True:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if not _lock(handle, wait=False):
                waiting()
                _lock(handle, wait=True)
            if _is_at(folder, handle):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _lock(handle: int, *, wait: bool) -> bool | None:
    """Lock an open file; False if it is locked elsewhere, which needs `wait` to be False, and None without locks."""
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return None
        raise
    return True


def _is_at(path: Path, handle: int) -> bool:
    """Return whether an open file is still the one at its path."""
    if handle < 0:
        return True
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False


def _delete(path: Path, handle: int, owner: int) -> None:
    if os.getpid() == owner:  # a fork does not delete what its parent uses
        _remove(path)
        _OWNED.discard(path)
    _close(handle)


def remove_own() -> None:
    """Delete the temporary files and folders of this process, which is to end without Python's finalizers."""
    for path in tuple(_OWNED):
        with contextlib.suppress(OSError):
            _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _close(handle: int) -> None:
    if handle >= 0:
        os.close(handle)
