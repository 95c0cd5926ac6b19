# SPDX-License-Identifier: Apache-2.0
"""The registers of Woofles."""

from __future__ import annotations

from enum import IntEnum

from ferrule.devices import Access, Field, Register, RegisterTable

ID = 0x4C464F57
"""What the register ID reads: "WOFL" as bytes in memory."""
VERSION = 1


class ErrorCode(IntEnum):
    """Why Woofles stopped, in STATUS.CODE."""

    NONE = 0
    COMMAND = 1
    """A command whose checksum is wrong, or with an unknown operation."""
    SHAPE = 2
    """A command whose sizes make no sense together."""
    BUS = 3
    """Memory refused an access; ERROR_ADDRESS has where."""
    QUEUE = 4
    """QUEUE_BASE, QUEUE_LENGTH or QUEUE_HEAD makes no sense, or was written while it was busy."""


TABLE = RegisterTable(
    name="woofles",
    registers=(
        Register(name="ID", offset=0x00, access=Access.READ_ONLY, reset=ID, doc="says that this is Woofles"),
        Register(name="VERSION", offset=0x04, access=Access.READ_ONLY, reset=VERSION, doc="of registers and commands"),
        Register(
            name="CONTROL",
            offset=0x08,
            fields=(
                Field(name="ENABLE", bit=0, doc="take commands from the queue"),
                Field(name="IRQ_ENABLE", bit=1, doc="raise the interrupt line while INTERRUPT is not zero"),
                Field(name="RESET", bit=2, doc="a one stops everything and resets all registers; reads as zero"),
            ),
            doc="what it does",
        ),
        Register(
            name="STATUS",
            offset=0x0C,
            access=Access.READ_ONLY,
            fields=(
                Field(name="BUSY", bit=0, doc="a command is being executed, or waits"),
                Field(name="DONE", bit=1, doc="the queue became empty since it was last written"),
                Field(name="ERROR", bit=2, doc="it stopped; only a reset helps"),
                Field(name="CODE", bit=8, width=8, doc="why it stopped"),
            ),
            doc="how it is",
        ),
        Register(
            name="INTERRUPT",
            offset=0x10,
            access=Access.CLEAR_BY_ONE,
            fields=(
                Field(name="DONE", bit=0, doc="the queue became empty"),
                Field(name="ERROR", bit=1, doc="it stopped"),
            ),
            doc="why it raises the interrupt line",
        ),
        Register(name="QUEUE_BASE", offset=0x14, doc="address of the command ring, a multiple of 4"),
        Register(name="QUEUE_LENGTH", offset=0x18, doc="commands that the ring holds, 1 to 256"),
        Register(
            name="QUEUE_HEAD", offset=0x1C, doc="index behind the last command written; writing it is the doorbell"
        ),
        Register(name="QUEUE_TAIL", offset=0x20, access=Access.READ_ONLY, doc="index of the next command to execute"),
        Register(name="COMPLETED", offset=0x24, access=Access.READ_ONLY, doc="commands executed since the reset"),
        Register(name="SEQUENCE", offset=0x28, access=Access.READ_ONLY, doc="of the command executed last"),
        Register(name="ERROR_ADDRESS", offset=0x2C, access=Access.READ_ONLY, doc="where a bus error was"),
    ),
    size_bytes=0x1000,
)
