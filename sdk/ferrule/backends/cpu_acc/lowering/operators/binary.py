# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of two tensors in C by TFLM's rule: ADD, SUB, MUL, DIV, MAXIMUM, FLOOR_DIV, SQUARED_DIFFERENCE and so on.

ADD and SUB of int8 use two multiplications (`scaled_sum`) or, on other cores and if the output is large enough, two
tables of 256 words, where a check of all 65536 pairs of inputs shows that the results are exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial

from ferrule.backends.cpu_acc.lowering.kernel_call import (
    KernelCall,
    Member,
    descriptor_of,
    int32s,
    kernel_of,
    limit_fields,
)
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, Row
from ferrule.backends.cpu_acc.lowering.operators.broadcast_costs import (
    FLOAT_ROWS,
    PRODUCT_ROWS_S16,
    SUM_ROWS_S16,
    Cost,
    RowCosts,
    blocks_instructions,
    element_instructions,
    merged_with_output,
)
from ferrule.backends.cpu_acc.lowering.overlap import replaced_overlaps
from ferrule.backends.cpu_acc.lowering.proofs.scaled_sum import scaled_sum, sum_tables
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.dom import ArrayData
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType
from ferrule.memory.request import Overlap
from ferrule.operators.arithmetic.broadcast import MAX_AXES
from ferrule.operators.arithmetic.fixed_point import Factor
from ferrule.operators.elementwise.binary import BinaryDescriptor, combination_of
from ferrule.operators.elementwise.division import Quotient, quotient_of
from ferrule.operators.elementwise.onnx_elementwise import FloatDifference, FusedSum
from ferrule.operators.elementwise.squared_difference import SquaredDifference, squared_difference_of
from ferrule.operators.elementwise.stored_binary import Additive, Combination, Product, Sum, Term

TABLE_MIN_ELEMENTS = 1024
"""The number of elements from which two tables (2048 bytes of flash) pay off, as they save 25 instructions or more
per element."""

_MOST_SHIFT = 22
"""With it, the zero point fits into 32 bits before the shift."""
_HEADER = "ferrule/kernels/binary.h"


def binary_call(context: LoweringContext, call: KernelCall, order: tuple[int, int] = (0, 1)) -> LoweredOp:
    """Return the layer as the call that `broadcast` completes."""
    return broadcast(context, call, order).lowered(context)


def broadcast(context: LoweringContext, call: KernelCall, order: tuple[int, int] = (0, 1)) -> KernelCall:
    """Return the call ferrule_<kernel>(parameters, first, second, output); each element is read before it is written.

    The table of the call begins with the broadcast shape; without other fields, the shape is the table. `order` has the
    positions of the inputs that the kernel takes as its first and second one.
    """
    extents, first, second = broadcast_axes(context, order)
    shape: Mapping[str, Member] = {"extents": extents, "first_strides": first, "second_strides": second}
    return replace(
        call,
        table=call.table or ("" if call.fields else "broadcast"),
        fields={"shape": shape, **call.fields} if call.fields or call.table else shape,
        inputs=order,
        overlaps=binary_overlaps(context, order),
    )


def binary_candidate(
    context: LoweringContext,
    call: KernelCall,
    instructions: float,
    weight_bytes: int = 0,
    order: tuple[int, int] = (0, 1),
) -> Candidate:
    """Return a call for `broadcast` as a candidate that takes so many instructions."""
    return Candidate(
        kernel=call.kernel,
        instructions=round(instructions),
        weight_bytes=weight_bytes,
        overlaps=partial(binary_overlaps, context, order),
        call=partial(broadcast, context, call, order),
    )


def blocks_candidate(
    context: LoweringContext, call: KernelCall, cost: Cost, weight_bytes: int = 0, order: tuple[int, int] = (0, 1)
) -> Candidate:
    """Return a call for `broadcast` of a kernel of blocks (`ferrule/kernels/blocks.h`) as a candidate."""
    call = replace(call, sources=("blocks",))
    instructions = blocks_instructions(context, cost.on(context.target.core))
    return binary_candidate(context, call, instructions, weight_bytes, order)


_LEFT_SHIFT = 20
"""Fractional bits at the common scale, as `rescaled_sum_s8` has them."""
_RESCALED_SUM = Cost(mve=3.7, dsp=15.8, long=53, short=101)
_ANY_PRODUCT = Cost(mve=33, dsp=36, long=36, short=73)
_OTHER_TYPES = 40
"""About what an element of other types takes."""


