# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a command stream, and with the memory that it names."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ferrule.errors import FerruleError

if TYPE_CHECKING:
    from ferrule.backends.ethos_u.machine import Range


class StreamError(FerruleError):
    """A command stream is malformed; `word_offset` counts 32-bit words from the first command."""

    usual_hint: ClassVar[str | None] = None

    def __init__(
        self, message: str, *, word_offset: int | None = None, opcode: int | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint or self.usual_hint)
        self.word_offset: int | None = None
        self.opcode: int | None = None
        if word_offset is not None:
            self.locate(word_offset, opcode)

    def locate(self, word_offset: int, opcode: int | None, operation: str = "") -> None:
        """State where the error is, unless it is stated already."""
        if self.word_offset is not None:
            return
        self.word_offset, self.opcode = word_offset, opcode
        code = f", opcode {opcode:#05x}" if opcode is not None else ""
        self.at(f"word {word_offset}{code}{f' ({operation})' if operation else ''}")


class UnsupportedModeError(StreamError):
    """A stream asks for a mode that Vela never emits, so that its result is not established."""

    usual_hint = "the model computes what Vela emits: compile the network with the version of Vela that Ferrule names"


class NpuBusError(FerruleError):
    """The NPU accessed memory where none is; `access` names what it accessed, such as "IFM"."""

    def __init__(self, where: Range, reason: str, *, writable: bool = False) -> None:
        verb = "write" if writable else "read"
        super().__init__(
            f"can't {verb} {where.size_bytes} bytes at offset {where.start:#x} of region {where.region}: {reason}",
            hint="the regions are: 0 weights and constants, 1 scratch, 2 fast scratch, as the stream was compiled",
        )
        self.where = where
        self.writable = writable
        self.access = ""

    def name(self, access: str) -> None:
        """Keep the name of the access, and put it in front of the message."""
        self.access = access
        self.at(access)
