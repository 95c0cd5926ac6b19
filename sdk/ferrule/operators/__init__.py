# SPDX-License-Identifier: Apache-2.0
"""The operators that layers apply: descriptors, shapes, types, and the numpy reference kernels."""

from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.fixed_point import (
    Factor,
    activation_range,
    multiply_by_quantized_multiplier,
    multiply_once,
    product_scale,
    quantize_multiplier,
    rescale,
    saturating_rounding_doubling_high_mul,
    wrap_int32,
)
from ferrule.operators.elementwise.binary import BinaryDescriptor, combination_of, float_limits
from ferrule.operators.elementwise.stored_binary import Combination, Product, Sum, combine
from ferrule.operators.operator import Operands, Operator
from ferrule.operators.table import OPERATORS
from ferrule.operators.weighted.products import factors, folded_bias

__all__ = [
    "OPERATORS",
    "Activation",
    "BinaryDescriptor",
    "Combination",
    "Factor",
    "Operands",
    "Operator",
    "Product",
    "Sum",
    "activation_range",
    "combination_of",
    "combine",
    "factors",
    "float_limits",
    "folded_bias",
    "multiply_by_quantized_multiplier",
    "multiply_once",
    "product_scale",
    "quantize_multiplier",
    "rescale",
    "saturating_rounding_doubling_high_mul",
    "wrap_int32",
]
