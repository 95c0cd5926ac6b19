# SPDX-License-Identifier: Apache-2.0
"""What the pools take: the instructions of their kernels, by the windows that lie inside the image.

The figures were measured on shapes of all kinds, for plain C as the middle of zig's and arm-none-eabi-gcc's.
"""

from __future__ import annotations

from collections.abc import Mapping

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.lowering.kernel_call import descriptor_of
from ferrule.backends.cpu_acc.lowering.kernels.choice import Feature, has_dsp
from ferrule.backends.cpu_acc.lowering.kernels.float_pixels import has_fpu
from ferrule.backends.firmware import LoweringContext
from ferrule.graph import Array, DataType, LayerType
from ferrule.operators.spatial.pool2d import Pool2dDescriptor, window_counts

UNROLLED = {(2, 2), (3, 3)}
"""The windows for which kernels of integers have functions."""
_VECTOR = 8
"""The channels of int16 in two vectors."""
_MORE_UNROLLED = UNROLLED | {(2, 3), (3, 2)}
"""Those for averages of int16 with vectors, whose edges are unrolled, too."""


def pool_instructions(context: LoweringContext) -> int:
    """Return an estimate for a pool by TFLM's rule."""
    match context.output.dtype:
        case DataType.INT8:
            return _int8_instructions(context)
        case DataType.INT16:
            core = context.target.core
            if core is not None and core.mve:
                return _wide_vector_instructions(context)
            return _loop_instructions(context, _WIDE_LOOPS[context.layer.type, _feature_of(context)])
        case _:
            return _loop_instructions(context, _float_loops(context))


def window_pixels(context: LoweringContext) -> tuple[Array, Array]:
    """Return the rows of the windows of a column that lie inside the image, and the columns of those of a row."""
    window, image = descriptor_of(context, Pool2dDescriptor).window, context.source.shape
    _, height, width, _ = context.output.shape
    return (
        window_counts(image[1], window.height, window.stride_h, window.padding.top, height),
        window_counts(image[2], window.width, window.stride_w, window.padding.left, width),
    )


def _is_baseline(context: LoweringContext) -> bool:
    core = context.target.core
    return core is not None and core.baseline


def _feature_of(context: LoweringContext) -> Feature | None:
    """Return the feature by which kernels of integers without vectors differ; None for Armv6-M."""
    if has_dsp(context.target.core):
        return Feature.DSP
    return None if _is_baseline(context) else Feature.LONG_MULTIPLY


@frozen
class _Block:
    """Instructions of channels of a window that are computed together."""

    channels: int
    window: float
    pixel: float
    line: float = 0
    """Of a row of the window."""


@frozen
class _Loops:
    """Instructions of a kernel that computes a window after the other."""

    window: float
    blocks: tuple[_Block, ...]
    """From large to small, which have one channel at last."""
    unrolled: _Block | None = None
    """Instead of the blocks before the last in whole windows of 2x2 and 3x3; None if they are like others."""


