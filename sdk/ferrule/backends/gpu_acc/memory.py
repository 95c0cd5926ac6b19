# SPDX-License-Identifier: Apache-2.0
"""The memory of one loaded network: its session, and one OpenCL buffer whose layout the planner computes."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ferrule._typing import override
from ferrule.backends.context import CustomAllocator
from ferrule.backends.gpu_acc.opencl import choose_device
from ferrule.backends.gpu_acc.session import Session
from ferrule.backends.shared.host_memory import take_block
from ferrule.backends.tensor_handle import MemoryManager
from ferrule.errors import FerruleError
from ferrule.graph import Array, TensorInfo
from ferrule.memory import Lifetime, Region, Request, plan
from ferrule.memory.search import Effort

if TYPE_CHECKING:
    import pyopencl as cl

QUICK = Effort(placements=15_000, nodes=15_000)
"""A small search effort: a short loading time matters more than the last kilobyte."""


class Slot:
    """The place of a tensor's bytes; `buffer` is None while there is no memory."""

    __slots__ = ("buffer", "info")

    def __init__(self, info: TensorInfo) -> None:
        self.info = info
        self.buffer: cl.Buffer | None = None


@dataclass(slots=True)
class _Life:
    """A slot and the numbers of the calls between which it is needed; `last` is None until `end` is called."""

    slot: Slot
    first: int
    last: int | None = None


class GpuMemoryManager(MemoryManager):
    """Places slots in one buffer; slots whose lifetimes do not overlap share bytes, since commands run in order.

    The buffer uses the custom allocator's memory if there is one; a device with its own memory may keep a copy.
    """

    def __init__(self, allocator: CustomAllocator | None = None) -> None:
        self._allocator = allocator
        self._custom: Array | None = None
        self._session: Session | None = None
        self._lives: dict[int, _Life] = {}
        self._calls = 0
        self._offsets: dict[int, int] = {}
        self._size_bytes = 0
        self._block: cl.Buffer | None = None

    @property
    def session(self) -> Session:
        """The network's session; a session on the default device is created if `use` was not called before."""
        if self._session is None:
            self._session = Session(choose_device())
        return self._session

    @property
    def size_bytes(self) -> int:
        """Size of the buffer; 0 before the memory is acquired for the first time."""
        return self._size_bytes

    def use(self, session: Session) -> Session:
        """Use `session` unless a session is already in use; return the session in use."""
        if self._session is None:
            self._session = session
        return self._session

    def begin(self, slot: Slot) -> None:
        """Mark a slot as live from now on; a second call does nothing."""
        if self._block is not None:
            raise RuntimeError(f"tensor '{slot.info.name}' is managed after the memory was acquired")
        if id(slot) not in self._lives:
            self._lives[id(slot)] = _Life(slot=slot, first=self._calls)
            self._calls += 1
            self._offsets = {}

    def end(self, slot: Slot) -> None:
        """Mark a slot as dead from now on; RuntimeError if `begin` was not called for it."""
        life = self._lives.get(id(slot))
        if life is None:
            raise RuntimeError(f"tensor '{slot.info.name}' is allocated before it is managed")
        life.last = self._calls
        self._calls += 1
        self._offsets = {}

    @override
    def acquire(self) -> None:
        if self._block is not None or not self._lives:
            return
        if not self._offsets:
            self._lay_out()
        self._block = block = self._new_block()
        for key, life in self._lives.items():
            life.slot.buffer = block.get_sub_region(self._offsets[key], life.slot.info.size_bytes)

    @override
    def release(self) -> None:
        for life in self._lives.values():
            life.slot.buffer = None
        self._block = None
        custom, self._custom = self._custom, None
        if custom is not None and self._allocator is not None:
            self.session.finish()
            self._allocator.free(custom)

    def _new_block(self) -> cl.Buffer:
        if self._allocator is None or not self._size_bytes:
            return new_buffer(self.session, self._size_bytes)
        self._custom = take_block(self._allocator, self._size_bytes, max(self.session.device.alignment_bytes, 64))
        try:
            return host_buffer(self.session, self._custom)
        except BaseException:
            custom, self._custom = self._custom, None
            self._allocator.free(custom)
            raise

    def _lay_out(self) -> None:
        requests = [
            Request(
                name=str(key),
                size_bytes=life.slot.info.size_bytes,
                lifetime=Lifetime(first=life.first, last=self._calls if life.last is None else life.last),
                regions=("buffer",),
            )
            for key, life in self._lives.items()
        ]
        region = Region(name="buffer", size_bytes=sys.maxsize, alignment=self.session.device.alignment_bytes)
        found = plan(requests, [region], effort=QUICK)
        self._offsets = {key: found.placements[str(key)].offset for key in self._lives}
        self._size_bytes = found.peak_bytes


def host_buffer(session: Session, memory: Array) -> cl.Buffer:
    """Return a buffer that uses memory of the process; FerruleError if the device does not accept the memory."""
    import pyopencl as cl

    access = cl.mem_flags.READ_WRITE if memory.flags.writeable else cl.mem_flags.READ_ONLY
    try:
        return cl.Buffer(session.context, access | cl.mem_flags.USE_HOST_PTR, hostbuf=memory.reshape(-1))
    except cl.Error as error:
        raise FerruleError(
            f"{session.device.title} does not accept {memory.nbytes} B of host memory: {error}"
        ) from error


def new_buffer(session: Session, size_bytes: int) -> cl.Buffer:
    """Return a new buffer on the session's device; FerruleError if the device has too little memory."""
    import pyopencl as cl

    try:
        return cl.Buffer(session.context, cl.mem_flags.READ_WRITE, max(size_bytes, 1))
    except cl.Error as error:
        raise FerruleError(f"{session.device.title} cannot provide a buffer of {size_bytes} B: {error}") from error
