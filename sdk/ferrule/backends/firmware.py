# SPDX-License-Identifier: Apache-2.0
"""The firmware face of a backend: the interface through which layers are lowered to C.

The code generator uses backends through this interface alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any, Protocol, runtime_checkable

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.conforming import (
    ALIGNMENT,
    IDENTIFIER,
    LAST_ADDRESS,
    SHORT_NAME,
    UINT32,
    at_least,
    between,
    named_as,
)
from ferrule.backends.contribution import Contribution
from ferrule.backends.device import Device
from ferrule.backends.target import Price, Target
from ferrule.devices import DeviceModel, SerialModel
from ferrule.dom import (
    AddressOf,
    Aggregate,
    ArrayData,
    ArrayType,
    Boolean,
    Call,
    Const,
    Declaration,
    Expression,
    Field,
    Float,
    Identifier,
    Index,
    Integer,
    Null,
    Scalar,
    Statement,
    StructType,
    Variable,
)
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Graph, Layer, TensorInfo
from ferrule.memory.request import Overlap as Overlap  # noqa: PLC0414 - backends import it from here
from ferrule.operators.operator import Operands
from ferrule.timing.planned import KernelWork

SCALARS: Mapping[DataType, Scalar] = {
    DataType.FLOAT32: Scalar.FLOAT32,
    DataType.INT8: Scalar.INT8,
    DataType.INT16: Scalar.INT16,
    DataType.INT32: Scalar.INT32,
    DataType.INT64: Scalar.INT64,
    DataType.UINT8: Scalar.UINT8,
    DataType.UINT32: Scalar.UINT32,
    DataType.UINT64: Scalar.UINT64,
    DataType.BOOL: Scalar.BOOL,
}
"""The scalar type of a tensor's elements in generated code."""


@frozen(eq=False)
class Blob:
    """A constant array that a lowered operator needs, such as packed weights."""

    name: str
    """The C symbol; it must be unique in the model and therefore starts with `LoweringContext.prefix`."""
    data: Array
    """Elements of a type in `SCALARS` other than bool."""
    alignment: int = 4
    """Bytes."""


@frozen
class KernelCosts:
    """What a kernel would take for a layer."""

    instructions: Annotated[int, at_least(0)]
    """Estimate for one inference."""
    weight_bytes: Annotated[int, at_least(0)]
    """Flash of the weights and of the tables that grow with the layer."""
    scratch_bytes: Annotated[int, at_least(0)]
    code: str = ""
    """The name of the kernel's code, which all layers with the same name share; empty if it is not counted."""
    code_bytes: Annotated[int, at_least(0)] = 0
    """Flash of this code, about."""
    cycles: Annotated[int | None, at_least(0)] = None
    """Planned for one inference, if these and not instructions are to be few (`Target.clocked`)."""

    def at(self, price: Price, spare_bytes: float = math.inf, codes: Collection[str] = ()) -> float:
        """Return instructions and bytes together in instructions; the first bytes of scratch and `codes` are free.

        Cycles stand for the instructions if they are stated.
        """
        work = self.instructions if self.cycles is None else self.cycles
        flash = self.weight_bytes + (0 if self.code in codes else self.code_bytes)
        above = max(self.scratch_bytes - spare_bytes, 0)
        return work + price.flash * flash + (price.ram * above if above else 0)


@frozen
class ConsideredKernel:
    """A kernel that a lowering considered for a layer."""

    kernel: str
    reason: str
    """Why it was chosen or not."""
    chosen: bool = False
    costs: KernelCosts | None = None
    """None if the kernel cannot run the layer."""


@frozen
class Scratch:
    """Workspace besides `LoweredOp.scratch_bytes`, in a memory that the operator names, such as a fast one."""

    name: Annotated[str, named_as("a part of a C identifier, such as fast", prefix="_")]
    """A part of C names, such as fast; different for each of an operator."""
    size_bytes: Annotated[int, between(1, LAST_ADDRESS)]
    memory: str = ""
    """The name of a memory of the board, as in board.toml, that the core and the operator's device reach; empty for
    that of the other scratch."""
    alignment: Annotated[int, ALIGNMENT] = 8
    """Bytes."""


@frozen
class PlacedTensor:
    """An input or output that a program compiled ahead of time expects at a fixed place in its operator's scratch.

    An input is there when the operator starts, and an output when it has ended. The operator uses no other pointer to
    the tensor. The planner puts the tensor there without a copy if it can; otherwise the core copies it.
    """

    tensor: str
    offset: int
    """Bytes from the start of the scratch; the tensor ends inside it. Outputs do not overlap, and neither do inputs."""
    preserved: bool = False
    """Whether the operator leaves the bytes of an input as they were; otherwise, it may overwrite them, by scratch or
    by an output. An input that other operators read later is then copied."""


