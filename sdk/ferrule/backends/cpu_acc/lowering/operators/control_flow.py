# SPDX-License-Identifier: Apache-2.0
"""IF and WHILE: one generated function for each graph, whose tensors and scratch lie in the scratch of the layer."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.lowering.kernel_call import Lowering, together, wrong_descriptor
from ferrule.backends.firmware import SCALARS, Blob, LoweredOp, LoweringContext
from ferrule.dom import (
    AddressOf,
    Assign,
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
    Function,
    Identifier,
    If,
    Index,
    Integer,
    Not,
    Null,
    Parameter,
    Pointer,
    Return,
    Scalar,
    Statement,
    While,
    call_of,
    return_if,
    unsigned,
)
from ferrule.dom.statements import names_in
from ferrule.graph import Graph, LayerType, TensorInfo
from ferrule.memory import Region, Requirements, ScratchNeed, plan_graph, scratch_name
from ferrule.operators.control_flow import IfDescriptor, WhileDescriptor
from ferrule.rendering import one_line

CONTROL_FLOW = frozenset({LayerType.IF, LayerType.WHILE})
_SCRATCH, _STATUS, _COUNT = map(Identifier, ("scratch", "status", "iterations"))
_OK = Identifier("FERRULE_OK")
_ALIGNMENT = 16
_ARENA, _GIVEN = "scratch", "given"


def lower_control_flow(context: LoweringContext, lower: Lowering) -> LoweredOp:
    """Return an IF or WHILE as C; `lower` lowers the layers of its graphs."""
    match context.layer.descriptor:
        case IfDescriptor() as descriptor:
            return _lower_if(context, descriptor, lower)
        case WhileDescriptor() as descriptor:
            return _lower_while(context, descriptor, lower)
    raise wrong_descriptor(context)


@frozen
class _Part:
    """The function of one graph, and what its layers need."""

    function: Function
    offsets: tuple[Enumeration, ...]
    scratch_bytes: int
    ops: tuple[LoweredOp, ...]
    blobs: tuple[Blob, ...]

    def taken(self, role: str, count: int) -> list[int]:
        """Return the indices of the graph's inputs (role "in") or outputs ("out"), of `count`, that are parameters."""
        names = {parameter.name for parameter in self.function.parameters}
        return [index for index in range(count) if f"{role}_{index}" in names]

    def call(
        self,
        inputs: Sequence[Expression],
        outputs: Sequence[Expression],
        scratch: Expression,
        count: Expression = _COUNT,
    ) -> Call:
        """Return the call of the function, given a place for each input and output of the graph.

        `count` points to the count of iterations.
        """
        given = {f"in_{index}": place for index, place in enumerate(inputs)}
        given |= {f"out_{index}": place for index, place in enumerate(outputs)}
        given |= {_SCRATCH.name: scratch, _COUNT.name: count}
        return call_of(self.function.name, *(given[each.name] for each in self.function.parameters))


@frozen
class _LoopContext(LoweringContext):
    """The context of a layer inside a loop, in a function that can have the parameter for the count of iterations."""


def _lower_if(context: LoweringContext, descriptor: IfDescriptor, lower: Lowering) -> LoweredOp:
    kind = type(context)  # a loop around the layer counts the iterations inside, too
    then, other = (
        _part(context, graph, name.removesuffix("_branch"), lower, kind) for name, graph in descriptor.graphs.items()
    )
    count = len(context.layer.inputs) - 1
    used = sorted({*then.taken("in", count), *other.taken("in", count)})
    places = _Places(context, inputs=[0, *(index + 1 for index in used)])
    inputs = [places.inputs.get(index + 1, Null()) for index in range(count)]
    scratch_bytes = max(then.scratch_bytes, other.scratch_bytes)
    calls = [Block((Return(part.call(inputs, places.outputs, _SCRATCH)),)) for part in (then, other)]
    body = Block((If(Dereference(places.inputs[0]), *calls),))
    doc = f"Run {_quoted(descriptor.then_branch)} or {_quoted(descriptor.else_branch)}."
    return _joined(context, "if", places, body, (then, other), scratch_bytes, doc)


