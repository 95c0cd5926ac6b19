# SPDX-License-Identifier: Apache-2.0
"""The sheet of the C interface: a row for each struct, member and function of include/ferrule/backend.h.

What asks a shared object follows from the rows: the types for ctypes, the check of tables in a child process, which
imports this module without the rest of Ferrule, and the calls with their reason. Tests compare the name, order and type
of every member with the header, and every function with the method of Ferrule's interface that it serves.
"""

from __future__ import annotations

import ctypes
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_bool,
    c_char_p,
    c_double,
    c_float,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any, NamedTuple

API_VERSION = (1, 3)
"""FERRULE_BACKEND_API_MAJOR and _MINOR."""

OK = 0
ERR_ARGUMENT = -1
ERR_UNSUPPORTED = -2
ERR_MEMORY = -3
ERR_FAILED = -4
ERR_UNAVAILABLE = -5

STATUS_TEXTS = {
    ERR_ARGUMENT: "an argument is wrong",
    ERR_UNSUPPORTED: "it is not supported",
    ERR_MEMORY: "there is not enough memory",
    ERR_FAILED: "it failed",
    ERR_UNAVAILABLE: "it is not available",
}

FACE_HOST, FACE_FIRMWARE = range(2)


class Function(NamedTuple):
    """A function in a table, or a callback; its first parameter is the object, the backend, or the host."""

    ctype: Any
    method: str = ""
    """What it serves, as Class.method, or Class.field for the answer to a method; empty for the end of an object."""
    reports: bool = False
    """Whether it returns a status, and its last parameters are the buffer for the reason of a failure and its size."""
    optional: bool = False
    """Whether it may be null."""
    since: int = 0
    """The minor version that added it; such functions are the last ones of a table, in order, and optional."""


def _function(method: str, result: Any, *parameters: Any, optional: bool = False, since: int = 0) -> Function:  # noqa: ANN401 - types of ctypes
    return Function(CFUNCTYPE(result, c_void_p, *parameters), method, optional=optional or since > 0, since=since)


def _reporting(method: str, *parameters: Any, optional: bool = False, since: int = 0) -> Function:  # noqa: ANN401 - types of ctypes
    row = _function(method, c_int32, *parameters, c_void_p, c_size_t, optional=optional, since=since)
    return row._replace(reports=True)


def _creating(method: str, *parameters: Any) -> Function:  # noqa: ANN401 - types of ctypes
    """Return the row of a function that makes an object, which its last parameter before the reason gets."""
    return _reporting(method, *parameters, POINTER(c_void_p))


_END = _function("", None)


def _struct(tag: str, **members: Any) -> Any:  # noqa: ANN401 - a class made here
    """Return the class of `struct <tag>`; `members` has the type of each, or the row of a function."""
    kinds = [(name, each.ctype if isinstance(each, Function) else each) for name, each in members.items()]
    functions = {name: each for name, each in members.items() if isinstance(each, Function)}
    return type(tag, (Structure,), {"_fields_": kinds, "functions": functions})


def _table(tag: str, **members: Any) -> Any:  # noqa: ANN401 - a class made here
    """Return the class of a struct that begins with its own size."""
    return _struct(tag, size_bytes=c_size_t, **members)


Option = _struct("ferrule_option", name=c_char_p, kind=c_int32, integer=c_int64, number=c_double, text=c_char_p)

Quantization = _struct(
    "ferrule_quantization",
    scales=POINTER(c_float),
    zero_points=POINTER(c_int64),
    count=c_uint32,
    axis=c_int32,
)

Tensor = _struct(
    "ferrule_tensor",
    name=c_char_p,
    dims=POINTER(c_int64),
    rank=c_uint32,
    type=c_int32,
    quantization=Quantization,
    size_bytes=c_size_t,
    data=c_void_p,
    handle=c_void_p,
)

TensorArray = POINTER(POINTER(Tensor))