@frozen
class LoweredOp:
    """A layer lowered to C: the statements that run it, and everything that they need."""

    kernel: Annotated[str, SHORT_NAME]
    """A short name for reports, such as conv2d_s8."""
    statements: tuple[Statement, ...] = ()
    """Placed in the executor's scope; they use the expressions from the lowering context."""
    declarations: tuple[Declaration, ...] = ()
    """Parameter tables and generated functions, internal to the executor's source."""
    blobs: tuple[Blob, ...] = ()
    scratch_bytes: Annotated[int, UINT32] = 0
    """Workspace needed only while this operator runs; `LoweringContext.scratch` points to it."""
    scratch_alignment: Annotated[int, ALIGNMENT] = 8
    placed: tuple[PlacedTensor, ...] = ()
    """The inputs and outputs that the operator expects inside its scratch."""
    scratches: tuple[Scratch, ...] = ()
    """More scratch, also needed only while this operator runs; `LoweringContext.scratch_of` points to it."""
    overlaps: tuple[Overlap, ...] = ()
    """How far an output may overlap an input whose last reader is this operator."""
    view_of: str | None = None
    """An input whose storage the only output shares unchanged; there are no statements then. None if there is none."""
    feed: Call | None = None
    """A call that takes rows of the layer's only input, an input of the network, before the layer runs; the executor
    appends the arguments `const int8_t *rows`, `uint32_t first` and `uint32_t count`, and the call returns an int32_t.
    The input then has no place in the workspace: it is NULL, or in the caller's own memory, and `status` takes its rows
    from there. None if the input is needed as a whole."""
    status: Expression | None = None
    """A call, made after the statements, that returns an int32_t; any value except FERRULE_OK fails the run."""
    start: Expression | None = None
    """A call that may be made instead of `status`: it only begins the operator, by one ferrule_device_submit(), and
    returns at once. The executor then collects the result with ferrule_device_finish(). None if the device can only be
    waited for; without an effect if `DeviceDriver.depth` is 0."""
    cycles: Annotated[int | None, at_least(0)] = None
    """An estimate of the time that the operator takes, in cycles of the core; None to estimate it from its shapes. It
    influences the order of operators in a model with devices that work beside the core; a report notes a device that
    took several times as long. It changes no result."""
    timeout_us: Annotated[int | None, between(0, LAST_ADDRESS - 1)] = None
    """The limit of the wait for an operator that `start` began; None for that of the device."""
    headers: tuple[str, ...] = ()
    """Headers to include, written as in an #include, such as ferrule/kernels/conv2d.h."""
    contributions: tuple[Contribution, ...] = ()
    """The C sources that are called and the headers that are included, such as `KERNELS.part("conv2d_s8")`."""
    considered: tuple[ConsideredKernel, ...] = ()
    """The kernels among which the lowering chose, for `ferrule inspect --kernels`; empty if there was one."""
    works: tuple[KernelWork, ...] = ()
    """What kernels do for it in one inference, for planned times; empty if only `kernel` runs, and once."""
    bound: Annotated[int | None, at_least(1)] = None
    """Instructions that the best kernels known take at least for such a layer; None if none are known. A report marks a
    layer that takes much more, and says why from `considered`."""

    def planned_works(self, graph: Graph, layer: Layer, kernel: str = "") -> tuple[KernelWork, ...]:
        """Return what kernels on the core do for its layer in one inference; `kernel` replaces the name."""
        if self.works:
            return self.works
        costs = next((each.costs for each in self.considered if each.chosen), None)
        tensors = map(graph.tensor, (*layer.present_inputs, *layer.outputs))
        work = KernelWork(
            kernel=kernel or self.kernel,
            instructions=None if costs is None else costs.instructions,
            elements=max((each.info.elements for each in tensors if not each.is_constant), default=0),
            weight_bytes=sum(blob.data.nbytes for blob in self.blobs) if costs is None else costs.weight_bytes,
        )
        return (work,)


