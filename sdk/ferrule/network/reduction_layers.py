# SPDX-License-Identifier: Apache-2.0
"""Methods that add layers which select or accumulate elements along axes."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.graph import DataType, LayerType, Quantization
from ferrule.network.builder import LayerBuilder, front_axis
from ferrule.operators.arg_select import ArgSelectDescriptor
from ferrule.operators.cumsum import CumsumDescriptor
from ferrule.operators.reduce import ReduceDescriptor


class ReductionLayers(LayerBuilder):
    """Methods that add layers along axes; negative axes count from the end.

    Each method returns the name of the output tensor, which is also the layer's name: `name`, or a name derived from
    the operator. `source` names the input tensor. If a layer is not valid, the method raises ModelError or
    UnsupportedError with the reason and adds nothing.
    """

    def add_reduce_max_layer(
        self, source: str, axes: Sequence[int], *, keep_dims: bool = False, name: str | None = None
    ) -> str:
        """Add REDUCE_MAX: the largest element. The output has the input's quantisation."""
        return self._add_selection(LayerType.REDUCE_MAX, source, axes, keep_dims, name)

    def add_reduce_min_layer(
        self, source: str, axes: Sequence[int], *, keep_dims: bool = False, name: str | None = None
    ) -> str:
        """Add REDUCE_MIN: the smallest element. The output has the input's quantisation."""
        return self._add_selection(LayerType.REDUCE_MIN, source, axes, keep_dims, name)

    def add_reduce_any_layer(
        self, source: str, axes: Sequence[int], *, keep_dims: bool = False, name: str | None = None
    ) -> str:
        """Add REDUCE_ANY of bool: whether any element is true."""
        return self._add_selection(LayerType.REDUCE_ANY, source, axes, keep_dims, name)

    def add_reduce_all_layer(
        self, source: str, axes: Sequence[int], *, keep_dims: bool = False, name: str | None = None
    ) -> str:
        """Add REDUCE_ALL of bool: whether all elements are true."""
        return self._add_selection(LayerType.REDUCE_ALL, source, axes, keep_dims, name)

    def add_arg_max_layer(self, source: str, axis: int, *, name: str | None = None) -> str:
        """Add ARG_MAX: the index of the largest element along the axis, as int32."""
        return self._add_arg(LayerType.ARG_MAX, source, axis, name)

    def add_arg_min_layer(self, source: str, axis: int, *, name: str | None = None) -> str:
        """Add ARG_MIN: the index of the smallest element along the axis, as int32."""
        return self._add_arg(LayerType.ARG_MIN, source, axis, name)

    def add_cumsum_layer(
        self,
        source: str,
        axis: int,
        *,
        exclusive: bool = False,
        reverse: bool = False,
        quantization: Quantization | None = None,
        name: str | None = None,
    ) -> str:
        """Add CUMSUM: the sums along the axis up to each element, or from it on if `reverse` is set.

        If `exclusive` is set, a sum leaves out the element at its own position. `quantization` is that of the output.
        """
        descriptor = CumsumDescriptor(
            axis=front_axis(axis, len(self.info(source).shape)), exclusive=exclusive, reverse=reverse
        )
        return self._append(LayerType.CUMSUM, descriptor, [source], name=name, quantization=quantization)[0]

    def _add_selection(
        self, type_: LayerType, source: str, axes: Sequence[int], keep_dims: bool, name: str | None
    ) -> str:
        info = self.info(source)
        found = tuple(sorted({front_axis(axis, len(info.shape)) for axis in axes}))
        descriptor = ReduceDescriptor(axes=found, keep_dims=keep_dims)
        return self._append(type_, descriptor, [source], name=name, quantization=info.quantization)[0]

    def _add_arg(self, type_: LayerType, source: str, axis: int, name: str | None) -> str:
        descriptor = ArgSelectDescriptor(axis=front_axis(axis, len(self.info(source).shape)))
        return self._append(type_, descriptor, [source], name=name, quantization=None, dtype=DataType.INT32)[0]
