# SPDX-License-Identifier: Apache-2.0
"""Images, windows that slide over them, and the rows of pools."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.onnx.call import Call, Value
from ferrule.formats.onnx.layout import NHWC, Layout
from ferrule.formats.onnx.rows import Row
from ferrule.graph import ONNX_ROUNDINGS, Descriptor, LayerType, Rounding, Shape
from ferrule.operators.arithmetic.window import NO_PADDING, Padding, same_padding
from ferrule.operators.movement.gather import GatherDescriptor
from ferrule.operators.movement.pad import PadDescriptor, PadV2Descriptor
from ferrule.operators.reductions.reduce import ReduceDescriptor
from ferrule.operators.spatial.pool2d import Pool2dDescriptor

MAX_EXTENT = 1 << 14
"""The most pixels that a window may span along one axis, that it may be moved by, and that padding may have."""
_ROWS_FIRST = 19
"""The opset from which on onnxruntime adds up the pixels of a window row by row."""
_WIDEST = 2045
"""The most pixels of a row, with padding, of which onnxruntime adds up columns first."""
_SAME = ("SAME_UPPER", "SAME_LOWER")
"""The values of auto_pad for which an output has as many pixels as its input, divided by the stride."""


def image(call: Call) -> Value:
    """Return the first input, of shape [batch, channels, height, width] or without a height, as an NHWC tensor."""
    shape = call.shape()
    if len(shape) not in {3, 4}:
        raise UnsupportedError(
            f"its input has shape {list(shape)}, expected 3 axes (batch, channels, width) or 4 (with a height)",
            hint="replace layers over volumes (3-D) by ones over images",
        )
    return call.tensor(0, NHWC, shape if len(shape) == 4 else (shape[0], shape[1], 1, shape[2]))


def as_input(result: Value) -> Value:
    """Return an NHWC result as one with as many axes as the node's first input."""
    layout = Layout.of(result.shape, NHWC)
    batch, channels, _, width = layout.shape
    return result.ordered(layout if result.call.rank() == 4 else replace(layout, shape=(batch, channels, width)))


