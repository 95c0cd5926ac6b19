# SPDX-License-Identifier: Apache-2.0
"""Renode's robot server: XML-RPC over HTTP, opened by `--robot-server-port`. It needs no Robot Framework.

Renode binds it to all interfaces: keep it in a network namespace of its own.
"""

from __future__ import annotations

import http.client
import socket
import time
import xmlrpc.client
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from xml.parsers.expat import ExpatError

from ferrule._typing import override
from ferrule.closing import Closing
from ferrule.emulation.renode.errors import RenodeConnectionError, RenodeError

Connector = Callable[[int, float], socket.socket]
"""Returns a connection to a port of Renode's, given a time-out in seconds; OSError if there is none."""

IDLE_S = 5.0
"""A connection that was idle for longer is replaced: Renode closes it after 15 s, and a lost call can't be repeated."""


class KeywordError(RenodeError):
    """A keyword failed; the message is Renode's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UartLine:
    """What a terminal tester saw."""

    line: str
    """The text, without bytes that are no ASCII."""
    time_ms: float
    """Virtual time."""
    groups: tuple[str, ...] = ()
    """Of the regular expression."""


class RobotServer(Closing):
    """Renode's keywords; for one thread.

    A keyword that fails raises KeywordError, a connection that breaks, is silent for longer than the time-out or
    answers no XML-RPC RenodeConnectionError.
    """

    def __init__(
        self, port: int, host: str = "127.0.0.1", *, timeout_s: float = 120.0, connector: Connector | None = None
    ) -> None:
        """Nothing is sent yet. `connector` makes the connections where the port can't be reached from here."""
        self._transport = _Transport(connector or (lambda to, limit: socket.create_connection((host, to), limit)))
        self._transport.port = port
        self._transport.timeout_s = timeout_s
        self._name = f"robot server on {host}:{port}"

    def keywords(self) -> list[str]:
        """Return the names of all keywords."""
        names = self._call("get_keyword_names")
        if not isinstance(names, list):
            raise RenodeConnectionError(f"{self._name}: {type(names).__name__} is no list of keywords")
        return [str(name) for name in names]

    def run(self, keyword: str, *arguments: str | float | bool) -> object:
        """Run a keyword and return what it returns; None if that is nothing."""
        answer = self._call("run_keyword", keyword, list(arguments))
        if not isinstance(answer, Mapping) or answer.get("status") not in {"PASS", "FAIL"}:
            raise RenodeConnectionError(f"{self._name}: {keyword} is answered without a status")
        if answer["status"] == "FAIL":
            raise KeywordError(_reason(str(answer.get("error", ""))) or f"{keyword} failed without a reason")
        result: object = answer.get("return")
        return result

    def execute(self, command: str) -> str:
        """Execute a Monitor command and return what it prints, without the white space around it."""
        return str(self.run("ExecuteCommand", command) or "").strip()

    def script(self, path: str) -> str:
        """Execute a script (.resc) and return what it prints."""
        return str(self.run("ExecuteScript", path) or "").strip()

    def reset(self) -> None:
        """Remove all machines."""
        self.run("ResetEmulation")

    def start(self) -> None:
        """Let virtual time pass."""
        self.run("StartEmulation")

    def terminal_tester(self, uart: str, timeout_s: float | None = None) -> TerminalTester:
        """Watch a UART, such as `sysbus.uart0`; `timeout_s` is virtual and the default of its waits."""
        number = self.run("CreateTerminalTester", uart, *(() if timeout_s is None else (timeout_s,)))
        if not isinstance(number, int):
            raise RenodeConnectionError(f"{self._name}: {number!r} is no number of a terminal tester")
        return TerminalTester(self, number)

    def stop(self) -> None:
        """End Renode; it answers first."""
        self._call("stop_remote_server")
        self.close()

    @override
    def close(self) -> None:
        """Close the connection; Renode goes on."""
        self._transport.close()

    def _call(self, method: str, *parameters: object) -> object:
        try:
            request = xmlrpc.client.dumps(parameters, method).encode()  # type: ignore[arg-type]
            answer = self._transport.call(request)
        except xmlrpc.client.Fault as fault:
            raise KeywordError(f"Renode refuses {method}: {fault.faultString}") from None
        except xmlrpc.client.ProtocolError as error:
            self.close()
            raise RenodeConnectionError(f"{self._name}: HTTP {error.errcode} {error.errmsg}") from None
        except (ExpatError, xmlrpc.client.Error, ValueError, TypeError, LookupError, ArithmeticError) as error:
            self.close()
            raise RenodeConnectionError(f"{self._name}: the answer is no XML-RPC: {error}") from None
        except TimeoutError:
            self.close()
            limit = self._transport.timeout_s
            raise RenodeConnectionError(f"{self._name}: no answer to {method} within {limit:g} s") from None
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise RenodeConnectionError(
                f"{self._name}: {str(error) or type(error).__name__}", hint="is Renode running, with this server?"
            ) from None
        return answer


