# SPDX-License-Identifier: Apache-2.0
"""Rows of operators that move elements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.onnx import shapes
from ferrule.formats.onnx.call import Call, Value, joined
from ferrule.formats.onnx.layout import Layout, identity
from ferrule.formats.onnx.node import elements
from ferrule.formats.onnx.rows import MANY, Row
from ferrule.formats.onnx.windows import MAX_EXTENT
from ferrule.graph import Array, DataType, LayerType, Shape
from ferrule.operators.movement.gather import GatherDescriptor
from ferrule.operators.movement.join import ConcatenationDescriptor, SplitDescriptor, SplitVDescriptor
from ferrule.operators.movement.mirror import MirrorPadDescriptor
from ferrule.operators.movement.pad import PadDescriptor, PadV2Descriptor
from ferrule.operators.movement.repeat import BroadcastToDescriptor, TileDescriptor
from ferrule.operators.movement.reshape import ReshapeDescriptor
from ferrule.operators.movement.slice import SliceDescriptor, StridedSliceDescriptor


def _reshape(call: Call) -> Value:
    """Return the first input with another shape."""
    shape = shapes.RESHAPES[call.node.key](call.node, call.shape(), call.integers)
    if call.constant(0) is not None:
        return call.tensor(0, None, shape)
    x = call.value()
    new = x.layout.reshaped(shape)
    if new.is_pending:
        return x.ordered(new)
    return Value(call, call.emission.reshaped(x.tensor, new.stored, call.wanted(0, new)), new)


def _transpose(call: Call) -> Value:
    rank = call.rank()
    permutation = call.node.integers("perm", identity(rank)[::-1])
    if sorted(permutation) != list(range(rank)):
        raise ModelError(f"its attribute 'perm' is {list(permutation)}, expected each of {rank} axes once")
    if call.constant(0) is not None:
        return call.tensor(0, permutation).ordered(None)
    x = call.ordered()
    return x.ordered(x.layout.transposed(permutation))


def _largest_order(call: Call, positions: Sequence[int]) -> tuple[int, ...]:
    """Return the order of axes of the largest of some inputs with as many axes, preferring one that is not plain."""
    orders = [
        (elements(call.shape(position)), order != identity(len(order)), order)
        for position in positions
        if call.constant(position) is None and (order := call.ordered(position).order)
    ]
    return max(orders)[2] if orders else identity(call.rank(positions[0]))


def _concat(call: Call) -> Value:
    positions = range(len(call.node.inputs))
    axis = call.axis(None)
    if any(call.rank(position) != call.rank() for position in positions):
        raise ModelError("its inputs differ in the number of axes")
    if len(positions) == 1:
        return call.value()
    order = _largest_order(call, positions)
    parts = [call.tensor(position, order) for position in positions]
    return joined(ConcatenationDescriptor(axis=order.index(axis)), parts)


def _split(call: Call) -> Value | None:
    axis, parts = call.axis(), len(call.node.outputs)
    sizes = shapes.static(shapes.split_sizes(call.shape()[axis], call.integers(1, "sizes"), parts))
    x = call.ordered()
    place = x.order.index(axis)
    if parts == 1:
        return call.value()
    equal = len(set(sizes)) == 1
    results = x.many(
        SplitDescriptor(axis=place, splits=parts) if equal else SplitVDescriptor(axis=place, sizes=sizes),
        wanted=[call.wanted(index, x.layout) for index in range(parts)],
        stored=[call.stored(index) for index in range(parts)],
        layer=call.layer_name,
    )
    call.declare_all(results)
    return None


def _slice(call: Call) -> Value:
    ranges = shapes.sliced(call.shape(), call.integers)
    shapes.static([len(each) for each in ranges])
    if all(each == range(extent) for each, extent in zip(ranges, call.shape(), strict=True)):
        return call.value()
    x = call.ordered()
    ranges = x.in_order(ranges)
    begin, strides = tuple(each.start for each in ranges), tuple(each.step for each in ranges)
    if set(strides) == {1}:
        return x.then(SliceDescriptor(begin=begin, size=tuple(map(len, ranges))))
    end = tuple(each.start + len(each) * each.step for each in ranges)
    mask = sum(1 << axis for axis, last in enumerate(end) if last < 0)
    return x.then(StridedSliceDescriptor(begin=begin, end=end, strides=strides, end_mask=mask))


_PAD_MODES = ("constant", "reflect", "edge", "wrap")


def _pad(call: Call) -> Value:
    mode = call.node.choice("mode", "constant", _PAD_MODES)
    rank, pads, axes = call.rank(), call.integers(1, "pads") or (), call.integers(3, "axes")
    chosen = identity(rank) if axes is None else shapes.front_axes(axes, rank)
    if len(pads) != 2 * len(chosen):
        raise ModelError(f"it has {len(pads)} pads for {len(chosen)} axes, expected two for each")
    if max(map(abs, pads), default=0) > MAX_EXTENT:
        raise UnsupportedError(f"its pads are {list(pads)}, expected numbers from -{MAX_EXTENT} to {MAX_EXTENT}")
    if not any(pads):
        return call.value()
    sides = dict(zip(chosen, zip(pads, pads[len(chosen) :], strict=False), strict=True))
    x = call.ordered()
    before, after = zip(*(sides.get(axis, (0, 0)) for axis in x.order), strict=True)
    if min(pads) < 0:
        x = _cropped(x, before, after)
        before, after = (tuple(max(each, 0) for each in side) for side in (before, after))
        if not any(before) and not any(after):
            return x
    value = call.scalar(2, "value")
    quantization, is_float = x.info.quantization, x.dtype.is_float
    if value is not None and not is_float and not math.isfinite(value):
        raise ModelError(f"its value is {value}, expected an integer")
    if mode in {"edge", "wrap"}:
        return _repeated(x, before, after, mode)
    if mode == "reflect":
        return x.then(MirrorPadDescriptor(before=before, after=after, reflect=True))
    if value is None or value == (quantization.zero_point if quantization else 0):
        return x.then(PadDescriptor(before=before, after=after))
    return x.then(PadV2Descriptor(before=before, after=after, value=value if is_float else int(value)))


def _cropped(x: Value, before: Sequence[int], after: Sequence[int]) -> Value:
    """Return a tensor without the elements that negative pads take away at the ends of each axis."""
    begin = tuple(max(-each, 0) for each in before)
    size = [extent - first - max(-last, 0) for extent, first, last in zip(x.shape, begin, after, strict=True)]
    return x.then(SliceDescriptor(begin=begin, size=shapes.static(size)))


def _repeated(x: Value, before: Sequence[int], after: Sequence[int], mode: str) -> Value:
    """Return a tensor with its outermost elements, or those of the other end, repeated along each axis."""
    for axis, (first, last) in enumerate(zip(before, after, strict=True)):
        extent = x.shape[axis]
        places = np.arange(-first, extent + last, dtype=np.int32)
        places = np.clip(places, 0, extent - 1) if mode == "edge" else places % extent
        if first or last:
            x = x.then(GatherDescriptor(axis=axis), x.call.array(places.astype(np.int32), f"places_{axis}"))
    return x


def _expand(call: Call) -> Value:
    shape = shapes.static(shapes.expanded(call.shape(), call.integers(1, "shape") or ()))
    if shape == call.shape():
        return call.value()
    full = (1,) * (len(shape) - call.rank()) + call.shape()
    order = call.ordered().order if call.rank() == len(shape) else identity(len(shape))
    x = call.tensor(0, order, full)
    return x.then(BroadcastToDescriptor(shape=x.in_order(shape)))


def _tile(call: Call) -> Value:
    repeats = call.integers(1, "repeats") or ()
    if len(repeats) != call.rank():
        raise ModelError(f"it has {len(repeats)} repeats for {call.rank()} axes")
    shapes.static(repeats)
    x = call.ordered()
    return x.then(TileDescriptor(multiples=x.in_order(repeats)))


def _gather(call: Call) -> Value:
    axis, indices = call.axis(), call.constant(1)
    extent = call.shape()[axis]
    if indices is None:
        rows = positions(call, np.array(extent, np.int32))
        return call.tensor(0).then(GatherDescriptor(axis=axis), rows)
    check_indices(indices, extent)
    x = call.ordered()
    flat = (indices.reshape(-1) % extent).astype(np.int32)
    split = tuple(flat.size if each == axis else size for each, size in enumerate(call.shape()))
    place, shape = x.order.index(axis), (*split[:axis], *indices.shape, *split[axis + 1 :])
    plain = Layout.ordered(x.order, split)
    if flat.size == 1 and indices.ndim != 1:
        begin = tuple(int(flat[0]) if each == axis else 0 for each in x.order)
        taken = x.then(SliceDescriptor(begin=begin, size=plain.stored))
    else:
        taken = x.then(GatherDescriptor(axis=place), call.array(flat, "indices"))
    if indices.ndim == 1:
        return taken
    layout = plain.reshaped(shapes.static(shape))
    return taken.then(ReshapeDescriptor(shape=layout.stored)).ordered(layout)


def check_indices(indices: Array, extent: int) -> None:
    """Refuse indices that are none of an axis with an extent; those that are negative count from the end."""
    if indices.dtype.kind not in "iu":
        raise ModelError(f"its indices are {indices.dtype}, expected integers")
    if np.any(indices < -extent) or np.any(indices >= extent):
        raise ModelError(f"its indices are not within {-extent} to {extent - 1}")


def positions(call: Call, extents: Array) -> Value:
    """Return the second input, indices from run time, as int32; those that are negative count from the end."""
    return call.tensor(1).cast(DataType.INT32).then(LayerType.FLOOR_MOD, call.array(extents, "extents"))


def _gather_nd(call: Call) -> Value:
    if call.node.flag("batch_dims"):
        raise UnsupportedError(f"its attribute 'batch_dims' is {call.node.integer('batch_dims')}, expected 0")
    if not call.rank(1) or call.shape(1)[-1] > call.rank():
        raise ModelError(f"its indices have the shape {list(call.shape(1))}")
    shape, count, indices = call.shape(), call.shape(1)[-1], call.constant(1)
    extents = np.array(shape[:count], np.int32)
    if indices is None:
        return call.tensor(0).then(LayerType.GATHER_ND, positions(call, extents))
    for axis, extent in enumerate(shape[:count]):
        check_indices(indices[..., axis], extent)
    rows = np.ravel_multi_index(tuple(np.moveaxis(indices % extents, -1, 0)), shape[:count]).reshape(-1)
    x = call.tensor(0, None, (elements(shape[:count]), elements(shape[count:])))
    return gathered(x, call.array(rows.astype(np.int32), "rows"), (*indices.shape[:-1], *shape[count:]))


def gathered(x: Value, rows: Value, shape: Shape) -> Value:
    """Return some rows of a tensor as a tensor of a shape."""
    return x.then(GatherDescriptor(axis=0), rows).then(ReshapeDescriptor(shape=shapes.static(shape)))


ROWS: Mapping[str, Row] = {
    "Concat": Row(_concat, 1, MANY),
    "Expand": Row(_expand, 2),
    "Flatten": Row(_reshape),
    "Gather": Row(_gather, 2),
    "GatherND": Row(_gather_nd, 2),
    "Pad": Row(_pad, 2, 4),
    "Reshape": Row(_reshape, 2),
    "Slice": Row(_slice, 3, 5),
    "Split": Row(_split, 1, 2, outputs=MANY),
    "Squeeze": Row(_reshape, 1, 2),
    "Tile": Row(_tile, 2),
    "Transpose": Row(_transpose),
    "Unsqueeze": Row(_reshape, 2),
}
