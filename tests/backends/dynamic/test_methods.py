# SPDX-License-Identifier: Apache-2.0
"""Each method of Ferrule's interface and each function of the C interface are two sides of one statement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from ctypes import POINTER, c_bool, c_int64, c_size_t, c_uint32, c_void_p
from dataclasses import fields
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest

from ferrule.backends import context, tensor_handle, workload
from ferrule.backends.backend import Backend, LayerSupport, Support
from ferrule.backends.capability import Capabilities
from ferrule.backends.context import BackendEvent, CreationOptions, CustomAllocator, NetworkId
from ferrule.backends.dynamic import abi
from ferrule.backends.dynamic.backend import DynamicBackend
from ferrule.backends.dynamic.context import DynamicContext, DynamicProfiling
from ferrule.backends.dynamic.handles import DynamicHandle, DynamicHandleFactory, DynamicMemory
from ferrule.backends.dynamic.workload import DynamicEvent, DynamicWorkload, DynamicWorkloadFactory
from ferrule.backends.firmware import FirmwareTarget
from ferrule.backends.guarded import _INTERFACES, _methods
from ferrule.backends.optimization_views import ModelOptions, OptimizationViews
from ferrule.backends.target import Target
from ferrule.backends.tensor_handle import HandleCapability, MemoryManager, MemoryRef, MemorySource
from ferrule.backends.workload import WorkloadInfo
from ferrule.graph import Array, Graph, Layer, SubgraphView, TensorInfo

OBJECT = POINTER(c_void_p)
TENSORS = POINTER(POINTER(abi.Tensor))
METHODS = {
    "layer_support.supports": "LayerSupport.supports",
    "layer_support.supports_on": "LayerSupport.supports",
    "capabilities.list": "Backend.capabilities",
    "optimizer.optimize": "Backend.optimize_subgraph",
    "optimizer.optimize_on": "Backend.optimize_subgraph",
    "optimizer_answers.fail": "OptimizationViews.failed",
    "optimizer_answers.erase": "OptimizationViews.deleted",
    "optimizer_answers.pre_compile": "OptimizationViews.substitutions",
    "workloads.create": "WorkloadFactory.create_workload",
    "workloads.execute": "Workload.execute",
    "events.wait": "Event.wait",
    "events.done": "Event.done",
    "allocator.allocate": "CustomAllocator.allocate",
    "allocator.release": "CustomAllocator.free",
    "memory.create": "Backend.memory_manager",
    "memory.acquire": "MemoryManager.acquire",
    "memory.release": "MemoryManager.release",
    "memory.accept": "Backend.use_custom_memory_allocator",
    "handle_factory.create": "TensorHandleFactory.create_handle",
    "handle_factory.manage": "TensorHandle.manage",
    "handle_factory.allocate": "TensorHandle.allocate",
    "handle_factory.map": "TensorHandle.map",
    "handle_factory.unmap": "TensorHandle.unmap",
    "handle_factory.import_memory": "TensorHandle.import_memory",
    "handle_factory.memory_alignment": "TensorHandleFactory.memory_alignment",
    "handle_factory.connection_capabilities": "TensorHandleFactory.capabilities",
    "handle_factory.import_ref": "TensorHandle.import_memory",
    "contexts.create": "Backend.context",
    "contexts.before_load": "BackendContext.before_load_network",
    "contexts.after_load": "BackendContext.after_load_network",
    "contexts.before_unload": "BackendContext.before_unload_network",
    "contexts.after_unload": "BackendContext.after_unload_network",
    "profiling.create": "Backend.profiling_context",
    "profiling.enable": "BackendProfilingContext.enable_profiling",
    "profiling.take_events": "BackendProfilingContext.take_events",
}
"""The method, or the field of the answer to one, that each function serves; the others end an object."""
WRAPPERS: dict[type, type] = {
    Backend: DynamicBackend,
    LayerSupport: DynamicBackend,
    workload.WorkloadFactory: DynamicWorkloadFactory,
    workload.Workload: DynamicWorkload,
    tensor_handle.Event: DynamicEvent,
    MemoryManager: DynamicMemory,
    tensor_handle.TensorHandleFactory: DynamicHandleFactory,
    tensor_handle.TensorHandle: DynamicHandle,
    context.BackendContext: DynamicContext,
    context.BackendProfilingContext: DynamicProfiling,
}
"""The class that asks a shared object, by the interface that it has."""
TABLES = {
    "Backend.layer_support": "layer_support",
    "Backend.workload_factory": "workloads",
    "Backend.tensor_handle_factories": "handles",
}
"""Methods whose answer is a table."""
BY_ARGUMENT = {
    "TensorHandle.can_import": "TensorHandle.import_memory",  # try_only
    "TensorHandle.end_import": "TensorHandle.import_memory",  # memory is null
}
"""Methods that are calls of another method's function."""
PYTHON_ONLY = {
    "Backend.model_options",  # any options are accepted
    "Backend.policy",
    "Backend.has_host_face",  # whether there is the table `workloads`
    "Backend.workload_factory_in",
    "Backend.handle_factory_preferences",  # the factories in their order
    "Backend.firmware_target",  # shared objects run on the host
    "WorkloadFactory.create_fallback_import",  # waits for the event of the workload
    "WorkloadFactory.join",
    "WorkloadFactory.native_call",  # what a function of C reports has to be checked
    "TensorHandleFactory.import_refusal",
    "CustomAllocator.view",
    "CustomAllocator.populate_data",
    "CustomAllocator.retrieve_data",
    "OptimizationViews.untouched",  # the layers that no answer names
    "OptimizationViews.reasons",  # the texts of `fail`
}
"""What the C interface does not have."""
ADDED: dict[str, tuple[list[Any], list[Any]]] = {
    "TensorHandleFactory.create_handle": ([c_void_p], []),  # the memory manager, which a factory in Python knows
    "Workload.execute": ([], [TENSORS, TENSORS]),  # the inputs and the outputs
    "TensorHandle.import_memory": ([], [c_bool]),  # try_only
}
"""Parameters that only the C function has, before and after those of the method."""
PARAMETERS: dict[Any, list[Any]] = {
    Graph: [],  # a layer points to its tensors
    Layer: [POINTER(abi.Layer)],
    Target: [POINTER(abi.Target)],
    SubgraphView: [POINTER(abi.Subgraph)],
    TensorInfo: [POINTER(abi.Tensor)],
    WorkloadInfo: [POINTER(abi.WorkloadInfo)],
    CreationOptions: [POINTER(abi.CreationOptions)],
    CustomAllocator: [POINTER(abi.Allocator)],
    MemoryRef: [POINTER(abi.MemoryRef)],
    MemoryManager: [c_void_p],
    MemorySource: [c_uint32],
    NetworkId: [c_int64],
    bool: [c_bool],
    int: [c_size_t],
}
RESULTS: dict[Any, tuple[Any, list[Any]]] = {
    NoneType: (None, []),
    bool: (c_bool, []),
    int: (c_uint32, []),
    frozenset[HandleCapability]: (c_uint32, []),
    str: (None, []),  # the reason
    Support: (None, []),  # the reason
    Array: (None, [OBJECT]),
    Capabilities: (POINTER(abi.Option), [POINTER(c_uint32)]),
    list[BackendEvent]: (None, [c_void_p, abi.RecordEvent]),
    OptimizationViews: (None, [POINTER(abi.OptimizerAnswers)]),
    **{interface: (None, [OBJECT]) for interface in WRAPPERS},
}
"""What a function returns if it reports no status, and its parameters for the answer."""


