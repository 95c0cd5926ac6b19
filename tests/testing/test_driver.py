# SPDX-License-Identifier: Apache-2.0
"""A vendor's driver on the host, with a device model or an array behind its registers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from needs import require_cc, require_gcov, require_module

from ferrule._typing import override
from ferrule.devices import Access, BusError, Register, RegisterModel, RegisterTable
from ferrule.errors import FerruleError
from ferrule.testing import Adapter, CData, Fakes, build_adapter, build_driver
from ferrule.testing.coverage import coverage

pytestmark = pytest.mark.cc
FOLDER = Path(__file__).parent / "c"
BASE = 0x4009_0000
OK, DEVICE, TIMEOUT = 0, -12, -9
TABLE = RegisterTable(
    name="SCALER",
    registers=(
        Register("ID", 0x0, access=Access.READ_ONLY, reset=0x5CA1E),
        Register("CONTROL", 0x4, access=Access.WRITE_ONLY),
        Register("STATUS", 0x8, access=Access.CLEAR_BY_ONE),
        Register("VALUE", 0xC),
    ),
)


class Scaler(RegisterModel):
    """Doubles a number, which takes ten cycles."""

    table = TABLE

    def __init__(self, latency: int = 10) -> None:
        super().__init__()
        self._latency = latency
        self._left: int | None = None
        self.reset()

    @override
    def on_write(self, register: Register, old: int, new: int) -> None:
        if register.name == "CONTROL":
            self._left = self._latency
        if register.name == "STATUS" and not new:
            self.irq.set(False)

    @override
    def advance(self, cycles: int) -> None:
        if self._left is not None:
            self._left -= cycles
            if self._left <= 0:
                self._left = None
                self._values["VALUE"] *= 2
                self._values["STATUS"] = 1
                self.irq.set(True)

    @override
    def next_event(self) -> int | None:
        return self._left


@pytest.fixture(scope="module")
def built() -> Adapter[Fakes]:
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()
    return build_driver(sources=[FOLDER / "scaler.c"], headers=["scaler.h"], include_dirs=[FOLDER])


@pytest.fixture
def driver(built: Adapter[Fakes]) -> Adapter[Fakes]:
    built.reset()
    return built


@pytest.fixture
def scaler(driver: Adapter[Fakes]) -> CData:
    return driver.ffi.new("struct scaler *", {"base": BASE})


def run(driver: Adapter[Fakes], scaler: CData, value: int) -> tuple[int, int]:
    result = driver.ffi.new("uint32_t *")
    return driver.lib.scaler_run(scaler, value, result), result[0]


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("no folder")
    monkeypatch.setenv("FERRULE_CACHE", str(occupied))
    with pytest.raises(FerruleError, match=f"the cache folder {occupied}") as caught:
        build_driver(sources=[FOLDER / "scaler.c"], headers=["scaler.h"], include_dirs=[FOLDER])
    assert "FERRULE_CACHE" in (caught.value.hint or "")


def test_what_cffi_sees(driver: Adapter[Fakes]) -> None:
    assert driver.lib.SCALER_TIMEOUT_US == 100
    assert driver.lib.SCALER_BITS == 12
    assert driver.lib.SCALER_VALUE == 0xC
    assert driver.lib.FERRULE_ERR_DEVICE == DEVICE
    assert driver.ffi.string(driver.lib.scaler_driver.name) == b"scaler"
    assert not hasattr(driver.lib, "scaler_twice")


def test_an_array_behind_the_registers(driver: Adapter[Fakes], scaler: CData) -> None:
    words = np.array([0x5CA1E, 0, 1, 0], np.uint32)
    window = driver.attach(BASE, words, names=TABLE)
    assert driver.lib.scaler_driver.activate(scaler) == OK
    assert run(driver, scaler, 21) == (OK, 21)
    assert window.trace == ["ID -> 0x5ca1e", "VALUE <- 0x15", "CONTROL <- 0x1", "STATUS -> 0x1", "VALUE -> 0x15"]
    words[0] = 1
    assert driver.lib.scaler_driver.activate(scaler) == DEVICE


def test_a_model_behind_the_registers(driver: Adapter[Fakes], scaler: CData) -> None:
    window = driver.attach(BASE, Scaler())
    assert run(driver, scaler, 21) == (OK, 42)
    assert window.trace[:2] == ["VALUE <- 0x15", "CONTROL <- 0x1"]
    assert window.trace.count("STATUS -> 0x0") == 9


def test_a_device_that_takes_too_long(driver: Adapter[Fakes], scaler: CData) -> None:
    driver.attach(BASE, Scaler(latency=1000))
    assert run(driver, scaler, 21) == (TIMEOUT, 0)


def test_its_interrupt_runs_the_handler(driver: Adapter[Fakes], scaler: CData) -> None:
    driver.attach(BASE, Scaler(), interrupt=lambda: driver.lib.scaler_isr(scaler))
    driver.lib.ferrule_mmio_write32(BASE + 0x4, 1)
    assert scaler.served == 0
    driver.fakes.advance_ms(1)
    assert scaler.served == 1


def test_a_handler_that_does_not_quiet_the_device_is_told(driver: Adapter[Fakes]) -> None:
    driver.attach(BASE, Scaler(), interrupt=lambda: None)
    driver.lib.ferrule_mmio_write32(BASE + 0x4, 1)
    with pytest.raises(FerruleError, match="still high"):
        driver.fakes.advance_ms(1)


def test_a_handler_that_returns_false_masks_its_interrupt(driver: Adapter[Fakes]) -> None:
    calls = []
    driver.attach(BASE, Scaler(), interrupt=lambda: calls.append("called") is not None)
    for _ in range(2):
        driver.lib.ferrule_mmio_write32(BASE + 0x4, 1)
        driver.fakes.advance_ms(1)
    assert calls == ["called"]


def test_registers_that_are_not_there(driver: Adapter[Fakes], scaler: CData) -> None:
    with pytest.raises(BusError, match="0x40090000 is read, where no device is attached"):
        driver.call(driver.lib.scaler_driver.activate, scaler)
    driver.attach(BASE, np.zeros(1, np.uint32))
    with pytest.raises(BusError, match="0x4009000c is written"):
        run(driver, scaler, 1)
    with pytest.raises(FerruleError, match="overlap those"):
        driver.attach(BASE, np.zeros(1, np.uint32))


def test_accesses_that_a_table_forbids(driver: Adapter[Fakes]) -> None:
    driver.attach(BASE, Scaler())
    with pytest.raises(BusError, match="ID, which is read-only"):
        driver.lib.ferrule_mmio_write32(BASE, 1)


def test_memory_that_a_device_reaches(driver: Adapter[Fakes]) -> None:
    """C objects have addresses on the bus, which ferrule_bus_address() returns to a driver."""
    buffer, other = driver.new("uint8_t[100]"), driver.new("uint8_t[8]")
    address = driver.share(buffer)
    assert driver.lib.ferrule_bus_address(buffer + 10) == address + 10
    assert driver.share(other) >= address + 100
    model = Scaler()
    driver.attach(BASE, model)
    model.bus.write(address + 4, b"abc")
    assert bytes(buffer)[4:7] == b"abc"
    fixed = driver.memory(0x1000, 16)
    model.bus.write(0x1000, b"xyz")
    assert bytes(fixed[:3]) == b"xyz"
    with pytest.raises(FerruleError, match="overlaps that at 0x00001000"):
        driver.share(driver.new("uint32_t *"), address=0x100C)
    with pytest.raises(FerruleError, match="devices cannot access"):
        driver.lib.ferrule_bus_address(driver.new("int *"))
    with pytest.raises(BusError):
        model.bus.read(address + 97, 4)


def test_coverage_says_what_did_not_run() -> None:
    require_gcov()
    fresh = build_driver(sources=[FOLDER / "scaler.c"], headers=["scaler.h"], include_dirs=[FOLDER], coverage=True)
    scaler = fresh.ffi.new("struct scaler *", {"base": BASE})
    fresh.attach(BASE, np.array([0x5CA1E, 0, 1, 0], np.uint32))
    assert run(fresh, scaler, 3) == (OK, 3)
    first = coverage(fresh)
    missed = first.file("scaler.c").missed_lines
    lines = (FOLDER / "scaler.c").read_text().splitlines()
    assert "    return FERRULE_ERR_TIMEOUT;" in [lines[number - 1] for number in missed]
    assert len(first.file("scaler.c").missed_branches) == 4
    assert "missing lines" in first.table()
    for value in (0x5CA1E, 1):
        fresh.reset()
        fresh.attach(BASE, np.array([value, 0, 0, 0], np.uint32))
        fresh.lib.scaler_driver.activate(scaler)
    run(fresh, scaler, 3)
    fresh.lib.scaler_isr(scaler)
    fresh.lib.scaler_read_past_end(0)
    fresh.lib.scaler_overflow(0)
    second = coverage(fresh)
    assert second.file("scaler.c").is_full, second.table()
    assert (first | second).file("scaler.c").is_full
    with pytest.raises(FerruleError, match=r"no coverage of other\.c"):
        second.file("other.c")


def test_with_the_device_api(driver: Adapter[Fakes]) -> None:
    """The same driver is used behind an adapter."""
    assert driver is not None
    adapter = build_adapter("bare_metal", sources=[FOLDER / "scaler.c"], headers=["scaler.h"], include_dirs=[FOLDER])
    scaler = adapter.ffi.new("struct scaler *", {"base": BASE})
    device = adapter.ffi.new("struct ferrule_device *")
    address = adapter.address("scaler_driver")
    adapter.attach(BASE, Scaler())
    assert adapter.lib.ferrule_device_init(device) == OK
    assert adapter.lib.ferrule_device_bind(device, adapter.ffi.NULL, adapter.ffi.NULL, address, scaler) == OK
    assert adapter.lib.ferrule_device_activate(device) == OK
    assert adapter.lib.ferrule_device_open(device) == OK
    assert run(adapter, scaler, 4) == (OK, 8)


def test_sources_that_do_not_compile_or_link(tmp_path: Path) -> None:
    source = tmp_path / "wrong.c"
    source.write_text("int wrong(int value) { unsigned other = value; return 1; }\n")
    with pytest.raises(FerruleError, match=r"unused variable .other."):
        build_driver(sources=[source], headers=[])
    source.write_text("int missing(void);\nint wrong(void);\nint wrong(void) { return missing(); }\n")
    with pytest.raises(FerruleError, match="undefined symbol: missing"):
        build_driver(sources=[source], headers=[])
    text = "int ferrule_device_wait(void);\nint wrong(void);\nint wrong(void) { return ferrule_device_wait(); }\n"
    source.write_text(text)
    with pytest.raises(FerruleError, match="undefined symbol: ferrule_device_wait") as caught:
        build_driver(sources=[source], headers=[])
    assert "build_adapter('bare_metal')" in (caught.value.hint or "")
    source.write_text("int first;\n#include <zephyr/drivers/gpio.h>\n")
    with pytest.raises(
        FerruleError, match=rf"^can't preprocess .*: {source}:2: .?zephyr/drivers/gpio.h.?:? (No such|file not)"
    ):
        build_driver(sources=[source], headers=[])
    with pytest.raises(FerruleError, match="there is no source"):
        build_driver(sources=[tmp_path / "none.c"], headers=[])
    with pytest.raises(FerruleError, match="there is no source to compile"):
        build_driver(sources=[], headers=[])
    with pytest.raises(FerruleError, match=r"none\.h"):
        build_driver(sources=[source], headers=["none.h"])
    with pytest.raises(FerruleError, match="is not an adapter"):
        build_adapter(tmp_path)
    with pytest.raises(FerruleError, match="no sanitizer memory"):
        build_driver(sources=[source], headers=[], sanitize=["memory"])
