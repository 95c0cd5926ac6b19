# SPDX-License-Identifier: Apache-2.0
"""Whatever a backend raises or returns, the error names the backend and the call; the tables cover every method."""

from __future__ import annotations

import ast
import inspect
from abc import ABC
from collections.abc import Callable, Mapping
from dataclasses import field, fields, replace
from pathlib import Path
from typing import Any, NoReturn, Protocol

import numpy as np
import pytest
from mock_backends import CountingAllocator, chain

import ferrule.backends
from ferrule._frozen import frozen
from ferrule.backends import backend, context, default_device, firmware, guarded, tensor_handle, workload
from ferrule.backends.backend import Policy, Support
from ferrule.backends.conforming import misfit
from ferrule.backends.context import BackendEvent, CreationOptions, NetworkId, RuntimePart
from ferrule.backends.contract import BrokenBackendError
from ferrule.backends.contribution import Contribution
from ferrule.backends.firmware import (
    Blob,
    ConsideredKernel,
    DeviceDriver,
    KernelCosts,
    LoweredOp,
    LoweringContext,
    Reach,
    Socket,
    Wire,
)
from ferrule.backends.optimization_views import OptimizationViews, Substitution
from ferrule.backends.option import BackendOption
from ferrule.backends.target import Face, default_target
from ferrule.backends.tensor_handle import MemoryRef, MemorySource
from ferrule.backends.workload import WorkloadInfo
from ferrule.dom import (
    ArrayData,
    Call,
    Class,
    ClassType,
    Comment,
    Construct,
    Declare,
    Enumeration,
    Enumerator,
    Evaluate,
    Expression,
    Float,
    Identifier,
    Integer,
    Module,
    Not,
    Pointer,
    QualifiedName,
    Reference,
    Scalar,
    Struct,
    Variable,
)
from ferrule.graph import SubgraphView
from ferrule.memory.request import Overlap

NETWORK = chain(1)
LAYER = NETWORK.layers[0]
X, Y = NETWORK.info("x"), NETWORK.info(LAYER.outputs[0])
ARRAY = np.zeros(X.shape, np.float32)
MEMORY = MemoryRef.of_array(ARRAY)
DEVICE = default_device(ferrule.backends.BackendId("Bad"))
TARGET = default_target(DEVICE.backend)
VIEW = SubgraphView.of(NETWORK, [LAYER.name])
LOWERING = LoweringContext(
    graph=NETWORK,
    layer=LAYER,
    target=default_target(DEVICE.backend, Face.FIRMWARE),
    prefix="p",
    pointers={"x": Identifier("x"), Y.name: Identifier("y")},
)
NOTHING = object()
"""Stands for a row without a good answer."""


def boom(*arguments: object, **keywords: object) -> NoReturn:
    raise ValueError("boom")


class Thing:
    """An object of a backend: every method of the interfaces is there and returns `answer`."""

    id = "Bad"
    import_flags = export_flags = MemorySource.MALLOC
    supports_map_unmap = True

    def __init__(self, **methods: Callable[..., object]) -> None:
        vars(self).update(methods)

    def __getattr__(self, name: str) -> Callable[..., object]:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *arguments, **keywords: None


@frozen
class Row:
    """How one method is called, and what it must not return besides."""

    call: Callable[[Any], object]
    wrong: tuple[object, ...] = ()
    good: object = NOTHING
    whose: str = ""
    """What follows the method's name in messages."""


def info() -> WorkloadInfo:
    return WorkloadInfo.of(NETWORK, LAYER, lambda name: Thing(), TARGET)  # type: ignore[arg-type,return-value]


