# SPDX-License-Identifier: Apache-2.0
"""Methods that add layers which only move elements: reshapes, pads, slices, joins."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.errors import ModelError
from ferrule.network.builder import LayerBuilder, front_axes, sides
from ferrule.operators.movement.join import ConcatenationDescriptor, SplitDescriptor
from ferrule.operators.movement.pad import PadDescriptor, PadV2Descriptor
from ferrule.operators.movement.reshape import ExpandDimsDescriptor, ReshapeDescriptor, SqueezeDescriptor
from ferrule.operators.movement.slice import SliceDescriptor, StridedSliceDescriptor
from ferrule.operators.movement.transpose import TransposeDescriptor


class ShapeLayers(LayerBuilder):
    """Methods that add layers which only move elements; the outputs keep the input's quantisation.

    Each method returns the name of the output tensor, which is also the layer's name: `name`, or a name derived from
    the operator. `source` names the input tensor; negative axes count from the end. If a layer is not valid, the method
    raises ModelError or UnsupportedError with the reason and adds nothing.
    """

    def add_reshape_layer(self, source: str, shape: Sequence[int], *, name: str | None = None) -> str:
        """Add RESHAPE; at most one extent may be -1, which is then inferred."""
        return self._append_like(source, ReshapeDescriptor(shape=tuple(shape)), name=name)

    def add_squeeze_layer(self, source: str, axes: Sequence[int] = (), *, name: str | None = None) -> str:
        """Add SQUEEZE, which removes the given axes of extent 1, by default all of them."""
        descriptor = SqueezeDescriptor(axes=front_axes(axes, self.info(source)))
        return self._append_like(source, descriptor, name=name)

    def add_expand_dims_layer(self, source: str, axis: int, *, name: str | None = None) -> str:
        """Add EXPAND_DIMS, which inserts an axis of extent 1; `axis` is its index in the output."""
        descriptor = ExpandDimsDescriptor(axis=self._axis(source, axis, more=1))
        return self._append_like(source, descriptor, name=name)

    def add_transpose_layer(self, source: str, permutation: Sequence[int], *, name: str | None = None) -> str:
        """Add TRANSPOSE: axis i of the output is axis permutation[i] of the input."""
        descriptor = TransposeDescriptor(permutation=tuple(permutation))
        return self._append_like(source, descriptor, name=name)

    def add_pad_layer(self, source: str, paddings: Sequence[tuple[int, int]], *, name: str | None = None) -> str:
        """Add PAD with (before, after) per axis, filled with zero (for integers, the zero point)."""
        before, after = sides(paddings)
        return self._append_like(source, PadDescriptor(before=before, after=after), name=name)

    def add_pad_v2_layer(
        self, source: str, paddings: Sequence[tuple[int, int]], value: float, *, name: str | None = None
    ) -> str:
        """Add PADV2 with (before, after) per axis, filled with the stored value `value`."""
        before, after = sides(paddings)
        descriptor = PadV2Descriptor(before=before, after=after, value=value)
        return self._append_like(source, descriptor, name=name)

    def add_slice_layer(
        self, source: str, begin: str | Sequence[int], size: Sequence[int], *, name: str | None = None
    ) -> str:
        """Add SLICE; a size of -1 means up to the end.

        `begin` may name an int32 tensor with a number per axis; a slice that would leave `source` is moved into it.
        """
        if isinstance(begin, str):
            return self._append_like(source, SliceDescriptor(begin=(), size=tuple(size)), begin, name=name)
        return self._append_like(source, SliceDescriptor(begin=tuple(begin), size=tuple(size)), name=name)

    def add_strided_slice_layer(
        self,
        source: str,
        begin: Sequence[int],
        end: Sequence[int],
        strides: Sequence[int],
        *,
        begin_mask: int = 0,
        end_mask: int = 0,
        shrink_axis_mask: int = 0,
        name: str | None = None,
    ) -> str:
        """Add STRIDED_SLICE: begin:end:stride per axis.

        If bit i of `begin_mask` or `end_mask` is set, that end of axis i is open; bit i of `shrink_axis_mask` takes one
        element of axis i and removes the axis.
        """
        descriptor = StridedSliceDescriptor(
            begin=tuple(begin),
            end=tuple(end),
            strides=tuple(strides),
            begin_mask=begin_mask,
            end_mask=end_mask,
            shrink_axis_mask=shrink_axis_mask,
        )
        return self._append_like(source, descriptor, name=name)

    def add_concatenation_layer(self, sources: Sequence[str], axis: int, *, name: str | None = None) -> str:
        """Add CONCATENATION of one or more tensors; the output has the quantisation of the first."""
        if not sources:
            raise ModelError("a concatenation got no inputs, expected at least one")
        descriptor = ConcatenationDescriptor(axis=self._axis(sources[0], axis))
        return self._append_like(sources[0], descriptor, *sources[1:], name=name)

    def add_split_layer(self, source: str, axis: int, splits: int, *, name: str | None = None) -> tuple[str, ...]:
        """Add SPLIT into equal parts and return the names of the parts: `name` followed by _0, _1..."""
        descriptor = SplitDescriptor(axis=self._axis(source, axis), splits=splits)
        return self._append_parts(source, descriptor, splits, name)
