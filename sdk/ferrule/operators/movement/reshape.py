# SPDX-License-Identifier: Apache-2.0
"""RESHAPE, SQUEEZE and EXPAND_DIMS, which leave the bytes unchanged."""

from __future__ import annotations

import math

from ferrule._frozen import frozen
from ferrule.errors import ModelError
from ferrule.graph import Array, Descriptor, LayerType
from ferrule.operators.movement.checks import movable
from ferrule.operators.operator import Operands, Operator, Shapes, always, of_one
from ferrule.operators.sample import LayerSample, sample_unary


@frozen
class ReshapeDescriptor(Descriptor):
    """One input, one output."""

    shape: tuple[int, ...]
    """The new shape; at most one extent is -1 and is inferred."""


@frozen
class SqueezeDescriptor(Descriptor):
    """One input, one output."""

    axes: tuple[int, ...] = ()
    """Axes of extent 1 to remove, non-negative and ascending; () removes all axes of extent 1."""


@frozen
class ExpandDimsDescriptor(Descriptor):
    """One input, one output."""

    axis: int
    """Index of the new axis in the output, non-negative."""


def infer_reshape(descriptor: ReshapeDescriptor, operands: Operands) -> Shapes:
    """Return the new shape, with an extent of -1 replaced by the inferred one."""
    source = operands.source
    shape = descriptor.shape
    known = math.prod(extent for extent in shape if extent != -1)
    unknown = shape.count(-1)
    if unknown > 1 or any(extent < 1 and extent != -1 for extent in shape):
        raise ModelError(f"the new shape is {list(shape)}, expected positive extents and at most one -1")
    if source.elements % known or (not unknown and source.elements != known):
        raise ModelError(
            f"tensor '{source.name}' of shape {list(source.shape)} has {source.elements} elements, "
            f"which do not fit the new shape {list(shape)}"
        )
    return (tuple(source.elements // known if extent == -1 else extent for extent in shape),)


def infer_squeeze(descriptor: SqueezeDescriptor, operands: Operands) -> Shapes:
    """Return the input's shape without the removed axes."""
    source = operands.source
    for axis in descriptor.axes:
        if not 0 <= axis < len(source.shape) or source.shape[axis] != 1:
            raise ModelError(
                f"tensor '{source.name}' has shape {list(source.shape)}, axis {axis} can't be squeezed: "
                "expected an axis of extent 1"
            )
    removed = descriptor.axes or tuple(axis for axis, extent in enumerate(source.shape) if extent == 1)
    return (tuple(extent for axis, extent in enumerate(source.shape) if axis not in removed),)


def infer_expand_dims(descriptor: ExpandDimsDescriptor, operands: Operands) -> Shapes:
    """Return the input's shape with an additional axis of extent 1."""
    source = operands.source
    axis = descriptor.axis
    if not 0 <= axis <= len(source.shape):
        raise ModelError(
            f"tensor '{source.name}' has shape {list(source.shape)}, "
            f"expected the new axis at 0 to {len(source.shape)}, not {axis}"
        )
    return ((*source.shape[:axis], 1, *source.shape[axis:]),)


def kernel(_: Descriptor, operands: Operands, data: Array) -> Array:
    """Return the same elements in the output's shape."""
    return data.reshape(operands.output.shape)


def _sample_reshape(sample: LayerSample) -> Descriptor:
    return ReshapeDescriptor(shape=(1, -1) if sample.dice.random() < 0.5 else sample.inputs[0].shape[::-1])


def _sample_expand_dims(sample: LayerSample) -> Descriptor:
    return ExpandDimsDescriptor(axis=sample.dice.randint(0, 1))


RESHAPE, SQUEEZE, EXPAND_DIMS = (
    Operator(
        descriptor=descriptor,
        type=type_,
        moves=True,
        view=True,
        is_identity=always,
        shapes=shapes,
        check=movable(),
        kernel=of_one(kernel),
        sample=sample_unary(draw),
    )
    for type_, descriptor, shapes, draw in (
        (LayerType.RESHAPE, ReshapeDescriptor, infer_reshape, _sample_reshape),
        (LayerType.SQUEEZE, SqueezeDescriptor, infer_squeeze, lambda _: SqueezeDescriptor()),
        (LayerType.EXPAND_DIMS, ExpandDimsDescriptor, infer_expand_dims, _sample_expand_dims),
    )
)
