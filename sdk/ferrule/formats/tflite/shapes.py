# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the operators that have parameter tensors or change shapes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.tflite.emitter import Emitter
from ferrule.formats.tflite.node import Node, activation, axis
from ferrule.formats.tflite.row import MANY, TWO, Row, Vector, axis_of, by_type, sorted_axes
from ferrule.graph import Descriptor, Layer, LayerType, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.movement.join import ConcatenationDescriptor
from ferrule.operators.movement.pad import PadV2Descriptor
from ferrule.operators.movement.reshape import ExpandDimsDescriptor, ReshapeDescriptor, SqueezeDescriptor
from ferrule.operators.movement.slice import SliceDescriptor, StridedSliceDescriptor, strided_ranges


def _read_concatenation(node: Node) -> Descriptor:
    options = node.options("ConcatenationOptions")
    if activation(options.fused_activation_function) is not Activation.NONE:
        raise UnsupportedError("it has a fused activation, expected none")
    return ConcatenationDescriptor(axis=axis(options.axis, len(node.source.shape)))


def _check_split(node: Node) -> None:
    splits = node.options("SplitOptions").num_splits
    if splits != len(node.record.outputs):
        raise ModelError(f"it splits into {splits}, but has {len(node.record.outputs)} outputs")


def _pads(node: Node, position: int, role: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    pads = node.integer_array(position, role)
    rank = len(node.source.shape)
    if pads.shape != (rank, 2):
        raise ModelError(f"its paddings have shape {list(pads.shape)}, expected [{rank}, 2]")
    if pads.min(initial=0) < 0:
        raise ModelError(f"its paddings go down to {pads.min()}, expected none below 0")
    before, after = pads.T.tolist()
    return tuple(before), tuple(after)


def _fill(node: Node, position: int, role: str) -> float:
    info, data = node.scalar(position, role)
    output = node.output()
    if info.dtype is not output.dtype:
        raise ModelError(f"its fill '{info.name}' is {info.dtype}, expected {output.dtype} as its output")
    if info.quantization != output.quantization:
        raise UnsupportedError(
            f"its fill '{info.name}' has another quantisation than its output, expected the same",
            hint="quantise the fill as the output; TensorFlow Lite's kernels refuse another quantisation, too",
        )
    value: float = data.item()
    if math.isnan(value):
        raise ModelError(f"its fill '{info.name}' is {value}, expected a number")
    return int(value) if isinstance(value, bool) else value


def _write_fill(emitter: Emitter, layer: Layer, descriptor: PadV2Descriptor) -> str:
    output, value = emitter.output_info(layer), descriptor.value
    try:
        data = np.array(value, output.dtype.numpy)
    except OverflowError:
        raise ModelError(f"layer '{layer.name}': the fill {value} does not fit into {output.dtype}") from None
    return emitter.add(TensorInfo(f"{layer.name}/fill", (), output.dtype, quantization=output.quantization), data)


def _read_reshape(node: Node) -> Descriptor:
    options = node.optional_options("ReshapeOptions")
    if node.has_input(1):
        shape = node.integers(1, "shape")
    elif options.new_shape.size:
        shape = tuple(options.new_shape.tolist())
    else:
        shape = node.output().shape
    if shape == (0,):
        shape = ()  # old converters write a scalar like this
    if sum(extent == -1 for extent in shape) > 1 or any(extent < -1 or extent == 0 for extent in shape):
        raise ModelError(f"its new shape is {list(shape)}, expected positive extents and at most one -1")
    return ReshapeDescriptor(shape=shape)


def _write_shape(emitter: Emitter, layer: Layer, descriptor: ReshapeDescriptor) -> str | None:
    # An empty tensor looks like one without data, so a scalar's shape is stored only in the options.
    return emitter.integers(layer, "shape", descriptor.shape) if descriptor.shape else None


def _read_squeeze(node: Node) -> Descriptor:
    options = node.optional_options("SqueezeOptions")
    return SqueezeDescriptor(axes=sorted_axes(node, options.squeeze_dims.tolist()))


def _permutation(node: Node, position: int, role: str) -> tuple[int, ...]:
    permutation = node.integers(position, role)
    if sorted(permutation) != list(range(len(node.source.shape))):
        raise ModelError(f"its permutation is {list(permutation)}, expected each axis of its input once")
    return permutation


def _read_slice(node: Node) -> Descriptor:
    shape = node.source.shape
    size = node.integers(2, "size")
    if not node.is_constant(1):
        if -1 in size:
            raise UnsupportedError(
                f"its size is {list(size)} with a begin that is computed at run time, expected no -1",
                hint="state the number of elements on each axis",
            )
        return SliceDescriptor(begin=(), size=size)
    begin = node.integers(1, "begin")
    if not len(begin) == len(size) == len(shape):
        raise ModelError(f"its begin and size have {len(begin)} and {len(size)} elements, expected {len(shape)} each")
    for start, count, extent in zip(begin, size, shape, strict=True):
        end = extent if count == -1 else start + count
        if not 0 <= start < end <= extent:
            raise ModelError(
                f"it takes begin {list(begin)} and size {list(size)}, expected a part of shape {list(shape)}"
            )
    return SliceDescriptor(begin=begin, size=size)


def _read_strided_slice(node: Node) -> Descriptor:
    """Turn masks that name elements of begin, end and strides into masks that name axes.

    New axes have extent 1, so they are left to the shape of the output, which is checked here.
    """
    shape = node.source.shape
    begin, end, strides = (node.integers(1, "begin"), node.integers(2, "end"), node.integers(3, "strides"))
    if not len(begin) == len(end) == len(strides):
        raise ModelError(
            f"its begin, end and strides have {len(begin)}, {len(end)} and {len(strides)} elements, "
            "expected the same number of each"
        )
    if 0 in strides:
        raise ModelError(f"its strides are {list(strides)}, expected none to be 0")
    masks = SliceMasks.of(node, len(begin))
    firsts, lasts, steps, found = [], [], [], [0, 0, 0]
    axes = [place for place in masks.places if place != NEW_AXIS]
    for axis_, (place, extent) in enumerate(zip(axes, shape, strict=True)):
        named = place is not None
        first, last, step = (begin[place], end[place], strides[place]) if place is not None else (0, 0, 1)
        bits = (masks.begin, masks.end, masks.shrink)
        given = [bits[kind] >> place & 1 if place is not None else int(kind < _SHRINK) for kind in range(3)]
        if masks.offset and named:
            last += _start(first, step, extent, open_=bool(given[0]))
        firsts.append(first)
        lasts.append(last)
        steps.append(step)
        found = [mask | bit << axis_ for mask, bit in zip(found, given, strict=True)]
    descriptor = StridedSliceDescriptor(
        begin=tuple(firsts),
        end=tuple(lasts),
        strides=tuple(steps),
        begin_mask=found[0],
        end_mask=found[1],
        shrink_axis_mask=found[_SHRINK],
    )
    _check_new_axes(node, descriptor, masks.places)
    return descriptor


_SHRINK = 2
"""The position of the mask of removed axes among those of a STRIDED_SLICE."""
NEW_AXIS = -1


@frozen
class SliceMasks:
    """The masks of a STRIDED_SLICE: bit i of `begin`, `end` and `shrink` refers to element i of its vectors."""

    places: tuple[int | None, ...]
    """See `_places`."""
    begin: int
    end: int
    shrink: int
    offset: bool
    """Whether the end is relative to the begin."""

    @classmethod
    def of(cls, node: Node, count: int) -> SliceMasks:
        """Return those of an operator whose vectors have `count` elements; ModelError if they are wrong."""
        options, rank = node.optional_options("StridedSliceOptions"), len(node.source.shape)
        return cls(
            places=tuple(_places(count, rank, options.ellipsis_mask, options.new_axis_mask)),
            begin=options.begin_mask,
            end=options.end_mask,
            shrink=options.shrink_axis_mask,
            offset=options.offset,
        )


def _places(count: int, rank: int, ellipsis: int, new_axes: int) -> list[int | None]:
    """Return, for each axis of a STRIDED_SLICE, which of `count` elements of begin, end and strides selects from it.

    It is None for an axis that an ellipsis, or the end of the vectors, leaves whole, and `NEW_AXIS` for an axis that
    the input does not have.
    """
    dots = [index for index in range(count) if ellipsis >> index & 1]
    new = [index for index in range(count) if new_axes >> index & 1 and index not in dots]
    rest = rank - (count - len(dots) - len(new))
    if len(dots) > 1 or rest < 0:
        raise ModelError(
            f"it selects from {rank - rest} axes with {len(dots)} ellipses, expected at most {rank} and one ellipsis"
        )
    places: list[int | None] = []
    for index in range(count):
        places += [None] * rest if index in dots else [NEW_AXIS if index in new else index]
    return places if dots else places + [None] * rest


def _check_new_axes(node: Node, descriptor: StridedSliceDescriptor, places: Sequence[int | None]) -> None:
    """Check the shape of the output if the slice has new axes; other shapes are checked with the layer."""
    if NEW_AXIS not in places:
        return
    counts = iter(enumerate(strided_ranges(descriptor, node.source)))
    shape: list[int] = []
    for place in places:
        if place == NEW_AXIS:
            shape.append(1)
            continue
        axis_, taken = next(counts)
        shape += [] if descriptor.shrink_axis_mask >> axis_ & 1 else [taken.count]
    if tuple(shape) != node.output().shape:
        raise ModelError(f"output '{node.output().name}' has shape {list(node.output().shape)}, expected {shape}")


def _start(begin: int, stride: int, extent: int, *, open_: bool) -> int:
    """Return the start of a strided slice on one axis; with `offset` set, its end is relative to this start."""
    if open_:
        return 0 if stride > 0 else extent - 1
    start = begin + extent if begin < 0 else begin
    return max(0, min(start, extent)) if stride > 0 else max(-1, min(start, extent - 1))


def _slice_sources(emitter: Emitter, layer: Layer, descriptor: SliceDescriptor) -> list[str | None]:
    source, *begin = layer.inputs
    begin = begin or [emitter.integers(layer, "begin", descriptor.begin)]
    return [source, *begin, emitter.integers(layer, "size", descriptor.size)]


def _write_axis(emitter: Emitter, layer: Layer, descriptor: ExpandDimsDescriptor) -> str:
    return emitter.integers(layer, "axis", [descriptor.axis])


PADDINGS = Vector(["before", "after"], _pads, "paddings")
_PADDING = by_type(int8=2, int16=3, bool_=5, wide=4)

ROWS: Mapping[LayerType, Row] = {
    LayerType.CONCATENATION: Row(
        "ConcatenationOptions",
        ["axis"],
        version=by_type(int8=2, int16=3),
        data_inputs=range(MANY),
        inputs=range(1, MANY),
        reader=_read_concatenation,
    ),
    LayerType.EXPAND_DIMS: Row("ExpandDimsOptions", vectors=[replace(axis_of(added=1), write=_write_axis)]),
    LayerType.PAD: Row("PadOptions", vectors=[PADDINGS], version=_PADDING),
    LayerType.PADV2: Row(
        "PadV2Options",
        vectors=[PADDINGS, Vector(["value"], _fill, "fill", _write_fill)],
        version=_PADDING,
    ),
    LayerType.RESHAPE: Row(
        "ReshapeOptions", ["shape"], [Vector(["shape"], write=_write_shape)], reader=_read_reshape, inputs=range(1, 3)
    ),
    LayerType.SLICE: Row(
        "SliceOptions",
        version=by_type(int8=2, int16=4, wide=5),
        data_inputs=TWO,
        inputs=range(3, 4),
        reader=_read_slice,
        sources=_slice_sources,
        any_shape=True,
        parameters=frozenset({1}),
        indices=frozenset({1}),
    ),
    LayerType.SPLIT: Row(
        "SplitOptions",
        ["splits"],
        [axis_of()],
        by_type(int8=2, int32=3, int16=4),
        data_inputs=range(1, 2),
        outputs=range(1, MANY),
        check=_check_split,
    ),
    LayerType.SQUEEZE: Row("SqueezeOptions", ["axes"], reader=_read_squeeze, any_shape=True),
    LayerType.STRIDED_SLICE: Row(
        "StridedSliceOptions",
        ["begin_mask", "end_mask", "shrink_axis_mask"],
        [Vector([role]) for role in ("begin", "end", "strides")],
        by_type(int8=2, bool_=3, wide=4),
        reader=_read_strided_slice,
        any_shape=True,
    ),
    LayerType.TRANSPOSE: Row(
        "TransposeOptions",
        vectors=[Vector(["permutation"], _permutation)],
        version=by_type(int8=2, bool_=3, int16=5, wide=4),
    ),
}
"""The operators of this module."""
