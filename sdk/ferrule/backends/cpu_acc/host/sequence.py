# SPDX-License-Identifier: Apache-2.0
"""Sequences of layers that run by one native call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from ferrule.backends.cpu_acc.host.library import HostLibrary
from ferrule.backends.shared.host_memory import HostTensorHandle, address
from ferrule.backends.tensor_handle import TensorHandle
from ferrule.graph import Array

Place = tuple[int, int]
"""The index of a call and that of its argument."""


class ScratchMemory(Protocol):
    """Scratch that several workloads use in turn."""

    def address(self) -> int:
        """Return its address, which is final."""


class CallList:
    """Kernel calls, and the places of their arguments that are addresses of tensors or of scratch."""

    def __init__(self, library: HostLibrary) -> None:
        self.library = library
        self.calls: list[tuple[Any, list[Any]]] = []
        self.tensors: dict[int, tuple[TensorHandle, list[Place]]] = {}
        """By id of the handle."""
        self.scratch: list[Place] = []
        self.memory: ScratchMemory | None = None
        self.written: set[int] = set()
        """The ids of the handles that one of the calls writes."""
        self.keep: list[object] = []

    def add(self, function: Any, arguments: list[Any]) -> int:  # noqa: ANN401 - cffi's are untyped
        """Add a call, and return its index."""
        self.calls.append((function, arguments))
        return len(self.calls) - 1

    def uses(self, handle: TensorHandle, places: Iterable[Place]) -> None:
        """State that arguments are the address of a handle's tensor."""
        self.tensors.setdefault(id(handle), (handle, []))[1].extend(places)


class SequenceWorkload:
    """Runs the kernel calls of several layers by one native call.

    A tensor that the sequence writes and that has memory of its own keeps its address from the first run on; the other
    handles are mapped in each run.
    """

    __slots__ = ("_arrays", "_calls", "_count", "_list", "_mapped", "_run", "_settled")

    def __init__(self, calls: CallList) -> None:
        ffi = calls.library.ffi
        self._list = calls
        self._run = calls.library.functions.ferrule_host_run
        self._count = len(calls.calls)
        self._calls = ffi.new("struct ferrule_host_call[]", self._count)
        for entry, (function, arguments) in zip(self._calls, calls.calls, strict=True):
            entry.function = ffi.cast("void (*)(void)", function)
            entry.count = len(arguments)
            for index, argument in enumerate(arguments):
                if argument is not None:
                    entry.arguments[index] = ffi.cast("void *", argument)
        self._settled = False
        self._mapped: list[tuple[TensorHandle, list[Place]]] = list(calls.tensors.values())
        self._arrays: list[Array | None] = [None] * len(self._mapped)

    def execute(self) -> None:
        """Run the kernels; the interpreter lock is released while they run."""
        arrays = self._arrays
        for index, (handle, places) in enumerate(self._mapped):
            array = handle.map()
            if array is not arrays[index]:
                self._bind(array, places, handle.info.name)
                arrays[index] = array
        if not self._settled:
            self._settle()
        self._run(self._calls, self._count)
        for handle, _ in self._mapped:
            handle.unmap()

    def _bind(self, array: Array, places: Sequence[Place], name: str) -> None:
        if not array.flags.c_contiguous:
            raise ValueError(f"tensor '{name}' is not contiguous")
        self._set(address(array), places)

    def _set(self, address_: int, places: Sequence[Place]) -> None:
        pointer = self._list.library.ffi.cast("void *", address_)
        for call, argument in places:
            self._calls[call].arguments[argument] = pointer

    def _settle(self) -> None:
        """Set the scratch, and stop mapping the tensors whose memory stays where it is."""
        if self._list.memory is not None:
            self._set(self._list.memory.address(), self._list.scratch)
        moving = []
        for (handle, places), array in zip(self._mapped, self._arrays, strict=True):
            if id(handle) in self._list.written and isinstance(handle, HostTensorHandle) and handle.has_fixed_memory:
                handle.unmap()
            else:
                moving.append(((handle, places), array))
        self._mapped = [entry for entry, _ in moving]
        self._arrays = [array for _, array in moving]
        self._settled = True