BOOLEANS = (None, 1, "yes")
OF_X = " of tensor 'x'"
OF_LAYER = f" for layer '{LAYER.name}' (LEAKY_RELU)"
OF_DEVICE = " for device 'Bad'"
OPTIONS = CreationOptions()
OPTION = BackendOption(name="o", default=1, meaning="m")
EVENT = BackendEvent(name="e", start_ns=0, duration_ns=1)
MOMENT = {
    name: Row(call=lambda guard, name=name: getattr(guard, name)(NetworkId(0)), wrong=BOOLEANS, good=True)
    for name in vars(context.BackendContext)
    if name.endswith("_network")
}
COSTS = KernelCosts(instructions=1, weight_bytes=2, scratch_bytes=3)
COSTS = firmware.KernelCosts(instructions=1, weight_bytes=2, scratch_bytes=3)
OP = LoweredOp(
    kernel="k",
    statements=(Evaluate(Call(Identifier("f"), (Integer(1),))),),
    blobs=(Blob(name="p_w", data=np.zeros(4, np.int8)),),
    overlaps=(Overlap(output=Y.name, input="x", distance_bytes=0),),
    contributions=(Contribution(name="c", folder=Path(__file__).parent, sources=()),),
    considered=(ConsideredKernel(kernel="k", reason="r", costs=COSTS),),
)
DRIVER = DeviceDriver(driver="d", header="d.h", context="c", wire=Wire())
VIEWS = OptimizationViews(untouched=(VIEW,))

Rows = Mapping[str, Row]


@frozen
class Interface:
    """One interface of backends: a row per method."""

    rows: Rows
    attributes: Mapping[str, tuple[object, ...]] = field(default_factory=dict)


