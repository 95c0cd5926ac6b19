# SPDX-License-Identifier: Apache-2.0
"""The only way to ask the host face of a backend: each call is guarded, and each answer is checked.

A guard has the interface of the object that it guards. Its calls raise BrokenBackendError, which names the backend and
the call, if the object raises an unexpected exception or returns something else than its interface promises. `bare`
returns the object itself, which is what the backend's own methods get.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, cast

import numpy as np

from ferrule._typing import override
from ferrule.backends.backend import Support
from ferrule.backends.context import BackendEvent, NetworkId
from ferrule.backends.contract import answer, answer_with, asking, broken, fitting
from ferrule.backends.target import Target
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
from ferrule.graph import Array, Graph, Layer, Rounding, TensorInfo

T = TypeVar("T")

MOMENTS = ("before_load_network", "after_load_network", "before_unload_network", "after_unload_network")


class Asker:
    """Calls the methods of one object of a backend; `whose` ends the description of each call in messages."""

    __slots__ = ("backend", "bare", "whose")

    def __init__(self, bare: object, backend: str, whose: str = "") -> None:
        self.bare = bare
        self.backend = backend
        self.whose = whose

    def tell(self, method: str, *arguments: object, **keywords: object) -> None:
        """Call a method whose result does not matter."""
        with asking(self.backend, self.question(method)):
            getattr(self.bare, method)(*arguments, **keywords)

    def ask(self, method: str, annotation: Any, *arguments: object, **keywords: object) -> Any:  # noqa: ANN401 - checked
        """Return the result of a method, which has the annotated type."""
        question = self.question(method)
        with asking(self.backend, question):
            value = getattr(self.bare, method)(*arguments, **keywords)
        if annotation is not object:
            fitting(value, annotation, self.backend, question)
        return value

    def helper(self, method: str, methods: tuple[str, ...], *arguments: object) -> Any:  # noqa: ANN401 - any object
        """Return the result of a method: None, or an object with all `methods`."""
        with asking(self.backend, self.question(method)):
            value = getattr(self.bare, method)(*arguments)
            if value is not None:
                answer_with(value, methods, self.backend, self.question(method))
        return value

    def attribute(self, name: str, annotation: Any) -> Any:  # noqa: ANN401 - checked
        """Return the value of an attribute, which has the annotated type."""
        with asking(self.backend, f"'{name}'{self.whose}"):
            value = getattr(self.bare, name)
        fitting(value, annotation, self.backend, f"'{name}'{self.whose}")
        return value

    def question(self, method: str) -> str:
        """Return the description of a call in messages."""
        return f"{method}(){self.whose}"


def bare(value: T) -> T:
    """Return the object behind a guard, and any other object unchanged."""
    asker = getattr(value, "_asker", None)
    return cast(T, asker.bare) if isinstance(asker, Asker) else value


def writable(handle: TensorHandle) -> Array:
    """Return the elements of a tensor to write them; BrokenBackendError if the handle maps them read-only."""
    array = handle.map()
    if not array.flags.writeable:
        asker = getattr(handle, "_asker", None)
        name = asker.backend if isinstance(asker, Asker) else "Ferrule"
        question = f"map() of tensor '{handle.info.name}'"
        raise broken(name, question, array, "is a read-only array, expected one that can be written")
    return array


class GuardedSupport:
    """Guards a `LayerSupport`."""

    def __init__(self, support: object, backend: str, rules: frozenset[Rounding]) -> None:
        self._asker = Asker(support, backend)
        self._rules = rules

    def supports(self, graph: Graph, layer: Layer, target: Target) -> Support:
        """Return whether the backend can run a layer; one with a rule that it has not declared is refused here."""
        undeclared = _undeclared(layer, self._rules)
        if undeclared is not None:
            computed = ", ".join(f"'{rule}'" for rule in sorted(self._rules))
            return Support(
                reason=f"it rounds by {undeclared.phrase} ('{undeclared}'), {self._asker.backend} declares {computed}"
            )
        question = f"supports() for layer '{layer.name}' ({layer.type})"
        with asking(self._asker.backend, question):
            value = self._asker.bare.supports(graph, layer, target)  # type: ignore[attr-defined] # answer_with saw it
        return answer(value, Support, self._asker.backend, question)


def _undeclared(layer: Layer, rules: frozenset[Rounding]) -> Rounding | None:
    """Return a rule of a layer, or of a layer of its graphs, that is not among `rules`; None if all are."""
    if layer.rounding is not Rounding.TFLM and layer.rounding not in rules:
        return layer.rounding
    for graph in layer.descriptor.graphs.values():
        for inner in graph.layers:
            found = _undeclared(inner, rules)
            if found is not None:
                return found
    return None


class GuardedEvent:
    """Guards an `Event`; it is waited for once, and has then failed or completed for good."""

    def __init__(self, event: object, backend: str) -> None:
        answer_with(event, ("wait", "done"), backend, "execute()")
        self._asker = Asker(event, backend, " of the event of execute()")
        self._failure: Exception | None = None
        self._complete = False

    def wait(self) -> None:
        """Wait until the work is complete."""
        if self._complete:
            return
        if self._failure is not None:
            raise self._failure
        try:
            self._asker.tell("wait")
            self._check_done()
        except Exception as error:
            self._failure = error
            raise
        self._complete = True

    def _check_done(self) -> None:
        done = self.done()
        if not done:
            question = f"{self._asker.question('done')} after wait()"
            raise broken(self._asker.backend, question, done, "is False, expected True")

    def done(self) -> bool:
        """Return whether the work is complete, without waiting."""
        return bool(self._asker.ask("done", bool))


class GuardedWorkload:
    """Guards a `Workload`."""

    def __init__(self, workload: object, backend: str) -> None:
        self._asker = Asker(workload, backend)
        self._executing = asking(backend, self._asker.question("execute"))

    def execute(self) -> Event | None:
        """Run the layer."""
        with self._executing:
            event = self._asker.bare.execute()  # type: ignore[attr-defined] # answer_with saw it
        return None if event is None else GuardedEvent(event, self._asker.backend)


class GuardedWorkloads(WorkloadFactory):
    """Guards a `WorkloadFactory`."""

    def __init__(self, factory: object, backend: str) -> None:
        self._asker = Asker(factory, backend)

    @override
    def create_workload(self, info: WorkloadInfo) -> GuardedWorkload:
        return self._made("create_workload", info)

    @override
    def create_fallback_import(self, info: WorkloadInfo) -> GuardedWorkload:
        return self._made("create_fallback_import", info)

    @override
    def join(self, workloads: Sequence[Workload]) -> GuardedWorkload | None:
        question = "join()"
        join = getattr(self._asker.bare, "join", None)
        if join is None:  # the backend's factory is no WorkloadFactory, and need not have it
            return None
        with asking(self._asker.backend, question):
            made = join([bare(each) for each in workloads])
        if made is None:
            return None
        return GuardedWorkload(answer_with(made, ("execute",), self._asker.backend, question), self._asker.backend)

    def _made(self, method: str, info: WorkloadInfo) -> GuardedWorkload:
        given = WorkloadInfo(
            layer=info.layer,
            operands=info.operands,
            inputs=tuple(map(bare, info.inputs)),
            constants=info.constants,
            outputs=tuple(map(bare, info.outputs)),
            target=info.target,
        )
        question = f"{method}() for layer '{info.layer.name}' ({info.layer.type})"
        with asking(self._asker.backend, question):
            made = getattr(self._asker.bare, method)(given)
        return GuardedWorkload(answer_with(made, ("execute",), self._asker.backend, question), self._asker.backend)


class GuardedManager(MemoryManager):
    """Guards a `MemoryManager`."""

    def __init__(self, manager: object, backend: str) -> None:
        self._asker = Asker(manager, backend)

    @override
    def acquire(self) -> None:
        self._asker.tell("acquire")

    @override
    def release(self) -> None:
        self._asker.tell("release")


class GuardedHandle(TensorHandle):
    """Guards a `TensorHandle`; `map` returns an array of the tensor's shape and dtype."""

    def __init__(self, handle: object, backend: str, info: TensorInfo) -> None:
        super().__init__(info)
        self._asker = Asker(handle, backend, f" of tensor '{info.name}'")
        self._wanted = (info.shape, info.dtype.numpy)
        self._mapping = asking(backend, self._asker.question("map"))
        self._unmapping = asking(backend, self._asker.question("unmap"))
        self._ready: Event | None = None

    @property  # type: ignore[explicit-override] # mypy overlooks `override` on a property with a setter
    def ready(self) -> Event | None:
        """The event of the workload that writes the tensor; the backend's handle gets the backend's event."""
        return self._ready

    @ready.setter
    def ready(self, event: Event | None) -> None:
        self._ready = event
        with asking(self._asker.backend, f"'ready'{self._asker.whose}"):
            self._asker.bare.ready = bare(event)  # type: ignore[attr-defined] # any object takes it, or raises

    @override
    def manage(self) -> None:
        self._asker.tell("manage")

    @override
    def allocate(self) -> None:
        self._asker.tell("allocate")

    @override
    def map(self) -> Array:
        with self._mapping:
            array: Array = self._asker.bare.map()  # type: ignore[attr-defined] # answer_with saw it
        if not isinstance(array, np.ndarray):
            fitting(array, np.ndarray, self._asker.backend, self._asker.question("map"))
        if (array.shape, array.dtype) != self._wanted:
            found = f"is an array of {array.dtype}{list(array.shape)}"
            wanted = f"expected {self.info.dtype}{list(self.info.shape)}"
            raise broken(self._asker.backend, self._asker.question("map"), array, f"{found}, {wanted}")
        return array

    @override
    def unmap(self) -> None:
        with self._unmapping:
            self._asker.bare.unmap()  # type: ignore[attr-defined] # answer_with saw it

    @override
    def import_memory(self, memory: MemoryRef) -> bool:
        return bool(self._asker.ask("import_memory", bool, memory))

    @override
    def end_import(self) -> None:
        self._asker.tell("end_import")

    @override
    def can_import(self, memory: MemoryRef) -> bool:
        return bool(self._asker.ask("can_import", bool, memory))


