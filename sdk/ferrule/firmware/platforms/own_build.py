# SPDX-License-Identifier: Apache-2.0
"""Libraries for programs with their own build: a model's C and all that it calls, for CMake, make and others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from ferrule._typing import override
from ferrule.backends.contribution import BARE_METAL, CMSIS, FREERTOS, HEADERS, SELF_TEST, THREADX, Contribution
from ferrule.boards import Board, Peripheral
from ferrule.codegen import Artifact, Program
from ferrule.errors import FerruleError
from ferrule.firmware import seal
from ferrule.firmware.platforms.kernels import FREERTOS_KERNEL
from ferrule.firmware.platforms.library import Library, model_files, model_sources, shared_values
from ferrule.firmware.platforms.platform import MODEL_FOLDER, SEAL, Platform, ProjectFiles, ProjectRequest
from ferrule.firmware.platforms.tools import TreeTools
from ferrule.firmware.probe import ToolStatus
from ferrule.firmware.template import rendered
from ferrule.reading import read_bytes

ESP_IDF = "idf_component.yml"
"""The manifest by which a folder is a component of ESP-IDF, whose kernel is a FreeRTOS."""
LIBRARY = "library"
"""Name of the platform whose projects have no adapter; with one, its platform's name follows."""
_ADAPTERS: Mapping[str, tuple[tuple[Contribution, tuple[str, ...]], ...]] = {
    "": (),
    "bare-metal": ((BARE_METAL, ("bare_metal",)),),
    "cmsis": ((CMSIS, ("cmsis", "cmsis_usart")),),
    "freertos": ((FREERTOS, ("freertos",)),),
    "threadx": ((THREADX, ("threadx",)),),
}
"""By platform: the contributions of its adapter, and the sources of each that are needed."""


class _YourBuild(TreeTools):
    """The build of the user's program, which Ferrule does not know."""

    @override
    def needs(self) -> list[ToolStatus]:
        raise FerruleError(
            "a library is no firmware: the build of your program compiles it",
            hint="its README.md has the lines for CMake and make",
        )


def _no_link(_program: Program, _board: Board) -> Peripheral:
    raise FerruleError("a library has no link")


def _library_platform(adapter: str) -> Platform:
    """Return the platform of static libraries, without a main function, start-up code, linker script or link.

    `adapter` is the platform whose adapter of the device API is in the library; empty for none.
    """
    name, inside = (f"{LIBRARY}-{adapter}", f", with the device adapter for {adapter}") if adapter else (LIBRARY, "")
    return Platform(
        name=name,
        title=f"a library for your own build{inside}: a CMake package, a list for make, and plain lists",
        files=partial(_files, adapter),
        tools=_YourBuild(platform=name, title="", trees=()),
        link_uart=_no_link,
    )


def _files(adapter: str, request: ProjectRequest) -> ProjectFiles:
    artifact = request.program.single
    if artifact is None:
        raise FerruleError(
            f"a library has one model, {len(request.program.artifacts)} are given",
            hint="generate a library for each: one program can have several",
        )
    parts = [part.part(*names) for part, names in _ADAPTERS[adapter]] if artifact.devices else []
    line = request.board.cache_line_bytes
    if line:  # by this macro the executor maintains the data cache of the board's core
        parts.append(replace(HEADERS, defines={"FERRULE_CACHE_LINE": f"{line}u"}))
    library = Library.of(*artifact.contributions, *parts, *(SELF_TEST if request.self_test else ()))
    link = f"{MODEL_FOLDER}/ferrule_{artifact.symbol}_link."  # it describes the model for the serial link
    model = {name: data for name, data in model_files(request.program).items() if not name.startswith(link)}
    own = [name for name in model_sources(request.program) if not name.startswith(link)]
    code = library.code(own, MODEL_FOLDER)
    values: dict[str, object] = {
        **shared_values(request),
        "artifact": artifact,
        "model": artifact.graph,
        "adapter": adapter if artifact.devices else "",
        **asdict(code),
        "esp_idf": adapter == FREERTOS_KERNEL.name,
    }
    names = ("CMakeLists.txt", "ferrule.mk", "README.md", *((ESP_IDF,) if values["esp_idf"] else ()))
    templates = {name: f"library/{name}.j2" for name in names}
    return ProjectFiles(
        generated={
            **model,
            **library.files,
            **rendered(values, {**templates, f"{artifact.symbol}-config.cmake": "library/config.cmake.j2"}),
            **({SEAL: read_bytes(Path(seal.__file__))} if request.self_test else {}),
            "sources.txt": _lines(code.sources),
            "include_dirs.txt": _lines((*code.include_dirs, *code.system_include_dirs)),
        },
        starters={},
        contributions=library.contributions,
        code=code,
        build_hint=f"find_package({artifact.symbol}) in CMake, or as {{folder}}/README.md states",
        notes=tuple(_notes(adapter, artifact)),
    )


def _notes(adapter: str, artifact: Artifact) -> Iterable[str]:
    if adapter and not artifact.devices:
        yield f"the model runs on the core alone: the adapter for {adapter} is left out"
    if not adapter and artifact.devices:
        names = ", ".join(use.device.name for use in artifact.devices)
        yield f"the model uses {names}: the program needs an adapter of its platform (docs/platforms.md)"


def _lines(names: Iterable[str | Path]) -> bytes:
    return "".join(f"{name}\n" for name in names).encode()


LIBRARIES: Mapping[str, Platform] = {platform.name: platform for platform in map(_library_platform, _ADAPTERS)}
"""The libraries by name, the one without an adapter first."""