def _lower_while(context: LoweringContext, descriptor: WhileDescriptor, lower: Lowering) -> LoweredOp:
    body = descriptor.body
    kept = [index for index, (old, new) in enumerate(zip(body.inputs, body.outputs, strict=True)) if old == new]
    parts = (
        _part(context, descriptor.condition, "condition", lower, _LoopContext),
        _part(context, body, "body", lower, _LoopContext, without=kept),
    )
    places = _Places(context, inputs=range(len(context.layer.inputs)))
    condition, step = parts
    infos = context.operands.outputs
    proceed: Expression = Cast(Pointer(Scalar.BOOL), AddressOf(Index(_SCRATCH, Integer(0))))
    following: list[Expression] = list(places.outputs)
    end = _ALIGNMENT
    changed = step.taken("out", len(infos))
    for index in changed:  # the body may still read its inputs when it writes these outputs
        following[index] = Cast(Pointer(SCALARS[infos[index].dtype]), AddressOf(Index(_SCRATCH, Integer(end))))
        end = _up(end + infos[index].size_bytes)
    inner = AddressOf(Index(_SCRATCH, Integer(end)))
    nested = isinstance(context, _LoopContext)
    count: Expression = Dereference(_COUNT) if nested else _COUNT
    counter: Expression = _COUNT if nested else AddressOf(_COUNT)
    test = Assign(_STATUS, condition.call(places.outputs, [proceed], inner, counter))
    within = Binary(BinaryOperator.LESS, count, unsigned(descriptor.limit))
    loop = (
        return_if(Not(within), Identifier("FERRULE_ERR_ITERATIONS")),
        Assign(count, Binary(BinaryOperator.ADD, count, unsigned(1))),
        Assign(_STATUS, step.call(places.outputs, following, inner, counter)),
        _FAIL,
        *(_moved(places.outputs[index], following[index], infos[index]) for index in changed),
        test,
        _FAIL,
    )
    block = Block(
        (
            Declare(_STATUS.name, Scalar.INT32),
            *(() if nested else (Declare(_COUNT.name, Scalar.UINT32, unsigned(0)),)),
            *(_moved(place, places.inputs[index], infos[index]) for index, place in enumerate(places.outputs)),
            test,
            _FAIL,
            While(Dereference(proceed), Block(loop)),
            Return(_OK),
        )
    )
    scratch_bytes = end + max(part.scratch_bytes for part in parts)
    doc = f"Run {_quoted(body)} as long as {_quoted(descriptor.condition)} holds."
    return _joined(context, "while", places, block, parts, scratch_bytes, doc)


class _Places:
    """The places of a layer's inputs and outputs: parameters of its function, or arrays of constants."""

    def __init__(self, context: LoweringContext, inputs: Iterable[int]) -> None:
        self.parameters: list[Parameter] = []
        self.arguments: list[Expression] = []
        self.blobs: list[Blob] = []
        self.inputs: dict[int, Expression] = {}
        """By position, of those that are used."""
        self.outputs: list[Expression] = []
        for index in inputs:
            data = context.constant(index) if context.is_constant(index) else None
            if data is not None:
                self.blobs.append(context.blob(f"input_{index}", data))
                self.inputs[index] = Identifier(self.blobs[-1].name)
                continue
            type_ = Pointer(Const(SCALARS[context.input(index).dtype]))
            self.inputs[index] = self.take(Parameter(f"in_{index}", type_), context.input_pointer(index))
        for index, info in enumerate(context.operands.outputs):
            parameter = Parameter(f"out_{index}", Pointer(SCALARS[info.dtype]))
            self.outputs.append(self.take(parameter, context.output_pointer(index)))

    def take(self, parameter: Parameter, argument: Expression) -> Expression:
        """Return the name of a further parameter, for which the call has the argument."""
        self.parameters.append(parameter)
        self.arguments.append(argument)
        return Identifier(parameter.name)


