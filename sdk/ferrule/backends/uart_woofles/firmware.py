# SPDX-License-Identifier: Apache-2.0
"""UartWoofles in firmware: a table per layer, and one call of the driver with offsets in the accelerator's memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from ferrule.backends import woofles
from ferrule.backends.device import Device
from ferrule.backends.firmware import (
    Blob,
    DeviceDriver,
    LoweredOp,
    LoweringContext,
    Wire,
    parameter_table,
)
from ferrule.backends.manifest import read_manifest
from ferrule.backends.uart_woofles.model import UartWooflesModel
from ferrule.backends.woofles.command import Command
from ferrule.backends.woofles.model import DEFAULT_TIMING
from ferrule.backends.woofles.translation import Work, translate_in
from ferrule.dom import AddressOf, Aggregate, Call, Expression, Field, Identifier, Integer
from ferrule.errors import FerruleError
from ferrule.graph import Array

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
"""An accelerator of 1 MHz still ends its commands within the driver's patience."""
_COMMAND_HEADERS = tuple(part.part() for part in read_manifest(Path(woofles.__file__).parent).contributions())
_RANGES = {
    "memory_bytes": (ALIGNMENT, MAX_STORE_BYTES),
    "store_bytes": (0, MAX_STORE_BYTES),
    "baud": (50, 12_000_000),
    "timeout_ms": (1, 60_000),
    "attempts": (1, 100),
    "activation_lead": (0, 1 << 16),
    "clock_hz": (0, 1_000_000_000),
}
"""The least and the most of each number that a binding may have."""
_DEFAULTS = {
    "memory_bytes": DEFAULT_MEMORY_BYTES,
    "store_bytes": DEFAULT_STORE_BYTES,
    "baud": DEFAULT_BAUD,
    "timeout_ms": DEFAULT_TIMEOUT_MS,
    "attempts": DEFAULT_ATTEMPTS,
    "activation_lead": 0,
    "clock_hz": 0,
}


class UartWooflesTarget:
    """Lowers layers to commands on the accelerator's memory."""

    def lower(self, context: LoweringContext) -> LoweredOp:
        """Return the call that has the accelerator run the layer.

        Raises:
            FerruleError: the accelerator has too little memory for the layer's constants.
        """
        work = translate_in(context.graph, context.layer)
        _check_store(context, work)
        blobs = {
            name: None if data is None else context.blob(name, data.reshape(-1), 4 if data.dtype == np.int32 else 1)
            for name, data in _constants(work).items()
        }
        table, layer = parameter_table(
            context,
            "uart_woofles_layer",
            command=_command(work.command),
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
            blobs=tuple(blob for blob in blobs.values() if isinstance(blob, Blob)),
            status=Call(Identifier("uart_woofles_execute"), (context.resource_handle, layer, *_places(context, work))),
            headers=(HEADER,),
            contributions=_COMMAND_HEADERS,
        )

    def driver(self, device: Device) -> DeviceDriver:
        """Return the driver for a device.

        Its binding: `uart`, the board's UART that leads to it, by default the first that is neither link nor console;
        `baud`; `memory_bytes`, for tensors, and `store_bytes`, for constants; `timeout_ms` and `attempts` of each
        request; `activation_lead`; `clock_hz` of the model, whose commands then take the time that they take there, and
        by default none.

        Raises:
            FerruleError: the binding has an unknown key, or a value is out of range.
        """
        uart = device.binding.get("uart")
        if uart is not None and not isinstance(uart, str):
            raise FerruleError(f"device '{device.name}': uart is {uart!r}, expected the name of a UART of the board")
        numbers = _numbers(device)
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
            wire=Wire(uart=uart, baud=numbers["baud"], model=_modeller(memory_bytes, numbers["clock_hz"])),
        )

    def wired(self, device: Device, uart: str) -> Device:
        """Return the device behind a UART of the board, unless its binding names another."""
        return replace(device, binding={"uart": uart, **device.binding})


def _modeller(memory_bytes: int, clock_hz: int) -> Callable[[int | None], UartWooflesModel]:
    def model(seed: int | None) -> UartWooflesModel:
        return UartWooflesModel(memory_bytes=memory_bytes, clock_hz=clock_hz, seed=seed)

    return model


def constant_bytes(work: Work) -> int:
    """Return what the constants of a layer take in the accelerator: as its driver counts them."""
    if work.weights is None:
        return 0
    return -(-int(work.weights.nbytes) // 4) * 4 + 3 * 4 * work.command.output_channels


def _check_store(context: LoweringContext, work: Work) -> None:
    name = context.target.device.name
    store = _numbers(context.target.device)["store_bytes"]
    if constant_bytes(work) > store:
        raise FerruleError(
            f"layer '{context.layer.name}' has {constant_bytes(work)} B of constants, "
            f"the store of device '{name}' holds {store} B",
            hint=f"[devices.{name}] binding = {{ store_bytes = {constant_bytes(work)} }}",
        )


def _places(context: LoweringContext, work: Work) -> tuple[Expression, Expression, Expression]:
    """Return where the input, the other operand and the output lie in the accelerator."""
    first, second = (context.layer.inputs[index] for index in (0, 1))
    assert first is not None  # translated, so both operands are there
    assert second is not None
    other = Integer(0) if work.weights is not None else context.device_offset(second)
    return context.device_offset(first), other, context.device_offset(context.layer.outputs[0])


def _constants(work: Work) -> dict[str, Array | None]:
    return {"weights": work.weights, "bias": work.bias, "multipliers": work.multipliers, "shifts": work.shifts}


def _command(command: Command) -> Aggregate:
    """Return the command's members that are not zero."""
    values = {field.name: getattr(command, field.name) for field in fields(command)}
    return Aggregate(tuple(Field(Integer(value), name) for name, value in values.items() if value))


def _numbers(device: Device) -> dict[str, int]:
    """Return the binding's numbers, and the defaults of those that it lacks."""
    for key in device.binding:
        if key not in {"uart", *_RANGES}:
            raise FerruleError(
                f"device '{device.name}': UartWoofles has no '{key}'",
                hint=f"its binding may have uart, {', '.join(_RANGES)}",
            )
    return {name: _number(device, name) for name in _RANGES}


def _number(device: Device, name: str) -> int:
    low, high = _RANGES[name]
    value = device.binding.get(name, _DEFAULTS[name])
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise FerruleError(f"device '{device.name}': {name} is {value!r}, expected a whole number of {low} to {high}")
    return value
