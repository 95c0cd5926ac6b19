# SPDX-License-Identifier: Apache-2.0
"""Zephyr sources beside the device API: the counter, and the Zephyr side of devices in the devicetree."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from zephyr_bench import built

from ferrule.testing import Adapter, ZephyrFakes, build_adapter

pytestmark = pytest.mark.cc
NO_COUNTER, SYSTICK = 0, 2
SUSPEND, RESUME, TURN_OFF, TURN_ON = range(4)


def counter_of(adapter: Adapter[ZephyrFakes]) -> object:
    adapter.fakes.reset()
    counter = adapter.ffi.new("struct ferrule_counter *")
    adapter.lib.ferrule_counter_start(counter)
    return counter


def test_counter_counts_the_kernels_cycles_and_leaves_systick_alone() -> None:
    adapter = built("CONFIG_CORTEX_M_SYSTICK")
    lib, counter = adapter.lib, counter_of(adapter)
    assert counter.source == SYSTICK
    adapter.fakes.advance_ms(3)
    assert 3000 <= lib.ferrule_counter_read(counter) < 3010
    lib.ferrule_counter_reset(counter)
    assert lib.ferrule_counter_read(counter) < 10
    assert {call.name for call in adapter.fakes.calls} == {"k_cycle_get_32"}


def test_counter_survives_the_wrap_of_32_bits() -> None:
    adapter = built("CONFIG_CORTEX_M_SYSTICK")
    counter = counter_of(adapter)
    total = 0
    for cycles in (0xFFFF_FF00, 0x10, 0x2000_0010):
        adapter.fakes.fail("k_cycle_get_32", result=cycles)
        last, total = total, adapter.lib.ferrule_counter_read(counter)
        assert total >= last
    assert (1 << 32) < total < (1 << 32) + 0x2000_0011


def test_counter_says_where_nothing_counts_the_core() -> None:
    adapter = built()
    counter = counter_of(adapter)
    assert counter.source == NO_COUNTER
    adapter.fakes.advance_ms(3)
    assert adapter.lib.ferrule_counter_read(counter) == 0


CLASS_H = """
#include "ferrule/platform/zephyr_accelerator.h"

bool is_accelerator(const struct device *device);
uintptr_t base_of(const struct device *device);
extern const struct device acme_device, stranger_device;
"""
CLASS_C = """
#include "class.h"

static uintptr_t acme_base(const struct device *device)
{
    return (uintptr_t)device->config;
}

static FERRULE_ACCELERATOR_API(acme_api) = {.base = acme_base};
static const struct ferrule_accelerator_driver_api outside = {.base = acme_base};

const struct device acme_device = {.name = "acme", .config = (void *)0x50000000, .api = &acme_api};
const struct device stranger_device = {.name = "stranger", .api = &outside};

bool is_accelerator(const struct device *device)
{
    return ferrule_zephyr_is_accelerator(device);
}

uintptr_t base_of(const struct device *device)
{
    return ferrule_zephyr_accelerator_base(device);
}
"""


def test_a_zephyr_driver_of_your_own_belongs_to_the_class(tmp_path: Path) -> None:
    """Membership is that of the API, not of its type: devices of other classes may have any API."""
    (tmp_path / "class.h").write_text(CLASS_H)
    (tmp_path / "class.c").write_text(CLASS_C)
    adapter = build_adapter("zephyr", sources=[tmp_path / "class.c"], headers=["class.h"], include_dirs=[tmp_path])
    adapter.fakes.reset()
    lib, address = adapter.lib, adapter.ffi.addressof
    mine, stranger = address(lib.acme_device), address(lib.stranger_device)
    mmio, soft = (address(getattr(lib, f"ferrule_fake_node_{node}"), "device") for node in ("mmio", "soft"))
    assert [lib.is_accelerator(each) for each in (mine, mmio)] == [True, True]
    assert [lib.base_of(each) for each in (mine, mmio)] == [0x5000_0000, 0x4009_0000]
    others = (stranger, soft, adapter.fakes.device("other"), adapter.ffi.NULL)
    assert [lib.is_accelerator(each) for each in others] == [False] * 4


@pytest.mark.parametrize("node", ["mmio", "soft"])
@pytest.mark.parametrize("managed", [True, False])
def test_a_node_becomes_a_device(node: str, managed: bool) -> None:
    adapter = built("CONFIG_PM_DEVICE") if managed else built()
    adapter.fakes.reset()
    made = getattr(adapter.lib, f"ferrule_fake_node_{node}")
    device = adapter.ffi.addressof(made, "device")
    assert made.init(device) == 0
    if node == "mmio":
        api = adapter.ffi.cast("struct ferrule_accelerator_driver_api *", device.api)
        assert api.base(device) == 0x4009_0000
    if managed:
        for action in (SUSPEND, RESUME, TURN_OFF, TURN_ON):
            assert adapter.lib.ferrule_fake_power_action(device, action) == 0
        assert adapter.lib.ferrule_fake_power_action(device, 99) == -errno.ENOTSUP
