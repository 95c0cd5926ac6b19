# SPDX-License-Identifier: Apache-2.0
"""The robot server's client against recorded messages of Renode 1.16.1, and against misbehaving servers."""

from __future__ import annotations

import contextlib
import socket
import threading
import xmlrpc.client
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rpc_replay import RpcReplay, recorded

from ferrule.emulation.renode import KeywordError, RenodeConnectionError, RenodeError, RobotServer, UartLine, robot


def test_a_session_with_renode_1_16_1() -> None:
    replay = RpcReplay(recorded())
    server = RobotServer(replay.port)
    assert "WaitForLineOnUart" in server.keywords()
    server.reset()
    assert server.execute("version").startswith("Renode, version 1.16.1")
    for command in ('mach create "m"', "machine LoadPlatformDescription @board.repl", "sysbus LoadELF @hello.elf"):
        assert server.execute(command) == ""
    with pytest.raises(KeywordError, match=r"^Could not execute command 'nosuch command': No such command or device"):
        server.execute("nosuch command")
    assert int(server.execute("sysbus ReadDoubleWord 0x0"), 0) == 0x2040_0000
    with pytest.raises(KeywordError, match=r"Could not find file 'nosuch\.repl'") as caught:
        server.execute("machine LoadPlatformDescription @nosuch.repl")
    assert "Antmicro" not in str(caught.value)  # Renode's traceback is of no use to the user
    tester = server.terminal_tester("sysbus.uart0")
    assert tester.number == 0
    server.start()
    assert tester.wait_for_line("hello from", timeout_s=1.0) == UartLine(line="hello from cortex-m", time_ms=0.0)
    found = tester.wait_for_line(r"^line (\w+)", timeout_s=1.0, regex=True)
    assert found.line == "line two"
    assert "two" in found.groups
    with pytest.raises(KeywordError, match="Terminal tester failed!"):
        tester.wait_for_line("never printed", timeout_s=0.05)
    server.run("WriteLineToUart", "ping")
    line = server.run("WaitForLineOnUart", "ok")
    assert isinstance(line, dict)
    assert line["Timestamp"] == 50.1
    with pytest.raises(KeywordError, match='Keyword "NoSuchKeyword" not found'):
        server.run("NoSuchKeyword")
    with pytest.raises(KeywordError, match="Arguments types do not match"):
        server.run("WaitForLineOnUart")
    assert server.execute("pause") == "Pausing emulation..."
    server.stop()
    replay.close()
    assert (replay.left, replay.differences) == ([], [])


def take_request(end: socket.socket) -> None:
    """Read a whole request, since a connection closed with unread bytes is reset."""
    with end.makefile("rb") as stream:
        head = b"".join(iter(stream.readline, b"\r\n")).lower()
        stream.read(int(head.partition(b"content-length:")[2].split()[0]))


@contextlib.contextmanager
def saying(data: bytes, *, wait: bool = False) -> Iterator[RobotServer]:
    """Yield a client of a server that answers any request with these bytes and closes."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            end, _ = listener.accept()
            with end:
                take_request(end)
                end.sendall(data)
                if wait:
                    end.recv(1)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with listener, RobotServer(listener.getsockname()[1], timeout_s=0.3 if wait else 5.0) as client:
        yield client
    thread.join(5)


def http_answer(body: bytes, status: str = "200 OK") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/xml\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def value(answer: object) -> bytes:
    return http_answer(xmlrpc.client.dumps((answer,), methodresponse=True).encode())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "Remote end closed connection"),
        (b"nonsense\r\n", "nonsense"),
        (http_answer(b"", "500 Internal Server Error"), "HTTP 500"),
        (http_answer(b"<a>"), "is not XML-RPC"),
        (http_answer(b""), "is not XML-RPC"),
        (http_answer(b"<methodResponse><params></params></methodResponse>"), "is not XML-RPC"),
        (http_answer(b"<?xml version='1.0'?><methodResponse><params><param><value><i4>x</i4></value>"), "not XML-RPC"),
        (value("text"), "without a status"),
        (value({"status": "MAYBE"}), "without a status"),
    ],
)
def test_answers_that_do_not_fit(data: bytes, message: str) -> None:
    with saying(data) as server, pytest.raises(RenodeConnectionError, match=message):
        server.execute("version")


def test_a_failure_without_a_reason() -> None:
    with saying(value({"status": "FAIL"})) as server, pytest.raises(KeywordError, match="failed without a reason"):
        server.execute("version")


@pytest.mark.parametrize("answer", [{}, {"status": "PASS", "return": "x"}, {"status": "PASS", "return": {"Groups": 1}}])
def test_no_line(answer: dict[str, object]) -> None:
    with saying(value(answer)) as server, pytest.raises(RenodeConnectionError, match=r"is not a line|without a status"):
        robot.TerminalTester(server, 0).wait_for_next_line()


def test_no_tester() -> None:
    with saying(value({"status": "PASS"})) as server, pytest.raises(RenodeConnectionError, match="not the number"):
        server.terminal_tester("sysbus.uart0", 2.0)


def test_no_list_of_keywords() -> None:
    with saying(value(1)) as server, pytest.raises(RenodeConnectionError, match="not a list"):
        server.keywords()


def test_silence_ends() -> None:
    with saying(b"", wait=True) as server, pytest.raises(RenodeConnectionError, match=r"no answer .* within 0\.3 s"):
        server.execute("version")


def test_a_lost_call_is_not_repeated() -> None:
    calls = 0
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        nonlocal calls
        with contextlib.suppress(OSError):
            while True:
                end, _ = listener.accept()
                calls += 1
                end.recv(65536)
                end.close()

    threading.Thread(target=serve, daemon=True).start()
    with pytest.raises(RenodeConnectionError):
        RobotServer(listener.getsockname()[1]).execute("start")
    listener.close()
    assert calls == 1


def test_an_idle_connection_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    exchange = recorded()[2]
    replay = RpcReplay([exchange, exchange])
    made = []

    def connect(port: int, timeout_s: float) -> socket.socket:
        made.append(port)
        return socket.create_connection(("127.0.0.1", port), timeout_s)

    monkeypatch.setattr(robot, "IDLE_S", -1.0)
    with RobotServer(replay.port, connector=connect) as server:
        server.execute("version")
        server.execute("version")
    replay.close()
    assert len(made) == 2


@settings(max_examples=60)
@given(st.one_of(st.binary(max_size=200), st.binary(max_size=200).map(http_answer)))
def test_any_bytes_are_an_answer_or_one_clear_error(data: bytes) -> None:
    with saying(data) as server, contextlib.suppress(RenodeError):
        server.execute("version")


@settings(max_examples=60)
@given(
    st.recursive(
        st.text(st.characters(min_codepoint=32, max_codepoint=126)) | st.integers(0, 9) | st.booleans(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text("abc", min_size=1), inner),
    )
)
def test_any_value_is_an_answer_or_one_clear_error(answer: object) -> None:
    with saying(value({"status": "PASS", "return": answer})) as server, contextlib.suppress(RenodeError):
        robot.TerminalTester(server, 0).wait_for_line("x")
