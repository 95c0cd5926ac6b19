# SPDX-License-Identifier: Apache-2.0
"""The operator table of the format: how the nodes of each operator become layers."""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.formats.onnx import (
    control,
    einsum,
    elementwise,
    functions,
    movement,
    recurrent,
    reductions,
    selection,
    spatial,
    weighted,
    windows,
)
from ferrule.formats.onnx.rows import Row

OPERATORS: Mapping[str, Row] = {
    **control.ROWS,
    **einsum.ROWS,
    **elementwise.ROWS,
    **functions.ROWS,
    **movement.ROWS,
    **recurrent.ROWS,
    **reductions.ROWS,
    **selection.ROWS,
    **spatial.ROWS,
    **weighted.ROWS,
    **windows.ROWS,
}
"""The operators that become layers, by `Node.key`."""
