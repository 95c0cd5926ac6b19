# SPDX-License-Identifier: Apache-2.0
"""TILE, BROADCAST_TO, FILL and ZEROS_LIKE, which repeat elements."""

from __future__ import annotations

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import ModelError
from ferrule.graph import Array, DataType, Descriptor, LayerType
from ferrule.operators.arithmetic.broadcast import broadcasts_to
from ferrule.operators.movement.checks import movable
from ferrule.operators.operator import Operands, Operator, Shapes, of_one
from ferrule.operators.sample import LayerSample, sample_unary

_ZEROS_TYPES = frozenset({DataType.FLOAT32, DataType.INT8, DataType.INT32, DataType.INT64})
_MAX_AXES = 5


@frozen
class TileDescriptor(Descriptor):
    """One input, one output."""

    multiples: tuple[int, ...]
    """How often each axis is repeated; positive."""


@frozen
class BroadcastToDescriptor(Descriptor):
    """One input, one output."""

    shape: tuple[int, ...]
    """The shape of the output, to which the input broadcasts by numpy's rules."""


@frozen
class FillDescriptor(Descriptor):
    """One input of one element, one output."""

    shape: tuple[int, ...]
    """The shape of the output; each element is the input's."""


@frozen
class ZerosLikeDescriptor(Descriptor):
    """One input, whose elements are not read, and one output of the same shape; it stores 0, not the zero point."""


def infer_tile(descriptor: TileDescriptor, operands: Operands) -> Shapes:
    """Return the input's extents times the multiples."""
    source, multiples = operands.source, descriptor.multiples
    if len(multiples) != len(source.shape) or min(multiples, default=1) < 1:
        raise ModelError(
            f"the multiples are {list(multiples)}, expected a positive one per axis of tensor '{source.name}' of shape "
            f"{list(source.shape)}"
        )
    return (tuple(extent * times for extent, times in zip(source.shape, multiples, strict=True)),)


def infer_broadcast_to(descriptor: BroadcastToDescriptor, operands: Operands) -> Shapes:
    """Return the new shape."""
    source, shape = operands.source, descriptor.shape
    if not broadcasts_to(source.shape, shape) or min(shape, default=1) < 1:
        raise ModelError(
            f"tensor '{source.name}' of shape {list(source.shape)} does not broadcast to shape {list(shape)}"
        )
    return (shape,)


def infer_fill(descriptor: FillDescriptor, operands: Operands) -> Shapes:
    """Return the new shape."""
    source = operands.source
    if source.elements != 1 or min(descriptor.shape, default=1) < 1:
        raise ModelError(
            f"tensor '{source.name}' of shape {list(source.shape)} does not fill shape {list(descriptor.shape)}, "
            "expected one element and positive extents"
        )
    return (descriptor.shape,)


def compute_tile(descriptor: TileDescriptor, _: Operands, data: Array) -> Array:
    """Return the repeated input."""
    return np.tile(data, descriptor.multiples)


def compute_broadcast(descriptor: Descriptor, operands: Operands, data: Array) -> Array:
    """Return the input broadcast to the output's shape."""
    if isinstance(descriptor, FillDescriptor):
        data = data.reshape(())
    return np.array(np.broadcast_to(data, operands.output.shape), order="C")


def compute_zeros_like(_: ZerosLikeDescriptor, operands: Operands, data: Array) -> Array:
    """Return zeros."""
    return np.zeros(operands.output.shape, data.dtype)


def _sample_tile(sample: LayerSample) -> Descriptor:
    return TileDescriptor(multiples=tuple(sample.dice.randint(1, 3) for _ in sample.inputs[0].shape))


def _sample_broadcast_to(sample: LayerSample) -> Descriptor:
    shape = sample.shape()
    kept = shape[sample.dice.randint(0, len(shape)) :]
    sample.keep(tuple(sample.dice.choice([1, extent]) for extent in kept))
    return BroadcastToDescriptor(shape=shape)


def _sample_fill(sample: LayerSample) -> Descriptor:
    sample.keep(())
    return FillDescriptor(shape=sample.shape())


TILE = Operator(
    descriptor=TileDescriptor,
    type=LayerType.TILE,
    moves=True,
    shapes=infer_tile,
    check=movable(axes=_MAX_AXES, of_output=True),
    kernel=of_one(compute_tile),
    sample=sample_unary(_sample_tile),
)
BROADCAST_TO = Operator(
    descriptor=BroadcastToDescriptor,
    type=LayerType.BROADCAST_TO,
    moves=True,
    shapes=infer_broadcast_to,
    check=movable(axes=_MAX_AXES, of_output=True),
    kernel=of_one(compute_broadcast),
    sample=_sample_broadcast_to,
)
FILL = Operator(
    descriptor=FillDescriptor,
    type=LayerType.FILL,
    moves=True,
    shapes=infer_fill,
    check=movable(axes=_MAX_AXES, of_output=True),
    kernel=of_one(compute_broadcast),
    sample=_sample_fill,
)
ZEROS_LIKE = Operator(
    descriptor=ZerosLikeDescriptor,
    type=LayerType.ZEROS_LIKE,
    moves=True,
    check=movable(_ZEROS_TYPES),
    kernel=of_one(compute_zeros_like),
    sample=sample_unary(lambda _: ZerosLikeDescriptor()),
)
