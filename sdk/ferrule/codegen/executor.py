# SPDX-License-Identifier: Apache-2.0
"""Builds the executor of a model as a document: its structs, its default instance and `ferrule_<model>_run`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ferrule.backends.firmware import SCALARS, Blob, blob_variable
from ferrule.codegen.conversions import HEADER, conversions, declarations
from ferrule.codegen.device_code import DEADLINE, devices_struct, public_numbers
from ferrule.codegen.lowered import LoweredGraph
from ferrule.codegen.plan import REGION, STATE, memory_of
from ferrule.codegen.run_code import INFO, Members, RunCode, workspace_size
from ferrule.codegen.schedule import Schedule
from ferrule.codegen.state_code import StateCode
from ferrule.codegen.storage import ARENA_ALIGNMENT, StoragePlan
from ferrule.dom import (
    AddressOf,
    Aggregate,
    ArrayType,
    Assign,
    Binary,
    BinaryOperator,
    Block,
    Call,
    Cast,
    Const,
    Declare,
    Enumeration,
    Enumerator,
    Evaluate,
    Expression,
    Field,
    Function,
    Identifier,
    If,
    Include,
    IncludeKind,
    Index,
    Linkage,
    Module,
    Parameter,
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
)
from ferrule.graph import TensorInfo
from ferrule.graph.names import UniqueNames
from ferrule.memory import Region
from ferrule.rendering import one_line

_STATUS = Scalar.INT32


class ExecutorBuilder:
    """Builds the executor's module and the module of its weights from a lowered graph and its storage."""

    def __init__(self, storage: StoragePlan, schedule: Schedule) -> None:
        self.lowered = storage.lowered
        self.schedule = schedule
        self._arena = storage.lowered.plan.arena
        self._graph = storage.lowered.graph
        self._storage = storage
        self.prefix = f"ferrule_{self.lowered.symbol}"
        self.members = {
            "input": _members(self.lowered, self._graph.inputs),
            "output": _members(self.lowered, self._graph.outputs),
        }
        """The members of the structs of inputs and outputs: names and tensors."""
        self._state = StateCode(storage)
        self._code = RunCode(storage, schedule, self._state, self.members)

    # ---- names that other generated files use

    def constant(self, name: str) -> str:
        """Return the full name of a public enumerator of the model."""
        return f"{self.prefix}_{name}".upper()

    def default_address(self, kind: str, member: str) -> Expression:
        """Return the address of an input or output of the default instance; `kind` is "input" or "output"."""
        if self._arena or self._is_apart(kind, member):
            return Identifier(self._own_place(kind, member))
        offset = Identifier(self.constant(f"{kind}_{member}_offset"))
        arena = self._storage.region(dict(self.members[kind])[member].name)
        return AddressOf(Index(Identifier(self.default_arena(arena)), offset))

    def _is_fed(self, kind: str, member: str) -> bool:
        """Whether an input is given row by row, so that it has no place in the workspace."""
        return kind == "input" and dict(self.members[kind])[member].name == self.lowered.fed

    def _is_apart(self, kind: str, member: str) -> bool:
        """Whether a tensor of the caller has no place in the workspace: given by rows, or a state's old value."""
        return self._is_fed(kind, member) or self._storage.is_state(dict(self.members[kind])[member].name)

    def default_arena(self, arena: Region) -> str:
        """Return the name of the array of an arena of the default workspace."""
        return default_arena(self.lowered.symbol, self._arena, arena)

    def default_run(self, devices: Expression | None) -> Call:
        """Return the call that runs the default instance, with `info` as a local name."""
        given = [AddressOf(Identifier(f"{self.prefix}_default_{part}")) for part in ("inputs", "outputs")]
        memory = [] if self._arena else [AddressOf(Identifier(f"{self.prefix}_default_memory"))]
        on = [] if devices is None else [devices]
        run = f"{self.prefix}_run_shared" if self._arena else f"{self.prefix}_run"
        return call_of(run, *given, *memory, *on, INFO)

    def default_reset(self) -> Call | None:
        """Return the call that resets the state of the default instance; None for a model without state."""
        memory = AddressOf(Identifier(f"{self.prefix}_default_memory"))
        return call_of(f"{self.prefix}_reset", memory) if self._state else None

    @property
    def shared(self) -> bool:
        """Whether the default workspace is one that other models use, too."""
        return bool(self._arena)

    @property
    def workspace_bytes(self) -> Expression:
        """The size of all arenas, and of the state."""
        sizes: list[Expression] = [Identifier(self.constant(f"{each.name}_bytes")) for each in self._storage.blocks]
        total = sizes[0]
        for size in sizes[1:]:
            total = Binary(BinaryOperator.ADD, total, size)
        return total

    # ---- modules

    def module(self) -> Module:
        """Return the module of the executor."""
        headers = {header for item in self.lowered.layers for header in item.op.headers}
        found, functions = conversions(self.prefix, self.members), tuple(self._functions())
        return Module(
            name=self.prefix,
            doc=f"Executor of the model '{one_line(self._graph.name)}'.",
            interface_includes=(
                Include("ferrule/executor.h"),
                *((Include("ferrule/device.h"),) if self.lowered.devices else ()),
                *((Include(HEADER),) if found else ()),
                Include("stddef.h", IncludeKind.STANDARD),
                Include("stdint.h", IncludeKind.STANDARD),
            ),
            interface=(
                self._sizes(),
                *self._structs(),
                *self._defaults(),
                *functions,
                *declarations(found),
            ),
            implementation_includes=(
                *((Include("ferrule/held.h"),) if self.lowered.devices else ()),
                *((Include("ferrule/port.h"),) if self._code.maintains_cache else ()),
                Include(f"{self.prefix}_weights", IncludeKind.MODULE),
                *((Include(self._arena, IncludeKind.MODULE),) if self._arena else ()),
                Include("ferrule/section.h"),
                *((Include("ferrule/state.h"),) if self._state else ()),
                Include("ferrule/status.h"),
                *(Include(header) for header in sorted(headers)),
                Include("stddef.h", IncludeKind.STANDARD),
                Include("string.h", IncludeKind.STANDARD),
            ),
            implementation=(
                *self._code.device_numbers(),
                *self._code.offsets(),
                *(declaration for item in self.lowered.layers for declaration in item.op.declarations),
                *self._defaults(),
                *self._code.operators(),
                *functions,
            ),
        )

    def weights_module(self) -> Module:
        """Return the module of the constant arrays."""
        variables = [
            _external(blob_variable(blob), f"Of layer '{one_line(item.layer.name)}'.")
            for item in self.lowered.layers
            for blob in item.op.blobs
        ]
        variables += [_external(item, "") for item in self._constant_outputs()]
        variables += [
            _external(blob_variable(each), "Of the state, after a reset.") for each in self._state.initial_values()
        ]
        headers = ["stdint.h"]
        if any(isinstance(each.type, ArrayType) and each.type.element == Const(Scalar.BOOL) for each in variables):
            headers.append("stdbool.h")
        return Module(
            name=f"{self.prefix}_weights",
            doc=f"Constants of the model '{one_line(self._graph.name)}', as the kernels read them.",
            interface_includes=tuple(Include(path, IncludeKind.STANDARD) for path in sorted(headers)),
            interface=tuple(variables),
            implementation_includes=(Include("ferrule/section.h"),),
            implementation=tuple(variables),
        )

    # ---- the interface

    def _sizes(self) -> Enumeration:
        rows = [Enumerator(self.constant("operators"), len(self.lowered.layers), doc="Operators of one inference.")]
        for arena in self._storage.arenas:
            part = self._storage.plan.region(arena.name)
            what = f"Part of the workspace {self._part}" if arena.name != REGION else "Workspace"
            rows += [
                Enumerator(
                    self.constant(f"{arena.name}_bytes"),
                    part.peak_bytes,
                    doc=f"{what}: {part.activation_peak_bytes} B of activations ({part.activation_certificate}), "
                    f"{part.scratch_bytes} B more for kernel scratch.",
                ),
                Enumerator(
                    self.constant(f"{arena.name}_alignment"),
                    self._storage.alignment(arena),
                    doc="Alignment of the workspace, in bytes."
                    if arena.name == REGION
                    else "Alignment of that part, in bytes.",
                ),
            ]
        rows += self._state.sizes()
        for kind, members in self.members.items():
            for name, info in members:
                rows.append(
                    Enumerator(
                        self.constant(f"{kind}_{name}_elements"),
                        info.elements,
                        doc=f"Elements of {kind} '{one_line(info.name)}'.",
                    )
                )
                if self._is_apart(kind, name):
                    continue
                rows.append(
                    Enumerator(
                        self.constant(f"{kind}_{name}_offset"),
                        self._storage.offset(info.name),
                        doc=f"Offset for {kind} '{one_line(info.name)}' in the workspace, if it is placed there.",
                    )
                )
        return Enumeration(
            enumerators=tuple(rows), doc="Sizes and offsets of the model, in bytes unless stated otherwise."
        )

    def _structs(self) -> Iterator[Struct | Enumeration]:
        yield Struct(
            name=f"{self.prefix}_inputs",
            members=tuple(
                StructMember(name, Pointer(Const(SCALARS[info.dtype])), doc=self._described(info))
                for name, info in self.members["input"]
            ),
            doc="The inputs of one inference. Each lies in the caller's own memory, or in the workspace at its offset, "
            "where it may be overwritten after the last operator that reads it.",
        )
        yield Struct(
            name=f"{self.prefix}_outputs",
            members=tuple(
                StructMember(name, Pointer(SCALARS[info.dtype]), doc=self._described(info, output=True))
                for name, info in self.members["output"]
            ),
            doc="The outputs of one inference. Each goes to the caller's own memory or to the workspace at its offset.",
        )
        yield Struct(
            name=f"{self.prefix}_memory",
            members=tuple(member for block in self._storage.blocks for member in self._memory_members(block)),
            doc="The memory that one inference uses."
            + (" Its state lives from one run to the next." if self._state else ""),
        )
        if self.lowered.devices:
            yield public_numbers(self.lowered.symbol, self.lowered.devices)
            yield devices_struct(self.lowered.symbol, self.lowered.devices)

    def _memory_members(self, arena: Region) -> tuple[StructMember, StructMember]:
        is_state = arena is self._storage.state
        where = "" if is_state or arena.name == REGION else f"In memory {memory_of(arena)}, {self._purpose}: a"
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

    @property
    def _part(self) -> str:
        """What a part of the workspace in another memory is for."""
        return "that devices reach" if self.lowered.devices else "for scratch"

    @property
    def _purpose(self) -> str:
        return "which the devices reach" if self.lowered.devices else "for scratch"

    def _described(self, info: TensorInfo, *, output: bool = False) -> str:
        """Return the description of an input or output, with the rules of its place."""
        text, alignment = describe(info), self._code.alignment(info, output=output)
        if alignment > info.dtype.size_bytes:
            text += f"; at a multiple of {alignment} bytes, for a device"
        if not output and info.name == self.lowered.fed:
            text += f"; NULL if its rows were given to {self.prefix}_input_rows, otherwise in memory of its own"
        if output and self._code.has_own_lines(info.name):
            line = self._code.lines(info.name)
            text += f", and no other data up to the next multiple of {line}: the cache lines are the output's alone"
        return text

    def _own_place(self, kind: str, member: str) -> str:
        return f"{self.prefix}_default_{kind}_{member}"

    def _own_places(self) -> Iterator[Variable]:
        """Yield the memory of the default inputs and outputs of a model that shares its arena with others."""
        for kind, members in self.members.items():
            for name, info in members:
                if not self._arena and not self._is_apart(kind, name):
                    continue
                region, is_output = self._storage.region(info.name), kind == "output"
                line = self._code.lines(info.name) if is_output and self._code.has_own_lines(info.name) else 1
                yield Variable(
                    name=self._own_place(kind, name),
                    type=ArrayType(SCALARS[info.dtype], -(-info.size_bytes // line) * line // info.dtype.size_bytes),
                    linkage=Linkage.EXTERNAL,
                    section=None if self._is_fed(kind, name) else Section.WORKSPACE,
                    memory="" if region.name == REGION or self._is_apart(kind, name) else memory_of(region),
                    alignment=math.lcm(ARENA_ALIGNMENT, self._code.alignment(info, output=is_output)),
                    doc=f"Memory for the {kind} '{one_line(info.name)}', outside of the arena.",
                )

    def _defaults(self) -> Iterator[Variable]:
        yield from self._own_places()
        for arena in self._own_blocks():
            is_state = arena is self._storage.state
            yield Variable(
                name=self.default_arena(arena),
                type=ArrayType(Scalar.UINT8, max(self._storage.plan.region(arena.name).peak_bytes, 1)),
                linkage=Linkage.EXTERNAL,
                section=Section.WORKSPACE,
                memory="" if is_state or arena.name == REGION else memory_of(arena),
                alignment=self._storage.alignment(arena),
                doc=f"{'The state of the default instance' if is_state else 'A workspace'}; it takes no memory in a "
                "program that does not use it or the default instances below.",
            )
        for kind, members in self.members.items():
            yield Variable(
                name=f"{self.prefix}_default_{kind}s",
                type=Const(StructType(f"{self.prefix}_{kind}s")),
                value=Aggregate(
                    tuple(
                        Field(Cast(_pointer(info, const=kind == "input"), self.default_address(kind, name)), name)
                        for name, info in members
                    )
                ),
                linkage=Linkage.EXTERNAL,
                doc=f"The {kind}s in memory of their own."
                if self._arena or any(self._is_apart(kind, name) for name, _ in members)
                else f"The {kind}s at their places in the default workspace.",
            )
        yield Variable(
            name=f"{self.prefix}_default_memory",
            type=Const(StructType(f"{self.prefix}_memory")),
            value=Aggregate(
                tuple(
                    field
                    for arena in self._storage.blocks
                    for field in (
                        Field(Identifier(self.default_arena(arena)), arena.name),
                        Field(Identifier(self.constant(f"{arena.name}_bytes")), workspace_size(arena.name)),
                    )
                )
            ),
            linkage=Linkage.EXTERNAL,
            doc="The default workspace, which other models use, too: for a run between "
            f"{self._arena}_lock() and {self._arena}_unlock()."
            if self._arena
            else "The default workspace.",
        )

    def _own_blocks(self) -> tuple[Region, ...]:
        """Return the regions of the default memory that no other model uses."""
        return tuple(each for each in self._storage.blocks if not self._arena or each is self._storage.state)

    def _functions(self) -> Iterator[Function]:
        """Yield the functions that the model's user calls."""
        yield self._run(until=False)
        if self.lowered.devices:
            yield self._run(until=True)
        yield from self._state.functions(self._code.reset_checks())
        yield from self._input_rows()
        yield from self._run_shared()

    def _run(self, *, until: bool) -> Function:
        parameters = self._code.parameters()
        if until:
            deadline = Parameter(DEADLINE.name, Scalar.UINT32)
            return Function(
                name=f"{self.prefix}_run_until",
                returns=_STATUS,
                parameters=(*parameters, deadline),
                body=self._code.body(until=True),
                linkage=Linkage.EXTERNAL,
                doc=f"Like {self.prefix}_run, until `deadline_us`: a time of ferrule_platform_now_us(), at most\n"
                "2^31 - 1 microseconds from now.\n"
                "@retval FERRULE_ERR_TIMEOUT the time has come before an operator or while a device was awaited",
            )
        return Function(
            name=f"{self.prefix}_run",
            returns=_STATUS,
            parameters=parameters,
            body=self._code.body(),
            linkage=Linkage.EXTERNAL,
            doc="Run one inference in the caller's thread; several may run at once, each in its own memory.\n"
            "`info` may be NULL.\n@retval FERRULE_OK\n"
            "@retval FERRULE_ERR_ARGUMENT a pointer other than `info` is null, a tensor is not aligned for its type"
            f"{self._device_rule()},{self._handle_rule()} or the workspace is misaligned or too small; "
            "nothing was run" + self._state.rule() + self._errors(),
        )

    def _run_shared(self) -> Iterator[Function]:
        if not self._arena:
            return
        status, ok = Identifier("status"), Identifier("FERRULE_OK")
        given = [Identifier(each.name) for each in self._code.parameters()]
        memory = AddressOf(Identifier(f"{self.prefix}_default_memory"))
        run = call_of(f"{self.prefix}_run", *(memory if e.name == "memory" else e for e in given))
        unlock = Evaluate(call_of(f"{self._arena}_unlock"))
        body = (
            Declare(status.name, _STATUS, call_of(f"{self._arena}_lock")),
            If(Binary(BinaryOperator.EQUAL, status, ok), Block((Assign(status, run), unlock))),
            Return(status),
        )
        yield Function(
            name=f"{self.prefix}_run_shared",
            returns=_STATUS,
            parameters=tuple(each for each in self._code.parameters() if each.name != "memory"),
            body=Block(body),
            linkage=Linkage.EXTERNAL,
            doc=f"Lock the shared arena, run one inference in it like {self.prefix}_run, and unlock it. Inputs and "
            "outputs must lie elsewhere.\n@retval FERRULE_ERR_TIMEOUT another thread has had the arena for too long\n"
            "@retval FERRULE_ERR_BUSY the arena is in use, and waiting would not help\n"
            "@return or what the run, or the lock, returns; `info` is written by a run only",
        )

    def _input_rows(self) -> Iterator[Function]:
        if not self.lowered.fed:
            return
        ((name, info),) = self.members["input"]
        height, row_bytes = info.shape[1], info.size_bytes // info.shape[1]
        yield Function(
            name=f"{self.prefix}_input_rows",
            returns=_STATUS,
            parameters=self._code.feed_parameters(),
            body=self._code.feed_body(),
            linkage=Linkage.EXTERNAL,
            doc=f"Take `count` rows of the input `{name}` as they arrive, from row `first` on, of {height} rows with "
            f"{row_bytes} B each, and compute what they allow. Row 0 begins an inference in `memory`, even if another "
            f"one has not ended; after row {height - 1}, {self.prefix}_run with a null pointer for `{name}` ends it. "
            "Until then, `memory` holds what is still needed. In the caller's thread.\n"
            "@retval FERRULE_OK the rows need not be kept\n"
            "@retval FERRULE_ERR_ARGUMENT a pointer is null, the input has fewer rows, or the workspace is misaligned "
            "or too small; nothing was computed\n"
            "@retval FERRULE_ERR_STATE row `first` is not the next one: rows were lost; begin again with row 0",
        )

    def _handle_rule(self) -> str:
        return " two members of `devices` are the same," if len(self.lowered.devices) > 1 else ""

    def _device_rule(self) -> str:
        members = ((self._graph.inputs, False), (self._graph.outputs, True))
        stricter = any(
            self._code.alignment(info, output=output) > info.dtype.size_bytes
            for infos, output in members
            for info in infos
        )
        return " or its device" if stricter else ""

    def _errors(self) -> str:
        if self.lowered.devices:
            return (
                "\n@retval FERRULE_ERR_CANCELLED ferrule_run_cancel() was called with `info`"
                "\n@return or the first error of a device, or of `info->stop_at`; all devices are closed and "
                "deactivated, as after a successful run"
            )
        if self.lowered.fed:
            return "\n@retval FERRULE_ERR_STATE the input is a null pointer, and rows of it are missing"
        if any(item.op.status is not None for item in self.lowered.layers):
            return "\n@return or the error of the operator that failed"
        return ""

    def _constant_outputs(self) -> Iterator[Variable]:
        for info in dict.fromkeys(self._graph.results):
            data = self._graph.tensor(info.name).data
            if data is not None:
                yield blob_variable(Blob(name=self._code.constant_output(info.name), data=data))


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


def _members(lowered: LoweredGraph, infos: Sequence[TensorInfo]) -> Members:
    names = UniqueNames()
    return tuple((names.take(lowered.variables.get(info.name, "constant")), info) for info in infos)


def _external(variable: Variable, doc: str) -> Variable:
    return Variable(
        name=variable.name,
        type=variable.type,
        value=variable.value,
        linkage=Linkage.EXTERNAL,
        section=Section.WEIGHTS,
        alignment=variable.alignment,
        doc=doc,
    )


def _pointer(info: TensorInfo, *, const: bool) -> Type:
    return Pointer(Const(SCALARS[info.dtype]) if const else SCALARS[info.dtype])
