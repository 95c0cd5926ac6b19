# SPDX-License-Identifier: Apache-2.0
"""CONV_2D and FULLY_CONNECTED on cores with the DSP extension, four channels at a time (`ferrule/kernels/block.h`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ferrule.backends.contribution import KERNELS
from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall, Member
from ferrule.backends.cpu_acc.lowering.kernels.block_rows import NO_ROWS, Rows, row_forms
from ferrule.backends.cpu_acc.lowering.kernels.block_weights import (
    CHANNELS,
    PAIR,
    PIECE_WORDS,
    BlockWeights,
    block_weights,
    wide_weights,
)
from ferrule.backends.cpu_acc.lowering.kernels.channel_pairs import paired_conv2d
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
    extreme_channel_sums,
    has_full_range,
    int8_channels,
    used_inputs,
)
from ferrule.backends.cpu_acc.lowering.kernels.packing import filled
from ferrule.backends.cpu_acc.lowering.kernels.parts import Part, PlannedPart, part_channels, part_fields, part_rows
from ferrule.backends.cpu_acc.lowering.overlap import Reads
from ferrule.backends.cpu_acc.lowering.proofs.requantization import NOT_PROVED, proved_channels
from ferrule.dom import Identifier
from ferrule.graph import Array, Rounding

_KERNEL = "conv2d_block_s8"
_LOAD = 8
"""Products of one load of a FULLY_CONNECTED's row."""
_MOST_DIVIDED = 4
"""Parts of neighbouring groups."""
_WIDENED, _DIRECT = "fully_connected_block_s8", "fully_connected_direct_block_s8"


