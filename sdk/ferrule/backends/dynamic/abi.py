# SPDX-License-Identifier: Apache-2.0
"""The C interface, read from include/ferrule/backend.h: a class for each struct, and a row for each function.

The header is the contract, and the only statement of names, order and types. What it says in words alone is here: which
functions are optional, and the version that added them. A child process that checks tables imports this module without
the rest of Ferrule. A test compares each function with the method of Ferrule's interface that it serves.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable
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

ADDED = {
    "layer_support.supports_on": 1,
    "optimizer.optimize_on": 1,
    "handle_factory.memory_alignment": 2,
    "handle_factory.connection_capabilities": 2,
    "handle_factory.import_ref": 2,
}
"""The minor version that added a function; such functions are the last ones of a table, in order, and optional."""

OPTIONAL = {
    *ADDED,
    "memory.accept",
    "handle_factory.manage",
    "handle_factory.allocate",
    "handle_factory.map",
    "handle_factory.unmap",
    "handle_factory.import_memory",
}
"""The functions that may be null."""


class Function(NamedTuple):
    """A function in a table, or a callback; its first parameter is the object, the backend, or the host."""

    ctype: Any
    reports: bool
    """Whether it returns a status, and its last parameters are the buffer for the reason of a failure and its size."""
    optional: bool
    """Whether it may be null."""
    since: int
    """The minor version that added it."""


_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120 (no pathlib here)
_PLACES = [os.path.join(_PACKAGE, each, "include", "ferrule") for each in ("_data", "../..")]  # noqa: PTH118
"""Where the headers are: in an installation, and in a checkout."""
_SCALARS = {
    "bool": c_bool,
    "double": c_double,
    "float": c_float,
    "int32_t": c_int32,
    "int64_t": c_int64,
    "size_t": c_size_t,
    "uint32_t": c_uint32,
    "uint64_t": c_uint64,
    "void": None,
}
_ADDRESSES = {"char": c_char_p, "void": c_void_p, "ferrule_backend": c_void_p}
"""The types of pointers to texts, and to what only its owner knows."""
_STRUCT = re.compile(r"struct (\w+) \{(.*?)\};")
_FUNCTION = re.compile(r"(\w+\**) ?\(\*(\w+)\)\((.*)\)")
_PLAIN = re.compile(r"(\w+) ?(\**)(\w*)")
_COMMA = re.compile(r", (?![^(]*\))")
"""A comma between parameters, but not between those of a parameter that is a function."""


def _declared(text: str, known: dict[str, Any]) -> tuple[str, Any]:
    """Return the name and the type of a member or a parameter; ValueError if it is of no known form or type."""
    function = _FUNCTION.fullmatch(text)
    if function is not None:
        result, name, parameters = function.groups()
        return name, CFUNCTYPE(*(_declared(each, known)[1] for each in (result, *_COMMA.split(parameters))))
    plain = _PLAIN.fullmatch(text)
    kind, stars, name = ("", "", "") if plain is None else plain.groups()
    if stars and kind in _ADDRESSES:
        ctype, stars = _ADDRESSES[kind], stars[1:]
    elif kind in known:
        ctype = known[kind]
    else:
        raise ValueError(
            f"a struct of include/ferrule has '{text}', whose type ferrule.backends.dynamic.abi does not know"
        )
    for _ in stars:
        ctype = POINTER(ctype)
    return name, ctype


def _structs(header: str) -> dict[str, Any]:
    """Return the class of each struct, by its tag; `functions` of a class has the rows."""
    text = re.sub(r"/\*.*?\*/|\bconst\s+", "", header, flags=re.DOTALL)
    text = re.sub(r"\s*\*\s*", "*", re.sub(r"\s+", " ", text))
    found: dict[str, Any] = dict(_SCALARS)
    for tag, body in _STRUCT.findall(text):
        fields, functions = [], {}
        for member in body.replace("struct ", "").split(";")[:-1]:
            name, kind = _declared(member.strip(), found)
            fields.append((name, kind))
            key = f"{tag.removeprefix('ferrule_')}.{name}"
            if _FUNCTION.fullmatch(member.strip()):
                reports = member.endswith("size_t reason_bytes)")
                functions[name] = Function(kind, reports, key in OPTIONAL, ADDED.get(key, 0))
        found[tag] = type(tag, (Structure,), {"_fields_": fields, "functions": functions})
    return {tag: kind for tag, kind in found.items() if tag not in _SCALARS}


def read_header(name: str) -> dict[str, Any]:
    """Return the class of each struct in a header of include/ferrule, by its tag."""
    folder = next(filter(os.path.exists, _PLACES), _PLACES[0])
    with open(os.path.join(folder, name), encoding="utf-8") as file:  # noqa: PTH118, PTH123
        return _structs(file.read())


STRUCTS = read_header("backend.h")
Option = STRUCTS["ferrule_option"]
Quantization = STRUCTS["ferrule_quantization"]
Tensor = STRUCTS["ferrule_tensor"]
Layer = STRUCTS["ferrule_layer"]
CoreMemory = STRUCTS["ferrule_core_memory"]
Target = STRUCTS["ferrule_target"]
PreCompiled = STRUCTS["ferrule_pre_compiled"]
Subgraph = STRUCTS["ferrule_subgraph"]
OptimizerAnswers = STRUCTS["ferrule_optimizer_answers"]
WorkloadInfo = STRUCTS["ferrule_workload_info"]
Allocator = STRUCTS["ferrule_allocator"]
MemoryRef = STRUCTS["ferrule_memory_ref"]
HandleFactory = STRUCTS["ferrule_handle_factory"]
CreationOptions = STRUCTS["ferrule_creation_options"]
Backend = STRUCTS["ferrule_backend"]
RecordEvent = STRUCTS["ferrule_profiling"].functions["take_events"].ctype._argtypes_[2]

TABLES: dict[str, Any] = {name: kind._type_ for name, kind in Backend._fields_[3:]}
"""The tables that struct ferrule_backend points to, by the name of the member."""


def calling(kind: Any, *methods: Callable[..., object]) -> list[Any]:  # noqa: ANN401 - a class made here
    """Return the callbacks of a struct, in order, that call methods."""
    return [row.ctype(method) for row, method in zip(kind.functions.values(), methods, strict=True)]


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