_FAIL = return_if(Binary(BinaryOperator.NOT_EQUAL, _STATUS, _OK), _STATUS)
_COUNT_PARAMETER = Parameter(_COUNT.name, Pointer(Scalar.UINT32))
_SCRATCH_PARAMETER = Parameter(_SCRATCH.name, Pointer(Scalar.UINT8))


def _joined(
    context: LoweringContext,
    kind: str,
    places: _Places,
    body: Block,
    parts: Sequence[_Part],
    scratch_bytes: int,
    doc: str,
) -> LoweredOp:
    """Return the layer's own function and its call, with all that its graphs need."""
    if scratch_bytes:
        places.take(_SCRATCH_PARAMETER, context.scratch)
    if isinstance(context, _LoopContext) and _COUNT.name in names_in(body):
        places.take(_COUNT_PARAMETER, _COUNT)
    function = Function(
        context.symbol(kind),
        Scalar.INT32,
        parameters=tuple(places.parameters),
        body=body,
        doc=doc,
    )
    inside = together([op for part in parts for op in part.ops])
    return LoweredOp(
        kernel=kind,
        status=call_of(function.name, *places.arguments),
        declarations=(
            *inside.declarations,
            *(each for part in parts for each in part.offsets),
            *(part.function for part in parts),
            function,
        ),
        blobs=(
            *places.blobs,
            *inside.blobs,
            *(blob for part in parts for blob in part.blobs),
        ),
        scratch_bytes=scratch_bytes,
        scratch_alignment=max(_ALIGNMENT, inside.scratch_alignment),
        headers=("ferrule/status.h", *inside.headers),
        contributions=inside.contributions,
    )


def _part(
    context: LoweringContext,
    graph: Graph,
    tag: str,
    lower: Lowering,
    kind: type[LoweringContext],
    without: Collection[int] = (),
) -> _Part:
    """Return the function of a graph whose layers get contexts of this kind.

    The outputs in `without` are its inputs and need no place.
    """
    pointers: dict[str, Expression] = {info.name: Identifier(f"in_{index}") for index, info in enumerate(graph.inputs)}
    for index, info in enumerate(graph.outputs):
        if graph.producer(info.name) is not None:
            pointers.setdefault(info.name, Identifier(f"out_{index}"))
    given = frozenset(pointers)
    own = [tensor.info for tensor in graph.tensors if not tensor.is_constant and tensor.info.name not in given]
    offsets: dict[str, Identifier] = {}
    for index, info in enumerate(own):
        offsets[info.name] = Identifier(context.symbol(f"{tag}_t{index}").upper())
        pointers[info.name] = Cast(Pointer(SCALARS[info.dtype]), AddressOf(Index(_SCRATCH, offsets[info.name])))
    ops = []
    for index, layer in enumerate(graph.layers):
        scratch = Identifier(context.symbol(f"{tag}_{index}_scratch").upper())
        ops.append(
            lower(
                kind(
                    graph=graph,
                    layer=layer,
                    target=context.target,
                    prefix=context.symbol(f"{tag}_{index}"),
                    pointers=pointers,
                    scratch=AddressOf(Index(_SCRATCH, scratch)),
                    spare_bytes=context.spare_bytes,
                )
            )
        )
        if ops[-1].scratch_bytes:
            offsets[scratch_name(layer.name)] = scratch
    places = _plan(graph, ops, given)
    enumerators = tuple(Enumerator(place.name, places[name]) for name, place in offsets.items())
    blobs: list[Blob] = []
    body = [*_body(graph, ops, pointers), *_late_outputs(context, graph, tag, pointers, without, blobs)]
    named = set(names_in(tuple(body)))  # compilers warn of parameters without a use
    parameters = (
        *(Parameter(f"in_{index}", Pointer(Const(SCALARS[info.dtype]))) for index, info in enumerate(graph.inputs)),
        *(Parameter(f"out_{index}", Pointer(SCALARS[info.dtype])) for index, info in enumerate(graph.outputs)),
        *(_SCRATCH_PARAMETER, _COUNT_PARAMETER),
    )
    if any(op.status is not None for op in ops):
        body.insert(0, Declare(_STATUS.name, Scalar.INT32))
    function = Function(
        context.symbol(tag),
        Scalar.INT32,
        parameters=tuple(each for each in parameters if each.name in named),
        body=Block((*body, Return(_OK))),
        doc=f"The graph {_quoted(graph)}.",
    )
    return _Part(
        function=function,
        offsets=(Enumeration(enumerators),) if enumerators else (),
        scratch_bytes=places[""] if _SCRATCH.name in named else 0,
        ops=tuple(ops),
        blobs=tuple(blobs),
    )