Layer = _struct(
    "ferrule_layer",
    name=c_char_p,
    type=c_int32,
    descriptor_bytes=c_uint32,
    descriptor=c_void_p,
    inputs=TensorArray,
    input_count=c_uint32,
    outputs=TensorArray,
    output_count=c_uint32,
    rounding=c_int32,
)

CoreMemory = _struct(
    "ferrule_core_memory",
    name=c_char_p,
    address=c_uint64,
    size_bytes=c_uint64,
    writable=c_bool,
    cacheable=c_bool,
    line_bytes=c_uint32,
)

Target = _table(
    "ferrule_target",
    face=c_int32,
    device=c_char_p,
    binding=POINTER(Option),
    binding_count=c_uint32,
    regions=POINTER(c_char_p),
    region_count=c_uint32,
    core=c_char_p,
    fpu=c_bool,
    dsp=c_bool,
    mve=c_bool,
    memories=POINTER(CoreMemory),
    memory_count=c_uint32,
    options=POINTER(Option),
    option_count=c_uint32,
)

PreCompiled = _struct("ferrule_pre_compiled", object=c_void_p, object_bytes=c_size_t)

LayerSupport = _table(
    "ferrule_layer_support",
    supports=_reporting("LayerSupport.supports", POINTER(Layer)),
    supports_on=_reporting("LayerSupport.supports", POINTER(Target), POINTER(Layer), since=1),
)

Capabilities = _table(
    "ferrule_capabilities", list=_function("Backend.capabilities", POINTER(Option), POINTER(c_uint32))
)

Subgraph = _struct(
    "ferrule_subgraph",
    layers=POINTER(POINTER(Layer)),
    layer_count=c_uint32,
    inputs=TensorArray,
    input_count=c_uint32,
    outputs=TensorArray,
    output_count=c_uint32,
)

OptimizerAnswers = _struct(
    "ferrule_optimizer_answers",
    host=c_void_p,
    fail=_function("OptimizationViews.failed", c_int32, c_uint32, c_char_p),
    erase=_function("OptimizationViews.deleted", c_int32, c_uint32),
    pre_compile=_function(
        "OptimizationViews.substitutions", c_int32, POINTER(c_uint32), c_uint32, c_char_p, c_uint64, c_void_p, c_size_t
    ),
)

Optimizer = _table(
    "ferrule_optimizer",
    optimize=_reporting(
        "Backend.optimize_subgraph", POINTER(Subgraph), POINTER(Option), c_uint32, POINTER(OptimizerAnswers)
    ),
    optimize_on=_reporting(
        "Backend.optimize_subgraph", POINTER(Target), POINTER(Subgraph), POINTER(OptimizerAnswers), since=1
    ),
)

WorkloadInfo = _struct(
    "ferrule_workload_info",
    layer=POINTER(Layer),
    device=c_char_p,
    options=POINTER(Option),
    option_count=c_uint32,
    memory=c_void_p,
    target=POINTER(Target),
)

Workloads = _table(
    "ferrule_workloads",
    create=_creating("WorkloadFactory.create_workload", POINTER(WorkloadInfo)),
    execute=_reporting("Workload.execute", TensorArray, TensorArray, POINTER(c_void_p)),
    destroy=_END,
)

Events = _table("ferrule_events", wait=_reporting("Event.wait"), done=_function("Event.done", c_bool), release=_END)

Allocator = _struct(
    "ferrule_allocator",
    host=c_void_p,
    source=c_uint32,
    allocate=_function("CustomAllocator.allocate", c_void_p, c_size_t, c_size_t),
    release=_function("CustomAllocator.free", None, c_void_p),
)

Memory = _table(
    "ferrule_memory",
    create=_creating("Backend.memory_manager", POINTER(Allocator)),
    acquire=_reporting("MemoryManager.acquire"),
    release=_function("MemoryManager.release", None),
    destroy=_END,
    accept=_reporting("Backend.use_custom_memory_allocator", POINTER(Allocator), optional=True),
)

