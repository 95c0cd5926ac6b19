# SPDX-License-Identifier: Apache-2.0
"""Kernel calls of one layer or of several, which run by one native call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.host.calls import SCRATCH, Calls
from ferrule.backends.cpu_acc.host.library import HostLibrary
from ferrule.backends.shared.host_memory import address, aligned_empty, fixed_memory
from ferrule.backends.tensor_handle import TensorHandle
from ferrule.graph import Array, DataType


class Scratch:
    """Scratch memory that the workloads of one network use in turn; it is allocated at the first run."""

    def __init__(self) -> None:
        self._size_bytes = 0
        self._array: Array | None = None

    def require(self, size_bytes: int) -> None:
        """Request at least `size_bytes`; all requests must come before the first use."""
        if self._array is not None:
            raise RuntimeError("a workload is made after the first run")
        self._size_bytes = max(self._size_bytes, size_bytes)

    def address(self) -> int:
        """Return the address of the memory, which is aligned to a cache line."""
        if self._array is None:
            self._array = aligned_empty((self._size_bytes,), DataType.UINT8)
        return address(self._array)


@frozen(eq=False)
class Part:
    """The calls of one layer, with the memory that they use."""

    kernel: str
    calls: Calls
    handles: Mapping[str, TensorHandle]
    """By the names of the layer's tensors."""
    outputs: tuple[str, ...]
    scratch: Scratch


@dataclass(slots=True)
class _Mapped:
    """A handle that is mapped in each run."""

    handle: TensorHandle
    places: list[Any] = field(default_factory=list)
    """Where the address of its tensor is stored."""
    array: Array | None = None
    """The memory of the last run."""


class KernelWorkload:
    """Runs the kernel calls of one layer or of several by one native call.

    A tensor with memory of its own keeps its address from the first run on, and only its writer may be waited for; the
    other handles are mapped in each run.
    """

    __slots__ = ("_awaited", "_calls", "_count", "_ffi", "_mapped", "_run", "_scratch", "_settled", "_written", "parts")

    def __init__(self, library: HostLibrary, parts: Sequence[Part]) -> None:
        self.parts = parts
        self._ffi = ffi = library.ffi
        self._run = library.functions.ferrule_host_run
        self._count = sum(len(part.calls.calls) for part in parts)
        self._calls = ffi.new("struct ferrule_host_call[]", self._count)
        self._scratch: list[Any] = []
        self._written = {id(part.handles[name]) for part in parts for name in part.outputs}
        tensors: dict[int, _Mapped] = {}
        entries = iter(self._calls)
        for part in parts:
            own = [self._filled(next(entries), *call) for call in part.calls.calls]
            pointers = {
                name: [ffi.addressof(own[call], "arguments", argument) for call, argument in places]
                for name, places in part.calls.places.items()
            }
            self._scratch += pointers[SCRATCH]
            for name, handle in part.handles.items():
                tensors.setdefault(id(handle), _Mapped(handle)).places += pointers[name] + part.calls.members[name]
        self._settled = False
        self._awaited: list[TensorHandle] = []
        self._mapped = list(tensors.values())

    def _filled(self, entry: Any, function: object, arguments: Sequence[object]) -> Any:  # noqa: ANN401 - cffi's
        entry.function = self._ffi.cast("void (*)(void)", function)
        entry.count = len(arguments)
        for index, argument in enumerate(arguments):
            if argument is not None:
                entry.arguments[index] = self._ffi.cast("void *", argument)
        return entry

    def execute(self) -> None:
        """Run the kernels; the interpreter lock is released while they run."""
        for handle in self._awaited:
            if handle.ready is not None:
                handle.ready.wait()
        for each in self._mapped:
            array = each.handle.map()
            if array is not each.array:
                if not array.flags.c_contiguous:
                    raise ValueError(f"tensor '{each.handle.info.name}' is not contiguous")
                self._set(address(array), each.places)
                each.array = array
        if not self._settled:
            self._settle()
        self._run(self._calls, self._count)
        for each in self._mapped:
            each.handle.unmap()

    def native_call(self) -> Callable[[], object] | None:
        """Return the native call alone; None if a tensor is mapped in each run."""
        return partial(self._run, self._calls, self._count) if self._settled and not self._mapped else None

    def _set(self, address_: int, places: Sequence[Any]) -> None:
        pointer = self._ffi.cast("void *", address_)
        for place in places:
            place[0] = pointer

    def _settle(self) -> None:
        """Set the scratch, and stop mapping the tensors whose memory stays where it is."""
        if self._scratch:
            self._set(self.parts[0].scratch.address(), self._scratch)
        moving = []
        for each in self._mapped:
            handle = each.handle
            if fixed_memory(handle) is None:
                moving.append(each)
                continue
            handle.unmap()
            if id(handle) not in self._written:
                self._awaited.append(handle)
        self._mapped = moving
        self._settled = True
