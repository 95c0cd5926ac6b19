# SPDX-License-Identifier: Apache-2.0
"""The executor of a model as a document: its structs, its default instance and `ferrule_<model>_run`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ferrule.backends.firmware import SCALARS, Blob, blob_variable
from ferrule.codegen.lowered import ARENA, LoweredGraph, LoweredLayer, scratch_offset
from ferrule.codegen.storage import ARENA_ALIGNMENT, StoragePlan
from ferrule.dom import (
    AddressOf,
    Aggregate,
    ArrayType,
    Binary,
    BinaryOperator,
    Block,
    Call,
    Cast,
    Comment,
    Const,
    Declare,
    Dereference,
    Enumeration,
    Enumerator,
    Evaluate,
    Expression,
    Field,
    Function,
    Identifier,
    If,
    Include,
    Index,
    Integer,
    Linkage,
    Member,
    Module,
    Null,
    Parameter,
    Pointer,
    Return,
    Scalar,
    Section,
    Statement,
    Struct,
    StructMember,
    StructType,
    Type,
    Variable,
)
from ferrule.graph import TensorInfo
from ferrule.memory import scratch_name

REGION = "sram"
_STATUS = Scalar.INT32


class ExecutorBuilder:
    """Builds the executor's module and the module of its weights from a lowered graph and its storage."""

    def __init__(self, lowered: LoweredGraph, storage: StoragePlan) -> None:
        self._lowered = lowered
        self._graph = lowered.graph
        self._storage = storage
        self.prefix = f"ferrule_{lowered.symbol}"
        self._inputs = _member_names(lowered, self._graph.inputs)
        self._outputs = _member_names(lowered, self._graph.outputs)

    # ---- names that other generated files use

    def constant(self, name: str) -> str:
        """Return the name of a public enumerator of the model."""
        return f"{self.prefix}_{name}".upper()

    @property
    def input_members(self) -> tuple[tuple[str, TensorInfo], ...]:
        """The members of the inputs struct."""
        return tuple(zip(self._inputs, self._graph.inputs, strict=True))

    @property
    def output_members(self) -> tuple[tuple[str, TensorInfo], ...]:
        """The members of the outputs struct."""
        return tuple(zip(self._outputs, self._graph.outputs, strict=True))

    def default_address(self, kind: str, member: str) -> Expression:
        """Return the address in the default arena of an input ("input") or output ("output")."""
        offset = Identifier(self.constant(f"{kind}_{member}_offset"))
        return AddressOf(Index(Identifier(f"{self.prefix}_default_{REGION}"), offset))

    # ---- modules

    def module(self) -> Module:
        """Return the executor."""
        headers = {header for item in self._lowered.layers for header in item.op.headers}
        return Module(
            name=self.prefix,
            doc=f"Executor of the model '{one_line(self._graph.name)}'.",
            interface_includes=(Include(path="ferrule/executor.h"), Include(path="stdint.h", system=True)),
            interface=(self._sizes(), *self._structs(), *self._defaults(), self._run(declaration=True)),
            implementation_includes=(
                Include(path=f"{self.prefix}_weights.h"),
                Include(path="ferrule/section.h"),
                Include(path="ferrule/status.h"),
                *(Include(path=header) for header in sorted(headers)),
                Include(path="stddef.h", system=True),
                Include(path="string.h", system=True),
            ),
            implementation=(
                self._offsets(),
                *(declaration for item in self._lowered.layers for declaration in item.op.declarations),
                *self._defaults(),
                self._run(declaration=False),
            ),
        )

    def weights_module(self) -> Module:
        """Return the constant arrays."""
        variables = [
            _external(blob_variable(blob), f"Of layer '{one_line(item.layer.name)}'.")
            for item in self._lowered.layers
            for blob in item.op.blobs
        ]
        variables += [_external(item, "") for item in self._constant_outputs()]
        return Module(
            name=f"{self.prefix}_weights",
            doc=f"Constants of the model '{one_line(self._graph.name)}', as the kernels read them.",
            interface_includes=(Include(path="stdint.h", system=True),),
            interface=tuple(variables),
            implementation_includes=(Include(path="ferrule/section.h"),),
            implementation=tuple(variables),
        )

    # ---- the interface

    def _sizes(self) -> Enumeration:
        region = self._storage.plan.region(REGION)
        rows = [
            Enumerator(
                name=self.constant("operators"), value=len(self._lowered.layers), doc="Operators of one inference."
            ),
            Enumerator(
                name=self.constant(f"{REGION}_bytes"),
                value=region.peak_bytes,
                doc=f"Workspace: {region.activation_peak_bytes} B of activations ({region.activation_certificate}), "
                f"{region.scratch_bytes} B more for kernel scratch.",
            ),
            Enumerator(name=self.constant(f"{REGION}_alignment"), value=ARENA_ALIGNMENT, doc="Of its start, in bytes."),
        ]
        for kind, members in (("input", self.input_members), ("output", self.output_members)):
            for name, info in members:
                rows.append(
                    Enumerator(
                        name=self.constant(f"{kind}_{name}_offset"),
                        value=self._offset(info.name),
                        doc=f"Where {kind} '{one_line(info.name)}' may lie in the workspace.",
                    )
                )
        return Enumeration(
            enumerators=tuple(rows), doc="Sizes and places of the model, in bytes unless named otherwise."
        )

    def _structs(self) -> Iterator[Struct]:
        yield Struct(
            name=f"{self.prefix}_inputs",
            members=tuple(
                StructMember(name=name, type=Pointer(Const(SCALARS[info.dtype])), doc=describe(info))
                for name, info in self.input_members
            ),
            doc="The inputs of one inference. Each is read where it lies: in the caller's own memory, or in the "
            "workspace at its offset, where it lasts until its last reader has run.",
        )
        yield Struct(
            name=f"{self.prefix}_outputs",
            members=tuple(
                StructMember(name=name, type=Pointer(SCALARS[info.dtype]), doc=describe(info))
                for name, info in self.output_members
            ),
            doc="Where the outputs of one inference go: the caller's own memory, or the workspace at its offset.",
        )
        yield Struct(
            name=f"{self.prefix}_memory",
            members=(
                StructMember(
                    name=REGION,
                    type=Pointer(Scalar.UINT8),
                    doc=f"{self.constant(f'{REGION}_bytes')} bytes; not shared with another inference that runs.",
                ),
            ),
            doc="The memory that one inference works in.",
        )

    def _defaults(self) -> Iterator[Variable]:
        arena = f"{self.prefix}_default_{REGION}"
        yield Variable(
            name=arena,
            type=ArrayType(Scalar.UINT8, max(self._storage.plan.region(REGION).peak_bytes, 1)),
            linkage=Linkage.EXTERNAL,
            section=Section.WORKSPACE,
            alignment=ARENA_ALIGNMENT,
            doc="A workspace; it takes no memory in a program that does not use it or the default instances below.",
        )
        for kind, members in (("input", self.input_members), ("output", self.output_members)):
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
                doc=f"The {kind}s at their places in the default workspace.",
            )
        yield Variable(
            name=f"{self.prefix}_default_memory",
            type=Const(StructType(f"{self.prefix}_memory")),
            value=Aggregate((Field(Identifier(arena), REGION),)),
            linkage=Linkage.EXTERNAL,
            doc="The default workspace.",
        )

    def _run(self, *, declaration: bool) -> Function:
        return Function(
            name=f"{self.prefix}_run",
            returns=_STATUS,
            parameters=(
                Parameter(name="inputs", type=_struct_pointer(f"{self.prefix}_inputs")),
                Parameter(name="outputs", type=_struct_pointer(f"{self.prefix}_outputs")),
                Parameter(name="memory", type=_struct_pointer(f"{self.prefix}_memory")),
                Parameter(name="info", type=Pointer(StructType("ferrule_run_info"))),
            ),
            body=None if declaration else Block(tuple(self._body())),
            linkage=Linkage.EXTERNAL,
            doc="Run one inference in the caller's thread; several may run at once, each in its own memory.\n"
            "`info` may be NULL.\n@retval FERRULE_OK\n"
            "@retval FERRULE_ERR_ARGUMENT a pointer other than `info` is null; nothing was run",
        )

    # ---- the implementation

    def _offsets(self) -> Enumeration:
        rows = [Enumerator(name=self._offset_name(name), value=self._offset(name)) for name in self._arena_tensors()]
        rows += [
            Enumerator(name=scratch_offset(item.symbol), value=self._storage.offset(scratch_name(item.layer.name)))
            for item in self._lowered.layers
            if item.op.scratch_bytes
        ]
        if not rows:
            rows.append(Enumerator(name="NOTHING_IN_THE_WORKSPACE", value=0))
        return Enumeration(enumerators=tuple(rows), doc="Where tensors and scratch lie in the workspace, in bytes.")

    def _body(self) -> Iterator[Statement]:
        yield from self._checks()
        yield Evaluate(Call(Identifier("ferrule_run_begin"), (Identifier("info"),)))
        if self._uses_arena():
            yield Declare(ARENA.name, Const(Pointer(Scalar.UINT8)), Member(Dereference(Identifier("memory")), REGION))
        for info in self._graph.inputs:
            yield self._declare(info.name)
        declared = {info.name for info in self._graph.inputs}
        for index, item in enumerate(self._lowered.layers):
            yield Comment(_headline(index, item))
            for name in item.layer.outputs:
                if name not in declared:
                    declared.add(name)
                    yield self._declare(name)
            yield _notify(index)
            yield from self._call(item)
        yield _notify(len(self._lowered.layers))
        yield from self._late_outputs()
        yield Return(Identifier("FERRULE_OK"))

    def _checks(self) -> Iterator[Statement]:
        pointers: list[Expression] = [Identifier(name) for name in ("inputs", "outputs", "memory")]
        yield If(_any_null(pointers), Block((Return(Identifier("FERRULE_ERR_ARGUMENT")),)))
        members: list[Expression] = [Member(Dereference(Identifier("inputs")), name) for name in self._inputs]
        members += [Member(Dereference(Identifier("outputs")), name) for name in self._outputs]
        members.append(Member(Dereference(Identifier("memory")), REGION))
        for member in members:
            yield If(_any_null([member]), Block((Return(Identifier("FERRULE_ERR_ARGUMENT")),)))

    def _declare(self, tensor: str) -> Declare:
        info = self._graph.info(tensor)
        is_input = any(info.name == tensor for info in self._graph.inputs) or self._views_input(tensor)
        type_: Type = Pointer(Const(SCALARS[info.dtype]) if is_input else SCALARS[info.dtype])
        return Declare(self._lowered.variables[tensor], Const(type_), self._home(tensor, type_))

    def _home(self, tensor: str, type_: Type) -> Expression:
        """Return where the bytes of a tensor are."""
        group = self._group(tensor)
        for name, info in self.input_members:
            if info.name in group:
                own = Member(Dereference(Identifier("inputs")), name)
                return own if info.name == tensor else _converted(own, info, self._graph.info(tensor), type_)
        for name, info in self.output_members:
            if info.name in group:
                own = Member(Dereference(Identifier("outputs")), name)
                return own if info.name == tensor else _converted(own, info, self._graph.info(tensor), type_)
        return Cast(type_, AddressOf(Index(ARENA, Identifier(self._offset_name(tensor)))))

    def _call(self, item: LoweredLayer) -> Iterator[Statement]:
        source = item.op.view_of
        if source is None:
            yield from item.op.statements
        elif item.layer.outputs[0] not in self._storage.views:
            yield self._copy(Identifier(self._lowered.variables[item.layer.outputs[0]]), source)
        else:
            yield Comment("the same bytes under another shape")

    def _late_outputs(self) -> Iterator[Statement]:
        """Copy outputs of the graph that are inputs, constants, or an output that stands a second time."""
        done: set[str] = {info.name for info in self._graph.inputs}
        for name, info in self.output_members:
            if info.name in done or self._graph.tensor(info.name).is_constant:
                yield self._copy(Member(Dereference(Identifier("outputs")), name), info.name)
            done.add(info.name)

    def _copy(self, target: Expression, source: str) -> Statement:
        tensor = self._graph.tensor(source)
        start: Expression = Identifier(
            self._constant_output(source) if tensor.is_constant else self._lowered.variables[source]
        )
        return Evaluate(Call(Identifier("memmove"), (target, start, Integer(tensor.info.size_bytes, unsigned=True))))

    # ---- storage

    def _group(self, tensor: str) -> frozenset[str]:
        """Return the tensors that share the storage of one."""
        views = self._storage.views
        root = tensor
        while root in views:
            root = views[root]
        group, grown = {root}, True
        while grown:
            more = {output for output, source in views.items() if source in group} - group
            group |= more
            grown = bool(more)
        return frozenset(group)

    def _views_input(self, tensor: str) -> bool:
        return any(info.name in self._group(tensor) for info in self._graph.inputs)

    def _arena_tensors(self) -> Iterator[str]:
        given = {info.name for info in (*self._graph.inputs, *self._graph.outputs)}
        for tensor in self._lowered.variables:
            if not self._group(tensor) & given:
                yield tensor

    def _uses_arena(self) -> bool:
        return any(True for _ in self._arena_tensors()) or any(i.op.scratch_bytes for i in self._lowered.layers)

    def _offset(self, tensor: str) -> int:
        return self._storage.offset(tensor)

    def _offset_name(self, tensor: str) -> str:
        return f"{self._lowered.variables[tensor]}_OFFSET".upper()

    def _constant_output(self, tensor: str) -> str:
        return f"{self.prefix}_constant_{list(self._outputs_of_constants()).index(tensor)}"

    def _outputs_of_constants(self) -> Iterator[str]:
        for info in dict.fromkeys(self._graph.outputs):
            if self._graph.tensor(info.name).is_constant:
                yield info.name

    def _constant_outputs(self) -> Iterator[Variable]:
        for name in self._outputs_of_constants():
            data = self._graph.tensor(name).data
            assert data is not None
            yield blob_variable(Blob(name=self._constant_output(name), data=data))


