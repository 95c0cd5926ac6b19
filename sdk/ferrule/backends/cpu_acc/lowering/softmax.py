# SPDX-License-Identifier: Apache-2.0
"""SOFTMAX in C."""

from __future__ import annotations

from ferrule.backends.cpu_acc.lowering.unary import unary_call
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType
from ferrule.operators.softmax import SoftmaxDescriptor, exponentials, int16_multiplier, int16_tables


def lower_softmax(context: LoweringContext) -> LoweredOp:
    """Return the call of the kernel for the layer's types; exponentials of int8 differences are tabulated."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, SoftmaxDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    source, output = context.input(0), context.operands.output
    depth = source.shape[-1]
    rows = source.elements // depth
    match source.dtype, output.dtype:
        case (DataType.INT8, DataType.INT8 | DataType.INT16):
            table = context.blob("exponentials", exponentials(descriptor.beta, source.scale))
            return unary_call(
                context,
                "softmax_s8" if output.dtype is DataType.INT8 else "softmax_s8_s16",
                header="softmax",
                parameters="softmax_s8_params",
                exponentials=table,
                count=int(table.data.size),
                rows=rows,
                depth=depth,
            )
        case (DataType.INT16, DataType.INT16):
            exp_table, inverse_table = int16_tables()
            multiplier, shift = int16_multiplier(descriptor.beta, source.scale)
            return unary_call(
                context,
                "softmax_s16",
                header="softmax",
                parameters="softmax_s16_params",
                exp_table=context.blob("exp_table", exp_table),
                inverse_table=context.blob("inverse_table", inverse_table),
                multiplier=multiplier,
                shift=shift,
                rows=rows,
                depth=depth,
            )
        case (DataType.FLOAT32, DataType.FLOAT32):
            return unary_call(
                context,
                "softmax_f32",
                header="softmax",
                parameters="softmax_f32_params",
                sources=("expf",),
                beta=descriptor.beta,
                rows=rows,
                depth=depth,
            )
        case _:
            raise UnsupportedError(
                f"layer '{context.layer.name}': there is no kernel for SOFTMAX of {source.dtype} to {output.dtype}"
            )
