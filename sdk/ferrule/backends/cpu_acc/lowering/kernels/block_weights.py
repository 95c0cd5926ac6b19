# SPDX-License-Identifier: Apache-2.0
"""Weights and constants in blocks of four channels, as `ferrule/kernels/block.h` describes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.lowering.kernels.channel_pairs import NOT_PAIRED
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import (
    Channels,
    can_pair,
    can_pair_in_pieces,
    channel_words,
    extreme_channel_sums,
    has_full_range,
    pair_weights,
)
from ferrule.backends.cpu_acc.lowering.kernels.packing import filled, words
from ferrule.backends.cpu_acc.lowering.proofs.requantization import NOT_PROVED, proved_words
from ferrule.graph import Array, Rounding

CHANNELS, PAIR = 4, 2
"""The channels of a block, and of a last one."""
PIECE_WORDS = 128
"""Groups of four products of a piece of a sum: 2 * FERRULE_PIECE_PAIRS."""
_PROVED_WORDS = 2
"""Constants of a channel in the proved form; the exact form has 4."""
_WIDE_WORDS = 8
"""Groups of four products for which weights of 16 bits take less cycles."""


@frozen(eq=False)
class BlockWeights:
    """Weights in blocks of four channels, with the constants of their channels."""

    words: int
    """Products per output / 4, rounded up."""
    constants: Array
    """Words of each channel in blocks, repetitions included."""
    data: Array
    """int32."""
    wide: bool = False
    """Whether the weights have 16 bits."""
    pieces: bool = False
    """Whether sums are added in pieces, in the exact form."""

    @property
    def channels(self) -> int:
        """Channels in blocks, repetitions included."""
        return len(self.constants)

    @property
    def proved(self) -> bool:
        """Whether the constants have the proved form, not the exact one."""
        return len(self.constants[0]) == _PROVED_WORDS

    @property
    def form(self) -> str:
        """The part of a function's name that tells how it stores sums."""
        return "wide" if self.wide else "pieces" if self.pieces else "proved" if self.proved else "exact"


def block_weights(channels: Channels, *, pieces: bool = False, pair: bool = False) -> BlockWeights | str:
    """Return the weights of whole blocks, the last channel repeated; the reason as a string if that is impossible.

    With `pieces`, sums that are too large to be packed are added in pieces. With `pair`, up to two channels behind the
    last whole block form a block of two.
    """
    if not has_full_range(channels.layer):
        return "the output is clamped within int8"
    whole = channels.in_blocks(PAIR)
    if not pair or len(whole.places) % CHANNELS == 0:
        whole = channels.in_blocks(CHANNELS)
    pieces = pieces and not can_pair(whole)
    if not (can_pair_in_pieces(whole) if pieces else can_pair(whole)):
        return NOT_PAIRED
    constants = exact_constants(whole) if pieces else requantization_constants(whole)
    if constants is None:
        return "an output is scaled up" if channels.rounding is Rounding.TFLM else NOT_PROVED
    fours = len(constants) // CHANNELS * CHANNELS
    parts = [_packed(whole.matrix[:fours], constants[:fours], CHANNELS)] if fours else []
    if fours < len(constants):
        parts.append(_packed(whole.matrix[fours:], constants[fours:], PAIR))
    return BlockWeights(
        words=-(-max(whole.matrix.shape[1], 1) // CHANNELS),
        constants=constants,
        data=np.concatenate(parts),
        pieces=pieces,
    )


def _packed(matrix: Array, constants: Array, size: int) -> Array:
    """Return the words of blocks of so many channels."""
    blocks = len(constants) // size
    before, after = constants[:0].reshape(blocks, 0), constants.reshape(blocks, -1)
    if constants.shape[1] == _PROVED_WORDS:
        pairs = constants.reshape(blocks, size // PAIR, 2 * _PROVED_WORDS)
        before, after = pairs[:, :, 3], pairs[:, :, :3].reshape(blocks, -1)
    weights = pair_weights(matrix, size).reshape(blocks, -1)
    return np.concatenate([before, weights, after], axis=1).reshape(-1)


def wide_weights(channels: Channels) -> BlockWeights | str:
    """Return weights of 16 bits, times 256; the reason as a string if that is impossible or takes longer."""
    narrow = block_weights(channels)
    if isinstance(narrow, str):
        return narrow
    if not narrow.proved:
        return "an output needs two roundings"
    if narrow.words > _WIDE_WORDS:
        return (
            f"more than {_WIDE_WORDS * CHANNELS} products: loading weights of 16 bits takes more cycles than it saves"
        )
    if narrow.channels != len(channels.matrix):
        return "the channels do not fill blocks of four"
    blocks = narrow.channels // CHANNELS
    products = 256 * filled(channels.matrix.astype(np.int16), 1, CHANNELS)
    # [block, channel, word, half of a pair, parity] -> [block, word, parity, channel, half of a pair]
    split = products.reshape(blocks, CHANNELS, narrow.words, 2, 2).transpose(0, 2, 4, 1, 3)
    weights = words(split).reshape(blocks, -1)
    each = narrow.constants.reshape(blocks, CHANNELS, _PROVED_WORDS)
    data = np.concatenate([each[:, :, 1], weights, each[:, :, 0]], axis=1).reshape(-1)
    return replace(narrow, data=data, wide=True)


def requantization_constants(channels: Channels, *, always: bool = False) -> Array | None:
    """Return int32 words of each channel: two in the proved form if there is one, otherwise four in TFLM's exact form.

    Without `always`, the proved form is not searched where few channels have it. None if there is neither form.
    """
    zero_point = channels.layer.output.zero_point
    if always or zero_point == -128 or channels.rounding is not Rounding.TFLM:
        proved = proved_words(*extreme_channel_sums(channels), channels.factors, zero_point, channels.rounding)
        if proved is not None:
            return np.stack([proved[:, 0], (channels.bias << 8) + proved[:, 1]], axis=1).astype(np.int32)
    return exact_constants(channels, always=always)


def exact_constants(channels: Channels, *, always: bool = False) -> Array | None:
    """Return the four words of each channel in TFLM's exact form; None if it has not the results of the layer's rule.

    With `always`, an output that is scaled up is taken, too.
    """
    zero_point = channels.layer.output.zero_point
    words = channel_words(channels, 1).reshape(-1, 3).astype(np.int64)
    if channels.rounding is not Rounding.TFLM or (words[:, 2].min() < 1 and not always):
        return None
    return np.column_stack([words, ((2 * zero_point + 1) << words[:, 2]) >> 1]).astype(np.int32)
