# SPDX-License-Identifier: Apache-2.0
"""GATHER, GATHER_ND, EMBEDDING_LOOKUP, DYNAMIC_UPDATE_SLICE and a SLICE that begins at run time in C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import int32s
from ferrule.backends.cpu_acc.lowering.operators.movement import lower_strided
from ferrule.backends.cpu_acc.lowering.strided_copy import Copies, dense_strides, merged_axes
from ferrule.backends.firmware import FieldValue, LoweredOp, LoweringContext, struct_value
from ferrule.dom import Expression
from ferrule.graph import LayerType, Shape
from ferrule.operators.movement.gather import gathering

_AXES = 5
"""The value of FERRULE_GATHER_AXES in the C kernels."""
_HEADER = "ferrule/kernels/gather.h"


def lower_gather(context: LoweringContext) -> LoweredOp:
    """Return the call for GATHER, GATHER_ND or EMBEDDING_LOOKUP."""
    position = 1 if context.layer.type is LayerType.EMBEDDING_LOOKUP else 0
    data = context.input(position)
    way = gathering(context.layer.descriptor, data, context.input(1 - position))
    size_bytes = data.dtype.size_bytes
    copies = Copies(context)
    fields: Mapping[str, FieldValue] = {
        "batches": way.batches,
        "outer": way.outer,
        "count": way.count,
        "depth": len(way.extents),
        "limits": _padded([extent - 1 for extent in way.extents]),
        "strides": _padded([stride * size_bytes for stride in way.strides]),
        "block": data.size_bytes // (way.batches * way.outer),
        "run": way.run * size_bytes,
    }
    source, indices = copies.source(position), copies.source(1 - position)
    copies.call("gather", "gather_params", fields, source, indices, context.output_pointer())
    return copies.lowered(header=_HEADER)


def lower_update_slice(context: LoweringContext) -> LoweredOp:
    """Return the copy of the data and the call that replaces a part for DYNAMIC_UPDATE_SLICE."""
    shape, update = context.source.shape, context.input(1).shape
    strides = dense_strides(shape)
    copies = Copies(context)
    copies.copy(shape, strides, strides)
    return _with_part(context, copies, "update_slice", shape, update, (dense_strides(update), strides))


def lower_slice(context: LoweringContext) -> LoweredOp:
    """Return the copy for SLICE, whose begin is a constant or a tensor."""
    if len(context.layer.inputs) == 1:
        return lower_strided(context)
    shape, part = context.source.shape, context.output.shape
    return _with_part(context, Copies(context), "take_slice", shape, part, (dense_strides(shape), dense_strides(part)))


def _with_part(
    context: LoweringContext,
    copies: Copies,
    kernel: str,
    whole: Shape,
    part: Shape,
    strides: tuple[Sequence[int], Sequence[int]],
) -> LoweredOp:
    """Return the lowering whose last call copies a part of a tensor, the place of which is known at run time.

    The last two inputs are the elements and the place.
    """
    size_bytes = context.output.dtype.size_bytes
    fields: Mapping[str, FieldValue] = {
        "copy": struct_value(copies.run_fields(merged_axes(part, *strides))),
        "axes": len(whole),
        "limits": _padded(np.subtract(whole, part).tolist()),
        "strides": _padded([stride * size_bytes for stride in dense_strides(whole)]),
    }
    last = len(context.layer.inputs) - 1
    arguments: list[Expression] = [copies.source(last - 1), copies.source(last), context.output_pointer()]
    copies.call(kernel, "update_slice_params", fields, *arguments, uses=("copy_runs",))
    return copies.lowered(header=_HEADER)


def _padded(values: Sequence[int]) -> FieldValue:
    return int32s([*values, *[0] * (_AXES - len(values))])
