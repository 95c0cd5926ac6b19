# SPDX-License-Identifier: Apache-2.0
"""Methods that add layers which combine or reduce tensors, such as ADD, BATCH_MATMUL, MAXIMUM and MEAN."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.graph import LayerType, Quantization
from ferrule.network.builder import LayerBuilder, front_axis
from ferrule.operators.activation import Activation
from ferrule.operators.batch_matmul import BatchMatmulDescriptor
from ferrule.operators.binary import BinaryDescriptor, ExtremumDescriptor
from ferrule.operators.reduce import ReduceDescriptor


class ArithmeticLayers(LayerBuilder):
    """Methods that add arithmetic layers.

    Each method returns the name of the output tensor, which is also the layer's name: `name`, or a name derived from
    the operator. `quantization` is that of the output. `left` and `right` name tensors that broadcast by numpy's rules.
    If a layer is not valid, the method raises ModelError or UnsupportedError with the reason and adds nothing.
    """

    def add_add_layer(
        self,
        left: str,
        right: str,
        *,
        activation: Activation = Activation.NONE,
        quantization: Quantization | None = None,
        name: str | None = None,
    ) -> str:
        """Add ADD: left + right."""
        return self._add_binary(LayerType.ADD, left, right, activation, quantization, name)

    def add_sub_layer(
        self,
        left: str,
        right: str,
        *,
        activation: Activation = Activation.NONE,
        quantization: Quantization | None = None,
        name: str | None = None,
    ) -> str:
        """Add SUB: left - right."""
        return self._add_binary(LayerType.SUB, left, right, activation, quantization, name)

    def add_mul_layer(
        self,
        left: str,
        right: str,
        *,
        activation: Activation = Activation.NONE,
        quantization: Quantization | None = None,
        name: str | None = None,
    ) -> str:
        """Add MUL: left * right, element by element."""
        return self._add_binary(LayerType.MUL, left, right, activation, quantization, name)

    def add_batch_matmul_layer(
        self,
        left: str,
        right: str,
        *,
        adj_x: bool = False,
        adj_y: bool = False,
        quantization: Quantization | None = None,
        name: str | None = None,
    ) -> str:
        """Add BATCH_MATMUL: the products of the matrices in the last two axes; the axes before them broadcast.

        With `adj_x`, the matrices of `left` are transposed; with `adj_y`, those of `right`.
        """
        descriptor = BatchMatmulDescriptor(adj_x=adj_x, adj_y=adj_y)
        return self._append(LayerType.BATCH_MATMUL, descriptor, [left, right], name=name, quantization=quantization)[0]

    def add_maximum_layer(self, left: str, right: str, *, name: str | None = None) -> str:
        """Add MAXIMUM: the larger of two elements. The output has the quantisation of `left`."""
        quantization = self.info(left).quantization
        return self._append(
            LayerType.MAXIMUM, ExtremumDescriptor(), [left, right], name=name, quantization=quantization
        )[0]

    def add_minimum_layer(self, left: str, right: str, *, name: str | None = None) -> str:
        """Add MINIMUM: the smaller of two elements. The output has the quantisation of `left`."""
        quantization = self.info(left).quantization
        return self._append(
            LayerType.MINIMUM, ExtremumDescriptor(), [left, right], name=name, quantization=quantization
        )[0]

    def add_mean_layer(
        self,
        source: str,
        axes: Sequence[int],
        *,
        keep_dims: bool = False,
        quantization: Quantization | None = None,
        name: str | None = None,
    ) -> str:
        """Add MEAN over the given axes; negative axes count from the end."""
        return self._add_reduction(LayerType.MEAN, source, axes, keep_dims, quantization, name)

    def add_sum_layer(
        self,
        source: str,
        axes: Sequence[int],
        *,
        keep_dims: bool = False,
        quantization: Quantization | None = None,
        name: str | None = None,
    ) -> str:
        """Add SUM over the given axes; negative axes count from the end."""
        return self._add_reduction(LayerType.SUM, source, axes, keep_dims, quantization, name)

    def _add_binary(
        self,
        type_: LayerType,
        left: str,
        right: str,
        activation: Activation,
        quantization: Quantization | None,
        name: str | None,
    ) -> str:
        descriptor = BinaryDescriptor(activation=activation)
        return self._append(type_, descriptor, [left, right], name=name, quantization=quantization)[0]

    def _add_reduction(
        self,
        type_: LayerType,
        source: str,
        axes: Sequence[int],
        keep_dims: bool,
        quantization: Quantization | None,
        name: str | None,
    ) -> str:
        rank = len(self.info(source).shape)
        descriptor = ReduceDescriptor(
            axes=tuple(sorted({front_axis(axis, rank) for axis in axes})), keep_dims=keep_dims
        )
        return self._append(type_, descriptor, [source], name=name, quantization=quantization)[0]
