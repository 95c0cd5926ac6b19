# SPDX-License-Identifier: Apache-2.0
"""Backends that take the places of a processor, a GPU and an NPU beside the backend under test; all run CpuRef's code.

The GPU has two kinds of handles, those that are mapped and those that import, and does its work only when that is
waited for. The NPU has only handles that import. No handle that imports can be mapped from outside its own workloads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from ferrule._typing import override
from ferrule.backends.backend import Backend
from ferrule.backends.capability import ASYNC_EXECUTION, Capabilities
from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.device import BackendId
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.shared.host_memory import (
    HostTensorHandle,
    HostTensorHandleFactory,
)
from ferrule.backends.tensor_handle import (
    Event,
    FactoryId,
    HandleCapability,
    MemoryManager,
    MemoryRef,
    MemorySource,
    TensorHandle,
    TensorHandleFactory,
)
from ferrule.backends.workload import Workload, WorkloadFactory, WorkloadInfo
from ferrule.graph import Array, TensorInfo

REQUIRED = frozenset({HandleCapability.FALLBACK_IMPORT_MEMORY_REQUIRED})
_MAPPED = ("Mapped", MemorySource.UNDEFINED, 1)


class PartnerHandle(TensorHandle):
    """A handle that only its backend's workloads can access, unless it is mapped."""

    def __init__(self, inner: HostTensorHandle, *, maps: bool) -> None:
        super().__init__(inner.info)
        self.inner = inner
        self._maps = maps

    @override
    def manage(self) -> None:
        self.inner.manage()

    @override
    def allocate(self) -> None:
        self.inner.allocate()

    @override
    def map(self) -> Array:
        assert self._maps, f"tensor '{self.info.name}' is mapped from outside its backend"
        if self.ready is not None:
            self.ready.wait()
        return self.inner.memory()

    @override
    def unmap(self) -> None:
        assert self._maps, f"tensor '{self.info.name}' is unmapped from outside its backend"

    @override
    def import_memory(self, memory: MemoryRef) -> bool:
        return self.inner.import_memory(memory)

    @override
    def can_import(self, memory: MemoryRef) -> bool:
        return self.inner.can_import(memory)

    @override
    def end_import(self) -> None:
        self.inner.end_import()


class PartnerFactory(HostTensorHandleFactory):
    """Makes handles that are mapped and do not import, or that import and are not mapped."""

    def __init__(
        self,
        name: str,
        manager: MemoryManager | None,
        imports: MemorySource,
        alignment_bytes: int,
    ) -> None:
        super().__init__(
            FactoryId(name),
            manager,
            alignment_bytes=alignment_bytes,
            import_flags=imports,
            export_flags=MemorySource.UNDEFINED,
            capabilities=REQUIRED if imports else frozenset(),
        )
        self.supports_map_unmap = not imports

    @override
    def create_handle(self, info: TensorInfo, *, managed: bool) -> PartnerHandle:  # type: ignore[override]
        return PartnerHandle(super().create_handle(info, managed=managed), maps=self.supports_map_unmap)


class PartnerWorkloads(WorkloadFactory):
    """Makes CpuRef's workloads, which access the memory behind the handles."""

    def __init__(self) -> None:
        self._inner = CpuRef().workload_factory(None, {})

    @override
    def create_workload(self, info: WorkloadInfo) -> Workload:
        def inner(handle: TensorHandle) -> TensorHandle:
            return handle.inner if isinstance(handle, PartnerHandle) else handle

        inputs = tuple(None if each is None else inner(each) for each in info.inputs)
        return self._inner.create_workload(replace(info, inputs=inputs, outputs=tuple(map(inner, info.outputs))))


