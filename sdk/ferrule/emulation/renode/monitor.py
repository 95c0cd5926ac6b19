# SPDX-License-Identifier: Apache-2.0
"""Renode's Monitor over telnet (`-P port --plain`).

The Monitor reports errors as plain text: where success matters, use the robot server, whose commands raise errors.
Renode listens on all interfaces: run it in a separate network namespace.
"""

from __future__ import annotations

import re

from ferrule._typing import override
from ferrule.closing import Closing
from ferrule.emulation.renode.errors import RenodeConnectionError
from ferrule.emulation.renode.stream import Stream

_PROMPT = re.compile(r"(?:^|[\r\n])\(([^()\r\n]+)\) \Z")
_MOST_CHARACTERS = 64 << 20


class Telnet:
    """Removes telnet commands from a stream of bytes that arrives in arbitrary pieces."""

    _IAC, _BEGIN, _END = 0xFF, 0xFA, 0xF0
    _WITH_OPTION = range(0xFB, 0xFF)

    def __init__(self) -> None:
        self._pending = b""

    def decode(self, data: bytes) -> bytes:
        """Return the bytes that do not belong to commands; an incomplete command is kept for the next piece."""
        data, self._pending = self._pending + data, b""
        found, at = bytearray(), 0
        while at < len(data):
            if data[at] != self._IAC:
                found.append(data[at])
                at += 1
                continue
            size = self._command_size(data, at)
            if size is None:
                self._pending = data[at:]
                break
            if data[at + 1] == self._IAC:
                found.append(self._IAC)
            at += size
        return bytes(found)

    def _command_size(self, data: bytes, at: int) -> int | None:
        """Return the size in bytes of the command at a position, or None if it is incomplete."""
        if at + 1 >= len(data):
            return None
        if data[at + 1] in self._WITH_OPTION:
            return 3 if at + 2 < len(data) else None
        if data[at + 1] == self._BEGIN:
            end = data.find(bytes([self._IAC, self._END]), at + 2)
            return None if end < 0 else end + 2 - at
        return 2


class Monitor(Closing):
    """A client of the Monitor, for use by one thread."""

    def __init__(self, stream: Stream) -> None:
        """Wait for the first prompt."""
        self._stream = stream
        self._telnet = Telnet()
        self._text = ""
        self.machine: str | None = None
        """Name of the current machine, taken from the prompt; None if there is none."""
        self.banner = self._until_prompt().strip()
        """The text before the first prompt, with Renode's version."""

    @classmethod
    def connect(cls, port: int, host: str = "127.0.0.1", *, timeout_s: float = 60.0) -> Monitor:
        """Connect to a Monitor; RenodeConnectionError if that fails."""
        stream = Stream.connect(host, port, name="Monitor", timeout_s=timeout_s)
        try:
            return cls(stream)
        except BaseException:
            stream.close()
            raise

    def execute(self, command: str) -> str:
        """Execute one command and return its output; an error is returned as text as well."""
        if "\n" in command or "\r" in command:
            raise RenodeConnectionError("a Monitor command is one line", hint="execute a script by 'include @file'")
        self._stream.send(command.encode() + b"\n")
        text = self._until_prompt()
        echo, _, rest = text.partition("\n")
        return (rest if echo.strip() == command.strip() else text).strip()

    def quit(self) -> None:
        """End Renode and close the connection."""
        self._stream.send(b"quit\n")
        while self._stream.read_some():
            pass
        self.close()

    @override
    def close(self) -> None:
        """Close the connection; Renode keeps running."""
        self._stream.close()

    def _until_prompt(self) -> str:
        while (match := _PROMPT.search(self._text)) is None:
            data = self._stream.read_some()
            if not data:
                last = self._text.strip()[-200:]
                raise RenodeConnectionError(f"Monitor: Renode closed the connection before its prompt: {last!r}")
            self._text += self._telnet.decode(data).decode("utf-8", "replace")
            if len(self._text) > _MOST_CHARACTERS:
                raise RenodeConnectionError(f"Monitor: {_MOST_CHARACTERS} characters without a prompt")
        text, self._text = self._text[: match.start()], ""
        self.machine = None if match[1] == "monitor" else match[1]
        return text
