# SPDX-License-Identifier: Apache-2.0
"""Projects for CMSIS 6 with RTX5: a csolution with layers, and a CMakeLists.txt for the same files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ferrule.architectures import CORTEX_M
from ferrule.backends.contribution import CMSIS, DEVICE, RUNTIME
from ferrule.firmware.linker import linker_script
from ferrule.firmware.plan import SCRIPT_NAME, SourceSet
from ferrule.firmware.platforms.cmsis_board import CmsisBoard, cmsis_board
from ferrule.firmware.platforms.cmsis_solution import (
    COMPONENTS,
    LayerFiles,
    default_yaml,
    layer_yaml,
    project_yaml,
    solution_yaml,
)
from ferrule.firmware.platforms.library import (
    LOCK,
    POWER,
    Library,
    devices_header,
    link_of,
    model_files,
    model_sources,
    shared_values,
)
from ferrule.firmware.platforms.platform import MODEL_FOLDER, Platform, ProjectFiles, ProjectRequest
from ferrule.firmware.platforms.tools import GCC, Tree, TreeTools, gcc_notes
from ferrule.firmware.template import rendered
from ferrule.firmware.toolchain import WARNINGS
from ferrule.firmware.wires import wires
from ferrule.reading import list_folder, read_text
from ferrule.rendering import Verbatim

BOARD_FOLDER = "board"
CMAKE_FOLDER = "cmake"
PLATFORM_LAYER = "platform.clayer.yml"

DEFINITIONS = {
    "FERRULE_CMSIS_RTOS2": "1",
    "FERRULE_CMSIS_MUTEX_BYTES": "28",  # RTX5's size; nothing is allocated
    "FERRULE_CMSIS_EVENT_FLAGS_BYTES": "16",
    "FERRULE_PORT_H": "<ferrule/platform/cmsis_port.h>",  # not every tool passes quotes on
}
_PLATFORM = (
    CMSIS,
    DEVICE.part("device"),
    RUNTIME.without("counter"),  # it uses SysTick, which the kernel needs here; cmsis_counter.c replaces it
    replace(CORTEX_M.startup.part("fault"), include_dirs=(".",)),
)
"""The contributions in the platform's layer, besides the link."""

_RTX_SOURCES = (
    "rtx_delay",
    "rtx_evflags",
    "rtx_evr",
    "rtx_kernel",
    "rtx_lib",
    "rtx_memory",
    "rtx_mempool",
    "rtx_msgqueue",
    "rtx_mutex",
    "rtx_semaphore",
    "rtx_system",
    "rtx_thread",
    "rtx_timer",
)


def _pack_version(path: Path) -> str | None:
    """Return the newest release that the description of a pack lists."""
    text = read_text(list_folder(path, "*.pdsc")[0], errors="replace")
    found = re.search(r'<release version="([^"]+)"', text)
    return None if found is None else found[1]


TREES = (
    Tree("CMSIS_PATH", "a checkout of ARM-software/CMSIS_6", "ARM.CMSIS.pdsc", _pack_version),
    Tree("CMSIS_RTX_PATH", "a checkout of ARM-software/CMSIS-RTX", "ARM.CMSIS-RTX.pdsc", _pack_version),
)


def _files(request: ProjectRequest) -> ProjectFiles:
    program, name = request.program, request.program.symbol
    interrupts = ((use.name, use.driver.interrupt) for use in program.devices)
    board = cmsis_board(request.board, [(each, line) for each, line in interrupts if line is not None])
    layers = model, platform = _split(request)
    values = _values(request, board, layers)
    model_name = f"{name}.clayer.yml"
    library = Library.of(*program.contributions, *_PLATFORM, link_of(program))
    generated = dict(_GENERATED)
    if program.arena:
        generated[LOCK] = f"cmsis/{LOCK}.j2"
    if program.devices:
        generated |= {"devices.c": "cmsis/devices.c.j2", devices_header(program): "bare_metal/devices.h.j2"}
    return ProjectFiles(
        generated={
            **model_files(program),
            **library.files,
            **rendered(values, generated),
            SCRIPT_NAME: linker_script(request.board, entry="Reset_Handler").encode(),
            model_name: layer_yaml("AI", f"The model {name}, its weights and its kernels", model).encode(),
            PLATFORM_LAYER: layer_yaml(
                "Board",
                f"Ferrule's devices and link on CMSIS-RTOS2, and start-up of {request.board.name}",
                platform,
                SCRIPT_NAME,
            ).encode(),
            "cdefault.yml": default_yaml(_compile_flags(request), _LINK_FLAGS).encode(),
        },
        starters={
            **rendered(values, _STARTERS | ({POWER: f"cmsis/{POWER}.j2"} if values["names"] else {})),
            f"{name}.csolution.yml": solution_yaml(name, request.board, board, request.optimization).encode(),
            f"{name}.cproject.yml": project_yaml(name, ("main.c",), (model_name, PLATFORM_LAYER)).encode(),
        },
        contributions=library.contributions,
        build_hint=f"cbuild {{folder}}/{name}.csolution.yml --packs",
        notes=gcc_notes(request.toolchain),
    )


CMSIS_PLATFORM = Platform(
    name="cmsis",
    title="CMSIS 6 with RTX5: a csolution for CMSIS-Toolbox, and a CMakeLists.txt",
    files=_files,
    tools=TreeTools(platform="cmsis", title="CMSIS and RTX5", trees=TREES),
    no_self_test="the linker script, the start-up and the converted files are those of your device's pack and its "
    "tools, which have no step of Ferrule's after their link",
)
"""Programs in which a thread of CMSIS-RTOS2 runs the model once and then serves the link."""

