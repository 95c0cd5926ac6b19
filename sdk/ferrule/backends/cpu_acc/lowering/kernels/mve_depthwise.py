# SPDX-License-Identifier: Apache-2.0
"""DEPTHWISE_CONV_2D in int8 with vector instructions (MVE), as in `ferrule/kernels/depthwise_conv2d_mve.h`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, Found, weighted_row
from ferrule.backends.cpu_acc.lowering.kernels.convolution import TOO_LARGE, Convolution
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import Channels, can_scale, int8_channels, is_plain
from ferrule.backends.cpu_acc.lowering.kernels.mve import stream
from ferrule.backends.cpu_acc.lowering.kernels.packing import filled
from ferrule.backends.cpu_acc.lowering.overlap import Reads, plane_overlaps
from ferrule.dom import Identifier
from ferrule.graph import Array, Rounding
from ferrule.operators.arithmetic.fixed_point import factor_arrays

_LANES = 16
_WORD = 4
"""Lanes that share a word of the sums: a loop with tail predication would write only a part of it.

Lanes that are not in fours take longer.
"""
_MOST_TOGETHER = 4
"""Pixels of a step that does not fit into 16 lanes: each has its own copy of the weights."""
_TAPS = 9
"""Taps whose addresses are in registers; the addresses of more are in scratch."""
_ROWS = 9
_POINTER_BYTES = 8
"""At most: 4 on the cores that have MVE, 8 on the host, where the tests run."""
_LARGEST_PAIR = 255
"""The largest sum of the magnitudes of two weights whose products sum to less than 2**15."""
_ORDER = (0, 4, 8, 12, 2, 6, 10, 14, 1, 5, 9, 13, 3, 7, 11, 15)
"""The order of biases, multipliers and shifts of 16 channels."""


def _pixels(layer: Convolution) -> Found:
    """Return the kernel for one pixel at a time, and for so many neighbouring ones that fewer lanes are unused."""
    window, count = layer.window, layer.image.shape[3]
    if layer.depth_multiplier != 1 or window.height > _ROWS:
        return f"channels are multiplied, or the window has more than {_ROWS} rows"
    channels = int8_channels(layer)
    if not can_scale(channels):
        return TOO_LARGE
    taps = _taps(channels.matrix)
    if np.abs(taps.astype(np.int64)).reshape(len(taps), -1, 2).sum(axis=2).max() > _LARGEST_PAIR:
        return "the products of two weights may not fit into 16 bits"
    found = [_candidate(channels, taps, 1)]
    most = max(_MOST_TOGETHER, _LANES // count) if window.stride_w == 1 else 1
    for together in range(2, most + 1):
        if together * count % _WORD == 0:
            more = _candidate(channels, taps, together)
            found += [more] if more.instructions < found[-1].instructions else []
    return found


def _candidate(channels: Channels, taps: Array, together: int) -> Candidate:
    layer, (images, rows, columns) = channels.layer, _windows_inside(channels.layer)
    output, window, count = layer.output.shape, layer.window, len(taps)
    listed = taps.shape[1] if window.height * window.width > _TAPS else 0
    form = "listed" if listed else "plain" if is_plain(layer) else "general"

    def step(pixels: int) -> int:
        lanes = pixels * count
        block = 12 * listed + 66 if listed else 118 + 15 * (form == "general")
        return (block + (16 if lanes % _WORD else 0)) * -(-lanes // _LANES) + 20

    def function(pixels: int) -> Identifier:
        return Identifier(f"ferrule_mve_depthwise_{'any_' if pixels * count % _WORD else ''}{form}")

    start = 100 + 6 * window.height * window.width
    steps, rest = divmod(columns, together)
    inside = steps * step(together) + rest * step(1) + start * ((steps > 0) + (rest > 0))
    outside = rows * (output[2] - columns) + (output[1] - rows) * output[2]
    return Candidate(
        kernel="depthwise_conv2d_mve_s8",
        instructions=images * (rows * inside + outside * (start + step(1)) + output[1] * 70),
        weight_bytes=-(-count * together // _LANES) * _LANES * (9 + max(listed, _TAPS)),
        scratch_bytes=count + _POINTER_BYTES * listed,
        overlaps=partial(layer.overlaps, reads=Reads.PER_CHANNEL),
        call=lambda: KernelCall(
            "depthwise_conv2d_mve_s8",
            "ferrule/kernels/depthwise_conv2d_mve.h",
            {
                **layer.image_fields,
                "stream": layer.context.blob(
                    "weights", _stream(channels, taps if listed else taps[:, :_TAPS], together)
                ),
                "together": together,
                "compute": function(together),
                "single": function(1),
                "output": layer.output_fields,
            },
            scratch_alignment=_POINTER_BYTES,
            sources=("mve_depthwise",),
        ),
    )


def _taps(matrix: Array) -> Array:
    """Return the weights with zeros for missing taps, an even number, as [channels, taps]."""
    return filled(matrix, 1, 2 if matrix.shape[1] > _TAPS else _TAPS + 1)


def _stream(channels: Channels, taps: Array, together: int) -> Array:
    """Return the words of `struct ferrule_depthwise_conv2d_mve_s8_params`."""
    count = len(taps) * together
    lanes = np.minimum(np.arange(-(-count // _LANES) * _LANES), count - 1) % len(taps)
    ordered = channels.chosen(lanes.reshape(-1, _LANES)[:, _ORDER].reshape(-1))
    return stream(ordered, taps[lanes].reshape(-1, _LANES, taps.shape[1]).transpose(0, 2, 1), _LANES)


def _windows_inside(layer: Convolution) -> tuple[int, int, int]:
    """Return images, and how many rows and columns of windows are inside each."""
    window, image, output = layer.window, layer.image.shape, layer.output.shape
    rows = _inside(window.height, window.stride_h, window.dilation_h, window.padding.top, image[1], output[1])
    columns = _inside(window.width, window.stride_w, window.dilation_w, window.padding.left, image[2], output[2])
    return output[0], rows, columns


def _inside(kernel: int, stride: int, dilation: int, pad: int, extent: int, count: int) -> int:
    start = np.arange(count) * stride - pad
    return int(np.count_nonzero((start >= 0) & (start + (kernel - 1) * dilation < extent)))


# ---- channel by channel

_MOST_VECTORS = 4
"""Vectors of weights of a channel that fit into registers."""
_TOGETHER = 8
"""Windows that are computed together."""
_MOST_STEP = (1 << 16) // _TOGETHER
"""Bytes between pixels, at most: offsets have 16 bits."""


@frozen
class _Axis:
    """The pixels across the lines of a plane, or along a line."""

    input: int
    output: int
    taps: int
    stride: int
    dilation: int
    pad: int
    input_step: int
    output_step: int

    @property
    def outputs(self) -> int:
        """Pixels of the output with a common remainder modulo the dilation."""
        return -(-self.output // self.dilation)

    @property
    def length(self) -> int:
        """Pixels under the windows of these."""
        return (self.outputs - 1) * self.stride + self.taps

    @property
    def fields(self) -> Mapping[str, int]:
        """The members of a `struct ferrule_mve_axis`."""
        return {name: getattr(self, name) for name in _Axis.__annotations__}


def _axes(layer: Convolution) -> tuple[_Axis, _Axis]:
    """Return the axes of rows and columns."""
    window, image, output = layer.window, layer.image.shape, layer.output.shape
    rows = _Axis(
        input=image[1],
        output=output[1],
        taps=window.height,
        stride=window.stride_h,
        dilation=window.dilation_h,
        pad=window.padding.top,
        input_step=image[2] * image[3],
        output_step=output[2] * output[3],
    )
    columns = _Axis(
        input=image[2],
        output=output[2],
        taps=window.width,
        stride=window.stride_w,
        dilation=window.dilation_w,
        pad=window.padding.left,
        input_step=image[3],
        output_step=output[3],
    )
    return rows, columns


def _planes(layer: Convolution) -> Candidate | str:
    """Return the kernel that goes through each channel by rows or by columns, whichever takes less time."""
    rows, columns = _lines(layer, transposed=False), _lines(layer, transposed=True)
    if isinstance(rows, str) or isinstance(columns, str):
        return columns if isinstance(rows, str) else rows
    return min(rows, columns, key=lambda each: each.instructions)


def _lines(layer: Convolution, *, transposed: bool) -> Candidate | str:
    """Return the kernel that goes from row to row of a channel, or from column to column."""
    window, multiplier = layer.window, layer.depth_multiplier
    rows, columns = _axes(layer)
    across, along = (columns, rows) if transposed else (rows, columns)
    vectors = -(-window.height * window.width // _LANES)
    if vectors > _MOST_VECTORS:
        return f"the window has more than {_MOST_VECTORS * _LANES} pixels"
    if any(axis.stride > 1 and axis.dilation > 1 for axis in (across, along)):
        return "the windows are dilated and have strides"
    if along.dilation * max(along.input_step, along.output_step) >= _MOST_STEP:
        return "the pixels are too far apart"
    channels = int8_channels(layer)
    if not can_scale(channels):
        return TOO_LARGE
    weights = channels.matrix.reshape(-1, window.height, window.width)
    weights = weights if transposed else weights.transpose(0, 2, 1)
    multipliers, shifts = factor_arrays(channels.factors)
    scales = np.column_stack([channels.bias, multipliers, shifts]).astype(np.int32)
    plain = is_plain(layer)
    groups, rest = divmod(along.outputs, _TOGETHER)
    windows = _TOGETHER * groups + (0 if rest == 0 else _TOGETHER // 2 if rest <= _TOGETHER // 2 else _TOGETHER)
    line = 32 + vectors + windows * (2 * vectors + 1) + (groups + (rest > 0)) * (24 if plain else 32)
    copied = 19 + 5 * -(-along.input // (along.dilation * _TOGETHER)) + 3 * (along.pad > 0)
    filled_line = 16 + 3 * -(-along.length // _TOGETHER)
    behind = max(across.length - (across.pad + across.input) // across.dilation, 0)
    inside = max(across.length - across.pad // across.dilation - behind, 0)
    each = 160 + 80 * -(-behind // across.stride) + 50 * (across.pad > 0)
    each += copied * inside + filled_line * (across.length - inside) + line * across.outputs
    phases = across.dilation * along.dilation * layer.output.shape[0]
    single = multiplier == across.dilation == along.dilation == 1

    return Candidate(
        kernel="depthwise_conv2d_planes_mve_s8",
        instructions=phases * (layer.output.shape[3] * each + 200),
        weight_bytes=weights.nbytes + scales.nbytes,
        scratch_bytes=(along.length + (_TOGETHER - 1) * along.stride) * across.taps + across.length + _LANES * vectors,
        overlaps=partial(plane_overlaps, layer.context, window, transposed=transposed) if single else tuple,
        call=lambda: KernelCall(
            "depthwise_conv2d_planes_mve_s8",
            "ferrule/kernels/depthwise_conv2d_mve.h",
            {
                "across": across.fields,
                "along": along.fields,
                "batches": layer.output.shape[0],
                "input_c": layer.image.shape[3],
                "multiplier": multiplier,
                "input_zero_point": layer.image.zero_point,
                "weights": np.ascontiguousarray(weights).reshape(-1),
                "scales": scales.reshape(-1),
                "compute": Identifier(f"ferrule_mve_plane_{'plain' if plain else 'general'}_{vectors}"),
                "output": layer.output_fields,
            },
            sources=("mve_plane",),
        ),
    )


_TFLM = frozenset({Rounding.TFLM})
MVE_DEPTHWISE_ROWS = (
    weighted_row("depthwise_conv2d_mve_s8", _pixels, Feature.MVE, rules=_TFLM),
    weighted_row("depthwise_conv2d_planes_mve_s8", _planes, Feature.MVE, rules=_TFLM),
)
"""The kernel for all channels of a pixel at once, and that for channels one after the other."""
