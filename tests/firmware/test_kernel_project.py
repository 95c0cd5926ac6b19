# SPDX-License-Identifier: Apache-2.0
"""Generated projects for FreeRTOS and ThreadX, without their trees; tests/end_to_end/test_rtos_run.py runs them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import cmsis_project
import device_networks
import pytest
from formatting import check_formatted
from small_networks import dense, two_by_two

from ferrule import generate
from ferrule.backends import BackendId, Device
from ferrule.boards import board_names, load_board
from ferrule.errors import FerruleError
from ferrule.firmware import Job, Project
from ferrule.firmware.platforms.kernels import FREERTOS_KERNEL, THREADX_KERNEL
from ferrule.resources import root

KERNELS = {each.name: each for each in (FREERTOS_KERNEL, THREADX_KERNEL)}
YOURS = {"freertos": "kernel/FreeRTOSConfig.h", "threadx": "kernel/tx_user.h"}
Make = Callable[[str, Path], Project]


def core(name: str, folder: Path, board: str = "mps2-an386", **changes: object) -> Project:
    job = Job(platform=name, board=board, toolchain="arm-none-eabi-gcc", out=folder)
    return generate(dense(), replace(job, **changes))  # type: ignore[arg-type]


def with_devices(name: str, folder: Path) -> Project:
    return generate(device_networks.crossing(), replace(device_networks.job(), platform=name, out=folder))


def with_interrupt(name: str, folder: Path, **binding: int) -> Project:
    device = Device(name="dog", backend=BackendId("Woofles"), binding={"use_interrupt": 1, **binding})
    return core(name, folder, backends=("Woofles", "CpuAcc"), devices=(device,))


def behind_uart(name: str, folder: Path) -> Project:
    device = Device(name="far", backend=BackendId("UartWoofles"), binding={"uart": "uart2", "baud": 9600})
    return core(name, folder, backends=("UartWoofles", "CpuAcc"), devices=(device,))


def several(name: str, folder: Path) -> Project:
    job = Job(platform=name, out=folder, arena="shared", self_test=True)
    return generate([dense(), two_by_two()], job)


KINDS: Mapping[str, Make] = {
    "core": core,
    "devices": with_devices,
    "interrupt": with_interrupt,
    "uart": behind_uart,
    "several": several,
}


def text_of(project: Project, name: str) -> str:
    return (project.folder / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("name", KERNELS)
def test_cmake_builds_every_file(name: str, make: Make, tmp_path: Path) -> None:
    folder = make(name, tmp_path / "project").folder
    lists = cmsis_project.cmake_lists(folder)
    every = {path.relative_to(folder).as_posix() for path in folder.rglob("*.c")}
    assert {*lists["FERRULE_SOURCES"], "main.c"} == every
    assert all((folder / path).is_dir() for path in lists["FERRULE_INCLUDE_DIRS"])


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("name", KERNELS)
def test_generated_c_is_formatted(name: str, make: Make, tmp_path: Path) -> None:
    folder = make(name, tmp_path / "project").folder
    files = [path for path in folder.rglob("*.[ch]") if path.relative_to(folder).parts[0] not in {"lib", "model"}]
    assert len(files) >= 2
    check_formatted(files)


@pytest.mark.parametrize("board", board_names())
@pytest.mark.parametrize("name", KERNELS)
def test_every_board_has_a_port(name: str, board: str, tmp_path: Path) -> None:
    project = core(name, tmp_path / "project", board)
    found = load_board(board)
    port = KERNELS[name].port(found)
    assert re.search(rf"(FREERTOS_PORT|THREADX_ARCH) {port}\b", text_of(project, "kernel.cmake"))
    check_formatted([*project.folder.glob("*.[ch]"), *(project.folder / "kernel").glob("*.[ch]")])
    if name == "freertos":
        options = text_of(project, YOURS[name])
        assert re.search(rf"configCPU_CLOCK_HZ +{found.clock_hz}\n", options)
        assert ("configMAX_SYSCALL_INTERRUPT_PRIORITY" in options) is not found.cpu.features.baseline
        assert ("configRUN_FREERTOS_SECURE_ONLY" in options) is (found.cpu.type in {"cortex-m33", "cortex-m55"})


@pytest.mark.parametrize(
    ("fpu", "port"), [("none", "GCC_ARM_CM3"), ("fpv4-sp-d16", "GCC_ARM_CM4F")], ids=["soft", "hard"]
)
def test_freertos_has_a_port_for_cores_without_an_fpu(fpu: str, port: str) -> None:
    board = load_board("mps2-an386")
    assert KERNELS["freertos"].port(replace(board, cpu=replace(board.cpu, fpu=fpu))) == port


@pytest.mark.parametrize("name", KERNELS)
def test_a_core_that_cannot_be(name: str) -> None:
    board = load_board("mps2-an386")
    with pytest.raises(FerruleError, match="its core cortex-a9 is not supported in projects for ") as caught:
        KERNELS[name].port(replace(board, cpu=replace(board.cpu, type="cortex-a9")))
    assert "cortex-m33" in str(caught.value.hint)


@pytest.mark.parametrize("name", KERNELS)
def test_devices_are_made_and_bound(name: str, tmp_path: Path) -> None:
    project = with_devices(name, tmp_path / "project")
    text = text_of(project, "devices.c")
    for each in ("npu0", "npu1"):
        assert f"ferrule_device_bind(&{each}_device, &soft_npu_driver, &{each}_context)" in text
    assert f'#include "ferrule/platform/{name}.h"' in text
    assert "devices_power" not in text
    assert (project.folder / f"lib/platforms/{name}/src/{name}.c").is_file()
    other = core(name, tmp_path / "other").folder
    assert not (other / "devices.c").exists()
    assert not (other / f"lib/platforms/{name}/src/{name}.c").exists()


@pytest.mark.parametrize("name", KERNELS)
def test_handlers_of_devices_may_call_the_kernel(name: str, tmp_path: Path) -> None:
    """The priority after reset is the most urgent, from which FreeRTOS may not be called."""
    text = text_of(with_interrupt(name, tmp_path / "project", interrupt=28), "devices.c")
    lowered = text.index("ferrule_interrupt_lower(28u);")
    assert lowered < text.index("ferrule_interrupt_enable(28u);")
    bare = text_of(with_interrupt("bare-metal", tmp_path / "bare", interrupt=28), "devices.c")
    assert "ferrule_interrupt_lower" not in bare


@pytest.mark.parametrize("name", KERNELS)
def test_systick_is_the_kernels(name: str, tmp_path: Path) -> None:
    for make in (core, with_devices):
        folder = make(name, tmp_path / make.__name__).folder
        assert not list(folder.rglob("timer.c"))
        assert (folder / f"lib/platforms/{name}/src/{name}_cycles.c").is_file()
        assert "FERRULE_PORT_THREAD=1" in text_of_folder(folder)
        assert "FERRULE_CLOCK_HZ" not in text_of_folder(folder)


def text_of_folder(folder: Path) -> str:
    return (folder / "ferrule.cmake").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_the_users_stays(name: str, tmp_path: Path) -> None:
    folder = core(name, tmp_path / "project").folder
    mine = ("main.c", "CMakeLists.txt", "README.md", YOURS[name])
    for each in mine:
        (folder / each).write_text("mine", encoding="utf-8")
    again = core(name, folder)
    assert {each.name for each in again.kept} == {*mine}
    (folder / "kernel.cmake").write_text("mine", encoding="utf-8")
    with pytest.raises(FerruleError, match=r"changed by hand.*kernel\.cmake"):
        core(name, folder)


@pytest.mark.parametrize("name", KERNELS)
def test_the_compiler_is_gcc(name: str, tmp_path: Path) -> None:
    assert core(name, tmp_path / "one").notes == ()
    (note,) = core(name, tmp_path / "two", toolchain="zig").notes
    assert note == "it is built by arm-none-eabi-gcc, not by zig"


@pytest.mark.parametrize("name", KERNELS)
def test_the_same_input_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    one, two = with_interrupt(name, tmp_path / "one").folder, with_interrupt(name, tmp_path / "two").folder
    names = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(two) for path in two.rglob("*") if path.is_file())
    assert [each for each in names if (one / each).read_bytes() != (two / each).read_bytes()] == []
    for each in names:
        data = (one / each).read_bytes()
        assert not [place for place in (tmp_path, root(), Path.home()) if str(place).encode() in data], each


@pytest.mark.parametrize(
    ("line", "message"),
    [(128, "the vector table has 0 to 127|does not exist"), (240, "has interrupt 240")],
)
@pytest.mark.parametrize("name", KERNELS)
def test_interrupts_that_cannot_be(name: str, line: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(FerruleError, match=message):
        with_interrupt(name, tmp_path / "project", interrupt=line)
    assert not (tmp_path / "project").exists()
