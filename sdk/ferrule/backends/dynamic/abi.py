# SPDX-License-Identifier: Apache-2.0
"""The structs of include/ferrule/backend.h for ctypes; a test compares every offset with the header."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
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
from typing import Any, ClassVar, TypeVar

Fields = tuple[tuple[str, Any], ...]

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

OPTION_BOOL, OPTION_INT, OPTION_FLOAT, OPTION_TEXT = range(4)
FACE_HOST, FACE_FIRMWARE = range(2)


class Option(Structure):
    """struct ferrule_option."""

    _fields_ = (
        ("name", c_char_p),
        ("kind", c_int32),
        ("integer", c_int64),
        ("number", c_double),
        ("text", c_char_p),
    )


class QuantizationStruct(Structure):
    """struct ferrule_quantization."""

    _fields_ = (
        ("scales", POINTER(c_float)),
        ("zero_points", POINTER(c_int64)),
        ("count", c_uint32),
        ("axis", c_int32),
    )


class TensorStruct(Structure):
    """struct ferrule_tensor."""

    _fields_ = (
        ("name", c_char_p),
        ("dims", POINTER(c_int64)),
        ("rank", c_uint32),
        ("type", c_int32),
        ("quantization", QuantizationStruct),
        ("size_bytes", c_size_t),
        ("data", c_void_p),
        ("handle", c_void_p),
    )


TensorArray = POINTER(POINTER(TensorStruct))


class LayerStruct(Structure):
    """struct ferrule_layer."""

    _fields_ = (
        ("name", c_char_p),
        ("type", c_int32),
        ("descriptor_bytes", c_uint32),
        ("descriptor", c_void_p),
        ("inputs", TensorArray),
        ("input_count", c_uint32),
        ("outputs", TensorArray),
        ("output_count", c_uint32),
        ("rounding", c_int32),
    )


class CoreMemoryStruct(Structure):
    """struct ferrule_core_memory."""

    _fields_ = (
        ("name", c_char_p),
        ("address", c_uint64),
        ("size_bytes", c_uint64),
        ("writable", c_bool),
        ("cacheable", c_bool),
        ("line_bytes", c_uint32),
    )


class TargetStruct(Structure):
    """struct ferrule_target."""

    _fields_ = (
        ("size_bytes", c_size_t),
        ("face", c_int32),
        ("device", c_char_p),
        ("binding", POINTER(Option)),
        ("binding_count", c_uint32),
        ("regions", POINTER(c_char_p)),
        ("region_count", c_uint32),
        ("core", c_char_p),
        ("fpu", c_bool),
        ("dsp", c_bool),
        ("mve", c_bool),
        ("memories", POINTER(CoreMemoryStruct)),
        ("memory_count", c_uint32),
        ("options", POINTER(Option)),
        ("option_count", c_uint32),
    )


class PreCompiledStruct(Structure):
    """struct ferrule_pre_compiled."""

    _fields_ = (("object", c_void_p), ("object_bytes", c_size_t))


class SubgraphStruct(Structure):
    """struct ferrule_subgraph."""

    _fields_ = (
        ("layers", POINTER(POINTER(LayerStruct))),
        ("layer_count", c_uint32),
        ("inputs", TensorArray),
        ("input_count", c_uint32),
        ("outputs", TensorArray),
        ("output_count", c_uint32),
    )


FailAnswer = CFUNCTYPE(c_int32, c_void_p, c_uint32, c_char_p)
EraseAnswer = CFUNCTYPE(c_int32, c_void_p, c_uint32)
PreCompileAnswer = CFUNCTYPE(c_int32, c_void_p, POINTER(c_uint32), c_uint32, c_char_p, c_uint64, c_void_p, c_size_t)


class AnswersStruct(Structure):
    """struct ferrule_optimizer_answers."""

    _fields_ = (
        ("host", c_void_p),
        ("fail", FailAnswer),
        ("erase", EraseAnswer),
        ("pre_compile", PreCompileAnswer),
    )


class WorkloadInfoStruct(Structure):
    """struct ferrule_workload_info."""

    _fields_ = (
        ("layer", POINTER(LayerStruct)),
        ("device", c_char_p),
        ("options", POINTER(Option)),
        ("option_count", c_uint32),
        ("memory", c_void_p),
        ("target", POINTER(TargetStruct)),
    )


Allocate = CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_size_t)
Release = CFUNCTYPE(None, c_void_p, c_void_p)


class AllocatorStruct(Structure):
    """struct ferrule_allocator."""

    _fields_ = (("host", c_void_p), ("source", c_uint32), ("allocate", Allocate), ("release", Release))


class CreationOptionsStruct(Structure):
    """struct ferrule_creation_options."""

    _fields_ = (
        ("profiling", c_bool),
        ("protected_mode", c_bool),
        ("options", POINTER(Option)),
        ("option_count", c_uint32),
    )


RecordEvent = CFUNCTYPE(None, c_void_p, c_char_p, c_int64, c_int64)


class Table(Structure):
    """A struct that begins with its own size; `required` lists the functions that must not be null."""

    required: ClassVar[tuple[str, ...]] = ()
    since: ClassVar[Mapping[str, int]] = {}
    """The minor version that added a field, for fields that version 1.0 lacks; they are the last ones, in order."""

    @classmethod
    def members(cls) -> list[tuple[str, type[Any]]]:
        """Return the name and type of each field."""
        return [(row[0], row[1]) for row in cls._fields_]

    @classmethod
    def sizes(cls, minor: int) -> list[int]:
        """Return the size of the struct in each minor version up to `minor`."""

        def size(version: int) -> int:
            added = [name for name, since in cls.since.items() if since > version]
            return int(getattr(cls, added[0]).offset) if added else ctypes.sizeof(cls)

        return [size(version) for version in range(minor + 1)]


def _function(result: type[Any], *arguments: type[Any]) -> type[Any]:
    """Return the type of a function that ends with a reason buffer."""
    return CFUNCTYPE(result, *arguments, c_void_p, c_size_t)


class LayerSupportTable(Table):
    """struct ferrule_layer_support."""

    required = ("supports",)
    since: ClassVar[Mapping[str, int]] = {"supports_on": 1}
    _fields_ = (
        ("size_bytes", c_size_t),
        ("supports", _function(c_int32, c_void_p, POINTER(LayerStruct))),
        ("supports_on", _function(c_int32, c_void_p, POINTER(TargetStruct), POINTER(LayerStruct))),
    )


class CapabilitiesTable(Table):
    """struct ferrule_capabilities."""

    required = ("list",)
    _fields_ = (("size_bytes", c_size_t), ("list", CFUNCTYPE(POINTER(Option), c_void_p, POINTER(c_uint32))))


class OptimizerTable(Table):
    """struct ferrule_optimizer."""

    required = ("optimize",)
    since: ClassVar[Mapping[str, int]] = {"optimize_on": 1}
    _fields_ = (
        ("size_bytes", c_size_t),
        (
            "optimize",
            _function(c_int32, c_void_p, POINTER(SubgraphStruct), POINTER(Option), c_uint32, POINTER(AnswersStruct)),
        ),
        (
            "optimize_on",
            _function(c_int32, c_void_p, POINTER(TargetStruct), POINTER(SubgraphStruct), POINTER(AnswersStruct)),
        ),
    )


class WorkloadsTable(Table):
    """struct ferrule_workloads."""

    required = ("create", "execute", "destroy")
    _fields_ = (
        ("size_bytes", c_size_t),
        ("create", _function(c_int32, c_void_p, POINTER(WorkloadInfoStruct), POINTER(c_void_p))),
        ("execute", _function(c_int32, c_void_p, TensorArray, TensorArray, POINTER(c_void_p))),
        ("destroy", CFUNCTYPE(None, c_void_p)),
    )


class EventsTable(Table):
    """struct ferrule_events."""

    required = ("wait", "done", "release")
    _fields_ = (
        ("size_bytes", c_size_t),
        ("wait", _function(c_int32, c_void_p)),
        ("done", CFUNCTYPE(c_bool, c_void_p)),
        ("release", CFUNCTYPE(None, c_void_p)),
    )


class MemoryTable(Table):
    """struct ferrule_memory."""

    required = ("create", "acquire", "release", "destroy")
    _fields_ = (
        ("size_bytes", c_size_t),
        ("create", _function(c_int32, c_void_p, POINTER(AllocatorStruct), POINTER(c_void_p))),
        ("acquire", _function(c_int32, c_void_p)),
        ("release", CFUNCTYPE(None, c_void_p)),
        ("destroy", CFUNCTYPE(None, c_void_p)),
        ("accept", _function(c_int32, c_void_p, POINTER(AllocatorStruct))),
    )


class MemoryRefStruct(Structure):
    """struct ferrule_memory_ref."""

    _fields_ = (
        ("source", c_uint32),
        ("address", c_void_p),
        ("fd", c_int32),
        ("offset", c_size_t),
        ("bytes", c_size_t),
        ("block_bytes", c_size_t),
    )


class HandleFactoryTable(Table):
    """struct ferrule_handle_factory."""

    required = ("create", "destroy")
    since: ClassVar[Mapping[str, int]] = {"memory_alignment": 2, "connection_capabilities": 2, "import_ref": 2}
    _fields_ = (
        ("size_bytes", c_size_t),
        ("id", c_char_p),
        ("import_flags", c_uint32),
        ("export_flags", c_uint32),
        ("capabilities", c_uint32),
        ("alignment_bytes", c_uint32),
        ("supports_map", c_bool),
        ("create", _function(c_int32, c_void_p, c_void_p, POINTER(TensorStruct), c_bool, POINTER(c_void_p))),
        ("manage", CFUNCTYPE(None, c_void_p)),
        ("allocate", CFUNCTYPE(None, c_void_p)),
        ("map", _function(c_int32, c_void_p, POINTER(c_void_p))),
        ("unmap", CFUNCTYPE(None, c_void_p)),
        ("import_memory", CFUNCTYPE(c_bool, c_void_p, c_void_p, c_uint32, c_bool)),
        ("destroy", CFUNCTYPE(None, c_void_p)),
        ("memory_alignment", CFUNCTYPE(c_uint32, c_void_p, c_uint32)),
        ("connection_capabilities", CFUNCTYPE(c_uint32, c_void_p, POINTER(LayerStruct), POINTER(LayerStruct))),
        ("import_ref", CFUNCTYPE(c_bool, c_void_p, POINTER(MemoryRefStruct), c_bool)),
    )


class HandlesTable(Table):
    """struct ferrule_handles."""

    _fields_ = (
        ("size_bytes", c_size_t),
        ("factories", POINTER(POINTER(HandleFactoryTable))),
        ("factory_count", c_uint32),
    )


_Notice = CFUNCTYPE(c_bool, c_void_p, c_int64)


class ContextsTable(Table):
    """struct ferrule_contexts."""

    required = ("create", "before_load", "after_load", "before_unload", "after_unload", "destroy")
    _fields_ = (
        ("size_bytes", c_size_t),
        ("create", _function(c_int32, c_void_p, POINTER(CreationOptionsStruct), POINTER(c_void_p))),
        ("before_load", _Notice),
        ("after_load", _Notice),
        ("before_unload", _Notice),
        ("after_unload", _Notice),
        ("destroy", CFUNCTYPE(None, c_void_p)),
    )


class ProfilingTable(Table):
    """struct ferrule_profiling."""

    required = ("create", "enable", "take_events", "destroy")
    _fields_ = (
        ("size_bytes", c_size_t),
        ("create", _function(c_int32, c_void_p, POINTER(CreationOptionsStruct), POINTER(c_void_p))),
        ("enable", CFUNCTYPE(c_bool, c_void_p, c_bool)),
        ("take_events", CFUNCTYPE(None, c_void_p, c_void_p, RecordEvent)),
        ("destroy", CFUNCTYPE(None, c_void_p)),
    )


class BackendTable(Table):
    """struct ferrule_backend; the fields after the version are pointers to tables."""

    required = ("layer_support",)
    _fields_ = (
        ("size_bytes", c_size_t),
        ("api_major", c_uint32),
        ("api_minor", c_uint32),
        ("layer_support", POINTER(LayerSupportTable)),
        ("capabilities", POINTER(CapabilitiesTable)),
        ("optimizer", POINTER(OptimizerTable)),
        ("workloads", POINTER(WorkloadsTable)),
        ("events", POINTER(EventsTable)),
        ("memory", POINTER(MemoryTable)),
        ("handles", POINTER(HandlesTable)),
        ("contexts", POINTER(ContextsTable)),
        ("profiling", POINTER(ProfilingTable)),
    )


TABLES: dict[str, type[Table]] = {
    "layer_support": LayerSupportTable,
    "capabilities": CapabilitiesTable,
    "optimizer": OptimizerTable,
    "workloads": WorkloadsTable,
    "events": EventsTable,
    "memory": MemoryTable,
    "handles": HandlesTable,
    "contexts": ContextsTable,
    "profiling": ProfilingTable,
}
"""The table types that struct ferrule_backend points to, by field name."""

C_NAMES: dict[type[Structure], str] = {
    Option: "ferrule_option",
    QuantizationStruct: "ferrule_quantization",
    TensorStruct: "ferrule_tensor",
    LayerStruct: "ferrule_layer",
    CoreMemoryStruct: "ferrule_core_memory",
    TargetStruct: "ferrule_target",
    PreCompiledStruct: "ferrule_pre_compiled",
    SubgraphStruct: "ferrule_subgraph",
    AnswersStruct: "ferrule_optimizer_answers",
    WorkloadInfoStruct: "ferrule_workload_info",
    AllocatorStruct: "ferrule_allocator",
    CreationOptionsStruct: "ferrule_creation_options",
    LayerSupportTable: "ferrule_layer_support",
    CapabilitiesTable: "ferrule_capabilities",
    OptimizerTable: "ferrule_optimizer",
    WorkloadsTable: "ferrule_workloads",
    EventsTable: "ferrule_events",
    MemoryTable: "ferrule_memory",
    MemoryRefStruct: "ferrule_memory_ref",
    HandleFactoryTable: "ferrule_handle_factory",
    HandlesTable: "ferrule_handles",
    ContextsTable: "ferrule_contexts",
    ProfilingTable: "ferrule_profiling",
    BackendTable: "ferrule_backend",
}
"""The tag of each struct in C."""


_T = TypeVar("_T", bound=Table)


def read_table(kind: type[_T], address: int) -> _T:
    """Return a copy of the table at an address; fields beyond the table's own size are null."""
    size = c_size_t.from_address(address).value
    table = kind()
    ctypes.memmove(ctypes.byref(table), address, min(size, ctypes.sizeof(kind)))
    return table