def any_candidate(context: LoweringContext, call: KernelCall, cost: Cost, wide: RowCosts | None = None) -> Candidate:
    """Return a kernel that takes any scales, of any type, as a candidate.

    The cost is that for an element of int8; `wide` are those for int16 and float32, which are roughly the same for all
    types without it.
    """
    match context.output.dtype:
        case DataType.INT8:
            instructions = element_instructions(context, cost.on(context.target.core))
        case DataType.INT16 if wide is not None:
            instructions = wide.on(context)
        case DataType.FLOAT32 if wide is not None:
            instructions = FLOAT_ROWS.on(context)
        case _:
            instructions = element_instructions(context, _OTHER_TYPES)
    return binary_candidate(context, call, instructions)


def binary_overlaps(context: LoweringContext, order: tuple[int, int] = (0, 1)) -> tuple[Overlap, ...]:
    """Return the overlaps of `binary_call`: with inputs that have the elements of the output."""
    output = context.output
    infos = {index: context.input(index) for index in order}
    alike = [index for index in order if (infos[index].elements, infos[index].dtype) == (output.elements, output.dtype)]
    return replaced_overlaps(context, dict.fromkeys(alike, 0))


def broadcast_axes(context: LoweringContext, inputs: Sequence[int], axes: int = MAX_AXES) -> list[ArrayData]:
    """Return the extents and the strides of each input, outermost first, as int32; missing axes have extent 1."""
    merged = merged_with_output([context.input(index) for index in inputs], context.output)
    missing = (1, *[0] * len(inputs))
    return [int32s(each) for each in zip(*[missing] * (axes - len(merged)), *merged, strict=True)]


def arithmetic_call(context: LoweringContext) -> KernelCall:
    """Return the call of the kernel of ADD, SUB or MUL that takes any scales, by TFLM's rule."""
    dtype = context.output.dtype
    if dtype.is_float:
        return _float_call(context)
    if dtype is DataType.INT32:
        return KernelCall(kernel_of(context), _HEADER, {})
    match combination(context):
        case Sum() as total:
            return _sum_call(context, total)
        case Product() as product:
            return _product_call(context, product)
        case _:
            raise UnsupportedError(f"layer '{context.layer.name}' ({context.layer.type}) has no kernel for {dtype}")


def _product_call(context: LoweringContext, product: Product | Quotient) -> KernelCall:
    return KernelCall(kernel_of(context), _HEADER, asdict(product), table="product_params")


def _float_call(context: LoweringContext) -> KernelCall:
    fields = limit_fields(context.output, descriptor_of(context, BinaryDescriptor).activation)
    return KernelCall(kernel_of(context), _HEADER, fields, table="binary_f32_params", sources=("float_limits",))


def _sum_call(context: LoweringContext, total: Sum | SquaredDifference) -> KernelCall:
    fields: Mapping[str, Member] = {
        "first": term_fields(total.first),
        "second": term_fields(total.second),
        "result": asdict(total.result),
        "left_shift": total.first.left_shift,
    }
    return KernelCall(kernel_of(context), _HEADER, fields, table="sum_params")


def term_fields(term: Term) -> Mapping[str, int]:
    """Return the members of a `struct ferrule_term`."""
    return {"offset": term.offset, "multiplier": term.multiplier, "shift": term.shift}


def combination(context: LoweringContext) -> Combination:
    """Return the arithmetic of an ADD, SUB or MUL of integers."""
    return combination_of(context.layer.type, descriptor_of(context, BinaryDescriptor), context.operands)


def _total(context: LoweringContext) -> Additive | str:
    """Return the arithmetic of an ADD or SUB of int8, or the reason why it is not one."""
    if context.output.dtype is not DataType.INT8:
        return "the data is not int8"
    total = combination(context)
    return total if isinstance(total, Sum | FusedSum | FloatDifference) else "the layer is not a sum"


def scaled_candidate(context: LoweringContext) -> Candidate | str:
    """Return the kernel of two multiplications with the costs of the DSP extension."""
    total = _total(context)
    constants = total if isinstance(total, str) else scaled_sum(total)
    if constants is None or isinstance(constants, str):
        return constants or "no two factors have the exact result for all pairs of inputs"
    call = KernelCall("sum_s8", _HEADER, asdict(constants), table="scaled_sum_params")
    return blocks_candidate(context, call, Cost(mve=2.4, dsp=5.8, long=20, short=80), weight_bytes=12)


def table_candidate(context: LoweringContext) -> Candidate | str:
    """Return the kernel of two tables."""
    total = _total(context)
    if isinstance(total, str):
        return total
    if context.output.elements * context.bands < TABLE_MIN_ELEMENTS:
        return f"the output has fewer than {TABLE_MIN_ELEMENTS} elements"
    tables = sum_tables(total)
    if tables is None:
        return "no two tables have the exact result for all pairs of inputs"
    first, second = tables
    fields = {"first": context.blob("first_table", first), "second": context.blob("second_table", second)}
    call = KernelCall("sum_table_s8", _HEADER, fields, table="sum_table_params")
    return blocks_candidate(context, call, Cost(mve=8.4, dsp=8.4, long=8.4, short=19.3), first.nbytes + second.nbytes)


