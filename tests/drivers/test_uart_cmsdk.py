# SPDX-License-Identifier: Apache-2.0
"""The start of the driver of CMSDK's UART; tests/link tests the rest in a firmware."""

from __future__ import annotations

import pytest

from ferrule.devices import Register, RegisterModel, RegisterTable
from ferrule.testing import Adapter, Fakes

pytestmark = pytest.mark.cc
DRIVER = "uart_cmsdk"
BASE = 0x4000_4000


class Uart(RegisterModel):
    table = RegisterTable(name="UART", registers=(Register("CTRL", 0x08), Register("BAUDDIV", 0x10)))


def test_no_configuration(driver: Adapter[Fakes]) -> None:
    assert driver.lib.ferrule_uart_cmsdk_init(driver.ffi.NULL) == -1


def test_both_directions_are_enabled_at_a_speed(driver: Adapter[Fakes]) -> None:
    window = driver.attach(BASE, Uart())
    config = {"base": BASE, "clock_hz": 25_000_000, "baud": 115_200}
    assert driver.lib.ferrule_uart_cmsdk_init(driver.new("struct ferrule_uart_cmsdk_config *", config)) == 0
    assert window.trace == ["BAUDDIV <- 0xd9", "CTRL <- 0x3"]
