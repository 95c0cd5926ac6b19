# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a command stream, and with the memory that it names."""

from __future__ import annotations

from ferrule.errors import FerruleError


class StreamError(FerruleError):
    """A command stream is malformed; `word_offset` counts 32-bit words from the first command."""

    def __init__(
        self, message: str, *, word_offset: int | None = None, opcode: int | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
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

    def __init__(self, message: str, *, word_offset: int | None = None, opcode: int | None = None) -> None:
        super().__init__(
            message,
            word_offset=word_offset,
            opcode=opcode,
            hint="the model computes what Vela emits: compile the network with the version of Vela that Ferrule names",
        )


class NpuBusError(FerruleError):
    """The NPU accessed memory where none is; `access` names what it accessed, such as "IFM"."""

    def __init__(
        self, *, region: int, offset: int, size_bytes: int, reason: str, writable: bool = False, access: str = ""
    ) -> None:
        verb = "write" if writable else "read"
        subject = f"{access}: " if access else ""
        super().__init__(
            f"{subject}can't {verb} {size_bytes} bytes at offset {offset:#x} of region {region}: {reason}",
            hint="the regions are: 0 weights and constants, 1 scratch, 2 fast scratch, as the stream was compiled",
        )
        self.region = region
        self.offset = offset
        self.size_bytes = size_bytes
        self.reason = reason
        self.writable = writable
        self.access = access

    def named(self, access: str) -> NpuBusError:
        """Return the error with the name of what was accessed."""
        return NpuBusError(
            region=self.region,
            offset=self.offset,
            size_bytes=self.size_bytes,
            reason=self.reason,
            writable=self.writable,
            access=access,
        )
