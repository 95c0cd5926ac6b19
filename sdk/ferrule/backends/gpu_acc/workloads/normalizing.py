# SPDX-License-Identifier: Apache-2.0
"""Workloads of layers that normalise the rows of their input: LOG_SOFTMAX, L2_NORMALIZATION, and SOFTMAX of float32."""

from __future__ import annotations

import numpy as np

from ferrule.backends.gpu_acc.parameters import CODES, RowParameters, float_bits
from ferrule.backends.gpu_acc.workloads.launch import KernelWorkload, Launch, Loading
from ferrule.graph import Array
from ferrule.operators.arithmetic.fixed_point import multiply_by_quantized_multiplier, rounding_divide_by_pot
from ferrule.operators.reductions.log_softmax import Scaling, radius
from ferrule.operators.reductions.softmax import SoftmaxDescriptor, exponentials


def normalize_float(loading: Loading) -> KernelWorkload:
    """Return the workload of a layer of float32."""
    descriptor = loading.info.layer.descriptor
    beta = descriptor.beta if isinstance(descriptor, SoftmaxDescriptor) else 1.0
    return _workload(
        loading, "normalize_f32", _parameters(loading, operation=CODES[loading.info.layer.type], scale=float_bits(beta))
    )


def l2_normalization(loading: Loading) -> KernelWorkload:
    """Return the workload of an int8 L2_NORMALIZATION layer."""
    zero_point = loading.info.operands.input(0).zero_point
    return _workload(loading, "l2_normalization_s8", _parameters(loading, zero_point=zero_point))


def log_softmax(loading: Loading) -> KernelWorkload:
    """Return the workload of an int8 LOG_SOFTMAX layer."""
    scale = loading.info.operands.input(0).scale
    scaling, known = Scaling.of(scale), exponentials(1.0, scale)
    differences = np.zeros((256, 2), np.int32)
    differences[: known.size, 0] = rounding_divide_by_pot(known, 12)
    differences[:, 1] = multiply_by_quantized_multiplier(-np.arange(256), scaling.multiplier, scaling.shift)
    parameters = _parameters(
        loading, multiplier=scaling.reverse_multiplier, shift=scaling.reverse_shift, least=-radius(scaling) - 1
    )
    return _workload(loading, "log_softmax_s8", parameters, differences)


def _parameters(loading: Loading, **others: int) -> RowParameters:
    source = loading.info.operands.input(0)
    return RowParameters(rows=source.elements // source.shape[-1], length=source.shape[-1], **others)


def _workload(loading: Loading, kernel: str, parameters: RowParameters, *constants: Array) -> KernelWorkload:
    launch = Launch(kernel=kernel, parameters=parameters, constants=constants, items=(parameters.rows,))
    return KernelWorkload(loading, launch)
