# SPDX-License-Identifier: Apache-2.0
"""Builds by platforms' own tools, with stand-ins for the tools and trees.

The tests with real trees are tests/end_to_end/test_rtos_run.py, test_zephyr_accelerator.py there, and
tests/platforms/cmsis/test_rtx.py.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from small_networks import dense
from stand_in_trees import StandIn, stand_in

import ferrule
from ferrule.backends import BackendId, Device
from ferrule.boards import load_board
from ferrule.errors import FerruleError, MissingToolError
from ferrule.firmware import (
    BuildError,
    Job,
    ToolStatus,
    build_project,
    load_project,
    platform,
    probe_platforms,
    require_tools,
)
from ferrule.firmware.manifest import MANIFEST_NAME
from ferrule.firmware.platforms.zephyr_tools import ZEPHYR_BOARDS
from ferrule.progress import Step

Make = Callable[..., StandIn]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    return lambda **options: stand_in(tmp_path, monkeypatch, **options)


def compiled(folder: Path, name: str, board: str = "mps2-an385") -> None:
    """Compile a model with the stand-in, which yields no firmware."""
    with pytest.raises(FerruleError, match=f"the build for {name} ended without .*elf"):
        ferrule.compile(dense(), platform=name, board=board, out=folder / "project")


def statuses() -> dict[str, ToolStatus]:
    return {each.name: each for each in probe_platforms()}


@pytest.mark.parametrize(
    ("version", "board", "file", "name"),
    [
        ("3.7.1", "mps2-an385", "mps2_an385", "mps2/an385"),
        ("3.6.0", "mps2-an385", "mps2_an385", "mps2_an385"),
        ("4.0.0", "mps3-an547", "mps3_corstone300_an547", "mps3/corstone300/an547"),
        ("3.7.1", "mps3-an547", "mps3_an547", "mps3/an547"),
        ("3.5.0", "mps3-an547", "mps3_an547", "mps3_an547"),
        ("3.6.0", "nrf52840dk", "nrf52840dk_nrf52840", "nrf52840dk_nrf52840"),
        ("4.4.0", "nrf52840dk", "nrf52840dk_nrf52840", "nrf52840dk/nrf52840"),
        ("3.5.0", "stm32f4_discovery", "stm32f4_disco", "stm32f4_disco"),
    ],
)
def test_zephyrs_commands(
    version: str, board: str, file: str, name: str, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees = make(version=version, boards=(file,))
    modules = [str(trees.folder / module) for module in ("cmsis", *ZEPHYR_BOARDS[board].modules)]
    monkeypatch.setenv("ZEPHYR_MODULES", ";".join(modules))
    compiled(tmp_path, "zephyr", board)
    configure, build = trees.calls
    folder = tmp_path / "project"
    assert configure[:7] == ["-G", "Ninja", "-S", str(folder), "-B", str(folder / "build"), f"-DBOARD={name}"]
    assert "-DZEPHYR_TOOLCHAIN_VARIANT=gnuarmemb" in configure
    assert build[:2] == ["--build", str(folder / "build")]


def test_cmakes_cache_is_that_of_the_same_build(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CMake would go on with the board, the tree and the generator that are in its cache."""
    trees = make()
    build = tmp_path / "project" / "build"
    kept = build / "CMakeFiles" / "kept"

    def keeps_the_cache(name: str, board: str) -> bool:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.touch()
        compiled(tmp_path, name, board)
        return kept.exists()

    (build / "CMakeFiles").mkdir(parents=True)
    (build / "CMakeCache.txt").touch()  # a build of the user's own
    shutil.move(build, tmp_path / "build")
    compiled(tmp_path, "zephyr")
    shutil.rmtree(build)
    shutil.move(tmp_path / "build", build)
    assert not keeps_the_cache("zephyr", "mps2-an385")
    assert keeps_the_cache("zephyr", "mps2-an385")
    assert not keeps_the_cache("zephyr", "mps2-an386")
    shutil.copytree(trees.zephyr, trees.folder / "other")
    monkeypatch.setenv("ZEPHYR_BASE", str(trees.folder / "other"))
    assert not keeps_the_cache("zephyr", "mps2-an386")
    assert keeps_the_cache("zephyr", "mps2-an386")


