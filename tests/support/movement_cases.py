# SPDX-License-Identifier: Apache-2.0
"""Random networks of one layer that only moves elements."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from layer_case import layer_network, tensor

from ferrule.graph import DataType, LayerType, Shape, TensorInfo
from ferrule.network import Network
from ferrule.operators.join import ConcatenationDescriptor, SplitDescriptor, SplitVDescriptor
from ferrule.operators.pad import PadDescriptor, PadV2Descriptor
from ferrule.operators.reshape import ExpandDimsDescriptor, ReshapeDescriptor, SqueezeDescriptor
from ferrule.operators.slice import SliceDescriptor, StridedSliceDescriptor
from ferrule.operators.stack import PackDescriptor, UnpackDescriptor
from ferrule.operators.transpose import TransposeDescriptor

COMMON = (DataType.FLOAT32, DataType.INT8, DataType.INT16)
NARROW = (*COMMON, DataType.INT32)
WIDE = (*NARROW, DataType.INT64, DataType.BOOL, DataType.UINT8)


def shapes(most_axes: int, least_axes: int = 1, most: int = 5) -> st.SearchStrategy[Shape]:
    return st.lists(st.integers(1, most), min_size=least_axes, max_size=most_axes).map(tuple)


def info(name: str, shape: Shape, dtype: DataType, zero_point: int = 0) -> TensorInfo:
    quantised = dtype in {DataType.INT8, DataType.INT16}
    return tensor(name, shape, dtype, 0.25 if quantised else None, zero_point if dtype is DataType.INT8 else 0)


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
    source = draw(_source(NARROW, 5))
    sides = st.lists(st.integers(0, 3), min_size=len(source.shape), max_size=len(source.shape)).map(tuple)
    before, after = draw(sides), draw(sides)
    if draw(st.booleans()):
        descriptor = PadDescriptor(before=before, after=after)
        return layer_network(LayerType.PAD, descriptor, [source], source.quantization)
    value: int | float
    if source.dtype.is_float:
        value = draw(st.sampled_from([0.0, -0.0, 1.5, -3e38, float(np.float32(0.1))]))
    else:
        limits = np.iinfo(source.dtype.numpy)
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
            name=f"input_{i}",
            shape=(*first.shape[:axis], extent, *first.shape[axis + 1 :]),
            dtype=first.dtype,
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
    whole = TensorInfo(name="input", shape=shape, dtype=source.dtype, quantization=source.quantization)
    return layer_network(LayerType.SPLIT, SplitDescriptor(axis=axis, splits=count), [whole], source.quantization)


@st.composite
def uneven_splits(draw: st.DrawFn) -> Network:
    source = draw(_source((*NARROW, DataType.INT64, DataType.UINT8), 4))
    axis = draw(st.integers(0, len(source.shape) - 1))
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    shape = (*source.shape[:axis], sum(sizes), *source.shape[axis + 1 :])
    whole = TensorInfo(name="input", shape=shape, dtype=source.dtype, quantization=source.quantization)
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
    size = tuple(
        draw(st.sampled_from([-1, *range(1, extent - first + 1)]))
        for first, extent in zip(begin, source.shape, strict=True)
    )
    return layer_network(LayerType.SLICE, SliceDescriptor(begin=begin, size=size), [source], source.quantization)


@st.composite
def strided_slices(draw: st.DrawFn) -> Network:
    source = draw(_source(WIDE, 4))
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
    LayerType.SLICE: slices(),
    LayerType.STRIDED_SLICE: strided_slices(),
}
"""Strategies for networks of one layer; the strategy of PAD also draws PADV2."""

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
    LayerType.SLICE: (*NARROW, DataType.BOOL),
    LayerType.STRIDED_SLICE: (*NARROW, DataType.BOOL),
}
"""Types that TensorFlow Lite Micro's kernel supports; other types are compared with LiteRT's kernel."""