@frozen
class LoweringContext:
    """The information that a firmware target gets for lowering one layer."""

    graph: Graph
    layer: Layer
    target: Target
    """The device that runs the layer, with its binding; also the core, the memories and the user's options."""
    prefix: str
    """The prefix of this layer's C symbols, such as kws_conv_2d_0."""
    offset_prefix: str = "layer"
    """The prefix of the names of this layer's offsets, such as conv_2d_0."""
    pointers: Mapping[str, Expression] = field(repr=False)
    """Typed pointers to the elements, by tensor, for tensors in the core's memory that are not constants; pointers to
    the layer's inputs are read-only."""
    scratch: Expression = field(default=Identifier("scratch"))
    """A void pointer to the operator's scratch; valid if LoweredOp.scratch_bytes > 0. For a device that has its own
    memory, it is the byte offset of the scratch in that memory."""
    offsets: Mapping[str, Expression] = field(default_factory=dict, repr=False)
    """Byte offsets, by tensor, of the tensors in the memory of the device that runs the layer."""
    spare_bytes: int = 0
    """Bytes of scratch that probably do not raise the peak of the workspace: the most bytes of tensors and scratch that
    any layer needs at once, minus those of tensors that this layer needs."""
    codes: frozenset[str] = frozenset()
    """The kernels' code (`KernelCosts.code`) that other layers probably need as well."""
    memo: dict[object, Any] = field(default_factory=dict, repr=False, compare=False)
    """What the backend found about the layer when it was asked for the costs, for itself to read when it lowers it."""
    bands: int = 1
    """How often one inference runs the layer, which then is a band of a larger one."""
    resource_handle: Expression = field(default=Null())
    """The device that runs the layer; null on the core."""
    arenas: Mapping[str, Expression] = field(default_factory=dict, repr=False)
    """The first byte of the workspace's part in each memory that the core and the layer's device reach, by the name of
    the memory; "" for the one with the layer's scratch. Empty for a device that has its own memory."""

    @property
    def operands(self) -> Operands:
        """Shapes, types and quantization of the layer's inputs and outputs."""
        return Operands.of(self.graph, self.layer)

    def input(self, index: int) -> TensorInfo:
        """Return shape, type and quantization of an input that must be present."""
        return self.operands.input(index)

    @property
    def source(self) -> TensorInfo:
        """Shape, type and quantization of the first input, which must be present."""
        return self.operands.source

    @property
    def output(self) -> TensorInfo:
        """Shape, type and quantization of the first output."""
        return self.operands.output

    def constant(self, index: int) -> Array | None:
        """Return the data of an input that must be a constant; None if the input is absent.

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
        """Return whether an input is a constant."""
        name = self.layer.inputs[index]
        return name is not None and self.graph.tensor(name).is_constant

    def pointer(self, tensor: str) -> Expression:
        """Return a typed pointer to a tensor's elements; for a constant, the lowering must add a `Blob` instead.

        Raises:
            UnsupportedError: the tensor lies in a device's own memory.
        """
        if tensor in self.offsets:
            raise UnsupportedError(
                f"layer '{self.layer.name}': tensor '{tensor}' lies in the device's own memory, "
                "where it has an offset, no pointer"
            )
        return self.pointers[tensor]

    def device_offset(self, tensor: str) -> Expression:
        """Return the byte offset of a tensor in the memory of the device that runs the layer.

        Raises:
            UnsupportedError: the tensor lies in the core's memory.
        """
        if tensor not in self.offsets:
            raise UnsupportedError(f"layer '{self.layer.name}': tensor '{tensor}' lies in the core's memory")
        return self.offsets[tensor]

    def scratch_of(self, scratch: Scratch) -> Expression:
        """Return a void pointer to scratch that the lowered layer has in `LoweredOp.scratches`.

        Raises:
            UnsupportedError: the board has no such memory, or the core or the device does not reach it.
        """
        arena = self.arenas.get(scratch.memory)
        if arena is None:
            known = ", ".join(name for name in self.arenas if name) or "none"
            raise UnsupportedError(
                f"layer '{self.layer.name}': scratch '{scratch.name}' is wanted in "
                f"{f'memory {scratch.memory!r}' if scratch.memory else 'the memory of the core'}, expected a memory "
                f"that the core and {self.target.device.name} reach: {known}"
            )
        return AddressOf(Index(arena, Identifier(scratch_offset(self.offset_prefix, scratch.name))))

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
        """Return a C symbol for this layer; it is unique in the model if `suffix` is unique in the layer."""
        return f"{self.prefix}_{suffix}"

    def blob(self, suffix: str, data: Array, alignment: int = 4) -> Blob:
        """Return a constant array for this layer; statements refer to it by `Identifier(blob.name)`."""
        return Blob(name=self.symbol(suffix), data=data, alignment=alignment)


FieldValue = Expression | Blob | int | float | bool | None


def parameter_table(context: LoweringContext, struct: str, **fields: FieldValue) -> tuple[Variable, Expression]:
    """Return a constant `struct <struct>` for the layer and a pointer to it.

    Python numbers become literals (a float becomes float32), None becomes the null pointer, and a Blob its array.
    """
    variable = Variable(context.symbol("params"), Const(StructType(struct)), value=struct_value(fields))
    return variable, AddressOf(Identifier(variable.name))


def struct_value(fields: Mapping[str, FieldValue]) -> Aggregate:
    """Return the initial value of a struct, given its members as for `parameter_table`."""
    return Aggregate(tuple(Field(_expression(value), name) for name, value in fields.items()))


def numbers(values: Array) -> ArrayData:
    """Return the initial value of a small array member, such as the strides in a parameter table."""
    return ArrayData(np.ascontiguousarray(values))


def blob_variable(blob: Blob) -> Variable:
    """Return the constant array that holds a blob."""
    scalar = SCALARS[DataType(blob.data.dtype.name)]
    return Variable(
        blob.name,
        ArrayType(Const(scalar), int(blob.data.size)),
        value=ArrayData(blob.data),
        alignment=max(blob.alignment, blob.data.dtype.itemsize),
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


def scratch_offset(symbol: str, scratch: str = "") -> str:
    """Return the name of the enumerator for the offset of a layer's scratch; `scratch` is the name of its `Scratch`."""
    return f"{symbol}_SCRATCH{'_' if scratch else ''}{scratch}".upper()


