# SPDX-License-Identifier: Apache-2.0
"""Tests of a driver, its faults, and a race between threads, with Zephyr's adapter and without a board."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferrule.devices import Access, Register, RegisterModel, RegisterTable
from ferrule.testing import Adapter, AdapterBuilder, CData, ZephyrFakes

HERE = Path(__file__).parent
BASE, EIO = 0x4009_0000, 5
OK, STATE, TIMEOUT, DEVICE = 0, -7, -9, -12  # ferrule/status.h


class NpuModel(RegisterModel):
    """The accelerator as in its data sheet: a few cycles after a write of B, SUM is A + B and STATUS is 1."""

    table = RegisterTable(
        name="NPU",
        registers=(
            Register(name="ID", offset=0x00, access=Access.READ_ONLY, reset=0xADD),
            Register(name="STATUS", offset=0x04, access=Access.READ_ONLY),
            Register(name="A", offset=0x08),
            Register(name="B", offset=0x0C),
            Register(name="SUM", offset=0x10, access=Access.READ_ONLY),
        ),
    )

    def __init__(self, *, cycles: int = 4) -> None:
        super().__init__()
        self.cycles = cycles
        self.left = 0
        self.reset()

    def on_write(self, register: Register, old: int, new: int) -> None:
        """Start when B is written."""
        if register.name == "B":
            self.left = self.cycles
            self._values["STATUS"] = 0

    def advance(self, cycles: int) -> None:
        """Finish when the cycles have passed."""
        if self.left > 0:
            self.left -= cycles
            if self.left <= 0:
                self._values["SUM"] = (self._values["A"] + self._values["B"]) & 0xFFFF_FFFF
                self._values["STATUS"] = 1


@pytest.fixture
def zephyr(ferrule_adapter: AdapterBuilder) -> Adapter[ZephyrFakes]:
    """The driver with Zephyr's adapter."""
    return ferrule_adapter("zephyr", sources=[HERE / "npu.c"], headers=["npu.h"], include_dirs=[HERE])


@pytest.fixture
def npu(zephyr: Adapter[ZephyrFakes]) -> CData:
    """A handle, bound to the driver and to Zephyr's device."""
    handle, context = zephyr.new("struct ferrule_device *"), zephyr.new("struct npu *", {"base": BASE})
    zephyr.keep(context)
    assert zephyr.lib.ferrule_device_init(handle) == OK
    device = zephyr.fakes.device("npu0")
    assert zephyr.lib.ferrule_device_bind(handle, device, zephyr.address("npu_driver"), context) == OK
    return handle


def add(zephyr: Adapter[ZephyrFakes], npu: CData, a: int, b: int) -> tuple[int, int]:
    """Return the status and the sum."""
    result = zephyr.new("uint32_t *")
    return zephyr.lib.npu_add(npu, a, b, result), result[0]


def give_back(zephyr: Adapter[ZephyrFakes], npu: CData) -> None:
    """Close and deactivate: the fixture fails a test that keeps a device, its power or a lock."""
    assert zephyr.lib.ferrule_device_close(npu) == OK
    assert zephyr.lib.ferrule_device_deactivate(npu) == OK


def test_the_driver(zephyr: Adapter[ZephyrFakes], npu: CData) -> None:
    """The driver adds, but only while the device is open."""
    registers = zephyr.attach(BASE, NpuModel())
    assert zephyr.lib.ferrule_device_activate(npu) == OK
    assert add(zephyr, npu, 2, 3) == (STATE, 0)  # not open
    assert zephyr.lib.ferrule_device_open(npu) == OK
    assert add(zephyr, npu, 2, 3) == (OK, 5)
    assert registers.trace[:4] == ["ID -> 0xadd", "A <- 0x2", "B <- 0x3", "STATUS -> 0x0"]
    assert registers.trace[-1] == "SUM -> 0x5"
    give_back(zephyr, npu)


def test_a_fault(zephyr: Adapter[ZephyrFakes], npu: CData) -> None:
    """First the power fails, and later the device does not answer."""
    zephyr.attach(BASE, NpuModel(cycles=1_000_000))
    zephyr.fakes.fail("pm_device_runtime_get", result=-EIO)
    assert zephyr.lib.ferrule_device_activate(npu) == DEVICE
    assert zephyr.lib.ferrule_device_open(npu) == STATE
    assert zephyr.lib.ferrule_device_activate(npu) == OK  # the power is back
    assert zephyr.lib.ferrule_device_open(npu) == OK
    assert add(zephyr, npu, 2, 3) == (TIMEOUT, 0)
    give_back(zephyr, npu)


def test_a_race(zephyr: Adapter[ZephyrFakes], npu: CData) -> None:
    """Each of two threads gets its own sums."""
    zephyr.attach(BASE, NpuModel())
    zephyr.lib.ferrule_device_activate(npu)

    def work(first: int) -> list[tuple[int, int]]:
        sums = []
        for a in range(first, first + 20):
            assert zephyr.lib.ferrule_device_open(npu) == OK
            zephyr.lib.k_yield()
            sums.append(add(zephyr, npu, a, 1))
            assert zephyr.lib.ferrule_device_close(npu) == OK
        return sums

    assert zephyr.fakes.run(lambda: work(0), lambda: work(100)) == [
        [(OK, a + 1) for a in range(20)],
        [(OK, a + 1) for a in range(100, 120)],
    ]
    assert zephyr.lib.ferrule_device_deactivate(npu) == OK
