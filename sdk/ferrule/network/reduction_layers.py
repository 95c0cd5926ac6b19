# SPDX-License-Identifier: Apache-2.0
"""Methods that add layers which combine, select or accumulate elements along axes."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.graph import DataType, Quantization
from ferrule.network.builder import LayerBuilder, adding, front_axes
from ferrule.operators.operator import Operator
from ferrule.operators.reductions.arg_select import ARG_MAX, ARG_MIN, ArgSelectDescriptor
from ferrule.operators.reductions.cumsum import CumsumDescriptor
from ferrule.operators.reductions.reduce import MEAN, SUM, ReduceDescriptor
from ferrule.operators.reductions.reduce_select import REDUCE_ALL, REDUCE_ANY, REDUCE_MAX, REDUCE_MIN


class ReductionLayers(LayerBuilder):
    """Methods that add layers along axes; negative axes count from the end.

    Each method returns the name of the output tensor, which is also the layer's name: `name`, or a name derived from
    the operator. `source` names the input tensor. If a layer is not valid, the method raises ModelError or
    UnsupportedError with the reason and adds nothing.
    """

    def _add_reduction(
        self,
        row: Operator,
        source: str,
        axes: Sequence[int],
        *,
        keep_dims: bool = False,
        quantization: Quantization | None = None,
        name: str | None = None,
    ) -> str:
        descriptor = ReduceDescriptor(axes=front_axes(axes, self.info(source)), keep_dims=keep_dims)
        return self._append(descriptor, [source], name=name, row=row, quantization=quantization)[0]

    def _add_selection(
        self, row: Operator, source: str, axes: Sequence[int], *, keep_dims: bool = False, name: str | None = None
    ) -> str:
        own = self.info(source).quantization
        return self._add_reduction(row, source, axes, keep_dims=keep_dims, quantization=own, name=name)

    def _add_arg(self, row: Operator, source: str, axis: int, *, name: str | None = None) -> str:
        descriptor = ArgSelectDescriptor(axis=self._axis(source, axis))
        return self._append(descriptor, [source], name=name, row=row, dtype=DataType.INT32)[0]

    add_mean_layer = adding(MEAN, _add_reduction, "Add MEAN over the given axes; negative axes count from the end.")
    add_sum_layer = adding(SUM, _add_reduction, "Add SUM over the given axes; negative axes count from the end.")
    add_reduce_max_layer = adding(
        REDUCE_MAX, _add_selection, "Add REDUCE_MAX: the largest element. The output has the input's quantisation."
    )
    add_reduce_min_layer = adding(
        REDUCE_MIN, _add_selection, "Add REDUCE_MIN: the smallest element. The output has the input's quantisation."
    )
    add_reduce_any_layer = adding(REDUCE_ANY, _add_selection, "Add REDUCE_ANY of bool: whether any element is true.")
    add_reduce_all_layer = adding(REDUCE_ALL, _add_selection, "Add REDUCE_ALL of bool: whether all elements are true.")
    add_arg_max_layer = adding(
        ARG_MAX, _add_arg, "Add ARG_MAX: the index of the largest element along the axis, as int32."
    )
    add_arg_min_layer = adding(
        ARG_MIN, _add_arg, "Add ARG_MIN: the index of the smallest element along the axis, as int32."
    )

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
        descriptor = CumsumDescriptor(axis=self._axis(source, axis), exclusive=exclusive, reverse=reverse)
        return self._append(descriptor, [source], name=name, quantization=quantization)[0]