class GuardedHandles(TensorHandleFactory):
    """Guards a `TensorHandleFactory`; its attributes are read once."""

    def __init__(self, factory: object, backend: str) -> None:
        answer_with(factory, ("create_handle",), backend, "tensor_handle_factories()")
        asker = Asker(factory, backend, " of a tensor handle factory")
        self.id = FactoryId(asker.attribute("id", str))
        self.import_flags = asker.attribute("import_flags", MemorySource)
        self.export_flags = asker.attribute("export_flags", MemorySource)
        self.supports_map_unmap = bool(asker.attribute("supports_map_unmap", bool))
        self._asker = Asker(factory, backend, f" of tensor handle factory '{self.id}'")

    @override
    def create_handle(self, info: TensorInfo, *, managed: bool) -> GuardedHandle:
        question = f"create_handle() for tensor '{info.name}'{self._asker.whose}"
        with asking(self._asker.backend, question):
            handle = self._asker.bare.create_handle(info, managed=managed)  # type: ignore[attr-defined] # seen above
        answer_with(handle, ("manage", "allocate", "map", "unmap"), self._asker.backend, question)
        return GuardedHandle(handle, self._asker.backend, info)

    @override
    def memory_alignment(self, source: MemorySource) -> int:
        found = int(self._asker.ask("memory_alignment", int, source))
        if found < 1 or found & (found - 1):
            question = self._asker.question("memory_alignment")
            raise broken(self._asker.backend, question, found, f"is {found}, expected a power of two")
        return found

    @override
    def import_refusal(self, source: MemorySource) -> str:
        return str(self._asker.ask("import_refusal", str, source))

    @override
    def capabilities(self, layer: Layer | None = None, connected: Layer | None = None) -> frozenset[HandleCapability]:
        found: frozenset[HandleCapability] = self._asker.ask(
            "capabilities", frozenset[HandleCapability], layer, connected
        )
        return found


