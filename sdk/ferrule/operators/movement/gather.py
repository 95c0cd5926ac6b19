# SPDX-License-Identifier: Apache-2.0
"""GATHER, GATHER_ND, EMBEDDING_LOOKUP and DYNAMIC_UPDATE_SLICE, which move elements to or from computed indices.

An index that is out of range counts as the nearest one in range, so no kernel reads or writes outside of a tensor.
TensorFlow Lite Micro checks the indices of GATHER in debug builds only, and reads outside of the tensor in others.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import ModelError, UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType, Shape, TensorInfo
from ferrule.operators.arithmetic.error_bound import known
from ferrule.operators.movement.checks import MOVABLE, check_axes, check_types
from ferrule.operators.operator import Arrays, Operands, Operator, Shapes, required_array
from ferrule.operators.sample import LayerSample

_MAX_AXES = 5


@frozen
class GatherDescriptor(Descriptor):
    """The data and int32 indices, one output."""

    axis: int
    """The axis of the data that the indices select from, non-negative."""
    batch_dims: int = 0
    """Number of leading axes that data and indices share, at most `axis`."""


@frozen
class GatherNdDescriptor(Descriptor):
    """The data and int32 indices, one output; the last axis of the indices holds one index per leading axis."""


@frozen
class EmbeddingLookupDescriptor(Descriptor):
    """A vector of int32 indices and the data, one output: the rows of the data."""


@frozen
class DynamicUpdateSliceDescriptor(Descriptor):
    """The data, the update and a vector of int32 starts, one output: the data with a part replaced by the update."""


@frozen
class Gathering:
    """How indices select runs of contiguous elements; the input is divided into equal blocks."""

    batches: int
    """Each batch has indices of its own."""
    outer: int
    """Blocks of the input per batch, from each of which the same indices select."""
    count: int
    """Number of runs that are selected from a block."""
    extents: Shape
    """The limit of each of the indices that select a run."""
    run: int
    """Elements of a run."""

    @property
    def strides(self) -> tuple[int, ...]:
        """The step of each index, in elements."""
        return tuple(self.run * math.prod(self.extents[axis + 1 :]) for axis in range(len(self.extents)))


def gathering(descriptor: Descriptor, data: TensorInfo, indices: TensorInfo) -> Gathering:
    """Return how a layer of these operators selects from its data."""
    if isinstance(descriptor, GatherDescriptor):
        axis, batch = descriptor.axis, descriptor.batch_dims
        return Gathering(
            batches=math.prod(data.shape[:batch]),
            outer=math.prod(data.shape[batch:axis]),
            count=math.prod(indices.shape[batch:]),
            extents=(data.shape[axis],),
            run=math.prod(data.shape[axis + 1 :]),
        )
    depth = indices.shape[-1] if isinstance(descriptor, GatherNdDescriptor) else 1
    rows = indices.shape[:-1] if isinstance(descriptor, GatherNdDescriptor) else indices.shape
    return Gathering(
        batches=1, outer=1, count=math.prod(rows), extents=data.shape[:depth], run=math.prod(data.shape[depth:])
    )


def infer_gather(descriptor: GatherDescriptor, operands: Operands) -> Shapes:
    """Return the data's shape with the axis replaced by the axes of the indices."""
    data, indices = operands.pair
    axis, batch = descriptor.axis, descriptor.batch_dims
    if not 0 <= axis < len(data.shape) or not 0 <= batch <= min(axis, len(indices.shape)):
        raise ModelError(
            f"the axis is {axis} with {batch} batch axes, expected an axis of tensor '{data.name}' of shape "
            f"{list(data.shape)}, behind the batch axes of tensor '{indices.name}' of shape {list(indices.shape)}"
        )
    if data.shape[:batch] != indices.shape[:batch]:
        raise ModelError(
            f"tensors '{data.name}' and '{indices.name}' have shapes {list(data.shape)} and {list(indices.shape)}, "
            f"expected the same first {batch} extents"
        )
    return ((*data.shape[:axis], *indices.shape[batch:], *data.shape[axis + 1 :]),)


def infer_gather_nd(_: GatherNdDescriptor, operands: Operands) -> Shapes:
    """Return the shape of the indices without the last axis, then the data's axes that are not indexed."""
    data, indices = operands.pair
    if not indices.shape or indices.shape[-1] > len(data.shape):
        raise ModelError(
            f"the indices '{indices.name}' have shape {list(indices.shape)}, expected a last axis of at most "
            f"{len(data.shape)} elements, as tensor '{data.name}' has axes"
        )
    return ((*indices.shape[:-1], *data.shape[indices.shape[-1] :]),)


def infer_embedding_lookup(_: EmbeddingLookupDescriptor, operands: Operands) -> Shapes:
    """Return one row of the data per index."""
    indices, data = operands.pair
    if len(indices.shape) != 1 or len(data.shape) < 2:
        raise ModelError(
            f"tensors '{indices.name}' and '{data.name}' have shapes {list(indices.shape)} and {list(data.shape)}, "
            "expected a vector, and at least 2 axes"
        )
    return ((*indices.shape, *data.shape[1:]),)


