# SPDX-License-Identifier: Apache-2.0
"""Builds by platforms' own tools, with stand-ins for the tools and trees.

The tests with real trees are tests/end_to_end/test_zephyr_accelerator.py and tests/platforms/cmsis/test_rtx.py.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import small_networks
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
from ferrule.progress import Step

Make = Callable[..., StandIn]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    return lambda **options: stand_in(tmp_path, monkeypatch, **options)


def compiled(folder: Path, name: str, board: str = "mps2-an385") -> None:
    """Compile a model with the stand-in, which yields no firmware."""
    with pytest.raises(FerruleError, match=f"the build for {name} ended without .*elf"):
        ferrule.compile(small_networks.dense(), platform=name, board=board, out=folder / "project")


def statuses() -> dict[str, ToolStatus]:
    return {each.name: each for each in probe_platforms()}


@pytest.mark.parametrize(("version", "name"), [("3.7.1", "mps2/an385"), ("3.6.0", "mps2_an385")])
def test_zephyrs_commands(version: str, name: str, make: Make, tmp_path: Path) -> None:
    trees = make(version=version)
    compiled(tmp_path, "zephyr")
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
    ("name", "variable", "message"),
    [
        ("zephyr", "ZEPHYR_BASE", "missing: ZEPHYR_BASE$"),
        ("zephyr", "ZEPHYR_MODULES", "missing: ZEPHYR_MODULES$"),
        ("cmsis", "CMSIS_PATH", "missing: CMSIS_PATH$"),
        ("cmsis", "CMSIS_RTX_PATH", "missing: CMSIS_RTX_PATH$"),
    ],
)
def test_a_variable_that_is_not_set(
    name: str, variable: str, message: str, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make()
    monkeypatch.delenv(variable)
    with pytest.raises(MissingToolError, match=f"firmware for {name} cannot be built here: {message}") as caught:
        ferrule.compile(small_networks.dense(), platform=name, out=tmp_path / "project")
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
        ferrule.compile(small_networks.dense(), platform="zephyr", board=board)
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
    project = ferrule.generate(small_networks.dense(), platform="cmsis", out=tmp_path / "project")
    assert project.manifest.board_name == "mps2-an386"
    with pytest.raises(FerruleError, match="whose own files state toolchain and optimization"):
        build_project(project, optimization="Os")
    path = project.folder / MANIFEST_NAME
    path.write_text(path.read_text().replace('"board_name": "mps2-an386",', ""))
    with pytest.raises(FerruleError, match="does not name its board: an older version"):
        build_project(load_project(project.folder))
    bare = ferrule.generate(small_networks.dense(), out=tmp_path / "bare")
    assert bare.manifest.board_name == ""


def test_an_engine_without_the_devices_is_refused_before_the_build(make: Make, qemu: str) -> None:
    trees = make(alone=False)
    assert qemu
    device = Device(name="dog", backend=BackendId("Woofles"))
    with pytest.raises(FerruleError, match="engine qemu cannot run board mps2-an386: device models on the board's bus"):
        ferrule.compile(
            small_networks.dense(),
            platform="cmsis",
            backends=("Woofles", "CpuAcc"),
            devices=(device,),
            engine="qemu",
        )
    assert not (trees.folder / "calls").exists()


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.parametrize(("name", "uart"), [("cmsis", "uart0"), ("zephyr", "uart1")])
def test_a_firmware_runs(name: str, uart: str, make: Make, arm_gcc: str) -> None:
    """A bare-metal firmware in place of the tree's: devices are attached, and the link is on the platform's UART."""
    del arm_gcc
    network, board = small_networks.dense(), load_board("mps2-an386")
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
