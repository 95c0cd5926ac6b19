# SPDX-License-Identifier: Apache-2.0
"""Calls of kernels: a parameter table, and one call with pointers to the tensors and to scratch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, field, replace
from typing import TypeAlias, TypeVar

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.contribution import KERNELS, Contribution
from ferrule.backends.cpu_acc.lowering.overlap import elementwise_overlaps, replaced_overlaps
from ferrule.backends.firmware import (
    Blob,
    FieldValue,
    LoweredOp,
    LoweringContext,
    numbers,
    parameter_table,
    struct_value,
)
from ferrule.dom import (
    Aggregate,
    ArrayData,
    ArrayType,
    Block,
    Cast,
    Const,
    Declare,
    Evaluate,
    Expression,
    Identifier,
    Pointer,
    Scalar,
    Statement,
    Variable,
    call_of,
    elements,
)
from ferrule.errors import FerruleError, UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, Rounding, TensorInfo
from ferrule.memory.request import Overlap
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.fixed_point import activation_range
from ferrule.operators.arithmetic.window import Window
from ferrule.operators.elementwise.binary import float_limits

SUFFIXES: Mapping[DataType, str] = {
    DataType.FLOAT16: "f16",
    DataType.FLOAT32: "f32",
    DataType.INT8: "s8",
    DataType.INT16: "s16",
    DataType.INT32: "s32",
    DataType.INT64: "s64",
    DataType.UINT8: "u8",
    DataType.UINT32: "u32",
    DataType.UINT64: "u64",
    DataType.BOOL: "bool",
}
"""The names of element types in the names of kernels."""
RULE_KERNELS: Mapping[Rounding, str] = {Rounding.TFLM: "", Rounding.SINGLE: "single_", Rounding.ONNX: "onnx_"}
"""The part of an int8 kernel's name that tells its rule."""
D = TypeVar("D", bound=Descriptor)
Lowering: TypeAlias = Callable[[LoweringContext], LoweredOp]
"""Returns the context's layer as C."""
Member: TypeAlias = "FieldValue | Array | Mapping[str, Member] | Sequence[Mapping[str, Member]]"
"""A member of a parameter table: a constant array that is named after it, a struct or an array of structs, too."""


