# SPDX-License-Identifier: Apache-2.0
"""A command that ended with an error in place of its result, as data for the formats that report failures."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule._typing import override
from ferrule.report.picture import EnvironmentPart

FAILURE_SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureDocument:
    """All that is known of a command that has failed."""

    kind: str = "failure"
    schema_version: int = FAILURE_SCHEMA_VERSION
    ferrule_version: str
    command: str
    """The command, such as "run"."""
    models: tuple[str, ...]
    """The files of the models, relative to the working folder; only the names of files elsewhere."""
    board: str = ""
    engine: str = ""
    error: str
    """The class of the error, such as "EngineError"."""
    message: str
    hint: str = ""
    """What to do about it; empty if the error states nothing."""
    environment: EnvironmentPart | None = None

    @override
    def __repr__(self) -> str:
        return f"<FailureDocument {self.command}: {self.error}>"
