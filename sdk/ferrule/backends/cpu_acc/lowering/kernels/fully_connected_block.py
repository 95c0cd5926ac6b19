# SPDX-License-Identifier: Apache-2.0
"""FULLY_CONNECTED on cores with the DSP extension: four channels at a time, with the weights of `block`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ferrule.backends.contribution import KERNELS
from ferrule.backends.cpu_acc.lowering.kernel_call import kernel_call
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, Row
from ferrule.backends.cpu_acc.lowering.kernels.conv2d_block import BlockWeights, block_weights
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import int8_channels
from ferrule.backends.cpu_acc.lowering.overlap import Reads, pixel_overlaps
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.backends.target import Goal
from ferrule.dom import Identifier
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, TensorInfo
from ferrule.operators.fully_connected import FullyConnectedDescriptor
from ferrule.operators.weighted import WEIGHTED_RULES
from ferrule.operators.window import Window

_CHANNELS = 4
_GROUP = 8
"""Products of one load of the row."""
_WIDENED = "fully_connected_block_s8"
_DIRECT = "fully_connected_direct_block_s8"
_MOST_EXTRA = 256
"""Bytes of scratch above the spare ones that are worth the time that the widened row saves."""
_ROW = Window(height=1, width=1, stride_h=1, stride_w=1)


def _widened(context: LoweringContext) -> Candidate | str:
    found, other = _candidate(context, direct=False), _candidate(context, direct=True)
    if context.target.goal is Goal.SPEED or isinstance(found, str) or isinstance(other, str):
        return found
    if found.scratch_bytes > context.spare_bytes + _MOST_EXTRA:
        return f"{found.scratch_bytes} B of scratch raise the peak to save 15 % of the instructions"
    return found


def _direct(context: LoweringContext) -> Candidate | str:
    return _candidate(context, direct=True)


def _candidate(context: LoweringContext, *, direct: bool) -> Candidate | str:
    descriptor, data = context.layer.descriptor, context.input(0)
    if not isinstance(descriptor, FullyConnectedDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    if data.dtype is not DataType.INT8:
        return "the data is not int8"
    channels = int8_channels(context, descriptor.activation, 0)
    products = channels.matrix.shape[1]
    if direct and products % _GROUP != 0:
        return "the inputs are not a multiple of eight"
    padded = np.pad(channels.matrix, ((0, 0), (0, -products % _GROUP)))
    weights = block_weights(replace(channels, matrix=padded), context.operands.output, descriptor.activation)
    if isinstance(weights, str):
        return weights
    rows = data.elements // products
    steps = (32 if direct else 27) * weights.words // 2 + 3 * -(-weights.words // 8)
    block = steps + (34 if weights.proved else 46)
    return Candidate(
        kernel=_DIRECT if direct else _WIDENED,
        instructions=rows * (weights.channels // _CHANNELS * block + (0 if direct else 6 * weights.words) + 50),
        weight_bytes=weights.data.nbytes,
        scratch_bytes=0 if direct else 8 * weights.words,
        lower=lambda: _lower(context, weights, rows, products, direct=direct),
    )


def _lower(context: LoweringContext, weights: BlockWeights, rows: int, products: int, *, direct: bool) -> LoweredOp:
    data, output = context.input(0), context.operands.output
    image, result = _column(data, rows, products), _column(output, rows, output.elements // rows)
    # Without scratch, each block of channels reads the row again.
    reads = Reads.PER_ELEMENT if direct else Reads.BEFORE
    return kernel_call(
        context,
        _DIRECT if direct else _WIDENED,
        header="fully_connected",
        table="fully_connected_block_s8_params",
        scratch_bytes=0 if direct else 8 * weights.words,
        overlaps=pixel_overlaps(context, _ROW, image, result, reads=reads),
        rows=rows,
        input_c=products,
        output_c=result.shape[3],
        words=weights.words,
        weights=context.blob("weights", weights.data),
        block_words=weights.data.size // (weights.channels // _CHANNELS),
        multiply=Identifier(
            f"ferrule_block_row_{'direct_' if direct else ''}{'proved' if weights.proved else 'exact'}"
        ),
        contribution=KERNELS.part(_WIDENED),
    )


def _column(info: TensorInfo, rows: int, channels: int) -> TensorInfo:
    return TensorInfo(name=info.name, shape=(rows, 1, 1, channels), dtype=info.dtype, quantization=info.quantization)


_NEEDS = frozenset({Feature.LONG_MULTIPLY, Feature.DSP})
FULLY_CONNECTED_BLOCK_ROWS: tuple[Row, ...] = (
    Row(kernel=_WIDENED, needs=_NEEDS, rules=WEIGHTED_RULES, candidate=_widened),
    Row(kernel=_DIRECT, needs=_NEEDS, rules=WEIGHTED_RULES, candidate=_direct),
)
"""The kernels of FULLY_CONNECTED, with the row widened in scratch and without scratch."""
