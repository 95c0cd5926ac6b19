# SPDX-License-Identifier: Apache-2.0
"""Trees of kernels with no more than what Ferrule looks at, and a cmake that records its arguments."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from ferrule._frozen import frozen

PROGRAMS = ("cmake", "ninja", "dtc", "arm-none-eabi-gcc")
_CMAKE = """#!/bin/sh
case "$1" in
--version) echo cmake version 9.9.9; exit 0;;
esac
echo "$*" >> {log}
{fail}
case "$1" in
--build) [ ! -f {firmware} ] || for name in zephyr/zephyr.elf firmware.elf; do
    mkdir -p "$(dirname "$2/$name")"; cp {firmware} "$2/$name"; done;;
*) while [ "$1" != -B ]; do shift; done; mkdir -p "$2"; touch "$2/CMakeCache.txt";;
esac
"""
_MAKES = 'while [ $# -gt 0 ]; do [ "$1" != -o ] || : > "$2"; shift; done\n'
"""Makes the file that a compiler is told to make."""
_THREADX_VERSION = """\
#define THREADX_MAJOR_VERSION 6
#define THREADX_MINOR_VERSION 4
#define THREADX_PATCH_VERSION 2
"""


@frozen
class StandIn:
    """The folder of the stand-ins."""

    folder: Path

    @property
    def programs(self) -> Path:
        """The first folder on the PATH."""
        return self.folder / "bin"

    @property
    def zephyr(self) -> Path:
        return self.folder / "zephyr"

    @property
    def cmsis(self) -> Path:
        return self.folder / "CMSIS_6"

    @property
    def rtx(self) -> Path:
        return self.folder / "CMSIS-RTX"

    @property
    def freertos(self) -> Path:
        return self.folder / "FreeRTOS-Kernel"

    @property
    def threadx(self) -> Path:
        return self.folder / "threadx"

    @property
    def firmware(self) -> Path:
        """The ELF file that a build yields, if there is one."""
        return self.folder / "stand-in.elf"

    @property
    def calls(self) -> list[list[str]]:
        """The arguments of every call of cmake."""
        return [shlex.split(line) for line in (self.folder / "calls").read_text().splitlines()]

    def let_cmake_fail(self, words: str) -> None:
        """Let every command of cmake end with 1 and these words, except `--version`."""
        self._write_cmake(f"echo {shlex.quote(words)} >&2; exit 1")

    def _write_cmake(self, fail: str) -> None:
        places = {"log": self.folder / "calls", "firmware": self.firmware}
        quoted = {name: shlex.quote(str(path)) for name, path in places.items()}
        _program(self.programs / "cmake", _CMAKE.format(**quoted, fail=fail))

    def make(self, version: str, boards: tuple[str, ...]) -> None:
        """Write the programs and the trees."""
        self.programs.mkdir(parents=True)
        for name in PROGRAMS:
            _program(self.programs / name, f"#!/bin/sh\necho {name} 9.9.9\n{_MAKES}")
        for name in ("sh", "mkdir", "cp", "touch", "dirname"):
            (self.programs / name).symlink_to(str(shutil.which(name)))
        _program(self.programs / "python3", f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
        self._write_cmake("")
        names = ("VERSION_MAJOR", "VERSION_MINOR", "PATCHLEVEL")
        numbers = "".join(f"{name} = {number}\n" for name, number in zip(names, version.split("."), strict=True))
        for name, text in {
            "zephyr/VERSION": numbers,
            "zephyr/scripts/zephyr_module.py": "import os\nfrom json import dumps\n",
            **{f"zephyr/boards/arm/{board}/{board}.dts": "" for board in boards},
            **{f"{name}/zephyr/module.yml": "build:\n" for name in ("cmsis", "hal_nordic", "hal_stm32")},
            "CMSIS_6/ARM.CMSIS.pdsc": '<release version="6.1.0">',
            "CMSIS-RTX/ARM.CMSIS-RTX.pdsc": "",
            "FreeRTOS-Kernel/include/FreeRTOS.h": "",
            "FreeRTOS-Kernel/include/task.h": '#define tskKERNEL_VERSION_NUMBER "V11.1.0+"\n',
            "threadx/common/inc/tx_api.h": _THREADX_VERSION,
        }.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text)


def stand_in(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    version: str = "3.7.1",
    boards: tuple[str, ...] = ("mps2_an385", "mps2_an386"),
    alone: bool = True,
) -> StandIn:
    """Return stand-ins in a new folder, and let PATH and the platforms' variables name them.

    Without `alone`, the programs that were on the PATH remain there.
    """
    made = StandIn(folder=folder / "trees")
    made.make(version, boards)
    for name in ("ZEPHYR_TOOLCHAIN_VARIANT", "ZEPHYR_SDK_INSTALL_DIR", "GNUARMEMB_TOOLCHAIN_PATH"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "PATH": made.programs if alone else f"{made.programs}{os.pathsep}{os.environ['PATH']}",
        "ZEPHYR_BASE": made.zephyr,
        "ZEPHYR_MODULES": made.folder / "cmsis",
        "CMSIS_PATH": made.cmsis,
        "CMSIS_RTX_PATH": made.rtx,
        "FREERTOS_KERNEL_PATH": made.freertos,
        "THREADX_PATH": made.threadx,
    }.items():
        monkeypatch.setenv(name, str(value))
    return made


def _program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
