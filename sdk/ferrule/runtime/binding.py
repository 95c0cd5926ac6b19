# SPDX-License-Identifier: Apache-2.0
"""Transfers the caller's arrays into a network, and the network's outputs into the caller's buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ferrule._typing import override
from ferrule.backends.host_answers import writable
from ferrule.backends.shared.host_memory import ALIGNMENT_BYTES, TensorImportError, aligned_empty, is_aligned
from ferrule.backends.tensor_handle import MemoryRef, TensorHandle
from ferrule.errors import InputError
from ferrule.graph import Array, Graph, TensorInfo
from ferrule.network.execution import check_inputs
from ferrule.runtime.fallback_memory import FallbackTensor
from ferrule.runtime.tensors import PlacedTensor

Arrays = Sequence[Array] | Mapping[str, Array]


class InputPort:
    """One input of a network: copies the caller's array, or imports it if that is planned and possible."""

    __slots__ = ("_handle", "_staging", "_wanted", "info")

    def __init__(self, info: TensorInfo, placed: PlacedTensor) -> None:
        self.info = info
        self._wanted: tuple[tuple[int, ...], np.dtype[Any]] = (info.shape, info.dtype.numpy)
        self._handle = placed.handle
        self._staging = None if placed.managed else staging_of(info, placed, lent=True)

    def fits(self, array: object) -> bool:
        """Return whether the argument is an array with the input's shape and dtype."""
        return isinstance(array, np.ndarray) and (array.shape, array.dtype) == self._wanted

    def feed(self, array: Array) -> None:
        """Copy or import the array as the network's input for one run."""
        if self._staging is None:
            np.copyto(writable(self._handle), array)
            self._handle.unmap()
        elif not self._staging.serves(array):
            self._staging.fill(array)

    def end(self) -> None:
        """End the import of the caller's array."""
        if self._staging is not None:
            self._staging.end()


class OutputPort:
    """One output of a network: lets it write the caller's buffer directly if that is planned, or else copies."""

    __slots__ = ("_handle", "_served", "_staging", "_wanted", "info")

    def __init__(self, info: TensorInfo, handle: TensorHandle, staging: Staging | None) -> None:
        self.info = info
        self._wanted: tuple[tuple[int, ...], np.dtype[Any]] = (info.shape, info.dtype.numpy)
        self._handle = handle
        self._staging = staging
        self._served = False

    def offer(self, buffer: Array, others: Sequence[Array]) -> None:
        """Let the network write the buffer directly if possible, but not if it may overlap one of `others`."""
        if self._staging is None:
            return
        shared = any(np.may_share_memory(buffer, other) for other in others)
        self._served = not shared and self._staging.serves(buffer)
        if not self._served:
            self._staging.use()

    def collect(self, buffer: Array) -> None:
        """Ensure that the buffer contains the output after a run."""
        if self._staging is not None:
            self._staging.collect(None if self._served else buffer)
            return
        np.copyto(buffer, self._handle.map())
        self._handle.unmap()

    def end(self) -> None:
        """End the import of the caller's buffer."""
        if self._staging is not None:
            self._staging.end()

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

    __slots__ = ("_array", "_info", "_placed", "alignment_bytes", "demanding")

    def __init__(self, info: TensorInfo, placed: PlacedTensor) -> None:
        self._info = info
        self._placed = placed
        self.alignment_bytes = max(placed.alignment_bytes, ALIGNMENT_BYTES)
        self.demanding = placed.alignment_bytes > info.dtype.size_bytes
        self._array: Array | None = None

    def serves(self, array: Array) -> bool:
        """Let the handle import the caller's memory; return False if it or a later importer cannot use that."""
        fits = not self.demanding or is_aligned(array, self._placed.alignment_bytes)
        return fits and self._placed.handle.import_memory(MemoryRef.of_array(array))

    def use(self) -> None:
        """Let the handle import the staging memory; TensorImportError if the handle refuses it."""
        if not self._placed.handle.import_memory(MemoryRef.of_array(self._memory())):
            raise TensorImportError(
                f"tensor '{self._info.name}': factory '{self._placed.factory.id}' does not import memory of the "
                f"process that is aligned to {self.alignment_bytes} B, as its import flags promise",
                hint="optimise the network without import_enabled and export_enabled",
            )

    def fill(self, array: Array) -> None:
        """Let the handle import the staging memory with a copy of the caller's array; raises as `use` does."""
        self.use()
        np.copyto(self._memory(), array)

    def collect(self, buffer: Array | None) -> None:
        """Copy the results to the caller's buffer, or with None, finish what was written to it directly."""
        handle = self._placed.handle
        if self._placed.factory.supports_map_unmap:  # the backend knows of each access
            values = handle.map()
            if buffer is not None:
                np.copyto(buffer, values)
            handle.unmap()
        elif buffer is not None:  # all workloads have ended
            np.copyto(buffer, self._memory())

    def end(self) -> None:
        """End the import of the caller's memory."""
        self._placed.handle.end_import()

    def _memory(self) -> Array:
        if self._array is None:
            self._array = aligned_empty(self._info.shape, self._info.dtype, self.alignment_bytes)
        return self._array


class FallbackStaging(Staging):
    """An input or output of the network in fallback memory; all its handles use either that or the caller's."""

    __slots__ = ("_lent", "_tensor")

    def __init__(self, info: TensorInfo, placed: PlacedTensor, tensor: FallbackTensor, *, lent: bool) -> None:
        super().__init__(info, placed)
        self._tensor = tensor
        self._lent = lent
        """Whether the handles may use the caller's memory, and this port decides it."""

    @override
    def serves(self, array: Array) -> bool:
        return self._lent and self._tensor.fits(array)

    @override
    def use(self) -> None:
        if self._lent:
            self._tensor.settle()

    @override
    def fill(self, array: Array) -> None:
        self._tensor.settle()
        self._tensor.write(array)

    @override
    def collect(self, buffer: Array | None) -> None:
        if buffer is not None:
            self._tensor.read(buffer)

    @override
    def end(self) -> None:
        self._tensor.leave_callers_memory()


def staging_of(info: TensorInfo, placed: PlacedTensor, *, lent: bool) -> Staging:
    """Return the staging of a tensor whose handle has no memory of its own."""
    if placed.fallback is None:
        return Staging(info, placed)
    return FallbackStaging(info, placed, placed.fallback, lent=lent and placed.lent)


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
