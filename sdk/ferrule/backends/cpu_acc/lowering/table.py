# SPDX-License-Identifier: Apache-2.0
"""Which function lowers which layer type."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ferrule.backends.cpu_acc.lowering.softmax import lower_softmax
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.graph import LayerType

Lowering = Callable[[LoweringContext], LoweredOp]

LOWERINGS: Mapping[LayerType, Lowering] = {
    LayerType.SOFTMAX: lower_softmax,
}
"""One row per layer type with a kernel in C."""
