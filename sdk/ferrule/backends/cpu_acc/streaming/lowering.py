# SPDX-License-Identifier: Apache-2.0
"""A chain as one generated function: a loop over bands, each of which calls the ordinary kernel of its layer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace

import numpy as np

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.backends.contribution import KERNELS
from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall, Lowering, descriptor_of, limit_fields, together
from ferrule.backends.cpu_acc.lowering.proofs.channel_ranges import channel_ranges, seed_ranges
from ferrule.backends.cpu_acc.streaming.chain import Chain, Part, Stage, data_inputs, streamed, window_of
from ferrule.backends.cpu_acc.streaming.cost import calls_of
from ferrule.backends.cpu_acc.streaming.timeline import Buffer, Timeline, timeline
from ferrule.backends.firmware import Blob, FieldValue, LoweredOp, LoweringContext, struct_value
from ferrule.dom import (
    AddressOf,
    Aggregate,
    ArrayType,
    Binary,
    BinaryOperator,
    Block,
    Comment,
    Const,
    Declaration,
    Declare,
    Dereference,
    Evaluate,
    Expression,
    Field,
    Function,
    Identifier,
    If,
    Index,
    Integer,
    Member,
    Null,
    Parameter,
    Pointer,
    Return,
    Scalar,
    Statement,
    StructType,
    Type,
    Variable,
    While,
    call_of,
    elements,
    return_if,
    unsigned,
)
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, Graph, Layer, LayerType, Tensor, TensorInfo, assemble
from ferrule.memory.request import Overlap
from ferrule.operators.arithmetic.window import NO_PADDING
from ferrule.operators.movement.repeat import BroadcastToDescriptor
from ferrule.operators.operator import Operands, values_of
from ferrule.operators.spatial.pool2d import Pool2dDescriptor
from ferrule.operators.table import OPERATORS
from ferrule.rendering import one_line
from ferrule.timing.planned import KernelWork

_Ops = dict[Part, LoweredOp]
"""A stage as C, by its different parts."""

_INPUT, _LINES, _OUTPUT, _SCRATCH = map(Identifier, ("input", "lines", "output", "scratch"))
_STREAM, _STEP = Identifier("stream"), Identifier("step")
_PLACES = ("FERRULE_STREAM_INPUT", "FERRULE_STREAM_LINES", "FERRULE_STREAM_OUTPUT")
_HEADER = "ferrule/kernels/stream.h"
_STATE_ALIGNMENT = 8
_STATE_BYTES = 16
"""Upper bound of the size of a struct ferrule_stream_state."""
_SPARE_BYTES = 2048
"""Kernel scratch that counts as none in a chain: its stages share one scratch."""


@frozen
class _BandContext(LoweringContext):
    """The context of a part of a stage; the parts of a stage share equal blobs."""

    shared: dict[tuple[str, int, bytes], Blob] = field(default_factory=dict, repr=False)

    @override
    def blob(self, suffix: str, data: Array, alignment: int = 4) -> Blob:
        made = LoweringContext.blob(self, suffix, data, alignment)
        return self.shared.setdefault((str(data.dtype), alignment, data.tobytes()), made)


def lower_stream(context: LoweringContext, lower: Lowering) -> LoweredOp:
    """Return a chain as C; `lower` lowers single layers."""
    payload = streamed(context.layer)
    if payload is None:
        raise UnsupportedError(f"layer '{context.layer.name}' was compiled by another backend")
    chain = payload.chain()
    times = timeline(chain, pushed=payload.fed)
    source, (output, lines) = chain.tensors[0].name, context.layer.outputs
    seed_ranges(chain.graph, source, channel_ranges(context.graph, source))
    stages = [_lowered(context, chain, number, times, lower) for number in range(len(chain.stages))]
    inside = together([each for stage in stages for each in stage.values()])
    alignment = max(_STATE_ALIGNMENT, inside.scratch_alignment)  # the kernels' scratch is behind the state
    state = -(-(_STATE_BYTES + 4 * len(chain.tensors) + 2 * len(chain.stages)) // alignment) * alignment
    memories = context.pointer(lines), context.pointer(output), context.scratch
    call = call_of(context.symbol("rows"), context.pointer(source), *memories)
    op = LoweredOp(
        kernel="stream",
        declarations=(
            *inside.declarations,
            *_tables(context, chain, times, state),
            *_functions(context, chain, times, stages, fed=payload.fed),
        ),
        blobs=inside.blobs,
        works=_summed((*_works(chain, stages), (KernelWork(kernel="stream", instructions=round(calls_of(times))), 1))),
        scratch_bytes=state + inside.scratch_bytes,
        scratch_alignment=alignment,
        headers=(_HEADER, "ferrule/status.h", *inside.headers),
        contributions=(KERNELS.part("stream"), *inside.contributions),
    )
    if payload.fed:  # the input has no memory that others could overlap
        return replace(op, status=call, feed=call_of(context.symbol("feed"), *memories))
    overlaps = (
        Overlap(output=output, input=source, distance_bytes=times.output_distance),
        Overlap(output=lines, input=source, distance_bytes=times.lines_distance),
    )
    return replace(op, statements=(Evaluate(call),), overlaps=overlaps)


def _works(chain: Chain, stages: Sequence[_Ops]) -> Iterator[tuple[KernelWork, int]]:
    """Yield what the kernels of the bands do, and for how many bands."""
    for stage, ops in zip(chain.stages, stages, strict=True):
        for part, count in Counter(stage.each).items():
            yield from ((work, count) for work in ops[part].works)


def _summed(works: Iterable[tuple[KernelWork, int]]) -> tuple[KernelWork, ...]:
    """Return works that are done so often, as one for each kernel."""
    found: dict[tuple[str, bool], KernelWork] = {}
    for work, count in works:
        key = work.kernel, work.instructions is None
        before = found.get(key, KernelWork(kernel=work.kernel, instructions=None if key[1] else 0))
        found[key] = replace(
            before,
            instructions=None
            if before.instructions is None or work.instructions is None
            else before.instructions + count * work.instructions,
            elements=before.elements + count * work.elements,
            weight_bytes=before.weight_bytes + count * work.weight_bytes,
        )
    return tuple(found.values())


def _lowered(context: LoweringContext, chain: Chain, number: int, times: Timeline, lower: Lowering) -> _Ops:
    """Return a stage as C; equal parts, such as bands of padding only, are lowered once."""
    stage = chain.stages[number]
    shared: dict[tuple[str, int, bytes], Blob] = {}
    ops: _Ops = {}
    for index, part in enumerate(dict.fromkeys(stage.parts)):
        graph = (_band_graph if part.input_rows else _padding_graph)(chain.graph, stage, part)
        for info in graph.inputs:
            seed_ranges(graph, info.name, channel_ranges(chain.graph, info.name))
        band = _BandContext(
            graph=graph,
            layer=graph.layers[0],
            target=context.target,
            prefix=context.symbol(f"{number}_{index}"),
            pointers=_pointers(graph),
            scratch=Member(Dereference(_STREAM), "scratch"),
            spare_bytes=max(context.spare_bytes, _SPARE_BYTES),
            bands=stage.bands,
            shared=shared,
        )
        sums = times.sums[number]
        op = lower(band) if sums is None else _mean(band, part, sums, chain.graph)
        if op.view_of is not None or op.status is not None:
            raise UnsupportedError(f"layer '{stage.layer.name}' cannot run in bands: it is no plain kernel call")
        ops[part] = replace(op, works=op.planned_works(graph, graph.layers[0]))
    return ops


def _band_graph(graph: Graph, stage: Stage, part: Part) -> Graph:
    """Return a graph of the stage's layer alone, for an image of a part's rows."""
    layer = stage.layer
    inputs = tuple(dict.fromkeys(data_inputs(graph, layer)))
    tensors = {name: graph.tensor(name) for name in (*layer.present_inputs, *layer.outputs)}
    written = 1 if stage.sums_bytes else part.output_rows
    for name, rows in (*((each, part.input_rows) for each in inputs), (layer.outputs[0], written)):
        info = tensors[name].info
        tensors[name] = replace(tensors[name], info=_with_rows(info, rows))
    descriptor = layer.descriptor
    padding = getattr(descriptor, "padding", None)
    if padding is not None and not stage.sums_bytes:
        around = replace(padding, top=part.top, bottom=part.bottom)
        descriptor = replace(descriptor, padding=around)  # type: ignore[call-arg]
    own = replace(layer, descriptor=descriptor)
    return assemble(graph.name, inputs=inputs, outputs=layer.outputs, layers=(own,), tensors=tensors)


def _with_rows(info: TensorInfo, rows: int) -> TensorInfo:
    return replace(info, shape=(info.shape[0], rows, *info.shape[2:]))


def _padding_graph(graph: Graph, stage: Stage, part: Part) -> Graph:
    """Return a graph that writes a part's rows where the stage's window lies in the padding: one pixel, repeated."""
    layer, output = stage.layer, _with_rows(graph.info(stage.layer.outputs[0]), part.output_rows)
    data = _padding_pixel(graph, layer)
    pixel = replace(output, name=graph.unique_name(f"{output.name}_padding"), shape=data.shape)
    repeat = Layer(
        layer.name,
        LayerType.BROADCAST_TO,
        BroadcastToDescriptor(shape=output.shape),
        inputs=(pixel.name,),
        outputs=layer.outputs,
    )
    tensors = {pixel.name: Tensor(pixel, data), output.name: Tensor(output)}
    return assemble(graph.name, inputs=(), outputs=layer.outputs, layers=(repeat,), tensors=tensors)


def _padding_pixel(graph: Graph, layer: Layer) -> Array:
    """Return the pixel that a convolution computes by its rule if its whole window has the zero point."""
    window, operands = window_of(graph, layer), Operands.of(graph, layer)
    assert window is not None, "a layer without a window has no padding"
    image = operands.source
    taps = (window.height - 1) * window.dilation_h + 1, (window.width - 1) * window.dilation_w + 1
    shape = (1, *taps, image.shape[3])
    (pixel,) = OPERATORS[layer.type].kernel(
        replace(layer.descriptor, padding=NO_PADDING),  # type: ignore[call-arg]
        replace(
            operands,
            inputs=(replace(image, shape=shape), *operands.inputs[1:]),
            outputs=(replace(operands.output, shape=(1, 1, 1, operands.output.shape[3])),),
        ),
        [np.full(shape, image.zero_point, image.dtype.numpy), *values_of(graph, layer)[1:]],
    )
    return pixel


def _pointers(graph: Graph) -> dict[str, Expression]:
    places: dict[str, Expression] = {
        info.name: Index(Member(_STEP, "inputs"), Integer(index)) for index, info in enumerate(graph.inputs)
    }
    return places | {graph.outputs[0].name: Member(_STEP, "output")}


def _mean(context: LoweringContext, part: Part, sums: Buffer, graph: Graph) -> LoweredOp:
    """Return a band of a global average pool."""
    descriptor = descriptor_of(context, Pool2dDescriptor)
    _, height, width, channels = graph.info(str(context.layer.inputs[0])).shape
    lines = Index(Member(Dereference(_STREAM), "places"), Identifier(_PLACES[1]))
    return KernelCall(
        "stream_mean_s8",
        _HEADER,
        {
            "pixels": part.input_rows * width,
            "channels": channels,
            "count": height * width,
            **limit_fields(context.output, descriptor.activation),
            "first": part.first,
            "last": part.output_rows > 0,
        },
        further=(AddressOf(Index(lines, Integer(sums.offset))),),
    ).lowered(context)


# ---- the tables


def _tables(context: LoweringContext, chain: Chain, times: Timeline, state: int) -> Iterator[Declaration]:
    tensors = [_tensor(chain, number, times.buffers[number]) for number in range(len(chain.tensors))]
    stages = [_stage(chain, stage) for stage in chain.stages]
    yield _array(context.symbol("tensors"), "ferrule_stream_tensor", tensors)
    yield _array(context.symbol("stages"), "ferrule_stream_stage", stages)
    fields: dict[str, FieldValue] = {
        "tensors": Identifier(context.symbol("tensors")),
        "stages": Identifier(context.symbol("stages")),
        "state_bytes": state,
        "tensor_count": len(tensors),
        "stage_count": len(stages),
        "last_reader": chain.last_reader(0),
    }
    yield Variable(context.symbol("chain"), Const(StructType("ferrule_stream_chain")), value=struct_value(fields))


def _array(name: str, struct: str, rows: Sequence[Expression]) -> Variable:
    return Variable(
        name,
        ArrayType(Const(StructType(struct)), len(rows)),
        value=elements(rows),
    )


def _tensor(chain: Chain, number: int, buffer: Buffer | None) -> Expression:
    place = _PLACES[1] if buffer is not None else _PLACES[0] if number == 0 else _PLACES[2]
    return struct_value(
        {
            "row_bytes": chain.row_bytes(number),
            "offset": 0 if buffer is None else buffer.offset,
            "height": chain.height(number),
            "capacity": chain.height(number) if buffer is None else buffer.rows,
            "place": Identifier(place),
        }
    )


def _stage(chain: Chain, stage: Stage) -> Expression:
    inputs = tuple(
        Field(struct_value({"rows": reach.rows, "step": reach.step, "pad": reach.pad, "tensor": reach.tensor}))
        for reach in stage.inputs
    )
    return struct_value(
        {
            "inputs": Aggregate(inputs),
            "bands": stage.bands,
            "late": sum(not part.output_rows for part in stage.each),
            "rows": stage.rows,
            "top": stage.equal.start,
            "middle": len(stage.equal),
            "input_count": len(inputs),
            "output": stage.output,
            "last_reader": chain.last_reader(stage.output),
        }
    )


# ---- the functions


def _functions(
    context: LoweringContext, chain: Chain, times: Timeline, stages: Sequence[_Ops], *, fed: bool
) -> Iterator[Function]:
    """Yield the function that computes all bands that can be computed, and those that the executor calls."""
    stream = AddressOf(_STREAM)
    bands = Evaluate(call_of(context.symbol("bands"), stream))
    code = (each for number, stage in enumerate(stages) for each in _stage_code(chain, times, number, stage))
    yield _function(
        context,
        "bands",
        Scalar.VOID,
        (Parameter(_STREAM.name, Pointer(Const(StructType("ferrule_stream")))),),
        Declare(_STEP.name, StructType("ferrule_stream_step")),
        While(call_of("ferrule_stream_next", _STREAM, AddressOf(_STEP)), Block(tuple(code))),
        doc=f"Compute all bands that can be computed, of {len(stages)} layers in {times.steps} bands with "
        f"{times.lines_bytes} B of line buffers. The next band is always one of the last layer that has its rows.",
    )
    whole, height = (_INPUT_PARAMETER, *_MEMORIES), unsigned(chain.height(0))
    if not fed:
        yield _function(
            context,
            "rows",
            Scalar.VOID,
            whole,
            *_attached(context, _INPUT),
            Evaluate(call_of("ferrule_stream_begin", stream, height)),
            bands,
            doc="Run the layers on the whole input.",
        )
        return
    failed = return_if(Binary(BinaryOperator.NOT_EQUAL, _STATUS, _OK), _STATUS)
    expect = call_of("ferrule_stream_expect", stream, _FIRST, _COUNT)
    yield _function(
        context,
        "feed",
        Scalar.INT32,
        (
            *_MEMORIES,
            Parameter(_ROWS.name, Pointer(Const(Scalar.INT8))),
            Parameter(_FIRST.name, Scalar.UINT32),
            Parameter(_COUNT.name, Scalar.UINT32),
        ),
        *_attached(context, Null()),
        Declare(_STATUS.name, Const(Scalar.INT32), expect),
        failed,
        While(call_of("ferrule_stream_feed", stream, AddressOf(_ROWS), AddressOf(_COUNT)), Block((bands,))),
        Return(_OK),
        doc="Take rows of the input, one by one, and compute all bands that each allows.",
    )
    feed = call_of(context.symbol("feed"), _LINES, _OUTPUT, _SCRATCH, _INPUT, unsigned(0), height)
    yield _function(
        context,
        "rows",
        Scalar.INT32,
        whole,
        *_attached(context, Null()),
        If(
            Binary(BinaryOperator.NOT_EQUAL, _INPUT, Null()),
            Block((Declare(_STATUS.name, Const(Scalar.INT32), feed), failed)),
        ),
        Return(call_of("ferrule_stream_end", stream)),
        doc="Take all rows of the input if it is given, and end the inference.",
    )


def _function(
    context: LoweringContext,
    name: str,
    returns: Type,
    parameters: tuple[Parameter, ...],
    *statements: Statement,
    doc: str,
) -> Function:
    body = Block(statements)
    return Function(context.symbol(name), returns, parameters=parameters, body=body, doc=doc)


_INPUT_PARAMETER = Parameter(_INPUT.name, Pointer(Const(Scalar.INT8)))
_MEMORIES = (
    Parameter(_LINES.name, Pointer(Scalar.INT8)),
    Parameter(_OUTPUT.name, Pointer(Scalar.INT8)),
    Parameter(_SCRATCH.name, Pointer(Scalar.UINT8)),
)
_ROWS, _FIRST, _COUNT, _STATUS, _OK = map(Identifier, ("rows", "first", "count", "status", "FERRULE_OK"))


def _attached(context: LoweringContext, source: Expression) -> tuple[Statement, ...]:
    """Return the declaration of the stream, attached to its memories."""
    chain = AddressOf(Identifier(context.symbol("chain")))
    attach = call_of("ferrule_stream_attach", AddressOf(_STREAM), chain, source, _LINES, _OUTPUT, _SCRATCH)
    return Declare(_STREAM.name, StructType("ferrule_stream")), Evaluate(attach)


def _stage_code(chain: Chain, times: Timeline, number: int, ops: _Ops) -> Iterator[Statement]:
    stage = chain.stages[number]
    yield Comment(_headline(chain, times, number, stage))
    statements = [ops[part].statements for part in stage.parts]
    calls = statements[0] if len(statements) == 1 else [_when("part", *each) for each in enumerate(statements)]
    yield _when("stage", number, calls)


def _when(member: str, number: int, statements: Iterable[Statement]) -> If:
    condition = Binary(BinaryOperator.EQUAL, Member(_STEP, member), unsigned(number))
    return If(condition, Block(tuple(statements)))


def _headline(chain: Chain, times: Timeline, number: int, stage: Stage) -> str:
    buffer = times.buffers[stage.output]
    rows = (
        f"{stage.rows} of {chain.height(stage.output)} rows" if stage.rows > 1 else f"{chain.height(stage.output)} rows"
    )
    into = (
        "to the output" if buffer is None else f"to a buffer of {buffer.rows} rows of {chain.row_bytes(stage.output)} B"
    )
    return f"{number}: {one_line(stage.layer.name)}, {stage.layer.type}: {rows} rows {into}"
