# SPDX-License-Identifier: Apache-2.0
"""Woofles in firmware: each layer becomes a parameter table and one call of the driver."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np

from ferrule.backends.device import Device, read_binding
from ferrule.backends.firmware import (
    Blob,
    DeviceDriver,
    FieldValue,
    LoweredOp,
    LoweringContext,
    parameter_table,
)
from ferrule.backends.manifest import read_manifest
from ferrule.backends.shared.on_bus import BUS_BINDING, OnBus, base_and_interrupt
from ferrule.backends.woofles.command import Command
from ferrule.backends.woofles.model import DEFAULT_TIMING, WooflesModel
from ferrule.backends.woofles.translation import Work, translate_in
from ferrule.dom import Aggregate, Call, Field, Identifier, Integer, Null, unsigned
from ferrule.graph import Array

FOLDER = Path(__file__).parent
HEADER = "woofles/woofles.h"
RING = 4
"""Places in the driver's ring of commands, one of which stays empty: WOOFLES_RING."""
TIMEOUT_FLOOR_US = 10_000
"""Limit of the wait for the shortest command, in microseconds."""


class WooflesTarget(OnBus):
    """Lowers layers to commands of the accelerator."""

    def lower(self, context: LoweringContext) -> LoweredOp:
        """Return the call that runs the layer on the device."""
        work = translate_in(context.graph, context.layer)
        constants = constant_blobs(context, work)
        table, layer = parameter_table(
            context,
            "woofles_layer",
            command=command_literal(work.command),
            **constants,
            timeout_us=_timeout_us(work.command),
        )
        second = Null() if work.weights is not None else context.input_pointer(1)
        arguments = (context.resource_handle, layer, context.input_pointer(0), second, context.output_pointer())
        return LoweredOp(
            kernel=f"woofles_{context.layer.type.lower()}",
            declarations=(table,),
            blobs=tuple(blob for blob in constants.values() if blob is not None),
            status=Call(Identifier("woofles_execute"), arguments),
            start=Call(Identifier("woofles_start"), arguments),
            cycles=DEFAULT_TIMING.cycles(work.command),
            timeout_us=_timeout_us(work.command),
            headers=(HEADER,),
        )

    def driver(self, device: Device) -> DeviceDriver:
        """Return the driver for a device.

        The fields of its binding: `base`, the address of the registers, and `interrupt`, the interrupt's number, both
        by default those of a free place of the board; `use_interrupt`, 1 to wait for the interrupt instead of polling;
        `activation_lead`, see `DeviceDriver`.

        Raises:
            FerruleError: the binding has an unknown field, or a value is out of range.
        """
        numbers = read_binding(device, BUS_BINDING).numbers
        base, interrupt = base_and_interrupt(device, numbers)
        fields_: list[tuple[str, FieldValue]] = []
        if base is not None:
            fields_.append(("base", unsigned(base)))
        if numbers["use_interrupt"]:
            fields_.append(("use_interrupt", True))
        return DeviceDriver(
            driver="woofles_driver",
            header=HEADER,
            context="woofles",
            context_fields=tuple(fields_),
            contributions=read_manifest(FOLDER).contributions(),
            depth=RING - 1,
            activation_lead=numbers["activation_lead"],
            base=base,
            base_member="base",
            interrupt=interrupt,
            handler="woofles_interrupt",
            model=WooflesModel,
        )


def constant_blobs(context: LoweringContext, work: Work) -> dict[str, Blob | None]:
    """Return the constants of a layer as blobs, by name of the table's member; None for a constant that it lacks."""
    constants: dict[str, Array | None] = {
        "weights": work.weights,
        "bias": work.bias,
        "multipliers": work.multipliers,
        "shifts": work.shifts,
    }
    return {
        name: None if data is None else context.blob(name, data.reshape(-1), 4 if data.dtype == np.int32 else 1)
        for name, data in constants.items()
    }


def command_literal(command: Command) -> Aggregate:
    """Return the C initialiser of a command: its members that are not zero."""
    values = {field.name: getattr(command, field.name) for field in fields(command)}
    return Aggregate(tuple(Field(Integer(value), name) for name, value in values.items() if value))


def _timeout_us(command: Command) -> int:
    """Return the limit of the wait for a command: a floor plus four microseconds per cycle, enough from 1 MHz on."""
    return min(TIMEOUT_FLOOR_US + 4 * DEFAULT_TIMING.cycles(command), (1 << 31) - 1)
