# SPDX-License-Identifier: Apache-2.0
"""The only way to ask a backend: each call is guarded, and each answer is checked.

A guard has the interface of the object that it guards. Its calls raise BrokenBackendError, which names the backend and
the call, if the object raises an unexpected exception or returns something else than its interface promises. Guards
are made of the interface: a method returns what its annotation says, and objects with an interface are guarded, too.
`_FAULTS` and `_AFTER` have what an annotation cannot say. `bare` returns the object itself, which is what the backend's
own methods get.
"""

from __future__ import annotations

import inspect
from abc import ABC
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial, update_wrapper
from types import NoneType
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

from ferrule._frozen import positional
from ferrule._typing import override
from ferrule.backends.backend import Backend, LayerSupport, Support
from ferrule.backends.capability import Capabilities, declared_rules, firmware_float_options, subgraph_cost
from ferrule.backends.context import BackendContext, BackendProfilingContext, RuntimePart
from ferrule.backends.contract import answer_with, asking, broken, fitting
from ferrule.backends.device import Device
from ferrule.backends.firmware import (
    DeviceDriver,
    DeviceTarget,
    FirmwareTarget,
    LoweringContext,
    PluggableTarget,
    PricedTarget,
    WiredTarget,
    device_declarations,
)
from ferrule.backends.firmware_answers import wrong_driver, wrong_operator
from ferrule.backends.target import Target
from ferrule.backends.tensor_handle import Event, MemoryManager, TensorHandle, TensorHandleFactory
from ferrule.backends.workload import Workload, WorkloadFactory, WorkloadInfo
from ferrule.devices import DeviceModel, SerialModel
from ferrule.graph import Array, Graph, Layer, Rounding, TensorInfo


def guarded(backend: Backend) -> Backend:
    """Return a backend whose calls, and the calls of all objects that it returns, are guarded and checked."""
    made: Backend = backend if isinstance(backend, Guard) else guard(backend, Backend, backend.id)
    return made


def guard(value: object, interface: type, backend: str, of: object = None) -> Any:  # noqa: ANN401 - with the interface
    """Return the guard of an object of a backend; `of` is the first argument of the call that returned it."""
    own = [part for part in _PARTS for name, _ in _methods(part) if callable(getattr(value, name, None))]
    return _class_of((*own, interface) if interface is FirmwareTarget else (interface,))(value, backend, of)


def bare(value: Any) -> Any:  # noqa: ANN401 - of the same kind
    """Return the object behind a guard, a value with the objects behind its guards, and any other value unchanged."""
    match value:
        case Guard():
            return value.asked
        case WorkloadInfo():
            return replace(value, inputs=bare(value.inputs), outputs=bare(value.outputs))
        case RuntimePart():
            return RuntimePart(context=bare(value.context), profiling=bare(value.profiling))
        case list() | tuple():
            return tuple(map(bare, value))
    return value


def writable(handle: TensorHandle) -> Array:
    """Return the elements of a tensor to write them; BrokenBackendError if the handle maps them read-only."""
    array = handle.map()
    if not array.flags.writeable:
        name = handle.owner if isinstance(handle, Guard) else "Ferrule"
        question = f"map() of tensor '{handle.info.name}'"
        raise broken(name, question, array, "is a read-only array, expected one that can be written")
    return array


@dataclass(eq=False, repr=False)
class Guard:
    """What all guards have in common; their other methods are made of the interface of the object `asked`."""

    calls: ClassVar[Mapping[str, Callable[..., Any]]]
    interface: ClassVar[type]
    whose: ClassVar[str] = ""
    """Ends the description of each call in messages."""
    asked: Any
    owner: str
    of: Any = None
    """The first argument of the call that returned the object."""
    questions: dict[str, asking] = field(default_factory=dict)
    """By method: the context of its last call."""

    def __post_init__(self) -> None:
        """Complete the attributes of the interface."""

    @override
    def __reduce__(self) -> tuple[Callable[..., Any], tuple[object, ...]]:
        """Return how another process guards the object: its class is made anew there."""
        return guard, (self.asked, self.interface, self.owner, self.of)

    def guard(self, value: object, interface: type, question: str, of: object = None) -> Any:  # noqa: ANN401 - a guard
        """Return the guard of what the backend returned from a call; BrokenBackendError if it lacks a method."""
        wanted = [name for name, method in _methods(interface) if _is_required(interface, method)]
        return guard(answer_with(value, tuple(wanted), self.owner, question), interface, self.owner, of)


class _Backend(Guard):
    @override
    def __post_init__(self) -> None:
        vars(self)["id"] = self.owner  # a class variable of the interface, but each guard has another


