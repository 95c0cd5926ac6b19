# SPDX-License-Identifier: Apache-2.0
"""Which function lowers which layer type."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ferrule.backends.cpu_acc.lowering.nonlinear import lower_hard_swish, lower_logistic, lower_tanh
from ferrule.backends.cpu_acc.lowering.reshape import lower_view
from ferrule.backends.cpu_acc.lowering.softmax import lower_softmax
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.graph import LayerType

Lowering = Callable[[LoweringContext], LoweredOp]

LOWERINGS: Mapping[LayerType, Lowering] = {
    LayerType.SOFTMAX: lower_softmax,
    LayerType.LOGISTIC: lower_logistic,
    LayerType.TANH: lower_tanh,
    LayerType.HARD_SWISH: lower_hard_swish,
    LayerType.RESHAPE: lower_view,
    LayerType.SQUEEZE: lower_view,
    LayerType.EXPAND_DIMS: lower_view,
}
"""One row per layer type with a kernel in C."""
