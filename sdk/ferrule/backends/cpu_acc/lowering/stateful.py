# SPDX-License-Identifier: Apache-2.0
"""Calls of kernels with several tensors, among them states, which the kernels may replace in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ferrule.backends.contribution import KERNELS
from ferrule.backends.firmware import Blob, FieldValue, LoweredOp, LoweringContext, parameter_table
from ferrule.dom import Call, Evaluate, Expression, Identifier
from ferrule.memory.request import Overlap


def stateful_call(
    context: LoweringContext,
    kernel: str,
    fields: Mapping[str, FieldValue],
    *,
    header: str,
    table: str,
    inputs: Sequence[int],
    states: Mapping[int, int],
    sources: tuple[str, ...] = (),
    extra_blobs: tuple[Blob, ...] = (),
    scratch_bytes: int = 0,
) -> LoweredOp:
    """Return the call ferrule_<kernel>(parameters, inputs..., outputs...[, scratch]).

    `inputs` are positions, and `states` maps those of old states to the outputs with the new ones. A kernel that gets
    a state goes through its elements from the first to the last, and writes each only after it has read the old one.
    """
    parameters, pointer = parameter_table(context, f"ferrule_{table}", **fields)
    blobs = [*extra_blobs, *(value for value in fields.values() if isinstance(value, Blob))]
    arguments: list[Expression] = [pointer]
    for index in inputs:
        if context.is_constant(index):
            data = context.blob(f"input_{index}", np.asarray(context.constant(index)))
            blobs.append(data)
            arguments.append(Identifier(data.name))
        else:
            arguments.append(context.input_pointer(index))
    arguments += [context.output_pointer(index) for index in range(len(context.layer.outputs))]
    if scratch_bytes:
        arguments.append(context.scratch)
    overlaps = tuple(
        Overlap(input=context.input(old).name, output=context.operands.outputs[new].name, distance_bytes=0)
        for old, new in states.items()
        if not context.is_constant(old)
    )
    return LoweredOp(
        kernel=kernel,
        statements=(Evaluate(Call(Identifier(f"ferrule_{kernel}"), tuple(arguments))),),
        declarations=(parameters,),
        blobs=tuple(blobs),
        scratch_bytes=scratch_bytes,
        overlaps=overlaps,
        headers=(f"ferrule/kernels/{header}.h",),
        contributions=(KERNELS.part(kernel, *sources),),
    )
