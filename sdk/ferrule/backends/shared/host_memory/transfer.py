# SPDX-License-Identifier: Apache-2.0
"""Workloads that transfer a tensor from one kind of memory to another."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ferrule.backends.guarded import writable
from ferrule.backends.tensor_handle import MemoryRef, MemorySource, TensorHandle
from ferrule.errors import FerruleError


class TensorImportError(FerruleError):
    """A backend refused to import another backend's memory, although the optimizer had planned the import."""


@dataclass(slots=True, eq=False)
class MemCopyWorkload:
    """Copies a tensor from one handle to another; both are mapped into the process."""

    _source: TensorHandle
    _target: TensorHandle

    def execute(self) -> None:
        """Wait until the source is written, then copy it."""
        np.copyto(writable(self._target), self._source.map(), casting="no")
        self._target.unmap()
        self._source.unmap()


@dataclass(slots=True, eq=False)
class MemImportWorkload:
    """Makes the target handle use the source's memory instead of its own, until `end`; any number of times.

    The caller must end the import after the last reader of the target.
    """

    _source: TensorHandle
    _target: TensorHandle
    _kind: MemorySource = MemorySource.MALLOC
    source_backend: str = field(kw_only=True)
    target_backend: str = field(kw_only=True)
    _memory: MemoryRef | None = None
    _open: bool = False

    def execute(self) -> None:
        """Wait until the source is written, then import its memory into the target.

        Raises:
            TensorImportError: the target refuses the memory.
        """
        array = self._source.map()
        memory = self._memory
        if memory is None or memory.array is not array:  # a host's handles are mapped as the same array in each run
            self._memory = memory = MemoryRef.of_array(array, self._kind)
        if not self._target.import_memory(memory):
            self._source.unmap()
            raise TensorImportError(
                f"backend '{self.target_backend}' did not import tensor '{self._source.info.name}' "
                f"({array.dtype}{list(array.shape)}) from backend '{self.source_backend}'",
                hint="optimise the network without import_enabled, so that the tensor is copied",
            )
        self._open = True

    def end(self) -> None:
        """End the import, if there is one, and return the memory to its owner."""
        if self._open:
            self._open = False
            self._target.end_import()
            self._source.unmap()
