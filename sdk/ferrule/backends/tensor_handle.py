# SPDX-License-Identifier: Apache-2.0
"""Tensor handles: where the bytes of a tensor are while a network runs on the host, and who may touch them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from enum import Enum, Flag, auto
from typing import NewType, Protocol

from ferrule.graph import Array, TensorInfo

FactoryId = NewType("FactoryId", str)
"""Unique among all factories; the first that registers an id keeps it."""


class MemorySource(Flag):
    """Kinds of memory that can be imported or exported."""

    UNDEFINED = 0
    MALLOC = auto()
    """Plain memory of the process: a numpy array."""
    DMA_BUF = auto()
    DMA_BUF_PROTECTED = auto()
    DEVICE = auto()
    """Memory of a device that the process does not see, such as an OpenCL buffer."""


class HandleCapability(Enum):
    """What a factory can be asked about the connection of two layers."""

    PADDING_REQUIRED = auto()
    """Its tensors need room around them, so foreign memory does not fit."""
    FALLBACK_IMPORT_DISABLED = auto()
    """It does not import what another backend computed."""


class Event(Protocol):
    """The end of something that was started."""

    def wait(self) -> None:
        """Return when it is over; raises what went wrong in it."""
        ...

    def done(self) -> bool:
        """Return whether it is over, without waiting."""
        ...


class TensorHandle(ABC):
    """One tensor of a loaded network.

    Order of calls: `manage` and `allocate` once, at load, for handles whose memory a manager owns; then, for each
    run, `map`/`unmap` and `import_memory` as often as needed. `ready` is set by the runtime on the outputs of a
    workload that returned an event, until the end of the run: so such a workload must not call `map` of its own
    outputs behind its event, it would wait for itself.
    """

    ready: Event | None = None

    def __init__(self, info: TensorInfo) -> None:
        self.info = info

    @abstractmethod
    def manage(self) -> None:
        """Tell the memory manager that the bytes are needed from here on (the producer's turn)."""

    @abstractmethod
    def allocate(self) -> None:
        """Tell the memory manager that the bytes are not needed any more (the last reader had its turn)."""

    @abstractmethod
    def map(self) -> Array:
        """Return the elements as an array of the tensor's shape and dtype, a view where that is possible.

        Waits for `ready`. Raises RuntimeError before memory is there.
        """

    @abstractmethod
    def unmap(self) -> None:
        """End what `map` began; what was written in between is then seen by the backend."""

    def import_memory(self, memory: Array, source: MemorySource) -> bool:
        """Use foreign memory in place of one's own from now on; False if it does not fit (alignment, layout, kind)."""
        del memory, source
        return False

    def end_import(self) -> None:  # noqa: B027 - nothing to do where nothing is kept
        """Forget imported memory: it may be freed or changed by its owner from now on."""

    def can_import(self, memory: Array, source: MemorySource) -> bool:
        """Return whether `import_memory` would succeed, without doing it."""
        del memory, source
        return False


class MemoryManager(ABC):
    """Owns the memory of one backend in one loaded network."""

    @abstractmethod
    def acquire(self) -> None:
        """Get the memory; before the first run, and after a release. Called again while held it does nothing."""

    @abstractmethod
    def release(self) -> None:
        """Give the memory back, at unload."""


class TensorHandleFactory(ABC):
    """Makes the handles of one kind of memory."""

    id: FactoryId
    import_flags: MemorySource = MemorySource.UNDEFINED
    """What its handles can import."""
    export_flags: MemorySource = MemorySource.UNDEFINED
    """As what kind of memory the bytes of its handles can be given away."""
    supports_map_unmap: bool = True
    """Whether the process can see the bytes through `map`."""
    alignment_bytes: int = 1
    """What memory that it imports must be aligned to."""

    @abstractmethod
    def create_handle(self, info: TensorInfo, *, managed: bool) -> TensorHandle:
        """Return a handle; `managed` if the memory manager gives it memory, else it gets some by import."""

    def capabilities(self) -> frozenset[HandleCapability]:
        """Return what holds for all connections."""
        return frozenset()


class TensorHandleFactoryRegistry:
    """The factories of all backends that take part in a network; filled anew for each."""

    def __init__(self) -> None:
        self._factories: dict[FactoryId, TensorHandleFactory] = {}

    def register(self, factories: Iterable[TensorHandleFactory]) -> None:
        """Add factories; of two with one id the first stays."""
        for factory in factories:
            self._factories.setdefault(factory.id, factory)

    def get(self, factory_id: FactoryId) -> TensorHandleFactory | None:
        """Return a factory, None if there is none of that id."""
        return self._factories.get(factory_id)
