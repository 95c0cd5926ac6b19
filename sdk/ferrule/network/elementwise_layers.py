# SPDX-License-Identifier: Apache-2.0
"""Methods that add further elementwise layers, and the layers that normalise rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ferrule.errors import ModelError
from ferrule.graph import Array, DataType, LayerType, Quantization
from ferrule.network.builder import LayerBuilder, adding, row_of
from ferrule.operators.elementwise.add_n import AddNDescriptor
from ferrule.operators.elementwise.cast import CastDescriptor
from ferrule.operators.elementwise.comparison import ComparisonDescriptor
from ferrule.operators.elementwise.select import SelectV2Descriptor
from ferrule.operators.elementwise.squared_difference import SquaredDifferenceDescriptor
from ferrule.operators.operator import Operator
from ferrule.operators.reductions.l2_normalization import L2_NORMALIZATION
from ferrule.operators.reductions.layer_normalization import normalization_of
from ferrule.operators.reductions.log_softmax import LOG_SOFTMAX


class ElementwiseLayers(LayerBuilder):
    """Methods that add further elementwise layers; see `ArithmeticLayers` for names, broadcasting and errors."""

    def _add_normalization(self, row: Operator, source: str, *, name: str | None = None) -> str:
        quantization = row.prescribed.get(self.info(source).dtype)
        return self._append(row.descriptor(), [source], name=name, quantization=quantization)[0]

    add_l2_normalization_layer = adding(
        L2_NORMALIZATION,
        _add_normalization,
        "Add L2_NORMALIZATION: x over the root of the sum of squares over the last axis.",
    )
    add_log_softmax_layer = adding(LOG_SOFTMAX, _add_normalization, "Add LOG_SOFTMAX over the last axis.")

    def add_layer_normalization_layer(
        self,
        source: str,
        gamma: Array,
        beta: Array,
        *,
        epsilon: float = 1e-5,
        quantization: Quantization,
        name: str | None = None,
    ) -> str:
        """Add LAYER_NORMALIZATION of int8: (x - mean) / sqrt(variance + epsilon) * gamma + beta over the last axis."""
        info = self.info(source)
        descriptor = normalization_of(gamma, beta, epsilon, info, replace(info, quantization=quantization))
        return self._append(descriptor, [source], name=name, quantization=quantization)[0]

    def add_cast_layer(
        self, source: str, dtype: DataType, *, quantization: Quantization | None = None, name: str | None = None
    ) -> str:
        """Add CAST, which converts stored values to another element type; quantisations do not matter for it."""
        return self._append(CastDescriptor(), [source], name=name, quantization=quantization, dtype=dtype)[0]

    def add_squared_difference_layer(
        self, left: str, right: str, *, quantization: Quantization | None = None, name: str | None = None
    ) -> str:
        """Add SQUARED_DIFFERENCE: (left - right) squared."""
        descriptor = SquaredDifferenceDescriptor()
        return self._append(descriptor, [left, right], name=name, quantization=quantization)[0]

    def add_add_n_layer(
        self, sources: Sequence[str], *, quantization: Quantization | None = None, name: str | None = None
    ) -> str:
        """Add ADD_N: the sum of two or more tensors of one shape."""
        if not sources:
            raise ModelError("there are no inputs, expected at least 2")
        return self._append(AddNDescriptor(), sources, name=name, quantization=quantization)[0]

    def add_comparison_layer(self, type_: LayerType, left: str, right: str, *, name: str | None = None) -> str:
        """Add a comparison, such as LESS; the output is bool. ModelError lists the valid types."""
        row = row_of(type_, ComparisonDescriptor, "a comparison")
        return self._append(row.descriptor(), [left, right], name=name, row=row, dtype=DataType.BOOL)[0]

    def add_select_v2_layer(self, condition: str, left: str, right: str, *, name: str | None = None) -> str:
        """Add SELECT_V2: the element of `left` where the condition is true, otherwise that of `right`."""
        info, inputs = self.info(left), [condition, left, right]
        return self._append(SelectV2Descriptor(), inputs, name=name, quantization=info.quantization, dtype=info.dtype)[
            0
        ]