@pytest.mark.parametrize(
    ("variable", "value"), [("ZEPHYR_TOOLCHAIN_VARIANT", "zephyr"), ("ZEPHYR_SDK_INSTALL_DIR", "/opt/sdk")]
)
def test_a_users_toolchain_is_zephyrs(
    variable: str, value: str, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees = make()
    (trees.programs / "arm-none-eabi-gcc").unlink()
    monkeypatch.setenv(variable, value)
    compiled(tmp_path, "zephyr")
    assert not [word for word in trees.calls[0] if "TOOLCHAIN" in word]
    tools = platform("zephyr").tools
    assert tools is not None
    assert tools.compiler() == "zephyr"


def test_cmsis_commands(make: Make, tmp_path: Path) -> None:
    trees = make()
    compiled(tmp_path, "cmsis")
    configure, build = trees.calls
    folder = tmp_path / "project"
    assert configure[configure.index("--toolchain") + 1] == str(folder / "toolchain.cmake")
    assert configure[-2:] == [f"-DCMSIS_PATH={trees.cmsis}", f"-DCMSIS_RTX_PATH={trees.rtx}"]
    assert build[:2] == ["--build", str(folder / "build")]


@pytest.mark.parametrize(
    ("name", "variable", "version"),
    [("freertos", "FREERTOS_KERNEL_PATH", "11.1.0+"), ("threadx", "THREADX_PATH", "6.4.2")],
)
def test_the_commands_of_kernels(name: str, variable: str, version: str, make: Make, tmp_path: Path) -> None:
    trees = make()
    compiled(tmp_path, name)
    configure, build = trees.calls
    folder = tmp_path / "project"
    assert configure[configure.index("--toolchain") + 1] == str(folder / "toolchain.cmake")
    assert configure[-1] == f"-D{variable}={getattr(trees, name)}"
    assert build[:2] == ["--build", str(folder / "build")]
    assert (statuses()[variable].found, statuses()[variable].version) == (True, version)


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("freertos", "V11.1.0+", "V10.6.2", r"FREERTOS_KERNEL_PATH names FreeRTOS 10\.6\.2, expected 11 or later"),
        ("freertos", "V11.1.0+", "main", r"FREERTOS_KERNEL_PATH names FreeRTOS \?, expected 11 or later"),
        (
            "threadx",
            "MINOR_VERSION 4",
            "MINOR_VERSION 1",
            r"names ThreadX 6\.1\.2, expected 6\.2 or later",
        ),
        ("threadx", "_VERSION", "_EDITION", r"THREADX_PATH names ThreadX \?, expected 6\.2 or later"),
    ],
)
def test_releases_of_kernels_that_cannot_be(
    name: str, old: str, new: str, message: str, make: Make, tmp_path: Path
) -> None:
    trees = make()
    header = {"freertos": trees.freertos / "include" / "task.h", "threadx": trees.threadx / "common/inc/tx_api.h"}[name]
    header.write_text(header.read_text().replace(old, new))
    with pytest.raises(FerruleError, match=message) as caught:
        ferrule.compile(dense(), platform=name, out=tmp_path / "project")
    assert "check out a newer release" in str(caught.value.hint)
    assert not (tmp_path / "project").exists()


def test_a_module_that_a_board_needs_is_asked_for_before_the_build(make: Make, tmp_path: Path) -> None:
    trees = make(boards=("nrf52840dk_nrf52840",))
    with pytest.raises(
        MissingToolError, match=r"for nrf52840dk: ZEPHYR_MODULES lacks the module hal_nordic$"
    ) as caught:
        ferrule.compile(dense(), platform="zephyr", board="nrf52840dk", out=tmp_path / "project")
    assert str(trees.zephyr / "west.yml") in str(caught.value.hint)
    assert not (tmp_path / "project").exists()


