# SPDX-License-Identifier: Apache-2.0
"""CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED and TRANSPOSE_CONV in C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ferrule.backends.cpu_acc.lowering.kernels import depthwise_3x3, depthwise_window
from ferrule.backends.cpu_acc.lowering.kernels.block import CONV_2D_BLOCK, FULLY_CONNECTED_BLOCK, PARTS_BLOCK
from ferrule.backends.cpu_acc.lowering.kernels.channel_pairs import CONV_2D_PAIRED, FULLY_CONNECTED_PAIRED
from ferrule.backends.cpu_acc.lowering.kernels.choice import Found, Row
from ferrule.backends.cpu_acc.lowering.kernels.convolution import Convolution, from_run_time
from ferrule.backends.cpu_acc.lowering.kernels.depthwise_taps import PROVED_TAPS_ROW, TAPS_ROW
from ferrule.backends.cpu_acc.lowering.kernels.dual_mac_s16 import (
    CONV_2D_DUAL_S16,
    CONV_2D_POINTS_S16,
    DEPTHWISE_CONV_2D_DUAL_S16,
    DEPTHWISE_CONV_2D_REPEATED_S16,
    FULLY_CONNECTED_DUAL_S16,
    PARTS_DUAL_S16,
)
from ferrule.backends.cpu_acc.lowering.kernels.equivalent import in_groups
from ferrule.backends.cpu_acc.lowering.kernels.float_pixels import CONV_2D_F32, DEPTHWISE_F32, TRANSPOSE_CONV_F32
from ferrule.backends.cpu_acc.lowering.kernels.generic import generic_candidate
from ferrule.backends.cpu_acc.lowering.kernels.matrix_product import PACKED_WEIGHTS_ROWS
from ferrule.backends.cpu_acc.lowering.kernels.mve import MVE_CONV_2D_ROW, MVE_FULLY_CONNECTED_ROW, MVE_PARTS
from ferrule.backends.cpu_acc.lowering.kernels.mve_depthwise import MVE_DEPTHWISE_ROWS
from ferrule.backends.cpu_acc.lowering.kernels.mve_s16 import (
    MVE_CONV_2D_S16,
    MVE_DEPTHWISE_S16,
    MVE_FULLY_CONNECTED_S16,
)
from ferrule.backends.cpu_acc.lowering.kernels.scalar import CONV_2D_SCALAR, FULLY_CONNECTED_SCALAR, PARTS_SCALAR
from ferrule.backends.cpu_acc.lowering.kernels.winograd import WINOGRAD_ROWS
from ferrule.backends.firmware import LoweringContext
from ferrule.graph import DataType, LayerType
from ferrule.operators.weighted.conv2d import groups_of
from ferrule.operators.weighted.products import WEIGHTED_RULES, has_zero_point


def weighted_rows(context: LoweringContext) -> Sequence[Row]:
    """Return the kernels for a layer with weights: others for zero points, groups and weights from run time."""
    type_, weights = context.layer.type, context.input(1)
    if context.output.dtype is DataType.FLOAT32 and type_ in FLOAT32_ROWS:
        return FLOAT32_ROWS[type_]
    grouped = type_ is LayerType.CONV_2D and groups_of(context.source, weights) > 1
    rows = _GROUPED_ROWS if grouped else WEIGHTED_ROWS[type_]
    if has_zero_point(weights) or from_run_time(context):
        return (*(PACKED_WEIGHTS_ROWS if type_ in _PACKED and not grouped else ()), rows[-1])
    return rows


_PACKED = frozenset({LayerType.CONV_2D, LayerType.FULLY_CONNECTED})
"""The layer types whose weights are packed at run time unless they are so when the layer is lowered."""


def _generic(kernel: str) -> Row:
    return Row(kernel=kernel, rules=WEIGHTED_RULES, candidate=generic_candidate)


_PARTS = (*MVE_PARTS, *PARTS_BLOCK, *PARTS_SCALAR)
_GROUPED_ROWS: tuple[Row, ...] = (*_PARTS, CONV_2D_POINTS_S16, *PARTS_DUAL_S16, _generic("conv2d"))


def _in_groups(row: Row) -> Row:
    """Return the row of a kernel for groups as one of DEPTHWISE_CONV_2D: its groups have one channel."""

    def found(context: LoweringContext) -> Found:
        layer = Convolution.of(context)
        if layer.depth_multiplier == 1 and (layer.window.height, layer.window.width) != (1, 1):
            return "the channels are not multiplied, and the window is more than a pixel"
        return row.candidate(in_groups(context))

    return replace(row, candidate=found)


FLOAT32_ROWS: Mapping[LayerType, tuple[Row, ...]] = {
    LayerType.CONV_2D: CONV_2D_F32,
    LayerType.DEPTHWISE_CONV_2D: DEPTHWISE_F32,
    LayerType.FULLY_CONNECTED: CONV_2D_F32,
    LayerType.TRANSPOSE_CONV: (*TRANSPOSE_CONV_F32, _generic("transpose_conv")),
}
"""The kernels of each layer type in float32."""
WEIGHTED_ROWS: Mapping[LayerType, tuple[Row, ...]] = {
    LayerType.CONV_2D: (
        MVE_CONV_2D_ROW,
        *WINOGRAD_ROWS,
        *CONV_2D_BLOCK,
        CONV_2D_PAIRED,
        *CONV_2D_SCALAR,
        *_PARTS,
        MVE_CONV_2D_S16,
        *CONV_2D_DUAL_S16,
        *PARTS_DUAL_S16,
        _generic("conv2d"),
    ),
    LayerType.DEPTHWISE_CONV_2D: (
        *MVE_DEPTHWISE_ROWS,
        *depthwise_3x3.LINES,
        depthwise_window.PAIRS_ROW,
        depthwise_window.WORDS_ROW,
        MVE_DEPTHWISE_S16,
        DEPTHWISE_CONV_2D_DUAL_S16,
        DEPTHWISE_CONV_2D_REPEATED_S16,
        CONV_2D_POINTS_S16,
        TAPS_ROW,
        PROVED_TAPS_ROW,
        *map(_in_groups, (*_PARTS, *PARTS_DUAL_S16)),
        _generic("depthwise_conv2d"),
    ),
    LayerType.FULLY_CONNECTED: (
        MVE_FULLY_CONNECTED_ROW,
        *FULLY_CONNECTED_BLOCK,
        FULLY_CONNECTED_PAIRED,
        FULLY_CONNECTED_SCALAR,
        MVE_FULLY_CONNECTED_S16,
        MVE_CONV_2D_S16,
        *FULLY_CONNECTED_DUAL_S16,
        *CONV_2D_DUAL_S16,
        _generic("conv2d"),
    ),
    LayerType.TRANSPOSE_CONV: (*_PARTS, *PARTS_DUAL_S16, _generic("transpose_conv")),
}
"""The kernels of each layer type, for CONV_2D without groups; the last one is generic."""
