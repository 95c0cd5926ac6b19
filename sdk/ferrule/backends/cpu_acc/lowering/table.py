# SPDX-License-Identifier: Apache-2.0
"""Which function lowers which layer type."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.graph import LayerType

Lowering = Callable[[LoweringContext], LoweredOp]

LOWERINGS: Mapping[LayerType, Lowering] = {}
"""One row per layer type with a kernel in C."""