@dataclass(slots=True, eq=False)
class LateEvent:
    """The completion of work that begins only when it, or later work of its queue, is waited for."""

    _queue: LateQueue
    _workload: Workload
    _done: bool = False
    _failure: Exception | None = None

    def wait(self) -> None:
        """Do all work up to this; raises the exception with which this work failed."""
        self._queue.run_until(self)
        if self._failure is not None:
            raise self._failure

    def done(self) -> bool:
        """Return whether the work is done."""
        return self._done

    def run(self, failure: Exception | None) -> None:
        """Do this work, or fail."""
        self._done = True
        self._failure = failure
        try:
            if failure is None:
                self._workload.execute()
        except Exception as error:  # noqa: BLE001 - raised by `wait`
            self._failure = error


@dataclass
class LateQueue:
    """Work in order, each as late as possible, so that bytes that are taken from it too early are noticed."""

    _failing: Callable[[], Exception | None]
    _open: deque[LateEvent] = field(default_factory=deque)

    def start(self, workload: Workload) -> LateEvent:
        """Add work and return its completion."""
        self._open.append(LateEvent(self, workload))
        return self._open[-1]

    def run_until(self, event: LateEvent) -> None:
        """Do all work up to an event."""
        while not event.done():
            self._open.popleft().run(self._failing())


@dataclass(slots=True, eq=False)
class LateWorkload:
    """Adds another workload to a queue."""

    _workload: Workload
    _queue: LateQueue

    def execute(self) -> Event:
        """Start the work and return its completion."""
        return self._queue.start(self._workload)


class LateWorkloads(PartnerWorkloads):
    """Makes workloads of one queue."""

    def __init__(self, failing: Callable[[], Exception | None]) -> None:
        super().__init__()
        self._queue = LateQueue(failing)

    @override
    def create_workload(self, info: WorkloadInfo) -> Workload:
        return LateWorkload(super().create_workload(info), self._queue)


class PartnerCpu(CpuRef):
    """A processor: its handles are mapped and import plain memory."""

    id: ClassVar[BackendId] = BackendId("PartnerCpu")
    factory_id: ClassVar[FactoryId] = FactoryId("PartnerCpu/Host")
    fallback_memory_required: ClassVar[bool] = True


class PartnerExporter(CpuRef):
    """A processor that exports its memory, as CpuRef does."""

    id: ClassVar[BackendId] = BackendId("PartnerExporter")
    factory_id: ClassVar[FactoryId] = FactoryId("PartnerExporter/Host")


class PartnerMapper(CpuRef):
    """A processor whose handles are mapped and import nothing."""

    id: ClassVar[BackendId] = BackendId("PartnerMapper")
    factories: ClassVar[Sequence[tuple[str, MemorySource, int]]] = (_MAPPED,)
    """The name of each factory, the memory that its handles import, and the alignment of that."""

    @override
    def tensor_handle_factories(self, memory: MemoryManager | None) -> Sequence[TensorHandleFactory]:
        return [PartnerFactory(f"{self.id}/{name}", memory, imports, size) for name, imports, size in self.factories]

    @override
    def workload_factory(self, memory: MemoryManager | None, options: ModelOptions) -> WorkloadFactory:
        return PartnerWorkloads()


class PartnerNpu(PartnerMapper):
    """An NPU: its handles import dma-bufs and cannot be mapped."""

    id: ClassVar[BackendId] = BackendId("PartnerNpu")
    factories = (("Import", MemorySource.DMA_BUF, 256),)


class PartnerGpu(PartnerMapper):
    """A GPU: its handles are mapped, or import memory of the process and dma-bufs; it works as late as possible."""

    id: ClassVar[BackendId] = BackendId("PartnerGpu")
    failure: ClassVar[Exception | None] = None
    """The exception with which its work fails."""
    factories = (_MAPPED, ("Import", MemorySource.MALLOC | MemorySource.DMA_BUF, 64))

    @override
    def capabilities(self) -> Capabilities:
        return {ASYNC_EXECUTION: True}

    @override
    def workload_factory(self, memory: MemoryManager | None, options: ModelOptions) -> WorkloadFactory:
        return LateWorkloads(lambda: self.failure)


PARTNERS: tuple[type[Backend], ...] = (PartnerCpu, PartnerExporter, PartnerMapper, PartnerNpu, PartnerGpu)