class GuardedContext:
    """Guards a `BackendContext`."""

    def __init__(self, context: object, backend: str) -> None:
        self._asker = Asker(context, backend)

    def before_load_network(self, network: NetworkId) -> bool:
        """Return whether the backend agrees to the load."""
        return bool(self._asker.ask("before_load_network", bool, network))

    def after_load_network(self, network: NetworkId) -> bool:
        """Return whether the backend is content."""
        return bool(self._asker.ask("after_load_network", bool, network))

    def before_unload_network(self, network: NetworkId) -> bool:
        """Return whether the backend agrees to the unload."""
        return bool(self._asker.ask("before_unload_network", bool, network))

    def after_unload_network(self, network: NetworkId) -> bool:
        """Return whether the backend is content."""
        return bool(self._asker.ask("after_unload_network", bool, network))


class GuardedProfiling:
    """Guards a `BackendProfilingContext`."""

    def __init__(self, context: object, backend: str) -> None:
        self._asker = Asker(context, backend)

    def enable_profiling(self, *, enabled: bool) -> bool:
        """Switch profiling on or off; return whether it now has the requested state."""
        return bool(self._asker.ask("enable_profiling", bool, enabled=enabled))

    def take_events(self) -> list[BackendEvent]:
        """Return the events recorded since the last call."""
        events: list[BackendEvent] = self._asker.ask("take_events", list[BackendEvent])
        return events
