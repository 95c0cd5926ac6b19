# SPDX-License-Identifier: Apache-2.0
"""What a runtime hands to backends when it is created, and what it tells them afterwards."""

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
    """Memory of the application's own for a backend's tensors."""

    @property
    def source(self) -> MemorySource:
        """What kind of memory it hands out; DMA_BUF_PROTECTED needs the backend's protected-content capability."""
        ...

    def allocate(self, size_bytes: int, alignment_bytes: int) -> Array:
        """Return a writable, C-contiguous uint8 array of that size and alignment; MemoryError if there is none."""
        ...

    def free(self, memory: Array) -> None:
        """Take back what `allocate` gave."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CreationOptions:
    """How a runtime is made."""

    dynamic_backends_path: Path | None = None
    """The only folder to look for dynamic backends in; None for the default folders."""
    custom_allocators: Mapping[str, CustomAllocator] = field(default_factory=dict)
    """By backend id; a backend that does not accept its allocator is not usable in this runtime."""
    protected_mode: bool = False
    """Tensors live in protected memory: only backends with a custom allocator and the capability are usable."""
    profiling: bool = False
    """Record an event per workload."""
    backend_options: Mapping[str, Mapping[str, bool | int | float | str]] = field(default_factory=dict)
    """By backend id; each backend knows its own."""


class BackendContext(Protocol):
    """A backend's part of a runtime: made with it, told of every load and unload."""

    def before_load_network(self, network: NetworkId) -> bool:
        """Called before a network is loaded; False refuses the load."""
        ...

    def after_load_network(self, network: NetworkId) -> bool:
        """Called after a network was loaded, or after its load failed half-way; the result is only reported."""
        ...

    def before_unload_network(self, network: NetworkId) -> bool:
        """Called before a network is unloaded; False stops the unload."""
        ...

    def after_unload_network(self, network: NetworkId) -> bool:
        """Called after a network was unloaded; the result is only reported."""
        ...


class BackendProfilingContext(Protocol):
    """A backend's own events; enabled with the runtime's profiling."""

    def enable_profiling(self, *, enabled: bool) -> bool:
        """Switch it; return whether it is as asked."""
        ...

    def take_events(self) -> list[BackendEvent]:
        """Return what was recorded since the last call."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendEvent:
    """Something that a backend timed itself, such as a kernel on a device."""

    name: str
    start_ns: int
    """On the clock of time.perf_counter_ns."""
    duration_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimePart:
    """What a backend made for a runtime: it is handed back to the backend with every network that is loaded there."""

    context: BackendContext | None = None
    profiling: BackendProfilingContext | None = None
    """Only where it could be enabled."""


class BackendUnavailableError(FerruleError):
    """A backend's context cannot be made here: the runtime goes on without the backend and reports the reason."""
