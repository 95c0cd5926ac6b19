# SPDX-License-Identifier: Apache-2.0
"""BATCH_MATMUL in C."""

from __future__ import annotations

from ferrule.backends.cpu_acc.lowering.kernel_call import RULE_KERNELS, SUFFIXES, KernelCall, Member, rule_sources
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Row
from ferrule.backends.cpu_acc.lowering.kernels.float_pixels import has_fpu
from ferrule.backends.cpu_acc.lowering.kernels.matrix_product import MATRIX_PRODUCT_ROWS, MatrixProduct
from ferrule.backends.cpu_acc.lowering.kernels.matrix_product_f32 import MATRIX_PRODUCT_F32
from ferrule.backends.cpu_acc.lowering.kernels.matrix_product_s16 import MATRIX_PRODUCT_S16
from ferrule.backends.firmware import LoweringContext
from ferrule.graph import DataType
from ferrule.operators.arithmetic.fixed_point import reduced_multiplier
from ferrule.operators.weighted.products import WEIGHTED_RULES


def _generic(context: LoweringContext) -> Candidate:
    """Return the kernel that reads both matrices with strides and needs no scratch."""
    product, dtype, rounding = MatrixProduct.of(context), context.output.dtype, context.layer.rounding
    suffix = f"{RULE_KERNELS[rounding] if dtype is DataType.INT8 else ''}{SUFFIXES[dtype]}"
    return Candidate(
        kernel=f"batch_matmul_{suffix}",
        instructions=round(product.matrices * product.rows * _row_instructions(product)),
        weight_bytes=0,
        call=lambda: KernelCall(
            f"batch_matmul_{suffix}",
            "ferrule/kernels/batch_matmul.h",
            {"shape": product.shape, **({} if dtype.is_float else _scales(product))},
            table=f"batch_matmul_{'f32' if dtype.is_float else 'int'}_params",
            inputs=(0, 1),
            sources=rule_sources(rounding),
        ),
    )


def _row_instructions(product: MatrixProduct) -> float:
    """Return the instructions of the generic kernel for a row of the left matrix."""
    context, depth, columns = product.context, product.depth, product.columns
    core, dtype = context.target.core, context.output.dtype
    baseline = core is not None and core.baseline
    if dtype is DataType.INT16 and not baseline:
        # two columns at a time, of which an odd last one is computed twice
        adjacent = product.left["depth"] == product.right["depth"] == 1
        return 20 - 30 * (columns % 2) + -(-columns // 2) * ((7.5 if adjacent else 9.5) * depth + 95)
    if dtype is DataType.INT16:
        return columns * (12 * depth + 86)
    if dtype.is_float:
        return columns * ((11 if has_fpu(context) else 208 if baseline else 124) * depth + 40)
    return columns * (11 * depth + 40)


def _scales(product: MatrixProduct) -> dict[str, Member]:
    left, right, output = *product.context.operands.pair, product.context.output
    multiplier = product.factor.multiplier
    return {
        "left_zero_point": left.zero_point,
        "right_zero_point": right.zero_point,
        "multiplier": int(reduced_multiplier(multiplier)) if output.dtype is DataType.INT16 else multiplier,
        "shift": product.factor.shift,
        "output_zero_point": output.zero_point,
    }


BATCH_MATMUL_ROWS: tuple[Row, ...] = (
    *MATRIX_PRODUCT_ROWS,
    MATRIX_PRODUCT_S16,
    MATRIX_PRODUCT_F32,
    Row(kernel="batch_matmul", rules=WEIGHTED_RULES, candidate=_generic),
)
"""The kernels of BATCH_MATMUL; the last one takes all layers."""