def rows() -> Iterator[tuple[str, abi.Function]]:
    for tag, kind in abi.STRUCTS.items():
        yield from ((f"{tag.removeprefix('ferrule_')}.{name}", row) for name, row in kind.functions.items())


def members() -> Iterator[tuple[str, Callable[..., Any] | None]]:
    """Yield the methods of the interface, and the fields of the answers to an optimizer."""
    for interface in (*WRAPPERS, CustomAllocator):
        yield from ((f"{interface.__name__}.{name}", method) for name, method in _methods(interface))
    yield from ((f"OptimizationViews.{field.name}", None) for field in fields(OptimizationViews))


SERVED = {METHODS[name]: row for name, row in rows() if name in METHODS}
"""By method: the newest function that serves it."""


def test_every_interface_has_a_wrapper() -> None:
    assert set(WRAPPERS) == set(_INTERFACES) - {FirmwareTarget}


def test_every_method_has_its_function_or_is_known_to_have_none() -> None:
    """A failure means that backend.h lacks a new method, METHODS a new function, or that a name has changed."""
    named = [*SERVED, *TABLES, *BY_ARGUMENT, *PYTHON_ONLY]
    assert sorted({name for name, _ in members()}) == sorted(named)
    assert len(set(named)) == len(named)
    assert set(TABLES.values()) <= set(abi.TABLES)


def test_only_functions_that_end_an_object_serve_no_method() -> None:
    functions = {name for name, _ in rows()}
    assert {name.rpartition(".")[2] for name in functions - set(METHODS)} == {"destroy", "release"}
    assert set(METHODS) | abi.OPTIONAL <= functions


@pytest.mark.parametrize("interface", WRAPPERS, ids=lambda kind: kind.__name__)
def test_what_c_has_is_asked(interface: type) -> None:
    """A method with a function is that of the class which asks the shared object, not the interface's default."""
    for name, method in _methods(interface):
        if f"{interface.__name__}.{name}" not in PYTHON_ONLY:
            assert getattr(WRAPPERS[interface], name) is not method, name


def plain(annotation: Any) -> Any:  # noqa: ANN401 - annotations have no common type
    """Return an annotation without its rule and without None."""
    if get_origin(annotation) is Annotated:
        return get_args(annotation)[0]
    optional = NoneType in get_args(annotation)
    return get_args(annotation)[0] if optional and annotation != ModelOptions else annotation


def expected(name: str, method: Callable[..., Any]) -> tuple[Any, Sequence[Any]]:
    """Return the type that the function of a method returns, and the types of its parameters after the object."""
    *given, answer = (plain(hint) for hint in get_type_hints(method, include_extras=True).values())
    result, returned = RESULTS[answer]
    before, after = ADDED.get(name, ([], []))
    target_first = sorted(given, key=lambda hint: hint is not Target)
    own = [each for hint in target_first for each in PARAMETERS[hint]]
    return result, [*before, *own, *after, *returned]


def test_parameters_and_results_are_those_of_the_methods() -> None:
    for name, method in members():
        if method is None or name not in SERVED or name.startswith("CustomAllocator"):
            continue
        row, (result, parameters) = SERVED[name], expected(name, method)
        found = row.ctype._argtypes_[1 : -2 if row.reports else None]
        assert list(found) == parameters, name
        assert row.reports or row.ctype._restype_ is result, name
