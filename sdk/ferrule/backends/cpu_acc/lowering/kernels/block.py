# SPDX-License-Identifier: Apache-2.0
"""CONV_2D and FULLY_CONNECTED on cores with the DSP extension, four channels at a time (`ferrule/kernels/block.h`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.contribution import KERNELS
from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall, Member
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
from ferrule.backends.cpu_acc.lowering.kernels.parts import Part, PlannedPart, part_channels, part_fields, part_rows
from ferrule.backends.cpu_acc.lowering.overlap import Reads
from ferrule.backends.cpu_acc.lowering.proofs.requantization import NOT_PROVED, proved_channels, proved_words
from ferrule.dom import Identifier
from ferrule.graph import Array, Rounding, TensorInfo
from ferrule.operators.arithmetic.window import Window

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


def _block_costs(weights: BlockWeights, *, listed: bool) -> int:
    """Return the instructions for all blocks of channels of two pixels."""
    requantize, step = (37 if weights.proved else 64) + 4 * listed, 24
    if weights.wide:
        requantize, step = 30, 22
    block = step * weights.words + 3 * (-(-(weights.words - 1) // 8)) + requantize + 8
    if weights.pieces:
        block += 3 * (weights.words // 8) + 24 * -(-weights.words // _PIECE_WORDS)
    return weights.channels // _CHANNELS * block


def _block_fields(
    layer: Convolution, weights: BlockWeights, positions: Array | None, fixed: Array | None, groups: int = 1
) -> Mapping[str, Member]:
    """Return the members of a `struct ferrule_block`."""
    listed = "" if positions is None else "_listed"
    return {
        "weights": weights.data,
        "weight_bytes": weights.data.nbytes // groups,
        "words": weights.words,
        "output_c": layer.output.shape[3],
        "positions": None if positions is None else positions.astype(np.int16),
        "fixed": fixed,
        "store": Identifier(f"ferrule_block_{weights.form}{listed}"),
    }


@frozen
class _Rows:
    """How the rows under windows are widened."""

    height: int
    row_bytes: int
    distance: int
    """Bytes between two rows."""
    line_bytes: int = 0
    """Of a row that is copied with its padding; 0 to read from the image."""
    pixel_bytes: int
    """Of a pixel's channels."""
    inside: int
    """Windows of a row that lie inside the image."""
    runs: bool = False
    """Whether rows have whole words and pairs of pixels are widened one after the other."""

    @property
    def words(self) -> int:
        return -(-self.row_bytes // 4) if self.runs else self.row_bytes // 4

    @property
    def scratch_bytes(self) -> int:
        return self.height * self.line_bytes + 4 if self.line_bytes else 0

    def ordered(self, channels: Channels) -> Channels:
        """Return the channels with their products in the order of the patches, with zeros for those that fill words."""
        if not self.line_bytes:
            return channels
        order = _row_order(self.height, self.row_bytes)
        if self.runs:
            index = np.arange(self.height * self.row_bytes).reshape(self.height, -1)
            order = np.pad(index, ((0, 0), (0, -self.row_bytes % 4)), constant_values=-1).reshape(-1)
        return replace(channels, matrix=np.pad(channels.matrix, ((0, 0), (0, 1)))[:, order])

    def instructions(self, words: int, count: int, *, grouped: bool = False) -> int:
        """Return an estimate for widening rows of `count` windows of so many words, per row of windows."""
        pairs = -(-count // 2)
        if not self.line_bytes:
            if self.runs:
                return pairs * (8 * words + 20) + 150
            inside = max(min(self.inside, count), 0) // 2
            return inside * (9 * words + 4 * self.height + 90) + (count - 2 * inside) * (
                11 * words + 25 * self.height + 100
            )
        each = 8 * words + 9 * self.height + 20
        if not self.runs:
            each = 9 * words + 10 * self.height * (self.row_bytes % 4) + 4 * self.height + 90
        copied = self.line_bytes * 9 // 16 + 30
        if grouped:
            copied = (
                self.line_bytes // 4 * 4
                if self.pixel_bytes == 4
                else self.line_bytes // self.pixel_bytes * (12 + self.pixel_bytes)
            )
        return pairs * each + self.height * copied + 150

    def fields(self) -> Mapping[str, Member]:
        """Return the members of the kernel's table."""
        rgb = "_rgb" if (self.height, self.row_bytes) == (3, 9) else ""
        return {
            "line_bytes": self.line_bytes,
            "runs": int(self.runs),
            "rows": {
                "count": self.height,
                "words": self.words,
                "rest": 0 if self.runs else self.row_bytes % 4,
                "step_bytes": self.distance - self.words * 4,
            },
            "gather": Identifier(f"ferrule_block_gather{rgb}"),
        }


_NO_ROWS = _Rows(height=1, row_bytes=0, distance=0, pixel_bytes=0, inside=0)
"""Of a window of one pixel with listed channels."""


def _row_forms(
    window: Window, image: TensorInfo, channels: int, width: int, *, lines: bool = True, direct: bool = True
) -> list[_Rows]:
    """Return the ways in which the rows under `width` windows can be widened: from lines, or direct from the image."""
    inside = (image.shape[2] - window.width + window.padding.left) // window.stride_w
    rows = _Rows(
        height=window.height,
        row_bytes=window.width * channels,
        distance=window.dilation_h * image.shape[2] * image.shape[3],
        pixel_bytes=channels,
        inside=inside + 1 - max(-(-window.padding.left // window.stride_w), 0),
        runs=channels == image.shape[3] and (window.height, window.width, window.stride_w) == (1, 1, 1),
    )
    found = [rows] if direct and channels % 4 == 0 else []
    if lines and window.dilation_w == 1:
        line_bytes = ((width - 1) * window.stride_w + window.width) * channels
        copied = replace(rows, distance=line_bytes, line_bytes=line_bytes, runs=True)
        found += [copied, replace(copied, runs=False)] if channels % 4 else [copied]
    return found


def _planned(channels: Channels, inputs: Array | None, rows: _Rows, weights: BlockWeights) -> Candidate:
    """Return the kernel for output channels; of the input channels of a 1x1 convolution, for `inputs`."""
    layer, whole = channels.layer, channels.in_blocks(_CHANNELS).places
    window = layer.window
    kernel = "conv2d_1x1_block_s8" if window.is_pointwise and not rows.line_bytes else _KERNEL
    listed = not whole.size == channels.places.size == layer.output.shape[3] or bool(channels.dead.any())
    pairs, width = -(-layer.pixels // 2), layer.output.shape[2]
    if inputs is not None:
        gather = pairs * (24 * weights.words + 60)
    elif window.is_pointwise and not rows.line_bytes:
        gather = pairs * (8 * weights.words + 15)
    elif rows.line_bytes:
        gather = layer.pixels // width * rows.instructions(weights.words, width)
    else:
        taps = window.height * (window.width if window.dilation_w > 1 else 0)
        gather = pairs * (9 * weights.words + 4 * window.height + 60 + 20 * taps)
    fixed = layer.output.shape[3] if channels.dead.any() else 0
    return Candidate(
        kernel=kernel,
        code="block",
        instructions=pairs * (_block_costs(weights, listed=listed) + fixed) + gather,
        weight_bytes=weights.data.nbytes + (2 * weights.channels if listed else 0),
        scratch_bytes=16 * weights.words + rows.scratch_bytes,
        overlaps=partial(layer.overlaps, pixels=2),
        call=lambda: KernelCall(
            kernel,
            "ferrule/kernels/conv2d.h",
            {
                **layer.image_fields,
                **layer.view_fields,
                "inputs": None if inputs is None else filled(inputs, 4).astype(np.int16),
                **rows.fields(),
                "block": _block_fields(layer, weights, whole if listed else None, channels.fixed_pixel),
            },
            table="conv2d_block_s8_params",
            sources=("block", "block_wide") if weights.wide else ("block",),
        ),
    )


def _candidate(
    layer: Convolution, *, wide: bool = False, lines: bool = False, chosen: Channels | None = None
) -> Candidate | str:
    """Return the kernel for the channels `chosen`, by default all that are not dead; or why it cannot.

    It writes the dead channels, too. `lines` copies rows with their padding even if they can be read from the image.
    """
    image, output, window = layer.image, layer.output, layer.window
    if chosen is None:
        channels = int8_channels(layer)
        # C has no empty arrays: one dead channel is computed where all are dead
        chosen = channels.live if not channels.dead.all() else channels.chosen(np.zeros(1, np.intp))
    inputs = used_inputs(chosen.matrix, 4) if window.is_pointwise else None
    by_words = inputs is not None or image.shape[3] % 4 == 0
    if lines and (not by_words or window.is_pointwise):
        return "rows need no copy" if by_words else "rows are copied anyway"
    if inputs is not None:
        chosen = replace(chosen, matrix=chosen.matrix[:, inputs])
    forms = (
        _row_forms(window, image, image.shape[3], output.shape[2], lines=lines or not by_words, direct=not lines)
        if inputs is None
        else [_NO_ROWS]
    )
    if not forms:
        return "the window is dilated and the input channels are not a multiple of four"
    found: list[Candidate | str] = []
    for rows in forms:
        weights = wide_weights(rows.ordered(chosen)) if wide else block_weights(rows.ordered(chosen), pieces=True)
        if isinstance(weights, str):
            found.append(weights)
        elif wide and chosen.dead.any():
            found.append("some channels have no weights")
        else:
            found.append(_planned(chosen, inputs, rows, weights))
    best = [each for each in found if isinstance(each, Candidate)]
    return min(best, key=lambda each: each.instructions) if best else found[0]


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


def _part(layer: Convolution, part: Part) -> list[PlannedPart] | str:
    if part.places.max() > np.iinfo(np.int16).max:
        return "outputs of a pixel are too far apart"
    forms = _row_forms(part.window, layer.image, part.channels, part.width)
    if not forms:
        return "the window is dilated and the input channels are not a multiple of four"
    channels = part_channels(layer, part.in_blocks(_CHANNELS))
    found = [_part_of_rows(layer, part, channels, rows) for rows in forms]
    plans = [each for each in found if isinstance(each, PlannedPart)]
    if not plans:
        return next(each for each in found if isinstance(each, str))
    smallest, fastest = min(plans, key=lambda each: each.scratch_bytes), min(plans, key=lambda each: each.instructions)
    return [smallest] if smallest is fastest else [smallest, fastest]


def _part_of_rows(layer: Convolution, part: Part, channels: Channels, rows: _Rows) -> PlannedPart | str:
    weights = block_weights(rows.ordered(channels), pieces=True)
    if isinstance(weights, str):
        return weights
    listed = rows.runs or not part.is_dense or part.outputs % _CHANNELS != 0
    count, places = layer.image.shape[0] * part.height, part.in_blocks(_CHANNELS).places
    gather = rows.instructions(weights.words, part.width, grouped=part.groups > 1)
    overlaps = partial(layer.overlaps, pixels=2 * part.together(layer))
    if part.groups > 1:
        overlaps = partial(layer.overlaps, tile=(1, layer.output.shape[2]), reads=Reads.THROUGHOUT)
    return PlannedPart(
        instructions=count * (-(-part.width // 2) * _block_costs(weights, listed=listed) + part.groups * gather),
        weight_bytes=weights.data.nbytes + (2 * len(places) if listed else 0),
        scratch_bytes=16 * weights.words + rows.scratch_bytes,
        overlaps=overlaps,
        fields=lambda more: {
            **part_fields(layer, part, more=more),
            "input_zero_point": layer.image.zero_point,
            "inputs": None,
            **rows.fields(),
            "block": {
                **_block_fields(layer, weights, places if listed else None, None, part.groups),
                "output_c": part.column,
            },
        },
    )


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
    weighted_row(f"{_KERNEL} by lines", partial(_candidate, lines=True), *_NEEDS),
)
"""The kernel for windows of all sizes, which has an entry of its own for windows of one pixel."""
PARTS_BLOCK: tuple[Row, ...] = part_rows(
    _KERNEL, "ferrule/kernels/conv2d.h", _part, *_NEEDS, sources=("block",), code="block"
)
"""The same for parts of a layer."""
FULLY_CONNECTED_BLOCK: tuple[Row, ...] = (
    weighted_row(_WIDENED, partial(_fully_connected, direct=False), *_NEEDS),
    weighted_row(_DIRECT, partial(_fully_connected, direct=True), *_NEEDS),
)
"""The kernels of FULLY_CONNECTED, with the row widened in scratch and without scratch."""
