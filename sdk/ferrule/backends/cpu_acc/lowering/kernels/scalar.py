# SPDX-License-Identifier: Apache-2.0
"""CONV_2D and FULLY_CONNECTED on cores without the DSP extension (`ferrule/kernels/multiply.h`)."""

from __future__ import annotations

from functools import partial

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, Found, Row, has_dsp, weighted_row
from ferrule.backends.cpu_acc.lowering.kernels.convolution import TOO_LARGE, Convolution
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import (
    Channels,
    can_scale,
    int8_channels,
    used_inputs,
)
from ferrule.backends.cpu_acc.lowering.kernels.packing import filled
from ferrule.backends.cpu_acc.lowering.overlap import Reads
from ferrule.backends.firmware import LoweringContext
from ferrule.graph import Array
from ferrule.operators.arithmetic.fixed_point import factor_arrays
from ferrule.operators.weighted.products import WEIGHTED_RULES

QUAD, DUO, OCTET = 4, 2, 8
"""The channels of a block, as in the header."""
_HEADER = "ferrule/kernels/multiply.h"
_LARGEST_PAIR = 255
"""The largest magnitude of two weights whose products with any int8 data add up to 16 bits."""


def plain_scales(channels: Channels) -> Array:
    """Return FERRULE_PLAIN_SCALE_WORDS words of each channel."""
    multipliers, shifts = factor_arrays(channels.factors)
    rounding = ((2 * channels.layer.output.zero_point + 1) << -shifts) >> 1
    rows = np.column_stack([2 * channels.bias, multipliers, -shifts, rounding, channels.places])
    return filled(rows, 1, 5).reshape(-1).astype(np.int32)


def cost_on(layer: Convolution, instructions: int) -> int:
    """Return the costs on the core; with the DSP extension, more than those of its kernels, less than generic ones."""
    return 9 * layer.macs + 30 * layer.output.elements if has_dsp(layer.context.target.core) else instructions


def interleaved(matrix: Array, block: int, run: int = 1) -> Array:
    """Return the weights by blocks of so many channels: for each run of products those of each channel in turn."""
    whole = filled(matrix, block, run)
    return whole.reshape(-1, block, whole.shape[1] // run, run).transpose(0, 2, 1, 3).reshape(-1)


def _conv2d(layer: Convolution, form: str, block: int, cost: float) -> Candidate | str:
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
        instructions=cost_on(layer, int(layer.pixels * (products * (cost * count + 3) + 20 * count))),
        weight_bytes=count * (products + 20),
        scratch_bytes=4 * products,
        overlaps=partial(layer.overlaps, pixels=2),
        call=lambda: KernelCall(
            f"conv2d_{form}",
            _HEADER,
            {
                **layer.image_fields,
                "inputs": None if used is None else filled(used, run).astype(np.int16),
                "products": products,
                "weights": interleaved(matrix, block, run),
                "scales": plain_scales(channels),
                "fixed": channels.fixed_pixel,
                "blocks": count // block,
                "output_c": layer.output.shape[3],
                "output": layer.output_fields,
            },
            table="conv2d_blocks_s8_params",
            sources=(f"multiply_{form}",),
            ruled=True,
        ),
    )


def _fits_duo(matrix: Array) -> bool:
    magnitudes = np.abs(filled(matrix, DUO, 2).astype(np.int64))
    return bool((magnitudes[..., 0::2] + magnitudes[..., 1::2] <= _LARGEST_PAIR).all())


def _duo(context: LoweringContext) -> Found:
    if context.target.core is None or not context.target.core.baseline:
        return "blocks of four channels take fewer instructions, except on Armv6-M"
    return weighted_row("", partial(_conv2d, form="duo", block=DUO, cost=3.3)).candidate(context)


def _octet(layer: Convolution) -> Candidate | str:
    context = layer.context
    channels = int8_channels(layer)
    if not can_scale(channels):
        return TOO_LARGE
    count, products = channels.matrix.shape

    per_product = 4.8 if context.target.core is not None and context.target.core.baseline else 2.2
    return Candidate(
        kernel="fully_connected_octet_s8",
        instructions=cost_on(layer, int(layer.pixels * count * (per_product * products + 20))),
        weight_bytes=-(-count // OCTET) * OCTET * products + 20 * count,
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
    weighted_row("conv2d_quad_s8", partial(_conv2d, form="quad", block=QUAD, cost=1.85), Feature.LONG_MULTIPLY),
    Row(kernel="conv2d_duo_s8", rules=WEIGHTED_RULES, candidate=_duo),
)
"""The kernels of CONV_2D for cores without the DSP extension; the second one for those of Armv6-M."""
FULLY_CONNECTED_SCALAR = weighted_row("fully_connected_octet_s8", _octet)
"""The kernel of FULLY_CONNECTED for cores without the DSP extension."""
