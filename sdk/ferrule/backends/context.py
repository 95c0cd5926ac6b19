# SPDX-License-Identifier: Apache-2.0
"""The options that a runtime passes to backends when it is created, and the notifications that it sends them later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NewType, Protocol

from ferrule.backends.tensor_handle import MemorySource
from ferrule.errors import FerruleError
from ferrule.graph import Array

NetworkId = NewType("NetworkId", int)


class CustomAllocator(Protocol):
    """An allocator that an application provides for a backend's tensors."""

    @property
    def source(self) -> MemorySource:
        """The kind of memory it returns; DMA_BUF_PROTECTED requires the backend's protected-content capability."""
        ...

    def allocate(self, size_bytes: int, alignment_bytes: int) -> Array:
        """Return a writable, C-contiguous uint8 array of this size and alignment; MemoryError if none is left."""
        ...

    def free(self, memory: Array) -> None:
        """Release an array that `allocate` returned."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CreationOptions:
    """Options for creating a runtime."""

    dynamic_backends_path: Path | None = None
    """The only folder that is searched for dynamic backends; None for the default folders."""
    isolate_dynamic_backends: bool = False
    """Run each dynamic backend in a process of its own, so that its faults cannot affect this process; its tensors are
    copied, and it takes no custom allocator."""
    custom_allocators: Mapping[str, CustomAllocator] = field(default_factory=dict)
    """Allocators by backend id; a backend that does not accept its allocator is unusable in this runtime."""
    protected_mode: bool = False
    """Tensors lie in protected memory: only backends with a custom allocator and the capability are usable."""
    profiling: bool = False
    """Record an event per workload."""
    backend_options: Mapping[str, Mapping[str, bool | int | float | str]] = field(default_factory=dict)
    """Options by backend id; each backend interprets its own."""


class BackendContext(Protocol):
    """A backend's context in a runtime: created with the runtime, notified of every load and unload."""

    def before_load_network(self, network: NetworkId) -> bool:
        """Called before a network is loaded; False refuses the load."""
        ...

    def after_load_network(self, network: NetworkId) -> bool:
        """Called after a network was loaded, or after its load failed part-way; the result is only reported."""
        ...

    def before_unload_network(self, network: NetworkId) -> bool:
        """Called before a network is unloaded; False stops the unload."""
        ...

    def after_unload_network(self, network: NetworkId) -> bool:
        """Called after a network was unloaded; the result is only reported."""
        ...


class BackendProfilingContext(Protocol):
    """Collects a backend's own events; enabled together with the runtime's profiling."""

    def enable_profiling(self, *, enabled: bool) -> bool:
        """Switch profiling on or off; return whether it now has the requested state."""
        ...

    def take_events(self) -> list[BackendEvent]:
        """Return the events recorded since the last call."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendEvent:
    """An interval that a backend measured, such as the run of a kernel on a device."""

    name: str
    start_ns: int
    """Nanoseconds on the clock of time.perf_counter_ns."""
    duration_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimePart:
    """The objects that a backend made for a runtime; the backend gets them back with every network loaded there."""

    context: BackendContext | None = None
    profiling: BackendProfilingContext | None = None
    """None if profiling is off or could not be enabled."""


class BackendUnavailableError(FerruleError):
    """A backend cannot be used on this machine; the runtime continues without it and reports the reason."""
