# SPDX-License-Identifier: Apache-2.0
"""The real csolution reads generated projects, and its build plan gives firmware that runs.

The tests run where CMSIS_TOOLBOX names an installation of CMSIS-Toolbox, and CMSIS_PATH, CMSIS_RTX_PATH and
CORTEX_DFP_PATH name checkouts of the packs. CMSIS_PACK_ROOT may name the folder of installed packs in place of these
three.
"""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import cmsis_project
import numpy as np
import pytest
import small_networks
from children import ran
from needs import require_program, require_variable
from numpy.testing import assert_array_equal

from ferrule.architectures import CORTEX_M
from ferrule.boards import load_board
from ferrule.emulation import Machine, engine
from ferrule.firmware.toolchain import gcc_for
from ferrule.link import LinkSession

pytestmark = [pytest.mark.cc, pytest.mark.slow]
PACKS = {"CMSIS_PATH": "CMSIS", "CMSIS_RTX_PATH": "CMSIS-RTX", "CORTEX_DFP_PATH": "Cortex_DFP"}

UNRELEASED = "1.1.1-dev"
"""The version of a checkout of Cortex_DFP between releases, whose description has 0.0.0."""


def pack_root(folder: Path) -> Path:
    """Return a folder with the packs as if installed."""
    installed = os.environ.get("CMSIS_PACK_ROOT")
    if installed:
        return Path(installed)
    for name, pack in PACKS.items():
        path = require_variable(name)
        release = ET.parse(path / f"ARM.{pack}.pdsc").getroot().find("releases/release")  # noqa: S314 the user's own
        assert release is not None
        version = str(release.get("version")).replace("0.0.0", UNRELEASED)
        home = folder / "ARM" / pack
        home.mkdir(parents=True)
        (home / version).symlink_to(path)
    return folder


def convert(folder: Path, packs: Path) -> dict[str, Any]:
    """Convert the project with csolution, and return its build plan for Release."""
    toolbox = require_variable("CMSIS_TOOLBOX")
    gcc = Path(require_program("arm-none-eabi-gcc", "apt-get install gcc-arm-none-eabi"))
    version = ran([gcc, "-dumpfullversion"], check=True).stdout.strip()
    environment = {
        **os.environ,
        "CMSIS_PACK_ROOT": str(packs),
        "CMSIS_COMPILER_ROOT": str(toolbox / "etc"),
        f"GCC_TOOLCHAIN_{version.replace('.', '_')}": str(gcc.parent),
    }
    argv = [str(toolbox / "bin" / "csolution"), "convert", f"{folder.name}.csolution.yml"]
    done = ran(argv, cwd=folder, env=environment, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    told = done.stdout + done.stderr
    assert "error csolution" not in told
    (path,) = folder.glob(f"{folder.name}.Release+*.cbuild.yml")
    return dict(cmsis_project.read_yaml(path)["build"])


def sources(build: dict[str, Any]) -> list[str]:
    """Return the files to compile, relative to the project."""
    files = [file for part in (*build["components"], *build["groups"]) for file in part["files"]]
    return [
        file["file"]
        for file in files
        if str(file.get("category", "")).startswith("source") and file.get("attr") != "template"
    ]


def compiled(folder: Path, build: dict[str, Any], core_flags: tuple[str, ...]) -> Path:
    """Compile and link csolution's build plan, without its build system."""
    defines = [
        f"-D{name}" if value is None else f"-D{name}={value}"
        for each in build["define"]
        for name, value in (each.items() if isinstance(each, dict) else [(each, None)])
    ]
    includes = [f"-I{path}" for path in build["add-path"]]
    gcc = require_program("arm-none-eabi-gcc", "apt-get install gcc-arm-none-eabi")
    argv = [gcc, *core_flags, "-O2", f"-std={build['language-C']}", *build["misc"]["C"], *defines, *includes]
    argv += [*build["misc"]["Link"], f"-Wl,-T,{build['linker']['script']}", *sources(build), "-o", "firmware.elf"]
    done = ran(argv, cwd=folder, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder / "firmware.elf"


@pytest.mark.emu
@pytest.mark.parametrize("board", ["mps2-an385", "mps2-an386", "mps2-an500", "mps2-an505"])
def test_csolution_takes_it(board: str, tmp_path: Path) -> None:
    require_variable("CMSIS_TOOLBOX")
    network = small_networks.dense()
    folder = cmsis_project.write(tmp_path / "dense", network, board=board).folder
    build = convert(folder, pack_root(tmp_path / "packs"))
    own = {name for name in sources(build) if not name.startswith(("..", "/", "RTE/"))}
    assert own == {*cmsis_project.cmake_lists(folder)["FERRULE_SOURCES"], "main.c"}
    described = load_board(board)
    elf = compiled(folder, build, gcc_for(CORTEX_M).target_flags(described))
    require_program("qemu-system-arm", "apt-get install qemu-system-arm")
    with engine("qemu").start(Machine(board=described, elf=elf)) as session, LinkSession(session.channel()) as link:
        inputs = [np.arange(-3, 3, dtype=np.int8).reshape(1, 6)]
        assert_array_equal(link.run(inputs).outputs[0], network.run(inputs)[0])
