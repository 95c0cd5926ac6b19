# SPDX-License-Identifier: Apache-2.0
"""Layers with weights and int16 data on cores with the DSP extension, as in `ferrule/kernels/dual_s16.h`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import IntEnum
from functools import partial

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall, limit_fields
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, weighted_row
from ferrule.backends.cpu_acc.lowering.kernels.convolution import TOO_LARGE, Convolution, weights_of
from ferrule.backends.cpu_acc.lowering.kernels.int16_sums import largest_sums, taps_inside
from ferrule.backends.cpu_acc.lowering.kernels.packing import filled, words
from ferrule.backends.cpu_acc.lowering.overlap import Reads
from ferrule.backends.cpu_acc.lowering.proofs.channel_ranges import product_matrix
from ferrule.graph import Array, DataType, Rounding
from ferrule.memory.request import Overlap
from ferrule.operators.arithmetic.fixed_point import factor_arrays, reduced_multiplier
from ferrule.operators.weighted.products import is_wide

_HEADER = "ferrule/kernels/dual_s16.h"
_BLOCK = 4
_WIDE_SHIFT, _WORD_SHIFT = 15, 32
"""A sum times the reduced multiplier is shifted to the right by the first number minus the factor's shift. SMMULR
shifts a product to the right by the second number."""
_LARGEST_NARROW_SHIFT = 22


class _Sums(IntEnum):
    """How sums are kept and rounded: the FERRULE_DUAL_* of the header."""

    ONCE = 0
    TWICE = 1
    LONG = 2


def _sums(layer: Convolution, matrix: Array) -> _Sums | str:
    """Return the cheapest exact form of the sums; the reason if there is none."""
    reach, (_, shifts) = int(largest_sums(layer, matrix).max()), factor_arrays(layer.factors())
    if is_wide(layer.context.operands):
        whole = shifts.max() < 0 and shifts.min() >= _WIDE_SHIFT - _WORD_SHIFT
        return _Sums.ONCE if reach < 1 << 31 and whole else _Sums.LONG
    if reach >= 1 << 30:
        return "a sum does not fit into 30 bits"
    if shifts.max() > -1 or shifts.min() < -_LARGEST_NARROW_SHIFT:
        return "an output is scaled by 1/2 or more, or by less than 2**-22"
    return _Sums.TWICE


def _once_multipliers(layer: Convolution) -> Array:
    """Return the multipliers of sums that are rounded once, which include the shifts."""
    multipliers, shifts = factor_arrays(layer.factors())
    found: Array = reduced_multiplier(multipliers) << (_WORD_SHIFT - _WIDE_SHIFT + shifts)
    return found


def _stream(layer: Convolution, matrix: Array, sums: _Sums, *, unpacked: bool, long: bool) -> Array:
    """Return the words of `struct ferrule_conv2d_dual_s16_params`."""
    count = len(matrix)
    if count < _BLOCK:
        places = np.arange(_BLOCK)[None, :]
    else:
        places = np.minimum(np.arange(0, count, _BLOCK), count - _BLOCK)[:, None] + np.arange(_BLOCK)
    blocks = len(places)

    def chosen(values: Array) -> Array:
        """Return the values of the channels by block, zeros for missing channels."""
        found: Array = np.pad(values, [(0, max(_BLOCK - count, 0)), *[(0, 0)] * (values.ndim - 1)])[places]
        return found

    multipliers, shifts = factor_arrays(layer.factors())
    bias, weights = chosen(layer.bias(np.int64)), filled(chosen(matrix).reshape(blocks * _BLOCK, -1), 1, 2)
    # [block, pair or channel, step, channel of the pair, product]
    steps = weights.reshape(blocks, 2, 2, -1, 2)
    ordered = steps.transpose(0, 3, 1, 2, 4).astype(np.int16) if unpacked else steps.transpose(0, 3, 1, 4, 2)
    parts = [bias.astype("<i8").view("<i4") if long else bias, words(ordered)]
    match sums:
        case _Sums.ONCE:
            parts.append(chosen(_once_multipliers(layer)))
        case _Sums.TWICE:
            # missing channels have shifts of 0, too
            parts += [chosen(multipliers), chosen(1 << (-shifts - 1)), chosen(-shifts)]
        case _Sums.LONG:
            parts += [chosen(reduced_multiplier(multipliers)), chosen(shifts)]
    return np.concatenate([part.reshape(blocks, -1) for part in parts], axis=1).reshape(-1).astype(np.int32)


def _convolution(layer: Convolution, *, unpacked: bool) -> Candidate | str:
    matrix = product_matrix(layer.context.layer, weights_of(layer.context))
    sums = _sums(layer, matrix)
    if isinstance(sums, str):
        return sums
    if unpacked and sums is _Sums.TWICE:
        return "sums of 32 bits are rounded twice"
    count, products = matrix.shape
    steps, pixels, window = -(-products // 2), layer.pixels, layer.window
    gathered = pixels * (60 + 12 * window.width + window.height * 40 + 5 * products // 2)
    return _candidate(
        layer,
        f"conv2d_{_form(unpacked)}_s16",
        matrix,
        sums,
        unpacked=unpacked,
        long=sums is _Sums.LONG,
        gathered=gathered,
        scratch_bytes=4 * steps if sums is _Sums.LONG else 8 * steps + (16 if count < _BLOCK else 0),
        overlaps=partial(layer.overlaps, pixels=1 if sums is _Sums.LONG else 2),
    )


def _fully_connected(layer: Convolution, *, unpacked: bool) -> Candidate | str:
    matrix = product_matrix(layer.context.layer, weights_of(layer.context))
    if not is_wide(layer.context.operands):
        return "sums of 32 bits are rounded twice"
    if matrix.shape[1] % 2:
        return "the number of inputs is odd"
    sums = _sums(layer, matrix)
    if isinstance(sums, str):
        return sums
    return _candidate(layer, f"fully_connected_{_form(unpacked)}_s16", matrix, sums, unpacked=unpacked, long=True)


def _form(unpacked: bool) -> str:
    return "unpacked" if unpacked else "dual"


def _candidate(
    layer: Convolution,
    kernel: str,
    matrix: Array,
    sums: _Sums,
    *,
    unpacked: bool,
    long: bool,
    gathered: int = 0,
    scratch_bytes: int = 0,
    overlaps: Callable[[], tuple[Overlap, ...]] = tuple,
) -> Candidate:
    """Return a kernel that multiplies rows of data by blocks of channels; `gathered` is for collecting the rows."""
    count, products = matrix.shape
    steps, blocks, pixels = -(-products // 2), -(-count // _BLOCK), layer.pixels
    passes = 3 * -(-steps // 4)
    if long:
        each = 40 if sums is _Sums.LONG else 12
        multiplied = pixels * (blocks * ((7 if unpacked else 10) * steps + passes + 40) + each * count)
    else:
        block = (11 if unpacked else 15) * steps + passes + (54 if sums is _Sums.ONCE else 88)
        multiplied = -(-pixels // 2) * (blocks * block + 90)

    def stream() -> Array:
        return _stream(layer, matrix, sums, unpacked=unpacked, long=long)

    return Candidate(
        kernel=kernel,
        instructions=multiplied + gathered,
        weight_bytes=blocks * _BLOCK * ((4 if unpacked else 2) * steps + (16 if long or sums is _Sums.TWICE else 8)),
        scratch_bytes=scratch_bytes,
        overlaps=overlaps,
        call=lambda: KernelCall(
            kernel,
            _HEADER,
            {
                "window": layer.window_fields,
                "stream": layer.context.blob("weights", stream()),
                "sums": int(sums),
                "steps": steps,
                "output_c": count,
                **limit_fields(layer.output, layer.activation),
            },
            table="conv2d_dual_s16_params",
            sources=("dual_block_s16",),
        ),
    )


def _depthwise(layer: Convolution) -> Candidate | str:
    count = layer.output.shape[3]
    if layer.depth_multiplier != 1 or count == 1:
        return "the channels are multiplied, or there is one"
    matrix = product_matrix(layer.context.layer, weights_of(layer.context))
    if _sums(layer, matrix) is not _Sums.ONCE:
        return TOO_LARGE
    stream, (rows, columns), window = _depthwise_stream(layer, matrix), taps_inside(layer), layer.window
    pairs, output = -(-count // 2), layer.output.shape
    places = np.arange(output[2]) * window.stride_w - window.padding.left
    last = layer.image.shape[2] - 1 - (window.width - 1) * window.dilation_w
    inside = int(np.count_nonzero((places >= 0) & (places <= last)))
    single = output[2] - inside // 2 * 2  # these take the time of two
    taps = output[0] * rows * (9 * columns + 8 * output[2]) // 2
    pairwise = pairs * (taps + 20 * layer.pixels)

    return Candidate(
        kernel="depthwise_conv2d_dual_s16",
        instructions=pairwise * (output[2] + single) // output[2] + output[0] * output[1] * (300 + 150 * single),
        weight_bytes=stream.nbytes,
        overlaps=partial(_pair_overlaps, layer),
        call=lambda: KernelCall(
            "depthwise_conv2d_dual_s16",
            _HEADER,
            {
                "window": layer.window_fields,
                "stream": layer.context.blob("weights", stream),
                **limit_fields(layer.output, layer.activation),
            },
            sources=("dual_depthwise_s16",),
        ),
    )


def _depthwise_stream(layer: Convolution, matrix: Array) -> Array:
    """Return the words of `struct ferrule_depthwise_conv2d_dual_s16_params`."""
    count, window = len(matrix), layer.window
    places = np.minimum(np.arange(0, count, 2), count - 2)[:, None] + np.arange(2)
    taps = matrix.reshape(count, window.height, window.width)[places]
    columns = np.pad(taps, [(0, 0), (0, 0), (0, 0), (0, window.width % 2)])
    by_word = columns.reshape(len(places), 2, window.height, -1, 2).transpose(0, 2, 3, 1, 4)
    parts = [layer.bias(np.int64)[places], words(by_word).reshape(len(places), -1), _once_multipliers(layer)[places]]
    return np.concatenate(parts, axis=1).reshape(-1).astype(np.int32)


def _pair_overlaps(layer: Convolution) -> tuple[Overlap, ...]:
    """Return the overlap of a kernel that computes a pixel along with its neighbour, two channels at a time.

    Its neighbour is written before the window of the pixel is read in full, so the distance is larger by the step from
    one window to the next. Of an odd number of channels, the last but one is read again after it was written.
    """
    step = layer.window.stride_w * layer.image.shape[3] * layer.image.dtype.size_bytes
    reads = Reads.PER_ELEMENT if layer.image.shape[3] % 2 else Reads.PER_CHANNEL
    return tuple(
        replace(each, distance_bytes=each.distance_bytes + step)
        for each in layer.overlaps(reads=reads)
        if each.distance_bytes is not None
    )


_ROW = partial(weighted_row, rules=frozenset({Rounding.TFLM}), dtype=DataType.INT16)
CONV_2D_DUAL_S16 = (
    _ROW("conv2d_dual_s16", partial(_convolution, unpacked=False), Feature.DSP),
    _ROW("conv2d_unpacked_s16", partial(_convolution, unpacked=True), Feature.DSP),
)
"""The kernels of FULLY_CONNECTED, too."""
FULLY_CONNECTED_DUAL_S16 = (
    _ROW("fully_connected_dual_s16", partial(_fully_connected, unpacked=False), Feature.DSP),
    _ROW("fully_connected_unpacked_s16", partial(_fully_connected, unpacked=True), Feature.DSP),
)
DEPTHWISE_CONV_2D_DUAL_S16 = _ROW("depthwise_conv2d_dual_s16", _depthwise, Feature.DSP)
