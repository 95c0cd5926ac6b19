# SPDX-License-Identifier: Apache-2.0
"""A device with its place in a system."""

from __future__ import annotations

from ferrule._frozen import frozen
from ferrule.devices.registers import RegisterTable


@frozen
class Interrupt:
    """An interrupt of a peripheral."""

    name: str
    number: int
    """Number of the interrupt at the controller, from 0 on."""
    doc: str = ""


@frozen
class Peripheral:
    """A register table at an address of a system."""

    name: str
    """Name of the instance, such as `UART0`; a C identifier."""
    table: RegisterTable
    base: int
    """Address of the register window."""
    interrupts: tuple[Interrupt, ...] = ()
    notes: tuple[str, ...] = ()
    """What a file says about the registers and a table cannot: what the author of a model has to know."""
