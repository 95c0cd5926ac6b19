# SPDX-License-Identifier: Apache-2.0
"""Two threads contend for a device, through the adapters on their platforms' fakes and through mutated adapters."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from needs import require_cc, require_module

from ferrule import resources
from ferrule.errors import FerruleError
from ferrule.testing import Adapter, CData, CmsisFakes, Fakes, ZephyrFakes, build_adapter

pytestmark = pytest.mark.cc
OK, TIMEOUT, OWNER = 0, -9, -11
FOLDER = Path(__file__).parent / "c"
SLEEPS = {"k_msleep", "osDelay", "vTaskDelay", "tx_thread_sleep"}
"""Functions that take milliseconds, or ticks of a millisecond."""
REPETITIONS = 15
INSIDE_MS = 3


@pytest.fixture(scope="module", params=["zephyr", "cmsis", "freertos", "threadx"])
def platform(request: pytest.FixtureRequest) -> str:
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()
    return str(request.param)


@pytest.fixture(scope="module")
def built(platform: str) -> Adapter[Fakes]:
    return build(platform, adapter_of(platform))


def adapter_of(platform: str) -> Path:
    """Return the folder of the platform's adapter."""
    return resources.root() / "platforms" / platform


def build(platform: str, folder: Path) -> Adapter[Fakes]:
    """Return the adapter in a folder, which may be a mutant of the platform's adapter."""
    if platform != "cmsis":
        return build_adapter(folder, fakes=platform)
    return build_adapter(
        folder, fakes=platform, sources=[FOLDER / "accelerator.c"], headers=["accelerator.h"], include_dirs=[FOLDER]
    )


@pytest.fixture
def adapter(built: Adapter[Fakes]) -> Adapter[Fakes]:
    built.reset()
    return built


def device(adapter: Adapter[Fakes]) -> CData:
    """Return a handle that is bound and active."""
    handle = adapter.new("struct ferrule_device *")
    driver = adapter.driver(check=lambda _: OK)
    assert adapter.lib.ferrule_device_init(handle) == OK
    if isinstance(adapter.fakes, ZephyrFakes):
        status = adapter.lib.ferrule_device_bind(handle, adapter.fakes.device("npu0"), driver, adapter.ffi.NULL)
    elif not isinstance(adapter.fakes, CmsisFakes):
        status = adapter.lib.ferrule_device_bind(handle, driver, adapter.ffi.NULL)
    else:
        status = adapter.lib.ferrule_device_bind_accelerator(
            handle, adapter.address("test_accelerator"), driver, adapter.ffi.NULL
        )
    assert status == OK
    assert adapter.lib.ferrule_device_activate(handle) == OK
    return handle


def sleep(adapter: Adapter[Fakes], ms: int) -> None:
    name = next(each for each in SLEEPS if each in adapter.fakes._known)
    getattr(adapter.lib, name)(ms)


def contend(adapter: Adapter[Fakes], threads: int = 2) -> None:
    """Check that all threads get the device, one at a time."""
    handle = device(adapter)
    inside: list[str] = []

    def work() -> None:
        for _ in range(REPETITIONS):
            assert adapter.lib.ferrule_device_open(handle) == OK
            inside.append("in")
            sleep(adapter, INSIDE_MS)
            inside.append("out")
            assert adapter.lib.ferrule_device_close(handle) == OK

    begin_us = adapter.fakes.now_us
    adapter.fakes.run(*[work] * threads)
    assert inside == ["in", "out"] * (threads * REPETITIONS)
    least_us = 1000 * INSIDE_MS * threads * REPETITIONS - 1000  # a tick may come as soon as the first delay begins
    assert adapter.fakes.now_us - begin_us >= least_us, "two threads were inside"


@pytest.mark.parametrize("threads", [2, 5])
def test_one_thread_at_a_time_is_in(adapter: Adapter[Fakes], threads: int) -> None:
    contend(adapter, threads)


def test_who_waits_for_too_long_is_told(adapter: Adapter[Fakes]) -> None:
    handle = device(adapter)

    def hold() -> int:
        assert adapter.lib.ferrule_device_open(handle) == OK
        sleep(adapter, 60_000)
        return int(adapter.lib.ferrule_device_close(handle))

    def want() -> list[int]:
        sleep(adapter, 10)
        return [adapter.lib.ferrule_device_open(handle), adapter.lib.ferrule_device_close(handle)]

    assert adapter.fakes.run(hold, want) == [OK, [TIMEOUT, OWNER]]
    assert adapter.lib.ferrule_device_open(handle) == OK


def test_an_adapter_that_does_not_lock_is_found(platform: str, tmp_path: Path) -> None:
    folder = tmp_path / platform
    shutil.copytree(adapter_of(platform), folder)
    path = folder / "src" / f"{platform}.c"
    head = re.compile(
        r"^int32_t ferrule_platform_(?:un)?lock\(ferrule_device_t \*dev(?:, \w+ \w+)?\)\n\{", re.MULTILINE
    )
    text, count = head.subn(
        lambda found: f"{found[0]}\n    if (dev != NULL) {{ return FERRULE_OK; }}", path.read_text()
    )
    assert count >= 2
    path.write_text(text)
    with pytest.raises(AssertionError):
        contend(build(platform, folder))


def test_fakes_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    for wrong in ("nuttx", "cmsis"):
        with pytest.raises(FerruleError, match=f"no platform '{wrong}' with fakes"):
            build_adapter("zephyr" if wrong == "cmsis" else tmp_path, fakes=wrong)
