# SPDX-License-Identifier: Apache-2.0
"""The cache folder: compiled libraries, objects and firmwares, and the caches of the tools that make them."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from ferrule.errors import FerruleError
from ferrule.reading import open_file, read_bytes
from ferrule.record import (
    BELOW,
    CHANGED,
    Places,
    Read,
    Reads,
    answer,
    below,
    digest_of,
    made,
    note,
    paths_below,
    placed,
)
from ferrule.scratch import ScratchFolder, locked, write_file
from ferrule.trust import status_reason, writer_besides

VARIABLE = "FERRULE_CACHE"
LIMIT_BYTES = 256 << 20
"""Size of a store above which its least recently used entries are deleted, down to half this size."""
_RECORDS = 16
"""Records kept for one key."""
_CHECKSUM = ".sha256"
_SCRATCH = "scratch"
_PRIVATE = 0o700
_LOG = logging.getLogger(__name__)
_REPORTED: set[Path] = set()
"""What another user can write, and was reported as such."""


def cache_folder() -> Path:
    """Return the cache folder, which exists and can be written.

    It is $FERRULE_CACHE or, if unset, `ferrule` in the user's cache folder. If that cannot be written, or if another
    user can write it, it is a folder in the temporary folder that other users cannot read; the latter is logged as a
    warning.

    Raises:
        FerruleError: $FERRULE_CACHE cannot be written, or another user can write it or the folder in the temporary
            folder.
    """
    own = os.environ.get(VARIABLE)
    if own:
        return _require_trusted(_require_writable(Path(own)))
    from platformdirs import user_cache_path

    try:
        usual = user_cache_path("ferrule", appauthor=False)
    except RuntimeError:  # the user has no home folder
        return _private_folder()
    if not usual.is_absolute() or not _is_writable(usual):
        return _private_folder()
    reason = writer_besides(usual)
    if reason is None:
        return usual
    if usual not in _REPORTED:
        _REPORTED.add(usual)
        _LOG.warning("warning: the cache folder %s is not used: %s", usual, reason)
    return _private_folder()


def tool_environment() -> dict[str, str]:
    """Return the environment for compilers: zig's cache is in the cache folder, unless $ZIG_GLOBAL_CACHE_DIR is set."""
    environment = dict(os.environ)
    if not environment.get("ZIG_GLOBAL_CACHE_DIR"):
        environment["ZIG_GLOBAL_CACHE_DIR"] = str(cache_subfolder("zig"))
    return environment


def cache_subfolder(name: str) -> Path:
    """Return a folder in the cache folder, which need not exist; FerruleError if another user can write it.

    Nothing in it is an input of a result: what is kept there follows from what its name is a digest of.
    """
    folder = cache_folder() / name
    if folder.exists():
        _require_trusted(folder)
    made(folder)
    return folder


def clear_cache() -> None:
    """Delete everything in the cache folder; FerruleError if that fails."""
    folder = cache_folder()
    try:
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    except OSError as error:
        raise FerruleError(f"{error.filename or folder} cannot be deleted: {error.strerror or error}") from error


def cache_sizes() -> dict[str, int]:
    """Return the bytes in each file and folder of the cache, by name."""
    return {path.name: _size_bytes(path) for path in sorted(cache_folder().iterdir())}


def _size_bytes(path: Path) -> int:
    files = (Path(place) / name for place, _, names in os.walk(path) for name in names)
    total = 0
    for each in (path, *files):
        with contextlib.suppress(FileNotFoundError):  # deleted by another process
            total += each.lstat().st_size if not each.is_dir() else 0
    return total


class Store:
    """A folder of the cache with entries by name, whose contents are checked whenever they are used.

    An entry that was truncated or modified, or that another user can write, is absent. The methods
    may be called from several threads and processes.
    """

    def __init__(self, name: str) -> None:
        self.folder = cache_subfolder(name)
        self._scratch = cache_subfolder(_SCRATCH)
        self._grew = False

    def get(self, name: str) -> bytes | None:
        """Return the data kept by a name; None if there are none."""
        path = self.folder / name
        try:
            checksum, data = _trusted_bytes(path).split(b"\n", 1)
        except (OSError, ValueError):
            return None
        if _sha256(data) != checksum:
            return None
        _touch(path)
        return data

    def keep(self, name: str, data: bytes) -> None:
        """Keep data by a name; without space for them, nothing is kept."""
        with contextlib.suppress(OSError):
            self._make_folders()
            write_file(self.folder / name, _sha256(data) + b"\n" + data, scratch=self._scratch, private=True)
            self._grew = True

    def file(self, name: str, make: Callable[[Path], object], *, once: bool = False) -> Path:
        """Return the path of a file; if the store lacks it, `make` writes it to the path that it is called with.

        With `once`, processes that need it at the same time wait for one of them to make it.

        Raises:
            FerruleError: the file cannot be kept.
        """
        target = self.folder / name
        if self._is_whole(target):
            return target
        try:
            self._make_folders()
            with locked(self.folder) if once else contextlib.nullcontext():
                if not (once and self._is_whole(target)):  # another process may have made it during the wait
                    with ScratchFolder(self._scratch) as scratch:
                        make(scratch.path / name)
                        data = read_bytes(scratch.path / name)
                    write_file(target, data, scratch=self._scratch, private=True)
                    # the checksum comes last: a file without its own counts as absent
                    write_file(_checksum_of(target), _sha256(data), scratch=self._scratch, private=True)
                    self._grew = True
        except OSError as error:
            raise FerruleError(
                f"can't keep {name} in {self.folder}: {error.strerror or error}",
                hint=f"set {VARIABLE} to a folder that you may write",
            ) from error
        self.prune()
        return target

    def prune(self) -> None:
        """Delete the least recently used entries, down to half the limit, if the store has grown above it."""
        if not self._grew:
            return
        self._grew = False
        with contextlib.suppress(OSError):  # another process is pruning at the same time
            found = sorted(_entries(self.folder))
            size_bytes = sum(size for _, size, _ in found)
            for _, size, name in found if size_bytes > LIMIT_BYTES else ():
                if size_bytes <= LIMIT_BYTES // 2:
                    break
                path = self.folder / name
                path.unlink(missing_ok=True)
                _checksum_of(path).unlink(missing_ok=True)
                size_bytes -= size

    def _make_folders(self) -> None:
        for folder in (self.folder, self._scratch):
            folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)

    def _is_whole(self, path: Path) -> bool:
        try:
            whole = _sha256(_trusted_bytes(path)) == _trusted_bytes(_checksum_of(path))
        except OSError:
            return False
        if whole:
            _touch(path)
        return whole


