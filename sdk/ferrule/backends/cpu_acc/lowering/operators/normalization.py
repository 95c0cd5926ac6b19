# SPDX-License-Identifier: Apache-2.0
"""LOG_SOFTMAX, L2_NORMALIZATION and ADD_N in C."""

from __future__ import annotations

import numpy as np

from ferrule.backends.contribution import KERNELS
from ferrule.backends.cpu_acc.lowering.operators.binary import result_fields
from ferrule.backends.cpu_acc.lowering.operators.unary import unary_call
from ferrule.backends.firmware import Blob, LoweredOp, LoweringContext, parameter_table
from ferrule.dom import Call, Evaluate, Expression, Identifier
from ferrule.graph import DataType
from ferrule.memory.request import Overlap
from ferrule.operators.add_n import integer_sum
from ferrule.operators.log_softmax import Scaling, radius
from ferrule.operators.softmax import exponentials


def lower_log_softmax(context: LoweringContext) -> LoweredOp:
    """Return the call for LOG_SOFTMAX; for int8, the exponentials of all differences are in a table."""
    source = context.input(0)
    depth = source.shape[-1]
    rows = source.elements // depth
    if source.dtype is not DataType.INT8:
        return unary_call(
            context,
            "log_softmax_f32",
            header="normalize",
            parameters="rows_f32_params",
            sources=("expf", "logf"),
            rows=rows,
            depth=depth,
        )
    scaling = Scaling.of(source.scale)
    table = context.blob("exponentials", exponentials(1.0, source.scale))
    return unary_call(
        context,
        "log_softmax_s8",
        header="normalize",
        parameters="log_softmax_s8_params",
        exponentials=table,
        count=int(table.data.size),
        least=-min(radius(scaling), 1 << 16) - 1,
        multiplier=scaling.multiplier,
        shift=scaling.shift,
        reverse_multiplier=scaling.reverse_multiplier,
        reverse_shift=scaling.reverse_shift,
        rows=rows,
        depth=depth,
    )


def lower_l2_normalization(context: LoweringContext) -> LoweredOp:
    """Return the call for L2_NORMALIZATION."""
    source = context.input(0)
    depth = source.shape[-1]
    rows = source.elements // depth
    if source.dtype is DataType.INT8:
        return unary_call(
            context,
            "l2_normalization_s8",
            header="normalize",
            parameters="l2_normalization_s8_params",
            zero_point=source.zero_point,
            rows=rows,
            depth=depth,
        )
    return unary_call(
        context,
        "l2_normalization_f32",
        header="normalize",
        parameters="rows_f32_params",
        sources=("sqrtf",),
        rows=rows,
        depth=depth,
    )


def lower_add_n(context: LoweringContext) -> LoweredOp:
    """Return ADD_N as one call per further float32 input, or as one call per int8 input with sums in scratch."""
    operands, output = context.operands, context.output_pointer()
    elements = operands.output.elements
    sources, blobs = _sources(context)
    calls: list[tuple[str, tuple[Expression, ...]]]
    scratch_bytes = 0
    if operands.output.dtype is DataType.INT8:
        kernel, scratch_bytes = "add_n_s8", 2 * elements
        arithmetic = integer_sum(operands)
        parameters, pointer = parameter_table(
            context,
            "ferrule_add_n_s8_params",
            zero_point=arithmetic.zero_point,
            result=result_fields(arithmetic.result),
            elements=elements,
        )
        calls = [("add_n_first_s8", (pointer, sources[0], context.scratch))]
        calls += [("add_n_next_s8", (pointer, source, context.scratch)) for source in sources[1:-1]]
        calls.append(("add_n_last_s8", (pointer, sources[-1], context.scratch, output)))
        early = range(len(sources))  # no input is read after its element is written
    else:
        kernel = "add_n_f32"
        parameters, pointer = parameter_table(context, "ferrule_add_n_f32_params", elements=elements)
        calls = [(kernel, (pointer, sources[0], sources[1], output))]
        calls += [(kernel, (pointer, output, source, output)) for source in sources[2:]]
        early = range(2)
    late = {name for index, name in enumerate(context.layer.inputs) if index not in early}
    reused = {context.layer.inputs[index] for index in early if not context.is_constant(index)} - late
    return LoweredOp(
        kernel=kernel,
        statements=tuple(Evaluate(Call(Identifier(f"ferrule_{name}"), arguments)) for name, arguments in calls),
        declarations=(parameters,),
        blobs=blobs,
        scratch_bytes=scratch_bytes,
        scratch_alignment=4,
        overlaps=tuple(
            Overlap(input=name, output=operands.output.name, distance_bytes=0)
            for name in dict.fromkeys(context.layer.present_inputs)
            if name in reused
        ),
        headers=("ferrule/kernels/add_n.h",),
        contributions=(KERNELS.part(kernel),),
    )


def _sources(context: LoweringContext) -> tuple[list[Expression], tuple[Blob, ...]]:
    sources: list[Expression] = []
    blobs: list[Blob] = []
    for index in range(len(context.layer.inputs)):
        if context.is_constant(index):
            blobs.append(context.blob(f"input_{index}", np.asarray(context.constant(index))))
            sources.append(Identifier(blobs[-1].name))
        else:
            sources.append(context.input_pointer(index))
    return sources, tuple(blobs)
