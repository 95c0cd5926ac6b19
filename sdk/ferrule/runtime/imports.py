# SPDX-License-Identifier: Apache-2.0
"""The link between two backends of which one uses the other's memory, from the import to its end."""

from __future__ import annotations

from ferrule.backends.shared.host_memory import MemImportWorkload
from ferrule.backends.tensor_handle import TensorHandle


class ImportLink:
    """An import that can be ended; each may be done many times."""

    __slots__ = ("_source", "_target", "_workload", "open")

    def __init__(self, source: TensorHandle, target: TensorHandle, workload: MemImportWorkload) -> None:
        self._source = source
        self._target = target
        self._workload = workload
        self.open = False

    def execute(self) -> None:
        """Import; raises TensorImportError if the target refuses."""
        self._workload.execute()
        self.open = True

    def end(self) -> None:
        """Give the memory back to its owner, if it is imported."""
        if self.open:
            self.open = False
            self._target.end_import()
            self._source.unmap()
