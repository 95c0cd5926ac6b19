# SPDX-License-Identifier: Apache-2.0
"""The cache folder: compiled libraries, objects and firmwares, and the caches of the tools that make them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from ferrule.errors import FerruleError
from ferrule.scratch import ScratchFolder, locked, write_file

VARIABLE = "FERRULE_CACHE"
LIMIT_BYTES = 256 << 20
"""Size of a store above which its least recently used entries are deleted, down to half this size."""
_CHECKSUM = ".sha256"
_SCRATCH = "scratch"


def cache_folder() -> Path:
    """Return the cache folder, which exists and can be written.

    It is $FERRULE_CACHE or, if unset, `ferrule` in the user's cache folder. If that cannot be written, it is a folder
    in the temporary folder that other users cannot read.

    Raises:
        FerruleError: $FERRULE_CACHE cannot be written, or another user owns the folder in the temporary folder.
    """
    own = os.environ.get(VARIABLE)
    if own:
        return _require_writable(Path(own))
    from platformdirs import user_cache_path

    try:
        usual = user_cache_path("ferrule", appauthor=False)
    except RuntimeError:  # the user has no home folder
        return _private_folder()
    return usual if usual.is_absolute() and _is_writable(usual) else _private_folder()


def tool_environment() -> dict[str, str]:
    """Return the environment for compilers: zig's cache is in the cache folder, unless $ZIG_GLOBAL_CACHE_DIR is set."""
    environment = dict(os.environ)
    if not environment.get("ZIG_GLOBAL_CACHE_DIR"):
        environment["ZIG_GLOBAL_CACHE_DIR"] = str(cache_folder() / "zig")
    return environment


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

    An entry that was truncated or modified is absent. The methods may be called from several threads and processes.
    """

    def __init__(self, name: str) -> None:
        cache = cache_folder()
        self.folder = cache / name
        self._scratch = cache / _SCRATCH
        self._grew = False

    def get(self, name: str) -> bytes | None:
        """Return the data kept by a name; None if there are none."""
        path = self.folder / name
        try:
            checksum, data = path.read_bytes().split(b"\n", 1)
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
            write_file(self.folder / name, _sha256(data) + b"\n" + data, scratch=self._scratch)
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
                if not (once and self._is_whole(target)):
                    with ScratchFolder(self._scratch) as scratch:
                        make(scratch.path / name)
                        data = (scratch.path / name).read_bytes()
                    write_file(target, data, scratch=self._scratch)
                    write_file(_checksum_of(target), _sha256(data), scratch=self._scratch)
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
        self.folder.mkdir(parents=True, exist_ok=True)
        self._scratch.mkdir(exist_ok=True)

    def _is_whole(self, path: Path) -> bool:
        try:
            whole = _sha256(path.read_bytes()) == _checksum_of(path).read_bytes()
        except OSError:
            return False
        if whole:
            _touch(path)
        return whole


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
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return folder.absolute()
        reason = "it is not writable"
    except OSError as error:
        reason = error.strerror or str(error)
    raise FerruleError(
        f"can't keep anything in the cache folder {folder}: {reason}",
        hint=f"set {VARIABLE} to a folder that you may write",
    )


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
