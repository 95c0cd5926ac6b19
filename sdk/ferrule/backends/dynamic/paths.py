# SPDX-License-Identifier: Apache-2.0
"""The search for files of dynamic backends."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from ferrule.backends.dynamic.build_paths import BUILD_PATHS
from ferrule.backends.dynamic.report import LoadReport, Reason
from ferrule.record import NAMES, declare, lasting, note, variable

PATHS_VARIABLE = "FERRULE_DYNAMIC_BACKENDS"
"""Environment variable with folders, separated by colons; if set, it replaces the build's list."""
_REMEDY = "a backend is code, so remove that permission: chmod o-w"
_NAME = re.compile(r"[a-zA-Z0-9]+_[a-zA-Z0-9]+_backend\.so(\.[0-9]+)*")


def is_backend_name(name: str) -> bool:
    """Return whether a file name, without folder, is `<vendor>_<name>_backend.so[.<version>]`."""
    return _NAME.fullmatch(name) is not None


def resembles_backend(name: str) -> bool:
    """Return whether a file with an invalid name may be meant as a backend, so that a report mentions it."""
    lowered = name.lower()
    return "backend" in lowered or ".so" in lowered


def search_paths(override: Path | str | None = None) -> tuple[str, ...]:
    """Return the folders to search, unchecked and without duplicates.

    The override is a single folder, even if it contains colons, and replaces everything else; an empty one is ignored.
    Next in precedence are the environment variable and the build's list.
    """
    if override is not None and str(override):
        return (str(override),)
    _variable(PATHS_VARIABLE)
    listed = os.environ.get(PATHS_VARIABLE, BUILD_PATHS)
    return tuple(dict.fromkeys(listed.split(":"))) if listed else ()


# backends are loaded once in a process, and used for all of its work
_variable, _note, _declare = lasting(variable), lasting(note), lasting(declare)


def check_path(path: str) -> LoadReport | None:
    """Return a report if a folder cannot be searched, with the first reason that applies; None if it can."""
    if not path:
        return _refused(path, Reason.PATH_EMPTY, "The given backend path is empty")
    found = Path(path)
    try:
        mode = found.stat().st_mode
    except (OSError, ValueError):
        return _refused(path, Reason.PATH_MISSING, f'The given backend path "{path}" does not exist')
    if not stat.S_ISDIR(mode):
        return _refused(path, Reason.PATH_NOT_A_DIRECTORY, f'The given backend path "{path}" is not a directory')
    if not found.is_absolute():
        return _refused(path, Reason.PATH_NOT_ABSOLUTE, f'The given backend path "{path}" is not absolute')
    if _is_world_writable(mode):
        message = f'The given backend path "{path}" can be written by every user; {_REMEDY} "{path}"'
        return _refused(path, Reason.PATH_WORLD_WRITABLE, message)
    return None


def _is_world_writable(mode: int) -> bool:
    """Return whether every user may write; other systems than POSIX have no such mode."""
    return os.name == "posix" and bool(mode & stat.S_IWOTH)


def find_candidates(paths: tuple[str, ...]) -> Iterator[LoadReport]:
    """Yield reports on folders and files, by folder and then by name; those that are accepted are files to try.

    Subfolders are not searched. If a file has several names, the first is used. Files whose names do not resemble a
    backend's are skipped without a report.
    """
    seen: dict[Path, Path] = {}
    for folder in paths:
        refusal = check_path(folder)
        if refusal is not None:
            yield refusal
            continue
        _note(folder, f"{NAMES}*.so*")
        try:
            names = sorted(os.listdir(folder))  # noqa: PTH208 (names suffice, and Path objects sort slower)
        except OSError as error:
            yield _refused(
                folder, Reason.PATH_UNREADABLE, f'The given backend path "{folder}" cannot be read: {error.strerror}'
            )
            continue
        for name in names:
            yield from _look_at(Path(folder) / name, seen)


def _look_at(path: Path, seen: dict[Path, Path]) -> Iterator[LoadReport]:
    if not is_backend_name(path.name):
        if resembles_backend(path.name):
            yield _refused(path, Reason.NAME, "the file is not called <vendor>_<name>_backend.so[.<version>]")
        return
    try:
        canonical = Path(os.path.realpath(path, strict=True))
        mode = canonical.stat().st_mode
        folder_mode = canonical.parent.stat().st_mode
    except OSError as error:
        yield _unreachable(path, error)
        return
    if not stat.S_ISREG(mode):
        kind = "directory" if stat.S_ISDIR(mode) else "special file"
        yield _refused(path, Reason.NOT_A_FILE, f"it is a {kind}", canonical)
    elif _is_world_writable(mode) or _is_world_writable(folder_mode):
        changed = canonical if _is_world_writable(mode) else canonical.parent
        message = f'"{changed}" can be written by every user; {_REMEDY} "{changed}"'
        yield _refused(path, Reason.WORLD_WRITABLE, message, canonical)
    elif canonical in seen:
        yield _refused(path, Reason.DUPLICATE_FILE, f'it is the same file as "{seen[canonical]}"', canonical)
    else:
        seen[canonical] = path
        _declare(canonical)
        yield LoadReport(path=path, canonical=canonical)


def _unreachable(path: Path, error: OSError) -> LoadReport:
    if error.errno == errno.ELOOP:
        return _refused(path, Reason.LINK_LOOP, "the link leads back to itself")
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        return _refused(path, Reason.BROKEN_LINK, "the link is broken")
    return _refused(path, Reason.UNREADABLE, f"it cannot be reached: {error.strerror}")


def _refused(path: Path | str, reason: Reason, message: str, canonical: Path | None = None) -> LoadReport:
    return LoadReport(path=Path(path), canonical=canonical, reason=reason, message=message)