INTERFACES: Mapping[type, Interface] = {
    backend.Backend: Interface(
        rows={
            "layer_support": Row(call=lambda guard: guard.layer_support(), wrong=(None, 3)),
            "capabilities": Row(
                call=lambda guard: guard.capabilities(), wrong=(None, [], {1: True}, {"a": None}), good={}
            ),
            "model_options": Row(
                call=lambda guard: guard.model_options(),
                wrong=(3, "ab", ("ab",), (replace(OPTION, default=None),)),
                good=(OPTION,),
            ),
            "optimize_subgraph": Row(
                call=lambda guard: guard.optimize_subgraph(VIEW, TARGET),
                wrong=(
                    None,
                    VIEW,
                    replace(VIEWS, reasons=None),
                    replace(VIEWS, reasons={"a": None}),
                    replace(VIEWS, failed=None),
                    replace(VIEWS, untouched=("layer0",)),
                    replace(VIEWS, deleted=[VIEW]),
                    replace(VIEWS, substitutions=(Substitution(replaced=VIEW, layers=(None,)),)),
                ),
                good=VIEWS,
            ),
            "policy": Row(
                call=lambda guard: guard.policy(TARGET),
                wrong=(
                    None,
                    Policy(least_layers=None),  # type: ignore[arg-type]
                    Policy(least_layers=0),
                    Policy(least_macs=-1),
                    Policy(least_macs=1.5),  # type: ignore[arg-type]
                    Policy(macs_per_byte=-0.5),
                    Policy(macs_per_byte=float("nan")),
                    Policy(macs_per_byte=float("inf")),
                ),
                good=Policy(least_layers=2, least_macs=1, macs_per_byte=0.5),
            ),
            "use_custom_memory_allocator": Row(
                call=lambda guard: guard.use_custom_memory_allocator(CountingAllocator()), wrong=(None, True), good=""
            ),
            "profiling_context": Row(call=lambda guard: guard.profiling_context(OPTIONS), wrong=(3,), good=None),
            "has_host_face": Row(call=lambda guard: guard.has_host_face(), wrong=BOOLEANS, good=True),
            "workload_factory": Row(call=lambda guard: guard.workload_factory(None, {}), wrong=(3,), good=None),
            "workload_factory_in": Row(
                call=lambda guard: guard.workload_factory_in(RuntimePart(), None, {}), wrong=(3,), good=None
            ),
            "memory_manager": Row(call=lambda guard: guard.memory_manager(None), wrong=(3,), good=None),
            "tensor_handle_factories": Row(
                call=lambda guard: guard.tensor_handle_factories(None), wrong=(None, 3, (None,), (3,)), good=()
            ),
            "handle_factory_preferences": Row(
                call=lambda guard: guard.handle_factory_preferences(), wrong=(None, "ab", (None,)), good=()
            ),
            "context": Row(call=lambda guard: guard.context(OPTIONS), wrong=(3,), good=None),
            "firmware_target": Row(call=lambda guard: guard.firmware_target(), wrong=(3,), good=None),
        },
    ),
    backend.LayerSupport: Interface(
        rows={
            "supports": Row(
                call=lambda guard: guard.supports(NETWORK, LAYER, TARGET),
                wrong=(None, True, Support(None)),  # type: ignore[arg-type]
                good=Support(),
                whose=OF_LAYER,
            )
        },
    ),
    workload.WorkloadFactory: Interface(
        rows={
            "create_workload": Row(call=lambda guard: guard.create_workload(info()), wrong=(None, 3), whose=OF_LAYER),
            "create_fallback_import": Row(
                call=lambda guard: guard.create_fallback_import(info()), wrong=(None, 3), whose=OF_LAYER
            ),
            "join": Row(call=lambda guard: guard.join([guard, guard]), wrong=(3, True), good=None),
            "native_call": Row(call=lambda guard: guard.native_call(guard), wrong=(3, True), good=None),
        },
    ),
    workload.Workload: Interface(
        rows={"execute": Row(call=lambda guard: guard.execute(), wrong=(3, True), good=None)},
    ),
    tensor_handle.Event: Interface(
        rows={
            "wait": Row(call=lambda guard: guard.wait(), whose=" of the event of execute()"),
            "done": Row(call=lambda guard: guard.done(), wrong=BOOLEANS, good=True, whose=" of the event of execute()"),
        },
    ),
    tensor_handle.TensorHandle: Interface(
        rows={
            "manage": Row(call=lambda guard: guard.manage(), whose=OF_X),
            "allocate": Row(call=lambda guard: guard.allocate(), whose=OF_X),
            "map": Row(
                call=lambda guard: guard.map(),
                wrong=(None, [0.0], ARRAY.reshape(-1), ARRAY.astype(np.float64)),
                good=ARRAY,
                whose=OF_X,
            ),
            "unmap": Row(call=lambda guard: guard.unmap(), whose=OF_X),
            "import_memory": Row(
                call=lambda guard: guard.import_memory(MEMORY),
                wrong=BOOLEANS,
                good=True,
                whose=OF_X,
            ),
            "end_import": Row(call=lambda guard: guard.end_import(), whose=OF_X),
            "can_import": Row(call=lambda guard: guard.can_import(MEMORY), wrong=BOOLEANS, good=True, whose=OF_X),
        },
    ),
    tensor_handle.TensorHandleFactory: Interface(
        rows={
            "create_handle": Row(
                call=lambda guard: guard.create_handle(X, managed=True),
                wrong=(None, 3),
                whose=" for tensor 'x' of tensor handle factory 'Bad'",
            ),
            "memory_alignment": Row(
                call=lambda guard: guard.memory_alignment(MemorySource.MALLOC),
                wrong=(None, 0, 3, -4, 1.5),
                good=64,
                whose=" of tensor handle factory 'Bad'",
            ),
            "import_refusal": Row(
                call=lambda guard: guard.import_refusal(MemorySource.DMA_BUF),
                wrong=(None, 3),
                good="no driver",
                whose=" of tensor handle factory 'Bad'",
            ),
            "capabilities": Row(
                call=lambda guard: guard.capabilities(LAYER, LAYER),
                wrong=(None, frozenset({"PADDING_REQUIRED"})),
                good=frozenset(),
                whose=" of tensor handle factory 'Bad'",
            ),
        },
        attributes={
            "id": (None, 3),
            "import_flags": (None, 1),
            "export_flags": (None, "MALLOC"),
            "supports_map_unmap": (None, "yes"),
        },
    ),
    tensor_handle.MemoryManager: Interface(
        rows={
            "acquire": Row(call=lambda guard: guard.acquire()),
            "release": Row(call=lambda guard: guard.release()),
        },
    ),
    context.BackendContext: Interface(rows=MOMENT),
    context.BackendProfilingContext: Interface(
        rows={
            "enable_profiling": Row(call=lambda guard: guard.enable_profiling(enabled=True), wrong=BOOLEANS, good=True),
            "take_events": Row(
                call=lambda guard: guard.take_events(),
                wrong=(None, [None], [replace(EVENT, start_ns="now")]),
                good=[EVENT],
            ),
        },
    ),
    firmware.FirmwareTarget: Interface(
        rows={
            "lower": Row(
                call=lambda guard: guard.lower(LOWERING), wrong=(None, OP.statements, 3), good=OP, whose=OF_LAYER
            )
        },
    ),
    firmware.PricedTarget: Interface(
        rows={
            "costs": Row(
                call=lambda guard: guard.costs(LOWERING),
                wrong=(None, 3, [None], [replace(COSTS, scratch_bytes=-1)]),
                good=[COSTS],
                whose=OF_LAYER,
            )
        },
    ),
    firmware.DeviceTarget: Interface(
        rows={"driver": Row(call=lambda guard: guard.driver(DEVICE), wrong=(None, 3), whose=OF_DEVICE)},
    ),
    firmware.PluggableTarget: Interface(
        rows={
            "plugged": Row(
                call=lambda guard: guard.plugged(DEVICE, Socket(address=0, interrupt=0)),
                wrong=(None, 3, replace(DEVICE, name="other"), replace(DEVICE, binding=None)),
                good=DEVICE,
                whose=OF_DEVICE,
            )
        },
    ),
    firmware.WiredTarget: Interface(
        rows={
            "wired": Row(
                call=lambda guard: guard.wired(DEVICE, "uart0"),
                wrong=(None, 3, replace(DEVICE, backend="Other")),
                good=DEVICE,
                whose=OF_DEVICE,
            )
        },
    ),
}
APPLICATION = {context.CustomAllocator, tensor_handle.MemoryAccess}
"""Interfaces that the application and allocators implement, not a backend."""
ROWS = [(interface, method, row) for interface, each in INTERFACES.items() for method, row in each.rows.items()]
RETURNS = [(interface, method, row, value) for interface, method, row in ROWS for value in row.wrong]
ATTRIBUTES = [
    (interface, name, value)
    for interface, each in INTERFACES.items()
    for name, values in each.attributes.items()
    for value in values
]


