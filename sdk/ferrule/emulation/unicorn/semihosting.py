# SPDX-License-Identifier: Apache-2.0
"""Semihosting: the calls to the host that a firmware makes by a breakpoint instruction.

Operations and their blocks are those of Arm's "Semihosting for AArch32 and AArch64", release 2023Q3. Only text and the
end of the program are carried out; a firmware from elsewhere must not reach the host's files.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from ferrule.emulation.crash import EngineError, ExitError
from ferrule.emulation.unicorn.guest import Guest

WRITE_CHARACTER, WRITE_TEXT, EXIT, EXIT_EXTENDED = 0x03, 0x04, 0x18, 0x20
APPLICATION_EXIT = 0x2_0026
"""ADP_Stopped_ApplicationExit: the reason of a program that has ended as it should."""
MOST_TEXT_BYTES = 4096


def perform(guest: Guest, say: Callable[[bytes], None]) -> None:
    """Carry out the call at pc and continue after it; `say` takes the text that the firmware prints.

    Raises:
        ExitError: the firmware has ended itself.
        EngineError: the breakpoint is no such call, the call would reach the host, or its arguments are not in
            memory.
    """
    form, pc = guest.semihosting, guest.register("pc")
    before, code = len(form.before), form.before + form.call
    if guest.read_memory(pc - before, len(code)) != code:
        raise EngineError(f"the firmware has reached a breakpoint instruction ({form.breakpoint})")
    operation, argument = guest.register(form.operation), guest.register(form.argument)
    if operation == WRITE_CHARACTER:
        say(_bytes(guest, argument, 1))
    elif operation == WRITE_TEXT:
        say(_text(guest, argument))
    elif operation == EXIT:
        raise ExitError(0 if argument == APPLICATION_EXIT else 1)
    elif operation == EXIT_EXTENDED:
        reason, status = struct.unpack("<II", _bytes(guest, argument, 8))
        raise ExitError(status if reason == APPLICATION_EXIT else 1)
    else:
        raise EngineError(
            f"the firmware makes the semihosting call {operation:#04x}, which is not carried out",
            hint="SYS_WRITEC, SYS_WRITE0, SYS_EXIT and SYS_EXIT_EXTENDED are; the host's files are out of reach",
        )
    guest.set_register("pc", pc + len(form.call))


def _text(guest: Guest, address: int) -> bytes:
    data = guest.read_memory(address, MOST_TEXT_BYTES)
    if b"\0" not in data:
        raise EngineError(f"the text at {address:#010x} of a semihosting call has no end within {MOST_TEXT_BYTES} B")
    return data[: data.index(b"\0")]


def _bytes(guest: Guest, address: int, size_bytes: int) -> bytes:
    data = guest.read_memory(address, size_bytes)
    if len(data) != size_bytes:
        raise EngineError(f"the argument of a semihosting call is at {address:#010x}, where the board has no memory")
    return data
