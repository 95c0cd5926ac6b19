# SPDX-License-Identifier: Apache-2.0
"""Transfers the caller's arrays into a network, and the network's outputs into the caller's buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ferrule.backends.host_answers import writable
from ferrule.backends.shared.host_memory import ALIGNMENT_BYTES, TensorImportError, aligned_empty, is_aligned
from ferrule.backends.tensor_handle import MemoryRef, TensorHandle
from ferrule.errors import InputError
from ferrule.graph import Array, Graph, TensorInfo
from ferrule.network.execution import check_inputs
from ferrule.runtime.tensors import PlacedTensor

Arrays = Sequence[Array] | Mapping[str, Array]


class InputPort:
    """One input of a network: copies the caller's array, or imports it if that is planned and possible."""

    __slots__ = ("_handle", "_managed", "_staging", "_wanted", "info")

    def __init__(self, info: TensorInfo, placed: PlacedTensor) -> None:
        self.info = info
        self._wanted: tuple[tuple[int, ...], np.dtype[Any]] = (info.shape, info.dtype.numpy)
        self._handle = placed.handle
        self._managed = placed.managed
        self._staging = None if placed.managed else Staging(info, placed)

    def fits(self, array: object) -> bool:
        """Return whether the argument is an array with the input's shape and dtype."""
        return isinstance(array, np.ndarray) and (array.shape, array.dtype) == self._wanted

    def feed(self, array: Array) -> None:
        """Copy or import the array as the network's input for one run."""
        if self._staging is None:
            np.copyto(writable(self._handle), array)
            self._handle.unmap()
        elif not self._staging.serves(array):
            np.copyto(self._staging.use(), array)

    def end(self) -> None:
        """End the import of the caller's array."""
        if not self._managed:
            self._handle.end_import()


class OutputPort:
    """One output of a network: lets it write the caller's buffer directly if that is planned, or else copies."""

    __slots__ = ("_handle", "_staged", "_staging", "_wanted", "info")

    def __init__(self, info: TensorInfo, handle: TensorHandle, staging: Staging | None) -> None:
        self.info = info
        self._wanted: tuple[tuple[int, ...], np.dtype[Any]] = (info.shape, info.dtype.numpy)
        self._handle = handle
        self._staging = staging
        self._staged: Array | None = None

    def offer(self, buffer: Array, others: Sequence[Array]) -> None:
        """Let the network write the buffer directly if possible, but not if it may overlap one of `others`."""
        if self._staging is None:
            return
        shared = any(np.may_share_memory(buffer, other) for other in others)
        self._staged = self._staging.use() if shared or not self._staging.serves(buffer) else None

    def collect(self, buffer: Array) -> None:
        """Ensure that the buffer contains the output after a run."""
        if self._staging is not None and not self._staging.maps:  # all workloads have ended
            if self._staged is not None:
                np.copyto(buffer, self._staged)
            return
        values = self._handle.map()
        if self._staging is None or self._staged is not None:
            np.copyto(buffer, values)
        self._handle.unmap()

    def end(self) -> None:
        """End the import of the caller's buffer."""
        if self._staging is not None:
            self._handle.end_import()

    def empty(self) -> Array:
        """Return a new buffer that is suitable for the output."""
        if self._staging is None or not self._staging.demanding:
            return np.empty(*self._wanted)
        return aligned_empty(self.info.shape, self.info.dtype, self._staging.alignment_bytes)

    def misfit(self, buffer: object) -> str:
        """Return the reason why a buffer cannot hold the output; "" if it can."""
        if not isinstance(buffer, np.ndarray):
            return f"is {type(buffer).__name__}"
        if (buffer.shape, buffer.dtype) != self._wanted:
            return f"is {buffer.dtype}{list(buffer.shape)}"
        return "" if buffer.flags.writeable else "is read-only"


class Staging:
    """Memory that a handle imports if it has no memory itself and cannot import the caller's."""

    __slots__ = ("_array", "_info", "_placed", "alignment_bytes", "demanding", "maps")

    def __init__(self, info: TensorInfo, placed: PlacedTensor) -> None:
        self._info = info
        self._placed = placed
        self.alignment_bytes = max(placed.alignment_bytes, ALIGNMENT_BYTES)
        self.demanding = placed.alignment_bytes > info.dtype.size_bytes
        self.maps = placed.factory.supports_map_unmap
        """Whether the handle is mapped, so that its backend knows of each access."""
        self._array: Array | None = None

    def serves(self, array: Array) -> bool:
        """Let the handle import the caller's memory; return False if it or a later importer cannot use that."""
        fits = not self.demanding or is_aligned(array, self._placed.alignment_bytes)
        return fits and self._placed.handle.import_memory(MemoryRef.of_array(array))

    def use(self) -> Array:
        """Let the handle import the staging memory and return that; TensorImportError if the handle refuses it."""
        if self._array is None:
            self._array = aligned_empty(self._info.shape, self._info.dtype, self.alignment_bytes)
        if not self._placed.handle.import_memory(MemoryRef.of_array(self._array)):
            raise TensorImportError(
                f"tensor '{self._info.name}': factory '{self._placed.factory.id}' does not import memory of the "
                f"process that is aligned to {self.alignment_bytes} B, as its import flags promise",
                hint="optimise the network without import_enabled and export_enabled",
            )
        return self._array


def ordered_inputs(graph: Graph, ports: Sequence[InputPort], inputs: Arrays) -> Sequence[Array]:
    """Return one checked array per input, in order; InputError names the array that does not fit."""
    if not isinstance(inputs, Mapping):
        if len(inputs) == len(ports) and all(map(InputPort.fits, ports, inputs)):
            return inputs
    elif len(inputs) == len(ports):
        found = [inputs.get(port.info.name) for port in ports]
        arrays = [array for array in found if array is not None]
        if len(arrays) == len(ports) and all(map(InputPort.fits, ports, arrays)):
            return arrays
    values = inputs.values() if isinstance(inputs, Mapping) else inputs
    for array in values:
        if not isinstance(array, np.ndarray):
            raise InputError(f"network '{graph.name}' got {type(array).__name__} as input, expected numpy arrays")
    checked = check_inputs(graph, inputs)
    return [checked[info.name] for info in graph.inputs]


def ordered_outputs(graph: Graph, ports: Sequence[OutputPort], outputs: Arrays | None) -> list[Array]:
    """Return one buffer per output, in order: the caller's buffer or a new one; InputError if one does not fit."""
    if outputs is None:
        return [port.empty() for port in ports]
    if isinstance(outputs, Mapping):
        names = {port.info.name for port in ports}
        for name in outputs:
            if name not in names:
                raise InputError(f"network '{graph.name}' has no output '{name}'", hint=f"its outputs: {sorted(names)}")
        buffers = [outputs[port.info.name] if port.info.name in outputs else port.empty() for port in ports]
    else:
        if len(outputs) != len(ports):
            raise InputError(f"network '{graph.name}' got {len(outputs)} output buffers, expected {len(ports)}")
        buffers = list(outputs)
    for port, buffer in zip(ports, buffers, strict=True):
        wrong = port.misfit(buffer)
        if wrong:
            raise InputError(
                f"the buffer for output '{port.info.name}' {wrong}, "
                f"expected a writeable {port.info.dtype}{list(port.info.shape)}"
            )
    return buffers