def label(value: object) -> str:
    return getattr(value, "__name__", None) or (value if isinstance(value, str) else type(value).__name__)


TARGETS = {firmware.DeviceTarget, firmware.PluggableTarget, firmware.PricedTarget, firmware.WiredTarget}


def guarded_as(interface: type, bare: object) -> Any:  # noqa: ANN401 - with the interface
    return guarded.guard(bare, firmware.FirmwareTarget if interface in TARGETS else interface, "Bad", X)


def guarded_target(bare: object) -> Any:  # noqa: ANN401 - with the interface
    return guarded_as(firmware.FirmwareTarget, bare)


def own_methods(interface: type) -> set[str]:
    """Return the public methods that an interface itself defines."""
    return {name for name, value in vars(interface).items() if not name.startswith("_") and inspect.isfunction(value)}


def test_every_method_of_every_interface_has_a_row() -> None:
    for interface, each in INTERFACES.items():
        assert own_methods(interface) == set(each.rows), f"{interface.__name__}: add a row per method"


def test_every_interface_is_listed() -> None:
    found = {
        value
        for module in (backend, workload, tensor_handle, context, firmware)
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__ and {ABC, Protocol} & set(value.__bases__)
    }
    assert found | TARGETS == INTERFACES.keys() | APPLICATION


def test_every_attribute_of_a_factory_has_a_row() -> None:
    interface = tensor_handle.TensorHandleFactory
    assert interface.__annotations__.keys() == INTERFACES[interface].attributes.keys()


@pytest.mark.parametrize(("interface", "method", "row"), ROWS, ids=label)
def test_what_a_method_raises_names_the_backend_and_the_call(interface: type, method: str, row: Row) -> None:
    guard = guarded_as(interface, Thing(**{method: boom}))
    with pytest.raises(BrokenBackendError) as error:
        row.call(guard)
    assert str(error.value) == f"backend 'Bad' failed in {method}(){row.whose}: ValueError: boom"
    assert error.value.hint


