# SPDX-License-Identifier: Apache-2.0
"""The firmware face of a backend: how its layers become C.

The code generator knows backends through this module alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from ferrule.backends.contribution import Contribution
from ferrule.backends.device import Device
from ferrule.backends.target import Target
from ferrule.devices import DeviceModel, SerialModel
from ferrule.dom import (
    AddressOf,
    Aggregate,
    ArrayData,
    ArrayType,
    Boolean,
    Const,
    Declaration,
    Expression,
    Field,
    Float,
    Identifier,
    Integer,
    Null,
    Scalar,
    Statement,
    StructType,
    Variable,
)
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Graph, Layer, TensorInfo
from ferrule.memory.request import Overlap
from ferrule.operators.operator import Operands

SCALARS: Mapping[DataType, Scalar] = {
    DataType.FLOAT32: Scalar.FLOAT32,
    DataType.INT8: Scalar.INT8,
    DataType.INT16: Scalar.INT16,
    DataType.INT32: Scalar.INT32,
    DataType.INT64: Scalar.INT64,
    DataType.UINT8: Scalar.UINT8,
    DataType.BOOL: Scalar.BOOL,
}
"""The scalar type of a tensor's elements in generated code."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Blob:
    """A constant array that a lowered operator needs, such as packed weights."""

    name: str
    """The C symbol; unique in the model, so it starts with `LoweringContext.prefix`."""
    data: Array
    """int8, uint8, int16, int32, int64 or float32."""
    alignment: int = 4
    """Bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredOp:
    """A layer as C: the statements that run it, and everything that they need."""

    kernel: str
    """A short name for reports, such as conv2d_s8."""
    statements: tuple[Statement, ...] = ()
    """In the executor's scope; they use the expressions that the context gave."""
    declarations: tuple[Declaration, ...] = ()
    """Parameter tables and generated functions, internal to the executor's source."""
    blobs: tuple[Blob, ...] = ()
    scratch_bytes: int = 0
    """Workspace during this operator alone; `LoweringContext.scratch` points to it."""
    scratch_alignment: int = 8
    overlaps: tuple[Overlap, ...] = ()
    """How far an output may run over an input that dies with the operator."""
    view_of: str | None = None
    """The input whose storage the only output shares, unchanged; then there are no statements."""
    status: Expression | None = None
    """A call, made after the statements, that returns an int32_t: what is not FERRULE_OK fails the run."""
    headers: tuple[str, ...] = ()
    """As they are included, such as ferrule/kernels/conv2d.h."""
    contributions: tuple[Contribution, ...] = ()
    """The C that it calls, and the headers that it includes, such as `KERNELS.part("conv2d_s8")`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweringContext:
    """What a firmware target may ask while it lowers one layer."""

    graph: Graph
    layer: Layer
    target: Target
    """The device that runs the layer, with its binding; the core, the memories and the user's options."""
    prefix: str
    """For C symbols of this layer, such as kws_conv_2d_0."""
    pointers: Mapping[str, Expression] = field(repr=False)
    """A pointer to the elements of each tensor that is no constant and lies in the core's memory, typed; read-only for
    the layer's inputs."""
    scratch: Expression = field(default=Identifier("scratch"))
    """A void pointer to the operator's scratch; valid where LoweredOp.scratch_bytes > 0. For a device with a memory of
    its own it is the offset of the scratch there, in bytes."""
    offsets: Mapping[str, Expression] = field(default_factory=dict, repr=False)
    """By tensor in the memory of the device that runs the layer: its offset there, in bytes."""
    resource_handle: Expression = field(default=Null())
    """The device that runs the layer; null on the core."""

    @property
    def operands(self) -> Operands:
        """What is known of the layer's inputs and outputs."""
        return Operands(inputs=self.graph.input_infos(self.layer), outputs=self.graph.output_infos(self.layer))

    def input(self, index: int) -> TensorInfo:
        """Return what is known of an input that must be there."""
        return self.operands.input(index)

    def constant(self, index: int) -> Array | None:
        """Return the data of an input that must be a constant, None if it is absent.

        Raises:
            UnsupportedError: the tensor is computed at run time.
        """
        name = self.layer.inputs[index] if index < len(self.layer.inputs) else None
        if name is None:
            return None
        data = self.graph.tensor(name).data
        if data is None:
            raise UnsupportedError(
                f"layer '{self.layer.name}' ({self.layer.type}): tensor '{name}' is computed at run time, "
                "expected a constant"
            )
        return data

    def is_constant(self, index: int) -> bool:
        """Whether an input is a constant."""
        name = self.layer.inputs[index]
        return name is not None and self.graph.tensor(name).is_constant

    def pointer(self, tensor: str) -> Expression:
        """Return a typed pointer to a tensor's elements; constants need a `Blob` of the lowering's own.

        Raises:
            UnsupportedError: the tensor lies in the memory of a device.
        """
        if tensor in self.offsets:
            raise UnsupportedError(
                f"layer '{self.layer.name}': tensor '{tensor}' lies in the device's own memory, "
                "where it has an offset, no pointer"
            )
        return self.pointers[tensor]

    def device_offset(self, tensor: str) -> Expression:
        """Return the offset, in bytes, of a tensor in the memory of the device that runs the layer.

        Raises:
            UnsupportedError: the tensor lies in the core's memory.
        """
        if tensor not in self.offsets:
            raise UnsupportedError(f"layer '{self.layer.name}': tensor '{tensor}' lies in the core's memory")
        return self.offsets[tensor]

    def input_pointer(self, index: int) -> Expression:
        """Return the pointer to an input that is not a constant."""
        name = self.layer.inputs[index]
        if name is None:
            raise UnsupportedError(f"layer '{self.layer.name}': input {index} is absent, expected a tensor")
        return self.pointer(name)

    def output_pointer(self, index: int = 0) -> Expression:
        """Return the pointer to an output."""
        return self.pointer(self.layer.outputs[index])

    def symbol(self, suffix: str) -> str:
        """Return a C symbol of this layer, unique in the model when `suffix` is unique in the layer."""
        return f"{self.prefix}_{suffix}"

    def blob(self, suffix: str, data: Array, alignment: int = 4) -> Blob:
        """Return a constant array of this layer; refer to it by `Identifier(blob.name)`."""
        return Blob(name=self.symbol(suffix), data=data, alignment=alignment)


