# SPDX-License-Identifier: Apache-2.0
"""Runs the C to which a layer is lowered, on the host, without generating a source file.

The lowered statements are calls of kernels with parameter tables. The kernels are compiled once each, with the
undefined behaviour sanitizer, and called through cffi with the tables that the lowering describes.

With FERRULE_TEST_SANITIZER=address the address sanitizer is used instead, and each tensor has separate memory of
exactly its size. Python must then run with the environment of `address_sanitizer_environment`, which preloads libasan.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from needs import require_cc, require_module, require_sanitizers

from ferrule.backends.contribution import Contribution, merged
from ferrule.backends.cpu_acc.backend import CpuAccTarget
from ferrule.backends.cpu_acc.host.calls import evaluate
from ferrule.backends.cpu_acc.host.library import declarations
from ferrule.backends.device import BackendId
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.backends.target import CoreFeatures, Face, Goal, default_target
from ferrule.dom import (
    ArrayType,
    Call,
    Const,
    Evaluate,
    Identifier,
    StructType,
    Variable,
)
from ferrule.graph import Array, Graph
from ferrule.memory.request import Overlap

WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
GUARD_BYTES = 64
_M4 = CoreFeatures(name="cortex-m4", dsp=True)
_GUARD = 0xA5


def address_sanitizer_environment() -> dict[str, str]:
    """Return the environment in which Python runs these kernels under the address sanitizer."""
    return require_sanitizers("address") | {"FERRULE_TEST_SANITIZER": "address"}


def lowering_of(graph: Graph, core: CoreFeatures | None = None, goal: Goal = Goal.BALANCED) -> LoweringContext:
    """Return what CpuAcc gets to lower the graph's only layer for a core, by default a Cortex-M4."""
    (layer,) = graph.layers
    names = [tensor.info.name for tensor in graph.tensors if not tensor.is_constant]
    return LoweringContext(
        graph=graph,
        layer=layer,
        target=replace(default_target(BackendId("CpuAcc"), Face.FIRMWARE), core=core or _M4, goal=goal),
        prefix="case",
        pointers={name: Identifier(f"tensor_{name}") for name in names},
    )


def lower(graph: Graph, core: CoreFeatures | None = None, goal: Goal = Goal.BALANCED) -> LoweredOp:
    """Return the lowered form of the graph's only layer."""
    return CpuAccTarget().lower(lowering_of(graph, core, goal))


def run_lowered(
    graph: Graph, inputs: list[Array], core: CoreFeatures | None = None, op: LoweredOp | None = None
) -> list[Array]:
    """Return the outputs of the only layer's C, which may not write outside its outputs nor change its inputs.

    `op` is the lowered layer; by default what CpuAcc makes of it for the core.
    """
    op = lower(graph, core) if op is None else op
    if op.view_of is not None:
        data = inputs[[info.name for info in graph.inputs].index(op.view_of)]
        return [data.reshape(graph.outputs[0].shape)]
    call = _Calls(op)
    given = {info.name: np.ascontiguousarray(data) for info, data in zip(graph.inputs, inputs, strict=True)}
    for name, data in given.items():
        call.add(f"tensor_{name}", data)
    for info in graph.outputs:
        call.add(f"tensor_{info.name}", np.full(info.shape, _GUARD & 0x7F, np.uint8).astype(info.dtype.numpy))
    call.run()
    for name, data in given.items():
        assert np.array_equal(call.array(f"tensor_{name}", data), data, equal_nan=data.dtype.kind == "f")
    return [call.array(f"tensor_{info.name}", np.empty(info.shape, info.dtype.numpy)) for info in graph.outputs]


def run_overlapping(
    graph: Graph, inputs: list[Array], overlap: Overlap, shift_bytes: int, op: LoweredOp | None = None
) -> Array:
    """Return the overlap's output of the C if the input that the overlap names starts `shift_bytes` above it.

    The number may be negative; nothing may be written outside of the output's bytes. By default the C is that of
    `lower`.
    """
    op = op or lower(graph)
    call = _Calls(op)
    output = graph.info(overlap.output)
    for info in graph.outputs:
        if info.name != overlap.output:
            call.add(f"tensor_{info.name}", np.zeros(info.shape, info.dtype.numpy))
    start, other = max(-shift_bytes, 0), max(shift_bytes, 0)
    whole = np.empty(0, np.uint8)
    for info, data in zip(graph.inputs, inputs, strict=True):
        if info.name != overlap.input:
            call.add(f"tensor_{info.name}", data)
            continue
        whole = np.full(max(other + data.nbytes, start + output.size_bytes), _GUARD, np.uint8)
        whole[other : other + data.nbytes] = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        call.add("both", whole)
        call.place(f"tensor_{info.name}", "both", other)
    call.place(f"tensor_{overlap.output}", "both", start)
    call.run()
    content = call.array("both", np.empty(0, np.uint8)).copy()
    written = content[start : start + output.size_bytes].tobytes()
    whole[start : start + output.size_bytes] = content[start : start + output.size_bytes]
    assert np.array_equal(content, whole), f"{op.kernel} writes outside of its output"
    return np.frombuffer(written, output.dtype.numpy).reshape(output.shape)


