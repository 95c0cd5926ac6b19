# SPDX-License-Identifier: Apache-2.0
"""Waits that a stream lacks, which a model that executes in order would hide."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule._typing import override
from ferrule.backends.ethos_u.configuration import Configuration
from ferrule.backends.ethos_u.kernel import Kernel
from ferrule.backends.ethos_u.machine import Range
from ferrule.backends.ethos_u.stream import Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Hazard:
    """A wait that a stream lacks."""

    operation: Operation
    """The operation that may start too early."""
    earlier: Operation
    """The operation that may still run then."""
    range: Range
    """What both access."""
    missing: str
    """The wait that would prevent it, such as "DMA_WAIT 0"."""

    @override
    def __str__(self) -> str:
        return (
            f"word {self.operation.word_offset} ({self.operation.name}) accesses {self.range} while word"
            f" {self.earlier.word_offset} ({self.earlier.name}) may still run: {self.missing} is missing"
        )


class HazardTracker:
    """Follows the operations of a stream in order."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    def issue(self, operation: Operation, kernel: Kernel | None) -> tuple[Hazard, ...]:
        """Return the waits that are missing in front of an operation."""
        return ()
