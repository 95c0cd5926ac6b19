# SPDX-License-Identifier: Apache-2.0
"""The shape of layers with one input and one output: a parameter table and one call."""

from __future__ import annotations

import numpy as np

from ferrule.backends.contribution import KERNELS
from ferrule.backends.firmware import Blob, FieldValue, LoweredOp, LoweringContext, parameter_table
from ferrule.dom import Call, Evaluate, Expression, Identifier
from ferrule.graph import DataType
from ferrule.memory.request import Overlap


def unary_call(
    context: LoweringContext,
    kernel: str,
    *,
    header: str,
    parameters: str,
    sources: tuple[str, ...] = (),
    **fields: FieldValue,
) -> LoweredOp:
    """Return the call ferrule_<kernel>(parameters, input, output).

    The kernel must read each element before it writes the one at the same index, and none after that; so the output
    may lie over the input.

    `parameters` is the tag of the parameter struct without `ferrule_`, and `fields` are its members in order.
    `sources` names the kernel's other sources among the kernels that Ferrule ships.
    """
    source, output = context.input(0), context.operands.output
    variable, pointer = parameter_table(context, f"ferrule_{parameters}", **fields)
    blobs = [value for value in fields.values() if isinstance(value, Blob)]
    overlaps: tuple[Overlap, ...] = ()
    if context.is_constant(0):
        data = context.blob("input", np.asarray(context.constant(0)))
        blobs.append(data)
        origin: Expression = Identifier(data.name)
    else:
        origin = context.input_pointer(0)
    if not context.is_constant(0) and _may_alias(source.dtype, output.dtype):
        distance = max(output.size_bytes - source.size_bytes, 0)
        overlaps = (Overlap(input=source.name, output=output.name, distance_bytes=distance),)
    call = Call(Identifier(f"ferrule_{kernel}"), (pointer, origin, context.output_pointer()))
    return LoweredOp(
        kernel=kernel,
        statements=(Evaluate(call),),
        declarations=(variable,),
        blobs=tuple(blobs),
        overlaps=overlaps,
        headers=(f"ferrule/kernels/{header}.h",),
        contributions=(KERNELS.part(kernel, *sources),),
    )


def lower_elementwise_unary(context: LoweringContext) -> LoweredOp:
    """Return the call of the kernel that is called after the layer's type."""
    return unary_call(
        context,
        f"{context.layer.type.lower()}_f32",
        header="elementwise_unary",
        parameters="elementwise_unary_params",
        elements=context.input(0).elements,
    )


def _may_alias(source: DataType, output: DataType) -> bool:
    """Whether C lets one piece of memory be read as one of the types and written as the other."""
    return source is output or DataType.INT8 in {source, output}
