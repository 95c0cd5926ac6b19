# SPDX-License-Identifier: Apache-2.0
"""Reads a STRIDED_SLICE whose begin or end is computed at run time, as the layers that compute the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from ferrule._frozen import positional
from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.tflite.adaptation import Added, added
from ferrule.formats.tflite.node import Node
from ferrule.formats.tflite.shapes import NEW_AXIS, SliceMasks
from ferrule.graph import Array, DataType, Descriptor, LayerType, TensorInfo
from ferrule.network import Network
from ferrule.operators.movement.gather import GatherDescriptor
from ferrule.operators.movement.reshape import ReshapeDescriptor
from ferrule.operators.movement.slice import SliceDescriptor

_BEGIN, _END, _STRIDES = 1, 2, 3
_HINT = "take a number of elements that is constant (tf.slice), or begin and end that are constants"


def has_computed_range(node: Node) -> bool:
    """Whether the begin or the end of a STRIDED_SLICE is computed at run time."""
    return not (node.is_known_vector(_BEGIN) and node.is_known_vector(_END))


@positional
class _Axis:
    """What is taken from an axis of the data."""

    count: int
    element: int | None
    """The element of the vector with the computed begins; None if there is none."""
    first: int = 0
    """Where it begins, unless that is computed."""


class ComputedSlice:
    """The layers of one STRIDED_SLICE: a SLICE from the computed begin on, and a RESHAPE.

    A negative begin counts from the end, as in TensorFlow Lite; one with which the slice would leave the tensor counts
    as the nearest one with which it does not. Where begin and end are both computed, the file states the number of
    elements, by the shape of the output.
    """

    def __init__(self, node: Node, name: str, network: Network, fresh: Callable[[TensorInfo], TensorInfo]) -> None:
        """`name` is that of the layers, `fresh` names tensors.

        Raises:
            UnsupportedError: the number of elements depends on what is computed.
            ModelError: the operator is malformed.
        """
        self._node = node
        self._name = name
        self._network = network
        self._fresh = fresh
        if not node.is_known_vector(_STRIDES):
            raise UnsupportedError("its strides are computed at run time, expected constants", hint=_HINT)
        self._strides = node.integers(_STRIDES, "strides")
        for position, role in ((_BEGIN, "begin"), (_END, "end")):
            info = node.input(position)
            if info.shape != (len(self._strides),):
                raise ModelError(
                    f"its {role} '{info.name}' has shape {list(info.shape)}, expected {len(self._strides)} elements, "
                    "as many as strides"
                )
            if info.dtype is not DataType.INT32:
                raise UnsupportedError(f"its {role} '{info.name}' is {info.dtype}, expected int32")
        self._masks = SliceMasks.of(node, len(self._strides))
        self._axes = self._read_axes()

    def layers(self, source: str, begin: str) -> Iterator[Added]:
        """Yield the layers, each of which must be added before the next one is asked for; both are tensors' names."""
        output = self._node.output()
        taken = tuple(axis.count for axis in self._axes)
        sliced = self._fresh(replace(output, shape=taken))
        inputs, first = [source], tuple(axis.first for axis in self._axes)
        if any(axis.element is not None for axis in self._axes):
            for added in self._begins(begin):
                yield added
                begin = added[0].outputs[0]
            inputs, first = [source, begin], ()
        yield self._layer(LayerType.SLICE, inputs, sliced, SliceDescriptor(begin=first, size=taken))
        yield self._layer(LayerType.RESHAPE, [sliced.name], output, ReshapeDescriptor(shape=output.shape))

    def _read_axes(self) -> list[_Axis]:
        """Return what is taken from each axis, after a comparison with the shape of the output."""
        output = self._node.output()
        extents, axes = iter(output.shape), []
        shape = iter(enumerate(self._node.source.shape))
        for place in self._masks.places:
            if place == NEW_AXIS:
                found = next(extents, None)
                expected: int | None = 1
            else:
                axis, extent = next(shape)
                if place is not None and self._masks.shrink >> place & 1:
                    axes.append(self._removed(axis, place, extent))
                    continue
                found = next(extents, None)
                expected = extent if place is None else self._count(axis, place, extent, found)
                computed = place is not None and not self._masks.begin >> place & 1
                axes.append(_Axis(expected, place if computed else None))
            if found != expected:
                raise ModelError(f"output '{output.name}' has shape {list(output.shape)}, expected {expected} elements")
        if next(extents, None) is not None:
            raise ModelError(f"output '{output.name}' has shape {list(output.shape)}, expected fewer axes")
        return axes

    def _removed(self, axis: int, place: int, extent: int) -> _Axis:
        if self._strides[place] < 0:
            raise UnsupportedError(
                f"axis {axis} is removed with a stride of {self._strides[place]}, expected a positive one"
            )
        if self._masks.begin >> place & 1:
            return _Axis(1, None)
        if not self._node.is_known_vector(_BEGIN):
            return _Axis(1, place)
        first = self._node.integers(_BEGIN, "begin")[place]
        if not -extent <= first < extent:
            raise ModelError(f"the index {first} is not on axis {axis} of shape {list(self._node.source.shape)}")
        return _Axis(1, None, first % extent)

    def _count(self, axis: int, place: int, extent: int, stated: int | None) -> int:
        """Return the number of elements of an axis that is not removed.

        An end that is relative to a computed begin (`offset`) has no oracle: LiteRT gives an output of another shape.
        """
        begin, end = self._masks.begin >> place & 1, self._masks.end >> place & 1
        if self._strides[place] != 1:
            raise UnsupportedError(
                f"axis {axis} has the stride {self._strides[place]} in a slice whose range is computed at run time, "
                "expected 1",
                hint=_HINT,
            )
        if begin and end:
            return extent
        last = self._node.integers(_END, "end")[place] if self._node.is_known_vector(_END) else None
        if last is not None and begin and not self._masks.offset:
            return min(max(last + extent if last < 0 else last, 0), extent)
        both = last is None and not end and not self._node.is_known_vector(_BEGIN)
        if (
            stated is None
            or not both
            or self._masks.offset
            or self._node.has_dynamic_output()
            or not 1 <= stated <= extent
        ):
            raise UnsupportedError(
                f"the number of elements of axis {axis} depends on a begin or an end that is computed at run time, "
                "expected a constant number",
                hint=_HINT,
            )
        return stated

    def _begins(self, vector: str) -> Iterator[Added]:
        """Yield the layers that compute the begin of each axis from the vector in the file."""
        elements, shape = [axis.element for axis in self._axes], self._node.source.shape
        count = len(self._strides)
        extents = np.zeros(count, np.int32)
        for axis, element in enumerate(elements):
            if element is not None:
                extents[element] = shape[axis]
        zeros = self._constant("zeros", np.zeros(count, np.int32))
        negative = replace(self._vector("is_negative", count), dtype=DataType.BOOL)
        yield self._layer(LayerType.LESS, [vector, zeros], negative)
        moved = self._vector("from_end", count)
        yield self._layer(LayerType.ADD, [vector, self._constant("extents", extents)], moved)
        begin = self._vector("begin", count)
        yield self._layer(LayerType.SELECT_V2, [negative.name, moved.name, vector], begin)
        if elements == list(range(count)):
            return
        positions = self._constant("positions", np.array([element or 0 for element in elements], np.int32))
        ordered = self._vector("ordered", len(elements))
        yield self._layer(LayerType.GATHER, [begin.name, positions], ordered, GatherDescriptor(axis=0))
        if None in elements:
            used = self._constant("used", np.array([element is not None for element in elements], np.int32))
            yield self._layer(LayerType.MUL, [ordered.name, used], self._vector("begins", len(elements)))

    def _layer(
        self, type_: LayerType, inputs: Sequence[str], output: TensorInfo, descriptor: Descriptor | None = None
    ) -> Added:
        return added(type_, inputs, output, self._network.unique_name(f"{self._name}_{type_.lower()}"), descriptor)

    def _vector(self, role: str, elements: int) -> TensorInfo:
        return self._fresh(TensorInfo(f"{self._name}_{role}", (elements,), DataType.INT32))

    def _constant(self, role: str, data: Array) -> str:
        return self._network.add_constant(self._vector(role, data.size), data)
