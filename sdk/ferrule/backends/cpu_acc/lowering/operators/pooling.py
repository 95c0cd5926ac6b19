# SPDX-License-Identifier: Apache-2.0
"""AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D in C."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.lowering.kernel_call import (
    SUFFIXES,
    KernelCall,
    Member,
    descriptor_of,
    limit_fields,
    window_fields,
)
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, Row, has_dsp
from ferrule.backends.cpu_acc.lowering.overlap import Reads, pixel_overlaps
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.dom import Identifier
from ferrule.graph import Array, DataType, LayerType, Rounding
from ferrule.operators.elementwise.onnx_elementwise import OnnxOutput
from ferrule.operators.spatial.pool2d import Pool2dDescriptor, window_counts

_SOURCES = {
    "average_pool2d_f32": ("float_limits",),
    "max_pool2d_f32": ("float_limits",),
    "l2_pool2d_f32": ("sqrtf",),
    "average_pool2d_s16": ("mve_depthwise_s16",),
    "max_pool2d_s16": ("mve_depthwise_s16",),
}
_UNROLLED = {(2, 2), (3, 3)}
"""The windows for which the int8 kernels have functions."""
_MOST_PIXELS = 185
"""Of an average that needs no division."""
_KINDS = {LayerType.AVERAGE_POOL_2D: "average", LayerType.MAX_POOL_2D: "max", LayerType.L2_POOL_2D: "l2"}


def lower_onnx_pool2d(context: LoweringContext) -> LoweredOp:
    """Return the call for AVERAGE_POOL_2D by ONNX's rule."""
    image, output, rounding = context.source, context.output, context.operands.rounding
    result = OnnxOutput.of(output, descriptor_of(context, Pool2dDescriptor).activation, rounding)
    fields = {
        "scale": image.scale,
        "zero_point": image.zero_point,
        "output_scale": output.scale,
        "output_zero_point": float(result.zero_point),
        "stored_offset": result.stored_offset,
        "low": float(result.low),
        "high": float(result.high),
    }
    kind = "columns" if rounding is Rounding.ONNX_COLUMNS else "float"
    return _pool_call(context, f"{kind}_average_pool2d_s8", fields, "float_pool2d_params").lowered(context)


def _pool_call(context: LoweringContext, kernel: str, fields: Mapping[str, Member], table: str) -> KernelCall:
    image, output, window = context.source, context.output, descriptor_of(context, Pool2dDescriptor).window
    return KernelCall(
        kernel,
        "ferrule/kernels/pool2d.h",
        {"window": window_fields(window, image, output), **fields},
        table=table,
        sources=_SOURCES.get(kernel, ()),
        overlaps=pixel_overlaps(context, window, image, output, reads=Reads.PER_CHANNEL),
    )


def _candidate(context: LoweringContext) -> Candidate:
    output, descriptor = context.output, descriptor_of(context, Pool2dDescriptor)
    kernel = f"{_KINDS[context.layer.type]}_pool2d_{SUFFIXES[output.dtype]}"
    table = "pool2d_f32_params" if output.dtype.is_float else "pool2d_params"
    fields: dict[str, Member] = dict(limit_fields(output, descriptor.activation))
    if output.dtype is DataType.INT8:
        fields |= _int8_functions(context)
    call = partial(_pool_call, context, kernel, fields, table)
    read = output.elements * descriptor.window.height * descriptor.window.width
    match output.dtype:
        case DataType.INT8:
            instructions = _int8_instructions(context)
        case DataType.INT16:
            instructions = _int16_instructions(context, read)
        case _:
            instructions = 8 * read + 20 * output.elements
    return Candidate(
        kernel=kernel,
        instructions=instructions,
        weight_bytes=0,
        overlaps=lambda: call().overlaps,
        call=call,
    )


@frozen
class _Steps:
    """Instructions of the int8 kernels on a kind of core, as measured on random shapes."""

    channels: int
    """Of a block, which is computed together."""
    window: int
    unrolled: float
    """Of a pixel of a block in whole windows of 2x2 and 3x3."""
    tap: float
    """The same in others."""
    line: float
    """Of a row of a block in others."""
    end: int
    """Of a block beside its pixels."""
    unrolled_end: int = 0
    """The same in whole windows of 2x2 and 3x3, unless it is 0."""
    rest_tap: float = 0
    """Of a pixel of a channel in no block; 0 if the last channels are a block, too."""
    rest: int = 0
    """Of such a channel beside its pixels."""


