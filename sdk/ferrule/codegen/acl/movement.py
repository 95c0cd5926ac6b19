# SPDX-License-Identifier: Apache-2.0
"""Rows of layers that move elements, and of reductions."""

from __future__ import annotations

from ferrule.codegen.acl.builder import AclTensor, coordinates, unsigned
from ferrule.codegen.acl.layouts import dimension_of, dimensions, order, permutation
from ferrule.codegen.acl.rows import FLOATS, LayerParts, LayerView, Row
from ferrule.codegen.acl.targets import acl, acl_name
from ferrule.dom import Aggregate, Boolean, Cast, Construct, Expression, Field, Float, Integer, Scalar
from ferrule.graph import DataType, LayerType, TensorInfo
from ferrule.operators.join import ConcatenationDescriptor, SplitDescriptor
from ferrule.operators.pad import PadDescriptor, PadV2Descriptor
from ferrule.operators.reduce import ReduceDescriptor
from ferrule.operators.slice import (
    Range,
    SliceDescriptor,
    StridedSliceDescriptor,
    slice_ranges,
    strided_ranges,
)
from ferrule.operators.transpose import TransposeDescriptor

_MAX_RANK = 4
"""Of functions that take coordinates: NEPermute and NEStridedSlice have no more dimensions."""


def _reshape(part: LayerParts) -> None:
    part.builder.reshape(part.builder.tensors[part.layer.present_inputs[0]], part.output(0), part.stem)


def _transpose(part: LayerParts) -> None:
    about = part.descriptor(TransposeDescriptor)
    if about.permutation == tuple(range(len(about.permutation))):  # the library has no permutation of one dimension
        _reshape(part)
        return
    part.builder.permute(part.name(), part.input(0), part.output(0), permutation(about.permutation))


def _amounts(part: LayerView) -> list[tuple[int, int]]:
    """Return the elements that are added before and after each dimension of the library."""
    about = part.layer.descriptor
    assert isinstance(about, (PadDescriptor, PadV2Descriptor))
    return [(about.before[axis], about.after[axis]) for axis in order(len(part.info(0).shape))]


def _kept_dimensions(info: TensorInfo) -> int:
    """Return the number of dimensions that a TensorShape keeps: it drops those of extent 1 at the end."""
    found = dimensions(info.shape)
    return max([1, *(index + 1 for index, extent in enumerate(found) if extent > 1)])


def _pad(part: LayerParts) -> None:
    about = part.layer.descriptor
    amounts = tuple(
        Field(Aggregate((Field(unsigned(before)), Field(unsigned(after)))))
        for before, after in _amounts(part)[: _kept_dimensions(part.info(0))]
    )
    value = _pixel(part, about.value if isinstance(about, PadV2Descriptor) else None)
    padding = Construct(acl("PaddingList"), (Aggregate(amounts),))
    part.function("PadLayer", part.input(0).pointer, part.output(0).pointer, padding, value)


def _pixel(part: LayerParts, value: float | None) -> Expression:
    """Return the PixelValue of a stored value; None is the stored value of zero."""
    info = part.info(0)
    quantization = info.quantization
    if quantization is None:
        return Construct(acl("PixelValue"), (Float(0.0 if value is None else value),))
    stored = quantization.zero_point if value is None else int(value)
    return Construct(acl("PixelValue"), (Cast(Scalar.INT8, Integer(stored)),))


def _concatenation(part: LayerParts) -> None:
    about = part.descriptor(ConcatenationDescriptor)
    rank = len(part.output_info.shape)
    if len(part.layer.inputs) == 1:
        _reshape(part)
        return
    sources = [part.input(index) for index in range(len(part.layer.inputs))]
    pointers = part.builder.pointers(part.name("inputs")[1:], sources, constant=True)
    part.function("ConcatenateLayer", pointers, part.output(0).pointer, unsigned(dimension_of(about.axis % rank, rank)))


def _split(part: LayerParts) -> None:
    about = part.descriptor(SplitDescriptor)
    if len(part.layer.outputs) == 1:
        _reshape(part)
        return
    rank = len(part.info(0).shape)
    targets = [part.output(index) for index in range(len(part.layer.outputs))]
    pointers = part.builder.pointers(part.name("outputs")[1:], targets, constant=False)
    part.function("Split", part.input(0).pointer, pointers, unsigned(dimension_of(about.axis % rank, rank)))


