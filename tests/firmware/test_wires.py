# SPDX-License-Identifier: Apache-2.0
"""The assignment of UARTs to devices, and the transport that polls a UART."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from needs import require_cc, require_module
from small_networks import int8_input

import ferrule
from ferrule.backends import BackendId, Device
from ferrule.boards import Board, load_board
from ferrule.codegen import Artifact, Program
from ferrule.errors import FerruleError
from ferrule.firmware import PLATFORMS, Job, ProjectRequest, emit, spare_uarts, wires
from ferrule.resources import root
from ferrule.testing import Adapter, build_driver

BOARD = load_board("mps2-an386")


def network(count: int) -> ferrule.Network:
    """Return a chain of additions called y0, y1, ..."""
    result = ferrule.Network("chain")
    result.add_input(int8_input("x", 1, 4))
    quantization = int8_input("x", 1).quantization
    for index in range(count):
        before = f"y{index - 1}" if index else "x"
        result.add_add_layer(before, "x", quantization=quantization, name=f"y{index}")
    result.set_outputs([f"y{count - 1}"])
    return result


def artifact(*bindings: dict[str, str | int], board: Board = BOARD) -> Artifact:
    devices = tuple(
        Device(name=f"far{index}", backend=BackendId("UartWoofles"), binding=binding)
        for index, binding in enumerate(bindings)
    )
    hints = {f"y{index}": f"UartWoofles/far{index}" for index in range(len(devices))}
    return emit(network(len(devices)), Job(board=board, hints=hints, devices=devices))


def test_uarts_are_given_in_order() -> None:
    assert [uart.name for uart in spare_uarts(BOARD)] == ["uart1", "uart2", "uart3", "uart4"]
    found = wires(artifact({}, {"uart": "uart1"}, {"baud": 9600}), BOARD)
    assert [(wire.use.name, wire.uart.name, wire.baud) for wire in found] == [
        ("far0", "uart2", 115_200),
        ("far1", "uart1", 115_200),
        ("far2", "uart3", 9600),
    ]
    assert [wire.transport for wire in found] == ["far0_transport", "far1_transport", "far2_transport"]


def test_there_are_only_so_many() -> None:
    with pytest.raises(FerruleError, match="no UART left for device 'far4': 4 are neither link nor console"):
        artifact({}, {}, {}, {}, {})


NONE = "no UART '{}' on board mps2-an386 for device 'far0', beside link and console"


@pytest.mark.parametrize(
    ("name", "reason"),
    [("uart0", NONE), ("uart9", NONE), ("ssram1", NONE), ("uart2", "devices 'far0' and 'far1' are both behind {}")],
)
def test_uarts_that_are_taken_or_none(name: str, reason: str) -> None:
    with pytest.raises(FerruleError, match=reason.format(name)):
        wires(artifact({"uart": name}, {"uart": name}), BOARD)


def request(made: Artifact, board: Board = BOARD) -> ProjectRequest:
    return ProjectRequest(program=Program(artifacts=(made,)), board=board, toolchain="zig", optimization="O2")


def test_a_uart_without_a_driver_is_refused() -> None:
    changed = tuple(replace(each, type="UART.PL011") if each.name == "uart1" else each for each in BOARD.peripherals)
    board = replace(BOARD, peripherals=changed)
    with pytest.raises(FerruleError, match=r"no driver for its UART 'uart1' of class UART\.PL011"):
        PLATFORMS["bare-metal"].files(request(artifact({}, board=board), board))


def test_projects_without_wires_have_no_transport() -> None:
    plain = emit(network(1), Job(board=BOARD))
    names = PLATFORMS["bare-metal"].files(request(plain)).code.sources
    assert not any("uart_transport" in name for name in names)
    assert any("uart_transport" in name for name in PLATFORMS["bare-metal"].files(request(artifact({}))).code.sources)


# ---- the transport, on the host


@pytest.fixture(scope="module", params=["clock", "looks"])
def transport(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Adapter[Any]:
    """The transport on a port with a clock, and on one that counts looks."""
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()
    folder = tmp_path_factory.mktemp("port")
    without = "" if request.param == "clock" else "#undef FERRULE_PORT_HAS_CLOCK\n"
    (folder / "own_port.h").write_text(f'#include "ferrule_fake_port.h"\n{without}', encoding="utf-8")
    return build_driver(
        sources=[root() / "src_c" / "drivers" / "uart_transport.c"],
        headers=["ferrule/drivers/uart_transport.h"],
        include_dirs=[Path(root()) / "include", folder],
        defines={"FERRULE_PORT_H": '"own_port.h"'},
    )


class Uart:
    """A UART with one byte each way, which becomes ready after `looks` polls of 0.1 ms."""

    def __init__(self, adapter: Adapter[Any], *, looks: int, incoming: bytes = b"") -> None:
        self.fakes = adapter.fakes
        self.looks, self.looked = looks, 0
        self.left = looks
        self.incoming, self.sent = bytearray(incoming), bytearray()
        members = {
            "read_byte": adapter.callback("int32_t (void *)", self._read),
            "can_write": adapter.callback("bool (void *)", self._can_write),
            "write_byte": adapter.callback("void (void *, uint8_t)", self._write),
            "looks_per_ms": 10,
        }
        self.context = adapter.new("struct ferrule_uart_transport *", members)
        adapter.keep(self.context)

    def _ready(self) -> bool:
        self.looked += 1
        self.left -= 1
        self.fakes.advance_ms(0.1)
        return self.left < 0

    def _read(self, _uart: object) -> int:
        if not self.incoming or not self._ready():
            if not self.incoming:
                self.looked += 1
                self.fakes.advance_ms(0.1)
            return -1
        self.left = self.looks
        return self.incoming.pop(0)

    def _can_write(self, _uart: object) -> bool:
        return self._ready()

    def _write(self, _uart: object, byte: int) -> None:
        assert self.left < 0
        self.left = self.looks
        self.sent.append(byte)


OK, TIMEOUT = 0, -9


@pytest.mark.cc
def test_writes_end_in_time(transport: Adapter[Any]) -> None:
    uart = Uart(transport, looks=5)
    assert transport.lib.ferrule_uart_transport_write(uart.context, b"abc", 3, 2) == OK
    assert uart.sent == b"abc"
    uart = Uart(transport, looks=15)
    assert transport.lib.ferrule_uart_transport_write(uart.context, b"abc", 3, 2) == TIMEOUT
    assert uart.sent == b"a"
    assert uart.looked <= 3 * 10 + 3
    uart = Uart(transport, looks=1 << 40)
    assert transport.lib.ferrule_uart_transport_write(uart.context, b"abc", 3, 0) == TIMEOUT


@pytest.mark.cc
def test_reads_end_in_time(transport: Adapter[Any]) -> None:
    def read(uart: Uart, wanted: int, timeout_ms: int) -> tuple[int, bytes]:
        data, received = transport.new("uint8_t[8]"), transport.new("size_t *")
        status = transport.lib.ferrule_uart_transport_read(uart.context, data, wanted, timeout_ms, received)
        return status, bytes(transport.ffi.buffer(data))[: received[0]]

    assert read(Uart(transport, looks=3, incoming=b"abcd"), 4, 2) == (OK, b"abcd")
    assert read(Uart(transport, looks=0, incoming=b"abcd"), 4, 0) == (OK, b"abcd")
    assert read(Uart(transport, looks=0, incoming=b"ab"), 4, 0) == (TIMEOUT, b"ab")
    slow = Uart(transport, looks=9, incoming=b"abcd")
    assert read(slow, 4, 2) == (TIMEOUT, b"ab")
    assert slow.looked <= 2 * 10 + 4
    assert read(Uart(transport, looks=0), 0, 5) == (OK, b"")
    assert np.iinfo(np.uint32).max > 0
