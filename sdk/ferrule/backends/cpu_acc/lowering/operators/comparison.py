# SPDX-License-Identifier: Apache-2.0
"""Comparisons, LOGICAL_AND, LOGICAL_OR and SELECT_V2 in C."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ferrule.backends.contribution import KERNELS
from ferrule.backends.cpu_acc.lowering.operators.binary import (
    binary_call,
    broadcast_shape,
    merged_axes,
    padded,
    term_fields,
    without_parameters,
)
from ferrule.backends.cpu_acc.lowering.operators.movement import bytes_for_c
from ferrule.backends.firmware import Blob, LoweredOp, LoweringContext, parameter_table
from ferrule.dom import Call, Evaluate, Expression, Identifier
from ferrule.graph import DataType, LayerType
from ferrule.operators.comparison import term_of
from ferrule.operators.select import MAX_AXES

_IN_ORDER, _SWAPPED = (0, 1), (1, 0)
_COMPARISONS: Mapping[LayerType, tuple[str, tuple[int, int]]] = {
    LayerType.EQUAL: ("equal", _IN_ORDER),
    LayerType.GREATER: ("less", _SWAPPED),
    LayerType.GREATER_EQUAL: ("less_equal", _SWAPPED),
    LayerType.LESS: ("less", _IN_ORDER),
    LayerType.LESS_EQUAL: ("less_equal", _IN_ORDER),
    LayerType.NOT_EQUAL: ("not_equal", _IN_ORDER),
}
_SUFFIX = {
    DataType.FLOAT32: "f32",
    DataType.INT8: "s8",
    DataType.INT32: "s32",
    DataType.INT64: "s64",
    DataType.BOOL: "bool",
}


def lower_comparison(context: LoweringContext) -> LoweredOp:
    """Return the call for a comparison; x > y is y < x."""
    name, order = _COMPARISONS[context.layer.type]
    dtype = context.input(0).dtype
    kernel = f"{name}_{_SUFFIX[dtype]}"
    if dtype is not DataType.INT8:
        return without_parameters(context, kernel, header="compare", order=order)
    first, second = (term_fields(term_of(context.input(index))) for index in order)
    return binary_call(
        context,
        kernel,
        "compare_params",
        header="compare",
        order=order,
        shape=broadcast_shape(context, order),
        first=first,
        second=second,
    )


def lower_logical(context: LoweringContext) -> LoweredOp:
    """Return the call for LOGICAL_AND or LOGICAL_OR."""
    return without_parameters(context, f"{context.layer.type.lower()}_bool", header="compare")


def lower_select(context: LoweringContext) -> LoweredOp:
    """Return the call for SELECT_V2, whose kernel depends on the size of the elements only."""
    kernel = f"select_{8 * context.operands.output.dtype.size_bytes}"
    extents, *strides = merged_axes(context, range(3))
    names = ("condition_strides", "first_strides", "second_strides")
    parameters, pointer = parameter_table(
        context,
        "ferrule_select_params",
        extents=padded(extents, 1, MAX_AXES),
        **{name: padded(values, 0, MAX_AXES) for name, values in zip(names, strides, strict=True)},
    )
    blobs: list[Blob] = []
    arguments: list[Expression] = [pointer]
    for index in range(3):
        if context.is_constant(index):
            blobs.append(context.blob(f"input_{index}", bytes_for_c(np.asarray(context.constant(index)))))
            arguments.append(Identifier(blobs[-1].name))
        else:
            arguments.append(context.input_pointer(index))
    return LoweredOp(
        kernel=kernel,
        statements=(Evaluate(Call(Identifier(f"ferrule_{kernel}"), (*arguments, context.output_pointer()))),),
        declarations=(parameters,),
        blobs=tuple(blobs),
        headers=("ferrule/kernels/select.h",),
        contributions=(KERNELS.part(kernel),),
    )
