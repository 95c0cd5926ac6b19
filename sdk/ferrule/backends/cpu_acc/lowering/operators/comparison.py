# SPDX-License-Identifier: Apache-2.0
"""Comparisons, LOGICAL_AND, LOGICAL_OR and SELECT_V2 in C."""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.backends.cpu_acc.lowering.kernel_call import SUFFIXES, KernelCall, kernel_of
from ferrule.backends.cpu_acc.lowering.operators.binary import binary_call, broadcast_axes, term_fields
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.graph import DataType, LayerType
from ferrule.operators.elementwise.comparison import term_of
from ferrule.operators.elementwise.select import MAX_AXES

_HEADER = "ferrule/kernels/compare.h"
_MIRRORED: Mapping[LayerType, LayerType] = {
    LayerType.GREATER: LayerType.LESS,
    LayerType.GREATER_EQUAL: LayerType.LESS_EQUAL,
}
"""The comparisons that are another one of exchanged inputs."""


def lower_comparison(context: LoweringContext) -> LoweredOp:
    """Return the call for a comparison; x > y is y < x."""
    type_, dtype, fields, table = context.layer.type, context.source.dtype, {}, ""
    order = (1, 0) if type_ in _MIRRORED else (0, 1)
    if dtype is DataType.INT8:
        first, second = (term_fields(term_of(context.input(index))) for index in order)
        fields, table = {"first": first, "second": second}, "compare_params"
    kernel, source = f"{_MIRRORED.get(type_, type_).lower()}_{SUFFIXES[dtype]}", f"compare_{SUFFIXES[dtype]}"
    return binary_call(context, KernelCall(kernel, _HEADER, fields, table=table, source=source), order)


def lower_logical(context: LoweringContext) -> LoweredOp:
    """Return the call for LOGICAL_AND or LOGICAL_OR."""
    return binary_call(context, KernelCall(kernel_of(context), _HEADER, {}))


def lower_select(context: LoweringContext) -> LoweredOp:
    """Return the call for SELECT_V2, whose kernel depends on the size of the elements only."""
    names = ("extents", "condition_strides", "first_strides", "second_strides")
    fields = dict(zip(names, broadcast_axes(context, range(3), MAX_AXES), strict=True))
    kernel = f"select_{8 * context.output.dtype.size_bytes}"
    return KernelCall(kernel, "ferrule/kernels/select.h", fields, table="select_params", inputs=range(3)).lowered(
        context
    )
