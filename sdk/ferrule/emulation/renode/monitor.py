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
_COMMAND = re.compile(
    rb"\xff(?:(?P<byte>\xff)|[\xfb-\xfe].|\xfa.*?\xff\xf0|[^\xfa-\xff])|(?P<incomplete>\xff.*)", re.DOTALL
)
"""A command: an escaped byte, one with an option, a subnegotiation up to its end, or one of two bytes."""


class Telnet:
    """Removes telnet commands (RFC 854) from a stream of bytes that arrives in arbitrary pieces."""

    def __init__(self) -> None:
        self._pending = b""

    def decode(self, data: bytes) -> bytes:
        """Return the bytes that do not belong to commands; an incomplete command is kept for the next piece."""
        data, self._pending = self._pending + data, b""
        return _COMMAND.sub(self._plain, data)

    def _plain(self, command: re.Match[bytes]) -> bytes:
        self._pending = command["incomplete"] or b""
        return command["byte"] or b""


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
