# SPDX-License-Identifier: Apache-2.0
"""Methods that add further elementwise layers, and the layers that normalise rows."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.errors import ModelError
from ferrule.graph import DataType, LayerType, Quantization
from ferrule.network.builder import LayerBuilder
from ferrule.operators.activation import Activation
from ferrule.operators.add_n import AddNDescriptor
from ferrule.operators.binary import BinaryDescriptor
from ferrule.operators.cast import CastDescriptor
from ferrule.operators.comparison import COMPARISONS, ComparisonDescriptor, LogicalDescriptor
from ferrule.operators.division import FlooredDescriptor
from ferrule.operators.l2_normalization import L2NormalizationDescriptor
from ferrule.operators.log_softmax import OUTPUT, LogSoftmaxDescriptor
from ferrule.operators.sample import FROM_MINUS_1_TO_1
from ferrule.operators.select import SelectV2Descriptor
from ferrule.operators.squared_difference import SquaredDifferenceDescriptor


class ElementwiseLayers(LayerBuilder):
    """Methods that add further elementwise layers; see `ArithmeticLayers` for names, broadcasting and errors."""

    def add_cast_layer(
        self, source: str, dtype: DataType, *, quantization: Quantization | None = None, name: str | None = None
    ) -> str:
        """Add CAST, which converts stored values to another element type; quantisations do not matter for it."""
        return self._append(
            LayerType.CAST, CastDescriptor(), [source], name=name, quantization=quantization, dtype=dtype
        )[0]

    def add_div_layer(
        self,
        left: str,
        right: str,
        *,
        activation: Activation = Activation.NONE,
        quantization: Quantization | None = None,
        name: str | None = None,
    ) -> str:
        """Add DIV: left / right; int32 is rounded towards zero."""
        descriptor = BinaryDescriptor(activation=activation)
        return self._append(LayerType.DIV, descriptor, [left, right], name=name, quantization=quantization)[0]

    def add_floor_div_layer(self, left: str, right: str, *, name: str | None = None) -> str:
        """Add FLOOR_DIV: left / right, rounded down."""
        return self._append(LayerType.FLOOR_DIV, FlooredDescriptor(), [left, right], name=name, quantization=None)[0]

    def add_floor_mod_layer(self, left: str, right: str, *, name: str | None = None) -> str:
        """Add FLOOR_MOD: the remainder of left / right, with the sign of `right`."""
        return self._append(LayerType.FLOOR_MOD, FlooredDescriptor(), [left, right], name=name, quantization=None)[0]

    def add_squared_difference_layer(
        self, left: str, right: str, *, quantization: Quantization | None = None, name: str | None = None
    ) -> str:
        """Add SQUARED_DIFFERENCE: (left - right) squared."""
        return self._append(
            LayerType.SQUARED_DIFFERENCE,
            SquaredDifferenceDescriptor(),
            [left, right],
            name=name,
            quantization=quantization,
        )[0]

    def add_add_n_layer(
        self, sources: Sequence[str], *, quantization: Quantization | None = None, name: str | None = None
    ) -> str:
        """Add ADD_N: the sum of two or more tensors of one shape."""
        if not sources:
            raise ModelError("there are no inputs, expected at least 2")
        return self._append(LayerType.ADD_N, AddNDescriptor(), sources, name=name, quantization=quantization)[0]

    def add_comparison_layer(self, type_: LayerType, left: str, right: str, *, name: str | None = None) -> str:
        """Add a comparison, such as LESS; the output is bool. ModelError lists the valid types."""
        types = [row.type for row in COMPARISONS]
        if type_ not in types:
            raise ModelError(f"{type_} is not a comparison, expected {', '.join(types)}")
        return self._append(
            type_, ComparisonDescriptor(), [left, right], name=name, quantization=None, dtype=DataType.BOOL
        )[0]

    def add_logical_and_layer(self, left: str, right: str, *, name: str | None = None) -> str:
        """Add LOGICAL_AND: whether both elements are true."""
        return self._append(LayerType.LOGICAL_AND, LogicalDescriptor(), [left, right], name=name, quantization=None)[0]

    def add_logical_or_layer(self, left: str, right: str, *, name: str | None = None) -> str:
        """Add LOGICAL_OR: whether one element is true."""
        return self._append(LayerType.LOGICAL_OR, LogicalDescriptor(), [left, right], name=name, quantization=None)[0]

    def add_select_v2_layer(self, condition: str, left: str, right: str, *, name: str | None = None) -> str:
        """Add SELECT_V2: the element of `left` where the condition is true, otherwise that of `right`."""
        info = self.info(left)
        return self._append(
            LayerType.SELECT_V2,
            SelectV2Descriptor(),
            [condition, left, right],
            name=name,
            quantization=info.quantization,
            dtype=info.dtype,
        )[0]

    def add_l2_normalization_layer(self, source: str, *, name: str | None = None) -> str:
        """Add L2_NORMALIZATION: x over the root of the sum of squares over the last axis."""
        quantization = FROM_MINUS_1_TO_1.get(self.info(source).dtype)
        descriptor = L2NormalizationDescriptor()
        return self._append(LayerType.L2_NORMALIZATION, descriptor, [source], name=name, quantization=quantization)[0]

    def add_log_softmax_layer(self, source: str, *, name: str | None = None) -> str:
        """Add LOG_SOFTMAX over the last axis."""
        quantization = OUTPUT.get(self.info(source).dtype)
        descriptor = LogSoftmaxDescriptor()
        return self._append(LayerType.LOG_SOFTMAX, descriptor, [source], name=name, quantization=quantization)[0]