def _ranges(part: LayerParts) -> tuple[Range, ...]:
    about, source = part.layer.descriptor, part.info(0)
    if isinstance(about, SliceDescriptor):
        return slice_ranges(about, source)
    assert isinstance(about, StridedSliceDescriptor)
    return strided_ranges(about, source)


def _slice(part: LayerParts) -> None:
    source = part.input(0)
    axes = _ranges(part)
    ranges = [axes[axis] for axis in order(len(axes))][: _kept_dimensions(part.info(0))]
    result = part.result(tuple(each.count for each in axes))
    starts = coordinates([each.start for each in ranges])
    if all(each.step == 1 for each in ranges):
        ends = coordinates([each.start + each.count for each in ranges])
        part.function("Slice", source.pointer, result.pointer, starts, ends)
    else:
        stops = [each.start + each.step * each.count for each in ranges]
        mask = sum(1 << index for index, stop in enumerate(stops) if stop < 0)  # down to the first element
        strides = Construct(acl("BiStrides"), tuple(Integer(each.step) for each in ranges))
        ends = coordinates([max(stop, 0) for stop in stops])
        part.function("StridedSlice", source.pointer, result.pointer, starts, ends, strides, Integer(0), Integer(mask))
    part.finish(result)


def _mean(part: LayerParts) -> None:
    axes, result = _reduced(part)
    if not axes:
        _reshape(part)
        return
    part.function("ReduceMean", part.input(0).pointer, coordinates(axes), Boolean(True), result.pointer)
    part.finish(result)


def _sum(part: LayerParts) -> None:
    axes, result = _reduced(part)
    if not axes:
        _reshape(part)
        return
    source = part.input(0)
    shape = list(source.shape)
    for number, dimension in enumerate(axes):
        shape[order(len(shape))[dimension]] = 1
        last = number == len(axes) - 1
        target = result if last else part.builder.scratch(part.name(f"sum{number}"), part.output(0), tuple(shape))
        part.function(
            "ReductionOperation",
            source.pointer,
            target.pointer,
            unsigned(dimension),
            acl_name("ReductionOperation", "SUM"),
            Boolean(True),
        )
        source = target
    part.finish(result)


def _reduced(part: LayerParts) -> tuple[list[int], AclTensor]:
    """Return the dimensions that a reduction removes, and a tensor with extent 1 for them.

    Dimensions of extent 1 are left out: a TensorShape drops them at the end, and the library then counts an axis behind
    the last one from the start again.
    """
    about = part.descriptor(ReduceDescriptor)
    shape = part.info(0).shape
    kept = tuple(1 if axis in about.axes else extent for axis, extent in enumerate(shape))
    axes = sorted(dimension_of(axis, len(shape)) for axis in about.axes if shape[axis] > 1)
    return axes, part.result(kept) if axes else part.output(0)


def _moved_check(part: LayerView) -> str:
    if any(part.is_constant(index) for index in range(len(part.layer.present_inputs))):
        return "it has a constant input"
    return _requantized(part) or _rank(part.info(0))


def _reshaped_check(part: LayerView) -> str:
    return "its input is a constant" if part.is_constant(0) else _requantized(part)


def _requantized(part: LayerView) -> str:
    source = part.info(0)
    for info in part.graph.output_infos(part.layer):
        if info.dtype is DataType.INT8 and info.quantization != source.quantization:
            return f"'{source.name}' and '{info.name}' differ in quantisation, and the library moves elements of one"
    return ""


def _pad_check(part: LayerView) -> str:
    reason = _moved_check(part)
    if not reason and any(amount != (0, 0) for amount in _amounts(part)[_kept_dimensions(part.info(0)) :]):
        return "it pads an outer axis of one element, which CLPadLayer does not reach"
    return reason


def _rank(info: TensorInfo) -> str:
    if len(info.shape) > _MAX_RANK:
        return f"'{info.name}' has {len(info.shape)} dimensions, and the library moves at most {_MAX_RANK}"
    return ""


def _concatenation_check(part: LayerView) -> str:
    if len(part.layer.inputs) == 1:
        if part.info(0).quantization != part.output_info.quantization:
            return "it has one input, and changes the scale"
        return "its only input is a constant" if part.is_constant(0) else ""
    return _rank(part.info(0))


