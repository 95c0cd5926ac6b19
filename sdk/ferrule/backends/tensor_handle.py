# SPDX-License-Identifier: Apache-2.0
"""Tensor handles, which locate a tensor's bytes and control access to them while a network runs on the host."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum, Flag
from typing import Annotated, NewType, Protocol

from ferrule._frozen import frozen
from ferrule.backends.conforming import POWER_OF_TWO
from ferrule.graph import Array, Layer, TensorInfo

FactoryId = NewType("FactoryId", str)
"""Unique among all factories; if two factories have the same id, the one registered first is used."""


class MemorySource(Flag):
    """Kinds of memory that can be imported or exported; the values are those of enum ferrule_memory_source."""

    UNDEFINED = 0
    MALLOC = 1
    """Plain memory of the process: a numpy array."""
    DMA_BUF = 2
    DMA_BUF_PROTECTED = 4
    DEVICE = 8
    """Memory of a device that the process cannot access, such as an OpenCL buffer."""


class MemoryAccess(Protocol):
    """Brackets the processor's accesses to memory that devices reach, too."""

    def begin(self) -> None:
        """Prepare the memory for accesses of the processor; called before the first of them."""
        ...

    def end(self) -> None:
        """Prepare the memory for accesses of devices; called after the processor's last access."""
        ...


@frozen(eq=False, kw_only=False)
class MemoryRef:
    """A region of memory: `size_bytes` bytes at `offset` of a block that has an address, a file descriptor, or both.

    The allocator of the block owns it, with its file descriptor, and keeps both while a handle uses them.
    """

    source: MemorySource
    """The kinds of memory as which it can be imported: a DMA_BUF that is mapped is MALLOC, too."""
    size_bytes: int
    array: Array | None = None
    """The region as an array: of a tensor's shape and dtype, or of bytes; None if the process cannot access it."""
    fd: int | None = None
    """The file descriptor of the block; None for memory that has none."""
    offset: int = 0
    """Where the region begins, in bytes from the beginning of the block."""
    block: MemoryRef | None = None
    """The region of bytes that was allocated, if this is a part of it; None if this is all of it."""
    access: MemoryAccess | None = None
    """Brackets each access to `array` and to its block; None for memory that needs no preparation."""

    @classmethod
    def of_array(cls, array: Array, source: MemorySource = MemorySource.MALLOC) -> MemoryRef:
        """Return the memory of an array."""
        return cls(source, array.nbytes, array)

    @property
    def address(self) -> int | None:
        """The address of the block in this process, to which `offset` is added; None if it has none."""
        if self.array is None:
            return None
        return int(self.array.__array_interface__["data"][0]) - self.offset

    def part(self, offset: int, info: TensorInfo) -> MemoryRef:
        """Return the part of the region that begins at `offset` from its first byte, and holds a tensor."""
        end = offset + info.size_bytes
        assert 0 <= offset <= end <= self.size_bytes, f"{info.name} at {offset} of {self.size_bytes} B"
        array = self.array
        if array is not None:
            array = array.reshape(-1).view("u1")[offset:end].view(info.dtype.numpy).reshape(info.shape)
        place = self.offset + offset
        return MemoryRef(self.source, info.size_bytes, array, self.fd, place, self.block or self, self.access)


class HandleCapability(Enum):
    """Properties of a factory that restrict how two layers may be connected, as in enum ferrule_handle_capability."""

    PADDING_REQUIRED = 1
    """The factory's tensors need padding around them, so it cannot use memory from elsewhere."""
    FALLBACK_IMPORT_DISABLED = 2
    """The factory does not import tensors that another backend computed."""
    FALLBACK_IMPORT_MEMORY_REQUIRED = 4
    """The factory's tensors are shared with another backend in fallback memory that both import, not by its export."""


class Event(Protocol):
    """The completion of work that was started."""

    def wait(self) -> None:
        """Wait until the work is complete; raises the exception with which it failed."""
        ...

    def done(self) -> bool:
        """Return whether the work is complete, without waiting; True once `wait` has returned."""
        ...


class TensorHandle(ABC):
    """One tensor of a loaded network.

    Order of calls: `manage` and `allocate` once each, at load, for handles whose memory a manager owns; then, in each
    run, `map`/`unmap` and `import_memory` as often as needed. If a workload returned an event, the runtime sets it as
    `ready` of the workload's outputs until the end of the run. Such a workload must not map its own outputs before its
    event is complete, or it would wait for itself.

    A handle whose factory does not support map and unmap is not mapped: it works on memory that it imports, which holds
    the data of a workload's input when `execute` is called, and of its output when `execute` has returned no event or
    its event is complete. A handle of any factory works in this way on fallback memory, which the runtime lets it
    import at load and which it keeps until unload, except in a run in which it imports the caller's instead.
    """

    ready: Event | None = None

    def __init__(self, info: TensorInfo) -> None:
        self.info = info

    @abstractmethod
    def manage(self) -> None:
        """Tell the memory manager that the bytes are needed from this layer on; called for the producer."""

    @abstractmethod
    def allocate(self) -> None:
        """Tell the memory manager that the bytes are no longer needed; called after the last reader."""

    @abstractmethod
    def map(self) -> Array:
        """Return the elements as an array of the tensor's shape and dtype, as a view if possible.

        Waits for `ready`. Raises RuntimeError if the handle has no memory yet.
        """

    @abstractmethod
    def unmap(self) -> None:
        """End the access that `map` began; the backend then sees the data that was written."""

    def import_memory(self, memory: MemoryRef) -> bool:
        """Use `memory` from now on instead of the handle's own; False if its alignment, layout or kind does not fit."""
        del memory
        return False

    def end_import(self) -> None:  # noqa: B027 - nothing to do where nothing is kept
        """Stop using imported memory; its owner may then free or change it."""

    def can_import(self, memory: MemoryRef) -> bool:
        """Return whether `import_memory` would succeed; nothing is imported."""
        del memory
        return False


class MemoryManager(ABC):
    """Owns the memory of one backend in one loaded network."""

    @abstractmethod
    def acquire(self) -> None:
        """Get the memory before the first run or after a release; does nothing if it is already held."""

    @abstractmethod
    def release(self) -> None:
        """Release the memory, at unload."""


class TensorHandleFactory(ABC):
    """Makes tensor handles in one kind of memory."""

    id: FactoryId
    import_flags: MemorySource = MemorySource.UNDEFINED
    """The kinds of memory that its handles can import."""
    export_flags: MemorySource = MemorySource.UNDEFINED
    """The kinds of memory that its handles can export."""
    supports_map_unmap: bool = True
    """Whether the process can access the bytes through `map`."""

    @abstractmethod
    def create_handle(self, info: TensorInfo, *, managed: bool) -> TensorHandle:
        """Return a handle; its memory comes from the memory manager if `managed`, otherwise from an import."""

    def memory_alignment(self, source: MemorySource) -> Annotated[int, POWER_OF_TWO]:
        """Return the required alignment of imported memory of one kind, in bytes."""
        del source
        return 1

    def import_refusal(self, source: MemorySource) -> str:
        """Return the reason why its handles cannot import one kind of memory, for messages; "" if there is none to add.

        `import_flags` alone decide what is imported.
        """
        del source
        return ""

    def capabilities(self, layer: Layer | None = None, connected: Layer | None = None) -> frozenset[HandleCapability]:
        """Return the properties for the connection from `layer`, which writes a tensor, to `connected`, which reads it.

        Without the layers, the properties that hold for all connections.
        """
        del layer, connected
        return frozenset()