MemoryRef = _struct(
    "ferrule_memory_ref",
    source=c_uint32,
    address=c_void_p,
    fd=c_int32,
    offset=c_size_t,
    bytes=c_size_t,
    block_bytes=c_size_t,
)

HandleFactory = _table(
    "ferrule_handle_factory",
    id=c_char_p,
    import_flags=c_uint32,
    export_flags=c_uint32,
    capabilities=c_uint32,
    alignment_bytes=c_uint32,
    supports_map=c_bool,
    create=_creating("TensorHandleFactory.create_handle", c_void_p, POINTER(Tensor), c_bool),
    manage=_function("TensorHandle.manage", None, optional=True),
    allocate=_function("TensorHandle.allocate", None, optional=True),
    map=_reporting("TensorHandle.map", POINTER(c_void_p), optional=True),
    unmap=_function("TensorHandle.unmap", None, optional=True),
    import_memory=_function("TensorHandle.import_memory", c_bool, c_void_p, c_uint32, c_bool, optional=True),
    destroy=_END,
    memory_alignment=_function("TensorHandleFactory.memory_alignment", c_uint32, c_uint32, since=2),
    connection_capabilities=_function(
        "TensorHandleFactory.capabilities", c_uint32, POINTER(Layer), POINTER(Layer), since=2
    ),
    import_ref=_function("TensorHandle.import_memory", c_bool, POINTER(MemoryRef), c_bool, since=2),
)

Handles = _table("ferrule_handles", factories=POINTER(POINTER(HandleFactory)), factory_count=c_uint32)

CreationOptions = _struct(
    "ferrule_creation_options",
    profiling=c_bool,
    protected_mode=c_bool,
    options=POINTER(Option),
    option_count=c_uint32,
)

Contexts = _table(
    "ferrule_contexts",
    create=_creating("Backend.context", POINTER(CreationOptions)),
    before_load=_function("BackendContext.before_load_network", c_bool, c_int64),
    after_load=_function("BackendContext.after_load_network", c_bool, c_int64),
    before_unload=_function("BackendContext.before_unload_network", c_bool, c_int64),
    after_unload=_function("BackendContext.after_unload_network", c_bool, c_int64),
    destroy=_END,
)

RecordEvent = _function("BackendEvent", None, c_char_p, c_int64, c_int64).ctype

Profiling = _table(
    "ferrule_profiling",
    create=_creating("Backend.profiling_context", POINTER(CreationOptions)),
    enable=_function("BackendProfilingContext.enable_profiling", c_bool, c_bool),
    take_events=_function("BackendProfilingContext.take_events", None, c_void_p, RecordEvent),
    destroy=_END,
)

Backend = _table(
    "ferrule_backend",
    api_major=c_uint32,
    api_minor=c_uint32,
    layer_support=POINTER(LayerSupport),
    capabilities=POINTER(Capabilities),
    optimizer=POINTER(Optimizer),
    workloads=POINTER(Workloads),
    events=POINTER(Events),
    memory=POINTER(Memory),
    handles=POINTER(Handles),
    contexts=POINTER(Contexts),
    profiling=POINTER(Profiling),
)

TABLES: dict[str, Any] = {name: kind._type_ for name, kind in Backend._fields_[3:]}
"""The tables that struct ferrule_backend points to, by the name of the member."""


def sizes(table: Any) -> list[int]:  # noqa: ANN401 - a class made here
    """Return the size of a table in each minor version."""

    def size(version: int) -> int:
        added = [name for name, row in table.functions.items() if row.since > version]
        return int(getattr(table, added[0]).offset) if added else ctypes.sizeof(table)

    return [size(version) for version in range(API_VERSION[1] + 1)]


def read_table(kind: Any, address: int) -> Any:  # noqa: ANN401 - a class made here
    """Return a copy of the table at an address; members beyond the table's own size are null."""
    size = c_size_t.from_address(address).value
    table = kind()
    ctypes.memmove(ctypes.byref(table), address, min(size, ctypes.sizeof(kind)))
    return table
