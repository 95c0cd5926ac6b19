# SPDX-License-Identifier: Apache-2.0
"""Workloads that hand a tensor from one kind of memory to another."""

from __future__ import annotations

import numpy as np

from ferrule.backends.tensor_handle import MemorySource, TensorHandle
from ferrule.errors import FerruleError


class TensorImportError(FerruleError):
    """A backend did not take the memory of another, though the optimizer had planned so."""


class MemCopyWorkload:
    """Copies a tensor from one handle to another through the process's eyes."""

    __slots__ = ("_source", "_target")

    def __init__(self, source: TensorHandle, target: TensorHandle) -> None:
        self._source = source
        self._target = target

    def execute(self) -> None:
        """Wait until the source is written, and copy."""
        np.copyto(self._target.map(), self._source.map(), casting="no")
        self._target.unmap()
        self._source.unmap()


class MemImportWorkload:
    """Lets a handle use the memory of another in place of its own, until the other is unmapped.

    Whoever runs it unmaps the source after the last reader of the target.
    """

    __slots__ = ("_kind", "_names", "_source", "_target")

    def __init__(
        self,
        source: TensorHandle,
        target: TensorHandle,
        kind: MemorySource = MemorySource.MALLOC,
        *,
        source_backend: str,
        target_backend: str,
    ) -> None:
        self._source = source
        self._target = target
        self._kind = kind
        self._names = (source_backend, target_backend)

    def execute(self) -> None:
        """Wait until the source is written, and import.

        Raises:
            TensorImportError: the target refuses the memory.
        """
        memory = self._source.map()
        if not self._target.import_memory(memory, self._kind):
            self._source.unmap()
            exporter, importer = self._names
            raise TensorImportError(
                f"backend '{importer}' did not import tensor '{self._source.info.name}' "
                f"({memory.dtype}{list(memory.shape)}) from backend '{exporter}'",
                hint="optimise the network without import_enabled, so that the tensor is copied",
            )
