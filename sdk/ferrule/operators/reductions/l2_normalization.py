# SPDX-License-Identifier: Apache-2.0
"""L2_NORMALIZATION over the last axis."""

from __future__ import annotations

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType
from ferrule.graph.real_values import saturated
from ferrule.operators.arithmetic import fixed_point_functions as functions
from ferrule.operators.arithmetic.error_bound import in_float64, least, of_floats, rounding
from ferrule.operators.arithmetic.fixed_point import multiply_by_quantized_multiplier
from ferrule.operators.movement.checks import check_axes, check_per_tensor, check_prescribed, check_types
from ferrule.operators.operator import Evaluation, Operands, Operator, of_one
from ferrule.operators.sample import FROM_MINUS_1_TO_1, sample_fixed

EPSILON = float(np.float32(1e-6))
"""The smallest norm by which float32 values are divided."""
_TYPES = frozenset({DataType.FLOAT32, DataType.INT8})
_MAX_AXES = 4
_MAX_DEPTH = (1 << 31) // (255 * 255)
"""The longest int8 row whose sum of squares fits into 32 bits."""
_OUTPUT_BITS = 7


@frozen
class L2NormalizationDescriptor(Descriptor):
    """One input, one output, over the last axis."""


def check(_: L2NormalizationDescriptor, operands: Operands) -> None:
    """Refuse types and quantisations that TensorFlow Lite Micro's kernel does not support or would misinterpret."""
    check_types(operands, _TYPES)
    source, output = operands.ends
    if not source.shape:
        raise UnsupportedError(f"tensor '{source.name}' is a scalar, L2_NORMALIZATION needs an axis")
    check_axes(source, _MAX_AXES)
    if output.dtype.is_float:
        return
    check_per_tensor(source, output)
    check_prescribed("L2_NORMALIZATION", output, FROM_MINUS_1_TO_1[output.dtype])
    if source.shape[-1] > _MAX_DEPTH:
        raise UnsupportedError(
            f"tensor '{source.name}' has rows of {source.shape[-1]}, L2_NORMALIZATION of int8 takes at most "
            f"{_MAX_DEPTH}"
        )


def kernel(_: L2NormalizationDescriptor, operands: Operands, data: Array) -> Array:
    """Return the values divided by the square root of the sum of their squares over the last axis."""
    if operands.output.dtype is DataType.INT8:
        centred = data.astype(np.int64) - operands.source.zero_point
        inverse, shift = functions.inverse_sqrt(np.square(centred).sum(axis=-1, keepdims=True))
        result = multiply_by_quantized_multiplier(centred, inverse, shift + _OUTPUT_BITS)
        return saturated(result, np.int8)
    wide = data.astype(np.float64)
    with np.errstate(all="ignore"):
        norm = np.maximum(np.sqrt(np.square(wide).sum(axis=-1, keepdims=True)), EPSILON)
        return np.asarray(wide / norm, np.float32)


def _bound(evaluation: Evaluation) -> list[Array]:
    """Return that of the quotients: the errors of the norm and of the division."""
    data, error, output = in_float64(evaluation)
    result = np.abs(output)
    with np.errstate(all="ignore"):
        norm = np.sqrt(np.square(data).sum(axis=-1, keepdims=True))
        moved_norm = np.sqrt(np.square(error).sum(axis=-1, keepdims=True))
        moved = (error + result * moved_norm) / np.maximum(norm - moved_norm, EPSILON)
    return [np.nan_to_num(moved, nan=np.inf) + rounding(evaluation, result + moved, 3) + least(evaluation)]


L2_NORMALIZATION = Operator(
    descriptor=L2NormalizationDescriptor,
    type=LayerType.L2_NORMALIZATION,
    prescribed=FROM_MINUS_1_TO_1,
    check=check,
    kernel=of_one(kernel),
    bound=of_floats(_bound),
    sample=sample_fixed(L2NormalizationDescriptor(), FROM_MINUS_1_TO_1),
)