def _plan(graph: Graph, ops: Sequence[LoweredOp], given: Collection[str]) -> dict[str, int]:
    """Return the offsets of the graph's tensors and of its layers' scratch, and the size of all by the name ""."""
    regions = [Region(name=name, size_bytes=sys.maxsize) for name in (_ARENA, _GIVEN)]
    scratch = {
        layer.name: [ScratchNeed(size_bytes=op.scratch_bytes, alignment=max(op.scratch_alignment, _ALIGNMENT))]
        for layer, op in zip(graph.layers, ops, strict=True)
        if op.scratch_bytes
    }
    allowed = {tensor.info.name: (_GIVEN if tensor.info.name in given else _ARENA,) for tensor in graph.tensors}
    needs = Requirements(
        alignment=_ALIGNMENT,
        scratch=scratch,
        allowed=allowed | {scratch_name(name): (_ARENA,) for name in scratch},
        shared=(),
        order=[layer.name for layer in graph.layers],
        constant_outputs=True,
    )
    planned = plan_graph(graph, regions, needs).plan
    places = {name: place.offset for name, place in planned.placements.items()}
    return places | {"": _up(planned.region(_ARENA).peak_bytes)}


def _body(graph: Graph, ops: Sequence[LoweredOp], pointers: Mapping[str, Expression]) -> Iterator[Statement]:
    for index, (layer, op) in enumerate(zip(graph.layers, ops, strict=True)):
        yield Comment(f"{index}: {one_line(layer.name)}, {layer.type}")
        yield from op.statements
        if op.view_of is not None:
            yield _moved(pointers[layer.outputs[0]], pointers[op.view_of], graph.info(op.view_of))
        if op.status is not None:
            yield Assign(_STATUS, op.status)
            yield _FAIL


def _late_outputs(
    context: LoweringContext,
    graph: Graph,
    tag: str,
    pointers: Mapping[str, Expression],
    without: Collection[int],
    blobs: list[Blob],
) -> Iterator[Statement]:
    """Yield the copies to outputs that are inputs, constants or repeated outputs; `blobs` gets the constants."""
    done: set[str] = set()
    for index, info in enumerate(graph.outputs):
        data = graph.tensor(info.name).data
        if index in without or (info.name not in done and graph.producer(info.name) is not None):
            done.add(info.name)
            continue
        source = pointers.get(info.name, Null())
        if data is not None:
            blobs.append(context.blob(f"{tag}_output_{index}", data))
            source = Identifier(blobs[-1].name)
        yield _moved(Identifier(f"out_{index}"), source, info)


def _moved(target: Expression, source: Expression, info: TensorInfo) -> Statement:
    return Evaluate(call_of("memmove", target, source, unsigned(info.size_bytes)))


def _quoted(graph: Graph) -> str:
    return f"'{one_line(graph.name)}'"


def _up(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
