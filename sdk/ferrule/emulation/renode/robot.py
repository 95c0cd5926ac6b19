# SPDX-License-Identifier: Apache-2.0
"""A client of Renode's robot server: XML-RPC over HTTP, enabled by `--robot-server-port`, without Robot Framework.

Renode listens on all interfaces: run it in a separate network namespace.
"""

from __future__ import annotations

import http.client
import socket
import time
import xmlrpc.client
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from xml.parsers.expat import ExpatError

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.closing import Closing
from ferrule.emulation.renode.errors import RenodeConnectionError, RenodeError

Connector = Callable[[int, float], socket.socket]
"""A function that returns a connection to a port within a time-out in seconds; OSError if that fails."""

IDLE_S = 5.0
"""A connection idle for longer is replaced: Renode closes it after 15 s, and a lost call must not be repeated."""


class KeywordError(RenodeError):
    """A keyword failed; the message is Renode's."""


@frozen
class UartLine:
    """A line that a terminal tester received."""

    line: str
    """The text of the line without non-ASCII bytes."""
    time_ms: float
    """Virtual time in milliseconds."""
    groups: tuple[str, ...] = ()
    """The matched groups of the regular expression."""


class RobotServer(Closing):
    """Runs Renode's keywords; for use by one thread.

    A failing keyword raises KeywordError. A connection that breaks, exceeds the time-out or does not return XML-RPC
    raises RenodeConnectionError.
    """

    def __init__(
        self, port: int, host: str = "127.0.0.1", *, timeout_s: float = 120.0, connector: Connector | None = None
    ) -> None:
        """Create a client without connecting yet; `connector` replaces direct connections to the port."""
        connect = connector or (lambda to, limit: socket.create_connection((host, to), limit))
        self._transport = _Transport(partial(connect, port, timeout_s), timeout_s)
        self._name = f"robot server on {host}:{port}"

    def keywords(self) -> list[str]:
        """Return the names of all keywords."""
        names = self._call("get_keyword_names")
        if not isinstance(names, list):
            raise RenodeConnectionError(f"{self._name}: {type(names).__name__} is not a list of keywords")
        return [str(name) for name in names]

    def run(self, keyword: str, *arguments: str | float | bool) -> object:
        """Run a keyword and return its result, or None if it has none."""
        answer = self._call("run_keyword", keyword, list(arguments))
        if not isinstance(answer, Mapping) or answer.get("status") not in {"PASS", "FAIL"}:
            raise RenodeConnectionError(f"{self._name}: {keyword} is answered without a status")
        if answer["status"] == "FAIL":
            raise KeywordError(_reason(str(answer.get("error", ""))) or f"{keyword} failed without a reason")
        result: object = answer.get("return")
        return result

    def execute(self, command: str) -> str:
        """Execute a Monitor command and return its output, stripped of surrounding white space."""
        return str(self.run("ExecuteCommand", command) or "").strip()

    def script(self, path: str) -> str:
        """Execute a script (.resc) and return its output, stripped."""
        return str(self.run("ExecuteScript", path) or "").strip()

    def reset(self) -> None:
        """Remove all machines."""
        self.run("ResetEmulation")

    def start(self) -> None:
        """Start the emulation; virtual time begins to pass."""
        self.run("StartEmulation")

    def terminal_tester(self, uart: str, timeout_s: float | None = None) -> TerminalTester:
        """Create a tester for a UART such as `sysbus.uart0`; `timeout_s` is its default time-out in virtual time."""
        number = self.run("CreateTerminalTester", uart, *(() if timeout_s is None else (timeout_s,)))
        if not isinstance(number, int):
            raise RenodeConnectionError(f"{self._name}: {number!r} is not the number of a terminal tester")
        return TerminalTester(self, number)

    def stop(self) -> None:
        """End Renode and close the connection."""
        self._call("stop_remote_server")
        self.close()

    @override
    def close(self) -> None:
        """Close the connection; Renode keeps running."""
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
            raise RenodeConnectionError(f"{self._name}: the answer is not XML-RPC: {error}") from None
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


@dataclass
class TerminalTester:
    """Waits for text that a firmware sends on a UART; time-outs are in virtual time, which passes only during waits."""

    _server: RobotServer
    number: int

    def wait_for_line(self, text: str, *, timeout_s: float = 8.0, regex: bool = False) -> UartLine:
        """Wait for a line that contains a text; KeywordError with Renode's report if none arrives in time."""
        return _line(self._server.run("WaitForLineOnUart", text, timeout_s, self.number, regex))

    def wait_for_next_line(self, *, timeout_s: float = 8.0) -> UartLine:
        """Wait for the next line."""
        return _line(self._server.run("WaitForNextLineOnUart", timeout_s, self.number))

    def wait_for_prompt(self, text: str, *, timeout_s: float = 8.0, regex: bool = False) -> UartLine:
        """Wait for a text on a line that is not complete."""
        return _line(self._server.run("WaitForPromptOnUart", text, self.number, timeout_s, regex))

    def write(self, text: str) -> None:
        """Send text to the firmware."""
        self._server.run("WriteToUart", text, self.number)

    def write_line(self, text: str = "") -> None:
        """Send a line to the firmware and wait for its echo."""
        self._server.run("WriteLineToUart", text, self.number)

    def report(self) -> str:
        """Return Renode's report of everything that the tester received and waited for."""
        return str(self._server.run("GetTerminalTesterReport", self.number) or "")


def _line(answer: object) -> UartLine:
    if isinstance(answer, Mapping):
        groups, time_ms = answer.get("Groups"), answer.get("Timestamp", 0.0)
        if isinstance(time_ms, int | float) and isinstance(groups, list | None):
            return UartLine(
                line=str(answer.get("Line", "")),
                time_ms=float(time_ms),
                groups=tuple(str(group) for group in groups or ()),
            )
    raise RenodeConnectionError(f"{answer!r} is not a line of a terminal tester")


def _reason(text: str) -> str:
    """Return Renode's error message without the exception's name."""
    name, separator, rest = text.strip().partition(": ")
    return rest.strip() if separator and name.endswith("Exception") else text.strip()


class _Connection(http.client.HTTPConnection):
    def __init__(self, connect: Callable[[], socket.socket], timeout_s: float) -> None:
        super().__init__("127.0.0.1", timeout=timeout_s)
        self._make = connect

    @override
    def connect(self) -> None:
        self.sock = self._make()
        self.sock.settimeout(self.timeout)


class _Transport(xmlrpc.client.Transport):
    """HTTP with a time-out that never repeats a request, since a command must not run twice."""

    def __init__(self, connect: Callable[[], socket.socket], timeout_s: float) -> None:
        super().__init__(use_builtin_types=True)
        self.timeout_s = timeout_s
        self._connect = connect
        self._open: _Connection | None = None
        self._used = 0.0

    @override
    def make_connection(self, host: object) -> http.client.HTTPConnection:
        if self._open is not None and time.monotonic() - self._used > IDLE_S:
            self.close()
        self._used = time.monotonic()
        if self._open is None:
            self._open = _Connection(self._connect, self.timeout_s)
        return self._open

    def call(self, request: bytes) -> object:
        """Send a request and return the single value of its answer."""
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