class TerminalTester:
    """Waits for what a firmware says on a UART. Times are virtual: while nobody waits, none passes."""

    def __init__(self, server: RobotServer, number: int) -> None:
        self._server = server
        self.number = number

    def wait_for_line(self, text: str, *, timeout_s: float = 8.0, regex: bool = False) -> UartLine:
        """Wait for a line that has some text in it; KeywordError with Renode's report if none comes."""
        return _line(self._server.run("WaitForLineOnUart", text, timeout_s, self.number, regex))

    def wait_for_next_line(self, *, timeout_s: float = 8.0) -> UartLine:
        """Wait for a line."""
        return _line(self._server.run("WaitForNextLineOnUart", timeout_s, self.number))

    def wait_for_prompt(self, text: str, *, timeout_s: float = 8.0, regex: bool = False) -> UartLine:
        """Wait for text on a line that has not ended."""
        return _line(self._server.run("WaitForPromptOnUart", text, self.number, timeout_s, regex))

    def write(self, text: str) -> None:
        """Send text to the firmware."""
        self._server.run("WriteToUart", text, self.number)

    def write_line(self, text: str = "") -> None:
        """Send a line to the firmware, and wait for its echo."""
        self._server.run("WriteLineToUart", text, self.number)

    def report(self) -> str:
        """Return all that the tester saw and waited for."""
        return str(self._server.run("GetTerminalTesterReport", self.number) or "")


def _line(answer: object) -> UartLine:
    if not isinstance(answer, Mapping):
        raise RenodeConnectionError(f"{answer!r} is no line of a terminal tester")
    groups = answer.get("Groups")
    time_ms = answer.get("Timestamp", 0.0)
    if not isinstance(time_ms, int | float) or not isinstance(groups, list | None):
        raise RenodeConnectionError(f"{answer!r} is no line of a terminal tester")
    return UartLine(
        line=str(answer.get("Line", "")), time_ms=float(time_ms), groups=tuple(str(group) for group in groups or ())
    )


def _reason(text: str) -> str:
    """Return Renode's error without the name of its exception."""
    name, separator, rest = text.strip().partition(": ")
    return rest.strip() if separator and name.endswith("Exception") else text.strip()


class _Connection(http.client.HTTPConnection):
    def __init__(self, connect: Callable[[], socket.socket]) -> None:
        super().__init__("127.0.0.1")
        self._make = connect

    @override
    def connect(self) -> None:
        self.sock = self._make()


class _Transport(xmlrpc.client.Transport):
    """HTTP with a time-out. It repeats no request: a command must not run twice."""

    port = 0
    timeout_s = 120.0

    def __init__(self, connector: Connector) -> None:
        super().__init__(use_builtin_types=True)
        self._connector = connector
        self._open: _Connection | None = None
        self._used = 0.0

    @override
    def make_connection(self, host: object) -> http.client.HTTPConnection:
        if self._open is not None and time.monotonic() - self._used > IDLE_S:
            self.close()
        self._used = time.monotonic()
        if self._open is None:
            self._open = _Connection(self._connect)
        return self._open

    def _connect(self) -> socket.socket:
        connected = self._connector(self.port, self.timeout_s)
        connected.settimeout(self.timeout_s)
        return connected

    def call(self, request: bytes) -> object:
        """Return the one value of the answer."""
        try:
            answer: tuple[object, ...] = self.single_request("127.0.0.1", "/", request)
        finally:
            self._used = time.monotonic()
        if len(answer) != 1:
            raise ValueError(f"it has {len(answer)} values")
        return answer[0]

    @override
    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None
