# SPDX-License-Identifier: Apache-2.0
"""Projects for Zephyr: an application that is also a module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict

from ferrule.backends.contribution import DEVICE, LINK, RUNTIME, Contribution, merged
from ferrule.backends.firmware import address_fields
from ferrule.boards import Board, Peripheral
from ferrule.codegen import Program, memory_of
from ferrule.codegen.device_use import DeviceUse
from ferrule.dom import Call, Expression, Identifier
from ferrule.errors import FerruleError
from ferrule.firmware.platforms.library import (
    LOCK,
    Library,
    devices_header,
    model_files,
    model_sources,
    shared_values,
)
from ferrule.firmware.platforms.platform import LIBRARY_FOLDER, MODEL_FOLDER, Platform, ProjectFiles, ProjectRequest
from ferrule.firmware.platforms.zephyr_tools import NEWEST_TRIED, ZEPHYR_BOARDS, ZephyrBoard, ZephyrTools
from ferrule.firmware.template import rendered
from ferrule.firmware.wires import spare_uarts, wires
from ferrule.reading import files_below, list_folder, read_bytes
from ferrule.resources import root

MODULE_FOLDER = "platforms/zephyr"
"""Path of the module in the resources' root and in a project's `lib`."""
_MODULE = (DEVICE, LINK.without("serve"), RUNTIME.without("counter"))
"""The contributions that the module's own CMakeLists.txt compiles; it has Zephyr versions of the parts left out."""
_ADAPTER = Contribution(
    name=MODULE_FOLDER,
    folder=root() / MODULE_FOLDER,
    sources=tuple(f"src/{path.name}" for path in list_folder(root() / MODULE_FOLDER / "src", "*.c")),
    include_dirs=("include",),
    licence="Apache-2.0",
)
"""The module's own C, which its CMakeLists.txt selects from."""
_STACK_BYTES = 4096
"""Stack of each thread that runs a model, on a board that states none; docs/zephyr.md has what models use."""
_NATIVE_LINK = "uart1"
_NATIVE_FOLDER = "native"
"""Folder of the models with their devices in software, if native_sim has no others."""
_NATIVE_STEMS = ("native_sim", "native_sim_64")
"""File name stems for native_sim with 32 and 64 bits that all releases understand."""


def _link_uart(program: Program, board: Board) -> Peripheral:
    known = ZEPHYR_BOARDS.get(board.name)
    return board.link_uart if known is None else board.peripheral(_link(known, program, board))


def _files(request: ProjectRequest) -> ProjectFiles:
    program = request.program
    others = {memory_of(region) for artifact in program.artifacts for region in artifact.storage.others}
    if others:
        names = ", ".join(sorted(others))
        raise FerruleError(
            f"the workspace has parts in memory {names}, which devices reach, and a project for Zephyr cannot "
            "place them there",
            hint="give the devices the workspace's memory among their `regions`, leave out options that name a "
            "memory for scratch, or choose another platform",
        )
    soft = program.in_software
    library = Library.of(*program.contributions, *(() if soft is None else soft.contributions), *_MODULE)
    values = _values(request)
    return ProjectFiles(
        generated={
            **model_files(program),
            **library.files,
            **_module_files(),
            **_glue(program, values),
            **_native_files(program, values),
        },
        starters={**rendered(values, _STARTERS), **_board_files(request, values)},
        contributions=merged((*library.contributions, _ADAPTER)),
        build_hint=f"west build -b {_platforms(request)[-1]} {{folder}}",
        notes=tuple(_notes(request)),
    )


ZEPHYR_PLATFORM = Platform(
    name="zephyr",
    title="Zephyr 3.5 or later: an application with shell and log, and a module with the model",
    files=_files,
    tools=ZephyrTools(),
    no_self_test="Zephyr's build links it, makes zephyr.hex and zephyr.bin of the same link before any step of an "
    "application runs, and starts before the application: a record filled later is not in what is flashed",
    link_uart=_link_uart,
)
"""Applications whose main thread runs the model once and then serves the link."""
_STARTERS: Mapping[str, str] = {
    "src/main.c": "zephyr/main.c.j2",
    **{
        name: f"zephyr/{name}.j2"
        for name in ("CMakeLists.txt", "Kconfig", "README.md", "one_uart.conf", "prj.conf", "sample.yaml", "west.yml")
    },
}


def _values(request: ProjectRequest) -> dict[str, object]:
    program = request.program
    known, placement = ZEPHYR_BOARDS.get(request.board.name), request.board.placement
    nodes, wired = _nodes(program), wires(program, request.board)
    uart = ("ferrule/platform/zephyr_uart.h",) if wired else ()
    return {
        **shared_values(request),
        "newest_tried": f"v{NEWEST_TRIED}",
        "revision": f"v{NEWEST_TRIED if known is None or known.since is None else known.since}",
        "modules": ("cmsis", "cmsis_6", *(() if known is None else known.modules)),
        "zephyr_board": known,
        "platforms": _platforms(request),
        "stack_bytes": placement.stack_bytes if placement.stack_is_stated else _STACK_BYTES,
        "single_uart": _has_single_uart(request.board),
        "emulated": _is_emulated(request),
        "native": _runs_natively(request),
        "nodes": nodes,
        "controller": request.board.architecture.platform.devicetree,
        "addresses": {use.name: _address(use) for use in nodes if address_fields(use.driver)},
        "device_headers": tuple(dict.fromkeys((*uart, *(use.driver.header for use in program.devices)))),
        "wires": {wire.use.name: wire for wire in wired},
    }


