# SPDX-License-Identifier: Apache-2.0
"""The operator table of the format: how each operator is read and written, and its version."""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.formats.tflite import (
    calls,
    custom,
    elementwise,
    movement,
    recurrent,
    reductions,
    shapes,
    spatial,
    windows,
)
from ferrule.formats.tflite.row import Row
from ferrule.graph import LayerType

OPERATORS: Mapping[LayerType, Row] = {
    **calls.ROWS,
    **custom.ROWS,
    **elementwise.ROWS,
    **movement.ROWS,
    **recurrent.ROWS,
    **reductions.ROWS,
    **shapes.ROWS,
    **spatial.ROWS,
    **windows.ROWS,
}
"""The operators of the format that networks support."""

CUSTOM: Mapping[str, LayerType] = {row.custom: type_ for type_, row in OPERATORS.items() if row.custom}
"""The types of the custom operators that networks support, by custom code."""
