# SPDX-License-Identifier: Apache-2.0
"""Every C program for a real kernel compiles against the fakes with the flags of its own test, which needs a tree.

The headers in stand_ins declare what programs call and adapters do not; the others are those of ferrule.testing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import small_networks
from children import ran
from conformance import DEVICE_SOURCES, STRICT
from conformance import FOLDER as CONFORMANCE
from needs import require_newlib
from two_models_networks import JOB, network, write_first, write_second

from ferrule import generate
from ferrule._frozen import frozen
from ferrule.firmware import Job, emit
from ferrule.resources import root
from ferrule.testing.compilation import FAKES

pytestmark = pytest.mark.cc
FOLDER = Path(__file__).parent
PLATFORMS = root() / "platforms"
GUEST = FOLDER.parent / "emulation" / "firmware"


@frozen
class Kernel:
    """The folders of headers of a kernel, and the macros of its builds."""

    includes: Sequence[Path]
    platform: str
    defines: Mapping[str, str]


def kernel(name: str, adapter: Path, platform: str, **defines: str) -> Kernel:
    includes = (FOLDER / "stand_ins" / name, adapter / "include", FAKES / name, FAKES / "host")
    return Kernel(includes=includes, platform=f"ferrule/platform/{platform}.h", defines=defines)


KERNELS = {
    "freertos": kernel("freertos", PLATFORMS / "freertos", "freertos", UART_BASE="0x40004000u"),
    "cmsis": kernel("cmsis", PLATFORMS / "cmsis", "cmsis", FERRULE_CMSIS_RTOS2="1"),
    "threadx": kernel("threadx", PLATFORMS / "threadx", "threadx"),
    "zephyr": kernel(
        "zephyr",
        PLATFORMS / "zephyr",
        "zephyr",
        CONFIG_FERRULE_DEVICE_OPEN_TIMEOUT_MS="1000",
        CONFIG_FERRULE_LOG_LEVEL="3",
        CONFIG_SYS_CLOCK_TICKS_PER_SEC="1000",
    ),
}
PROGRAMS = {
    "conformance/freertos/main.c": "freertos",
    "conformance/rtx5/main.c": "cmsis",
    "conformance/threadx/main.c": "threadx",
    "conformance/zephyr/src/main.c": "zephyr",
    "freertos/contention.c": "freertos",
    "cmsis/contention.c": "cmsis",
    "cmsis/switches.c": "cmsis",
    "zephyr/contention/src/main.c": "zephyr",
    "zephyr/switches/main.c": "zephyr",
    "two_models/freertos.c": "freertos",
    "two_models/cmsis.c": "cmsis",
    "two_models/zephyr.c": "zephyr",
}
"""Programs in tests/platforms, or in platforms, and their kernels."""
ELSEWHERE = {"bare_metal", "cmsis/bench.c", "cmsis/cmsdk_bench.c"}
"""C that tests compile which need no tree."""


def place(program: str) -> Path:
    return (PLATFORMS if program.startswith("conformance/") else FOLDER) / program


def compile_for(name: str, sources: Sequence[Path], *folders: Path, defines: Mapping[str, str] | None = None) -> None:
    """Compile C for a kernel without making anything."""
    chosen = KERNELS[name]
    conformance = (CONFORMANCE / "include", CONFORMANCE / "mps2_an385")
    includes = (*folders, *chosen.includes, *conformance, root() / "include", GUEST)
    given = {"FERRULE_CONFORMANCE_PLATFORM_H": f'"{chosen.platform}"', **chosen.defines, **(defines or {})}
    argv = [
        *(require_newlib("arm-none-eabi-gcc"), "-mcpu=cortex-m3", "-mthumb", *STRICT, "-Wno-undef", "-fsyntax-only"),
        *(f"-D{key}={value}" for key, value in given.items()),
        *(f"-I{folder}" for folder in includes),
        *map(str, sources),
    ]
    done = ran(argv, timeout=120)
    assert done.returncode == 0, done.stderr[-6000:]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Path]:
    """The folder of the models that programs include, and the folders of their headers."""
    folder = tmp_path_factory.mktemp("models")
    dense, first = emit(small_networks.dense(), Job()), emit(network("first"), JOB)
    for name, text in dense.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    write_first(folder, first)
    write_second(folder)
    (folder / "ferrule_first_devices.h").write_text(
        '#include "ferrule_first.h"\nint32_t ferrule_first_devices_start(void);\n'
        "extern const struct ferrule_first_devices ferrule_first_default_devices;\n",
        encoding="utf-8",
    )
    parts = [part for artifact in (dense, first) for part in artifact.contributions]
    return [folder, *(path for part in parts for path in part.include_paths)]


@pytest.mark.usefixtures("arm_gcc")
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_compiles(program: str, models: Sequence[Path]) -> None:
    compile_for(PROGRAMS[program], [place(program)], place(program).parent, *models)


@pytest.mark.usefixtures("arm_gcc")
@pytest.mark.parametrize("shared", [False, True], ids=["separate", "shared"])
@pytest.mark.parametrize("name", ["freertos", "threadx"])
def test_a_generated_project_compiles(name: str, shared: bool, tmp_path: Path) -> None:
    """What a project has besides the model and the library, which other tests compile."""
    networks = [network("first"), small_networks.dense()] if shared else network("first")
    job = replace(JOB, platform=name, board="mps2-an385", out=tmp_path, arena="shared" if shared else "separate")
    folder = generate(networks, job).folder
    library = [path for path in (folder / "lib").rglob("*") if path.name == "include"]
    sources = [*folder.glob("*.c"), *(folder / "kernel").glob("*.c")]
    assert {path.name for path in sources} >= {"main.c", "devices.c", *(["arena_lock.c"] if shared else [])}
    text = (folder / "ferrule.cmake").read_text(encoding="utf-8")
    defines = dict(re.findall(r"^    (FERRULE_\w+)=(\S+)$", text, re.MULTILINE))
    assert defines["FERRULE_PORT_THREAD"] == "1"
    compile_for(name, sources, folder, folder / "model", *library, defines=defines)


@pytest.mark.usefixtures("arm_gcc")
@pytest.mark.parametrize("name", KERNELS)
def test_the_conformance_program_compiles(name: str) -> None:
    board = CONFORMANCE / "mps2_an385" / "board.c"
    compile_for(name, [*sorted((CONFORMANCE / "src").glob("*.c")), board, *DEVICE_SOURCES])


def test_no_program_is_left_out() -> None:
    """A new program has to be compiled here, or by a test without a tree."""
    there = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.c")}
    there |= {f"conformance/{path.relative_to(CONFORMANCE).as_posix()}" for path in CONFORMANCE.glob("*/**/main.c")}
    listed = set(PROGRAMS) | ELSEWHERE
    assert {name for name in there if name not in listed and name.split("/")[0] not in ELSEWHERE} == set()
    assert all(place(name).is_file() for name in PROGRAMS)
