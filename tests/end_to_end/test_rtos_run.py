# SPDX-License-Identifier: Apache-2.0
"""`ferrule run` on platforms with a kernel: generated, built with a real tree, run with device models, compared.

The tests run where ZEPHYR_BASE is set, or CMSIS_PATH and CMSIS_RTX_PATH; tests/firmware/test_platform_tools.py has
those that need no trees.
"""

from __future__ import annotations

from pathlib import Path

import cmsis_project
import pytest
import small_networks
from needs import require_module, require_program
from zephyr_tree import TEST_TIMEOUT_S, zephyr_tree

import ferrule
from ferrule.backends import BackendId, Device
from ferrule.firmware import Job

pytestmark = [pytest.mark.cc, pytest.mark.emu, pytest.mark.slow, pytest.mark.timeout(TEST_TIMEOUT_S)]
BY_INTERRUPT = Device(name="npu", backend=BackendId("Woofles"), binding={"use_interrupt": 1})


def board_for(platform: str) -> str:
    """Return a board that the platform's tree has, or skip the test."""
    require_module("unicorn", "pip install 'ferrule[run]'")
    if platform == "zephyr":
        return zephyr_tree().board_name()
    cmsis_project.packs()
    return "mps2-an386"


@pytest.mark.parametrize("platform", ["cmsis", "zephyr"])
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
    assert (document.count.exact, document.count.source) == (False, "systick")
    flash, ram = document.memory.flash, document.memory.ram
    assert flash is not None
    assert ram.total is not None
    assert (flash.total, ram.total) == (firmware.image.flash_bytes, firmware.image.ram_bytes)
    assert flash.weights in range(29_000, 32_000)  # by the layout that the kernels of this core take
    assert 0 < ram.stack_used < ram.stack_reserved


@pytest.mark.parametrize("platform", ["cmsis", "zephyr"])
def test_keyword_spotting_with_ethos_u_by_interrupt(platform: str, models: Path) -> None:
    require_module("ethosu.vela", "pip install 'ferrule[ethos-u]'")
    npu = Device(name="npu", backend=BackendId("EthosU"), binding={"use_interrupt": 1})
    job = Job(board=board_for(platform), platform=platform, backends=("EthosU",), devices=(npu,))
    report = ferrule.compile(models / "kws_ref_model.tflite", job).run(trace_devices=True, check_ownership=True)
    assert report.verdict == "exact"
    assert report.document.device_trace is not None
    assert report.document.device_trace.as_planned
    assert [part.statistics["streams"] for part in report.document.devices] == [1]


@pytest.mark.parametrize("platform", ["cmsis", "zephyr"])
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


@pytest.mark.parametrize("platform", ["cmsis", "zephyr"])
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