_MAX_STEPS = {
    Feature.MVE: _Steps(channels=16, window=17, unrolled=2, tap=5, line=5, end=4),
    Feature.DSP: _Steps(channels=4, window=30, unrolled=2.7, tap=8.5, line=12, end=9, rest_tap=9, rest=30),
    None: _Steps(channels=4, window=24, unrolled=17, tap=19, line=8, end=34, rest_tap=8, rest=35),
}
_AVERAGE_STEPS = {
    Feature.MVE: _Steps(channels=16, window=14, unrolled=6.6, tap=6, line=5, end=58, unrolled_end=8),
    Feature.DSP: _Steps(channels=4, window=43, unrolled=3, tap=6.5, line=17, end=17, rest_tap=7, rest=40),
    None: _Steps(channels=4, window=38, unrolled=8.7, tap=12, line=13, end=66, rest_tap=6.5, rest=48),
}
_ROW_STEPS, _RUN_STEPS = 65, 85
"""Instructions of a row of the output, and of neighbouring windows with the same number of pixels."""


def _int16_instructions(context: LoweringContext, read: int) -> int:
    """Return an estimate for an output from so many pixels of channels."""
    core, average, elements = (
        context.target.core,
        context.layer.type is LayerType.AVERAGE_POOL_2D,
        context.output.elements,
    )
    if core is not None and core.mve:
        return read + 3 * elements if average else read * 9 // 10 + 4 * elements
    if has_dsp(core):
        return read * 2 + (6 if average else 4) * elements
    return read * 14 // 5 + 18 * elements if average else read * 43 // 5 + 29 * elements


def _counts(context: LoweringContext) -> tuple[Array, Array]:
    """Return the rows of the windows of a column that lie inside the image, and the columns of those of a row."""
    window, image = descriptor_of(context, Pool2dDescriptor).window, context.source.shape
    _, height, width, _ = context.output.shape
    return (
        window_counts(image[1], window.height, window.stride_h, window.padding.top, height),
        window_counts(image[2], window.width, window.stride_w, window.padding.left, width),
    )


def _int8_functions(context: LoweringContext) -> dict[str, Member]:
    """Return the functions for windows inside the image, and for those that its edge cuts."""
    window, (rows, columns) = descriptor_of(context, Pool2dDescriptor).window, _counts(context)
    kind = f"ferrule_{_KINDS[context.layer.type]}_pool2d"
    size, most = (window.height, window.width), int(rows.max() * columns.max())
    many = context.layer.type is LayerType.AVERAGE_POOL_2D and most > _MOST_PIXELS
    others = Identifier(f"{kind}_{'many' if many else 'any'}_s8")
    is_cut = rows.min() < window.height or columns.min() < window.width
    return {
        "whole": Identifier(f"{kind}_{size[0]}x{size[1]}_s8") if size in _UNROLLED else others,
        "cut": others if is_cut else None,
    }


def _int8_instructions(context: LoweringContext) -> int:
    window, core, image = descriptor_of(context, Pool2dDescriptor).window, context.target.core, context.source.shape
    batches, height, width, channels = context.output.shape
    average = context.layer.type is LayerType.AVERAGE_POOL_2D
    feature = Feature.MVE if core is not None and core.mve else Feature.DSP if has_dsp(core) else None
    steps = (_AVERAGE_STEPS if average else _MAX_STEPS)[feature]
    rows, columns = _counts(context)
    blocks, rest = divmod(channels, steps.channels)
    if rest and not steps.rest_tap:
        blocks, rest = blocks + 1, 0
    pixels, whole, whole_windows = int(rows.sum() * columns.sum()), 0, 0
    if (window.height, window.width) in _UNROLLED:
        whole_windows = int((rows == window.height).sum() * (columns == window.width).sum())
        whole = whole_windows * window.height * window.width
    windows = height * width
    cut = windows - whole_windows
    lines = cut if window.width >= image[2] else int(rows.sum()) * width - whole_windows * window.height
    block = whole * steps.unrolled + (pixels - whole) * steps.tap + lines * steps.line
    block += cut * steps.end + whole_windows * (steps.unrolled_end or steps.end)
    runs = int((columns < window.width).sum()) + bool((columns == window.width).any())
    others = windows * steps.window + rest * (pixels * steps.rest_tap + windows * steps.rest)
    return batches * round(blocks * block + others + height * (_ROW_STEPS + runs * _RUN_STEPS))


def _rows(kind: str) -> tuple[Row, ...]:
    return (Row(kernel=f"{kind}_pool2d", candidate=_candidate),)


POOL_2D_ROWS: Mapping[LayerType, tuple[Row, ...]] = {
    LayerType.AVERAGE_POOL_2D: _rows("average"),
    LayerType.MAX_POOL_2D: _rows("max"),
    LayerType.L2_POOL_2D: _rows("l2"),
}
"""The kernels of the pools."""
