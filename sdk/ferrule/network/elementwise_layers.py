# SPDX-License-Identifier: Apache-2.0
"""Methods that add further elementwise layers: CAST, DIV, FLOOR_DIV, FLOOR_MOD and SQUARED_DIFFERENCE."""

from __future__ import annotations

from ferrule.graph import DataType, LayerType, Quantization
from ferrule.network.builder import LayerBuilder
from ferrule.operators.activation import Activation
from ferrule.operators.binary import BinaryDescriptor
from ferrule.operators.cast import CastDescriptor
from ferrule.operators.division import FlooredDescriptor
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