FieldValue = Expression | Blob | int | float | bool | None


def parameter_table(context: LoweringContext, struct: str, **fields: FieldValue) -> tuple[Variable, Expression]:
    """Return a constant `struct <struct>` of the layer and a pointer to it.

    Python numbers become literals (float: float32), None the null pointer, a Blob its array.
    """
    values = tuple(Field(_expression(value), name) for name, value in fields.items())
    variable = Variable(name=context.symbol("params"), type=Const(StructType(struct)), value=Aggregate(values))
    return variable, AddressOf(Identifier(variable.name))


def numbers(values: Array) -> ArrayData:
    """Return a small array member's initial value, such as strides in a parameter table."""
    return ArrayData(np.ascontiguousarray(values))


def blob_variable(blob: Blob) -> Variable:
    """Return the constant array that holds a blob."""
    scalar = SCALARS[DataType(blob.data.dtype.name)]
    return Variable(
        name=blob.name,
        type=ArrayType(Const(scalar), int(blob.data.size)),
        value=ArrayData(blob.data),
        alignment=blob.alignment,
    )


def _expression(value: FieldValue) -> Expression:
    match value:
        case None:
            return Null()
        case Blob():
            return Identifier(value.name)
        case bool():
            return Boolean(value)
        case int():
            return Integer(value)
        case float():
            return Float(value)
        case _:
            return value


class FirmwareTarget(Protocol):
    """How a backend's layers become C."""

    def lower(self, context: LoweringContext) -> LoweredOp:
        """Return the layer of the context as C; UnsupportedError says what it refuses and why."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wire:
    """A serial line that a driver talks over: the platform makes a `ferrule_transport` of one of the board's UARTs.

    It is called `<device>_transport`; the driver's context fields point to it.
    """

    uart: str | None = None
    """The UART, as the platform description calls it; None where no board was asked yet."""
    baud: int = 115_200
    """Bits per second."""
    model: Callable[[int | None], SerialModel] | None = None
    """Makes the model that stands at the other end on an emulated board; None if something else is there.

    Its argument seeds what the model chooses at random, so that runs can be repeated; None: each differs."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeviceDriver:
    """The C driver of one device: what a program includes, creates and binds for it."""

    driver: str
    """The symbol of the `const struct ferrule_driver`."""
    header: str
    """Declares the driver, the context and whatever else its declarations name, as it is included."""
    context: str
    """The tag of the structure that each device has one of."""
    context_fields: tuple[tuple[str, FieldValue], ...] = ()
    """Its initial value for this device; without any it is zero."""
    context_declarations: tuple[Declaration, ...] = ()
    """Storage that the context points to, such as an array; the names start with the device's."""
    contributions: tuple[Contribution, ...] = ()
    """Its C and headers."""
    memory_bytes: int = 0
    """The device's own memory, which only its operators and copies reach; 0: it works on the core's."""
    alignment: int = 16
    """Of the tensors in that memory, in bytes."""
    activation_lead: int = 0
    """Operators before its first one at which the device is activated, for one that is slow to start."""
    base: int | None = None
    """Address of its registers, if it has any."""
    interrupt: int | None = None
    """Number of its interrupt, if the driver waits for it."""
    handler: str = ""
    """The function that the interrupt calls with the context; there is one if `interrupt` is given. It returns a bool:
    false if the interrupt would come back at once, so that it has to be masked."""
    model: Callable[[], DeviceModel] | None = None
    """Makes the model that stands for the device on an emulated board, at `base`; None if it needs none."""
    wire: Wire | None = None
    """How the device is reached, if that is a serial line."""


def device_declarations(name: str, driver: DeviceDriver) -> tuple[Declaration, ...]:
    """Return the storage of a device that a program needs: what its context points to, and `<name>_context`."""
    fields = tuple(Field(_expression(value), member) for member, value in driver.context_fields)
    context = Variable(
        name=f"{name}_context", type=StructType(driver.context), value=Aggregate(fields) if fields else None
    )
    return (*driver.context_declarations, context)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Socket:
    """A place on a board's bus where a device that the board lacks can be put."""

    address: int
    interrupt: int
    """Line of the interrupt controller, counted from 0."""


@runtime_checkable
class DeviceTarget(FirmwareTarget, Protocol):
    """The firmware face of a backend whose layers run on devices behind the device API (`ferrule/device.h`).

    The operators get the device as `LoweringContext.resource_handle`, activated and open.
    """

    def driver(self, device: Device) -> DeviceDriver:
        """Return the driver of a device; FerruleError if its binding makes no sense."""
        ...


@runtime_checkable
class PluggableTarget(DeviceTarget, Protocol):
    """Devices with registers on the board's bus, which can be put where the board has a place for them."""

    def plugged(self, device: Device, socket: Socket) -> Device:
        """Return the device in a socket of the board: what its binding does not say is the socket's."""
        ...


@runtime_checkable
class WiredTarget(DeviceTarget, Protocol):
    """Devices behind a serial line, which can be reached through any UART that the board has to spare."""

    def wired(self, device: Device, uart: str) -> Device:
        """Return the device behind a UART of the board, unless its binding names another."""
        ...