@pytest.mark.parametrize(("interface", "method", "row", "value"), RETURNS, ids=label)
def test_what_a_method_returns_is_checked(interface: type, method: str, row: Row, value: object) -> None:
    guard = guarded_as(interface, Thing(**{method: lambda *arguments, **keywords: value}))
    with pytest.raises(BrokenBackendError) as error:
        row.call(guard)
    assert str(error.value).startswith("backend 'Bad' returned ")
    assert f" from {method}(){row.whose}" in str(error.value)
    assert error.value.hint


@pytest.mark.parametrize(
    ("interface", "method", "row"), [each for each in ROWS if each[2].good is not NOTHING], ids=label
)
def test_what_a_method_may_return_passes(interface: type, method: str, row: Row) -> None:
    guard = guarded_as(interface, Thing(**{method: lambda *arguments, **keywords: row.good}))
    got = row.call(guard)
    assert got is row.good or got == row.good


@pytest.mark.parametrize(("interface", "name", "value"), ATTRIBUTES, ids=label)
def test_attributes_are_checked(interface: type, name: str, value: object) -> None:
    with pytest.raises(BrokenBackendError, match=f"backend 'Bad' returned .* from '{name}' of"):
        guarded_as(interface, Thing(**{name: value}))  # type: ignore[arg-type]


def changed(value: Any, **changes: Any) -> Any:  # noqa: ANN401 - any dataclass
    """Return a copy of a frozen value with wrong fields."""
    return replace(value, **changes)


NESTED = {
    LoweredOp: (OP, lambda op: op),
    Blob: (OP.blobs[0], lambda blob: changed(OP, blobs=(blob,))),
    ConsideredKernel: (OP.considered[0], lambda kernel: changed(OP, considered=(kernel,))),
    KernelCosts: (COSTS, lambda costs: changed(OP, considered=(changed(OP.considered[0], costs=costs),))),
    Overlap: (OP.overlaps[0], lambda overlap: changed(OP, overlaps=(overlap,))),
    Evaluate: (OP.statements[0], lambda statement: changed(OP, statements=(statement,))),
    Call: (OP.statements[0].expression, lambda call: changed(OP, statements=(Evaluate(call),))),
    DeviceDriver: (DRIVER, lambda driver: driver),
    Wire: (DRIVER.wire, lambda wire: changed(DRIVER, wire=wire)),
}
OPTIONAL = {
    "view_of",
    "status",
    "start",
    "cycles",
    "bound",
    "timeout_us",
    "feed",
    "uart",
    "model",
    "base",
    "interrupt",
    "wire",
}
OPTIONAL |= {"costs", "distance_bytes", "backward_bytes"}
FIELDS = [(kind, each.name) for kind in NESTED for each in fields(kind)]


@pytest.mark.parametrize(("kind", "name"), FIELDS, ids=label)
def test_every_field_of_an_answer_has_its_type(kind: type, name: str) -> None:
    """A field that a dataclass gets later is covered, too."""
    good, around = NESTED[kind]
    for wrong in (object(), *(() if name in OPTIONAL else (None,))):
        answer = around(changed(good, **{name: wrong}))
        method = "lower" if isinstance(answer, LoweredOp) else "driver"
        guard = guarded_target(Thing(**{method: lambda *arguments, answer=answer: answer}))
        with pytest.raises(BrokenBackendError, match=rf"from {method}\(\) .*: .*\b{name} is .*, expected "):
            guard.lower(LOWERING) if method == "lower" else guard.driver(DEVICE)