@frozen
class Slide:
    """How a window slides along one axis of an image."""

    extent: int = 1
    """Of the window, in pixels."""
    stride: int = 1
    dilation: int = 1
    before: int = 0
    after: int = 0
    """The padding, if the file states it, or none."""
    auto: str
    """How the file states the padding; "NOTSET" and "VALID" for `before` and `after`."""

    @property
    def span(self) -> int:
        """The pixels from the first to the last of the window."""
        return (self.extent - 1) * self.dilation + 1

    def sides(self, length: int, *, ceil: bool = False) -> tuple[int, int]:
        """Return the padding of an image; with `ceil`, windows that begin inside it or its padding all count."""
        if self.auto in _SAME:
            before, after = same_padding(length, self.extent, self.stride, self.dilation)
            return (before, after) if self.auto == "SAME_UPPER" else (after, before)
        before, after = self.before, self.after
        rest = length + before + after - (self.extent - 1) * self.dilation - 1
        if ceil and rest >= 0:
            count = -(-rest // self.stride) + 1
            if (count - 1) * self.stride >= length + before:
                count -= 1
            after += max((count - 1) * self.stride - rest, 0)
        return before, after

    def transposed_size(self, axis: int, length: int, extra: int, wanted: int | None) -> tuple[int, int]:
        """Return the extent of a transposed convolution's output and the pixels that are left out at its begin."""
        full = (length - 1) * self.stride + (self.extent - 1) * self.dilation + 1 + extra
        if wanted is not None or self.auto in _SAME:
            size = min(length * self.stride, full) if wanted is None else wanted  # SAME pads nothing where windows end
            if size >= full + self.stride:
                raise ModelError(
                    f"its attribute 'output_shape' is {size} along spatial axis {axis}, expected less than "
                    f"{full + self.stride}: a window for each pixel ends at {full}"
                )
            total = max(full - size, 0)
            return size, total // 2 if self.auto == "SAME_UPPER" else total - total // 2
        return full - self.before - self.after, self.before


Window = tuple[Slide, Slide]
"""How a window slides over rows and columns; a node without rows has a window of one row."""


def window_of(call: Call, extents: Sequence[int]) -> Window:
    """Return the window of these extents with which a node slides over its first input."""
    node, spatial = call.node, len(extents)
    if node.integers("kernel_shape", extents) != tuple(extents):
        raise ModelError(f"its attribute 'kernel_shape' differs from the weights', {list(extents)}")
    auto = node.choice("auto_pad", "NOTSET", ("NOTSET", *_SAME, "VALID"))
    pads = node.integers("pads", (0,) * 2 * spatial)
    strides = node.integers("strides", (1,) * spatial)
    dilations = node.integers("dilations", (1,) * spatial)
    if (len(pads), len(strides), len(dilations)) != (2 * spatial, spatial, spatial):
        raise ModelError(f"its attributes strides, dilations and pads do not fit {spatial} axes")
    if min(*extents, *strides, *dilations) < 1:
        raise ModelError("its window, strides and dilations must be positive")
    if auto == "NOTSET" and min(pads) < 0:
        raise UnsupportedError(f"its attribute 'pads' is {list(pads)}, expected numbers of 0 or more")
    spans = [(extent - 1) * step for extent, step in zip(extents, dilations, strict=True)]
    if max(*spans, *pads, *strides) > MAX_EXTENT:
        raise UnsupportedError(f"its window, strides or pads exceed {MAX_EXTENT} pixels")
    if auto == "VALID":
        pads = (0,) * 2 * spatial
    slides = [
        Slide(extent=extent, stride=stride, dilation=dilation, before=before, after=after, auto=auto)
        for extent, stride, dilation, before, after in zip(
            extents, strides, dilations, pads[:spatial], pads[spatial:], strict=True
        )
    ]
    return slides[0] if spatial == 2 else Slide(auto=auto), slides[-1]


def padding_of(window: Window, stored: Shape, *, ceil: bool = False) -> Padding:
    """Return the padding of an NHWC image; see `Slide.sides`."""
    (top, bottom), (left, right) = (
        slide.sides(length, ceil=ceil) for slide, length in zip(window, stored[1:3], strict=True)
    )
    return Padding(top=top, bottom=bottom, left=left, right=right)


def _pool(window: Window, padding: Padding) -> Pool2dDescriptor:
    rows, columns = window
    return Pool2dDescriptor(
        pool_h=rows.extent, pool_w=columns.extent, stride_h=rows.stride, stride_w=columns.stride, padding=padding
    )


def _check_pool(window: Window, stored: Shape) -> None:
    """Refuse a pool whose windows begin at places of which runtimes think differently."""
    for slide, length in zip(window, stored[1:3], strict=True):
        left_out = length - (-(-length // slide.stride) - 1) * slide.stride - slide.span
        if slide.auto in _SAME and left_out > 1:
            raise UnsupportedError(
                f"its attribute 'auto_pad' is {slide.auto}, and windows of {slide.extent} pixels every {slide.stride} "
                f"leave out {left_out} of {length}: runtimes differ in whether the padding is negative",
                hint="state the padding by the attribute 'pads' in place of 'auto_pad'",
            )


def _pooled(call: Call) -> tuple[Value, Window, Padding]:
    """Return the image of a pool, its window and its padding."""
    x, extents, spatial = image(call), call.node.integers("kernel_shape"), call.rank() - 2
    if len(extents) != spatial:
        raise ModelError(f"its attribute 'kernel_shape' is {list(extents)}, expected {spatial} numbers")
    window = window_of(call, extents)
    _check_pool(window, x.shape)
    return x, window, padding_of(window, x.shape, ceil=call.node.flag("ceil_mode"))


def _max_pool(call: Call) -> Value:
    call.refuse_outputs()
    x, window, padding = _pooled(call)
    if not _is_dilated(window):
        return as_input(x.then(LayerType.MAX_POOL_2D, _pool(window, padding)))
    if padding != NO_PADDING:
        lowest = np.finfo(np.float32).min if x.dtype.is_float else np.iinfo(x.dtype.numpy).min
        value = float(lowest) if x.dtype.is_float else int(lowest)
        before, after = _sides(padding)
        x = x.then(PadV2Descriptor(before=before, after=after, value=value))
    for axis, slide in enumerate(window, 1):
        alone = [Slide(auto="VALID"), Slide(auto="VALID")]
        x, alone[axis - 1] = _gathered(x, axis, slide)
        x = x.then(LayerType.MAX_POOL_2D, _pool((alone[0], alone[1]), NO_PADDING))
    return as_input(x)


def _is_dilated(window: Window) -> bool:
    return any(slide.dilation > 1 for slide in window)


def _sides(padding: Padding) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the padding of an image before and behind each axis."""
    return (0, padding.top, padding.left, 0), (0, padding.bottom, padding.right, 0)


def _gathered(x: Value, axis: int, slide: Slide) -> tuple[Value, Slide]:
    """Return an image in which the pixels of each window lie side by side along an axis, and the window there."""
    if slide.dilation == 1:
        return x, replace(slide, before=0, after=0, auto="VALID")
    if slide.span > x.shape[axis]:
        raise ModelError(f"a window of {slide.span} pixels does not fit into {x.shape[axis]} padded ones")
    count = (x.shape[axis] - slide.span) // slide.stride + 1
    places = np.arange(count)[:, np.newaxis] * slide.stride + np.arange(slide.extent) * slide.dilation
    data = places.reshape(-1).astype(np.int32)
    gathered = x.then(GatherDescriptor(axis=axis), x.call.array(data, f"pixels_{axis}"))
    return gathered, Slide(extent=slide.extent, stride=slide.extent, auto="VALID")


def _undilated(x: Value, window: Window, padding: Padding) -> tuple[Value, Window]:
    """Return a padded float32 image, and a window without dilations that has the same pixels of it."""
    if not x.dtype.is_float:
        raise UnsupportedError(
            f"its attribute 'dilations' is {[each.dilation for each in window]} and its data are integers, expected 1",
            hint="leave the pool in float32 when the model is quantised (nodes_to_exclude)",
        )
    if padding != NO_PADDING:
        before, after = _sides(padding)
        x = x.then(PadDescriptor(before=before, after=after))
    x, rows = _gathered(x, 1, window[0])
    x, columns = _gathered(x, 2, window[1])
    return x, (rows, columns)


def _average_pool(call: Call) -> Value:
    x, window, padding = _pooled(call)
    if _is_dilated(window):
        if padding != (padding_of(window, x.shape) if call.node.flag("count_include_pad") else NO_PADDING):
            raise UnsupportedError(
                "it has dilations, and padding that does not count", hint="export the pool with count_include_pad=True"
            )
        x, window = _undilated(x, window, padding)
        return as_input(x.then(LayerType.AVERAGE_POOL_2D, _pool(window, NO_PADDING)))
    descriptor, rounding = _average(call, window, padding, x.shape)
    if call.node.flag("count_include_pad") and padding != NO_PADDING:
        if padding != padding_of(window, x.shape):
            raise UnsupportedError(
                "its attributes count_include_pad and ceil_mode are both set, and windows exceed the padded image",
                hint="export the pool with ceil_mode=False or count_include_pad=False",
            )
        before, after = _sides(padding)
        x = x.then(PadDescriptor(before=before, after=after))
        descriptor = _pool(window, NO_PADDING)
    type_ = LayerType.MEAN if isinstance(descriptor, ReduceDescriptor) else LayerType.AVERAGE_POOL_2D
    return as_input(x.then(type_, descriptor, rounding=rounding))


def _power_of(call: Call) -> int:
    """Return the attribute `p`, which is a float before opset 2."""
    power = call.node.number("p", 2)
    if power not in {1, 2}:
        raise UnsupportedError(f"its attribute 'p' is {power:g}, expected 1 or 2")
    return int(power)


def _lp_pool(call: Call) -> Value:
    """Add the average of the absolute values, or the root of that of squares, times the size of the window."""
    x, window, padding = _pooled(call)
    size, power = math.prod(slide.extent for slide in window), _power_of(call)
    x, window = _undilated(x, window, padding)
    if power == 1:
        return as_input(abs(x).then(LayerType.AVERAGE_POOL_2D, _pool(window, NO_PADDING)) * size)
    return as_input(x.then(LayerType.L2_POOL_2D, _pool(window, NO_PADDING)) * math.sqrt(size))


def _global_lp_pool(call: Call) -> Value:
    x = call.ordered()
    reduce = x.over(range(2, call.rank()))
    if _power_of(call) == 1:
        return abs(x).then(LayerType.SUM, reduce)
    return x.then(LayerType.SQUARE).then(LayerType.SUM, reduce).then(LayerType.SQRT)


def _average(call: Call, window: Window, padding: Padding, image: Shape) -> tuple[Descriptor, Rounding | None]:
    """Return the descriptor of an average and its rule, unless that is the output's.

    A window as large as the image is fused as GlobalAveragePool is. In float32 before opset 19, it is added up as that,
    if it moves by one pixel; other windows have columns first, if they move by at most two pixels, and if a row of the
    image fits into a buffer.
    """
    stored, pool = call.stored(), _pool(window, padding)
    if stored is None or stored.rounding not in ONNX_ROUNDINGS:
        return pool, None
    in_float, (rows, columns) = stored.rounding is Rounding.ONNX_FLOAT, window
    whole = (rows.extent, columns.extent) == image[1:3] and padding == NO_PADDING
    early = call.node.version < _ROWS_FIRST
    if whole and (not in_float or (early and rows.stride == columns.stride == 1)):
        rule = Rounding.ONNX_FLOAT if in_float else Rounding.ONNX
        return ReduceDescriptor(axes=(1, 2), keep_dims=True), rule
    first = call.rank() == 4 and columns.stride <= 2 and image[2] + padding.left + padding.right <= _WIDEST
    return pool, Rounding.ONNX_COLUMNS if in_float and early and first else None


def _global_pool(type_: LayerType, layer: LayerType | None = None) -> Row:
    def emit(call: Call) -> Value:
        rank = call.rank()
        if rank < 3:
            raise ModelError(f"its input has shape {list(call.shape())}, expected 3 axes or more")
        x = call.ordered()
        return x.then(type_, x.over(range(2, rank)))

    return Row(emit, layer=layer)


ROWS: Mapping[str, Row] = {
    "AveragePool": Row(_average_pool, layer=LayerType.AVERAGE_POOL_2D),
    "GlobalAveragePool": _global_pool(LayerType.MEAN, layer=LayerType.MEAN),
    "GlobalMaxPool": _global_pool(LayerType.REDUCE_MAX),
    "GlobalLpPool": Row(_global_lp_pool),
    "LpPool": Row(_lp_pool),
    "MaxPool": Row(_max_pool, outputs=2),
}
