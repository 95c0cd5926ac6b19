# SPDX-License-Identifier: Apache-2.0
"""CONV_2D by Winograd's algorithm F(2x2, 3x3), as described in `ferrule/kernels/winograd.h`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall
from ferrule.backends.cpu_acc.lowering.kernels.block_weights import requantization_constants
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, Found, Row, weighted_row
from ferrule.backends.cpu_acc.lowering.kernels.convolution import TOO_LARGE, Convolution
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import can_scale, int8_channels
from ferrule.backends.cpu_acc.lowering.kernels.packing import filled, words
from ferrule.backends.cpu_acc.lowering.proofs.requantization import NOT_PROVED
from ferrule.graph import Array

_KERNEL, _TRANSFORMING_KERNEL = "conv2d_winograd_s8", "conv2d_winograd_transforming_s8"
_BLOCK, _CHUNK, _TAPS, _POSITIONS = 4, 16, 9, 16
_SUM_BYTES = 4 * 2 * _BLOCK * _POSITIONS
_CHUNK_BYTES = 2 * _POSITIONS * _BLOCK * _CHUNK
"""The transformed weights of one block and one chunk of input channels."""
_LARGEST_REACH = 1 << 29
"""Four times a sum below this number fits into 32 bits."""
_G = np.array([[1, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 1]], np.int64)


def _candidate(convolution: Convolution, *, transforming: bool) -> Found:
    """Return the kernel for weights that are transformed at run time (`transforming`) or at build time.

    Weights are transformed again for each chunk of pairs of tiles.
    """
    images, _, _, input_c = convolution.image.shape
    _, height, width, output_c = convolution.output.shape
    refusal = refused(convolution)
    if refusal:
        return refusal
    channels = int8_channels(convolution)
    if not can_scale(channels) or channels.reach.max() >= _LARGEST_REACH:
        return TOO_LARGE
    constants = requantization_constants(channels, always=True)
    if constants is None:
        return NOT_PROVED
    taps, blocks = channels.matrix.reshape(output_c, 3, 3, input_c), output_c // _BLOCK
    padded = -(-input_c // _CHUNK) * _CHUNK
    pairs = -(-height // 2) * -(-width // 4)  # of tiles in an image
    pair_bytes = 4 * _POSITIONS * padded
    sums = _POSITIONS * (8 + 93 * padded // _CHUNK) + 560
    instructions = images * pairs * (200 + 75 * input_c + blocks * sums)
    each = pair_bytes + (_SUM_BYTES if transforming and padded > _CHUNK else 0)
    once = _SUM_BYTES if not transforming or padded <= _CHUNK else 0
    once += _CHUNK_BYTES if transforming else 0
    block_bytes = _BLOCK * _TAPS * padded if transforming else 2 * _POSITIONS * _BLOCK * padded

    def candidate(at_once: int) -> Candidate:
        chunks, calls = images * -(-pairs // at_once), 80 * at_once * padded // _CHUNK
        transforms = chunks * blocks * (_BLOCK * 26 * padded + calls) if transforming else 0
        return Candidate(
            kernel=_TRANSFORMING_KERNEL if transforming else _KERNEL,
            code=_KERNEL,
            instructions=instructions + transforms,
            weight_bytes=blocks * block_bytes + constants.nbytes,
            scratch_bytes=once + at_once * each,
            overlaps=partial(convolution.overlaps, tile=(2, 4)),
            call=lambda: KernelCall(
                _KERNEL,
                "ferrule/kernels/winograd.h",
                {
                    "window": convolution.window_fields,
                    "output_c": output_c,
                    "input_zero_point": convolution.image.zero_point,
                    "transformed": None if transforming else transformed_words(taps),
                    "weights": weight_words(taps) if transforming else None,
                    "pairs_at_once": at_once,
                    "channels": constants.reshape(-1),
                    "proved": constants.shape[1] == 2,
                    "output": convolution.output_fields,
                },
                title=_TRANSFORMING_KERNEL if transforming else _KERNEL,
                scratch_alignment=16,
            ),
        )

    return [candidate(at_once) for at_once in _at_once(pairs) if transforming or at_once == 1]


def refused(convolution: Convolution) -> str:
    """Return why the algorithm cannot compute windows and channels of a layer; "" if it can."""
    window = convolution.window
    shape = (window.height, window.width, window.stride_h, window.stride_w, window.dilation_h, window.dilation_w)
    if shape != (3, 3, 1, 1, 1, 1):
        return "the window is not 3x3 with a stride and dilation of 1"
    channels = convolution.image.shape[3], convolution.output.shape[3]
    if max(window.padding.top, window.padding.left) > 1 or any(count % _BLOCK for count in channels):
        return "the padding is more than 1, or the channels are not a multiple of 4"
    return ""


def _at_once(pairs: int) -> Sequence[int]:
    """Return how many pairs of tiles may be transformed at once: powers of two, and all."""
    return [*(1 << power for power in range((pairs - 1).bit_length())), pairs]


def transformed_words(taps: Array) -> Array:
    """Return U for weights [channels, 3, 3, input channels], in the order of the kernel, as int32."""
    transformed = np.einsum("ia,oabc,jb->oijc", _G, taps.astype(np.int64), _G)
    whole = filled(transformed, _BLOCK, 4, 4, _CHUNK).astype(np.int16)
    # [block, channel, position, group, half of a word, parity] -> [block, position, group, parity, channel, half]
    return words(whole.reshape(-1, _BLOCK, _POSITIONS, whole.shape[3] // 4, 2, 2).transpose(0, 2, 3, 5, 1, 4))


def weight_words(taps: Array) -> Array:
    """Return weights [channels, 3, 3, input channels], in the order in which the kernel transforms them, as int32."""
    whole = filled(taps, _BLOCK, 3, 3, _CHUNK)
    # [block, channel, tap, group, input] -> [block, group, channel, tap, input]
    return words(whole.reshape(-1, _BLOCK, _TAPS, whole.shape[3] // 4, 4).transpose(0, 3, 1, 2, 4))


WINOGRAD_ROWS: tuple[Row, ...] = (
    weighted_row(_KERNEL, partial(_candidate, transforming=False), Feature.DSP),
    weighted_row(_TRANSFORMING_KERNEL, partial(_candidate, transforming=True), Feature.DSP),
)
"""Winograd's algorithm, with the weights transformed at build time, or at run time."""
