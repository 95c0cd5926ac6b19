# SPDX-License-Identifier: Apache-2.0
"""The options that a runtime passes to backends when it is created, and the notifications that it sends them later."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import NewType, Protocol

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.tensor_handle import MemoryRef, MemorySource
from ferrule.errors import FerruleError
from ferrule.graph import Array

NetworkId = NewType("NetworkId", int)


class CustomAllocator(ABC):
    """An allocator of memory for tensors, such as one that an application provides for a backend."""

    name: str = "custom allocator"
    """Names the allocator in messages and profiles."""
    source: MemorySource
    """The kinds as which its memory can be imported; DMA_BUF_PROTECTED requires the backend's capability for it."""

    @abstractmethod
    def allocate(self, size_bytes: int, alignment_bytes: int) -> MemoryRef:
        """Return a new block of this size and alignment; MemoryError if none is left.

        Its array is a writable, C-contiguous uint8 array, or None if the memory cannot be mapped; its `offset` and its
        address plus offset, if it has one, are multiples of the alignment.
        """

    @abstractmethod
    def free(self, memory: MemoryRef) -> None:
        """Release a block that `allocate` returned."""

    def view(self, memory: MemoryRef, backend: str) -> MemoryRef:
        """Return `memory`, a block or a part of one, as the handles of a backend import it: unchanged by default.

        An allocator may map a block several times, so that each backend has addresses of its own.
        """
        del backend
        return memory

    def populate_data(self, memory: MemoryRef, data: Array) -> None:
        """Copy the bytes of `data`, which is C-contiguous, to the beginning of `memory`, a block or a part of one.

        An allocator of memory that cannot be mapped overrides this method and `retrieve_data`.
        """
        self._copy(memory, data, "populate_data", np.copyto)

    def retrieve_data(self, memory: MemoryRef, data: Array) -> None:
        """Copy bytes from the beginning of `memory`, a block or a part of one, until `data` is full."""
        self._copy(memory, data, "retrieve_data", lambda ours, given: np.copyto(given, ours))

    def _copy(self, memory: MemoryRef, data: Array, method: str, copy: Callable[[Array, Array], None]) -> None:
        """Call `copy` with the bytes of mapped memory that `data` takes up and with the bytes of `data`."""
        assert data.flags.c_contiguous, "an array with gaps"
        if data.nbytes > memory.size_bytes:
            raise FerruleError(f"{data.nbytes} B do not fit in {memory.size_bytes} B of an allocator's memory")
        if memory.array is None:
            raise FerruleError(
                f"the {self.name} ({type(self).__name__}) allocates memory that cannot be mapped, "
                f"and has no {method}() of its own"
            )
        if memory.access is not None:
            memory.access.begin()
        try:
            copy(memory.array.reshape(-1).view(np.uint8)[: data.nbytes], data.reshape(-1).view(np.uint8))
        finally:
            if memory.access is not None:
                memory.access.end()


ISOLATED_TIMEOUT_S = 60.0
"""How long a process of a dynamic backend may take for one answer by default."""


@frozen
class CreationOptions:
    """Options for creating a runtime."""

    dynamic_backends_path: Path | None = None
    """The only folder that is searched for dynamic backends; None for the default folders."""
    isolate_dynamic_backends: bool = False
    """Run each dynamic backend in a process of its own, so that its faults cannot affect this process; its tensors are
    copied, and it takes no custom allocator."""
    isolated_timeout_s: float = ISOLATED_TIMEOUT_S
    """Longest time in seconds that such a process may take for one answer, such as the run of a layer, before it is
    ended and its backend has failed; math.inf for any time."""
    custom_allocators: Mapping[str, CustomAllocator] = field(default_factory=dict)
    """Allocators by backend id; a backend that does not accept its allocator is unusable in this runtime."""
    fallback_allocators: Sequence[CustomAllocator] = ()
    """Allocators of the memory between backends that both import, in order of preference, before the runtime's own."""
    protected_mode: bool = False
    """Tensors lie in protected memory: only backends with a custom allocator and the capability are usable."""
    profiling: bool = False
    """Record an event per workload."""
    backend_options: Mapping[str, Mapping[str, bool | int | float | str]] = field(default_factory=dict)
    """Options by backend id; each backend interprets its own."""

    def __post_init__(self) -> None:
        if not self.isolated_timeout_s > 0:
            raise FerruleError(f"isolated_timeout_s is {self.isolated_timeout_s}, expected seconds above 0")


class BackendContext(Protocol):
    """A backend's context in a runtime: created with the runtime, notified of every load and unload.

    A subclass defines the methods that it needs; the others allow what happens.
    """

    def before_load_network(self, network: NetworkId) -> bool:
        """Called before a network is loaded; False refuses the load."""
        return True

    def after_load_network(self, network: NetworkId) -> bool:
        """Called after a network was loaded, or after its load failed part-way; the result is only reported."""
        return True

    def before_unload_network(self, network: NetworkId) -> bool:
        """Called before a network is unloaded; False stops the unload."""
        return True

    def after_unload_network(self, network: NetworkId) -> bool:
        """Called after a network was unloaded; the result is only reported."""
        return True


class BackendProfilingContext(Protocol):
    """Collects a backend's own events; enabled together with the runtime's profiling."""

    def enable_profiling(self, *, enabled: bool) -> bool:
        """Switch profiling on or off; return whether it now has the requested state."""
        ...

    def take_events(self) -> list[BackendEvent]:
        """Return the events recorded since the last call."""
        ...


@frozen
class BackendEvent:
    """An interval that a backend measured, such as the run of a kernel on a device."""

    name: str
    start_ns: int
    """Nanoseconds on the clock of time.perf_counter_ns."""
    duration_ns: int


@frozen
class RuntimePart:
    """The objects that a backend made for a runtime; the backend gets them back with every network loaded there."""

    context: BackendContext | None = None
    profiling: BackendProfilingContext | None = None
    """None if profiling is off or could not be enabled."""


class BackendUnavailableError(FerruleError):
    """A backend cannot be used on this machine; the runtime continues without it and reports the reason."""
