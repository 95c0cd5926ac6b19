# SPDX-License-Identifier: Apache-2.0
"""TVM's RFC for a device API: its programs, corrected, and the eight defects of the programs as written."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from fake_device import DEVICE_C, FOLDER, Bench, library
from needs import require_cc, require_module

from ferrule import resources
from ferrule.link.protocol import Status
from ferrule.testing.adapter import Adapter, build_adapter
from ferrule.testing.fakes import Fakes
from ferrule.testing.platforms import CmsisFakes, ZephyrFakes

pytestmark = pytest.mark.cc

ROOT = resources.root()
RFC = FOLDER / "rfc"
STRICT = ("-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
SUM = 1 + 1 + 2
DEVICES = ("uart@40004000", "uart@40005000")


@pytest.fixture(scope="module", autouse=True)
def _tools() -> None:
    require_module("cffi", "pip install 'ferrule[run]'")
    require_cc()


def sample(platform: str) -> Adapter[Fakes]:
    """Compile the corrected RFC program for a platform."""
    return build_adapter(
        platform,
        sources=[RFC / "executor.c", RFC / f"{platform}.c"],
        headers=["sample.h"],
        include_dirs=[RFC],
    )


def run(adapter: Adapter[Fakes]) -> int:
    """Run the program, on Zephyr with two of its devices, and return its result."""
    fakes, null = adapter.fakes, adapter.ffi.NULL
    adapter.lib.sample_opened = adapter.lib.sample_closed = 0
    devices = [fakes.device(name) for name in DEVICES] if isinstance(fakes, ZephyrFakes) else [null, null]
    return int(adapter.lib.sample_run(*devices))


@pytest.fixture(scope="module")
def zephyr() -> Adapter[ZephyrFakes]:
    found = sample("zephyr")
    assert isinstance(found.fakes, ZephyrFakes)
    return found


@pytest.fixture(scope="module")
def cmsis() -> Adapter[CmsisFakes]:
    found = sample("cmsis")
    assert isinstance(found.fakes, CmsisFakes)
    return found


def c_sources(*names: str) -> dict[str, str]:
    """Return the C of the adapters and of TVM's names, without comments."""
    folders = [ROOT / "platforms" / name for name in names] or [ROOT / "platforms", ROOT / "include" / "tvm"]
    paths = [path for folder in folders for path in folder.rglob("*.[ch]")]
    assert paths
    return {path.name: re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL) for path in paths}


def test_the_program_runs_on_bare_metal() -> None:
    machine = sample("bare_metal")
    assert run(machine) == SUM
    assert machine.lib.sample_opened == machine.lib.sample_closed == 2


def test_the_merged_program_runs(tmp_path: Path) -> None:
    bare_metal = ROOT / "platforms" / "bare_metal"
    argv = [
        *(*require_cc(), *STRICT, f"-I{ROOT / 'include'}"),
        *(f"-I{bare_metal / 'include'}", "-o", str(tmp_path / "merged"), str(RFC / "merged.c")),
        *(str(DEVICE_C), str(bare_metal / "src" / "bare_metal.c")),
    ]
    subprocess.run(argv, check=True, timeout=60)
    subprocess.run([tmp_path / "merged"], check=True, timeout=60)


def test_names_of_a_device_on_bare_metal() -> None:
    machine = sample("bare_metal")
    assert [machine.lib.sample_named(machine.ffi.NULL) for _ in range(2)] == [Status.OK, Status.OK]


def test_names_of_a_device_on_zephyr(zephyr: Adapter[ZephyrFakes]) -> None:
    """After a failed binding the handle is uninitialised again, and Init may be called again."""
    zephyr.fakes.reset()
    npu = zephyr.fakes.device("npu")
    zephyr.fakes.not_ready("npu")
    assert zephyr.lib.sample_named(npu) == Status.UNAVAILABLE
    zephyr.fakes.ready("npu")
    assert zephyr.lib.sample_named(npu) == Status.OK


def test_names_of_a_device_on_cmsis(cmsis: Adapter[CmsisFakes]) -> None:
    cmsis.fakes.reset()
    assert cmsis.lib.sample_named(cmsis.ffi.NULL) == Status.ARGUMENT
    assert cmsis.lib.sample_named(cmsis.ffi.cast("void *", 1)) == Status.OK


def test_1_headers_have_the_names_of_today() -> None:
    included = {name for text in c_sources().values() for name in re.findall(r"#include <([^>]+)>", text)}
    assert not included & {"zephyr.h", "device.h", "kernel.h"}
    assert any(name.startswith("zephyr/") for name in included)


def test_2_a_device_of_zephyr_is_constant(zephyr: Adapter[ZephyrFakes]) -> None:
    """DEVICE_DT_GET's `const struct device *` passes TVMDevicePlatformBind, compiled with warnings as errors."""
    zephyr.fakes.reset()
    ends = [zephyr.fakes.uart(name) for name in DEVICES]
    assert run(zephyr) == SUM
    assert [end.received for end in ends] == [b"\1", b"\2"]
    assert [zephyr.fakes.power_count(name) for name in DEVICES] == [0, 0]
    plain = [text for text in c_sources().values() if re.search(r"(?<!const )struct device \*", text)]
    assert plain == []