def _reduce_check(part: LayerView) -> str:
    if part.is_constant(0):
        return "its input is a constant"
    axes = part.descriptor(ReduceDescriptor).axes
    unchanged = part.info(0).quantization == part.output_info.quantization
    if all(part.info(0).shape[axis] == 1 for axis in axes) and not unchanged:
        return "it reduces no axis of more than one element, and changes the scale"
    return _rank(part.info(0))


_NO_BOOL = "the library has no tensors of bool"
_NOT_MAPPED = "the generator has no row for it"
_MOVED = Row(add=_slice, check=_moved_check)
_RESHAPED = Row(add=_reshape, check=_reshaped_check)
ROWS = {
    LayerType.RESHAPE: _RESHAPED,
    LayerType.SQUEEZE: _RESHAPED,
    LayerType.EXPAND_DIMS: _RESHAPED,
    LayerType.TRANSPOSE: Row(add=_transpose, check=_moved_check),
    LayerType.PAD: Row(add=_pad, check=_pad_check),
    LayerType.PADV2: Row(add=_pad, check=_pad_check),
    LayerType.CONCATENATION: Row(add=_concatenation, check=_concatenation_check),
    LayerType.SPLIT: Row(add=_split, check=_moved_check),
    LayerType.SLICE: _MOVED,
    LayerType.STRIDED_SLICE: _MOVED,
    LayerType.MEAN: Row(add=_mean, check=_reduce_check),
    LayerType.SUM: Row(add=_sum, check=_reduce_check, types=FLOATS),
}
REASONS = {
    LayerType.RESIZE_NEAREST_NEIGHBOR: _NOT_MAPPED,
    LayerType.RESIZE_BILINEAR: _NOT_MAPPED,
    LayerType.TRANSPOSE_CONV: _NOT_MAPPED,
    LayerType.REDUCE_MAX: _NOT_MAPPED,
    LayerType.REDUCE_MIN: _NOT_MAPPED,
    LayerType.REDUCE_ANY: _NO_BOOL,
    LayerType.REDUCE_ALL: _NO_BOOL,
    LayerType.ARG_MAX: _NOT_MAPPED,
    LayerType.ARG_MIN: _NOT_MAPPED,
    LayerType.CIRCULAR_BUFFER: "the class has no state from run to run",
    LayerType.DETECTION_POSTPROCESS: "the library has no function for it",
    LayerType.CUMSUM: "the library has no function for it",
    LayerType.L2_POOL_2D: _NOT_MAPPED,
    LayerType.BATCH_MATMUL: _NOT_MAPPED,
    LayerType.CEIL: "the library has no function for it",
    LayerType.MIRROR_PAD: "the generator has no function for it",
    LayerType.TILE: "the generator has no function for it",
    LayerType.BROADCAST_TO: "the generator has no function for it",
    LayerType.FILL: "the generator has no function for it",
    LayerType.ZEROS_LIKE: "the generator has no function for it",
    LayerType.REVERSE_V2: "the generator has no function for it",
    LayerType.GATHER: "the generator has no function for indices",
    LayerType.GATHER_ND: "the generator has no function for indices",
    LayerType.EMBEDDING_LOOKUP: "the generator has no function for indices",
    LayerType.DYNAMIC_UPDATE_SLICE: "the generator has no function for indices",
    LayerType.SPACE_TO_DEPTH: "the generator has no function for blocks",
    LayerType.DEPTH_TO_SPACE: "the generator has no function for blocks",
    LayerType.SPACE_TO_BATCH_ND: "the generator has no function for blocks",
    LayerType.BATCH_TO_SPACE_ND: "the generator has no function for blocks",
    LayerType.IF: "the generator has no function for other graphs",
    LayerType.PACK: "the generator has no function for a new axis",
    LayerType.SPLIT_V: "the generator splits into equal parts only",
    LayerType.SVDF: "the library has no function for it",
    LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM: "the library's LSTM has no state from run to run",
    **{type_: "the library has no function for it" for type_ in LayerType if type_.startswith("SIGNAL_")},
    LayerType.UNPACK: "the generator has no function for the removal of an axis",
    LayerType.WHILE: "the generator has no function for other graphs",
}
"""Why types of layers of models have no row."""