MISSING_SOURCE = Contribution(name="npu", folder=Path(__file__).parent, sources=("gone.c",))
VALUES: list[tuple[dict[str, object], str]] = [
    ({"kernel": ""}, "kernel is '', expected a short name"),
    ({"kernel": "a\nb"}, r"kernel is 'a\\nb', expected a short name"),
    ({"scratch_bytes": -8}, "scratch_bytes is -8, expected a number from 0 to"),
    ({"scratch_bytes": 1 << 70}, r"scratch_bytes is \d+, expected a number from 0 to"),
    ({"scratch_bytes": True}, "scratch_bytes is a bool, expected int"),
    ({"scratch_alignment": 0}, "scratch_alignment is 0, expected a power of two"),
    ({"scratch_alignment": 1 << 40}, r"scratch_alignment is \d+, expected a power of two up to"),
    ({"declarations": (Class(name="A"),)}, "its code has class 'A', which C does not have"),
    ({"declarations": (Variable("v", Pointer(ClassType("A"))),)}, "its code has class 'A'"),
    ({"status": Construct(ClassType("A"))}, "its code has a new object of class 'A', which C does not have"),
    ({"status": QualifiedName(("a", "b"), "c")}, "its code has the name 'c' in 'a::b', which C does not have"),
    ({"statements": (Declare("r", Reference(Scalar.INT8)),)}, "its code has a reference, which C does not have"),
    ({"statements": (Comment("\udcff"),)}, r"text is '\\udcff', expected text that UTF-8 can encode"),
    ({"scratch_alignment": 12}, "scratch_alignment is 12, expected a power of two"),
    (
        {"blobs": (changed(OP.blobs[0], data=np.zeros(2)),)},
        r"blobs\[0\] \('p_w'\).data is an array of float64, expected",
    ),
    ({"blobs": (changed(OP.blobs[0], data=np.array(["a"])),)}, "data is an array of <U1, expected"),
    ({"blobs": (changed(OP.blobs[0], data=np.zeros(0, np.int8)),)}, "is an array without elements"),
    ({"blobs": (changed(OP.blobs[0], name="w"),)}, "name is 'w', expected a C identifier that starts with 'p'"),
    ({"blobs": (changed(OP.blobs[0], name="p w"),)}, "name is 'p w', expected a C identifier"),
    ({"blobs": (changed(OP.blobs[0], alignment=3),)}, "alignment is 3, expected a power of two"),
    ({"blobs": OP.blobs * 2}, "has 2 arrays with the name 'p_w'"),
    ({"overlaps": (Overlap(output="x", input="x", distance_bytes=0),)}, r"overlaps\[0\] is for output 'x'"),
    (
        {"overlaps": (Overlap(output=Y.name, input="x", distance_bytes=0, step_bytes=0),)},
        r"overlaps\[0\] has a step_bytes of 0, expected 1 or more",
    ),
    ({"overlaps": (Overlap(output=Y.name, input="w", distance_bytes=0),)}, r"overlaps\[0\] is for .* input 'w'"),
    ({"statements": (), "view_of": "w"}, r"view_of is 'w', expected an input .*: \['x'\]"),
    ({"view_of": "x"}, "view_of is set beside statements or a status"),
    (
        {"considered": (changed(OP.considered[0], costs=changed(COSTS, weight_bytes=-1)),)},
        r"considered\[0\].costs.weight_bytes is -1, expected 0 or more",
    ),
    ({"cycles": -1}, "cycles is -1, expected 0 or more"),
    ({"feed": Call(Identifier("take"))}, "feed is set with the inputs .*, expected one .*, and a status"),
    ({"timeout_us": -1}, "timeout_us is -1, expected a number from 0"),
    ({"timeout_us": (1 << 32) - 1}, r"timeout_us is \d+, expected a number from 0"),
    ({"start": Call(Identifier("f"), ())}, "start is set without a status, expected both"),
    ({"start": QualifiedName(("a", "b"), "c"), "status": Integer(0)}, "its code has the name 'c' in 'a::b'"),
    ({"statements": (), "view_of": "x", "start": Integer(0), "status": Integer(0)}, "view_of is set beside"),
    ({"headers": ("a b.h",)}, "headers has 'a b.h'"),
    ({"headers": ('a.h"\n#error',)}, "headers has"),
    ({"contributions": (MISSING_SOURCE,)}, "contribution 'npu': there is no source .*gone.c"),
    ({"contributions": (replace(MISSING_SOURCE, sources=(), include_dirs=("none",)),)}, "there is no include folder"),
]


