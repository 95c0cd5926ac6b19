# SPDX-License-Identifier: Apache-2.0
"""Text on a UART: what the firmware prints, what it is told, and the wait for a pattern."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from contextlib import suppress

from ferrule.emulation.crash import EngineError, ExitError
from ferrule.emulation.engine import Session
from ferrule.errors import FerruleError

TIMEOUT_S = 10.0
"""The default of the time that a firmware has, in seconds of its board."""
WALL_S = 120.0
"""The default of the time that an engine has for it, in seconds in which it works or sleeps."""
PIECE_S = 0.05
"""Longest time of the engine between two looks at the instructions that an engine counts."""
CHUNK_BYTES = 4096
TAIL_LINES = 20
"""The last lines of a console that an error quotes."""
MOST_CHARACTERS = 1 << 24
"""The longest text that a console keeps; a firmware that prints without an end loses the oldest half."""


class ExpectationError(EngineError):
    """A firmware did not print what was expected; the message has its last lines and, if known, its registers."""


class Console:
    """The text of one UART of a running firmware, for use by one thread."""

    def __init__(self, session: Session, clock_hz: int, name: str = "console") -> None:
        self.name = name
        self._session = session
        self._clock_hz = clock_hz
        self._channel = session.channel(name)
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._at = 0
        self.text = ""
        """Everything that the firmware has printed so far and that has been received; \\r\\n are as they were sent."""
        self.exit_status: int | None = None
        """The status with which the firmware has ended itself by semihosting; None while it runs."""

    def send(self, data: str | bytes) -> None:
        """Send text (as UTF-8) or bytes to the firmware, without a line end of its own."""
        self._channel.write(data.encode() if isinstance(data, str) else data)

    def send_line(self, text: str = "", end: str = "\n") -> None:
        """Send a line to the firmware."""
        self.send(text + end)

    def expect(
        self, pattern: str | re.Pattern[str], timeout_s: float = TIMEOUT_S, *, wall_s: float = WALL_S
    ) -> re.Match[str]:
        """Run the firmware until it has printed text that the regular expression matches, and return the match.

        The search begins after the last match, so that a text is matched once; `^` and `$` are those of lines. The
        firmware has `timeout_s` seconds of its board: its instructions at the board's clock where the engine counts
        them (unicorn, renode), and elsewhere the time of the engine: on qemu the processor time and sleep of its
        process, on serial the host's. The engine has `wall_s` seconds of that time.

        Raises:
            ExpectationError: the text did not come, or cannot come, since the firmware sleeps until it gets input.
            EngineError: the firmware faulted.
            FerruleError: the pattern is no regular expression, or a time is not positive.
        """
        wanted = _compiled(pattern)
        found, why = self._search(wanted, timeout_s, wall_s)
        if found is None:
            message = (
                f"{self.name}: /{wanted.pattern}/ did not come: {why}; since the last match the firmware has printed"
            )
            lines = [message, self._tail()]
            with suppress(EngineError):  # a firmware that has ended has no state, and the text says more
                report = self._session.crash_report("the firmware was stopped")
                lines += [] if report is None else [str(report)]
            raise ExpectationError("\n".join(lines))
        return found

    def read_until_quiet(self, timeout_s: float = TIMEOUT_S, *, wall_s: float = WALL_S) -> str:
        """Run the firmware until it sleeps without input or its time is over; return the text after the last match."""
        self._search(None, timeout_s, wall_s)
        found, self._at = self.text[self._at :], len(self.text)
        return found

    def follow(
        self,
        say: Callable[[str], None],
        timeout_s: float = TIMEOUT_S,
        *,
        wall_s: float = WALL_S,
        until: str | re.Pattern[str] | None = None,
    ) -> tuple[str, bool]:
        """Run the firmware until a pattern matches or there is no more to come, and pass its text on in pieces.

        Return the reason for the end in words, and whether the pattern matched; otherwise as `expect`.
        """
        wanted = None if until is None else _compiled(until)
        found, why = self._search(wanted, timeout_s, wall_s, say)
        if found is not None:
            return f"the firmware has printed {found[0]!r}", True
        missing = "" if wanted is None else f"/{wanted.pattern}/ did not come: "
        return f"{self.name}: {missing}{why}", False

    def _search(
        self,
        wanted: re.Pattern[str] | None,
        timeout_s: float,
        wall_s: float,
        say: Callable[[str], None] | None = None,
    ) -> tuple[re.Match[str] | None, str]:
        """Run until a pattern matches or there is no more to come; return the match, or the reason for the end."""
        why = ""
        for text, end in self._pieces(timeout_s, wall_s):
            why = end
            if say is not None and text:
                say(text)
            found = None if wanted is None else wanted.search(self.text, self._at)
            if found is not None:
                self._at = found.end()
                return found, ""
        return None, why

    def _pieces(self, timeout_s: float, wall_s: float) -> Iterator[tuple[str, str]]:
        """Run in pieces; yield the new text of each, and with the last piece the reason why there is no further one."""
        for name, value in (("timeout_s", timeout_s), ("wall_s", wall_s)):
            if not value > 0:
                raise FerruleError(f"{name} is {value!r}, expected a positive number of seconds")
        first = self._instructions()
        limit = None if first is None else first + int(timeout_s * self._clock_hz)
        host_s = min(timeout_s, wall_s) if limit is None else wall_s
        clock = self._channel.clock
        ends = clock() + host_s
        yield "", ""  # what is here already
        before, why = first, ""
        while not why:
            left_s = max(0.0, ends - clock())
            wait_s = left_s if limit is None else min(left_s, PIECE_S)
            asked = clock()
            text = self._receive(self._read(wait_s))
            early = clock() < asked + wait_s
            now = self._instructions()
            if self.exit_status is not None:
                why = f"it has ended with status {self.exit_status}"
            elif not text and early and now is not None and now == before:
                why = "it sleeps until it gets input"
            elif limit is not None and first is not None and now is not None and now >= limit:
                why = f"{timeout_s:g} s of the board ({now - first:,} instructions) have passed"
            elif clock() >= ends:
                why = f"{host_s:g} s of the engine have passed"
            before = now
            yield text, why

    def _read(self, wait_s: float) -> bytes:
        if self.exit_status is not None:
            return b""
        try:
            return self._channel.read(CHUNK_BYTES, wait_s)
        except ExitError as error:
            self.exit_status = error.status
            return b""
        except EngineError as error:
            error.add_note(f"the last lines of {self.name}:\n{self._tail()}")
            raise

    def _tail(self) -> str:
        lines = self.text[self._at :].splitlines()[-TAIL_LINES:]
        return "\n".join(f"  | {line}" for line in lines) or "  (nothing)"

    def _receive(self, data: bytes) -> str:
        text = self._decoder.decode(data)
        self.text += text
        if len(self.text) > MOST_CHARACTERS:
            dropped = len(self.text) // 2
            self.text, self._at = self.text[dropped:], max(0, self._at - dropped)
        return text

    def _instructions(self) -> int | None:
        counters = self._session.counters()
        return counters.instructions if counters.unit == "instructions" else None


def _compiled(pattern: str | re.Pattern[str]) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.MULTILINE) if isinstance(pattern, str) else pattern
    except re.error as error:
        raise FerruleError(f"{pattern!r} is not a regular expression: {error}") from None
