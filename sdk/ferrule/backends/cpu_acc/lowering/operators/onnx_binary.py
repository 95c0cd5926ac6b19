# SPDX-License-Identifier: Apache-2.0
"""ADD, SUB, MUL, DIV and PRELU of int8 by ONNX's rule in C.

Where a check of all inputs shows it exact, a layer is computed with integers: sums by the kernels of TFLM's rule,
products by one multiplication. The other layers are computed in float32, step by step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace

import numpy as np

from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall, Member
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, Row, has_dsp
from ferrule.backends.cpu_acc.lowering.operators.binary import (
    binary_call,
    binary_candidate,
    blocks_candidate,
    combination,
    scaled_candidate,
    table_candidate,
)
from ferrule.backends.cpu_acc.lowering.operators.broadcast_costs import Cost, blocks_instructions, element_instructions
from ferrule.backends.cpu_acc.lowering.proofs.dyadic_scales import dyadic_constants
from ferrule.backends.cpu_acc.lowering.proofs.scaled_product import scaled_product
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.graph import ONNX_ROUNDINGS, LayerType
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.fixed_point import activation_range
from ferrule.operators.elementwise.binary import BinaryDescriptor, float_limits
from ferrule.operators.elementwise.onnx_elementwise import (
    FloatDifference,
    FloatProduct,
    FusedSum,
    OnnxOutput,
    RealProduct,
)
from ferrule.operators.elementwise.quantize import quantize_to_even
from ferrule.operators.elementwise.stored_binary import int8_results

_HEADER = "ferrule/kernels/binary.h"


def _scaled_sum(context: LoweringContext) -> Candidate | str:
    """Return the kernel of two multiplications on any core with long multiplication."""
    found = scaled_candidate(context)
    if isinstance(found, str) or has_dsp(context.target.core):
        return found
    return replace(found, instructions=blocks_instructions(context, 20))


def _exact(context: LoweringContext) -> Candidate:
    """Return the kernel with the float32 steps of the rule."""
    match combination(context):
        case FusedSum() as total:
            fields: dict[str, Member] = {
                "first_factor": total.first_factor,
                "second_factor": total.second_factor,
                "constant": total.constant,
                "rounded": _rounded_fields(total.output),
            }
            call, with_fpu, without = KernelCall("fused_sum_s8", _HEADER, fields, table="fused_sum_params"), 30, 500
        case FloatDifference() | RealProduct() as pair:  # a sum is the difference of a negated value
            kernel = "real_product_s8" if isinstance(pair, RealProduct) else "float_difference_s8"
            call, with_fpu, without = _pair_call(context, kernel, pair.first_scale, pair.second_scale), 50, 600
        case FloatProduct() as product:
            fields = {
                "first_offset": product.first_offset,
                "second_offset": product.second_offset,
                "factor": product.factor,
                "zero_point": float(product.output.zero_point),
                "rounded": _rounded_fields(product.output),
            }
            call = KernelCall("float_product_s8", _HEADER, fields, table="float_product_params")
            with_fpu, without = 30, 300
        case other:
            raise UnsupportedError(f"layer '{context.layer.name}' has no kernel for {type(other).__name__}")
    # without an FPU, each step of float32 is the call of a function
    fast = context.target.core is None or context.target.core.fpu
    return binary_candidate(context, call, element_instructions(context, with_fpu if fast else without))


def lower_onnx_pair(context: LoweringContext) -> LoweredOp:
    """Return the call of the kernel that computes DIV or PRELU with float32 values."""
    kernel = "float_quotient_s8" if context.layer.type is LayerType.DIV else "float_prelu_s8"
    return binary_call(context, _pair_call(context, kernel, context.source.scale, context.input(1).scale))


def _pair_call(context: LoweringContext, kernel: str, first_scale: float, second_scale: float) -> KernelCall:
    descriptor = context.layer.descriptor
    activation = descriptor.activation if isinstance(descriptor, BinaryDescriptor) else Activation.NONE
    first, second, output = context.source, context.input(1), context.output
    low, high = activation_range(activation, output)
    if context.layer.type is LayerType.DIV:  # its float32 quotients are clamped before they are quantised
        low, high = quantize_to_even(np.array(float_limits(activation), np.float32), output).tolist()
    fields = {
        "first_scale": first_scale,
        "second_scale": second_scale,
        "scale": output.scale,
        "first_zero_point": first.zero_point,
        "second_zero_point": second.zero_point,
        "zero_point": output.zero_point,
        "low": low,
        "high": high,
    }
    return KernelCall(kernel, _HEADER, fields, table="float_pair_params")


def _rounded_fields(output: OnnxOutput) -> Mapping[str, float]:
    """Return the members of a `struct ferrule_rounded`."""
    offset = output.stored_offset
    return {"low": float(output.low - offset), "high": float(output.high - offset), "stored_offset": offset}


def _scaled_product(context: LoweringContext) -> Candidate | str:
    product = combination(context)
    if isinstance(product, RealProduct):
        if not np.array_equal(int8_results(product), int8_results(product.fused)):
            return "the result depends on more than the product"
        product = product.fused
    constants = scaled_product(product) if isinstance(product, FloatProduct) else None
    if constants is None or not isinstance(product, FloatProduct):
        return "no factor has the exact result for all products"
    offsets = {"first_offset": product.first_offset, "second_offset": product.second_offset}
    limits = {"low": product.output.low, "high": product.output.high}
    fields = offsets | asdict(constants) | limits
    call = KernelCall("scaled_product_s8", _HEADER, fields, table="scaled_product_params")
    return blocks_candidate(context, call, Cost(mve=1.9, dsp=7, long=21, short=53))


def _dyadic(context: LoweringContext) -> Candidate | str:
    """Return the kernel of exact integers."""
    constants = dyadic_constants(combination(context))
    if constants is None:
        return "the scales are no small whole numbers over powers of two"
    kernel = "even_product_s8" if context.layer.type is LayerType.MUL else "even_sum_s8"
    call = KernelCall(kernel, _HEADER, asdict(constants), table="even_params")
    return binary_candidate(context, call, element_instructions(context, 18))


ONNX_SUM_ROWS: tuple[Row, ...] = (
    Row(kernel="sum_s8", needs=frozenset({Feature.LONG_MULTIPLY}), rules=ONNX_ROUNDINGS, candidate=_scaled_sum),
    Row(kernel="sum_table_s8", rules=ONNX_ROUNDINGS, candidate=table_candidate),
    Row(kernel="even_sum_s8", rules=ONNX_ROUNDINGS, candidate=_dyadic),
    Row(kernel="float_sum", rules=ONNX_ROUNDINGS, candidate=_exact),
)
"""The kernels of ADD and SUB by ONNX's rule."""
ONNX_PRODUCT_ROWS: tuple[Row, ...] = (
    Row(kernel="scaled_product_s8", rules=ONNX_ROUNDINGS, candidate=_scaled_product),
    Row(kernel="even_product_s8", rules=ONNX_ROUNDINGS, candidate=_dyadic),
    Row(kernel="float_product_s8", rules=ONNX_ROUNDINGS, candidate=_exact),
)
"""The kernels of MUL by ONNX's rule."""
