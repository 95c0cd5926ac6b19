# SPDX-License-Identifier: Apache-2.0
"""Transfers the caller's arrays into a network, and the network's outputs into the caller's buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ferrule._typing import override
from ferrule.backends.guarded import writable
from ferrule.backends.shared.host_memory import (
    ALIGNMENT_BYTES,
    TensorImportError,
    aligned_empty,
    fixed_memory,
    is_aligned,
)
from ferrule.backends.tensor_handle import MemoryRef, TensorHandle
from ferrule.errors import InputError
from ferrule.graph import Array, Graph, TensorInfo
from ferrule.network.samples import split
from ferrule.runtime.fallback_memory import FallbackTensor
from ferrule.runtime.tensors import PlacedTensor

Arrays = Sequence[Array] | Mapping[str, Array]


class Port:
    """One input or output of a network."""

    __slots__ = ("_dtype", "_handle", "_staging", "info")

    def __init__(self, info: TensorInfo, handle: TensorHandle, staging: Staging | None) -> None:
        self.info = info
        self._dtype: np.dtype[Any] = info.dtype.numpy
        self._handle = handle
        self._staging = staging

    @property
    def memory(self) -> Array | None:
        """The memory that the tensor has from now on, which may be used without the port; None if there is none."""
        return fixed_memory(self._handle) if self._staging is None else None

    def end(self) -> None:
        """End the import of the caller's memory."""
        if self._staging is not None:
            self._staging.end()


class InputPort(Port):
    """One input of a network: copies the caller's array, or imports it if that is planned and possible."""

    __slots__ = ()

    def fits(self, array: object) -> bool:
        """Return whether the argument is an array with the input's shape and dtype."""
        return isinstance(array, np.ndarray) and array.shape == self.info.shape and array.dtype == self._dtype

    def feed(self, array: Array) -> None:
        """Copy or import the array as the network's input for one run."""
        if self._staging is None:
            np.copyto(writable(self._handle), array)
            self._handle.unmap()
        elif not self._staging.serves(array):
            self._staging.fill(array)


class OutputPort(Port):
    """One output of a network: lets it write the caller's buffer directly if that is planned, or else copies."""

    __slots__ = ("_served",)

    def __init__(self, info: TensorInfo, handle: TensorHandle, staging: Staging | None) -> None:
        super().__init__(info, handle, staging)
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

    def empty(self, number: int = 1) -> Array:
        """Return a new buffer that is suitable for the output of a number of samples."""
        shape = shape_of(self.info, number)
        if self._staging is None or not self._staging.demanding:
            return np.empty(shape, self._dtype)
        return aligned_empty(shape, self.info.dtype, self._staging.alignment_bytes)

    def misfit(self, buffer: object, number: int = 1) -> str:
        """Return the reason why a buffer cannot hold the output of a number of samples; "" if it can."""
        if not isinstance(buffer, np.ndarray):
            return f"is {type(buffer).__name__}"
        if buffer.shape != shape_of(self.info, number) or buffer.dtype != self._dtype:
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


def given_samples(graph: Graph, ports: Sequence[InputPort], inputs: Arrays, *, real: bool) -> list[Sequence[Array]]:
    """Return the inputs of each sample, in order, by the rules of `Network.run`.

    Raises:
        InputError: the message names the array that does not fit.
    """
    if not real:
        found = [inputs.get(port.info.name) for port in ports] if isinstance(inputs, Mapping) else inputs
        fitting = [array for port, array in zip(ports, found, strict=False) if array is not None and port.fits(array)]
        if len(inputs) == len(ports) == len(fitting):
            return [fitting]
    for array in inputs.values() if isinstance(inputs, Mapping) else inputs:
        if not isinstance(array, np.ndarray):
            raise InputError(f"network '{graph.name}' got {type(array).__name__} as input, expected numpy arrays")
    return list(split(graph.inputs, inputs, real=real, owner=f"network '{graph.name}'"))


def ordered_outputs(ports: Sequence[OutputPort], name: str, outputs: Arrays | None, number: int = 1) -> list[Array]:
    """Return one buffer per output, in order, with room for a number of samples: the caller's buffer or a new one.

    Raises:
        InputError: a buffer does not fit; `name` is the network's.
    """
    if outputs is None:
        return [port.empty(number) for port in ports]
    if isinstance(outputs, Mapping):
        names = {port.info.name for port in ports}
        for given in outputs:
            if given not in names:
                raise InputError(f"network '{name}' has no output '{given}'", hint=f"its outputs: {sorted(names)}")
        buffers = [outputs[port.info.name] if port.info.name in outputs else port.empty(number) for port in ports]
    else:
        if len(outputs) != len(ports):
            raise InputError(f"network '{name}' got {len(outputs)} output buffers, expected {len(ports)}")
        buffers = list(outputs)
    for port, buffer in zip(ports, buffers, strict=True):
        wrong = port.misfit(buffer, number)
        if wrong:
            shape = list(shape_of(port.info, number))
            raise InputError(
                f"the buffer for output '{port.info.name}' {wrong}, expected a writeable {port.info.dtype}{shape}"
            )
    return buffers


def shape_of(info: TensorInfo, number: int) -> tuple[int, ...]:
    """Return the shape of a number of samples, joined along the first axis."""
    if number == 1:
        return info.shape
    return (number * info.shape[0], *info.shape[1:]) if info.shape else (number,)


def part_of(info: TensorInfo, array: Array, index: int) -> Array:
    """Return a view of one of several samples in an array of `shape_of`."""
    extent = info.shape[0] if info.shape else 1
    return array[index * extent : (index + 1) * extent].reshape(info.shape)
