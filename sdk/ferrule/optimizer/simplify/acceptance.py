# SPDX-License-Identifier: Apache-2.0
"""Checks a layer that a pass would write."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.errors import FerruleError
from ferrule.graph import Descriptor, LayerType, TensorInfo
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS


def accepts(
    type_: LayerType, descriptor: Descriptor, inputs: Sequence[TensorInfo | None], outputs: Sequence[TensorInfo]
) -> bool:
    """Whether the operator accepts the layer; a pass must never make a supported layer unsupported."""
    try:
        OPERATORS[type_].accept(descriptor, Operands(inputs=tuple(inputs), outputs=tuple(outputs)))
    except FerruleError:
        return False
    return True
