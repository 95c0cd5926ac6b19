# SPDX-License-Identifier: Apache-2.0
"""Kernel calls for layers with one data input and one output: a parameter table, one call and optional scratch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ferrule.backends.contribution import KERNELS, Contribution
from ferrule.backends.firmware import Blob, FieldValue, LoweredOp, LoweringContext, parameter_table
from ferrule.dom import (
    Aggregate,
    Block,
    Call,
    Declare,
    Evaluate,
    Expression,
    Field,
    Float,
    Identifier,
    Integer,
    Statement,
)
from ferrule.graph import TensorInfo
from ferrule.memory.request import Overlap
from ferrule.operators.activation import Activation
from ferrule.operators.fixed_point import activation_range
from ferrule.operators.window import Window

_LARGEST_FLOAT32 = float(np.finfo(np.float32).max)


def kernel_call(
    context: LoweringContext,
    kernel: str,
    *,
    header: str,
    table: str | None = None,
    scratch_bytes: int = 0,
    scratch_alignment: int = 4,
    extra_blobs: tuple[Blob, ...] = (),
    overlaps: tuple[Overlap, ...] = (),
    contribution: Contribution | None = None,
    **fields: FieldValue,
) -> LoweredOp:
    """Return the call ferrule_<kernel>(parameters, input, output[, scratch]).

    `fields` are the members of `struct ferrule_<table>`; the default of `table` is `<kernel>_params`. `extra_blobs` are
    the blobs to which nested members refer. `contribution` has the kernel's C; the default is the kernel's source among
    those that Ferrule ships. The output overlaps the input only as `overlaps` permit.
    """
    return table_call(
        context,
        kernel,
        fields,
        header=header,
        table=table or f"{kernel}_params",
        scratch_bytes=scratch_bytes,
        scratch_alignment=scratch_alignment,
        extra_blobs=extra_blobs,
        overlaps=overlaps,
        contribution=contribution,
    )


def table_call(
    context: LoweringContext,
    kernel: str,
    fields: Mapping[str, FieldValue],
    *,
    header: str,
    table: str,
    scratch_bytes: int = 0,
    scratch_alignment: int = 4,
    extra_blobs: tuple[Blob, ...] = (),
    overlaps: tuple[Overlap, ...] = (),
    contribution: Contribution | None = None,
    local: bool = False,
) -> LoweredOp:
    """Return the same call as `kernel_call`, with the members in a mapping.

    With `local`, members may point to tensors: then the table is a local variable, which is made for each call.
    """
    parameters, pointer = parameter_table(context, f"ferrule_{table}", **fields)
    blobs = [*extra_blobs, *(value for value in fields.values() if isinstance(value, Blob))]
    if context.is_constant(0):
        data = context.blob("input", np.asarray(context.constant(0)))
        blobs.append(data)
        origin: Expression = Identifier(data.name)
    else:
        origin = context.input_pointer(0)
    arguments: tuple[Expression, ...] = (pointer, origin, context.output_pointer())
    if scratch_bytes:
        arguments = (*arguments, context.scratch)
    call: Statement = Evaluate(Call(Identifier(f"ferrule_{kernel}"), arguments))
    if local:
        call = Block((Declare(parameters.name, parameters.type, parameters.value), call))
    return LoweredOp(
        kernel=kernel,
        statements=(call,),
        declarations=() if local else (parameters,),
        blobs=tuple(blobs),
        scratch_bytes=scratch_bytes,
        scratch_alignment=scratch_alignment,
        overlaps=overlaps,
        headers=(f"ferrule/kernels/{header}.h",),
        contributions=(contribution or KERNELS.part(kernel),),
    )


def window_value(window: Window, image: TensorInfo, output: TensorInfo) -> Expression:
    """Return the initial value of a `struct ferrule_window`."""
    batches, input_h, input_w, input_c = image.shape
    values = {
        "batches": batches,
        "input_h": input_h,
        "input_w": input_w,
        "input_c": input_c,
        "output_h": output.shape[1],
        "output_w": output.shape[2],
        "kernel_h": window.height,
        "kernel_w": window.width,
        "stride_h": window.stride_h,
        "stride_w": window.stride_w,
        "dilation_h": window.dilation_h,
        "dilation_w": window.dilation_w,
        "pad_top": window.padding.top,
        "pad_left": window.padding.left,
    }
    return Aggregate(tuple(Field(Integer(value), name) for name, value in values.items()))


def output_value(info: TensorInfo, activation: Activation) -> Expression:
    """Return the initial value of a `struct ferrule_output_s8`."""
    low, high = activation_range(activation, info)
    values = {"zero_point": info.zero_point, "low": low, "high": high}
    return Aggregate(tuple(Field(Integer(value), name) for name, value in values.items()))


def float_limits(activation: Activation) -> tuple[Float, Float]:
    """Return the lower and upper limit of float32 values; a missing limit is the largest finite number."""
    low, high = activation.limits
    return (
        Float(-_LARGEST_FLOAT32 if low is None else low),
        Float(_LARGEST_FLOAT32 if high is None else high),
    )
