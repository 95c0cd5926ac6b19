# SPDX-License-Identifier: Apache-2.0
"""Methods that add elementwise layers: activations, QUANTIZE and DEQUANTIZE; SOFTMAX is here, too."""

from __future__ import annotations

import numpy as np

from ferrule.errors import ModelError
from ferrule.graph import Array, DataType, Descriptor, LayerType, Quantization
from ferrule.network.builder import Constant, LayerBuilder
from ferrule.operators.elementwise_unary import ELEMENTWISE_UNARY, ElementwiseUnaryDescriptor
from ferrule.operators.nonlinear import HardSwishDescriptor, LogisticDescriptor, TanhDescriptor
from ferrule.operators.quantize import DequantizeDescriptor, QuantizeDescriptor
from ferrule.operators.rectify import LeakyReluDescriptor, PreluDescriptor, ReluDescriptor
from ferrule.operators.sample import FROM_0_TO_1, FROM_MINUS_1_TO_1
from ferrule.operators.softmax import SoftmaxDescriptor


class ActivationLayers(LayerBuilder):
    """Methods that add activations and changes of type.

    Each method returns the name of the output tensor, which is also the layer's name: `name`, or a name derived from
    the operator. `source` names the input tensor. `quantization` is that of the output and defaults to the input's;
    LOGISTIC, TANH and SOFTMAX have the quantisation that TensorFlow Lite prescribes. If a layer is not valid, the
    method raises ModelError or UnsupportedError with the reason and adds nothing.
    """

    def add_relu_layer(self, source: str, *, quantization: Quantization | None = None, name: str | None = None) -> str:
        """Add RELU: x clamped to 0 or above."""
        return self._add_unary(LayerType.RELU, ReluDescriptor(), source, quantization, name)

    def add_relu6_layer(self, source: str, *, quantization: Quantization | None = None, name: str | None = None) -> str:
        """Add RELU6: x clamped to the range 0 to 6."""
        return self._add_unary(LayerType.RELU6, ReluDescriptor(), source, quantization, name)

    def add_relu_n1_to_1_layer(
        self, source: str, *, quantization: Quantization | None = None, name: str | None = None
    ) -> str:
        """Add RELU_N1_TO_1: x clamped to the range -1 to 1."""
        return self._add_unary(LayerType.RELU_N1_TO_1, ReluDescriptor(), source, quantization, name)

    def add_leaky_relu_layer(
        self, source: str, alpha: float, *, quantization: Quantization | None = None, name: str | None = None
    ) -> str:
        """Add LEAKY_RELU: x, with negative elements multiplied by alpha (rounded to float32)."""
        descriptor = LeakyReluDescriptor(alpha=float(np.float32(alpha)))
        return self._add_unary(LayerType.LEAKY_RELU, descriptor, source, quantization, name)

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
        constant = Constant(role="alpha", data=alpha, quantization=alpha_quantization)
        return self._append(
            LayerType.PRELU,
            PreluDescriptor(),
            [source, constant],
            name=name,
            quantization=quantization or self.info(source).quantization,
        )[0]

    def add_hard_swish_layer(
        self, source: str, *, quantization: Quantization | None = None, name: str | None = None
    ) -> str:
        """Add HARD_SWISH: x * relu6(x + 3) / 6."""
        return self._add_unary(LayerType.HARD_SWISH, HardSwishDescriptor(), source, quantization, name)

    def add_elementwise_unary_layer(
        self, type_: LayerType, source: str, *, quantization: Quantization | None = None, name: str | None = None
    ) -> str:
        """Add a function of one tensor without parameters, such as NEG; ModelError lists the valid types."""
        functions = [row.type for row in ELEMENTWISE_UNARY]
        if type_ not in functions:
            raise ModelError(
                f"{type_} is not an elementwise function without parameters, expected {', '.join(functions)}"
            )
        return self._add_unary(type_, ElementwiseUnaryDescriptor(), source, quantization, name)

    def add_logistic_layer(self, source: str, *, name: str | None = None) -> str:
        """Add LOGISTIC: 1 / (1 + exp(-x))."""
        quantization = FROM_0_TO_1.get(self.info(source).dtype)
        return self._add_unary(LayerType.LOGISTIC, LogisticDescriptor(), source, quantization, name)

    def add_tanh_layer(self, source: str, *, name: str | None = None) -> str:
        """Add TANH: the hyperbolic tangent of x."""
        quantization = FROM_MINUS_1_TO_1.get(self.info(source).dtype)
        return self._add_unary(LayerType.TANH, TanhDescriptor(), source, quantization, name)

    def add_softmax_layer(self, source: str, *, beta: float = 1.0, name: str | None = None) -> str:
        """Add SOFTMAX of beta * x over the last axis (beta is rounded to float32)."""
        quantization = FROM_0_TO_1.get(self.info(source).dtype)
        descriptor = SoftmaxDescriptor(beta=float(np.float32(beta)))
        return self._add_unary(LayerType.SOFTMAX, descriptor, source, quantization, name)

    def add_quantize_layer(
        self, source: str, dtype: DataType, quantization: Quantization, *, name: str | None = None
    ) -> str:
        """Add QUANTIZE, which converts a float32 or integer tensor to an integer type."""
        return self._append(
            LayerType.QUANTIZE, QuantizeDescriptor(), [source], name=name, quantization=quantization, dtype=dtype
        )[0]

    def add_dequantize_layer(self, source: str, *, name: str | None = None) -> str:
        """Add DEQUANTIZE, which converts an integer tensor to float32."""
        return self._append(
            LayerType.DEQUANTIZE,
            DequantizeDescriptor(),
            [source],
            name=name,
            quantization=None,
            dtype=DataType.FLOAT32,
        )[0]

    def _add_unary(
        self,
        type_: LayerType,
        descriptor: Descriptor,
        source: str,
        quantization: Quantization | None,
        name: str | None,
    ) -> str:
        quantization = quantization or self.info(source).quantization
        return self._append(type_, descriptor, [source], name=name, quantization=quantization)[0]
