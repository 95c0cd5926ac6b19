# SPDX-License-Identifier: Apache-2.0
"""CONV_2D and FULLY_CONNECTED on cores with the DSP extension, four channels at a time (`ferrule/kernels/block.h`)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.contribution import KERNELS
from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall
from ferrule.backends.cpu_acc.lowering.kernels.channel_pairs import NOT_PAIRED, paired_conv2d
from ferrule.backends.cpu_acc.lowering.kernels.choice import (
    Candidate,
    Feature,
    Row,
    both,
    weighted_row,
)
from ferrule.backends.cpu_acc.lowering.kernels.convolution import Convolution
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import (
    Channels,
    can_pair,
    can_pair_in_pieces,
    channel_words,
    extreme_channel_sums,
    has_full_range,
    int8_channels,
    pair_weights,
    used_inputs,
)
from ferrule.backends.cpu_acc.lowering.kernels.packing import filled, words
from ferrule.backends.cpu_acc.lowering.overlap import Reads
from ferrule.backends.cpu_acc.lowering.proofs.requantization import NOT_PROVED, proved_channels, proved_words
from ferrule.dom import Identifier
from ferrule.graph import Array, Rounding

_KERNEL = "conv2d_block_s8"
_CHANNELS, _PAIR = 4, 2
_PROVED_WORDS = 2
"""Constants of a channel in the proved form; the exact form has 4."""
_WIDE_WORDS = 8
"""Groups of four products for which weights of 16 bits take less cycles."""
_PIECE_WORDS = 128
"""Groups of four products of a piece of a sum: 2 * FERRULE_PIECE_PAIRS."""
_LOAD = 8
"""Products of one load of a FULLY_CONNECTED's row."""
_WIDENED, _DIRECT = "fully_connected_block_s8", "fully_connected_direct_block_s8"


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
    whole = channels.in_blocks(_PAIR)
    if not pair or len(whole.places) % _CHANNELS == 0:
        whole = channels.in_blocks(_CHANNELS)
    pieces = pieces and not can_pair(whole)
    if not (can_pair_in_pieces(whole) if pieces else can_pair(whole)):
        return NOT_PAIRED
    constants = exact_constants(whole) if pieces else requantization_constants(whole)
    if constants is None:
        return "an output is scaled up" if channels.rounding is Rounding.TFLM else NOT_PROVED
    fours = len(constants) // _CHANNELS * _CHANNELS
    parts = [_packed(whole.matrix[:fours], constants[:fours], _CHANNELS)] if fours else []
    if fours < len(constants):
        parts.append(_packed(whole.matrix[fours:], constants[fours:], _PAIR))
    return BlockWeights(
        words=-(-max(whole.matrix.shape[1], 1) // _CHANNELS),
        constants=constants,
        data=np.concatenate(parts),
        pieces=pieces,
    )


def _packed(matrix: Array, constants: Array, size: int) -> Array:
    """Return the words of blocks of so many channels."""
    blocks = len(constants) // size
    before, after = constants[:0].reshape(blocks, 0), constants.reshape(blocks, -1)
    if constants.shape[1] == _PROVED_WORDS:
        pairs = constants.reshape(blocks, size // _PAIR, 2 * _PROVED_WORDS)
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
            f"more than {_WIDE_WORDS * _CHANNELS} products: loading weights of 16 bits takes more cycles than it saves"
        )
    if narrow.channels != len(channels.matrix):
        return "the channels do not fill blocks of four"
    blocks = narrow.channels // _CHANNELS
    products = 256 * filled(channels.matrix.astype(np.int16), 1, _CHANNELS)
    # [block, channel, word, half of a pair, parity] -> [block, word, parity, channel, half of a pair]
    split = products.reshape(blocks, _CHANNELS, narrow.words, 2, 2).transpose(0, 2, 4, 1, 3)
    weights = words(split).reshape(blocks, -1)
    each = narrow.constants.reshape(blocks, _CHANNELS, _PROVED_WORDS)
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


# ---- CONV_2D


def _planned(channels: Channels, inputs: Array | None, line_bytes: int, weights: BlockWeights) -> Candidate:
    """Return the kernel for output channels; of the input channels of a 1x1 convolution, for `inputs`."""
    layer, whole = channels.layer, channels.in_blocks(_CHANNELS).places
    image, window = layer.image, layer.window
    pointwise = line_bytes == 0 and window.is_pointwise
    kernel = "conv2d_1x1_block_s8" if pointwise else _KERNEL
    listed = not whole.size == channels.places.size == layer.output.shape[3] or bool(channels.dead.any())
    requantize, step = (37 if weights.proved else 64) + 4 * listed, 24
    if weights.wide:
        requantize, step = 30, 22
    block = step * weights.words + 3 * (-(-(weights.words - 1) // 8)) + requantize + 8
    if weights.pieces:
        block += 3 * (weights.words // 8) + 24 * -(-weights.words // _PIECE_WORDS)
    if inputs is not None:
        gather = 24 * weights.words + 60
    else:
        gather = 8 * weights.words + 15 if pointwise else 9 * weights.words + 4 * window.height + 60
    fixed = layer.output.shape[3] if channels.dead.any() else 0
    row_bytes = window.width * image.shape[3]
    distance = line_bytes or window.dilation_h * image.shape[2] * image.shape[3]
    return Candidate(
        kernel=kernel,
        code="block",
        instructions=-(-layer.pixels // 2) * (weights.channels // _CHANNELS * block + gather + fixed),
        weight_bytes=weights.data.nbytes + (2 * weights.channels if listed else 0),
        scratch_bytes=16 * weights.words + window.height * line_bytes,
        overlaps=partial(layer.overlaps, pixels=2),
        call=lambda: KernelCall(
            kernel,
            "ferrule/kernels/conv2d.h",
            {
                **layer.image_fields,
                "inputs": None if inputs is None else filled(inputs, 4).astype(np.int16),
                "line_bytes": line_bytes,
                "rows": {
                    "count": window.height,
                    "words": row_bytes // 4,
                    "rest": row_bytes % 4,
                    "step_bytes": distance - row_bytes // 4 * 4,
                },
                "gather": Identifier(f"ferrule_block_gather{'_rgb' if window.height == 3 and row_bytes == 9 else ''}"),
                "block": {
                    "weights": weights.data,
                    "weight_bytes": weights.data.nbytes,
                    "words": weights.words,
                    "output_c": layer.output.shape[3],
                    "positions": whole.astype(np.int16) if listed else None,
                    "fixed": channels.fixed_pixel,
                    "store": Identifier(f"ferrule_block_{weights.form}{'_listed' if listed else ''}"),
                },
            },
            table="conv2d_block_s8_params",
            sources=("block", "block_wide") if weights.wide else ("block",),
        ),
    )


def _candidate(layer: Convolution, *, wide: bool = False, chosen: Channels | None = None) -> Candidate | str:
    """Return the kernel for the channels `chosen`, by default all that are not dead; or why it cannot.

    It writes the dead channels, too.
    """
    image, output, window = layer.image, layer.output, layer.window
    if chosen is None:
        channels = int8_channels(layer)
        # C has no empty arrays: one dead channel is computed where all are dead
        chosen = channels.live if not channels.dead.all() else channels.chosen(np.zeros(1, np.intp))
    inputs = used_inputs(chosen.matrix, 4) if window.is_pointwise else None
    line_bytes = 0
    if inputs is not None:
        chosen = replace(chosen, matrix=chosen.matrix[:, inputs])
    elif image.shape[3] % 4 != 0:
        if window.dilation_w != 1:
            return "the window is dilated and the input channels are not a multiple of four"
        line_bytes = ((output.shape[2] - 1) * window.stride_w + window.width) * image.shape[3]
        order = _row_order(window.height, window.width * image.shape[3])
        chosen = replace(chosen, matrix=np.pad(chosen.matrix, ((0, 0), (0, 1)))[:, order])
    weights = wide_weights(chosen) if wide else block_weights(chosen, pieces=True)
    if isinstance(weights, str):
        return weights
    if wide and chosen.dead.any():
        return "some channels have no weights"
    return _planned(chosen, inputs, line_bytes, weights)


def _row_order(rows: int, row_bytes: int) -> Array:
    """Return the products in the order of `ferrule_block_gather`; -1 for none."""
    whole = row_bytes // 4 * 4
    index = np.arange(rows * row_bytes).reshape(rows, row_bytes)
    rest = index[:, whole:].reshape(-1)
    padded = np.pad(rest, (0, -rest.size % 4), constant_values=-1).reshape(-1, 4)[:, [0, 2, 1, 3]]
    return np.concatenate([index[:, :whole].reshape(-1), padded.reshape(-1)])


def _conv2d(layer: Convolution) -> Candidate | str:
    """Return the kernel; if some channels have no proved constants, with that of paired channels for those."""
    found = _candidate(layer)
    if found != NOT_PROVED:
        return found
    channels, zero_point = int8_channels(layer).live, layer.output.zero_point
    proved = proved_channels(*extreme_channel_sums(channels), channels.factors, zero_point, channels.rounding)
    if proved.all() or not proved.any():
        return NOT_PROVED
    mine = _candidate(layer, chosen=channels.chosen(proved))
    theirs = paired_conv2d(replace(channels.chosen(~proved), dead=np.zeros_like(channels.dead)))
    return mine if isinstance(mine, str) else theirs if isinstance(theirs, str) else both(mine, theirs)


# ---- FULLY_CONNECTED


def _fully_connected(layer: Convolution, *, direct: bool) -> Candidate | str:
    channels = int8_channels(layer)
    products = channels.matrix.shape[1]
    if direct and products % _LOAD != 0:
        return "the inputs are not a multiple of eight"
    padded = np.pad(channels.matrix, ((0, 0), (0, -products % _LOAD)))
    weights = block_weights(replace(channels, matrix=padded), pieces=True, pair=True)
    if isinstance(weights, str):
        return weights
    kernel, blocks, form = _DIRECT if direct else _WIDENED, weights.channels // _CHANNELS, "direct_" if direct else ""
    pairs = weights.channels % _CHANNELS // _PAIR
    each = 3 * -(-weights.words // 8) + (18 * -(-weights.words // _PIECE_WORDS) if weights.pieces else 0)
    block = (32 if direct else 27) * weights.words // 2 + each + (34 if weights.proved else 46)
    pair = (19 if direct else 14) * weights.words // 2 + each + (60 if weights.proved else 70)
    block_words = 4 * weights.words + _CHANNELS * weights.constants.shape[1]
    whole = layer.output.shape[3] // _CHANNELS
    return Candidate(
        kernel=kernel,
        code="block",
        instructions=layer.pixels * (blocks * block + pairs * pair + (0 if direct else 9 * weights.words // 2) + 50),
        weight_bytes=weights.data.nbytes,
        scratch_bytes=0 if direct else 8 * weights.words,
        # Without scratch, each block of channels reads the row again.
        overlaps=partial(layer.overlaps, reads=Reads.PER_ELEMENT if direct else Reads.BEFORE),
        call=lambda: KernelCall(
            kernel,
            "ferrule/kernels/fully_connected.h",
            {
                "rows": layer.pixels,
                "input_c": products,
                "output_c": layer.output.shape[3],
                "words": weights.words,
                "weights": weights.data,
                "block_words": block_words,
                "rest_words": weights.data.size - whole * block_words,
                "multiply": Identifier(f"ferrule_block_row_{form}{weights.form}"),
                "multiply_rest": Identifier(f"ferrule_block_row_{'pair_' * pairs}{form}{weights.form}"),
            },
            table="fully_connected_block_s8_params",
            contribution=KERNELS.part(_WIDENED),
        ),
    )


_NEEDS = (Feature.LONG_MULTIPLY, Feature.DSP)
CONV_2D_BLOCK: tuple[Row, ...] = (
    weighted_row(_KERNEL, _conv2d, *_NEEDS),
    weighted_row(f"{_KERNEL} with weights of 16 bits", partial(_candidate, wide=True), *_NEEDS),
)
"""The kernel for windows of all sizes, which has an entry of its own for windows of one pixel."""
FULLY_CONNECTED_BLOCK: tuple[Row, ...] = (
    weighted_row(_WIDENED, partial(_fully_connected, direct=False), *_NEEDS),
    weighted_row(_DIRECT, partial(_fully_connected, direct=True), *_NEEDS),
)
"""The kernels of FULLY_CONNECTED, with the row widened in scratch and without scratch."""
