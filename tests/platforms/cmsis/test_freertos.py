# SPDX-License-Identifier: Apache-2.0
"""The CMSIS adapter on FreeRTOS, through its CMSIS-RTOS2 layer, on an emulated board.

The tests run where CMSIS_PATH and CMSIS_FREERTOS_PATH name checkouts of ARM-software/CMSIS_6 and
ARM-software/CMSIS-FreeRTOS.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import cmsis_project
import pytest
import small_networks
from needs import require_module, require_program, require_variable

from ferrule.boards import load_board
from ferrule.firmware import GccToolchain

pytestmark = [pytest.mark.cc, pytest.mark.emu, pytest.mark.slow]
FOLDER = Path(__file__).parent
COMPONENTS = """\
#define CMSIS_device_header "device.h"
#define RTE_CMSIS_RTOS2
#define RTE_CMSIS_RTOS2_FreeRTOS
#define RTE_RTOS_FreeRTOS_CORE
#define RTE_RTOS_FreeRTOS_TIMERS
#define RTE_RTOS_FreeRTOS_EVENTGROUPS
#define RTE_RTOS_FreeRTOS_HEAP_4
"""
KERNEL = ("tasks", "queue", "list", "timers", "event_groups", "stream_buffer", "portable/MemMang/heap_4")


def build(folder: Path, options: Sequence[str] = ()) -> Path:
    """Build contention.c with a project's library, and with FreeRTOS as its kernel."""
    cmsis = require_variable("CMSIS_PATH") / "CMSIS"
    freertos = require_variable("CMSIS_FREERTOS_PATH")
    gcc = require_program("arm-none-eabi-gcc", "apt-get install gcc-arm-none-eabi")
    project = cmsis_project.write(folder, small_networks.dense()).folder
    lists = cmsis_project.cmake_lists(project)
    (project / "kernel").mkdir()
    (project / "kernel" / "RTE_Components.h").write_text(COMPONENTS, encoding="utf-8")
    layer = freertos / "CMSIS" / "RTOS2" / "FreeRTOS"
    port = freertos / "Source" / "portable" / "GCC" / "ARM_CM4F"
    includes = ("kernel", *lists["FERRULE_INCLUDE_DIRS"])
    headers = (
        *(cmsis / "Core" / "Include", cmsis / "Driver" / "Include", cmsis / "RTOS2" / "Include"),
        *(layer / "Include", layer / "Config", freertos / "Source" / "include", port),
    )
    sources = (
        *(FOLDER / "contention.c", port / "port.c", layer / "Source" / "cmsis_os2.c"),
        *(freertos / "Source" / f"{name}.c" for name in KERNEL),
        cmsis / "RTOS2" / "Source" / "os_systick.c",
    )
    argv = [
        *(gcc, *GccToolchain().target_flags(load_board("mps2-an386")), *lists["FERRULE_COMPILE_OPTIONS"]),
        *("-std=gnu11", "-D_RTE_", "-DFERRULE_CMSIS_RTOS2=1", "-DFERRULE_PORT_H=<ferrule/platform/cmsis_port.h>"),
        *(*options, *(f"-I{path}" for path in includes), *(f"-isystem{path}" for path in headers)),
        *(*map(str, sources), *lists["FERRULE_SOURCES"]),
        *(*lists["FERRULE_LINK_OPTIONS"][:-1], "-Wl,-T,firmware.ld", "-o", "firmware.elf"),
    ]
    done = subprocess.run(argv, cwd=project, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return project / "firmware.elf"


def test_two_threads_contend(tmp_path: Path) -> None:
    require_module("unicorn", "pip install 'ferrule[run]'")
    elf = build(tmp_path / "project")
    for name in ("qemu", "unicorn"):
        assert cmsis_project.contention(elf, name) == cmsis_project.IN_TURNS


def test_without_the_lock_they_meet(tmp_path: Path) -> None:
    told = cmsis_project.contention(build(tmp_path / "project", ["-DNO_LOCK"]))
    assert told["overlaps"] > told["runs"] / 2