def test_a_lowered_layer_of_too_many_levels_is_refused() -> None:
    deep: Expression = Integer(1)
    for _ in range(5000):
        deep = Not(deep)
    guard = guarded_target(Thing(lower=lambda context: changed(OP, statements=(Evaluate(deep),))))
    with pytest.raises(BrokenBackendError, match="returned a LoweredOp of too many levels"):
        guard.lower(LOWERING)


NODES: list[tuple[Callable[[], object], str]] = [
    (lambda: Integer(1 << 64), "an integer literal of 65 bits"),
    (lambda: Integer(-(1 << 63) - 1), "an integer literal of 64 bits"),
    (lambda: Float(1e39), "a float literal of 1e[+]39, which float32 cannot represent"),
    (lambda: Enumerator("a", 1 << 32), "enumerator 'a' of 33 bits"),
    (lambda: Enumeration(()), "without enumerators"),
    (lambda: Struct("s", ()), "structure 's' has no member"),
    (lambda: Integer(-1, unsigned=True), "an unsigned integer literal of -1, expected 0 or more"),
    (lambda: QualifiedName((), "x"), "the qualified name 'x' has no namespace"),
    (lambda: Module(name="m", doc="", interface=(Class(name="A"),)), "class 'A' is in the interface of module 'm'"),
    (lambda: ArrayData(np.zeros(2)), "an array of float64"),
    (lambda: ArrayData(np.array([None])), "an array of object"),
]


@pytest.mark.parametrize(("make", "message"), NODES)
def test_nodes_that_no_writer_can_print_cannot_be_made(make: Callable[[], object], message: str) -> None:
    """So the fault is raised inside of the backend that makes the node."""
    with pytest.raises(ValueError, match=message):
        make()


DRIVERS: list[tuple[dict[str, object], str]] = [
    ({"driver": "my driver"}, "driver is 'my driver', expected a C identifier"),
    ({"context": ""}, "context is '', expected a C identifier"),
    ({"header": ""}, "header has ''"),
    ({"memory_bytes": -1}, "memory_bytes is -1"),
    ({"memory_bytes": 1 << 40}, r"memory_bytes is \d+"),
    ({"activation_lead": -1}, "activation_lead is -1"),
    ({"depth": -1}, "depth is -1, expected a number from 0"),
    ({"copies_beside": True, "depth": 1}, "copies_beside is set with memory_bytes 0 and depth 1, expected a device"),
    ({"copies_beside": True, "memory_bytes": 64}, "copies_beside is set with memory_bytes 64 and depth 0"),
    ({"alignment": 0}, "alignment is 0"),
    ({"transfer_alignment": 3}, "transfer_alignment is 3, expected a power of two"),
    ({"reach": (Reach(name="ring", size_bytes=-1),)}, r"reach\[0\] \(ring\) has -1 B at offset 0 of 'context'"),
    ({"reach": (Reach(name="r", size_bytes=4, offset_bytes=-4),)}, r"reach\[0\] \(r\) has 4 B at offset -4"),
    ({"reach": (Reach(name="r", size_bytes=4, storage="a b"),)}, r"reach\[0\] \(r\) has 4 B at offset 0 of 'a b'"),
    ({"tensor_alignment": 0}, "tensor_alignment is 0, expected a power of two"),
    ({"tensor_alignment": 24}, "tensor_alignment is 24, expected a power of two"),
    ({"window_bytes": 0}, "window_bytes is 0, expected 1 or more"),
    ({"window_bytes": 0x1001, "base": 0xFFFF_F000}, "window_bytes is 4097, expected 1 or more, up to the end"),
    ({"base": -4}, "base is -0x4, expected an address"),
    ({"base_member": "my base"}, "base_member is 'my base', expected the C identifier of a member"),
    ({"interrupt": -1, "handler": "h"}, "interrupt is -1"),
    ({"interrupt": 3}, "handler is '', expected the C identifier"),
    ({"wire": Wire(baud=0)}, "wire.baud is 0"),
    ({"context_fields": (("f", QualifiedName(("a",), "b")),)}, "its code has the name 'b' in 'a'"),
    ({"context_declarations": (Variable("v", Reference(Scalar.INT8)),)}, "its code has a reference"),
    ({"contributions": (MISSING_SOURCE,)}, "there is no source"),
]


