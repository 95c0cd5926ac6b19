# SPDX-License-Identifier: Apache-2.0
"""CONV_2D by Winograd's algorithm F(2x2, 3x3), as described in `ferrule/kernels/winograd.h`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall
from ferrule.backends.cpu_acc.lowering.kernels.block import requantization_constants
from ferrule.backends.cpu_acc.lowering.kernels.choice import SMALL_SCRATCH, Candidate, Feature, Row, int8_row
from ferrule.backends.cpu_acc.lowering.kernels.convolution import TOO_LARGE, Convolution
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import Channels, can_scale, int8_channels
from ferrule.backends.cpu_acc.lowering.proofs.requantization import NOT_PROVED
from ferrule.backends.firmware import Blob, LoweredOp
from ferrule.graph import Array
from ferrule.memory.request import Overlap

_KERNEL, _TRANSFORMING_KERNEL = "conv2d_winograd_s8", "conv2d_winograd_transforming_s8"
_BLOCK, _CHUNK, _TAPS, _POSITIONS = 4, 16, 9, 16
_SUM_BYTES = 4 * 2 * _BLOCK * _POSITIONS
_CHUNK_BYTES = 2 * _POSITIONS * _BLOCK * _CHUNK
"""The transformed weights of one block and one chunk of input channels."""
_LARGEST_REACH = 1 << 29
"""Four times a sum below this number fits into 32 bits."""
_G = np.array([[1, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 1]], np.int64)


@frozen(eq=False)
class _Layer:
    """A convolution that the kernel can run."""

    convolution: Convolution
    channels: Channels
    constants: Array
    """int32, per channel the words of the proved form or of the exact form in `ferrule/kernels/requantize_dsp.h`."""

    @property
    def blocks(self) -> int:
        """The number of blocks of output channels."""
        return len(self.channels.matrix) // _BLOCK

    @property
    def padded(self) -> int:
        """The number of input channels, rounded up to whole chunks."""
        return -(-self.convolution.image.shape[3] // _CHUNK) * _CHUNK

    @property
    def taps(self) -> Array:
        """The weights as int8 [channels, 3, 3, input channels]."""
        return self.channels.matrix.reshape(len(self.channels.matrix), 3, 3, -1)

    @property
    def block_bytes(self) -> int:
        """The transformed weights of one block."""
        return 2 * _POSITIONS * _BLOCK * self.padded

    @property
    def pair_bytes(self) -> int:
        """The transformed pixels of two tiles."""
        return 4 * _POSITIONS * self.padded

    def scratch_bytes(self, pairs_at_once: int) -> int:
        """Return the scratch for weights that are transformed at run time."""
        sums = pairs_at_once if self.padded > _CHUNK else 1
        return _CHUNK_BYTES + sums * _SUM_BYTES + pairs_at_once * self.pair_bytes

    def overlaps(self) -> tuple[Overlap, ...]:
        """Return the overlap of the kernel, which computes two tiles of 2x2 pixels at once."""
        return self.convolution.overlaps(tile=(2, 4))

    @property
    def pairs(self) -> int:
        """The number of times two tiles in an image of the output."""
        _, height, width, _ = self.convolution.output.shape
        return -(-height // 2) * -(-width // 4)

    @property
    def instructions(self) -> int:
        """An estimate, without the transformation of weights."""
        pixels = 200 + 75 * self.convolution.image.shape[3]
        sums = _POSITIONS * (8 + 93 * self.padded // _CHUNK) + 560
        return self.convolution.image.shape[0] * self.pairs * (pixels + self.blocks * sums)


def _transformed(convolution: Convolution) -> Candidate | str:
    context, layer = convolution.context, _layer(convolution)
    if isinstance(layer, str):
        return layer
    return Candidate(
        kernel=_KERNEL,
        instructions=layer.instructions,
        weight_bytes=layer.blocks * layer.block_bytes + layer.constants.nbytes,
        scratch_bytes=_SUM_BYTES + layer.pair_bytes,
        grows=True,
        overlaps=layer.overlaps,
        lower=lambda: _lower(layer, 1, transformed=context.blob("transformed", transformed_words(layer.taps))),
    )


def _transforming(convolution: Convolution) -> Candidate | str:
    context, layer = convolution.context, _layer(convolution)
    if isinstance(layer, str):
        return layer
    free = max(context.spare_bytes, SMALL_SCRATCH)
    at_once = 1
    while at_once < layer.pairs and layer.scratch_bytes(at_once + 1) <= free:
        at_once += 1
    calls = 80 * at_once * layer.padded // _CHUNK
    chunks = context.source.shape[0] * -(-layer.pairs // at_once)
    return Candidate(
        kernel=_TRANSFORMING_KERNEL,
        instructions=layer.instructions + chunks * layer.blocks * (_BLOCK * 26 * layer.padded + calls),
        weight_bytes=layer.blocks * _BLOCK * _TAPS * layer.padded + layer.constants.nbytes,
        scratch_bytes=layer.scratch_bytes(at_once),
        overlaps=layer.overlaps,
        lower=lambda: _lower(layer, at_once, weights=context.blob("weights", weight_words(layer.taps))),
    )


def _layer(convolution: Convolution) -> _Layer | str:
    """Return the layer, or why the kernel cannot run it."""
    window = convolution.window
    shape = (window.height, window.width, window.stride_h, window.stride_w, window.dilation_h, window.dilation_w)
    if shape != (3, 3, 1, 1, 1, 1):
        return "the window is not 3x3 with a stride and dilation of 1"
    many = convolution.image.shape[3] % 4 == 0 and convolution.output.shape[3] % _BLOCK == 0
    if max(window.padding.top, window.padding.left) > 1 or not many:
        return "the padding is more than 1, or the channels are not a multiple of 4"
    channels = int8_channels(convolution)
    if not can_scale(channels, convolution) or channels.reach.max() >= _LARGEST_REACH:
        return TOO_LARGE
    constants = requantization_constants(channels, convolution, always=True)
    return NOT_PROVED if constants is None else _Layer(convolution=convolution, channels=channels, constants=constants)


def _lower(
    layer: _Layer, pairs_at_once: int, *, transformed: Blob | None = None, weights: Blob | None = None
) -> LoweredOp:
    convolution, constants = layer.convolution, layer.constants
    context = convolution.context
    op = KernelCall(
        _KERNEL,
        "ferrule/kernels/winograd.h",
        {
            "window": convolution.window_fields,
            "output_c": convolution.output.shape[3],
            "input_zero_point": convolution.image.zero_point,
            "transformed": transformed,
            "weights": weights,
            "pairs_at_once": pairs_at_once,
            "channels": context.blob("channels", constants.reshape(-1)),
            "proved": constants.shape[1] == 2,
            "output": convolution.output_fields,
        },
        scratch_bytes=layer.scratch_bytes(pairs_at_once) if transformed is None else _SUM_BYTES + layer.pair_bytes,
        scratch_alignment=16,
    ).lowered(context)
    return op if weights is None else replace(op, kernel=_TRANSFORMING_KERNEL)


def transformed_words(taps: Array) -> Array:
    """Return U for weights [channels, 3, 3, input channels], in the order of the kernel, as int32."""
    channels, _, _, inputs = taps.shape
    whole = np.zeros((channels, 4, 4, -(-inputs // _CHUNK) * _CHUNK), np.int64)
    whole[..., :inputs] = np.einsum("ia,oabc,jb->oijc", _G, taps.astype(np.int64), _G)
    # [block, channel, position, group, half of a word, parity] -> [block, position, group, parity, channel, half]
    split = whole.astype("<i2").reshape(channels // _BLOCK, _BLOCK, _POSITIONS, -1, 2, 2)
    words: Array = np.ascontiguousarray(split.transpose(0, 2, 3, 5, 1, 4)).view("<i4").reshape(-1).astype(np.int32)
    return words


def weight_words(taps: Array) -> Array:
    """Return weights [channels, 3, 3, input channels], in the order in which the kernel transforms them, as int32."""
    channels, _, _, inputs = taps.shape
    whole = np.zeros((channels, _TAPS, -(-inputs // _CHUNK) * _CHUNK), np.int8)
    whole[..., :inputs] = taps.reshape(channels, _TAPS, inputs)
    # [block, channel, tap, group, input] -> [block, group, channel, tap, input]
    split = whole.reshape(channels // _BLOCK, _BLOCK, _TAPS, -1, 4)
    words: Array = np.ascontiguousarray(split.transpose(0, 3, 1, 2, 4)).view("<i4").reshape(-1).astype(np.int32)
    return words


WINOGRAD_ROWS: tuple[Row, ...] = (
    int8_row(_KERNEL, _transformed, Feature.DSP),
    int8_row(_TRANSFORMING_KERNEL, _transforming, Feature.DSP),
)
"""Winograd's algorithm, with the weights transformed at build time, or at run time."""
