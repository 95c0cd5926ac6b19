# SPDX-License-Identifier: Apache-2.0
"""Generated projects for CMSIS, built with FreeRTOS as their kernel through its CMSIS-RTOS2 layer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cmsis_project
from children import ran
from needs import require_program, require_variable

from ferrule.architectures import CORTEX_M
from ferrule.boards import load_board
from ferrule.firmware.toolchain import gcc_for

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


def build(project: Path, main: Path | str, options: Sequence[str] = ()) -> Path:
    """Build a program with a project's library for mps2-an386, and with FreeRTOS as its kernel."""
    cmsis = require_variable("CMSIS_PATH") / "CMSIS"
    freertos = require_variable("CMSIS_FREERTOS_PATH")
    gcc = require_program("arm-none-eabi-gcc", "apt-get install gcc-arm-none-eabi")
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
        *(main, port / "port.c", layer / "Source" / "cmsis_os2.c"),
        *(freertos / "Source" / f"{name}.c" for name in KERNEL),
        cmsis / "RTOS2" / "Source" / "os_systick.c",
    )
    argv = [
        *(gcc, *gcc_for(CORTEX_M).target_flags(load_board("mps2-an386")), *lists["FERRULE_COMPILE_OPTIONS"]),
        *("-std=gnu11", "-D_RTE_", "-DFERRULE_CMSIS_RTOS2=1", "-DFERRULE_PORT_H=<ferrule/platform/cmsis_port.h>"),
        *(*options, *(f"-I{path}" for path in includes), *(f"-isystem{path}" for path in headers)),
        *(*map(str, sources), *lists["FERRULE_SOURCES"]),
        *(*lists["FERRULE_LINK_OPTIONS"][:-1], "-Wl,-T,firmware.ld", "-o", "firmware.elf"),
    ]
    done = ran(argv, cwd=project, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return project / "firmware.elf"