def _rescaled_sum(context: LoweringContext) -> Candidate | str:
    """Return the kernel for any scales. Its first input is one of the larger scale, which is half the common one."""
    total = _total(context)
    if not isinstance(total, Sum):
        return total if isinstance(total, str) else "the layer is not a sum of TFLM's"
    terms, signs = (total.first, total.second), (1, -1 if total.subtract else 1)
    order = (0, 1) if _is_half(total.first) else (1, 0)
    exact, other = (terms[index] for index in order)
    if not _is_half(exact) or exact.left_shift != _LEFT_SHIFT:
        return "no scale is half the common one"
    # an exact half as well, since the kernel needs a shift: the product with 2**31 - 1 rounds to that with 2**31
    factor = Factor(multiplier=(1 << 31) - 1, shift=-1) if _is_half(other) else other
    fields: Mapping[str, Member] = {
        "exact_offset": exact.offset,
        "exact_sign": signs[order[0]],
        "other_offset": other.offset,
        "other_multiplier": factor.multiplier,
        "other_shift": factor.shift,
        "other_sign": signs[order[1]],
        "result": asdict(total.result),
    }
    call = KernelCall("rescaled_sum_s8", _HEADER, fields, table="rescaled_sum_params")
    return blocks_candidate(context, call, _RESCALED_SUM, order=order)


def _is_half(factor: Factor) -> bool:
    return (factor.multiplier, factor.shift) == (1 << 30, 0)


def _any_sum(context: LoweringContext) -> Candidate | str:
    if context.output.dtype is DataType.INT8:
        return "the data is int8"
    return any_candidate(context, arithmetic_call(context), _RESCALED_SUM, SUM_ROWS_S16)


SUM_ROWS: tuple[Row, ...] = (
    Row(kernel="sum_s8", needs=frozenset({Feature.DSP}), candidate=scaled_candidate),
    Row(kernel="sum_table_s8", candidate=table_candidate),
    Row(kernel="rescaled_sum_s8", candidate=_rescaled_sum),
    Row(kernel="any_sum", candidate=_any_sum),
)
"""The kernels of ADD and SUB by TFLM's rule."""


def unlike_products(factor: Factor) -> str:
    """Return why the kernels of blocks cannot multiply products of stored values by a factor; "" if they can."""
    if -_MOST_SHIFT <= factor.shift < 0:
        return ""
    return f"the factor of the products is not between 2**-{_MOST_SHIFT + 1} and 1/2"


def _product(context: LoweringContext) -> Candidate | str:
    product = combination(context) if context.output.dtype is DataType.INT8 else None
    if not isinstance(product, Product):
        return "the data is not int8"
    if reason := unlike_products(product.result):
        return reason
    call = KernelCall("product_s8", _HEADER, asdict(product), table="product_params")
    return blocks_candidate(context, call, Cost(mve=2.3, dsp=8.5, long=25.5, short=49))


PRODUCT_ROWS: tuple[Row, ...] = (
    Row(kernel="product_s8", candidate=_product),
    Row(
        kernel="any_product",
        candidate=lambda context: any_candidate(context, arithmetic_call(context), _ANY_PRODUCT, PRODUCT_ROWS_S16),
    ),
)
"""The kernels of MUL by TFLM's rule."""


def lower_div(context: LoweringContext) -> LoweredOp:
    """Return the call for DIV."""
    descriptor, dtype = descriptor_of(context, BinaryDescriptor), context.output.dtype
    if dtype is DataType.INT8:
        return binary_call(context, _product_call(context, quotient_of(descriptor, context.operands)))
    return binary_call(context, _float_call(context)) if dtype is DataType.FLOAT32 else lower_without_fields(context)


_SOURCES = {"floor_mod_f32": ("fmodf",), "maximum_s8": ("blocks",), "minimum_s8": ("blocks",)}


def lower_without_fields(context: LoweringContext) -> LoweredOp:
    """Return the call for MAXIMUM or MINIMUM, or for a function of two tensors without parameters."""
    kernel = kernel_of(context)
    sources = _SOURCES.get(kernel, ())
    return binary_call(context, KernelCall(kernel, _HEADER, {}, sources=sources))


def lower_squared_difference(context: LoweringContext) -> LoweredOp:
    """Return the call for SQUARED_DIFFERENCE."""
    if context.output.dtype not in {DataType.INT8, DataType.INT16}:
        return lower_without_fields(context)
    return binary_call(context, _sum_call(context, squared_difference_of(context.operands)))
