# SPDX-License-Identifier: Apache-2.0
"""ADD_N in C."""

from __future__ import annotations

from dataclasses import asdict

from ferrule.backends.contribution import KERNELS
from ferrule.backends.cpu_acc.lowering.kernel_call import input_place
from ferrule.backends.cpu_acc.lowering.overlap import replaced_overlaps
from ferrule.backends.firmware import Blob, LoweredOp, LoweringContext, parameter_table, struct_value
from ferrule.dom import Evaluate, Expression, call_of
from ferrule.graph import DataType
from ferrule.operators.elementwise.add_n import integer_sum


def lower_add_n(context: LoweringContext) -> LoweredOp:
    """Return ADD_N as one call per further float32 input, or as one call per int8 input with sums in scratch."""
    operands, output = context.operands, context.output_pointer()
    names, elements = context.layer.inputs, operands.output.elements
    blobs: dict[str, Blob] = {}
    sources = [input_place(context, index, blobs) for index in range(len(names))]
    calls: list[tuple[str, tuple[Expression, ...]]]
    scratch_bytes = 0
    if operands.output.dtype is DataType.INT8:
        kernel, scratch_bytes = "add_n_s8", 2 * elements
        arithmetic = integer_sum(operands)
        parameters, pointer = parameter_table(
            context,
            "ferrule_add_n_s8_params",
            zero_point=arithmetic.zero_point,
            result=struct_value(asdict(arithmetic.result)),
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
    late = {name for index, name in enumerate(names) if index not in early}
    return LoweredOp(
        kernel=kernel,
        statements=tuple(Evaluate(call_of(f"ferrule_{name}", *arguments)) for name, arguments in calls),
        declarations=(parameters,),
        blobs=tuple(blobs.values()),
        scratch_bytes=scratch_bytes,
        scratch_alignment=4,
        overlaps=replaced_overlaps(context, {index: 0 for index in early if names[index] not in late}),
        headers=("ferrule/kernels/add_n.h",),
        contributions=(KERNELS.part(kernel),),
    )
