# SPDX-License-Identifier: Apache-2.0
"""Rows of layers that move elements, and of reductions."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.codegen.acl.builder import AclTensor, coordinates
from ferrule.codegen.acl.layouts import dimension_of, dimensions, order, permutation
from ferrule.codegen.acl.rows import FLOATS, MOVED, Add, Check, LayerParts, LayerView, Row, not_constant
from ferrule.codegen.acl.targets import acl, acl_name
from ferrule.dom import (
    Boolean,
    Cast,
    Construct,
    Expression,
    Float,
    Integer,
    Scalar,
    elements,
    unsigned,
)
from ferrule.graph import DataType, LayerType, Shape, TensorInfo
from ferrule.operators.movement.join import ConcatenationDescriptor, SplitDescriptor
from ferrule.operators.movement.pad import PadDescriptor, PadV2Descriptor
from ferrule.operators.movement.slice import (
    Range,
    SliceDescriptor,
    StridedSliceDescriptor,
    slice_ranges,
    strided_ranges,
)
from ferrule.operators.movement.transpose import TransposeDescriptor
from ferrule.operators.reductions.reduce import ReduceDescriptor

Sides = Sequence[tuple[int, int]]
"""Numbers of elements that are added before and after each axis."""
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


def _amounts(sides: Sides) -> list[tuple[int, int]]:
    """Return the elements that are added before and after each dimension of the library."""
    return [sides[axis] for axis in order(len(sides))]


def _kept_dimensions(shape: Shape) -> int:
    """Return the number of dimensions that a TensorShape keeps: it drops those of extent 1 at the end."""
    found = dimensions(shape)
    return max([1, *(index + 1 for index, extent in enumerate(found) if extent > 1)])


def _pad(part: LayerParts) -> None:
    about = part.layer.descriptor
    value = about.value if isinstance(about, PadV2Descriptor) else None
    pad(part, part.input(0), part.output(0), _sides(part), value)


def _sides(part: LayerView) -> Sides:
    about = part.layer.descriptor
    assert isinstance(about, (PadDescriptor, PadV2Descriptor))
    return tuple(zip(about.before, about.after, strict=True))


def pad(part: LayerParts, source: AclTensor, target: AclTensor, sides: Sides, value: float | None = None) -> None:
    """Add the function that surrounds a tensor by a stored value; None is the stored value of zero."""
    amounts = (
        elements((unsigned(before), unsigned(after)))
        for before, after in _amounts(sides)[: _kept_dimensions(source.shape)]
    )
    padding = Construct(acl("PaddingList"), (elements(amounts),))
    part.function("PadLayer", source, target, padding, _pixel(part, value))


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
    concatenate(part, sources, part.output(0), about.axis % rank, f"{part.stem}_{part.kind}")


def concatenate(part: LayerParts, parts: Sequence[AclTensor], target: AclTensor, axis: int, wanted: str) -> None:
    """Add the concatenation of two or more tensors along an axis."""
    pointers = part.builder.pointers(f"{wanted[1:]}_inputs", parts, constant=True)
    part.function("ConcatenateLayer", pointers, target, unsigned(dimension_of(axis, len(target.shape))))


def _split(part: LayerParts) -> None:
    about = part.descriptor(SplitDescriptor)
    if len(part.layer.outputs) == 1:
        _reshape(part)
        return
    rank = len(part.info(0).shape)
    targets = [part.output(index) for index in range(len(part.layer.outputs))]
    pointers = part.builder.pointers(part.name("outputs")[1:], targets, constant=False)
    part.function("Split", part.input(0), pointers, unsigned(dimension_of(about.axis % rank, rank)))


def _ranges(part: LayerParts) -> tuple[Range, ...]:
    about, source = part.layer.descriptor, part.info(0)
    if isinstance(about, SliceDescriptor):
        return slice_ranges(about, source)
    assert isinstance(about, StridedSliceDescriptor)
    return strided_ranges(about, source)


def _slice(part: LayerParts) -> None:
    axes = _ranges(part)
    result = part.result(tuple(each.count for each in axes))
    slice_between(part, part.input(0), result, axes)
    part.finish(result)


def slice_between(part: LayerParts, source: AclTensor, target: AclTensor, axes: Sequence[Range]) -> None:
    """Add the function that takes a range of each axis, also backwards."""
    ranges = [axes[axis] for axis in order(len(axes))][: _kept_dimensions(source.shape)]
    starts = coordinates([each.start for each in ranges])
    if all(each.step == 1 for each in ranges):
        ends = coordinates([each.start + each.count for each in ranges])
        part.function("Slice", source, target, starts, ends)
    else:
        stops = [each.start + each.step * each.count for each in ranges]
        mask = sum(1 << index for index, stop in enumerate(stops) if stop < 0)  # down to the first element
        strides = Construct(acl("BiStrides"), tuple(Integer(each.step) for each in ranges))
        ends = coordinates([max(stop, 0) for stop in stops])
        part.function("StridedSlice", source, target, starts, ends, strides, Integer(0), Integer(mask))


def _mean(part: LayerParts) -> None:
    axes, result = _reduced(part)
    if not axes:
        _reshape(part)
        return
    part.function("ReduceMean", part.input(0), coordinates(axes), Boolean(True), result)
    part.finish(result)


def _reduction(operation: str) -> Add:
    """Return what adds one function per axis."""

    def add(part: LayerParts) -> None:
        axes, result = _reduced(part)
        if not axes:
            _reshape(part)
            return
        source = part.input(0)
        shape = list(source.shape)
        for number, dimension in enumerate(axes):
            shape[order(len(shape))[dimension]] = 1
            last = number == len(axes) - 1
            name = part.name(f"{operation.lower()}{number}")
            target = result if last else part.builder.scratch(name, part.output(0), tuple(shape))
            kind = acl_name("ReductionOperation", operation)
            part.function("ReductionOperation", source, target, unsigned(dimension), kind, Boolean(True))
            source = target
        part.finish(result)

    return add


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


def moved_check(part: LayerView) -> str:
    """Return why a layer that moves elements is not possible."""
    if any(part.is_constant(index) for index in range(len(part.layer.present_inputs))):
        return "it has a constant input"
    return _requantized(part) or rank_reason(part.info(0))


def _slice_check(part: LayerView) -> str:
    return "its begin is not a constant" if len(part.layer.inputs) > 1 else moved_check(part)


def _reshaped_check(part: LayerView) -> str:
    return not_constant(part) or _requantized(part)


def _requantized(part: LayerView) -> str:
    source = part.info(0)
    for info in part.graph.output_infos(part.layer):
        if info.dtype is DataType.INT8 and info.quantization != source.quantization:
            return f"'{source.name}' and '{info.name}' differ in quantisation, and the library moves elements of one"
    return ""


def _pad_check(part: LayerView) -> str:
    return moved_check(part) or unreachable_pad(part, _sides(part))


def unreachable_pad(part: LayerView, sides: Sides) -> str:
    """Return why the library cannot pad the layer's input; "" if it can."""
    if any(amount != (0, 0) for amount in _amounts(sides)[_kept_dimensions(part.info(0).shape) :]):
        return "it pads an outer axis of one element, which CLPadLayer does not reach"
    return ""


