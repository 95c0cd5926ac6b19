# SPDX-License-Identifier: Apache-2.0
"""Reports on the folders and files in the search for dynamic backends."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from ferrule._frozen import frozen
from ferrule.backends.device import BackendId


class Reason(StrEnum):
    """The reason why a folder or a file was not accepted."""

    PATH_EMPTY = "path-empty"
    PATH_MISSING = "path-missing"
    PATH_NOT_A_DIRECTORY = "path-not-a-directory"
    PATH_NOT_ABSOLUTE = "path-not-absolute"
    PATH_UNREADABLE = "path-unreadable"
    PATH_WORLD_WRITABLE = "path-world-writable"
    """Every user of the machine may put files into the folder."""

    NAME = "name"
    """The file resembles a backend, but does not have the name of one."""
    BROKEN_LINK = "broken-link"
    LINK_LOOP = "link-loop"
    UNREADABLE = "unreadable"
    NOT_A_FILE = "not-a-file"
    WORLD_WRITABLE = "world-writable"
    """Every user of the machine may change the file, or the folder to which the link leads."""
    DUPLICATE_FILE = "duplicate-file"
    """Another name of a file that was already considered; not an error."""

    NOT_LOADABLE = "not-loadable"
    """The dynamic linker rejects it: not a shared object, another machine, a missing symbol or library."""
    MISSING_SYMBOL = "missing-symbol"
    INVALID_ID = "invalid-id"
    INCOMPATIBLE_VERSION = "incompatible-version"
    NULL_FACTORY = "null-factory"
    INVALID_TABLE = "invalid-table"
    CRASHED = "crashed"
    EXITED = "exited"
    TIMED_OUT = "timed-out"
    NOT_PROBED = "not-probed"
    """The child process for trying the file could not be started, or ended before it opened the file."""

    DUPLICATE_ID = "duplicate-id"


@frozen
class LoadReport:
    """Report on one folder that could not be searched, or on one file that was or was not registered as a backend."""

    path: Path
    """The path under which it was found."""
    canonical: Path | None = None
    """The path with links resolved; None for a folder or a broken link."""
    backend: BackendId | None = None
    """The backend's id; None if the file failed before returning it."""
    reason: Reason | None = None
    """None if the backend was registered."""
    message: str = ""
    """One sentence that explains the reason; empty if the backend was registered."""

    @property
    def accepted(self) -> bool:
        """Whether a backend was registered."""
        return self.reason is None
