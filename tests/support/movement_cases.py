# SPDX-License-Identifier: Apache-2.0
"""Random networks of one layer that only moves elements."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st
from layer_case import layer_network, tensor

from ferrule.graph import DataType, Descriptor, LayerType, Shape, TensorInfo
from ferrule.network import Network
from ferrule.operators.movement.block import (
    BatchToSpaceNdDescriptor,
    DepthToSpaceDescriptor,
    SpaceToBatchNdDescriptor,
    SpaceToDepthDescriptor,
)
from ferrule.operators.movement.gather import (
    DynamicUpdateSliceDescriptor,
    EmbeddingLookupDescriptor,
    GatherDescriptor,
    GatherNdDescriptor,
)
from ferrule.operators.movement.join import ConcatenationDescriptor, SplitDescriptor, SplitVDescriptor
from ferrule.operators.movement.mirror import MirrorPadDescriptor, ReverseV2Descriptor
from ferrule.operators.movement.pad import PadDescriptor, PadV2Descriptor
from ferrule.operators.movement.repeat import BroadcastToDescriptor, FillDescriptor, TileDescriptor, ZerosLikeDescriptor
from ferrule.operators.movement.reshape import ExpandDimsDescriptor, ReshapeDescriptor, SqueezeDescriptor
from ferrule.operators.movement.slice import SliceDescriptor, StridedSliceDescriptor
from ferrule.operators.movement.stack import PackDescriptor, UnpackDescriptor
from ferrule.operators.movement.transpose import TransposeDescriptor

COMMON = (DataType.FLOAT32, DataType.INT8, DataType.INT16)
NARROW = (*COMMON, DataType.INT32)
WIDE = (*NARROW, DataType.INT64, DataType.BOOL, DataType.UINT8)


def shapes(most_axes: int, least_axes: int = 1, most: int = 5) -> st.SearchStrategy[Shape]:
    return st.lists(st.integers(1, most), min_size=least_axes, max_size=most_axes).map(tuple)


def info(name: str, shape: Shape, dtype: DataType, zero_point: int = 0) -> TensorInfo:
    quantised = dtype in {DataType.INT8, DataType.INT16, DataType.UINT8}
    zero_point = {DataType.INT8: zero_point, DataType.UINT8: zero_point + 128}.get(dtype, 0)
    return tensor(name, shape, dtype, 0.25 if quantised else None, zero_point)


@st.composite
def _source(draw: st.DrawFn, types: tuple[DataType, ...], most_axes: int) -> TensorInfo:
    zero_point = draw(st.sampled_from([-128, -1, 0, 3, 127]))
    return info("input", draw(shapes(most_axes)), draw(st.sampled_from(types)), zero_point)


@st.composite
def reshapes(draw: st.DrawFn) -> Network:
    source = draw(_source(WIDE, 4))
    extents = [*source.shape]
    if draw(st.booleans()):
        extents = [source.elements]
    if draw(st.booleans()):
        extents[draw(st.integers(0, len(extents) - 1))] = -1
    descriptor = ReshapeDescriptor(shape=tuple(draw(st.permutations(extents))))
    return layer_network(LayerType.RESHAPE, descriptor, [source], source.quantization)


@st.composite
def squeezes(draw: st.DrawFn) -> Network:
    source = draw(_source(WIDE, 4))
    ones = [axis for axis, extent in enumerate(source.shape) if extent == 1]
    axes = draw(st.lists(st.sampled_from(ones), unique=True)) if ones else []
    return layer_network(LayerType.SQUEEZE, SqueezeDescriptor(axes=tuple(sorted(axes))), [source], source.quantization)


@st.composite
def expansions(draw: st.DrawFn) -> Network:
    source = draw(_source(WIDE, 4))
    descriptor = ExpandDimsDescriptor(axis=draw(st.integers(0, len(source.shape))))
    return layer_network(LayerType.EXPAND_DIMS, descriptor, [source], source.quantization)


@st.composite
def pads(draw: st.DrawFn) -> Network:
    source = draw(_source(WIDE, 5))
    sides = st.lists(st.integers(0, 3), min_size=len(source.shape), max_size=len(source.shape)).map(tuple)
    before, after = draw(sides), draw(sides)
    if draw(st.booleans()):
        descriptor = PadDescriptor(before=before, after=after)
        return layer_network(LayerType.PAD, descriptor, [source], source.quantization)
    value: int | float
    if source.dtype.is_float:
        value = draw(st.sampled_from([0.0, -0.0, 1.5, -3e38, float(np.float32(0.1))]))
    elif source.dtype is DataType.BOOL:
        value = draw(st.integers(0, 1))
    else:
        limits = np.iinfo(np.int32 if source.dtype is DataType.INT64 else source.dtype.numpy)
        value = draw(st.sampled_from([0, -1, 7, int(limits.min), int(limits.max)]))
    return layer_network(
        LayerType.PADV2, PadV2Descriptor(before=before, after=after, value=value), [source], source.quantization
    )


@st.composite
def transposes(draw: st.DrawFn) -> Network:
    source = draw(_source(WIDE, 5))
    permutation = tuple(draw(st.permutations(range(len(source.shape)))))
    return layer_network(
        LayerType.TRANSPOSE, TransposeDescriptor(permutation=permutation), [source], source.quantization
    )


@st.composite
def concatenations(draw: st.DrawFn) -> Network:
    first = draw(_source(WIDE, 4))
    axis = draw(st.integers(0, len(first.shape) - 1))
    extents = draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))
    infos = [
        TensorInfo(
            f"input_{i}",
            (*first.shape[:axis], extent, *first.shape[axis + 1 :]),
            first.dtype,
            quantization=first.quantization,
        )
        for i, extent in enumerate(extents)
    ]
    return layer_network(LayerType.CONCATENATION, ConcatenationDescriptor(axis=axis), infos, first.quantization)


@st.composite
def splits(draw: st.DrawFn) -> Network:
    source = draw(_source((*NARROW, DataType.INT64, DataType.UINT8), 4))
    axis = draw(st.integers(0, len(source.shape) - 1))
    count = draw(st.integers(1, 4))
    shape = (*source.shape[:axis], source.shape[axis] * count, *source.shape[axis + 1 :])
    whole = TensorInfo("input", shape, source.dtype, quantization=source.quantization)
    return layer_network(LayerType.SPLIT, SplitDescriptor(axis=axis, splits=count), [whole], source.quantization)


@st.composite
def uneven_splits(draw: st.DrawFn) -> Network:
    source = draw(_source((*NARROW, DataType.INT64, DataType.UINT8), 4))
    axis = draw(st.integers(0, len(source.shape) - 1))
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    shape = (*source.shape[:axis], sum(sizes), *source.shape[axis + 1 :])
    whole = TensorInfo("input", shape, source.dtype, quantization=source.quantization)
    return layer_network(LayerType.SPLIT_V, SplitVDescriptor(axis=axis, sizes=sizes), [whole], source.quantization)


@st.composite
def packs(draw: st.DrawFn) -> Network:
    source = draw(_source((*NARROW, DataType.INT64, DataType.UINT8), 4))
    count = draw(st.integers(1, 4))
    infos = [info(f"input_{i}", source.shape, source.dtype) for i in range(count)]
    axis = draw(st.integers(0, len(source.shape)))
    return layer_network(LayerType.PACK, PackDescriptor(axis=axis), infos, infos[0].quantization)


@st.composite
def unpacks(draw: st.DrawFn) -> Network:
    source = draw(_source((*NARROW, DataType.UINT8, DataType.BOOL), 4))
    axis = draw(st.integers(0, len(source.shape) - 1))
    return layer_network(LayerType.UNPACK, UnpackDescriptor(axis=axis), [source], source.quantization)


@st.composite
def slices(draw: st.DrawFn) -> Network:
    source = draw(_source(WIDE, 5))
    begin = tuple(draw(st.integers(0, extent - 1)) for extent in source.shape)
    if draw(st.booleans()):
        size = tuple(draw(st.integers(1, extent - first)) for first, extent in zip(begin, source.shape, strict=True))
        infos, constants = [source, info("begin", (len(begin),), DataType.INT32)], {1: np.array(begin, np.int32)}
        return layer_network(
            LayerType.SLICE, SliceDescriptor(begin=(), size=size), infos, source.quantization, constants
        )
    size = tuple(
        draw(st.sampled_from([-1, *range(1, extent - first + 1)]))
        for first, extent in zip(begin, source.shape, strict=True)
    )
    return layer_network(LayerType.SLICE, SliceDescriptor(begin=begin, size=size), [source], source.quantization)


@st.composite
def strided_slices(draw: st.DrawFn) -> Network:
    source = draw(_source(WIDE, 5))
    begins, ends, strides = [], [], []
    begin_mask = end_mask = shrink_mask = 0
    for axis, extent in enumerate(source.shape):
        stride = draw(st.sampled_from([1, 1, 2, 3, -1, -2]))
        first = draw(st.integers(0, extent - 1))
        if draw(st.integers(0, 3)) == 0:
            shrink_mask |= 1 << axis
            stride, last = 1, first + 1
        else:
            last = draw(st.integers(first + 1, extent)) if stride > 0 else draw(st.integers(-1, first - 1))
            begin_mask |= draw(st.integers(0, 1)) << axis
            end_mask |= (1 if last < 0 else draw(st.integers(0, 1))) << axis
        # A negative index counts from the end. An end beyond the extent is drawn, too.
        begins.append(first - extent if draw(st.booleans()) else first)
        ends.append(last - extent if draw(st.booleans()) and 0 < last < extent else last + (7 if last == extent else 0))
        strides.append(stride)
    descriptor = StridedSliceDescriptor(
        begin=tuple(begins),
        end=tuple(ends),
        strides=tuple(strides),
        begin_mask=begin_mask,
        end_mask=end_mask,
        shrink_axis_mask=shrink_mask,
    )
    return layer_network(LayerType.STRIDED_SLICE, descriptor, [source], source.quantization)


@st.composite
def _indices(draw: st.DrawFn, shape: Shape, limits: list[int]) -> np.ndarray:
    """Return indices within the limits, of which the last axis has one each."""
    count = math.prod(shape)
    columns = [draw(st.lists(st.integers(0, limit - 1), min_size=count, max_size=count)) for limit in limits]
    return np.ascontiguousarray(np.array(columns, np.int32).T).reshape(*shape, len(limits))


def _indexed(
    type_: LayerType, descriptor: Descriptor, infos: list[TensorInfo], indices: np.ndarray, position: int
) -> Network:
    """Return a network whose indices are constant: the reference kernels do not check others."""
    source = infos[0]
    infos.insert(position, TensorInfo("indices", indices.shape, DataType.INT32))
    return layer_network(type_, descriptor, infos, source.quantization, {position: indices}, output_dtype=source.dtype)


@st.composite
def gathers(draw: st.DrawFn) -> Network:
    source = draw(_source(WIDE, 3))
    axis = draw(st.integers(0, len(source.shape) - 1))
    batch = draw(st.integers(0, axis))
    shape = (*source.shape[:batch], *draw(shapes(2, 0, 3)))
    indices = draw(_indices(shape, [source.shape[axis]])).reshape(shape)
    descriptor = GatherDescriptor(axis=axis, batch_dims=batch)
    return _indexed(LayerType.GATHER, descriptor, [source], indices, 1)


@st.composite
def nd_gathers(draw: st.DrawFn) -> Network:
    source = draw(_source(WIDE, 4))
    depth = draw(st.integers(1, len(source.shape)))
    indices = draw(_indices(draw(shapes(2, 1, 3)), list(source.shape[:depth])))
    return _indexed(LayerType.GATHER_ND, GatherNdDescriptor(), [source], indices, 1)


@st.composite
def lookups(draw: st.DrawFn) -> Network:
    dtype = draw(st.sampled_from(WIDE))
    source = info("input", draw(shapes(4, 2)), dtype)
    indices = draw(_indices(draw(shapes(1)), [source.shape[0]])).reshape(-1)
    return _indexed(LayerType.EMBEDDING_LOOKUP, EmbeddingLookupDescriptor(), [source], indices, 0)


@st.composite
def updates(draw: st.DrawFn) -> Network:
    source = draw(_source(WIDE, 4))
    part = tuple(draw(st.integers(1, extent)) for extent in source.shape)
    update = TensorInfo("update", part, source.dtype, quantization=source.quantization)
    starts = np.array([draw(st.integers(-2, extent + 1)) for extent in source.shape], np.int32)
    return _indexed(LayerType.DYNAMIC_UPDATE_SLICE, DynamicUpdateSliceDescriptor(), [source, update], starts, 2)


@st.composite
def tiles(draw: st.DrawFn) -> Network:
    source = draw(_source(WIDE, 4))
    multiples = tuple(draw(st.integers(1, 3)) for _ in source.shape)
    return layer_network(LayerType.TILE, TileDescriptor(multiples=multiples), [source], source.quantization)


@st.composite
def broadcasts(draw: st.DrawFn) -> Network:
    shape = draw(shapes(5))
    kept = shape[draw(st.integers(0, len(shape) - 1)) :]
    source = info("input", tuple(draw(st.sampled_from([1, extent])) for extent in kept), draw(st.sampled_from(WIDE)))
    return layer_network(LayerType.BROADCAST_TO, BroadcastToDescriptor(shape=shape), [source], source.quantization)


@st.composite
def fills(draw: st.DrawFn) -> Network:
    source = info("input", (), draw(st.sampled_from(WIDE)))
    return layer_network(LayerType.FILL, FillDescriptor(shape=draw(shapes(5))), [source], source.quantization)


@st.composite
def zeros(draw: st.DrawFn) -> Network:
    source = draw(_source((DataType.FLOAT32, DataType.INT8, DataType.INT32, DataType.INT64), 4))
    return layer_network(LayerType.ZEROS_LIKE, ZerosLikeDescriptor(), [source], source.quantization)


@st.composite
def reversals(draw: st.DrawFn) -> Network:
    source = draw(_source(WIDE, 5))
    first = draw(st.integers(0, len(source.shape) - 1))
    axes = tuple(range(first, draw(st.integers(first + 1, len(source.shape)))))
    return layer_network(LayerType.REVERSE_V2, ReverseV2Descriptor(axes=axes), [source], source.quantization)


@st.composite
def mirrors(draw: st.DrawFn) -> Network:
    source = draw(_source(WIDE, 4))
    reflect = draw(st.booleans())
    before, after = (tuple(draw(st.integers(0, extent - int(reflect))) for extent in source.shape) for _ in range(2))
    descriptor = MirrorPadDescriptor(before=before, after=after, reflect=reflect)
    return layer_network(LayerType.MIRROR_PAD, descriptor, [source], source.quantization)


@st.composite
def depths(draw: st.DrawFn) -> Network:
    size = draw(st.integers(1, 3))
    batches, rows, columns, channels = (draw(st.integers(1, 3)) for _ in range(4))
    dtype = draw(st.sampled_from((DataType.FLOAT32, DataType.INT8, DataType.INT32, DataType.INT64, DataType.UINT8)))
    if draw(st.booleans()):
        source = info("input", (batches, rows * size, columns * size, channels), dtype)
        descriptor: Descriptor = SpaceToDepthDescriptor(block_size=size)
        return layer_network(LayerType.SPACE_TO_DEPTH, descriptor, [source], source.quantization)
    source = info("input", (batches, rows, columns, channels * size * size), dtype)
    descriptor = DepthToSpaceDescriptor(block_size=size)
    return layer_network(LayerType.DEPTH_TO_SPACE, descriptor, [source], source.quantization)


@st.composite
def divisions(draw: st.DrawFn) -> Network:
    """Draw SPACE_TO_BATCH_ND; LiteRT pads with the zero point, and TensorFlow Lite Micro with undefined bytes."""
    block = tuple(draw(st.integers(1, 4)) for _ in range(draw(st.integers(1, 2))))
    before = tuple(draw(st.integers(0, 3)) for _ in block)
    middle = tuple(draw(st.integers(1, 7)) for _ in block)
    after = tuple(-(first + extent) % size for first, extent, size in zip(before, middle, block, strict=True))
    source = info("input", (draw(st.integers(1, 2)), *middle, draw(st.integers(1, 3))), draw(st.sampled_from(WIDE)), 7)
    descriptor = SpaceToBatchNdDescriptor(block=block, before=before, after=after)
    return layer_network(LayerType.SPACE_TO_BATCH_ND, descriptor, [source], source.quantization)


@st.composite
def unions(draw: st.DrawFn) -> Network:
    block = tuple(draw(st.integers(1, 4)) for _ in range(draw(st.integers(1, 2))))
    middle = tuple(draw(st.integers(2, 4)) for _ in block)
    before, after = (tuple(draw(st.integers(0, size - 1)) for size in block) for _ in range(2))
    shape = (math.prod(block) * draw(st.integers(1, 2)), *middle, draw(st.integers(1, 3)))
    source = info("input", shape, draw(st.sampled_from(WIDE)))
    descriptor = BatchToSpaceNdDescriptor(block=block, before=before, after=after)
    return layer_network(LayerType.BATCH_TO_SPACE_ND, descriptor, [source], source.quantization)


MOVEMENTS: dict[LayerType, st.SearchStrategy[Network]] = {
    LayerType.RESHAPE: reshapes(),
    LayerType.SQUEEZE: squeezes(),
    LayerType.EXPAND_DIMS: expansions(),
    LayerType.PAD: pads(),
    LayerType.TRANSPOSE: transposes(),
    LayerType.CONCATENATION: concatenations(),
    LayerType.SPLIT: splits(),
    LayerType.SPLIT_V: uneven_splits(),
    LayerType.PACK: packs(),
    LayerType.UNPACK: unpacks(),
    LayerType.GATHER: gathers(),
    LayerType.GATHER_ND: nd_gathers(),
    LayerType.EMBEDDING_LOOKUP: lookups(),
    LayerType.DYNAMIC_UPDATE_SLICE: updates(),
    LayerType.TILE: tiles(),
    LayerType.BROADCAST_TO: broadcasts(),
    LayerType.FILL: fills(),
    LayerType.ZEROS_LIKE: zeros(),
    LayerType.REVERSE_V2: reversals(),
    LayerType.MIRROR_PAD: mirrors(),
    LayerType.SPACE_TO_DEPTH: depths(),
    LayerType.SPACE_TO_BATCH_ND: divisions(),
    LayerType.BATCH_TO_SPACE_ND: unions(),
    LayerType.SLICE: slices(),
    LayerType.STRIDED_SLICE: strided_slices(),
}
"""Strategies for networks of one layer; PAD also draws PADV2, and SPACE_TO_DEPTH also DEPTH_TO_SPACE."""

TFLM_TYPES: dict[LayerType, tuple[DataType, ...]] = {
    LayerType.RESHAPE: WIDE,
    LayerType.SQUEEZE: WIDE,
    LayerType.EXPAND_DIMS: COMMON,
    LayerType.PAD: NARROW,
    LayerType.PADV2: NARROW,
    LayerType.TRANSPOSE: COMMON,
    LayerType.CONCATENATION: (*NARROW, DataType.INT64, DataType.BOOL),
    LayerType.SPLIT: NARROW,
    LayerType.SPLIT_V: NARROW,
    LayerType.PACK: (*NARROW, DataType.INT64),
    LayerType.UNPACK: NARROW,
    LayerType.GATHER: (DataType.FLOAT32, DataType.INT8),
    LayerType.GATHER_ND: (DataType.FLOAT32, DataType.INT8),
    LayerType.EMBEDDING_LOOKUP: (DataType.FLOAT32, DataType.INT8),
    LayerType.DYNAMIC_UPDATE_SLICE: NARROW,
    LayerType.TILE: (),
    LayerType.BROADCAST_TO: WIDE,
    LayerType.FILL: (DataType.FLOAT32, DataType.INT8, DataType.INT32),
    LayerType.ZEROS_LIKE: (DataType.FLOAT32, DataType.INT8, DataType.INT32, DataType.INT64),
    LayerType.REVERSE_V2: WIDE,
    LayerType.MIRROR_PAD: (DataType.FLOAT32, DataType.INT8),
    LayerType.SPACE_TO_DEPTH: (DataType.FLOAT32, DataType.INT8),
    LayerType.DEPTH_TO_SPACE: (DataType.FLOAT32, DataType.INT8),
    LayerType.SPACE_TO_BATCH_ND: (),
    LayerType.BATCH_TO_SPACE_ND: (DataType.FLOAT32, DataType.INT8),
    LayerType.SLICE: (*NARROW, DataType.BOOL),
    LayerType.STRIDED_SLICE: (*NARROW, DataType.BOOL),
}
"""Types that TensorFlow Lite Micro's kernel supports; other types are compared with LiteRT's kernel."""
TFLM_AXES = 4
"""The most axes of a STRIDED_SLICE of TensorFlow Lite Micro; LiteRT's has more."""