class _Event(Guard):
    """It is waited for once, and has then failed or completed for good."""

    whose = " of the event of execute()"
    _failure: Exception | None = None
    _complete = False

    def wait(self) -> None:
        """Wait until the work is complete."""
        if self._failure is not None:
            raise self._failure
        if self._complete:
            return
        try:
            self.calls["wait"](self)
            self._check_done()
        except Exception as error:
            self._failure = error
            raise
        self._complete = True

    def _check_done(self) -> None:
        if not self.calls["done"](self):
            raise broken(self.owner, f"done(){self.whose} after wait()", False, "is False, expected True")


class _Handle(Guard):
    _ready: Event | None = None

    @override
    def __post_init__(self) -> None:
        self.info: TensorInfo = self.of
        vars(self)["whose"] = f" of tensor '{self.info.name}'"

    @property
    def ready(self) -> Event | None:
        """The event of the workload that writes the tensor; the backend's handle gets the backend's event."""
        return self._ready

    @ready.setter
    def ready(self, event: Event | None) -> None:
        self._ready = event
        with asking(self.owner, f"'ready'{self.whose}"):
            self.asked.ready = bare(event)


class _Factory(Guard):
    """Its attributes are read once."""

    whose = " of a tensor handle factory"

    @override
    def __post_init__(self) -> None:
        for name, annotation in get_type_hints(TensorHandleFactory).items():
            question = f"'{name}'{self.whose}"
            with asking(self.owner, question):
                value = getattr(self.asked, name)
            setattr(self, name, _checked(annotation, self.owner, value, question))
        vars(self)["whose"] = f" of tensor handle factory '{vars(self)['id']}'"


_INTERFACES: Mapping[type, type[Guard]] = {
    Backend: _Backend,
    LayerSupport: Guard,
    WorkloadFactory: Guard,
    Workload: Guard,
    Event: _Event,
    MemoryManager: Guard,
    TensorHandleFactory: _Factory,
    TensorHandle: _Handle,
    BackendContext: Guard,
    BackendProfilingContext: Guard,
    FirmwareTarget: Guard,
}
"""The interfaces whose objects are guarded, and what their guards have besides the methods."""
_PARTS = (PluggableTarget, WiredTarget, DeviceTarget, PricedTarget)
"""The interfaces that a firmware target may have, too."""

_ABOUT: Mapping[object, Callable[[Any], str]] = {
    Layer: lambda layer: f" for layer '{layer.name}' ({layer.type})",
    WorkloadInfo: lambda info: f" for layer '{info.layer.name}' ({info.layer.type})",
    LoweringContext: lambda context: f" for layer '{context.layer.name}' ({context.layer.type})",
    Device: lambda device: f" for device '{device.name}'",
    TensorInfo: lambda info: f" for tensor '{info.name}'",
}
"""How the description of a call names what it is about, by the annotation of a parameter."""


@cache
def _class_of(interfaces: tuple[type, ...]) -> type[Guard]:
    """Return the class of guards with all methods of the interfaces, the last of which the others extend."""
    calls = {name: _call(each, name, method) for each in interfaces for name, method in _methods(each)}
    mixin, own = _INTERFACES[interfaces[-1]], interfaces[-1]
    bases = (mixin, own) if issubclass(own, ABC) else (mixin,)
    generated = {name: call for name, call in calls.items() if name not in vars(mixin)}
    return type(f"Guarded{own.__name__}", bases, {"calls": calls, "interface": own, **generated})


