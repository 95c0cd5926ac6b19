# SPDX-License-Identifier: Apache-2.0
"""Builds the functions of a model's header that convert real numbers to inputs, and outputs to real numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ferrule.backends.firmware import SCALARS
from ferrule.dom import (
    Block,
    Const,
    Constant,
    Declaration,
    Enumeration,
    Enumerator,
    Evaluate,
    Float,
    Function,
    Identifier,
    Linkage,
    Parameter,
    Pointer,
    Scalar,
    call_of,
)
from ferrule.graph import DataType, TensorInfo
from ferrule.rendering import one_line

HEADER = "ferrule/quantize.h"
"""The header with the arithmetic."""
_SUFFIXES: Mapping[DataType, str] = {
    DataType.INT8: "s8",
    DataType.UINT8: "u8",
    DataType.INT16: "s16",
    DataType.INT32: "s32",
}


def conversions(prefix: str, ends: Iterable[tuple[str, str, TensorInfo]]) -> Iterator[Declaration]:
    """Yield the constants and functions of each "input" and "output" with a scale; the others are real numbers.

    `prefix` is that of the model's names, and `ends` has the kind of each tensor, its name in C and the tensor.
    """
    found = [_conversion(prefix, kind, member, info) for kind, member, info in ends if is_converted(info)]
    if found:
        yield Enumeration(
            tuple(zero_point for zero_point, _, _ in found),
            doc="The zero points of quantised inputs and outputs: the elements that stand for 0.0.",
        )
    for _, scale, function in found:
        yield scale
        yield function


def _conversion(prefix: str, kind: str, member: str, info: TensorInfo) -> tuple[Enumerator, Constant, Function]:
    """Return the constants with a tensor's zero point and scale, and the function that converts its elements."""
    constant, name, is_input = f"{prefix}_{kind}_{member}".upper(), f"'{one_line(info.name)}'", kind == "input"
    zero_point = Enumerator(f"{constant}_ZERO_POINT", info.zero_point, doc=f"Of {kind} {name}.")
    scale = Constant(
        f"{constant}_SCALE",
        Scalar.FLOAT32,
        value=Float(info.scale),
        doc=f"The real number that one step of {kind} {name} stands for.",
    )
    suffix = _SUFFIXES[info.dtype]
    given, made = ("real", "stored") if is_input else ("stored", "real")
    types = {"real": Scalar.FLOAT32, "stored": SCALARS[info.dtype]}
    words = (given, made, "count", zero_point.name, scale.name)
    function = Function(
        f"{prefix}_{'' if is_input else 'de'}quantize_{member}",
        Scalar.VOID,
        parameters=(
            Parameter(given, Pointer(Const(types[given]))),
            Parameter(made, Pointer(types[made])),
            Parameter("count", Scalar.SIZE),
        ),
        body=Block(
            (
                Evaluate(
                    call_of(
                        f"ferrule_real_to_{suffix}" if is_input else f"ferrule_{suffix}_to_real",
                        *map(Identifier, words),
                    )
                ),
            )
        ),
        linkage=Linkage.INLINE,
        doc=f"Convert `count` real numbers to elements of input {name}: halves are rounded away from zero, "
        "what is beyond the type becomes its limit, and NaN the zero point. Any context."
        if is_input
        else f"Convert `count` elements of output {name} to the real numbers that they stand for. Any context.",
    )
    return zero_point, scale, function


def is_converted(info: TensorInfo) -> bool:
    """Return whether the header converts between real numbers and the elements of an input or output."""
    return info.quantization is not None and not info.quantization.per_channel and info.dtype in _SUFFIXES