_GENERATED: Mapping[str, str] = {
    "ferrule.cmake": "cmsis/ferrule.cmake.j2",
    "toolchain.cmake": "bare_metal/toolchain.cmake.j2",
    f"{CMAKE_FOLDER}/RTE_Components.h": "cmsis/RTE_Components.h.j2",
    f"{CMAKE_FOLDER}/device.h": "cmsis/device.h.j2",
    f"{BOARD_FOLDER}/startup.c": "cmsis/startup.c.j2",
    f"{BOARD_FOLDER}/system.c": "cmsis/system.c.j2",
    f"{BOARD_FOLDER}/usart.c": "cmsis/usart.c.j2",
}
_STARTERS: dict[str, str] = {
    "main.c": "cmsis/main.c.j2",
    "CMakeLists.txt": "cmsis/CMakeLists.txt.j2",
    "README.md": "cmsis/README.md.j2",
}


def _split(request: ProjectRequest) -> tuple[LayerFiles, LayerFiles]:
    """Return the contents of the model's layer and of the platform's layer."""
    program = request.program
    own, platform = Library.of(*program.contributions), Library.of(*_PLATFORM, link_of(program))
    code = own.code((), MODEL_FOLDER)
    kernels = tuple(name for name in own.sources if name not in code.third_party)
    link = tuple(name for name in model_sources(program) if name.endswith(f"_link{program.writer.source_suffix}"))
    rest = tuple(name for name in platform.sources if name not in own.sources)
    board = tuple(sorted(name for name in _GENERATED if name.startswith(BOARD_FOLDER)))
    devices = ("devices.c",) if program.devices else ()
    lock = (LOCK,) if program.arena else ()
    return (
        LayerFiles(
            groups={"Model": tuple(n for n in model_sources(program) if n not in link), "Kernels": kernels},
            code=code,
        ),
        LayerFiles(
            groups={"Link": link, "Ferrule": (*rest, *devices, *lock), "Board": board},
            code=SourceSet(
                include_dirs=(*((".",) if devices else ()), *platform.code().include_dirs),
                defines={
                    **DEFINITIONS,
                    **request.board.architecture.startup_for(request.board.cache_line_bytes).defines,
                    **link_of(program).defines,
                },
            ),
        ),
    )


_LINK_FLAGS = ("-nostartfiles", "--specs=nano.specs", "--specs=nosys.specs", "-Wl,--gc-sections")


def _compile_flags(request: ProjectRequest) -> tuple[str, ...]:
    """Return GCC's flags except those for the core, the optimization level and whatever csolution has keys for."""
    core = GCC.target_flags(request.board)
    flags = GCC.compile_flags(request.board, request.optimization)
    return tuple(flag for flag in flags if flag not in core and not flag.startswith(("-O", "-std=", "-ffreestanding")))


def _values(request: ProjectRequest, board: CmsisBoard, layers: Sequence[LayerFiles]) -> dict[str, object]:
    program = request.program
    usart = ("ferrule/platform/cmsis_usart.h",) if any(use.driver.wire for use in program.devices) else ()
    return {
        **shared_values(request),
        "cmsis": board,
        "macro_width": max(map(len, board.macros)),
        "interrupts": {vector.number: vector.stem for vector in board.devices},
        "wires": {wire.use.name: (wire, board.usart(wire.uart)) for wire in wires(program, request.board)},
        "device_headers": sorted({"ferrule/platform/cmsis.h", *usart, *(use.driver.header for use in program.devices)}),
        "names": [use.name for use in program.devices if use.driver.wire is None],
        "toolchain": GCC,
        "sources": tuple(sorted(source for layer in layers for source in layer.sources)),
        "include_dirs": tuple(dict.fromkeys(name for layer in layers for name in layer.code.include_dirs)),
        "third_party": tuple(name for layer in layers for name in layer.code.third_party),
        "system_include_dirs": tuple(name for layer in layers for name in layer.code.system_include_dirs),
        "cmake_folder": CMAKE_FOLDER,
        "definitions": [each for layer in reversed(layers) for each in layer.code.defines.items()],
        "script": SCRIPT_NAME,
        "core_flags": GCC.target_flags(request.board),
        "compile_flags": ("-std=c11", *_compile_flags(request)),
        "warnings": WARNINGS,
        "link_flags": _LINK_FLAGS,
        "components": COMPONENTS,
        # the files that csolution takes from packs for `COMPONENTS`, as paths for CMake
        "component_sources": [
            Verbatim("${CMSIS_PATH}/CMSIS/RTOS2/Source/os_systick.c"),
            Verbatim("${CMSIS_RTX_PATH}/Config/RTX_Config.c"),
            *(Verbatim(f"${{CMSIS_RTX_PATH}}/Source/{name}.c") for name in _RTX_SOURCES),
            Verbatim(f"${{CMSIS_RTX_PATH}}/Source/GCC/{board.core.rtx_handlers}"),
        ],
        "component_include_dirs": (
            Verbatim("${CMSIS_PATH}/CMSIS/Core/Include"),
            Verbatim("${CMSIS_PATH}/CMSIS/Driver/Include"),
            Verbatim("${CMSIS_PATH}/CMSIS/RTOS2/Include"),
            Verbatim("${CMSIS_RTX_PATH}/Include"),
            Verbatim("${CMSIS_RTX_PATH}/Config"),
        ),
    }