def test_3_a_mutex_has_its_struct(zephyr: Adapter[ZephyrFakes]) -> None:
    assert "struct k_mutex" in zephyr.ffi.getctype("struct k_mutex")
    assert not [name for name, text in c_sources().items() if re.search(r"(?<!struct )\bk_mutex [a-z]", text)]


def test_4_no_device_is_looked_up_by_a_name(zephyr: Adapter[ZephyrFakes]) -> None:
    """A look-up by name returns NULL on a devicetree board, and binding NULL is an error at once."""
    assert not [name for name, text in c_sources().items() if "device_get_binding" in text]
    dev = zephyr.ffi.new("struct ferrule_device *")
    assert zephyr.lib.ferrule_device_init(dev) == Status.OK
    null = zephyr.ffi.NULL
    assert zephyr.lib.ferrule_device_bind(dev, null, zephyr.driver(), null) == Status.ARGUMENT


def test_5_a_uart_needs_no_asynchronous_interface() -> None:
    """Most of Zephyr's UARTs return -ENOTSUP from uart_tx()."""
    assert not [name for name, text in c_sources("zephyr").items() if re.search(r"\buart_tx\(", text)]


def test_6_a_driver_of_cmsis_is_powered_before_it_sends(cmsis: Adapter[CmsisFakes]) -> None:
    """The fake is strict: a Send fails before power, mode and both directions are set."""
    cmsis.fakes.reset()
    ends = [cmsis.fakes.usart(number) for number in range(2)]
    assert run(cmsis) == SUM
    assert [end.received for end in ends] == [b"\1", b"\2"]
    steps = [call.name for call in cmsis.fakes.calls if call.name in {"Initialize", "PowerControl", "Control", "Send"}]
    assert steps[:6] == ["Initialize", "PowerControl", "Control", "Control", "Control", "Send"]


def test_7_a_copied_handle_is_refused() -> None:
    bench = Bench(library())
    bench.bring("open")
    copy = bench.fake.copied(bench.dev)
    with bench.fake.thread(2):
        assert bench.call("open", copy) == Status.HANDLE
        assert bench.call("open") == Status.TIMEOUT
    executor = (RFC / "sample.h").read_text(encoding="utf-8")
    assert "tvm_device_t *accelerator0;" in executor


def test_8_an_error_between_open_and_close_leaves_nothing_open() -> None:
    machine = sample("bare_metal")
    machine.lib.sample_fail(Status.DEVICE)
    assert run(machine) == Status.DEVICE, "not the status of destroying an open device"
    assert machine.lib.sample_opened == machine.lib.sample_closed == 2
    machine.lib.sample_fail(Status.OK)
    assert run(machine) == SUM


def test_8_every_function_returns_something_and_takes_pointers() -> None:
    """The RFC's functions without a return, and its init by value, do not compile with these warnings."""
    headers = [path.read_text(encoding="utf-8") for path in (ROOT / "include" / "tvm").rglob("*.h")]
    signatures = re.findall(r"static inline int32_t (?:TVMDevice\w+)\(([^)]*)\)", "\n".join(headers))
    assert len(signatures) >= 9
    assert not [each for each in signatures if re.search(r"tvm_device_t\s+\w", each)]


def test_opening_gives_power_back_if_the_device_does_not_open() -> None:
    machine = sample("bare_metal")
    seen: list[str] = []
    driver = machine.driver(
        activate=lambda _: seen.append("activate") or 0,
        check=lambda _: Status.DEVICE,
        deactivate=lambda _: seen.append("deactivate") or Status.FAILED,
    )
    dev = machine.ffi.new("struct ferrule_device *")
    machine.lib.ferrule_device_init(dev)
    machine.lib.ferrule_device_bind(dev, machine.ffi.NULL, machine.ffi.NULL, driver, machine.ffi.NULL)
    assert machine.lib.sample_open(dev) == Status.DEVICE
    assert seen == ["activate", "deactivate"]


def test_closing_what_another_has_open_keeps_its_power() -> None:
    machine = sample("bare_metal")
    dev = machine.ffi.new("struct ferrule_device *")
    machine.lib.ferrule_device_init(dev)
    machine.lib.ferrule_device_bind(dev, machine.ffi.NULL, machine.ffi.NULL, machine.driver(), machine.ffi.NULL)
    assert machine.lib.sample_open(dev) == Status.OK
    with machine.fakes.as_thread(2):
        assert machine.lib.sample_close(dev) == Status.OWNER
    assert machine.lib.sample_close(dev) == Status.OK
    assert machine.lib.sample_close(dev) == Status.STATE
    assert machine.lib.ferrule_device_destroy(dev) == Status.OK
