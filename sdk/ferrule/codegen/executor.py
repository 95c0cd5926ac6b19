# SPDX-License-Identifier: Apache-2.0
"""Builds the executor of a model as a document: its structs, its default instance and `ferrule_<model>_run`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial, reduce

from ferrule.backends.firmware import SCALARS, Blob, blob_variable
from ferrule.codegen.conversions import HEADER, conversions
from ferrule.codegen.device_code import STATUS, devices_struct, if_ok, public_numbers
from ferrule.codegen.executor_part import workspace_size
from ferrule.codegen.plan import REGION, STATE, memory_of
from ferrule.codegen.run_code import INFO, RunCode
from ferrule.codegen.storage import ARENA_ALIGNMENT
from ferrule.dom import (
    AddressOf,
    ArrayType,
    Assign,
    Binary,
    BinaryOperator,
    Call,
    Cast,
    Const,
    Declare,
    Enumeration,
    Enumerator,
    Evaluate,
    Expression,
    Function,
    Identifier,
    IncludeKind,
    Index,
    Linkage,
    Module,
    Pointer,
    Return,
    Scalar,
    Section,
    Struct,
    StructMember,
    StructType,
    Type,
    Variable,
    call_of,
    designated,
    includes,
)
from ferrule.errors import some_of
from ferrule.graph import TensorInfo
from ferrule.memory import Region
from ferrule.rendering import one_line

_NAMED = 3
"""The layers that the comment of a constant names."""
_DOCS = {
    "input": "The inputs of one inference. Each lies in the caller's own memory, or in the workspace at its offset, "
    "where it may be overwritten after the last operator that reads it.",
    "output": "The outputs of one inference. Each goes to the caller's own memory or to the workspace at its offset.",
}


class ExecutorBuilder(RunCode):
    """Builds the executor's module and the module of its weights from a lowered graph and its storage."""

    # ---- names that other generated files use

    def default_address(self, kind: str, member: str, info: TensorInfo) -> Expression:
        """Return the address of an input or output of the default instance; `kind` is "input" or "output"."""
        if self.arena or self._has_own_place(info):
            return Identifier(self._own_place(kind, member))
        offset = Identifier(self.constant(f"{kind}_{member}_offset"))
        return AddressOf(Index(Identifier(self.default_arena(self.storage.region(info.name))), offset))

    def _has_own_place(self, info: TensorInfo) -> bool:
        """Whether a tensor of the caller has no place in the workspace: given by rows, or a state's old value."""
        return info.name == self.lowered.fed or self.storage.is_state(info.name)

    def default_arena(self, arena: Region) -> str:
        """Return the name of the array of an arena of the default workspace."""
        return default_arena(self.lowered.symbol, self.arena, arena)

    def default_run(self, *devices: Expression) -> Call:
        """Return the call that runs the default instance, with `info` as a local name."""
        parts = ("inputs", "outputs", *(() if self.arena else ("memory",)))
        given = (AddressOf(Identifier(f"{self.prefix}_default_{part}")) for part in parts)
        return call_of(f"{self.prefix}_run{'_shared' if self.arena else ''}", *given, *devices, INFO)

    def default_reset(self) -> Call | None:
        """Return the call that resets the state of the default instance; None for a model without state."""
        memory = AddressOf(Identifier(f"{self.prefix}_default_memory"))
        return call_of(f"{self.prefix}_reset", memory) if self.has_state else None

    @property
    def workspace_bytes(self) -> Expression:
        """The size of all arenas, and of the state."""
        sizes: Iterator[Expression] = (Identifier(self.constant(f"{each.name}_bytes")) for each in self.storage.blocks)
        return reduce(partial(Binary, BinaryOperator.ADD), sizes)

    # ---- modules

    def module(self) -> Module:
        """Return the module of the executor."""
        found = tuple(conversions(self.prefix, self.ends))
        functions = (*self.run_functions(), *self.reset_function(), *self.input_rows(), *self._run_shared())
        return Module(
            name=self.prefix,
            doc=f"Executor of the model '{one_line(self.graph.name)}'.",
            interface_includes=(
                *includes(
                    "ferrule/executor.h",
                    "ferrule/device.h" if self.lowered.devices else "",
                    HEADER if found else "",
                ),
                *includes("stddef.h", "stdint.h", kind=IncludeKind.STANDARD),
            ),
            interface=(
                self._sizes(),
                *self._structs(),
                *self._defaults(),
                *functions,
                *found,
            ),
            implementation_includes=(
                *includes(
                    "ferrule/held.h" if self.lowered.devices else "",
                    "ferrule/port.h" if self.maintains_cache else "",
                    "ferrule/section.h",
                    "ferrule/state.h" if self.has_state else "",
                    "ferrule/status.h",
                    *(header for item in self.lowered.layers for header in item.op.headers),
                ),
                *includes(f"{self.prefix}_weights", self.arena, kind=IncludeKind.MODULE),
                *includes("stddef.h", "string.h", kind=IncludeKind.STANDARD),
            ),
            implementation=(
                *self.device_numbers(),
                *self.offsets(),
                *(declaration for item in self.lowered.layers for declaration in item.op.declarations),
                *self._defaults(),
                *self.operators(),
                *functions,
            ),
        )

    def weights_module(self) -> Module:
        """Return the module of the constant arrays."""
        readers: dict[Blob, list[str]] = {}
        for item in self.lowered.layers:
            for blob in item.op.blobs:
                readers.setdefault(blob, []).append(f"'{one_line(item.layer.name)}'")
        blobs = [
            *((blob, f"Of layer{'s' * (len(names) > 1)} {some_of(names, _NAMED)}.") for blob, names in readers.items()),
            *((blob, "") for blob in self._constant_outputs()),
            *((blob, "Of the state, after a reset.") for blob in self.initial_values()),
        ]
        variables = tuple(
            replace(blob_variable(blob), linkage=Linkage.EXTERNAL, section=Section.WEIGHTS, doc=doc)
            for blob, doc in blobs
        )
        with_bool = any(blob.data.dtype == bool for blob, _ in blobs)
        return Module(
            name=f"{self.prefix}_weights",
            doc=f"Constants of the model '{one_line(self.graph.name)}', as the kernels read them.",
            interface_includes=includes("stdint.h", "stdbool.h" if with_bool else "", kind=IncludeKind.STANDARD),
            interface=variables,
            implementation_includes=includes("ferrule/section.h"),
            implementation=variables,
        )

    # ---- the interface

    def _sizes(self) -> Enumeration:
        rows = [Enumerator(self.constant("operators"), len(self.lowered.layers), doc="Operators of one inference.")]
        for arena in self.storage.arenas:
            part = self.storage.plan.region(arena.name)
            purpose = "that devices reach" if self.lowered.devices else "for scratch"
            what = f"Part of the workspace {purpose}" if arena.name != REGION else "Workspace"
            rows += [
                Enumerator(
                    self.constant(f"{arena.name}_bytes"),
                    part.peak_bytes,
                    doc=f"{what}: {part.activation_peak_bytes} B of activations ({part.activation_certificate}), "
                    f"{part.scratch_bytes} B more for kernel scratch.",
                ),
                Enumerator(
                    self.constant(f"{arena.name}_alignment"),
                    self.storage.alignment(arena),
                    doc="Alignment of the workspace, in bytes."
                    if arena.name == REGION
                    else "Alignment of that part, in bytes.",
                ),
            ]
        rows += self.state_sizes()
        for kind, name, info in self.ends:
            what = f"{kind} '{one_line(info.name)}'"
            rows.append(Enumerator(self.constant(f"{kind}_{name}_elements"), info.elements, doc=f"Elements of {what}."))
            if not self._has_own_place(info):
                rows.append(
                    Enumerator(
                        self.constant(f"{kind}_{name}_offset"),
                        self.storage.offset(info.name),
                        doc=f"Offset for {what} in the workspace, if it is placed there.",
                    )
                )
        return Enumeration(tuple(rows), doc="Sizes and offsets of the model, in bytes unless stated otherwise.")

    def _structs(self) -> Iterator[Struct | Enumeration]:
        for kind, members in self.members.items():
            yield Struct(
                f"{self.prefix}_{kind}s",
                tuple(
                    StructMember(name, _pointer(kind, info), doc=self._described(kind, info)) for name, info in members
                ),
                doc=_DOCS[kind],
            )
        yield Struct(
            f"{self.prefix}_memory",
            tuple(member for block in self.storage.blocks for member in self._memory_members(block)),
            doc="The memory that one inference uses."
            + (" Its state lives from one run to the next." if self.has_state else ""),
        )
        if self.lowered.devices:
            yield public_numbers(self.lowered.symbol, self.lowered.devices)
            yield devices_struct(self.lowered.symbol, self.lowered.devices)

    def _memory_members(self, arena: Region) -> tuple[StructMember, StructMember]:
        is_state = arena is self.storage.state
        purpose = "which the devices reach" if self.lowered.devices else "for scratch"
        where = f"In memory {memory_of(arena)}, {purpose}: a" if memory_of(arena) else ""
        use = f"only {self.prefix}_run and _reset write it" if is_state else "no other running inference may use it"
        return (
            StructMember(
                arena.name,
                Pointer(Scalar.UINT8),
                doc=f"{where or 'A'} multiple of {self.constant(f'{arena.name}_alignment')}; {use}.",
            ),
            StructMember(
                workspace_size(arena.name),
                Scalar.SIZE,
                doc=f"Size of `{arena.name}`, at least {self.constant(f'{arena.name}_bytes')}.",
            ),
        )

    def _described(self, kind: str, info: TensorInfo) -> str:
        """Return the description of an input or output, with the rules of its place."""
        text, alignment = describe(info), self.alignment(kind, info)
        if alignment > info.dtype.size_bytes:
            text += f"; at a multiple of {alignment} bytes, for a device"
        if info.name == self.lowered.fed:
            text += f"; NULL if its rows were given to {self.prefix}_input_rows, otherwise in memory of its own"
        line = self.own_line(kind, info.name)
        if line > 1:
            text += f", and no other data up to the next multiple of {line}: the cache lines are the output's alone"
        return text

    def _own_place(self, kind: str, member: str) -> str:
        return f"{self.prefix}_default_{kind}_{member}"

    def _own_places(self) -> Iterator[Variable]:
        """Yield the memory of the default inputs and outputs of a model that shares its arena with others."""
        for kind, name, info in self.ends:
            if not self.arena and not self._has_own_place(info):
                continue
            line = self.own_line(kind, info.name)
            yield Variable(
                self._own_place(kind, name),
                ArrayType(SCALARS[info.dtype], -(-info.size_bytes // line) * line // info.dtype.size_bytes),
                linkage=Linkage.EXTERNAL,
                section=None if info.name == self.lowered.fed else Section.WORKSPACE,
                memory=memory_of(self.storage.region(info.name)),
                alignment=math.lcm(ARENA_ALIGNMENT, self.alignment(kind, info)),
                doc=f"Memory for the {kind} '{one_line(info.name)}', outside of the arena.",
            )

    def _defaults(self) -> Iterator[Variable]:
        yield from self._own_places()
        for arena in self.storage.blocks:
            is_state = arena is self.storage.state
            if self.arena and not is_state:
                continue
            yield Variable(
                self.default_arena(arena),
                ArrayType(Scalar.UINT8, max(self.storage.plan.region(arena.name).peak_bytes, 1)),
                linkage=Linkage.EXTERNAL,
                section=Section.WORKSPACE,
                memory=memory_of(arena),
                alignment=self.storage.alignment(arena),
                doc=f"{'The state of the default instance' if is_state else 'A workspace'}; it takes no memory in a "
                "program that does not use it or the default instances below.",
            )
        for kind, members in self.members.items():
            yield Variable(
                f"{self.prefix}_default_{kind}s",
                Const(StructType(f"{self.prefix}_{kind}s")),
                value=designated(
                    {name: Cast(_pointer(kind, info), self.default_address(kind, name, info)) for name, info in members}
                ),
                linkage=Linkage.EXTERNAL,
                doc=f"The {kind}s in memory of their own."
                if self.arena or any(self._has_own_place(info) for _, info in members)
                else f"The {kind}s at their places in the default workspace.",
            )
        yield Variable(
            f"{self.prefix}_default_memory",
            Const(StructType(f"{self.prefix}_memory")),
            value=designated(
                {
                    name: Identifier(value)
                    for arena in self.storage.blocks
                    for name, value in (
                        (arena.name, self.default_arena(arena)),
                        (workspace_size(arena.name), self.constant(f"{arena.name}_bytes")),
                    )
                }
            ),
            linkage=Linkage.EXTERNAL,
            doc="The default workspace, which other models use, too: for a run between "
            f"{self.arena}_lock() and {self.arena}_unlock()."
            if self.arena
            else "The default workspace.",
        )

    def _run_shared(self) -> Iterator[Function]:
        if not self.arena:
            return
        given = [Identifier(each.name) for each in self.parameters()]
        memory = AddressOf(Identifier(f"{self.prefix}_default_memory"))
        run = call_of(f"{self.prefix}_run", *(memory if e.name == "memory" else e for e in given))
        unlock = Evaluate(call_of(f"{self.arena}_unlock"))
        yield self.function(
            "run_shared",
            (each for each in self.parameters() if each.name != "memory"),
            (
                Declare(STATUS.name, Scalar.INT32, call_of(f"{self.arena}_lock")),
                if_ok(Assign(STATUS, run), unlock),
                Return(STATUS),
            ),
            f"Lock the shared arena, run one inference in it like {self.prefix}_run, and unlock it. Inputs and "
            "outputs must lie elsewhere.\n@retval FERRULE_ERR_TIMEOUT another thread has had the arena for too long\n"
            "@retval FERRULE_ERR_BUSY the arena is in use, and waiting would not help\n"
            "@return or what the run, or the lock, returns; `info` is written by a run only",
        )

    def _constant_outputs(self) -> Iterator[Blob]:
        for info in dict.fromkeys(self.graph.results):
            data = self.graph.tensor(info.name).data
            if data is not None:
                yield Blob(name=self.constant_output(info.name), data=data)


def default_arena(symbol: str, shared: str, arena: Region) -> str:
    """Return the name of the array of a model's default arena: one that it shares with others, or its own.

    The state is never shared.
    """
    return f"{shared}_{arena.name}" if shared and arena.name != STATE else f"ferrule_{symbol}_default_{arena.name}"


def describe(info: TensorInfo) -> str:
    """Return a tensor's name, shape and quantisation as text for a comment."""
    shape = "x".join(map(str, info.shape)) or "scalar"
    text = f"'{one_line(info.name)}': {shape} {info.dtype}"
    if info.quantization is not None and not info.quantization.per_channel:
        sign = "-" if info.zero_point >= 0 else "+"
        text += f", real = {info.scale:.9g} * (stored {sign} {abs(info.zero_point)})"
    return text


def _pointer(kind: str, info: TensorInfo) -> Type:
    return Pointer(Const(SCALARS[info.dtype]) if kind == "input" else SCALARS[info.dtype])
