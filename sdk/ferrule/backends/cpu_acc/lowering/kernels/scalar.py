# SPDX-License-Identifier: Apache-2.0
"""CONV_2D and FULLY_CONNECTED on cores without the DSP extension (`ferrule/kernels/multiply.h`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall, Member
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, Found, Row, weighted_row
from ferrule.backends.cpu_acc.lowering.kernels.convolution import TOO_LARGE, Convolution
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import (
    Channels,
    can_scale,
    int8_channels,
    used_inputs,
)
from ferrule.backends.cpu_acc.lowering.kernels.packing import filled
from ferrule.backends.cpu_acc.lowering.kernels.parts import Part, PlannedPart, part_channels, part_fields, part_rows
from ferrule.backends.cpu_acc.lowering.overlap import Reads
from ferrule.backends.firmware import LoweringContext
from ferrule.graph import Array
from ferrule.operators.arithmetic.fixed_point import factor_arrays
from ferrule.operators.weighted.products import WEIGHTED_RULES

QUAD, DUO, OCTET = 4, 2, 8
"""The channels of a block, as in the header."""
_MULTIPLY = {QUAD: (1.85, 20), DUO: (3.25, 80)}
"""Instructions per product and per output."""
_GATHER = {QUAD: 3, DUO: 8}
"""Instructions per product of a window."""
_WINDOW = 80
"""Instructions per window of several pixels, beside."""
_HEADER = "ferrule/kernels/multiply.h"
_LARGEST_PAIR = 255
"""The largest magnitude of two weights whose products with any int8 data add up to 16 bits."""


def plain_scales(channels: Channels) -> Array:
    """Return FERRULE_PLAIN_SCALE_WORDS words of each channel."""
    multipliers, shifts = factor_arrays(channels.factors)
    rounding = ((2 * channels.layer.output.zero_point + 1) << -shifts) >> 1
    rows = np.column_stack([2 * channels.bias, multipliers, -shifts, rounding, channels.places])
    return filled(rows, 1, 5).reshape(-1).astype(np.int32)


def interleaved(matrix: Array, block: int, run: int = 1) -> Array:
    """Return the weights by blocks of so many channels: for each run of products those of each channel in turn."""
    whole = filled(matrix, block, run)
    return whole.reshape(-1, block, whole.shape[1] // run, run).transpose(0, 2, 1, 3).reshape(-1)


def _conv2d(layer: Convolution, form: str, block: int) -> Candidate | str:
    channels = int8_channels(layer).live.in_blocks(block)
    if not can_scale(channels):
        return TOO_LARGE
    used = used_inputs(channels.matrix) if layer.window.is_pointwise else None
    matrix = channels.matrix if used is None else channels.matrix[:, used]
    if block == DUO and not _fits_duo(matrix):
        return "two neighbouring weights are -128"
    run = 2 if block == DUO else 1
    count, products = len(matrix), matrix.shape[1] + matrix.shape[1] % run

    return Candidate(
        kernel=f"conv2d_{form}_s8",
        instructions=int(
            layer.pixels * (_costs(block, count, products) + (0 if layer.window.is_pointwise else _WINDOW))
        ),
        weight_bytes=count * (products + 20),
        scratch_bytes=4 * products,
        overlaps=partial(layer.overlaps, pixels=2),
        call=lambda: KernelCall(
            f"conv2d_{form}",
            _HEADER,
            {
                **layer.image_fields,
                **layer.view_fields,
                "inputs": None if used is None else filled(used, run).astype(np.int16),
                **_block_fields(channels, matrix, block, count // block),
            },
            table="conv2d_blocks_s8_params",
            sources=(f"multiply_{form}",),
            ruled=True,
        ),
    )


def _costs(block: int, count: int, products: int) -> float:
    """Return the instructions of a pixel: of the sums of so many channels, to store them, and to collect its window."""
    per_mac, per_output = _MULTIPLY[block]
    return count * (per_mac * products + per_output) + _GATHER[block] * products


def _block_fields(channels: Channels, matrix: Array, block: int, blocks: int) -> Mapping[str, Member]:
    """Return the members for weights in so many blocks of channels of a group."""
    layer, run = channels.layer, 2 if block == DUO else 1
    return {
        "products": matrix.shape[1] + matrix.shape[1] % run,
        "weights": interleaved(matrix, block, run),
        "scales": plain_scales(channels),
        "fixed": channels.fixed_pixel,
        "blocks": blocks,
        "output_c": layer.output.shape[3],
        "output": layer.output_fields,
    }


def _part(layer: Convolution, part: Part, block: int) -> list[PlannedPart] | str:
    whole = part.in_blocks(block)
    channels = part_channels(layer, whole)
    # each scale has the place of its channel among those of all groups
    groups = np.repeat(np.arange(part.groups) * part.group_output, whole.outputs)
    channels = replace(channels, places=channels.places + groups)
    if not can_scale(channels):
        return TOO_LARGE
    if block == DUO and not _fits_duo(channels.matrix):
        return "two neighbouring weights are -128"
    count, products = channels.matrix.shape
    products += products % 2 if block == DUO else 0
    # the taps of a group are not neighbours in memory
    taps = part.groups * part.window.height * (part.window.width if part.groups > 1 else 1)
    collected = _GATHER[block] * products
    pixels = layer.image.shape[0] * part.height * part.width
    planned = PlannedPart(
        instructions=int(pixels * (_costs(block, count, products) + (part.groups - 1) * collected + 36 * taps)),
        weight_bytes=count * (products + 20),
        scratch_bytes=4 * products,
        overlaps=partial(
            layer.overlaps,
            pixels=2 * part.together(layer),
            reads=Reads.BEFORE if part.groups == 1 else Reads.THROUGHOUT,
        ),
        fields=lambda more: {
            **part_fields(layer, part, more=more),
            "input_zero_point": layer.image.zero_point,
            "inputs": None,
            **_block_fields(channels, channels.matrix, block, whole.outputs // block),
        },
    )
    return [planned]


def _fits_duo(matrix: Array) -> bool:
    magnitudes = np.abs(filled(matrix, DUO, 2).astype(np.int64))
    return bool((magnitudes[..., 0::2] + magnitudes[..., 1::2] <= _LARGEST_PAIR).all())


def _duo(context: LoweringContext) -> Found:
    return _in_duos(context, weighted_row("", partial(_conv2d, form="duo", block=DUO)))


def _in_duos(context: LoweringContext, row: Row) -> Found:
    if context.target.core is None or not context.target.core.baseline:
        return "blocks of four channels take fewer instructions, except on Armv6-M"
    return row.candidate(context)


def _part_rows(form: str, block: int, *needs: Feature) -> tuple[Row, ...]:
    return part_rows(
        f"conv2d_{form}_s8",
        _HEADER,
        partial(_part, block=block),
        *needs,
        sources=(f"multiply_{form}",),
        ruled=f"conv2d_{form}",
        table="conv2d_blocks_s8_params",
    )


def _octet(layer: Convolution) -> Candidate | str:
    context = layer.context
    channels = int8_channels(layer)
    if not can_scale(channels):
        return TOO_LARGE
    count, products = channels.matrix.shape
    filled_count = -(-count // OCTET) * OCTET

    baseline = context.target.core is not None and context.target.core.baseline
    per_product, per_octet, per_output = (35 / 8, 60, 45) if baseline else (2.19, 40, 12)
    each_row = filled_count * (per_product * products + per_octet / OCTET) + per_output * count + 50
    return Candidate(
        kernel="fully_connected_octet_s8",
        instructions=round(layer.pixels * each_row),
        weight_bytes=filled_count * products + 20 * count,
        overlaps=partial(layer.overlaps, reads=Reads.PER_ELEMENT),
        call=lambda: KernelCall(
            "fully_connected_octet",
            _HEADER,
            {
                "rows": layer.pixels,
                "input_c": products,
                "output_c": count,
                "weights": interleaved(channels.matrix, OCTET),
                "scales": plain_scales(channels),
                "output": layer.output_fields,
            },
            sources=("multiply_octet",),
            ruled=True,
        ),
    )


CONV_2D_SCALAR: tuple[Row, ...] = (
    weighted_row("conv2d_quad_s8", partial(_conv2d, form="quad", block=QUAD), Feature.LONG_MULTIPLY),
    Row(kernel="conv2d_duo_s8", rules=WEIGHTED_RULES, candidate=_duo),
)
"""The kernels of CONV_2D for cores without the DSP extension; the second one for those of Armv6-M."""
PARTS_SCALAR: tuple[Row, ...] = (
    *_part_rows("quad", QUAD, Feature.LONG_MULTIPLY),
    *(replace(row, candidate=partial(_in_duos, row=row)) for row in _part_rows("duo", DUO)),
)
"""The same for parts of a layer."""
FULLY_CONNECTED_SCALAR = weighted_row("fully_connected_octet_s8", _octet)
"""The kernel of FULLY_CONNECTED for cores without the DSP extension."""