def infer_update(_: DynamicUpdateSliceDescriptor, operands: Operands) -> Shapes:
    """Return the data's shape."""
    data, update, starts = operands.required(range(3))
    fits = len(update.shape) == len(data.shape) and all(
        part <= whole for part, whole in zip(update.shape, data.shape, strict=True)
    )
    if not fits or starts.shape != (len(data.shape),):
        raise ModelError(
            f"the update '{update.name}' has shape {list(update.shape)} and the starts '{starts.name}' "
            f"{list(starts.shape)}, expected a part of tensor '{data.name}' of shape {list(data.shape)}, and one start "
            "per axis"
        )
    return (data.shape,)


def _check(data: tuple[int, ...], indices: int, _: Descriptor, operands: Operands) -> None:
    """Refuse types and ranks without a reference kernel; `data` and `indices` are positions of inputs."""
    infos, places = operands.required(data), operands.input(indices)
    check_types(Operands(tuple(infos), operands.outputs), MOVABLE)
    if places.dtype is not DataType.INT32:
        raise UnsupportedError(f"the indices '{places.name}' are {places.dtype}, expected int32")
    for info in (*infos, places, *operands.outputs):
        check_axes(info, _MAX_AXES)


def _gather(data: int, descriptor: Descriptor, operands: Operands, arrays: Arrays) -> list[Array]:
    """Return the selected elements; `data` is the position of the input that has them."""
    way = gathering(descriptor, operands.input(data), operands.input(1 - data))
    indices = required_array(arrays, 1 - data).reshape(way.batches, 1, way.count, len(way.extents))
    limits = np.array(way.extents) - 1
    runs = (np.clip(indices, 0, limits) * (np.array(way.strides) // way.run)).sum(axis=-1)
    blocks = required_array(arrays, data).reshape(way.batches, way.outer, -1, way.run)
    batch, outer = np.ogrid[: way.batches, : way.outer]
    return [np.ascontiguousarray(blocks[batch[..., None], outer[..., None], runs]).reshape(operands.output.shape)]


def compute_update(_: DynamicUpdateSliceDescriptor, __: Operands, arrays: Arrays) -> list[Array]:
    """Return the data with a part replaced."""
    result, update = required_array(arrays, 0).copy(), required_array(arrays, 1)
    starts = required_array(arrays, 2).tolist()
    part = tuple(
        slice(first, first + extent)
        for first, extent in (
            (min(max(start, 0), whole - extent), extent)
            for start, whole, extent in zip(starts, result.shape, update.shape, strict=True)
        )
    )
    result[part] = update
    return [result]


def _take_indices(sample: LayerSample, shape: Shape, limit: int) -> None:
    """Add indices: constants within the limit, or an input with any numbers."""
    if sample.dice.random() < 0.5:
        sample.hold("indices", sample.array(shape, DataType.INT32, 0, limit - 1))
    else:
        sample.add(f"input_{len(sample.inputs)}", shape, DataType.INT32)


def _sample_gather(sample: LayerSample) -> Descriptor:
    shape = sample.shape(3)
    axis = sample.dice.randint(0, len(shape) - 1)
    batch = sample.dice.randint(0, axis)
    sample.keep(shape)
    _take_indices(sample, (*shape[:batch], *sample.shape(2)), shape[axis])
    return GatherDescriptor(axis=axis, batch_dims=batch)


def _sample_gather_nd(sample: LayerSample) -> Descriptor:
    shape = sample.shape(3)
    sample.keep(shape)
    _take_indices(sample, (*sample.shape(2), sample.dice.randint(1, len(shape))), min(shape))
    return GatherNdDescriptor()


def _sample_embedding_lookup(sample: LayerSample) -> Descriptor:
    shape = (sample.dice.randint(1, 6), *sample.shape(2))
    _take_indices(sample, (sample.dice.randint(1, 5),), shape[0])
    sample.keep(shape)
    sample.output_type = sample.dtype
    return EmbeddingLookupDescriptor()


def _sample_update(sample: LayerSample) -> Descriptor:
    shape = sample.shape()
    sample.keep(shape)
    sample.take(tuple(sample.dice.randint(1, extent) for extent in shape), sample.output)
    _take_indices(sample, (len(shape),), max(shape))
    return DynamicUpdateSliceDescriptor()


GATHER, GATHER_ND, EMBEDDING_LOOKUP = (
    Operator(
        descriptor=descriptor,
        type=type_,
        moves=True,
        indices=(1 - data,),
        shapes=shapes,
        check=partial(_check, (data,), 1 - data),
        kernel=partial(_gather, data),
        bound=known(1 - data),
        sample=sample,
    )
    for type_, descriptor, data, shapes, sample in (
        (LayerType.GATHER, GatherDescriptor, 0, infer_gather, _sample_gather),
        (LayerType.GATHER_ND, GatherNdDescriptor, 0, infer_gather_nd, _sample_gather_nd),
        (LayerType.EMBEDDING_LOOKUP, EmbeddingLookupDescriptor, 1, infer_embedding_lookup, _sample_embedding_lookup),
    )
)
DYNAMIC_UPDATE_SLICE = Operator(
    descriptor=DynamicUpdateSliceDescriptor,
    type=LayerType.DYNAMIC_UPDATE_SLICE,
    moves=True,
    indices=(2,),
    shapes=infer_update,
    check=partial(_check, (0, 1), 2),
    kernel=compute_update,
    bound=known(2),
    sample=_sample_update,
)
