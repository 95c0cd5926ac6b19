# SPDX-License-Identifier: Apache-2.0
"""Methods that add elementwise layers: activations, QUANTIZE and DEQUANTIZE; SOFTMAX is here, too."""

from __future__ import annotations

import numpy as np

from ferrule.graph import Array, DataType, LayerType, Quantization
from ferrule.network.builder import Constant, LayerBuilder, adding, row_of
from ferrule.operators.elementwise.functions import ElementwiseUnaryDescriptor
from ferrule.operators.elementwise.nonlinear import HARD_SWISH, LOGISTIC, TANH
from ferrule.operators.elementwise.quantize import DequantizeDescriptor, QuantizeDescriptor
from ferrule.operators.elementwise.rectify import RELU, RELU6, RELU_N1_TO_1, LeakyReluDescriptor, PreluDescriptor
from ferrule.operators.operator import Operator
from ferrule.operators.reductions.softmax import SOFTMAX, SoftmaxDescriptor


class ActivationLayers(LayerBuilder):
    """Methods that add activations and changes of type.

    Each method returns the name of the output tensor, which is also the layer's name: `name`, or a name derived from
    the operator. `source` names the input tensor. `quantization` is that of the output and defaults to the input's;
    LOGISTIC, TANH and SOFTMAX have the quantisation that TensorFlow Lite prescribes. If a layer is not valid, the
    method raises ModelError or UnsupportedError with the reason and adds nothing.
    """

    def _add_unary(
        self, row: Operator, source: str, *, quantization: Quantization | None = None, name: str | None = None
    ) -> str:
        quantization = quantization or self.info(source).quantization
        return self._append(row.descriptor(), [source], name=name, row=row, quantization=quantization)[0]

    def _add_prescribed(self, row: Operator, source: str, *, name: str | None = None) -> str:
        return self._add_unary(row, source, quantization=row.prescribed.get(self.info(source).dtype), name=name)

    add_relu_layer = adding(RELU, _add_unary, "Add RELU: x clamped to 0 or above.")
    add_relu6_layer = adding(RELU6, _add_unary, "Add RELU6: x clamped to the range 0 to 6.")
    add_relu_n1_to_1_layer = adding(RELU_N1_TO_1, _add_unary, "Add RELU_N1_TO_1: x clamped to the range -1 to 1.")
    add_hard_swish_layer = adding(HARD_SWISH, _add_unary, "Add HARD_SWISH: x * relu6(x + 3) / 6.")
    add_logistic_layer = adding(LOGISTIC, _add_prescribed, "Add LOGISTIC: 1 / (1 + exp(-x)).")
    add_tanh_layer = adding(TANH, _add_prescribed, "Add TANH: the hyperbolic tangent of x.")

    def add_leaky_relu_layer(
        self, source: str, alpha: float, *, quantization: Quantization | None = None, name: str | None = None
    ) -> str:
        """Add LEAKY_RELU: x, with negative elements multiplied by alpha (rounded to float32)."""
        descriptor = LeakyReluDescriptor(alpha=float(np.float32(alpha)))
        quantization = quantization or self.info(source).quantization
        return self._append(descriptor, [source], name=name, quantization=quantization)[0]

    def add_prelu_layer(
        self,
        source: str,
        alpha: Array,
        *,
        alpha_quantization: Quantization | None = None,
        quantization: Quantization | None = None,
        name: str | None = None,
    ) -> str:
        """Add PRELU: x, with negative elements multiplied by alpha, which broadcasts to the shape of x."""
        factors = Constant(role="alpha", data=alpha, quantization=alpha_quantization)
        quantization = quantization or self.info(source).quantization
        return self._append(PreluDescriptor(), [source, factors], name=name, quantization=quantization)[0]

    def add_elementwise_unary_layer(
        self, type_: LayerType, source: str, *, quantization: Quantization | None = None, name: str | None = None
    ) -> str:
        """Add a function of one tensor without parameters, such as NEG; ModelError lists the valid types."""
        row = row_of(type_, ElementwiseUnaryDescriptor, "an elementwise function without parameters")
        return self._add_unary(row, source, quantization=quantization, name=name)

    def add_softmax_layer(self, source: str, *, beta: float = 1.0, name: str | None = None) -> str:
        """Add SOFTMAX of beta * x over the last axis (beta is rounded to float32)."""
        info, descriptor = self.info(source), SoftmaxDescriptor(beta=float(np.float32(beta)))
        quantization = SOFTMAX.prescribed.get(info.dtype, info.quantization)
        return self._append(descriptor, [source], name=name, quantization=quantization)[0]

    def add_quantize_layer(
        self, source: str, dtype: DataType, quantization: Quantization, *, name: str | None = None
    ) -> str:
        """Add QUANTIZE, which converts a float32 or integer tensor to an integer type."""
        return self._append(QuantizeDescriptor(), [source], name=name, quantization=quantization, dtype=dtype)[0]

    def add_dequantize_layer(self, source: str, *, name: str | None = None) -> str:
        """Add DEQUANTIZE, which converts an integer tensor to float32."""
        return self._append(DequantizeDescriptor(), [source], name=name, dtype=DataType.FLOAT32)[0]
