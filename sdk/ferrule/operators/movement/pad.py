# SPDX-License-Identifier: Apache-2.0
"""PAD and PADV2."""

from __future__ import annotations

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import ModelError, UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType
from ferrule.operators.movement.checks import MOVABLE, check_axes, check_types
from ferrule.operators.operator import Operands, Operator, Shapes, of_one
from ferrule.operators.sample import LayerSample, sample_unary

_MAX_AXES = 5
_EXACT = 1 << 53


@frozen
class PadDescriptor(Descriptor):
    """One input, one output. PAD fills with zero, stored as the output's zero point."""

    before: tuple[int, ...]
    """Number of elements added before the data, per axis."""
    after: tuple[int, ...]
    """Number of elements added after the data, per axis."""


@frozen
class PadV2Descriptor(Descriptor):
    """One input, one output."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    value: int | float
    """The fill value as stored: for integer tensors an int, in the output's quantisation."""


AnyPadDescriptor = PadDescriptor | PadV2Descriptor


def infer(descriptor: AnyPadDescriptor, operands: Operands) -> Shapes:
    """Return the input's shape plus the padding on both sides of each axis."""
    source = operands.source
    if not len(descriptor.before) == len(descriptor.after) == len(source.shape):
        raise ModelError(
            f"there are paddings for {len(descriptor.before)} and {len(descriptor.after)} axes, "
            f"expected {len(source.shape)} as tensor '{source.name}' has"
        )
    if min((*descriptor.before, *descriptor.after), default=0) < 0:
        raise UnsupportedError(
            f"the paddings are {list(descriptor.before)} and {list(descriptor.after)}, expected none below 0"
        )
    return (
        tuple(
            before + extent + after
            for before, extent, after in zip(descriptor.before, source.shape, descriptor.after, strict=True)
        ),
    )


def check(descriptor: AnyPadDescriptor, operands: Operands) -> None:
    """Refuse types and ranks without a TensorFlow Lite Micro kernel, and a fill that the type cannot hold."""
    check_types(operands, MOVABLE)
    source = operands.source
    check_axes(source, _MAX_AXES)
    if source.dtype is DataType.INT16 and operands.output.quantization is not None and operands.output.zero_point != 0:
        raise UnsupportedError(
            f"tensor '{operands.output.name}' is int16 with zero point {operands.output.zero_point}, expected 0"
        )
    value = fill_value(descriptor, operands)
    if not source.dtype.is_float:
        low, high = _limits(source.dtype)
        if value != int(value) or not low <= value <= high:
            raise UnsupportedError(f"the fill is {value}, expected a whole number from {low} to {high}")


def _limits(dtype: DataType) -> tuple[int, int]:
    """Return the range of fill values of an integer type; those of int64 are exact in a float64."""
    if dtype is DataType.BOOL:
        return 0, 1
    limits = np.iinfo(dtype.numpy)
    return max(int(limits.min), -_EXACT), min(int(limits.max), _EXACT)


def fill_value(descriptor: AnyPadDescriptor, operands: Operands) -> int | float:
    """Return the stored value of padded elements."""
    if isinstance(descriptor, PadV2Descriptor):
        return descriptor.value
    return 0 if operands.output.quantization is None else operands.output.zero_point


def kernel(descriptor: AnyPadDescriptor, operands: Operands, data: Array) -> Array:
    """Return the input with padding around it."""
    padded = np.full(operands.output.shape, fill_value(descriptor, operands), data.dtype)
    interior = tuple(
        slice(before, before + extent) for before, extent in zip(descriptor.before, data.shape, strict=True)
    )
    padded[interior] = data
    return padded


def _pads_nothing(descriptor: AnyPadDescriptor, _: Operands) -> bool:
    return not any((*descriptor.before, *descriptor.after))


def _sample_sides(sample: LayerSample) -> tuple[tuple[int, ...], tuple[int, ...]]:
    rank = len(sample.inputs[0].shape)
    before, after = (tuple(sample.dice.randint(0, 2) for _ in range(rank)) for _ in range(2))
    return before, after


def _sample_pad(sample: LayerSample) -> Descriptor:
    before, after = _sample_sides(sample)
    return PadDescriptor(before=before, after=after)


def _sample_pad_v2(sample: LayerSample) -> Descriptor:
    before, after = _sample_sides(sample)
    return PadV2Descriptor(before=before, after=after, value=1.5 if sample.dtype.is_float else 7)


PAD, PADV2 = (
    Operator(
        descriptor=descriptor,
        type=type_,
        moves=True,
        is_identity=_pads_nothing,
        shapes=infer,
        check=check,
        kernel=of_one(kernel),
        sample=sample_unary(draw),
    )
    for type_, descriptor, draw in (
        (LayerType.PAD, PadDescriptor, _sample_pad),
        (LayerType.PADV2, PadV2Descriptor, _sample_pad_v2),
    )
)