class FirmwareTarget(Protocol):
    """Lowers a backend's layers to C."""

    def lower(self, context: LoweringContext) -> LoweredOp:
        """Return the context's layer as C; UnsupportedError, with the reason, if it cannot be lowered."""
        ...


@frozen(eq=False)
class Wire:
    """A driver's serial line: the platform provides a `ferrule_transport` over one of the board's UARTs.

    The transport is named `<device>_transport`; the driver's context fields point to it.
    """

    uart: str | None = None
    """The UART's name in the platform description; None until a board is chosen."""
    baud: Annotated[int, at_least(1)] = 115_200
    """Bits per second."""
    model: Callable[[int | None], SerialModel] | None = None
    """Makes the model of the device at the other end of the line on an emulated board; None if there is no model.

    The argument is the seed of the model's random choices; with None, every run differs."""


@frozen
class Reach:
    """Memory of a driver that its device accesses as a bus master, such as a ring of commands."""

    name: str
    """For messages, such as ring."""
    offset_bytes: int = 0
    """From the start of the storage."""
    size_bytes: int = 0
    """0 for all up to the end of the storage."""
    storage: str = "context"
    """The end of the storage's symbol, `<device>_<storage>`: the context, or one of `context_declarations`."""
    writable: bool = False
    """Whether the device writes there, too."""


@frozen(eq=False)
class DeviceDriver:
    """The C driver of one device: the objects that a program includes, creates and binds for it."""

    driver: Annotated[str, IDENTIFIER]
    """The symbol of the `const struct ferrule_driver`."""
    header: str
    """The header that declares the driver, the context and all other names in its declarations; written as in an
    #include."""
    context: Annotated[str, IDENTIFIER]
    """The tag of the context structure; each device has its own context."""
    context_fields: tuple[tuple[str, FieldValue], ...] = ()
    """The context's initial value for this device, by member; zero if empty."""
    context_declarations: tuple[Declaration, ...] = ()
    """Storage that the context points to, such as an array; all names start with the device's name."""
    contributions: tuple[Contribution, ...] = ()
    """The driver's C sources and headers."""
    memory_bytes: Annotated[int, UINT32] = 0
    """Size of the device's own memory, which only its operators and copies access; 0 if it uses the core's memory."""
    alignment: Annotated[int, ALIGNMENT] = 16
    """Alignment of the tensors in that memory, in bytes."""
    tensor_alignment: Annotated[int, ALIGNMENT] = 1
    """Alignment that the device needs, in bytes, of the tensors in the core's memory that it reads or writes: its own
    rule, beside the alignment of their elements. Without an effect if the device has its own memory."""
    transfer_alignment: Annotated[int, ALIGNMENT] = 1
    """Alignment, in bytes, of the address of each transfer that the device makes as a bus master."""
    reach: tuple[Reach, ...] = (Reach(name="all"),)
    """The parts of the driver's memory that the device accesses; by default, it may read the whole context, and writes
    nothing there."""
    depth: Annotated[int, UINT32] = 0
    """Commands that the device may have begun and not collected, as `depth` of its `struct ferrule_driver` says; 0 if
    it only works while the core waits."""
    copies_beside: bool = False
    """Whether the driver also begins copies (`submit_copy_to` and `submit_copy_from`) for the device to make."""
    activation_lead: Annotated[int, UINT32] = 0
    """Number of operators by which the activation precedes the device's first one; for devices that start slowly."""
    base: int | None = None
    """Address of the device's registers; None if it has none. A number in the context that equals it is the address: on
    a platform with a devicetree, the context takes it from there."""
    window_bytes: int = 0x1000
    """Size of the window of the registers, from `base` on; no other device may lie in it."""
    base_member: Annotated[str, named_as("the C identifier of a member of the context", optional=True)] = ""
    """The context's member of type uintptr_t for that address, in which a program may store another one; empty if the
    driver has none."""
    interrupt: Annotated[int | None, at_least(0)] = None
    """Number of the device's interrupt; None if the driver does not use it."""
    handler: str = ""
    """The interrupt handler, called with the context; required if `interrupt` is given. It returns a bool: false if the
    interrupt would recur at once and must therefore be masked."""
    power: str = ""
    """The symbol of a `const struct ferrule_bare_metal_power` that `header` declares: the driver's own power and clock
    code, for projects without an operating system; empty if there is none. The user of a project may state another."""
    statistics: bool = False
    """Whether the driver has counts of its own (`statistics` of its `struct ferrule_driver`), which reports then show,
    from silicon, too."""
    model: Callable[[], DeviceModel] | None = None
    """Makes the device model that an emulated board places at `base`; None if none is needed."""
    estimated: bool = False
    """Whether the model's time is an estimate of that of the real device, as reports then say."""
    wire: Wire | None = None
    """The serial line to the device; None if the device is not behind a serial line."""


