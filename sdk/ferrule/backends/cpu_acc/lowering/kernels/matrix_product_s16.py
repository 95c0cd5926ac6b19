# SPDX-License-Identifier: Apache-2.0
"""Products of int16 matrices from run time, with sums of 64 bits: four columns of the right one are packed together."""

from __future__ import annotations

from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, Found, Row
from ferrule.backends.cpu_acc.lowering.kernels.convolution import TOO_LARGE
from ferrule.backends.cpu_acc.lowering.kernels.int16_sums import WIDE_SHIFT
from ferrule.backends.cpu_acc.lowering.kernels.matrix_product import MatrixProduct, in_column_tiles
from ferrule.backends.firmware import LoweringContext
from ferrule.graph import DataType
from ferrule.operators.arithmetic.fixed_point import reduced_multiplier

_BLOCK, _PAIR, _VECTOR = 4, 2, 8
_WORD = 32
_MOST_RAISED = 16
"""A reduced multiplier stays below 2**31 when it is shifted to the left by this."""
_LARGEST_PRODUCT = 1 << 30


def _scale(product: MatrixProduct) -> tuple[int, int] | str:
    """Return the multiplier of a sum, and by how much more than 32 bits the product is shifted to the right."""
    total = WIDE_SHIFT - product.factor.shift
    raised = max(0, _WORD + 1 - total)
    if raised > _MOST_RAISED:
        return TOO_LARGE
    multiplier = int(reduced_multiplier(product.factor.multiplier)) << raised
    if product.depth * _LARGEST_PRODUCT * multiplier >> _WORD >= (1 << 31) - 1:
        return TOO_LARGE
    return multiplier, total + raised - _WORD


def _candidate(product: MatrixProduct, limit: int) -> Candidate | str:
    scale = _scale(product)
    if isinstance(scale, str):
        return scale
    multiplier, right = scale
    core = product.context.target.core
    vectors = core is not None and core.mve
    depth, steps, runs = product.depth, -(-product.depth // _PAIR), -(-product.depth // _VECTOR)
    copied = 0 if product.whole_rows and depth % _PAIR == 0 else 2 * depth + 2
    blocks, per_block = -(-product.columns // _BLOCK), 2 * _BLOCK * _VECTOR * runs
    tile = min(blocks, max(1, (limit - copied) // per_block))
    tiles, along = -(-blocks // tile), product.right["depth"] == 1
    if vectors:
        block, packing = 10 * runs + 17, 4 * (3 * runs + 18) if along else 6 * depth + 12 * runs + 30
        each_row = 75 + (0 if product.whole_rows else 5 * depth)
    else:
        block = 7 * steps + 2 * -(-steps // 4) + 37
        packing = 4 * (6 * steps + 20) if along else 28 * steps + 50
        each_row = 75 + (5 * depth if copied else 0)
    if product.columns % _BLOCK:
        each_row += 70 // tiles
        packing += 8 * depth * (not along) // blocks
    return Candidate(
        kernel="batch_matmul_block_s16",
        instructions=product.matrices
        * (blocks * packing + product.rows * (blocks * block + tiles * each_row) + 60 * tiles),
        weight_bytes=0,
        scratch_bytes=tile * per_block + copied,
        call=lambda: KernelCall(
            "batch_matmul_block_s16",
            "ferrule/kernels/batch_matmul.h",
            {
                "shape": product.shape,
                "tile_columns": tile * _BLOCK,
                "multiplier": multiplier,
                "right": right,
            },
            table="batch_matmul_tile_s16_params",
            inputs=product.inputs,
        ),
    )


def _candidates(context: LoweringContext) -> Found:
    if context.output.dtype is not DataType.INT16:
        return "the data is not int16"
    return in_column_tiles(MatrixProduct.of(context), _candidate)


MATRIX_PRODUCT_S16 = Row(
    kernel="batch_matmul_block_s16", needs=frozenset({Feature.LONG_MULTIPLY, Feature.DSP}), candidate=_candidates
)
"""The kernel of BATCH_MATMUL that packs the right matrices at run time, two products at a time or eight with MVE."""