@frozen(eq=False, kw_only=False)
class KernelCall:
    """The call ferrule_<kernel>(parameters, inputs..., outputs...[, scratch][, further...])."""

    kernel: str
    header: str
    """As in an #include."""
    fields: Mapping[str, Member]
    """The members of `struct ferrule_<table>`."""
    _: KW_ONLY
    more: Sequence[Mapping[str, Member]] = ()
    """The members of further tables, for kernels that take an array of them."""
    table: str = ""
    """The default is `<kernel>_params`."""
    title: str = ""
    """The name in reports, by default `kernel`."""
    inputs: Sequence[int] = (0,)
    """The positions of the inputs that the kernel takes."""
    source: str = ""
    """The kernel's own source, if it does not have the kernel's name."""
    sources: tuple[str, ...] = ()
    """Sources that the kernel needs beside its own, among those that Ferrule ships."""
    contribution: Contribution | None = None
    """The kernel's C; the default is its source among those that Ferrule ships, with `sources`."""
    overlaps: tuple[Overlap, ...] = ()
    """The outputs overlap the inputs only as these and `replaced` permit."""
    replaced: Mapping[int, int] = field(default_factory=dict)
    """Maps inputs to outputs: the kernel writes each element of the output after it has read that of the same index."""
    scratch_bytes: int = 0
    scratch_alignment: int = 4
    further: tuple[Expression, ...] = ()
    bytes_as: Scalar | None = None
    """The type that the kernel has for uint8 elements, if it is another."""
    ruled: bool = False
    """Whether `kernel` is the part of an int8 kernel's name before the layer's rule; the table has no rule."""
    local: bool = False
    """Whether members may point to tensors: then the table is a local variable, which is made for each call."""

    def lowered(self, context: LoweringContext) -> LoweredOp:
        """Return the layer as this call; UnsupportedError if there is no such kernel."""
        if self.ruled:
            rule = context.layer.rounding
            return replace(
                self,
                kernel=f"{self.kernel}_{RULE_KERNELS[rule]}s8",
                table=self.table or f"{self.kernel}_s8_params",
                sources=(*self.sources, *rule_sources(rule)),
                ruled=False,
            ).lowered(context)
        try:
            contribution = self.contribution or KERNELS.part(self.source or self.kernel, *self.sources)
        except FerruleError as error:
            raise UnsupportedError(f"layer '{context.layer.name}': there is no kernel {self.kernel}") from error
        blobs: dict[str, Blob] = {}
        parameters, pointer = self._parameters(context, blobs)
        arguments: list[Expression] = []
        for index in self.inputs:
            place = input_place(context, index, blobs, "input" if self.inputs == (0,) else "")
            arguments.append(self._cast(place, context.input(index), is_input=True))
        for index, output in enumerate(context.operands.outputs):
            arguments.append(self._cast(context.output_pointer(index), output, is_input=False))
        if self.scratch_bytes:
            arguments.append(context.scratch)
        call: Statement = Evaluate(call_of(f"ferrule_{self.kernel}", pointer, *arguments, *self.further))
        if self.local:
            call = Block((Declare(parameters.name, parameters.type, parameters.value), call))
        return LoweredOp(
            kernel=self.title or self.kernel,
            statements=(call,),
            declarations=() if self.local else (parameters,),
            blobs=tuple(blobs.values()),
            scratch_bytes=self.scratch_bytes,
            scratch_alignment=self.scratch_alignment,
            overlaps=(*self.overlaps, *replaced_overlaps(context, self.replaced)),
            headers=(self.header,),
            contributions=(contribution,),
        )

    def _parameters(self, context: LoweringContext, blobs: dict[str, Blob]) -> tuple[Variable, Expression]:
        """Return the parameter table, or an array of tables, and a pointer to it; `blobs` gets the constant arrays."""
        struct = f"ferrule_{self.table or f'{self.kernel}_params'}"
        variable, pointer = parameter_table(context, struct, **_members(context, self.fields, blobs))
        if not self.more:
            return variable, pointer
        further = (
            struct_value(_members(replace(context, prefix=context.symbol(f"part{number}")), fields, blobs))
            for number, fields in enumerate(self.more, 1)
        )
        assert variable.value is not None, "it is a table"
        tables = elements((variable.value, *further))
        array = Variable(variable.name, ArrayType(variable.type, len(self.more) + 1), value=tables)
        return array, Identifier(array.name)

    def elementwise(self, context: LoweringContext) -> LoweredOp:
        """Return the layer as this call of a kernel that reads each element before it writes that of the same index.

        It does not read the element again, so that the output may overlap the input.
        """
        return replace(self, overlaps=elementwise_overlaps(context)).lowered(context)

    def _cast(self, pointer: Expression, info: TensorInfo, *, is_input: bool) -> Expression:
        if self.bytes_as is None or info.dtype is not DataType.UINT8:
            return pointer
        return Cast(Pointer(Const(self.bytes_as) if is_input else self.bytes_as), pointer)


def input_place(context: LoweringContext, index: int, blobs: dict[str, Blob], name: str = "") -> Expression:
    """Return a pointer to an input's elements; a constant gets into `blobs`, by the name of its array.

    `name` names the array, by default after the input's position.
    """
    if not context.is_constant(index):
        return context.input_pointer(index)
    blob = context.blob(name or f"input_{index}", bytes_for_c(np.asarray(context.constant(index))))
    blobs[blob.name] = blob
    return Identifier(blob.name)


