# SPDX-License-Identifier: Apache-2.0
"""Imports of memory: one backend uses the memory of another, from the import to its end."""

from __future__ import annotations

from ferrule.backends.shared.host_memory import MemImportWorkload
from ferrule.backends.tensor_handle import TensorHandle


class ImportLink:
    """An import of memory that can be ended and repeated any number of times."""

    __slots__ = ("_source", "_target", "_workload", "open")

    def __init__(self, source: TensorHandle, target: TensorHandle, workload: MemImportWorkload) -> None:
        self._source = source
        self._target = target
        self._workload = workload
        self.open = False

    def execute(self) -> None:
        """Import the source's memory; TensorImportError if the target refuses it."""
        self._workload.execute()
        self.open = True

    def end(self) -> None:
        """End the import, if there is one, and return the memory to its owner."""
        if self.open:
            self.open = False
            self._target.end_import()
            self._source.unmap()
