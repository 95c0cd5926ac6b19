# SPDX-License-Identifier: Apache-2.0
"""Builds the functions of a model's header that convert real numbers to inputs, and outputs to real numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ferrule._frozen import frozen
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


@frozen
class Conversion:
    """A quantised input, or output, of a model."""

    prefix: str
    """Of the model's names."""
    member: str
    """The tensor's name in C."""
    info: TensorInfo
    is_input: bool

    @property
    def constant(self) -> str:
        """The prefix of the tensor's constants."""
        return f"{self.prefix}_{self._kind}_{self.member}".upper()

    @property
    def zero_point(self) -> Enumerator:
        """The constant with the tensor's zero point."""
        return Enumerator(f"{self.constant}_ZERO_POINT", self.info.zero_point, doc=f"Of {self._kind} {self._name}.")

    @property
    def scale(self) -> Constant:
        """The constant with the tensor's scale."""
        return Constant(
            name=f"{self.constant}_SCALE",
            type=Scalar.FLOAT32,
            value=Float(self.info.scale),
            doc=f"The real number that one step of {self._kind} {self._name} stands for.",
        )

    @property
    def function(self) -> Function:
        """The function that converts elements of the tensor."""
        stored, suffix = SCALARS[self.info.dtype], _SUFFIXES[self.info.dtype]
        verb = "quantize" if self.is_input else "dequantize"
        given, made = ("real", "stored") if self.is_input else ("stored", "real")
        types = {"real": Scalar.FLOAT32, "stored": stored}
        conversion = f"ferrule_real_to_{suffix}" if self.is_input else f"ferrule_{suffix}_to_real"
        words = (given, made, "count", f"{self.constant}_ZERO_POINT", f"{self.constant}_SCALE")
        return Function(
            name=f"{self.prefix}_{verb}_{self.member}",
            returns=Scalar.VOID,
            parameters=(
                Parameter(given, Pointer(Const(types[given]))),
                Parameter(made, Pointer(types[made])),
                Parameter("count", Scalar.SIZE),
            ),
            body=Block((Evaluate(call_of(conversion, *map(Identifier, words))),)),
            linkage=Linkage.INLINE,
            doc=f"Convert `count` real numbers to elements of input {self._name}: halves are rounded away from zero, "
            "what is beyond the type becomes its limit, and NaN the zero point. Any context."
            if self.is_input
            else f"Convert `count` elements of output {self._name} to the real numbers that they stand for. Any "
            "context.",
        )

    @property
    def _kind(self) -> str:
        return "input" if self.is_input else "output"

    @property
    def _name(self) -> str:
        return f"'{one_line(self.info.name)}'"


def conversions(prefix: str, members: Mapping[str, Sequence[tuple[str, TensorInfo]]]) -> tuple[Conversion, ...]:
    """Return a conversion for each "input" and "output" with a scale, given by C names; the others are real numbers."""
    return tuple(
        Conversion(prefix=prefix, member=member, info=info, is_input=kind == "input")
        for kind, each in members.items()
        for member, info in each
        if is_converted(info)
    )


def is_converted(info: TensorInfo) -> bool:
    """Return whether the header converts between real numbers and the elements of an input or output."""
    return info.quantization is not None and not info.quantization.per_channel and info.dtype in _SUFFIXES


def declarations(found: Sequence[Conversion]) -> Iterator[Declaration]:
    """Yield the constants and functions of a header."""
    if not found:
        return
    yield Enumeration(
        enumerators=tuple(each.zero_point for each in found),
        doc="The zero points of quantised inputs and outputs: the elements that stand for 0.0.",
    )
    for each in found:
        yield each.scale
        yield each.function