def _members(
    context: LoweringContext, fields: Mapping[str, Member], blobs: dict[str, Blob]
) -> Mapping[str, FieldValue]:
    """Return the members of a table as values; `blobs` gets the constant arrays, those of structs first."""
    nested: list[Blob] = []
    own: list[Blob] = []
    values = {
        name: _value(context, name, member, nested if isinstance(member, Mapping) else own)
        for name, member in fields.items()
    }
    blobs.update((blob.name, blob) for blob in (*nested, *own))
    return values


def _value(context: LoweringContext, name: str, member: Member, blobs: list[Blob]) -> FieldValue:
    """Return a member as a value; `blobs` gets the constant arrays to which it points."""
    if isinstance(member, Mapping):
        return _struct(context, member, blobs)
    if isinstance(member, np.ndarray):
        member = context.blob(name, bytes_for_c(member))
    if isinstance(member, Blob):
        blobs.append(member)
    elif isinstance(member, Sequence):
        return elements(_struct(context, each, blobs) for each in member)
    return member


def _struct(context: LoweringContext, members: Mapping[str, Member], blobs: list[Blob]) -> Aggregate:
    return struct_value({name: _value(context, name, member, blobs) for name, member in members.items()})


def rule_sources(rule: Rounding) -> tuple[str, ...]:
    """Return the sources that int8 kernels of a rule need besides their own."""
    return () if rule is Rounding.TFLM else ("requantize_once",)


def together(ops: Sequence[LoweredOp]) -> LoweredOp:
    """Return a lowering that only has what all of some need: memory, declarations, constant arrays and sources."""
    blobs = {blob.name: blob for op in ops for blob in op.blobs}
    return LoweredOp(
        kernel="",
        declarations=tuple(each for op in ops for each in op.declarations),
        blobs=tuple(blobs.values()),
        scratch_bytes=max((op.scratch_bytes for op in ops), default=0),
        scratch_alignment=max((op.scratch_alignment for op in ops), default=1),
        headers=tuple(dict.fromkeys(each for op in ops for each in op.headers)),
        contributions=tuple(each for op in ops for each in op.contributions),
    )


def window_fields(window: Window, image: TensorInfo, output: TensorInfo) -> Mapping[str, int]:
    """Return the members of a `struct ferrule_window`."""
    batches, input_h, input_w, input_c = image.shape
    return {
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


def output_fields(info: TensorInfo, activation: Activation) -> Mapping[str, int]:
    """Return the members of a `struct ferrule_output_s8`."""
    low, high = activation_range(activation, info)
    return {"zero_point": info.zero_point, "low": low, "high": high}


def limit_fields(info: TensorInfo, activation: Activation) -> Mapping[str, float]:
    """Return the limits of an output's values, as members of a parameter table."""
    low, high = float_limits(activation) if info.dtype.is_float else activation_range(activation, info)
    return {"low": low, "high": high}


def kernel_of(context: LoweringContext) -> str:
    """Return the kernel that is named after the layer's type and that of its first input."""
    return f"{context.layer.type.lower()}_{SUFFIXES[context.source.dtype]}"


def descriptor_of(context: LoweringContext, kind: type[D]) -> D:
    """Return the layer's descriptor; UnsupportedError if it is of another kind."""
    descriptor = context.layer.descriptor
    if not isinstance(descriptor, kind):
        raise wrong_descriptor(context)
    return descriptor


def wrong_descriptor(context: LoweringContext) -> UnsupportedError:
    """Return the error of a layer whose descriptor is of another kind than its type has."""
    return UnsupportedError(f"layer '{context.layer.name}' has a {type(context.layer.descriptor).__name__}")


def bytes_for_c(data: Array) -> Array:
    """Return a constant's data in a type that generated arrays can have; bool becomes uint8."""
    return data.view(np.uint8) if data.dtype == np.bool_ else data


def int32s(values: Sequence[int]) -> ArrayData:
    """Return the value of an array member of type int32_t."""
    return numbers(np.array(values, np.int32))