class RecordedStore:
    """Results by key, each with what was read for it: one is used again as long as its record holds.

    The key is what was asked for, such as a command. Under it are the last results, which others made of the same
    command with other files. An object is for one piece of work, in which no file changes: each question is asked once.
    What is used or kept becomes part of the present records, as if it had been read again.
    """

    def __init__(self, name: str, places: Places) -> None:
        self._store, self._places = Store(name), places
        self._answers: dict[tuple[str, str], str] = {}
        self._paths: dict[str, list[str]] = {}

    def get(self, key: str) -> bytes | None:
        """Return the result of a key whose record holds; None if there is none."""
        for reads in self._records(key):
            if all(each.answer == self.answer(placed(each.path, self._places), each.question) for each in reads):
                data = self._store.get(_of_record(key, reads))
                if data is not None:
                    return data
        return None

    def keep(self, key: str, reads: Reads, data: bytes) -> None:
        """Keep a result with its record; not if a file has changed while it was read."""
        if any(each.answer == CHANGED for each in reads):
            return
        self._store.keep(_of_record(key, reads), data)
        others = [each for each in self._records(key) if each != reads]
        self._store.keep(key, msgspec.json.encode([reads, *others][:_RECORDS]))

    def prune(self) -> None:
        """Delete the least recently used entries if the store has grown above its limit."""
        self._store.prune()

    def answer(self, path: str, question: str) -> str:
        """Return the answer to a question, which is asked once, and note it."""
        found = self._answers.get((path, question))
        if found is None:
            if question.startswith(BELOW):
                if path not in self._paths:
                    self._paths[path] = paths_below(path)
                found = below(self._paths[path], question)
                note(path, question, found)
            else:
                found = answer(path, question)
                note(path, question)
            self._answers[path, question] = found
        return found

    def _records(self, key: str) -> list[Reads]:
        try:
            return msgspec.json.decode(self._store.get(key) or b"[]", type=list[tuple[Read, ...]])
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return []


def _of_record(key: str, reads: Reads) -> str:
    return hashlib.sha256(f"{key}\0{digest_of(reads)}".encode()).hexdigest()


def _entries(folder: Path) -> Iterable[tuple[int, int, str]]:
    with os.scandir(folder) as entries:  # thousands, after each build
        for entry in entries:
            if not entry.name.endswith(_CHECKSUM):
                status = entry.stat()
                yield status.st_mtime_ns, status.st_size, entry.name


def _checksum_of(path: Path) -> Path:
    return path.with_name(path.name + _CHECKSUM)


def _sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


def _touch(path: Path) -> None:
    with contextlib.suppress(OSError):  # a cache that can only be read
        os.utime(path)


def _require_writable(folder: Path) -> Path:
    try:
        folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return folder.absolute()
        reason = "it is not writable"
    except OSError as error:
        reason = error.strerror or str(error)
    raise FerruleError(
        f"can't keep anything in the cache folder {folder}: {reason}",
        hint=f"set {VARIABLE} to a folder that you may write",
    )


def _require_trusted(folder: Path) -> Path:
    reason = writer_besides(folder)
    if reason is None:
        return folder
    raise FerruleError(
        f"the cache folder {folder} is not used: {reason}",
        hint=f"set {VARIABLE} to a folder that only you can write, such as a new one",
    )


def _trusted_bytes(path: Path) -> bytes:
    """Return the contents of a regular file that only this user and root can write; OSError if it is no such file."""
    with open_file(path) as file:
        reason = status_reason(path, os.fstat(file.fileno()))
        if reason is None:
            return file.read()
    if path not in _REPORTED:
        _REPORTED.add(path)
        _LOG.warning("warning: a file of the cache is not used: %s", reason)
    raise PermissionError(errno.EPERM, reason, str(path))


def _is_writable(folder: Path) -> bool:
    try:
        _require_writable(folder)
    except FerruleError:
        return False
    return True


def _private_folder() -> Path:
    """Return the user's folder in the temporary folder; FerruleError if it could be another user's."""
    user = getattr(os, "getuid", lambda: os.environ.get("USERNAME", "user"))()
    folder = Path(tempfile.gettempdir()) / f"ferrule-cache-{user}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise FerruleError(
            f"{folder} cannot be made: {error.strerror or error}", hint=f"set {VARIABLE} to a folder that you may write"
        ) from error
    private = stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o077
    if hasattr(os, "getuid") and not (private and status.st_uid == os.getuid()):
        raise FerruleError(
            f"the cache folder {folder} is not a folder that only you can read",
            hint=f"delete it, or set {VARIABLE} to a folder that you may write",
        )
    return _require_writable(folder)
