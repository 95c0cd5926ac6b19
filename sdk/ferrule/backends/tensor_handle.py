# SPDX-License-Identifier: Apache-2.0
"""Tensor handles, which locate a tensor's bytes and control access to them while a network runs on the host."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from enum import Enum, Flag, auto
from typing import NewType, Protocol

from ferrule.graph import Array, TensorInfo

FactoryId = NewType("FactoryId", str)
"""Unique among all factories; if two factories have the same id, the one registered first is used."""


class MemorySource(Flag):
    """Kinds of memory that can be imported or exported."""

    UNDEFINED = 0
    MALLOC = auto()
    """Plain memory of the process: a numpy array."""
    DMA_BUF = auto()
    DMA_BUF_PROTECTED = auto()
    DEVICE = auto()
    """Memory of a device that the process cannot access, such as an OpenCL buffer."""


class HandleCapability(Enum):
    """Properties of a factory that restrict how two layers may be connected."""

    PADDING_REQUIRED = auto()
    """The factory's tensors need padding around them, so it cannot use memory from elsewhere."""
    FALLBACK_IMPORT_DISABLED = auto()
    """The factory does not import tensors that another backend computed."""
    FALLBACK_IMPORT_MEMORY_REQUIRED = auto()
    """Other backends access the factory's tensors only in memory that both import, which the runtime allocates."""


class Event(Protocol):
    """The completion of work that was started."""

    def wait(self) -> None:
        """Wait until the work is complete; raises the exception with which it failed."""
        ...

    def done(self) -> bool:
        """Return whether the work is complete, without waiting."""
        ...


class TensorHandle(ABC):
    """One tensor of a loaded network.

    Order of calls: `manage` and `allocate` once each, at load, for handles whose memory a manager owns; then, in each
    run, `map`/`unmap` and `import_memory` as often as needed. If a workload returned an event, the runtime sets it as
    `ready` of the workload's outputs until the end of the run. Such a workload must not map its own outputs before its
    event is complete, or it would wait for itself.
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

    def import_memory(self, memory: Array, source: MemorySource) -> bool:
        """Use `memory` from now on instead of the handle's own; False if its alignment, layout or kind does not fit."""
        del memory, source
        return False

    def end_import(self) -> None:  # noqa: B027 - nothing to do where nothing is kept
        """Stop using imported memory; its owner may then free or change it."""

    def can_import(self, memory: Array, source: MemorySource) -> bool:
        """Return whether `import_memory` would succeed; nothing is imported."""
        del memory, source
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
    alignment_bytes: int = 1
    """Required alignment of imported memory."""

    @abstractmethod
    def create_handle(self, info: TensorInfo, *, managed: bool) -> TensorHandle:
        """Return a handle; its memory comes from the memory manager if `managed`, otherwise from an import."""

    def capabilities(self) -> frozenset[HandleCapability]:
        """Return the properties that hold for all connections."""
        return frozenset()


class TensorHandleFactoryRegistry:
    """The tensor handle factories of all backends of one network; each network has its own registry."""

    def __init__(self) -> None:
        self._factories: dict[FactoryId, TensorHandleFactory] = {}

    def register(self, factories: Iterable[TensorHandleFactory]) -> None:
        """Add factories; if two have the same id, the first is kept."""
        for factory in factories:
            self._factories.setdefault(factory.id, factory)

    def get(self, factory_id: FactoryId) -> TensorHandleFactory | None:
        """Return the factory of that id, None if there is none."""
        return self._factories.get(factory_id)
