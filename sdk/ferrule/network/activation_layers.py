# SPDX-License-Identifier: Apache-2.0
"""Adding layers that change each element by itself: activations, QUANTIZE and DEQUANTIZE; and SOFTMAX."""

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

    Each returns the name of the output tensor, which is the layer's: `name`, or one made from the operator's.
    `source` names the input tensor. `quantization` is the output's and defaults to the input's; LOGISTIC, TANH and
    SOFTMAX have the one that TensorFlow Lite prescribes. ModelError or UnsupportedError says what does not fit, and
    nothing is added then.
    """

    def add_relu_layer(self, source: str, *, quantization: Quantization | None = None, name: str | None = None) -> str:
        """Add RELU: x clamped to 0 and above."""
        return self._add_unary(LayerType.RELU, ReluDescriptor(), source, quantization, name)

    def add_relu6_layer(self, source: str, *, quantization: Quantization | None = None, name: str | None = None) -> str:
        """Add RELU6: x clamped to 0 to 6."""
        return self._add_unary(LayerType.RELU6, ReluDescriptor(), source, quantization, name)

    def add_relu_n1_to_1_layer(
        self, source: str, *, quantization: Quantization | None = None, name: str | None = None
    ) -> str:
        """Add RELU_N1_TO_1: x clamped to -1 to 1."""
        return self._add_unary(LayerType.RELU_N1_TO_1, ReluDescriptor(), source, quantization, name)

    def add_leaky_relu_layer(
        self, source: str, alpha: float, *, quantization: Quantization | None = None, name: str | None = None
    ) -> str:
        """Add LEAKY_RELU: x, times alpha (rounded to float32) where it is negative."""
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
        """Add PRELU: x, times alpha where it is negative; alpha broadcasts against x."""
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

    def add_elementwise_unary_layer(self, type_: LayerType, source: str, *, name: str | None = None) -> str:
        """Add a function of one float32 without parameters, such as NEG; ModelError lists them."""
        functions = [row.type for row in ELEMENTWISE_UNARY]
        if type_ not in functions:
            raise ModelError(f"{type_} is no elementwise function without parameters, expected {', '.join(functions)}")
        return self._add_unary(type_, ElementwiseUnaryDescriptor(), source, None, name)

    def add_logistic_layer(self, source: str, *, name: str | None = None) -> str:
        """Add LOGISTIC: 1 / (1 + exp(-x))."""
        quantization = FROM_0_TO_1.get(self.info(source).dtype)
        return self._add_unary(LayerType.LOGISTIC, LogisticDescriptor(), source, quantization, name)

    def add_tanh_layer(self, source: str, *, name: str | None = None) -> str:
        """Add TANH."""
        quantization = FROM_MINUS_1_TO_1.get(self.info(source).dtype)
        return self._add_unary(LayerType.TANH, TanhDescriptor(), source, quantization, name)

    def add_softmax_layer(self, source: str, *, beta: float = 1.0, name: str | None = None) -> str:
        """Add SOFTMAX over the last axis of beta * x (beta rounded to float32)."""
        quantization = FROM_0_TO_1.get(self.info(source).dtype)
        descriptor = SoftmaxDescriptor(beta=float(np.float32(beta)))
        return self._add_unary(LayerType.SOFTMAX, descriptor, source, quantization, name)

    def add_quantize_layer(
        self, source: str, dtype: DataType, quantization: Quantization, *, name: str | None = None
    ) -> str:
        """Add QUANTIZE: a float32 or integer tensor to an integer type."""
        return self._append(
            LayerType.QUANTIZE, QuantizeDescriptor(), [source], name=name, quantization=quantization, dtype=dtype
        )[0]

    def add_dequantize_layer(self, source: str, *, name: str | None = None) -> str:
        """Add DEQUANTIZE: an integer tensor to float32."""
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
