# SPDX-License-Identifier: Apache-2.0
"""What became of each folder and file that dynamic backends were looked for in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ferrule.backends.device import BackendId


class Reason(StrEnum):
    """Why a folder or a file was not taken."""

    PATH_EMPTY = "path-empty"
    PATH_MISSING = "path-missing"
    PATH_NOT_A_DIRECTORY = "path-not-a-directory"
    PATH_NOT_ABSOLUTE = "path-not-absolute"
    PATH_UNREADABLE = "path-unreadable"

    NAME = "name"
    """It resembles the file of a backend, but is not called as one."""
    BROKEN_LINK = "broken-link"
    LINK_LOOP = "link-loop"
    UNREADABLE = "unreadable"
    NOT_A_FILE = "not-a-file"
    DUPLICATE_FILE = "duplicate-file"
    """Another name of a file that was looked at before; nothing is wrong with it."""

    NOT_LOADABLE = "not-loadable"
    """The dynamic linker refuses it: no shared object, another machine, a symbol or library that is not there."""
    MISSING_SYMBOL = "missing-symbol"
    INVALID_ID = "invalid-id"
    INCOMPATIBLE_VERSION = "incompatible-version"
    NULL_FACTORY = "null-factory"
    INVALID_TABLE = "invalid-table"
    CRASHED = "crashed"
    EXITED = "exited"
    TIMED_OUT = "timed-out"
    NOT_PROBED = "not-probed"
    """The child process that tries a file could not be started."""

    DUPLICATE_ID = "duplicate-id"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """One folder that could not be looked in, or one file: taken as a backend, or not, and why."""

    path: Path
    """As found."""
    canonical: Path | None = None
    """Without links; None for a folder, and for a link that leads nowhere."""
    backend: BackendId | None = None
    """The id, as far as the file got to tell it."""
    reason: Reason | None = None
    """None: it was registered."""
    message: str = ""
    """One sentence for people; empty if it was registered."""

    @property
    def accepted(self) -> bool:
        """Whether a backend was registered."""
        return self.reason is None