_WIDE_LOOPS: Mapping[tuple[LayerType, Feature | None], _Loops] = {
    (LayerType.AVERAGE_POOL_2D, Feature.DSP): _Loops(
        window=67,
        blocks=(_Block(channels=4, window=30, line=6.8, pixel=8.8), _Block(channels=1, window=32, pixel=6.4)),
        unrolled=_Block(channels=2, window=3.6, pixel=3.6),
    ),
    (LayerType.AVERAGE_POOL_2D, Feature.LONG_MULTIPLY): _Loops(
        window=70,
        blocks=(_Block(channels=4, window=39, line=5.9, pixel=13.1), _Block(channels=1, window=32, pixel=6.9)),
    ),
    (LayerType.AVERAGE_POOL_2D, None): _Loops(
        window=140,
        blocks=(_Block(channels=4, window=790, line=11, pixel=13), _Block(channels=1, window=276, pixel=6)),
    ),
    (LayerType.MAX_POOL_2D, Feature.DSP): _Loops(
        window=58,
        blocks=(_Block(channels=4, window=19, line=8.5, pixel=8.5), _Block(channels=1, window=24.5, pixel=9.8)),
        unrolled=_Block(channels=2, window=0, pixel=3.4),
    ),
    (LayerType.MAX_POOL_2D, Feature.LONG_MULTIPLY): _Loops(
        window=72,
        blocks=(_Block(channels=4, window=57, line=35, pixel=34.5), _Block(channels=1, window=26, pixel=8.1)),
    ),
    (LayerType.MAX_POOL_2D, None): _Loops(
        window=165,
        blocks=(_Block(channels=4, window=86, line=48, pixel=40), _Block(channels=1, window=14, pixel=9.6)),
    ),
}
"""Of int16, by the features of the core: the DSP extension, at least Armv7-M, or less."""
_FLOAT_LOOPS: Mapping[tuple[LayerType, str], _Loops] = {
    (LayerType.AVERAGE_POOL_2D, "mve"): _Loops(
        window=63,
        blocks=(
            _Block(channels=8, window=47.5, line=4.3, pixel=7),
            _Block(channels=4, window=84, pixel=10.6),
            _Block(channels=1, window=38.5, pixel=5),
        ),
    ),
    (LayerType.AVERAGE_POOL_2D, "fpu"): _Loops(
        window=65,
        blocks=(
            _Block(channels=8, window=30, line=4, pixel=12),
            _Block(channels=4, window=93, pixel=12.7),
            _Block(channels=1, window=41, pixel=6.8),
        ),
    ),
    (LayerType.AVERAGE_POOL_2D, "long"): _Loops(
        window=185, blocks=(_Block(channels=4, window=415, pixel=280), _Block(channels=1, window=127, pixel=66))
    ),
    (LayerType.AVERAGE_POOL_2D, "short"): _Loops(
        window=500, blocks=(_Block(channels=4, window=1290, pixel=420), _Block(channels=1, window=222, pixel=108))
    ),
    (LayerType.MAX_POOL_2D, "mve"): _Loops(
        window=58,
        blocks=(
            _Block(channels=8, window=41, line=3.7, pixel=9),
            _Block(channels=4, window=78, pixel=18.2),
            _Block(channels=1, window=33, pixel=7.5),
        ),
    ),
    (LayerType.MAX_POOL_2D, "fpu"): _Loops(
        window=66,
        blocks=(
            _Block(channels=8, window=21.5, line=4, pixel=36),
            _Block(channels=4, window=99, pixel=25),
            _Block(channels=1, window=44, pixel=9.5),
        ),
    ),
    (LayerType.MAX_POOL_2D, "long"): _Loops(
        window=125, blocks=(_Block(channels=4, window=535, pixel=167), _Block(channels=1, window=155, pixel=42))
    ),
    (LayerType.MAX_POOL_2D, "short"): _Loops(
        window=160, blocks=(_Block(channels=4, window=550, pixel=192), _Block(channels=1, window=158, pixel=46))
    ),
    (LayerType.L2_POOL_2D, "mve"): _Loops(
        window=94, blocks=(_Block(channels=4, window=74.5, pixel=15.3), _Block(channels=1, window=32, pixel=4.3))
    ),
    (LayerType.L2_POOL_2D, "fpu"): _Loops(
        window=100, blocks=(_Block(channels=4, window=86, pixel=17.4), _Block(channels=1, window=35.3, pixel=6.1))
    ),
    (LayerType.L2_POOL_2D, "long"): _Loops(
        window=150, blocks=(_Block(channels=4, window=2830, pixel=490), _Block(channels=1, window=730, pixel=120))
    ),
    (LayerType.L2_POOL_2D, "short"): _Loops(
        window=210, blocks=(_Block(channels=4, window=4930, pixel=812), _Block(channels=1, window=1230, pixel=203))
    ),
}
"""Of float32, by the core: vectors, an FPU, at least Armv7-M, or less. Without an FPU, they depend on the values."""
_LOOP_START, _LOOP_ROW = 250, 20
"""Instructions of a call, and of a row of the output."""


def _float_loops(context: LoweringContext) -> _Loops:
    core = context.target.core
    if has_fpu(context):
        kind = "mve" if core is not None and core.mve else "fpu"
    else:
        kind = "short" if _is_baseline(context) else "long"
    return _FLOAT_LOOPS[context.layer.type, kind]


