# SPDX-License-Identifier: Apache-2.0
"""The registers of Woofles."""

from __future__ import annotations

from enum import IntEnum

from ferrule.devices import Access, Field, Register, RegisterTable

ID = 0x4C464F57
"""Value of the register ID: the bytes "WOFL" in memory."""
VERSION = 1


class ErrorCode(IntEnum):
    """The error that stopped Woofles, in STATUS.CODE."""

    NONE = 0
    COMMAND = 1
    """The checksum of a command is wrong, its operation unknown, or a reserved word not zero."""
    SHAPE = 2
    """The sizes of a command are out of range or do not match."""
    BUS = 3
    """A memory access failed; ERROR_ADDRESS contains its address."""
    QUEUE = 4
    """QUEUE_BASE, QUEUE_LENGTH or QUEUE_HEAD is invalid, or one of the first two was written during a command."""


TABLE = RegisterTable(
    name="woofles",
    registers=(
        Register("ID", 0x00, access=Access.READ_ONLY, reset=ID, doc="identification: the bytes WOFL in memory"),
        Register(
            "VERSION",
            0x04,
            access=Access.READ_ONLY,
            reset=VERSION,
            doc="version of the registers and the commands",
        ),
        Register(
            "CONTROL",
            0x08,
            fields=(
                Field("ENABLE", 0, doc="execute the commands in the queue"),
                Field("IRQ_ENABLE", 1, doc="raise the interrupt line while INTERRUPT is not zero"),
                Field("RESET", 2, doc="writing 1 stops everything and resets all registers; reads as zero"),
            ),
            doc="control bits",
        ),
        Register(
            "STATUS",
            0x0C,
            access=Access.READ_ONLY,
            fields=(
                Field("BUSY", 0, doc="a command is being executed or is waiting"),
                Field("DONE", 1, doc="the queue has become empty since the last doorbell"),
                Field("ERROR", 2, doc="an error stopped the device; only a reset restarts it"),
                Field("CODE", 8, width=8, doc="code of the error"),
            ),
            doc="status bits",
        ),
        Register(
            "INTERRUPT",
            0x10,
            access=Access.CLEAR_BY_ONE,
            fields=(
                Field("DONE", 0, doc="the queue has become empty"),
                Field("ERROR", 1, doc="an error stopped the device"),
            ),
            doc="reasons of the interrupt",
        ),
        Register("QUEUE_BASE", 0x14, doc="address of the command ring, a multiple of 4"),
        Register("QUEUE_LENGTH", 0x18, doc="capacity of the ring in commands, 1 to 256"),
        Register("QUEUE_HEAD", 0x1C, doc="index after the last command written; writing it is the doorbell"),
        Register("QUEUE_TAIL", 0x20, access=Access.READ_ONLY, doc="index of the next command to execute"),
        Register("COMPLETED", 0x24, access=Access.READ_ONLY, doc="number of commands executed since the reset"),
        Register("SEQUENCE", 0x28, access=Access.READ_ONLY, doc="sequence number of the last command executed"),
        Register("ERROR_ADDRESS", 0x2C, access=Access.READ_ONLY, doc="address of the bus error"),
    ),
    size_bytes=0x1000,
)
