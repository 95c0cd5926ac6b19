# SPDX-License-Identifier: Apache-2.0
"""The operators, one row per layer type."""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.graph import LayerType
from ferrule.operators import softmax
from ferrule.operators.operator import Operator

_ROWS: tuple[Operator, ...] = (
    Operator(
        descriptor=softmax.SoftmaxDescriptor,
        type=LayerType.SOFTMAX,
        infer=softmax.infer,
        check=softmax.check,
        kernel=softmax.kernel,
    ),
)

OPERATORS: Mapping[LayerType, Operator] = {row.type: row for row in _ROWS}
"""How each layer type is described, checked and computed."""
