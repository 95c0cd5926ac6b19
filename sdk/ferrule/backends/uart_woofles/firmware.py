# SPDX-License-Identifier: Apache-2.0
"""UartWoofles in firmware: each layer becomes a parameter table and one driver call, with tensors as memory offsets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ferrule.backends import woofles
from ferrule.backends.device import BindingNumber, Device, read_binding
from ferrule.backends.firmware import (
    DeviceDriver,
    LoweredOp,
    LoweringContext,
    Wire,
    parameter_table,
)
from ferrule.backends.manifest import read_manifest
from ferrule.backends.uart_woofles.model import UartWooflesModel
from ferrule.backends.woofles.firmware import command_literal, constant_blobs
from ferrule.backends.woofles.model import DEFAULT_TIMING
from ferrule.backends.woofles.translation import Work, translate_in
from ferrule.dom import AddressOf, Call, Expression, Identifier, Integer
from ferrule.errors import FerruleError

FOLDER = Path(__file__).parent
HEADER = "uart_woofles/uart_woofles.h"
DEFAULT_MEMORY_BYTES = 256 * 1024
DEFAULT_STORE_BYTES = 512 * 1024
MAX_STORE_BYTES = 16 * 1024 * 1024
DEFAULT_BAUD = 115_200
DEFAULT_TIMEOUT_MS = 1000
DEFAULT_ATTEMPTS = 5
ALIGNMENT = 16
SLOWEST_CYCLES_PER_MS = 1000
"""Clock, in cycles per millisecond, of the slowest accelerator whose commands end within the driver's patience."""
_COMMAND_HEADERS = tuple(part.part() for part in read_manifest(Path(woofles.__file__).parent).contributions())
_NUMBERS = {
    "memory_bytes": BindingNumber(low=ALIGNMENT, high=MAX_STORE_BYTES, default=DEFAULT_MEMORY_BYTES),
    "store_bytes": BindingNumber(high=MAX_STORE_BYTES, default=DEFAULT_STORE_BYTES),
    "baud": BindingNumber(low=50, high=12_000_000, default=DEFAULT_BAUD),
    "timeout_ms": BindingNumber(low=1, high=60_000, default=DEFAULT_TIMEOUT_MS),
    "attempts": BindingNumber(low=1, high=100, default=DEFAULT_ATTEMPTS),
    "activation_lead": BindingNumber(high=1 << 16, default=0),
    "clock_hz": BindingNumber(high=1_000_000_000, default=0),
}
_TEXTS = {"uart": "the name of a UART of the board"}


class UartWooflesTarget:
    """Lowers layers to commands on the accelerator's memory."""

    def lower(self, context: LoweringContext) -> LoweredOp:
        """Return the call that runs the layer on the accelerator.

        Raises:
            FerruleError: the layer's constants are larger than the device's store.
        """
        work = translate_in(context.graph, context.layer)
        _check_store(context, work)
        blobs = constant_blobs(context, work)
        table, layer = parameter_table(
            context,
            "uart_woofles_layer",
            command=command_literal(work.command),
            weights=blobs["weights"],
            weights_bytes=0 if work.weights is None else int(work.weights.nbytes),
            bias=blobs["bias"],
            multipliers=blobs["multipliers"],
            shifts=blobs["shifts"],
            patience_ms=-(-DEFAULT_TIMING.cycles(work.command) // SLOWEST_CYCLES_PER_MS),
        )
        return LoweredOp(
            kernel=f"uart_woofles_{context.layer.type.lower()}",
            declarations=(table,),
            blobs=tuple(blob for blob in blobs.values() if blob is not None),
            status=Call(Identifier("uart_woofles_execute"), (context.resource_handle, layer, *_places(context, work))),
            headers=(HEADER,),
            contributions=_COMMAND_HEADERS,
        )

    def driver(self, device: Device) -> DeviceDriver:
        """Return the driver for a device.

        The fields of its binding: `uart`, the board's UART that is connected to the accelerator, by default the first
        that is neither link nor console; `baud`; `memory_bytes`, the memory for tensors, and `store_bytes`, the memory
        for constants; `timeout_ms` and `attempts` of each request; `activation_lead`, see `DeviceDriver`; `clock_hz`,
        the clock of the model, by default 0, with which commands take no time.

        Raises:
            FerruleError: the binding has an unknown field, or a value is out of range.
        """
        binding = read_binding(device, _NUMBERS, _TEXTS)
        numbers = binding.numbers
        context = ("memory_bytes", "store_bytes", "timeout_ms", "attempts")
        memory_bytes = numbers["memory_bytes"] + numbers["store_bytes"]
        return DeviceDriver(
            driver="uart_woofles_driver",
            header=HEADER,
            context="uart_woofles",
            context_fields=(
                ("transport", AddressOf(Identifier(f"{device.name}_transport"))),
                *((name, numbers[name]) for name in context),
            ),
            contributions=read_manifest(FOLDER).contributions(),
            memory_bytes=numbers["memory_bytes"],
            alignment=ALIGNMENT,
            activation_lead=numbers["activation_lead"],
            wire=Wire(
                uart=binding.texts.get("uart"),
                baud=numbers["baud"],
                model=lambda seed: UartWooflesModel(memory_bytes=memory_bytes, clock_hz=numbers["clock_hz"], seed=seed),
            ),
        )

    def wired(self, device: Device, uart: str) -> Device:
        """Return the device behind a UART of the board, unless its binding names another."""
        return replace(device, binding={"uart": uart, **device.binding})


def constant_bytes(work: Work) -> int:
    """Return the size of a layer's constants in the accelerator's store, in bytes, as its driver computes it."""
    if work.weights is None:
        return 0
    return -(-int(work.weights.nbytes) // 4) * 4 + 3 * 4 * work.command.output_channels


def _check_store(context: LoweringContext, work: Work) -> None:
    name = context.target.device.name
    store = read_binding(context.target.device, _NUMBERS, _TEXTS).numbers["store_bytes"]
    if constant_bytes(work) > store:
        raise FerruleError(
            f"layer '{context.layer.name}' has {constant_bytes(work)} B of constants, "
            f"the store of device '{name}' holds {store} B",
            hint=f"[devices.{name}] binding = {{ store_bytes = {constant_bytes(work)} }}",
        )


def _places(context: LoweringContext, work: Work) -> tuple[Expression, Expression, Expression]:
    """Return the offsets of the input, the other operand and the output in the accelerator's memory."""
    first, second = (context.layer.inputs[index] for index in (0, 1))
    assert first is not None  # both operands are present, since the layer was translated
    assert second is not None
    other = Integer(0) if work.weights is not None else context.device_offset(second)
    return context.device_offset(first), other, context.device_offset(context.layer.outputs[0])