def _methods(interface: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the public methods that an interface itself has."""
    return ((name, each) for name, each in vars(interface).items() if name[0] != "_" and inspect.isfunction(each))


def _is_required(interface: type, method: Callable[..., Any]) -> bool:
    return not issubclass(interface, ABC) or getattr(method, "__isabstractmethod__", False)


def _call(interface: type, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of a guard."""
    hints = get_type_hints(method, include_extras=True)
    answer = _answer(hints.pop("return"))
    faults, after = _FAULTS.get(method), _AFTER.get(method)
    index, about = next(((i, _ABOUT[hint]) for i, hint in enumerate(hints.values()) if hint in _ABOUT), (0, None))
    required = _is_required(interface, method)

    def call(self: Guard, *arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401 - as annotated
        asked = self.questions.get(name)
        if asked is None or about is not None:
            question = f"{name}(){'' if about is None else about(arguments[index])}{self.whose}"
            asked = self.questions[name] = asking(self.owner, question)
        with asked:
            own = getattr(self.asked, name, *(() if required else (partial(method, self.asked),)))
            value = own(*map(bare, arguments), **keywords)
        value = answer(self, value, asked.question, *arguments)
        for wrong in () if faults is None else faults(self, value, *arguments):
            raise broken(self.owner, asked.question, value, wrong)
        return value if after is None else after(self, value, asked.question, *arguments)

    return update_wrapper(call, method, updated=())  # it is not abstract


def _answer(annotation: Any) -> Callable[..., Any]:  # noqa: ANN401 - annotations have no common type
    """Return the function that checks what a method with this annotation returned, or guards it."""
    if annotation is NoneType:
        return lambda guard, value, question, *arguments: None
    interface = next((arm for arm in (annotation, *get_args(annotation)) if arm in _INTERFACES), None)
    if interface is None:
        return lambda guard, value, question, *arguments: _checked(annotation, guard.owner, value, question)
    many, optional = get_origin(annotation) is Sequence, NoneType in get_args(annotation)

    def answer(guard: Guard, value: Any, question: str, *arguments: object) -> Any:  # noqa: ANN401 - guards
        if many:
            fitting(value, Sequence[object], guard.owner, question)
            return tuple(guard.guard(each, interface, question, *arguments[:1]) for each in value)
        return None if optional and value is None else guard.guard(value, interface, question, *arguments[:1])

    return answer


def _checked(annotation: Any, owner: str, value: Any, question: str) -> Any:  # noqa: ANN401 - as annotated
    fitting(value, annotation, owner, question)
    return bool(value) if annotation is bool else value  # it may be numpy's


# ---- what annotations cannot say


@positional
class _Ruled:
    """A layer support that refuses layers with a rule of rounding that the backend has not declared."""

    _support: LayerSupport
    _backend: str
    _rules: frozenset[Rounding]

    def supports(self, graph: Graph, layer: Layer, target: Target) -> Support:
        """Return whether the backend can run a layer."""
        undeclared = _undeclared(layer, self._rules)
        if undeclared is None:
            return self._support.supports(graph, layer, target)
        computed = ", ".join(f"'{rule}'" for rule in sorted(self._rules))
        return Support(f"it rounds by {undeclared.phrase} ('{undeclared}'), {self._backend} declares {computed}")


def _undeclared(layer: Layer, rules: frozenset[Rounding]) -> Rounding | None:
    """Return a rule of a layer, or of a layer of its graphs, that is not among `rules`; None if all are."""
    if layer.rounding is not Rounding.TFLM and layer.rounding not in rules:
        return layer.rounding
    inner = (each for graph in layer.descriptor.graphs.values() for each in graph.layers)
    return next(filter(None, (_undeclared(each, rules) for each in inner)), None)


def _ruled(guard: Guard, support: LayerSupport, question: str) -> LayerSupport:
    del question
    return _Ruled(support, guard.owner, declared_rules(guard.calls["capabilities"](guard)))


def _unreadable(guard: Guard, capabilities: Capabilities) -> Iterator[str]:
    del guard
    for reader in (subgraph_cost, firmware_float_options, declared_rules):
        try:
            reader(capabilities)
        except ValueError as error:
            yield str(error)


def _misshapen(handle: Guard, array: Array) -> Iterator[str]:
    info: TensorInfo = handle.of
    if (array.shape, array.dtype) != (info.shape, info.dtype.numpy):
        yield f"is an array of {array.dtype}{list(array.shape)}, expected {info.dtype}{list(info.shape)}"


def _misplaced(guard: Guard, placed: Device, device: Device, place: object) -> Iterator[str]:
    del guard, place
    if (placed.name, placed.backend) != (device.name, device.backend):
        yield f"is device '{placed.name}' of backend '{placed.backend}', expected the same device with its place"


def _driver(guard: Guard, driver: DeviceDriver, question: str, device: Device) -> DeviceDriver:
    with asking(guard.owner, f"{question}: its context_fields cannot become C"):
        device_declarations(device.name, driver)

    def guarded_maker(make: Callable[..., object] | None, kind: type) -> Callable[..., Any] | None:
        question = f"model() of the driver of device '{device.name}'"

        def model(*arguments: object) -> Any:  # noqa: ANN401 - of the kind
            assert make is not None
            with asking(guard.owner, question):
                made = make(*arguments)
            return _checked(kind, guard.owner, made, question)

        return None if make is None else model

    wire = driver.wire and replace(driver.wire, model=guarded_maker(driver.wire.model, SerialModel))
    return replace(driver, model=guarded_maker(driver.model, DeviceModel), wire=wire)


_FAULTS: Mapping[object, Callable[..., Iterable[str]]] = {
    Backend.capabilities: _unreadable,
    TensorHandle.map: _misshapen,
    FirmwareTarget.lower: lambda guard, op, context: wrong_operator(op, context),
    DeviceTarget.driver: lambda guard, driver, device: wrong_driver(driver),
    PluggableTarget.plugged: _misplaced,
    WiredTarget.wired: _misplaced,
}
"""What is wrong with an answer whose type is right; they get the guard, the answer and the call's arguments."""
_AFTER: Mapping[object, Callable[..., Any]] = {Backend.layer_support: _ruled, DeviceTarget.driver: _driver}
"""What follows the check of what a method returned: it gets the guard, the answer, the description of the call, and the
call's arguments, and returns the final answer."""
