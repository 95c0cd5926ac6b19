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
    elements = product.matrices * product.rows * product.columns
    per_product, per_element = _costs(context)
    return Candidate(
        kernel=f"batch_matmul_{suffix}",
        instructions=round(elements * (per_product * product.depth + per_element)),
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


def _costs(context: LoweringContext) -> tuple[float, float]:
    """Return the instructions of the generic kernel for a product and for an element of the output."""
    core, dtype = context.target.core, context.output.dtype
    baseline = core is not None and core.baseline
    if dtype.is_float:
        return (11, 40) if has_fpu(context) else (208, 40) if baseline else (124, 40)
    if dtype is DataType.INT16:
        return (12, 86) if baseline else (4.7, 45)
    return 11, 40


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