@pytest.mark.parametrize(
    ("method", "argument", "answer", "question", "changes", "message"),
    [
        *(("lower", LOWERING, OP, f"a LoweredOp from lower(){OF_LAYER}", *row) for row in VALUES),
        *(("driver", DEVICE, DRIVER, "a DeviceDriver from driver() for device 'Bad'", *row) for row in DRIVERS),
    ],
)
def test_the_values_of_an_answer_are_checked(
    method: str, argument: object, answer: object, question: str, changes: dict[str, object], message: str
) -> None:
    guard = guarded_target(Thing(**{method: lambda given: changed(answer, **changes)}))
    with pytest.raises(BrokenBackendError, match=message) as error:
        getattr(guard, method)(argument)
    assert str(error.value).startswith(f"backend 'Bad' returned {question}: ")


def test_context_fields_that_cannot_become_c_are_a_fault() -> None:
    driver = changed(DRIVER, context_fields=(("size", 1 << 70),))
    guard = guarded_target(Thing(driver=lambda device: driver))
    with pytest.raises(BrokenBackendError, match=r"'Bad' failed in .* its context_fields cannot become C: ValueError"):
        guard.driver(DEVICE)


@pytest.mark.parametrize("make", [boom, lambda *seed: None, lambda *seed: 3], ids=["raises", "none", "int"])
@pytest.mark.parametrize("wired", [True, False])
def test_the_makers_of_models_are_guarded(make: Callable[..., Any], wired: bool) -> None:
    given = changed(DRIVER, wire=Wire(model=make)) if wired else changed(DRIVER, model=make)
    driver = guarded_target(Thing(driver=lambda device: given)).driver(DEVICE)
    with pytest.raises(BrokenBackendError, match=r"'Bad' .* model\(\) of the driver of device 'Bad'"):
        driver.wire.model(None) if wired else driver.model()


def test_a_target_has_only_the_methods_that_the_backends_has() -> None:
    class Core:
        def lower(self, context: LoweringContext) -> LoweredOp:
            return OP

    guard = guarded_target(Core())
    assert guard.lower(LOWERING) is OP
    assert not isinstance(guard, firmware.DeviceTarget)


def test_values_that_stand_for_others_fit() -> None:
    assert not misfit(np.int64(3), int)
    assert not misfit(3, float)
    assert not misfit(np.float32(3), float)
    assert misfit(value=True, annotation=int) == "is a bool, expected int"
    assert misfit((1, "a"), tuple[int, ...], "it") == "it[1] is a str, expected int"
    assert misfit((1,), tuple[int, str]) == "is a tuple, expected a tuple of 2"
    assert misfit({"a": 1}, Mapping[str, str], "it") == "it['a'] is an int, expected str"
    assert misfit(None, int | str | float | bytes | set[int]) == "is None, expected int, str, float or 2 other types"


PACKAGE = Path(ferrule.__file__).parent
OUTSIDE = [
    path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.relative_to(PACKAGE).parts[0] not in {"backends", "testing", "_data"}
]


def test_ferrule_asks_backends_through_their_guards_only() -> None:
    """Outside of ferrule.backends, the object that a registry creates goes into `guarded` at once."""
    seen = 0
    for path in OUTSIDE:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        inside = {
            id(argument)
            for call in calls
            if isinstance(call.func, ast.Name) and call.func.id == "guarded"
            for argument in call.args
        }
        for call in calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr == "create":
                seen += 1
                assert id(call) in inside, f"{path}:{call.lineno}: write guarded({ast.unparse(call)})"
            name = call.func.id if isinstance(call.func, ast.Name) else ""
            assert name != "create_backend", f"{path}:{call.lineno}: write guarded(registry.create(...))"
    assert seen >= 8
