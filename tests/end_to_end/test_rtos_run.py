# SPDX-License-Identifier: Apache-2.0
"""`ferrule run` on platforms with a kernel: generated, built with a real tree, run with device models, compared.

The tests run where ZEPHYR_BASE is set, or CMSIS_PATH and CMSIS_RTX_PATH, or FREERTOS_KERNEL_PATH, or THREADX_PATH;
tests/firmware/test_platform_tools.py has those that need no trees.
"""

from __future__ import annotations

from pathlib import Path

import cmsis_project
import pytest
import small_networks
from needs import require_module, require_newlib, require_program, require_variable
from zephyr_tree import TEST_TIMEOUT_S, zephyr_tree

import ferrule
from ferrule.backends import BackendId, Device
from ferrule.firmware import Job

pytestmark = [pytest.mark.cc, pytest.mark.emu, pytest.mark.slow, pytest.mark.timeout(TEST_TIMEOUT_S)]
PLATFORMS = ("cmsis", "freertos", "threadx", "zephyr")
KERNELS = ("freertos", "threadx")
BOTH = ("mps2-an385", "mps2-an386", "mps2-an500", "mps2-an505")
"""Boards that both engines have; their cores have different ports."""
BY_INTERRUPT = Device(name="npu", backend=BackendId("Woofles"), binding={"use_interrupt": 1})


def board_for(platform: str) -> str:
    """Return a board that the platform's tree has, or skip the test."""
    require_module("unicorn", "pip install 'ferrule[run]'")
    if platform == "zephyr":
        return zephyr_tree().board_name()
    if platform == "cmsis":
        cmsis_project.packs()
    else:
        require_variable({"freertos": "FREERTOS_KERNEL_PATH", "threadx": "THREADX_PATH"}[platform])
        require_newlib("arm-none-eabi-gcc")
        require_program("cmake", "apt-get install cmake")
    return "mps2-an386"


@pytest.mark.parametrize("platform", PLATFORMS)
def test_keyword_spotting_with_woofles_by_interrupt(platform: str, models: Path) -> None:
    job = Job(board=board_for(platform), platform=platform, backends=("Woofles", "CpuAcc"), devices=(BY_INTERRUPT,))
    firmware = ferrule.compile(models / "kws_ref_model.tflite", job)
    report = firmware.run(trace_devices=True, check_ownership=True)
    assert report.verdict == "exact"
    document = report.document
    assert document.device_trace is not None
    assert document.device_trace.as_planned
    assert document.ownership is not None
    assert document.ownership.transfers
    assert [part.layers for part in document.devices] == [6]
    assert document.build.platform == platform
    # a kernel that is told no counter of its own leaves the core's to the link
    assert document.count.source == ("dwt" if platform in KERNELS else "systick")
    flash, ram = document.memory.flash, document.memory.ram
    assert flash is not None
    assert ram.total is not None
    assert (flash.total, ram.total) == (firmware.image.flash_bytes, firmware.image.ram_bytes)
    assert flash.weights in range(29_000, 33_000)  # by the layout that the kernels of this core take
    assert 0 < ram.stack_used < ram.stack_reserved


@pytest.mark.parametrize("platform", PLATFORMS)
def test_keyword_spotting_with_ethos_u_by_interrupt(platform: str, models: Path) -> None:
    require_module("ethosu.vela", "pip install 'ferrule[ethos-u]'")
    npu = Device(name="npu", backend=BackendId("EthosU"), binding={"use_interrupt": 1})
    job = Job(board=board_for(platform), platform=platform, backends=("EthosU",), devices=(npu,))
    report = ferrule.compile(models / "kws_ref_model.tflite", job).run(trace_devices=True, check_ownership=True)
    assert report.verdict == "exact"
    assert report.document.device_trace is not None
    assert report.document.device_trace.as_planned
    assert [part.statistics["streams"] for part in report.document.devices] == [1]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_an_accelerator_behind_a_uart_under_both_engines(platform: str) -> None:
    board = board_for(platform)
    require_program("qemu-system-arm", "apt-get install qemu-system-arm")
    device = Device(name="far", backend=BackendId("UartWoofles"))
    job = Job(board=board, platform=platform, backends=("UartWoofles", "CpuAcc"), devices=(device,))
    firmware = ferrule.compile(small_networks.dense(), job)
    for name in ("unicorn", "qemu"):
        report = firmware.run(engine=name, trace_devices=True)
        assert report.verdict == "exact"
        assert report.document.count.per_inference > 0


@pytest.mark.parametrize("platform", PLATFORMS)
def test_two_models_share_a_device_and_an_arena(platform: str, models: Path) -> None:
    job = Job(
        board=board_for(platform),
        platform=platform,
        backends=("Woofles", "CpuAcc"),
        devices=(BY_INTERRUPT,),
        arena="shared",
    )
    for firmware in ferrule.compile([models / "kws_ref_model.tflite", small_networks.dense()], job):
        report = firmware.run(trace_devices=True)
        assert report.verdict == "exact"
        assert report.document.model.name == firmware.network.name
        assert report.document.device_trace is not None
        assert report.document.device_trace.as_planned


@pytest.mark.parametrize(
    ("board", "engine"),
    [
        *((board, engine) for board in BOTH for engine in ("unicorn", "qemu")),
        ("mps3-an547", "qemu"),  # unicorn has no Cortex-M55
        ("stm32g0b1", "unicorn"),  # QEMU has no such board
    ],
)
@pytest.mark.parametrize("platform", KERNELS)
def test_every_core_with_a_port(platform: str, board: str, engine: str) -> None:
    """Ports differ in the vector table's handlers, the FPU's registers and the security state."""
    board_for(platform)
    job = Job(board=board, platform=platform, self_test=True)
    report = ferrule.compile(small_networks.dense(), job).run(engine=engine)
    assert report.verdict == "exact"
    assert report.document.self_test is not None


@pytest.mark.parametrize("platform", KERNELS)
def test_the_tick_counts_where_the_core_has_no_counter(platform: str) -> None:
    """On Armv6-M, the cycles are those of the kernel's SysTick."""
    board_for(platform)
    report = ferrule.compile(small_networks.dense(batch=64), Job(board="stm32g0b1", platform=platform)).run()
    bare = ferrule.compile(small_networks.dense(batch=64), Job(board="stm32g0b1", toolchain="arm-none-eabi-gcc")).run()
    assert report.document.count.source == "systick"
    assert report.document.count.per_inference == pytest.approx(bare.document.count.per_inference, rel=0.05)