class _Calls:
    """The memory and the symbols of one lowered operator."""

    def __init__(self, op: LoweredOp) -> None:
        self._op = op
        self._ffi, self._library = _library(merged(op.contributions), op.headers)
        self._symbols: dict[str, Any] = _Symbols(self._library)
        self._buffers: dict[str, Any] = {}
        self._keep: list[Any] = []
        for blob in op.blobs:
            self.add(blob.name, np.ascontiguousarray(blob.data))
        if op.scratch_bytes:
            self.add("scratch", np.zeros(op.scratch_bytes, np.uint8))
        for declaration in op.declarations:
            assert isinstance(declaration, Variable)
            type_, form = declaration.type, " *"
            if isinstance(type_, ArrayType):
                type_, form = type_.element, "[]"
            assert isinstance(type_, Const)
            assert isinstance(type_.type, StructType)
            assert declaration.value is not None
            value = evaluate(declaration.value, self._symbols, self._ffi.NULL)
            self._symbols[declaration.name] = self._ffi.new(f"struct {type_.type.name}{form}", value)

    def add(self, name: str, data: Array) -> None:
        """Allocate memory for a symbol, between guards unless the address sanitizer provides them."""
        size, guards = data.nbytes, 0 if _address_sanitizer() else GUARD_BYTES
        memory = self._ffi.gc(self._library.malloc(size + 2 * guards), self._library.free)
        view = self._ffi.buffer(memory, size + 2 * guards)
        view[:] = bytes([_GUARD]) * len(view)
        view[guards : guards + size] = data.tobytes()
        self._buffers[name] = view, guards
        self._keep.append(memory)
        self._symbols[name] = self._ffi.cast("void *", self._ffi.cast("char *", memory) + guards)

    def place(self, name: str, base: str, shift_bytes: int) -> None:
        """Give a symbol an address `shift_bytes` into the memory of another symbol."""
        self._symbols[name] = self._ffi.cast("void *", self._ffi.cast("char *", self._symbols[base]) + shift_bytes)

    def array(self, name: str, like: Array) -> Array:
        """Return the memory of a symbol as an array, after checking its guards."""
        view, guards = self._buffers[name]
        content = bytes(view)
        end = len(content) - guards
        assert set(content[:guards]) <= {_GUARD}, f"{name}: written before its start"
        assert set(content[end:]) <= {_GUARD}, f"{name}: written past its end"
        data = np.frombuffer(content[guards:end], like.dtype)
        return data.reshape(like.shape) if data.size == like.size else data

    def run(self) -> None:
        """Make the calls in order."""
        for statement in self._op.statements:
            assert isinstance(statement, Evaluate)
            call = statement.expression
            assert isinstance(call, Call)
            assert isinstance(call.function, Identifier)
            function = getattr(self._library, call.function.name)
            function(*(evaluate(argument, self._symbols, self._ffi.NULL) for argument in call.arguments))


class _Symbols(dict[str, Any]):
    """Pointers by symbol; the functions of a library are among them."""

    def __init__(self, library: Any) -> None:  # noqa: ANN401 - cffi's is untyped
        super().__init__()
        self._library = library

    def __missing__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._library, name)


def _address_sanitizer() -> bool:
    return os.environ.get("FERRULE_TEST_SANITIZER") == "address"


@cache
def _library(contributions: tuple[Contribution, ...], headers: tuple[str, ...]) -> tuple[Any, Any]:
    """Compile the contributions into a library; return the cffi object with its declarations, and the library."""
    require_module("cffi", "pip install ferrule[run]")
    compiler = require_cc()
    from cffi import FFI

    sanitizer = (  # only the address sanitizer needs -g to name lines
        ("-fsanitize=address", "-g") if _address_sanitizer() else ("-fsanitize=undefined", "-fno-sanitize-recover=all")
    )
    folder = Path(tempfile.mkdtemp(prefix="ferrule_kernels_"))
    target = folder / "kernels.so"
    includes = [path for part in contributions for path in part.include_paths]
    sources = [str(path) for part in contributions for path in part.source_paths]
    command = [*compiler, "-std=c11", "-O1", "-ffp-contract=off", "-fPIC", "-shared", *WARNINGS, *sanitizer]
    subprocess.run([*command, *(f"-I{path}" for path in includes), *sources, "-o", str(target)], check=True)
    ffi = FFI()
    ffi.cdef(declarations(headers, includes))
    ffi.cdef("void *malloc(size_t size); void free(void *memory);")
    return ffi, ffi.dlopen(str(target))
