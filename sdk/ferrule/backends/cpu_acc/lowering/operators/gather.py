# SPDX-License-Identifier: Apache-2.0
"""GATHER, GATHER_ND, EMBEDDING_LOOKUP, DYNAMIC_UPDATE_SLICE and a SLICE that begins at run time in C."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ferrule.backends.cpu_acc.lowering.operators.movement import (
    Movement,
    Movements,
    axes_of,
    dense_strides,
    int32s,
    lower_constant_slice,
)
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.dom import Aggregate, ArrayData, Field, Integer
from ferrule.graph import LayerType, Shape, TensorInfo
from ferrule.operators.gather import gathering

_AXES = 5
"""The value of FERRULE_GATHER_AXES in the C kernels."""
_HEADER = "ferrule/kernels/gather.h"


def lower_gather(context: LoweringContext) -> LoweredOp:
    """Return the call for GATHER, GATHER_ND or EMBEDDING_LOOKUP."""
    position = 1 if context.layer.type is LayerType.EMBEDDING_LOOKUP else 0
    data = context.input(position)
    way = gathering(context.layer.descriptor, data, context.input(1 - position))
    size_bytes = data.dtype.size_bytes
    movements = Movements(context)
    fields = (
        Field(Integer(way.batches), "batches"),
        Field(Integer(way.outer), "outer"),
        Field(Integer(way.count), "count"),
        Field(Integer(len(way.extents)), "depth"),
        Field(_padded([extent - 1 for extent in way.extents]), "limits"),
        Field(_padded([stride * size_bytes for stride in way.strides]), "strides"),
        Field(Integer(data.size_bytes // (way.batches * way.outer)), "block"),
        Field(Integer(way.run * size_bytes), "run"),
    )
    source, indices = movements.source(position), movements.source(1 - position)
    movements.call("gather", "ferrule_gather_params", fields, source, indices, context.output_pointer())
    return movements.lowered(context.layer.type.lower(), header=_HEADER)


def lower_update_slice(context: LoweringContext) -> LoweredOp:
    """Return the copy of the data and the call that replaces a part for DYNAMIC_UPDATE_SLICE."""
    data, update = context.input(0), context.input(1)
    size_bytes, target = data.dtype.size_bytes, context.output_pointer()
    strides = dense_strides(data.shape)
    movements = Movements(context)
    whole = Movement(axes=axes_of(data.shape, strides, strides))
    movements.copy(whole, size_bytes, movements.source(0), target)
    part = Movement(axes=axes_of(update.shape, dense_strides(update.shape), strides))
    fields = _part_fields(movements, part, data, update.shape)
    source, starts = movements.source(1), movements.source(2)
    movements.call("update_slice", "ferrule_update_slice_params", fields, source, starts, target, uses=("copy_runs",))
    return movements.lowered("dynamic_update_slice", header=_HEADER)


def lower_slice(context: LoweringContext) -> LoweredOp:
    """Return the copy for SLICE, whose begin is a constant or a tensor."""
    if len(context.layer.inputs) == 1:
        return lower_constant_slice(context)
    data, shape = context.input(0), context.operands.output.shape
    movements = Movements(context)
    part = Movement(axes=axes_of(shape, dense_strides(data.shape), dense_strides(shape)))
    fields = _part_fields(movements, part, data, shape)
    source, starts = movements.source(0), movements.source(1)
    arguments = (source, starts, context.output_pointer())
    movements.call("take_slice", "ferrule_update_slice_params", fields, *arguments, uses=("copy_runs",))
    return movements.lowered("slice", header=_HEADER)


def _part_fields(movements: Movements, part: Movement, whole: TensorInfo, shape: Shape) -> tuple[Field, ...]:
    """Return the members of the table for a part of a tensor whose place is known at run time."""
    size_bytes, strides = whole.dtype.size_bytes, dense_strides(whole.shape)
    return (
        Field(Aggregate(movements.run_fields(part, size_bytes)), "copy"),
        Field(Integer(len(strides)), "axes"),
        Field(_padded(np.subtract(whole.shape, shape).tolist()), "limits"),
        Field(_padded([stride * size_bytes for stride in strides]), "strides"),
    )


def _padded(values: Sequence[int]) -> ArrayData:
    return int32s([*values, *[0] * (_AXES - len(values))])