def _native_files(program: Program, values: Mapping[str, object]) -> dict[str, bytes]:
    """Return the models with their devices in software, which native_sim runs in place of the others."""
    if program.in_software is None:
        return {}
    soft = program.in_software
    headers = tuple(dict.fromkeys(use.driver.header for use in soft.devices))
    values = {**values, "program": soft, "wires": {}, "addresses": {}, "device_headers": headers}
    variant = _variant(soft, f"{_NATIVE_FOLDER}/", f"{_NATIVE_FOLDER}/devices.c")
    templates = {f"{_NATIVE_FOLDER}/{name}": f"zephyr/{name}.j2" for name in ("devices.c", "sources.cmake")}
    return model_files(soft, f"{_NATIVE_FOLDER}/{MODEL_FOLDER}") | rendered({**values, "variant": variant}, templates)


def _variant(program: Program, folder: str, devices: str) -> dict[str, object]:
    """Return what the module compiles for a program whose generated C is in a folder, besides the device API."""
    glue = (*((devices,) if program.devices else ()), *((f"zephyr/{LOCK}",) if program.arena else ()))
    library = Library.of(*(part for part in program.contributions if part.name != DEVICE.name))
    return {
        **asdict(library.code((), f"{folder}{MODEL_FOLDER}")),
        "library_sources": library.sources,
        "model_sources": (*model_sources(program, f"{folder}{MODEL_FOLDER}"), *glue),
    }


def _module_files() -> dict[str, bytes]:
    folder = root() / MODULE_FOLDER
    return {
        f"{LIBRARY_FOLDER}/{MODULE_FOLDER}/{path.relative_to(folder).as_posix()}": read_bytes(path)
        for path in files_below(folder)
    }


def _glue(program: Program, values: Mapping[str, object]) -> dict[str, bytes]:
    files = {
        "sources.cmake": "sources.cmake.j2",
        "module.yml": "module.yml.j2",
        "Kconfig": "module.Kconfig.j2",
        "CMakeLists.txt": "module.CMakeLists.txt.j2",
    }
    if program.devices:
        files |= {"devices.c": "devices.c.j2", devices_header(program): "devices.h.j2"}
    if program.arena:
        files[LOCK] = f"{LOCK}.j2"
    variant = _variant(program, "", "zephyr/devices.c")
    templates = {f"zephyr/{name}": f"zephyr/{template}" for name, template in files.items()}
    return rendered({**values, "variant": variant}, templates)


def _board_files(request: ProjectRequest, values: Mapping[str, object]) -> dict[str, bytes]:
    board = ZEPHYR_BOARDS.get(request.board.name)
    files: dict[str, bytes] = {}
    if _runs_natively(request):
        native: dict[str, object] = {"link": _NATIVE_LINK, "nodes": (), "wires": {}, "pins": {}}
        files |= rendered({**values, **native}, _overlays(_NATIVE_STEMS))
    if board is not None:
        link = _link(board, request.program, request.board)
        files |= rendered({**values, "link": link, "pins": board.pins}, _overlays(board.stems))
    return files


def _overlays(stems: Iterable[str]) -> dict[str, str]:
    return {f"boards/{stem}.overlay": "zephyr/board.overlay.j2" for stem in stems}


def _nodes(program: Program) -> tuple[DeviceUse, ...]:
    """Return the devices that need a devicetree node."""
    return tuple(use for use in program.devices if use.driver.base is not None)


def _address(use: DeviceUse) -> Expression:
    """Return the expression for the address of a device's registers in the devicetree."""
    node = Call(Identifier("DT_NODELABEL"), (Identifier(f"ferrule_device{use.index}"),))
    return Call(Identifier("DT_REG_ADDR"), (node,))


def _runs_natively(request: ProjectRequest) -> bool:
    """Return whether the project runs on native_sim, which has no device registers and no UART for devices."""
    return request.program.in_software is not None or _is_emulated(request)


def _is_emulated(request: ProjectRequest) -> bool:
    """Return whether every emulator of the board has all devices: those in software."""
    return not _nodes(request.program) and not wires(request.program, request.board)


def _link(known: ZephyrBoard, program: Program, board: Board) -> str:
    """Return the devicetree label of the link's UART, which is neither the console's nor a device's.

    Raises:
        FerruleError: no UART is left.
    """
    taken = {wire.uart.name for wire in wires(program, board)}
    names = dict.fromkeys((known.link, *(uart.name for uart in spare_uarts(board))))
    link = next((name for name in names if name not in taken), None)
    if link is None:
        raise FerruleError(f"board {board.name} has no UART left for the link: devices have {', '.join(taken)}")
    return link


def _platforms(request: ProjectRequest) -> tuple[str, ...]:
    """Return the boards that the project runs on without changes, by Zephyr's current names."""
    board = ZEPHYR_BOARDS.get(request.board.name)
    native = ("native_sim/native/64",) if _runs_natively(request) else ()
    return (*native, *(() if board is None else (board.name,))) or ("BOARD",)


def _notes(request: ProjectRequest) -> Iterable[str]:
    board = request.board
    if board.name not in ZEPHYR_BOARDS:
        yield (
            f"no Zephyr board is known for {board.name}: an overlay boards/BOARD.overlay must choose "
            "ferrule,link-uart (README.md)"
        )
    absent = [use.device.name for use in _nodes(request.program)]
    absent += [wire.use.device.name for wire in wires(request.program, board)]
    if absent and request.program.in_software is not None:
        yield f"native_sim has {', '.join(absent)} in software: {_NATIVE_FOLDER}/"
    elif absent:
        reason = request.program.no_software or "the model's C was generated for another platform"
        yield f"there is no overlay for native_sim, which lacks {', '.join(absent)}: {reason}"
    if _has_single_uart(board):
        yield f"{board.name} has one UART, which the link uses: shell and log are disabled (prj.conf)"


def _has_single_uart(board: Board) -> bool:
    return sum(peripheral.type.startswith("UART.") for peripheral in board.peripherals) == 1