def _block_costs(weights: BlockWeights, *, listed: bool) -> int:
    """Return the instructions for all blocks of channels of two pixels."""
    requantize, step = (37 if weights.proved else 64) + 4 * listed, 24
    if weights.wide:
        requantize, step = 30, 22
    block = step * weights.words + 3 * (-(-(weights.words - 1) // 8)) + requantize + 8
    if weights.pieces:
        block += 3 * (weights.words // 8) + 24 * -(-weights.words // PIECE_WORDS)
    return weights.channels // CHANNELS * block


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


def _planned(channels: Channels, inputs: Array | None, rows: Rows, weights: BlockWeights) -> Candidate:
    """Return the kernel for output channels; of the input channels of a 1x1 convolution, for `inputs`."""
    layer, whole = channels.layer, channels.in_blocks(CHANNELS).places
    window = layer.window
    pointwise = window.is_pointwise and not rows.line_w
    kernel = "conv2d_1x1_block_s8" if pointwise else _KERNEL
    listed = not whole.size == channels.places.size == layer.output.shape[3] or bool(channels.dead.any())
    pairs = -(-layer.pixels // 2)
    if inputs is not None:
        gather = pairs * (24 * weights.words + 60)
    elif pointwise:
        gather = pairs * (8 * weights.words + 15)
    else:
        gather = layer.image.shape[0] * rows.instructions(weights.words, *layer.output.shape[1:3])
    fixed = layer.output.shape[3] if channels.dead.any() else 0

    def fields() -> Mapping[str, Member]:
        block = {"block": _block_fields(layer, weights, whole if listed else None, channels.fixed_pixel)}
        if not pointwise:
            return {**layer.image_fields, **layer.view_fields, **rows.fields(), **block}
        listed_inputs = None if inputs is None else filled(inputs, 4).astype(np.int16)
        return {"pixels": layer.pixels, "input_c": layer.image.shape[3], "inputs": listed_inputs, **block}

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
            fields(),
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
        row_forms(window, image, image.shape[3], output.shape[1:3], lines=lines or not by_words, direct=not lines)
        if inputs is None
        else [NO_ROWS]
    )
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


def _conv2d(layer: Convolution) -> Candidate | str:
    """Return the kernel; if some channels have no proved constants, with that of paired channels for those."""
    found = _candidate(layer)
    if found != NOT_PROVED:
        return found
    channels, zero_point = int8_channels(layer).live, layer.output.zero_point
    _, proved = proved_channels(*extreme_channel_sums(channels), channels.factors, zero_point, channels.rounding)
    if proved.all() or not proved.any():
        return NOT_PROVED
    mine = _candidate(layer, chosen=channels.chosen(proved))
    theirs = paired_conv2d(replace(channels.chosen(~proved), dead=np.zeros_like(channels.dead)))
    return mine if isinstance(mine, str) else theirs if isinstance(theirs, str) else both(mine, theirs)


def divided_groups(layer: Convolution, part: Part) -> Sequence[Part]:
    """Return the groups whose channels all have proved constants apart from the others, if these are neighbours."""
    channels, zero_point = part_channels(layer, part), layer.output.zero_point
    if part.groups == 1 or zero_point != -128 or channels.rounding is not Rounding.TFLM or not has_full_range(layer):
        return (part,)
    _, proved = proved_channels(*extreme_channel_sums(channels), channels.factors, zero_point, channels.rounding)
    groups = proved.reshape(part.groups, -1).all(axis=1)
    ends = [*np.flatnonzero(np.diff(groups)) + 1, part.groups]
    if len(ends) > _MOST_DIVIDED:
        return (part,)
    return [part.some_groups(int(first), int(end)) for first, end in zip([0, *ends], ends, strict=False)]


def _part(layer: Convolution, part: Part) -> list[PlannedPart] | str:
    if part.places.max() > np.iinfo(np.int16).max:
        return "outputs of a pixel are too far apart"
    forms = row_forms(part.window, layer.image, part.channels, (part.height, part.width))
    channels = part_channels(layer, part.in_blocks(CHANNELS))
    found = [_part_of_rows(layer, part, channels, rows) for rows in forms]
    plans = [each for each in found if isinstance(each, PlannedPart)]
    if not plans:
        return next(each for each in found if isinstance(each, str))
    smallest, fastest = min(plans, key=lambda each: each.scratch_bytes), min(plans, key=lambda each: each.instructions)
    return [smallest] if smallest is fastest else [smallest, fastest]


def _part_of_rows(layer: Convolution, part: Part, channels: Channels, rows: Rows) -> PlannedPart | str:
    weights = block_weights(rows.ordered(channels), pieces=True)
    if isinstance(weights, str):
        return weights
    # Pixels that are stored one after the other have no gaps between them, or list their channels.
    listed = not part.is_dense or part.outputs != part.column or part.outputs % CHANNELS != 0
    batches, places = layer.image.shape[0], part.in_blocks(CHANNELS).places
    gather = rows.instructions(weights.words, part.height, part.width)
    overlaps = partial(layer.overlaps, pixels=2 * part.together(layer))
    if part.groups > 1:
        overlaps = partial(layer.overlaps, tile=(1, layer.output.shape[2]), reads=Reads.THROUGHOUT)
    return PlannedPart(
        instructions=batches
        * (part.height * -(-part.width // 2) * _block_costs(weights, listed=listed) + part.groups * gather),
        weight_bytes=weights.data.nbytes + (2 * len(places) if listed else 0),
        scratch_bytes=16 * weights.words + rows.scratch_bytes,
        overlaps=overlaps,
        fields=lambda more: {
            **part_fields(layer, part, more=more),
            "first_c": part.first_c,
            "input_zero_point": layer.image.zero_point,
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
    kernel, blocks, form = _DIRECT if direct else _WIDENED, weights.channels // CHANNELS, "direct_" if direct else ""
    pairs = weights.channels % CHANNELS // PAIR
    each = 3 * -(-weights.words // 8) + (18 * -(-weights.words // PIECE_WORDS) if weights.pieces else 0)
    block = (32 if direct else 27) * weights.words // 2 + each + (34 if weights.proved else 46)
    pair = (19 if direct else 14) * weights.words // 2 + each + (60 if weights.proved else 70)
    block_words = 4 * weights.words + CHANNELS * weights.constants.shape[1]
    whole = layer.output.shape[3] // CHANNELS
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
    _KERNEL, "ferrule/kernels/conv2d.h", _part, *_NEEDS, sources=("block",), code="block", divided=divided_groups
)
"""The same for parts of a layer."""
FULLY_CONNECTED_BLOCK: tuple[Row, ...] = (
    weighted_row(_WIDENED, partial(_fully_connected, direct=False), *_NEEDS),
    weighted_row(_DIRECT, partial(_fully_connected, direct=True), *_NEEDS),
)
"""The kernels of FULLY_CONNECTED, with the row widened in scratch and without scratch."""