def _loop_instructions(context: LoweringContext, loops: _Loops) -> int:
    batches, height, width, channels = context.output.shape
    rows, columns = window_pixels(context)
    windows, pixels, lines = height * width, int(rows.sum() * columns.sum()), int(rows.sum()) * width
    found, left, single = loops.window * windows, channels, loops.blocks[-1]
    if (unrolled := loops.unrolled) is not None:
        blocks, last = divmod(channels, unrolled.channels)
        for size_h, size_w in UNROLLED:
            count, size = int((rows == size_h).sum() * (columns == size_w).sum()), size_h * size_w
            found += count * blocks * (unrolled.window + unrolled.pixel * size)
            found += count * last * (single.window + single.pixel * size)
            windows, pixels, lines = windows - count, pixels - count * size, lines - count * size_h
    for block in loops.blocks:
        count, left = divmod(left, block.channels)
        found += count * (block.window * windows + block.pixel * pixels + block.line * lines)
    return round(_LOOP_START + batches * (found + _LOOP_ROW * height))


def _wide_vector_instructions(context: LoweringContext) -> int:
    """Return the instructions of int16 with vectors, which compute runs of windows with the same number of pixels."""
    batches, height, width, channels = context.output.shape
    average = context.layer.type is LayerType.AVERAGE_POOL_2D
    rows, columns = window_pixels(context)
    windows, pixels, lines = height * width, int(rows.sum() * columns.sum()), int(rows.sum()) * width
    blocks, found = -(-channels // _VECTOR), 0.0
    if average and channels % _VECTOR == 0:
        for size_h, size_w in _MORE_UNROLLED:
            count, size = int((rows == size_h).sum() * (columns == size_w).sum()), size_h * size_w
            found += count * blocks * (4.7 + 5.6 * size)
            windows, pixels, lines = windows - count, pixels - count * size, lines - count * size_h
    window, pixel, line, run = (21.5, 8.2, 3.6, 190) if average else (16, 4.9, 5.6, 166)
    found += blocks * (window * windows + pixel * pixels + line * lines)
    return round(batches * (found + height * (27 + run * len({*columns.tolist()}))))


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
    end: float
    """Of a block beside its pixels."""
    unrolled_end: float = 0
    """The same in whole windows of 2x2 and 3x3, unless it is 0."""
    rest_tap: float = 0
    """Of a pixel of a channel in no block; 0 if the last channels are a block, too."""
    rest: int = 0
    """Of such a channel beside its pixels."""


_MAX_STEPS = {
    Feature.MVE: _Steps(channels=16, window=17, unrolled=2, tap=5, line=5, end=4),
    Feature.DSP: _Steps(
        channels=4, window=38, unrolled=2.7, tap=9, line=10.5, end=8.5, unrolled_end=0.5, rest_tap=10, rest=31
    ),
    Feature.LONG_MULTIPLY: _Steps(
        channels=4, window=60, unrolled=17.3, tap=20, line=4, end=47, unrolled_end=39, rest_tap=7.8, rest=18
    ),
    None: _Steps(
        channels=4, window=84, unrolled=20.5, tap=17, line=5.8, end=42, unrolled_end=36, rest_tap=4.5, rest=28
    ),
}
_AVERAGE_STEPS = {
    Feature.MVE: _Steps(channels=16, window=14, unrolled=6.6, tap=6, line=5, end=58, unrolled_end=8),
    Feature.DSP: _Steps(
        channels=4, window=39, unrolled=3, tap=5.1, line=20, end=26, unrolled_end=11.5, rest_tap=9.4, rest=20
    ),
    Feature.LONG_MULTIPLY: _Steps(
        channels=4, window=130, unrolled=10, tap=10, line=0, end=83, unrolled_end=65, rest_tap=2, rest=22
    ),
    None: _Steps(channels=4, window=220, unrolled=16, tap=16.4, line=11, end=87, unrolled_end=63, rest_tap=2, rest=25),
}
_ROW_STEPS, _RUN_STEPS = 65, 85
"""Instructions of a row of the output, and of neighbouring windows with the same number of pixels."""


def _int8_instructions(context: LoweringContext) -> int:
    window, core, image = descriptor_of(context, Pool2dDescriptor).window, context.target.core, context.source.shape
    batches, height, width, channels = context.output.shape
    average = context.layer.type is LayerType.AVERAGE_POOL_2D
    feature = Feature.MVE if core is not None and core.mve else _feature_of(context)
    steps = (_AVERAGE_STEPS if average else _MAX_STEPS)[feature]
    rows, columns = window_pixels(context)
    blocks, rest = divmod(channels, steps.channels)
    if rest and not steps.rest_tap:
        blocks, rest = blocks + 1, 0
    pixels, whole, whole_windows = int(rows.sum() * columns.sum()), 0, 0
    if (window.height, window.width) in UNROLLED:
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