def rank_reason(info: TensorInfo) -> str:
    """Return why a tensor has too many dimensions to be moved; "" if it has not."""
    if len(info.shape) > _MAX_RANK:
        return f"'{info.name}' has {len(info.shape)} dimensions, and the library moves at most {_MAX_RANK}"
    return ""


def _concatenation_check(part: LayerView) -> str:
    if len(part.layer.inputs) == 1:
        if part.info(0).quantization != part.output_info.quantization:
            return "it has one input, and changes the scale"
        return "its only input is a constant" if part.is_constant(0) else ""
    return rank_reason(part.info(0))


def _reduce_check(part: LayerView) -> str:
    return not_constant(part) or _scale_reason(part) or rank_reason(part.info(0))


def _scale_reason(part: LayerView) -> str:
    axes = part.descriptor(ReduceDescriptor).axes
    unchanged = part.info(0).quantization == part.output_info.quantization
    if all(part.info(0).shape[axis] == 1 for axis in axes) and not unchanged:
        return "it reduces no axis of more than one element, and changes the scale"
    return ""


def moving(add: Add, check: Check = moved_check) -> Row:
    """Return the row of a layer that only moves elements."""
    return Row(add, check=check, accuracy=MOVED)


_NO_BOOL = "the library has no tensors of bool"
_RESHAPED = moving(_reshape, _reshaped_check)
ROWS = {
    LayerType.RESHAPE: _RESHAPED,
    LayerType.SQUEEZE: _RESHAPED,
    LayerType.EXPAND_DIMS: _RESHAPED,
    LayerType.TRANSPOSE: moving(_transpose),
    LayerType.PAD: moving(_pad, _pad_check),
    LayerType.PADV2: moving(_pad, _pad_check),
    LayerType.CONCATENATION: Row(_concatenation, check=_concatenation_check),
    LayerType.SPLIT: moving(_split),
    LayerType.SLICE: moving(_slice, _slice_check),
    LayerType.STRIDED_SLICE: moving(_slice),
    LayerType.MEAN: Row(_mean, check=_reduce_check),
    LayerType.SUM: Row(_reduction("SUM"), check=_reduce_check, types=FLOATS),
    LayerType.REDUCE_MAX: Row(_reduction("MAX"), check=_reduce_check),
    LayerType.REDUCE_MIN: Row(_reduction("MIN"), check=_reduce_check),
}
REASONS = {
    LayerType.REDUCE_ANY: _NO_BOOL,
    LayerType.REDUCE_ALL: _NO_BOOL,
    LayerType.BATCH_MATMUL: "the generator has no function for it",
    LayerType.FILL: "the generator has no function for it",
    LayerType.ZEROS_LIKE: "the generator has no function for it",
    LayerType.GATHER_ND: "the generator has no function for indices",
    LayerType.DYNAMIC_UPDATE_SLICE: "the generator has no function for indices",
    LayerType.CIRCULAR_BUFFER: "the class has no state from run to run",
    LayerType.IF: "the generator has no function for other graphs",
    LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM: "the library's LSTM has no state from run to run",
    LayerType.WHILE: "the generator has no function for other graphs",
}
"""Why types of layers have no row; without a reason, the library has no function for them."""