def test_a_workspace_has_its_modules(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    trees = make(boards=("nrf52840dk_nrf52840",))
    (trees.folder / ".west").mkdir()
    monkeypatch.delenv("ZEPHYR_MODULES")
    tools = platform("zephyr").tools
    assert tools is not None
    tools.check("nrf52840dk")


def test_modules_that_are_none_of_the_trees(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder's name is a module's name unless its description states one."""
    trees = make()
    other = trees.folder / "renamed"
    shutil.copytree(trees.folder / "cmsis", other)
    monkeypatch.setenv("ZEPHYR_MODULES", str(other))
    status = statuses()["ZEPHYR_MODULES"]
    assert (status.found, status.problem) == (True, "it lists renamed, and this tree needs cmsis")
    tools = platform("zephyr").tools
    assert tools is not None
    with pytest.raises(MissingToolError, match="cannot be built here: ZEPHYR_MODULES: it lists renamed, and this tree"):
        require_tools(tools, "mps2-an385")
    (other / "zephyr" / "module.yml").write_text("name: cmsis\nbuild:\n")
    assert statuses()["ZEPHYR_MODULES"].works
    header = trees.zephyr / "modules" / "cmsis_6" / "cmsis_core.h"
    header.parent.mkdir(parents=True)
    header.touch()
    assert statuses()["ZEPHYR_MODULES"].problem == "it lists cmsis, and this tree needs cmsis_6"
    monkeypatch.setenv("ZEPHYR_MODULES", str(trees.folder / "nowhere"))
    assert statuses()["ZEPHYR_MODULES"].problem == f"no module of Zephyr is at {trees.folder / 'nowhere'}"


def test_a_compiler_without_its_c_library(make: Make, tmp_path: Path) -> None:
    """It is found, and a build for CMSIS would fail at the first file that includes <string.h>."""
    trees = make()
    gcc = trees.programs / "arm-none-eabi-gcc"
    gcc.write_text(
        '#!/bin/sh\ncase "$*" in *nano.specs*) echo "gcc: fatal error: nano.specs: No such file" >&2; exit 1;; esac\n'
    )
    status = statuses()["newlib"]
    assert (status.found, status.remedy) == (False, "apt-get install libnewlib-arm-none-eabi")
    with pytest.raises(MissingToolError, match=r"firmware for cmsis cannot be built here: missing: newlib$"):
        ferrule.compile(dense(), platform="cmsis", out=tmp_path / "project")
    assert not (tmp_path / "project").exists()
    tools = platform("zephyr").tools
    assert tools is not None
    require_tools(tools, "mps2-an385")  # Zephyr has a C library of its own


def test_a_python_that_is_too_old_for_the_tree(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    trees = make()
    listing = trees.zephyr / "cmake" / "modules" / "python.cmake"
    listing.parent.mkdir(parents=True)
    listing.write_text("set(PYTHON_MINIMUM_REQUIRED 3.10)\n")
    assert statuses()["Python of Zephyr"].found
    listing.write_text("set(PYTHON_MINIMUM_REQUIRED 3.99)\n")
    status = statuses()["Python of Zephyr"]
    assert (status.found, status.remedy) == (False, "put a python3 of version 3.99 or later first on PATH")


@pytest.mark.parametrize(
    ("name", "variable", "message"),
    [
        ("zephyr", "ZEPHYR_BASE", "missing: ZEPHYR_BASE$"),
        ("zephyr", "ZEPHYR_MODULES", "missing: ZEPHYR_MODULES$"),
        ("cmsis", "CMSIS_PATH", "missing: CMSIS_PATH$"),
        ("cmsis", "CMSIS_RTX_PATH", "missing: CMSIS_RTX_PATH$"),
        ("freertos", "FREERTOS_KERNEL_PATH", "missing: FREERTOS_KERNEL_PATH$"),
        ("threadx", "THREADX_PATH", "missing: THREADX_PATH$"),
    ],
)
def test_a_variable_that_is_not_set(
    name: str, variable: str, message: str, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make()
    monkeypatch.delenv(variable)
    with pytest.raises(MissingToolError, match=f"firmware for {name} cannot be built here: {message}") as caught:
        ferrule.compile(dense(), platform=name, out=tmp_path / "project")
    assert f"set {variable} to " in str(caught.value.hint)
    assert not (tmp_path / "project").exists()


def test_a_variable_that_names_something_else(make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    make()
    monkeypatch.setenv("CMSIS_PATH", str(tmp_path / "none"))
    status = statuses()["CMSIS_PATH"]
    assert not status.found
    assert "none', where ARM.CMSIS.pdsc is missing" in status.remedy


def test_programs_that_are_missing(make: Make) -> None:
    trees = make()
    for name in ("dtc", "ninja"):
        (trees.programs / name).unlink()
    tools = platform("zephyr").tools
    assert tools is not None
    with pytest.raises(MissingToolError, match=r"missing: ninja, dtc$") as caught:
        require_tools(tools, "mps2-an385")
    assert "apt-get install ninja-build; apt-get install device-tree-compiler" in str(caught.value.hint)


def test_pythons_packages(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The packages are those that the tree's scripts import; Ferrule's own Python is used if only that has them."""
    trees = make()
    python = trees.programs / "python3"
    assert statuses()["Python of Zephyr"].path == str(python)
    script = trees.zephyr / "scripts" / "zephyr_module.py"
    script.write_text("from elftools.elf import x\nimport yaml_own\n    import numpy\n")
    python.write_text("#!/bin/sh\necho elftools\n")  # says that it lacks this module
    found = statuses()["Python of Zephyr"]
    assert (found.found, found.path) == (True, sys.executable)
    assert found.purpose.endswith("which import elftools")
    monkeypatch.setattr(sys, "executable", str(python))
    missing = statuses()["Python of Zephyr"]
    assert not missing.found
    assert missing.remedy == f"{python} -m pip install pyelftools"


def test_a_west_workspace_needs_no_modules(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    trees = make()
    monkeypatch.delenv("ZEPHYR_MODULES")
    (trees.folder / ".west").mkdir()
    assert statuses()["ZEPHYR_MODULES"].found
    assert statuses()["Python of Zephyr"].purpose.endswith("which import west")


@pytest.mark.parametrize(
    ("version", "board", "message"),
    [
        ("3.7.1", "mps2-an500", r"Zephyr 3\.7\.1 .* mps2-an500: this tree has no board mps2/an500$"),
        ("3.7.1", "mps2-an505", "mps2-an505: no Zephyr board is known for mps2-an505$"),
        ("3.4.0", "mps2-an385", r"ZEPHYR_BASE names Zephyr 3\.4\.0, expected 3\.5 or later$"),
    ],
)
def test_boards_and_releases_that_cannot_be(version: str, board: str, message: str, make: Make) -> None:
    make(version=version, boards=("mps2_an385",))
    with pytest.raises(FerruleError, match=message) as caught:
        ferrule.compile(dense(), platform="zephyr", board=board)
    if "no" in message:
        assert "boards that it has: mps2-an385" in str(caught.value.hint)


def test_a_version_that_cannot_be_read(make: Make) -> None:
    trees = make()
    (trees.zephyr / "VERSION").write_text("VERSION_MAJOR = x\n")
    tools = platform("zephyr").tools
    assert tools is not None
    assert tools.needs()[0].version is None
    with pytest.raises(FerruleError, match="VERSION states no version of Zephyr"):
        tools.check("mps2-an385")


def test_a_build_that_fails_leaves_no_firmware(make: Make, tmp_path: Path) -> None:
    trees = make()
    compiled(tmp_path, "zephyr")
    program = tmp_path / "project" / "build" / "zephyr" / "zephyr.elf"
    program.parent.mkdir()
    program.write_bytes(b"old")
    trees.let_cmake_fail("error: no memory left")
    project = load_project(tmp_path / "project")
    steps: list[Step] = []
    with pytest.raises(BuildError, match="error: no memory left") as caught:
        build_project(project, progress=steps.append)
    assert "-DBOARD=mps2/an385" in caught.value.argv
    assert not program.exists()
    assert [step.phase for step in steps] == ["configuring with Zephyr 3.7.1"]


def test_what_ferrule_build_needs(make: Make, tmp_path: Path) -> None:
    make()
    project = ferrule.generate(dense(), platform="cmsis", out=tmp_path / "project")
    assert project.manifest.board_name == "mps2-an386"
    with pytest.raises(FerruleError, match="whose own files state toolchain and optimization"):
        build_project(project, optimization="Os")
    path = project.folder / MANIFEST_NAME
    path.write_text(path.read_text().replace('"board_name": "mps2-an386",', ""))
    with pytest.raises(FerruleError, match="does not name its board: an older version"):
        build_project(load_project(project.folder))
    bare = ferrule.generate(dense(), out=tmp_path / "bare")
    assert bare.manifest.board_name == ""


def test_an_engine_without_the_devices_is_refused_before_the_build(make: Make, qemu: str) -> None:
    trees = make(alone=False)
    assert qemu
    device = Device(name="dog", backend=BackendId("Woofles"))
    with pytest.raises(FerruleError, match="engine qemu cannot run board mps2-an386: device models on the board's bus"):
        ferrule.compile(
            dense(),
            platform="cmsis",
            backends=("Woofles", "CpuAcc"),
            devices=(device,),
            engine="qemu",
        )
    assert not (trees.folder / "calls").exists()


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.parametrize(
    ("name", "uart"), [("cmsis", "uart0"), ("freertos", "uart0"), ("threadx", "uart0"), ("zephyr", "uart1")]
)
def test_a_firmware_runs(name: str, uart: str, make: Make, arm_gcc: str) -> None:
    """A bare-metal firmware in place of the tree's: devices are attached, and the link is on the platform's UART."""
    del arm_gcc
    network, board = dense(), load_board("mps2-an386")
    device = Device(name="dog", backend=BackendId("Woofles"), binding={"use_interrupt": 1})
    job = Job(backends=("Woofles", "CpuAcc"), devices=(device,), toolchain="arm-none-eabi-gcc")
    bare = ferrule.compile(network, replace(job, board=replace(board, link_uart=board.peripheral(uart))))
    trees = make(alone=False)
    trees.firmware.write_bytes(bare.elf.read_bytes())
    firmware = ferrule.compile(network, replace(job, board=board, platform=name, toolchain="zig"))
    assert firmware.toolchain == "arm-none-eabi-gcc"
    report = firmware.run(trace_devices=True)
    assert (report.verdict, report.document.build.toolchain) == ("exact", "arm-none-eabi-gcc")
    assert report.document.device_trace is not None
    assert report.document.device_trace.as_planned
    reason = f"the threads and interrupts of {name} have stacks of their own"
    assert report.memory.ram.stack_bound_reason == reason