def address_fields(driver: DeviceDriver) -> tuple[str, ...]:
    """Return the members of a driver's context whose initial value is the address of the device's registers."""
    if not driver.base:  # a 0 may mean anything
        return ()
    fields = ((member, _expression(value)) for member, value in driver.context_fields)
    return tuple(member for member, value in fields if isinstance(value, Integer) and value.value == driver.base)


def device_declarations(name: str, driver: DeviceDriver, address: Expression | None = None) -> tuple[Declaration, ...]:
    """Return the storage that a program needs for a device: the declarations of its context, and `<name>_context`.

    `address` is written in place of the number of the registers' address.
    """
    replaced = {} if address is None else dict.fromkeys(address_fields(driver), address)
    fields = tuple(Field(replaced.get(member, _expression(value)), member) for member, value in driver.context_fields)
    context = Variable(f"{name}_context", StructType(driver.context), value=Aggregate(fields) if fields else None)
    return (*driver.context_declarations, context)


@frozen(eq=False)
class Socket:
    """An address and an interrupt on a board's bus where an additional device can be placed."""

    address: int
    interrupt: int
    """Line of the interrupt controller, numbered from 0."""
    size_bytes: int = 0x1000
    """The largest window of registers that fits."""


@runtime_checkable
class PricedTarget(FirmwareTarget, Protocol):
    """The firmware face of a backend with several ways to run some layers, which differ in their scratch."""

    def costs(self, context: LoweringContext) -> Sequence[KernelCosts]:
        """Return what each way to run the context's layer would take, before any layer is lowered; empty if unknown.

        The code generator compares the costs of all layers, and tells `lower` what costs nothing: scratch by
        `LoweringContext.spare_bytes`, and code by `codes`. The context is the same otherwise.
        """
        ...


@runtime_checkable
class DeviceTarget(FirmwareTarget, Protocol):
    """The firmware face of a backend whose layers run on devices through the device API (`ferrule/device.h`).

    The operators receive the device as `LoweringContext.resource_handle`, activated and open.
    """

    def driver(self, device: Device) -> DeviceDriver:
        """Return the driver of a device; FerruleError if the device's binding is invalid."""
        ...


@runtime_checkable
class PluggableTarget(DeviceTarget, Protocol):
    """The firmware face of devices with registers on the board's bus, which can be placed in a socket of the board."""

    def plugged(self, device: Device, socket: Socket) -> Device:
        """Return the device placed in `socket`; values that its binding leaves out are taken from the socket."""
        ...


@runtime_checkable
class WiredTarget(DeviceTarget, Protocol):
    """The firmware face of devices behind a serial line, which can be connected to any free UART of the board."""

    def wired(self, device: Device, uart: str) -> Device:
        """Return the device connected to `uart`, unless its binding names another UART."""
        ...
