# SPDX-License-Identifier: Apache-2.0
"""Products of float32 matrices from run time: the right ones are packed into blocks of columns, as weights are."""

from __future__ import annotations

from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Found, Row
from ferrule.backends.cpu_acc.lowering.kernels.float_pixels import BLOCKS, FLOAT_SOURCES, pixel_instructions
from ferrule.backends.cpu_acc.lowering.kernels.matrix_product import MatrixProduct, in_column_tiles
from ferrule.backends.firmware import LoweringContext
from ferrule.graph import DataType

_PACKED = 2.6
"""Instructions for an element of a right matrix."""
_SCATTERED = 0.7
"""What a product takes more if the elements of a left row are not adjacent."""


def _candidate(product: MatrixProduct, limit: int) -> Candidate:
    depth, columns = product.depth, product.columns
    each = {block: pixel_instructions(product.context, columns, depth, block) for block in BLOCKS}
    block = min(each, key=lambda block: each[block])
    blocks, per_block = -(-columns // block), 4 * block * (depth + 1)
    tile = min(blocks, max(1, limit // per_block))
    tiles = -(-blocks // tile)
    each_row = each[block] + tiles * 30 + (0 if product.whole_rows else _SCATTERED * depth * columns)
    packing = blocks * (block * (_PACKED * depth + 8) + 60) + 120 * tiles
    return Candidate(
        kernel="batch_matmul_block_f32",
        instructions=int(product.matrices * (packing + product.rows * each_row)),
        weight_bytes=0,
        scratch_bytes=tile * per_block,
        call=lambda: KernelCall(
            "batch_matmul_block_f32",
            "ferrule/kernels/batch_matmul.h",
            {"shape": product.shape, "tile_columns": tile * block, "block": block},
            table="batch_matmul_tile_f32_params",
            inputs=product.inputs,
            sources=FLOAT_SOURCES,
        ),
    )


def _candidates(context: LoweringContext) -> Found:
    if context.output.dtype is not DataType.FLOAT32:
        return "the data is not float32"
    core = context.target.core
    if core is None or not core.fpu:
        return "the core has no floating-point unit"
    return in_column_tiles(MatrixProduct.of(context), _candidate)


MATRIX_PRODUCT_F32 = Row(kernel="batch_matmul_block_f32", candidate=_candidates)
"""The kernel of BATCH_MATMUL in float32 for cores with an FPU."""
