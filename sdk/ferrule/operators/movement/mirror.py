# SPDX-License-Identifier: Apache-2.0
"""REVERSE_V2 and MIRROR_PAD, which reverse the order of elements."""

from __future__ import annotations

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import ModelError, UnsupportedError
from ferrule.graph import Array, Descriptor, LayerType
from ferrule.operators.movement.checks import MOVABLE, check_axes, check_types, movable
from ferrule.operators.operator import Operands, Operator, Shapes, of_one
from ferrule.operators.sample import LayerSample, sample_unary

_MAX_AXES = 5


@frozen
class ReverseV2Descriptor(Descriptor):
    """One input, one output."""

    axes: tuple[int, ...]
    """The axes whose elements change their order, non-negative, ascending and without gaps."""


@frozen
class MirrorPadDescriptor(Descriptor):
    """One input, one output."""

    before: tuple[int, ...]
    """Number of elements added before the data, per axis."""
    after: tuple[int, ...]
    """Number of elements added after the data, per axis."""
    reflect: bool
    """Whether the outermost element is the axis of reflection and not repeated (REFLECT, or else SYMMETRIC)."""


def infer_reverse(descriptor: ReverseV2Descriptor, operands: Operands) -> Shapes:
    """Return the input's shape."""
    source, axes = operands.source, descriptor.axes
    if axes != tuple(sorted(set(axes))) or any(not 0 <= axis < len(source.shape) for axis in axes):
        raise ModelError(
            f"the axes are {list(axes)}, expected ascending ones of tensor '{source.name}' of shape "
            f"{list(source.shape)}"
        )
    return (source.shape,)


def infer_mirror_pad(descriptor: MirrorPadDescriptor, operands: Operands) -> Shapes:
    """Return the input's shape plus the padding on both sides of each axis."""
    source, before, after = operands.source, descriptor.before, descriptor.after
    fits = len(before) == len(after) == len(source.shape) and all(
        min(pads) >= 0 and max(pads) <= extent - int(descriptor.reflect)
        for *pads, extent in zip(before, after, source.shape, strict=True)
    )
    if not fits:
        raise ModelError(
            f"the paddings are {list(before)} and {list(after)}, expected none below 0, and at most the extent"
            f"{' minus 1' if descriptor.reflect else ''} on each axis of tensor '{source.name}' of shape "
            f"{list(source.shape)}"
        )
    return (tuple(sum(extents) for extents in zip(before, source.shape, after, strict=True)),)


def check_reverse(descriptor: ReverseV2Descriptor, operands: Operands) -> None:
    """Refuse types, ranks and axes without a reference kernel."""
    check_types(operands, MOVABLE)
    check_axes(operands.source, _MAX_AXES)
    axes = descriptor.axes
    if not axes or axes != tuple(range(axes[0], axes[0] + len(axes))):
        raise UnsupportedError(f"the axes are {list(axes)}, expected one or more without gaps")


def compute_reverse(descriptor: ReverseV2Descriptor, _: Operands, data: Array) -> Array:
    """Return the input in reverse order along the axes."""
    return np.ascontiguousarray(np.flip(data, descriptor.axes))


def compute_mirror_pad(descriptor: MirrorPadDescriptor, _: Operands, result: Array) -> Array:
    """Return the input with its reflection around it."""
    for axis, (before, after) in enumerate(zip(descriptor.before, descriptor.after, strict=True)):
        extent, skipped = result.shape[axis], int(descriptor.reflect)
        inside = np.arange(extent)
        order = (inside[skipped : skipped + before][::-1], inside, inside[::-1][skipped : skipped + after])
        result = result.take(np.concatenate(order), axis=axis)
    return np.ascontiguousarray(result)


def _sample_reverse(sample: LayerSample) -> Descriptor:
    rank = len(sample.inputs[0].shape)
    first = sample.dice.randint(0, rank - 1)
    return ReverseV2Descriptor(axes=tuple(range(first, sample.dice.randint(first + 1, rank))))


def _sample_mirror_pad(sample: LayerSample) -> Descriptor:
    reflect = sample.dice.random() < 0.5
    before, after = (
        tuple(sample.dice.randint(0, extent - int(reflect)) for extent in sample.inputs[0].shape) for _ in range(2)
    )
    return MirrorPadDescriptor(before=before, after=after, reflect=reflect)


REVERSE_V2 = Operator(
    descriptor=ReverseV2Descriptor,
    type=LayerType.REVERSE_V2,
    moves=True,
    shapes=infer_reverse,
    check=check_reverse,
    kernel=of_one(compute_reverse),
    sample=sample_unary(_sample_reverse),
)
MIRROR_PAD = Operator(
    descriptor=MirrorPadDescriptor,
    type=LayerType.MIRROR_PAD,
    moves=True,
    shapes=infer_mirror_pad,
    check=movable(axes=_MAX_AXES),
    kernel=of_one(compute_mirror_pad),
    sample=sample_unary(_sample_mirror_pad),
)