def describe(info: TensorInfo) -> str:
    """Return a tensor's name, shape and quantisation as a comment says them."""
    shape = "x".join(map(str, info.shape)) or "scalar"
    text = f"'{one_line(info.name)}': {shape} {info.dtype}"
    if info.quantization is not None and not info.quantization.per_channel:
        sign = "-" if info.zero_point >= 0 else "+"
        text += f", real = {info.scale:.9g} * (stored {sign} {abs(info.zero_point)})"
    return text


def one_line(name: str) -> str:
    """Return a name of the model without control characters, for comments."""
    return "".join(c if c.isprintable() else " " for c in name)


def _member_names(lowered: LoweredGraph, infos: Iterable[TensorInfo]) -> tuple[str, ...]:
    names: list[str] = []
    for info in infos:
        base = lowered.variables.get(info.name, "constant")
        name, number = base, 1
        while name in names:
            number += 1
            name = f"{base}_{number}"
        names.append(name)
    return tuple(names)


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


def _converted(value: Expression, from_info: TensorInfo, to_info: TensorInfo, type_: Type) -> Expression:
    return value if from_info.dtype == to_info.dtype else Cast(type_, value)


def _struct_pointer(name: str) -> Type:
    return Pointer(Const(StructType(name)))


def _any_null(pointers: Iterable[Expression]) -> Expression:
    tests: list[Expression] = [Binary(BinaryOperator.EQUAL, pointer, Null()) for pointer in pointers]
    condition = tests[0]
    for test in tests[1:]:
        condition = Binary(BinaryOperator.OR, condition, test)
    return condition


def _notify(index: int) -> Statement:
    return Evaluate(Call(Identifier("ferrule_run_notify"), (Identifier("info"), Integer(index))))


def _headline(index: int, item: LoweredLayer) -> str:
    runner = item.backend if item.device == item.backend else f"{item.backend}, device {item.device}"
    return f"{index}: {item.layer.name}, {item.layer.type} on {runner}"
