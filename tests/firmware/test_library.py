# SPDX-License-Identifier: Apache-2.0
"""Libraries for programs with their own build: built by CMake, by make and from the plain lists, they compute the same.

All folders have names with spaces.
"""

from __future__ import annotations

import json
import shlex
import struct
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import cmsis_project
import device_networks
import numpy as np
import pytest
import small_networks
from children import ran
from click.testing import CliRunner
from needs import require_module, require_program, require_variable

from ferrule import compile, generate  # noqa: A004
from ferrule._version import VERSION
from ferrule.boards import load_board
from ferrule.cli.main import cli
from ferrule.codegen import Artifact
from ferrule.errors import FerruleError
from ferrule.firmware import LIBRARIES, Job, Project, build_project, load_project, write_project
from ferrule.firmware.image import read_image
from ferrule.firmware.manifest import read_manifest
from ferrule.formats import to_tflite
from ferrule.testing.compilation import FAKES

MAIN = """
#include <stdio.h>

#include "ferrule/status.h"
#include "ferrule_dense.h"
#ifdef SECOND
#include "ferrule_two_by_two.h"
#endif

int main(void)
{
#ifdef SECOND
    if (ferrule_two_by_two_run(&ferrule_two_by_two_default_inputs, &ferrule_two_by_two_default_outputs,
                               &ferrule_two_by_two_default_memory, NULL) != FERRULE_OK) {
        return 4;
    }
#endif
    int8_t x[6];
    int8_t y[4];
    const struct ferrule_dense_inputs inputs = {.x = x};
    const struct ferrule_dense_outputs outputs = {.y = y};
    if (fread(x, 1, sizeof x, stdin) != sizeof x) {
        return 1;
    }
    if (ferrule_dense_run(&inputs, &outputs, &ferrule_dense_default_memory, NULL) != FERRULE_OK) {
        return 2;
    }
    return fwrite(y, 1, sizeof y, stdout) == sizeof y ? 0 : 3;
}
"""
DEVICES = """
#include "tvm/platform/bare_metal.h"
#include "tvmgen_crossing.h"

#include <stdio.h>

static tvm_device_t first;
static tvm_device_t second;
static int8_t x[144];
static int8_t h[144];
static int8_t late[5];

int main(void)
{
    struct tvmgen_crossing_inputs inputs = {.x = x};
    struct tvmgen_crossing_outputs outputs = {.h = h, .late = late};
    struct tvmgen_crossing_devices devices = {.npu0 = &first, .npu1 = &second};

    if (fread(x, 1, sizeof x, stdin) != sizeof x || TVMDeviceInit(&first) != 0 || TVMDeviceInit(&second) != 0 ||
        TVMDevicePlatformBind(&first, NULL) != 0 || TVMDevicePlatformBind(&second, NULL) != 0 ||
        tvmgen_crossing_run(&inputs, &outputs, &devices) != 0) {
        return 1;
    }
    return fwrite(h, 1, sizeof h, stdout) + fwrite(late, 1, sizeof late, stdout) == 149 ? 0 : 2;
}
"""
IDENTIFIED = """
#include "ferrule_dense.h"
#include "ferrule_dense_identity.h"

const struct ferrule_identity *volatile carried;

int main(void)
{
    carried = &ferrule_dense_identity;
    return 0;
}
"""
TESTED = """
#include <stdint.h>

#include "ferrule/self_test.h"
#include "ferrule_dense.h"

extern const uint8_t stored[];
extern uint8_t data_start[];
extern uint8_t data_end[];
extern uint8_t bss_end[];
extern uint32_t stack_top[];

const char note[] __attribute__((used)) = "a constant";
volatile uint32_t results[3] = {99, 99, 99};
int8_t y[4];

__attribute__((noinline, used)) void done(void)
{
    for (;;) {
    }
}

void reset(void)
{
    const uint8_t *from = stored;
    for (volatile uint8_t *to = data_start; to != data_end; to++) {
        *to = *from++;
    }
    for (volatile uint8_t *to = data_end; to != bss_end; to++) {
        *to = 0;
    }
    results[0] = ferrule_self_test_result();
    results[1] = ferrule_self_test();
    static const int8_t x[6] = {1, -2, 3, -4, 5, -6};
    const struct ferrule_dense_inputs inputs = {.x = x};
    const struct ferrule_dense_outputs outputs = {.y = y};
    results[2] = (uint32_t)ferrule_dense_run(&inputs, &outputs, &ferrule_dense_default_memory, NULL);
    done();
}

__attribute__((section(".vectors"), used)) static void *const vectors[2] = {stack_top, (void *)reset};
"""
TESTED_SCRIPT = """
SECTIONS
{
    .vectors 0x08000000 : { KEEP(*(.vectors)) }
    .text : { *(.text*) }
    .rodata : { *(.rodata*) . = ALIGN(4); }
    .coefficients : { *(.ferrule_weights) . = ALIGN(4); }
    stored = .;
    .data 0x20000000 : AT(stored) { data_start = .; *(.data*) . = ALIGN(4); data_end = .; }
    .bss : { *(.bss*) *(COMMON) . = ALIGN(8); bss_end = .; . += 4096; stack_top = .; }
    /DISCARD/ : { *(.ARM.exidx*) }
}
"""
TWICE = "find_package(dense CONFIG REQUIRED)\n" * 2
SECOND = """
find_package(two_by_two CONFIG REQUIRED)
target_link_libraries(app PRIVATE ferrule::two_by_two)
target_compile_definitions(app PRIVATE SECOND)
"""
FOLDER = 'add_subdirectory("${CMAKE_CURRENT_SOURCE_DIR}/../the library" dense)'
CMAKE = """
cmake_minimum_required(VERSION 3.20)
project(app LANGUAGES C)
@FOUND@
add_executable(app main.c)
target_link_libraries(app PRIVATE ferrule::dense)
@SECOND@
"""
MAKEFILE = """
include ../library/ferrule.mk

app: main.c $(FERRULE_SOURCES)
	$(CC) $(FERRULE_CFLAGS) -O1 -Wall -Wextra -Werror $(FERRULE_INCLUDES) $^ -o $@
"""


def dense(folder: Path, name: str = "the library") -> Project:
    return generate(small_networks.dense(), platform="library", out=folder / name)


@cache
def artifact() -> Artifact:
    return device_networks.artifact()


def crossing(folder: Path, platform: str = "library-bare-metal", name: str = "library") -> Project:
    return write_project(artifact(), Job(platform=platform, out=folder / name))


def called(argv: Sequence[str | Path], folder: Path) -> None:
    done = ran(argv, cwd=folder, timeout=120)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "warning" not in (done.stdout + done.stderr).lower()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder whose path has a space."""
    made = tmp_path / "my programs"
    made.mkdir()
    return made


def app(place: Path, found: str, second: str = "") -> Path:
    """Write a program that uses the library, and return its folder."""
    folder = place / "app"
    folder.mkdir()
    (folder / "main.c").write_text(MAIN)
    (folder / "CMakeLists.txt").write_text(CMAKE.replace("@FOUND@", found).replace("@SECOND@", second))
    return folder


@pytest.mark.cc
def test_cmake_finds_the_packages(place: Path, host_cc: tuple[str, ...]) -> None:
    """A package that two parts of a program want is added once, and a program may have several libraries."""
    cmake = require_program("cmake", "apt-get install cmake")
    require_program("make", "apt-get install make")
    folder = app(place, TWICE, SECOND)
    options = [f"-DCMAKE_C_COMPILER={host_cc[0]}", "-DCMAKE_C_FLAGS=-Wall -Werror"]
    second = generate(small_networks.two_by_two(), platform="library", out=place / "second").folder
    prefix = f"-DCMAKE_PREFIX_PATH={dense(place).folder};{second}"
    called([cmake, "-S", ".", "-B", "build", "-G", "Unix Makefiles", prefix, *options], folder)
    called([cmake, "--build", "build"], folder)
    x = np.random.default_rng(3).integers(-128, 128, (1, 6)).astype(np.int8)
    done = subprocess.run([folder / "build" / "app"], input=x.tobytes(), capture_output=True, check=True, timeout=60)
    assert done.stdout == small_networks.dense().run([x])[0].tobytes()


@pytest.mark.cc
def test_cmake_adds_the_folder_for_a_core(place: Path, arm_newlib: str) -> None:
    cmake = require_program("cmake", "apt-get install cmake")
    dense(place)
    folder = app(place, FOLDER)
    core = [
        "-DCMAKE_SYSTEM_NAME=Generic",
        f"-DCMAKE_C_COMPILER={arm_newlib}",
        "-DCMAKE_C_FLAGS=-mcpu=cortex-m4 -mthumb",
    ]
    static = "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY"
    called([cmake, "-S", ".", "-B", "build", "-G", "Unix Makefiles", static, *core], folder)
    called([cmake, "--build", "build", "--target", "ferrule_dense"], folder)
    assert (folder / "build" / "dense" / "libferrule_dense.a").is_file()


@pytest.mark.cc
def test_make_builds_a_library_with_devices(place: Path, host_cc: tuple[str, ...]) -> None:
    """The program is in the first form of TVM's RFC, and the adapter is Ferrule's."""
    make = require_program("make", "apt-get install make")
    crossing(place)
    folder = place / "app"
    folder.mkdir()
    (folder / "main.c").write_text(DEVICES)
    (folder / "Makefile").write_text(MAKEFILE)
    called([make, f"CC={shlex.join(host_cc)}"], folder)
    x = device_networks.sample()
    done = subprocess.run([folder / "app"], input=x.tobytes(), capture_output=True, check=True, timeout=60)
    assert done.stdout == b"".join(output.tobytes() for output in device_networks.crossing().run([x]))


@pytest.mark.cc
def test_the_lists_are_enough_for_a_cross_compiler(place: Path, arm_newlib: str) -> None:
    folder = crossing(place).folder
    includes = [f"-I{name}" for name in (folder / "include_dirs.txt").read_text().splitlines()]
    sources = (folder / "sources.txt").read_text().splitlines()
    core = ("-mcpu=cortex-m4", "-mthumb", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only")
    called([arm_newlib, *core, *includes, *sources], folder)
    manifest = read_manifest(folder)
    assert list(manifest.sources) == sources
    assert [f"-I{name}" for name in (*manifest.include_dirs, *manifest.system_include_dirs)] == includes


@pytest.mark.cc
def test_the_adapter_for_cmsis_compiles(place: Path, arm_newlib: str) -> None:
    cmsis = require_variable("CMSIS_PATH") / "CMSIS"
    folder = crossing(place, "library-cmsis").folder
    includes = [f"-I{name}" for name in (folder / "include_dirs.txt").read_text().splitlines()]
    includes += [f"-I{cmsis / name}" for name in ("Driver/Include", "RTOS2/Include", "Core/Include")]
    core = ("-mcpu=cortex-m4", "-mthumb", "-std=c11", "-Wall", "-Wextra", "-Werror", "-DFERRULE_CMSIS_RTOS2=1")
    called([arm_newlib, *core, "-fsyntax-only", *includes, *(folder / "sources.txt").read_text().splitlines()], folder)


@pytest.mark.cc
@pytest.mark.nightly
def test_a_program_that_refers_to_the_identity_carries_it(place: Path, arm_newlib: str) -> None:
    (place / "dense.tflite").write_bytes(to_tflite(small_networks.dense()))
    folder = generate(place / "dense.tflite", platform="library", out=place / "library").folder
    (place / "main.c").write_text(IDENTIFIED)
    includes = [f"-I{folder / name}" for name in (folder / "include_dirs.txt").read_text().splitlines()]
    sources = [str(folder / name) for name in (folder / "sources.txt").read_text().splitlines()]
    link = ("--specs=nosys.specs", "-nostartfiles", "-Wl,--gc-sections", "-Wl,--entry=main")
    argv = [arm_newlib, "-mcpu=cortex-m4", "-mthumb", "-std=c11", "-fdata-sections", *includes, "main.c", *sources]
    subprocess.run([*argv, *link, "-o", "app.elf"], cwd=place, capture_output=True, check=True, timeout=120)
    done = CliRunner().invoke(cli, ["verify", str(place / "app.elf"), str(place / "dense.tflite")])
    assert done.exit_code == 0, done.output
    assert "built for library on mps2-an386" in done.output


@pytest.fixture(scope="module")
def sealed(arm_newlib: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with start-up code, linker script and build of its own around a library with a self-test."""
    place = tmp_path_factory.mktemp("my programs")
    folder = generate(small_networks.dense(), platform="library", self_test=True, out=place / "library").folder
    (place / "main.c").write_text(TESTED)
    (place / "app.ld").write_text(TESTED_SCRIPT)
    includes = [f"-I{folder / name}" for name in (folder / "include_dirs.txt").read_text().splitlines()]
    sources = [folder / name for name in (folder / "sources.txt").read_text().splitlines()]
    flags = ("-mcpu=cortex-m4", "-mthumb", "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-ffunction-sections")
    link = ("-nostartfiles", "-T", "app.ld", "-Wl,--gc-sections", "-Wl,--entry=reset", "-o", "empty.elf")
    called([arm_newlib, *flags, *includes, "main.c", *sources, *link], place)
    (place / "app.elf").write_bytes((place / "empty.elf").read_bytes())
    called([sys.executable, "-I", "-S", folder / "seal.py", "app.elf"], place)
    return place


def results(elf: Path, flipped: str = "") -> tuple[list[int], bytes]:
    """Run such a program from its reset on; return its results and the output of the model.

    `flipped` is the symbol whose first byte has a bit inverted in memory: flash decays after the program is loaded.
    """
    from unicorn import UC_ARCH_ARM, UC_MODE_MCLASS, UC_MODE_THUMB, Uc
    from unicorn.arm_const import UC_ARM_REG_SP

    image = read_image(elf)
    core = Uc(UC_ARCH_ARM, UC_MODE_THUMB | UC_MODE_MCLASS)
    core.mem_map(0x0800_0000, 1 << 16)
    core.mem_map(0x2000_0000, 1 << 16)
    for segment in image.segments:
        core.mem_write(segment.address, bytes(segment.data))
    if flipped:
        place = image.address_of(flipped)
        core.mem_write(place, bytes([core.mem_read(place, 1)[0] ^ 4]))
    core.reg_write(UC_ARM_REG_SP, image.address_of("stack_top"))
    core.emu_start(image.entry | 1, image.address_of("done"))
    found = core.mem_read(image.address_of("results"), 12)
    return list(struct.unpack("<3I", found)), bytes(core.mem_read(image.address_of("y"), 4))


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.parametrize(
    ("name", "flipped", "part"),
    [
        ("app.elf", "", 0),
        ("app.elf", "done", 1),
        ("app.elf", "note", 2),
        ("app.elf", "ferrule_dense_y_weights", 2),
        ("app.elf", "stored", 2),
        ("app.elf", "ferrule_self_test_record", 4),
        ("empty.elf", "", 5),
    ],
)
def test_a_program_with_its_own_start_up_tests_itself(sealed: Path, name: str, flipped: str, part: int) -> None:
    """It names the part that is damaged in memory; one without a record says that nothing was compared."""
    require_module("unicorn", "pip install 'ferrule[run]'")
    (before, found, status), output = results(sealed / name, flipped)
    assert (before, found, status) == (5, part, 0)
    if not flipped:
        x = np.array([[1, -2, 3, -4, 5, -6]], np.int8)
        assert output == small_networks.dense().run([x])[0].tobytes()


@pytest.mark.parametrize("platform", LIBRARIES)
def test_it_has_the_model_and_what_it_calls_only(platform: str, place: Path) -> None:
    folder = crossing(place, platform).folder
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {"CMakeLists.txt", "README.md", "crossing-config.cmake", "ferrule.mk", "include_dirs.txt"} < names
    assert not [name for name in names if "link" in name.split("/")[-1] and not name.startswith("lib/include")]
    assert not [name for name in names if name.endswith((".ld", "main.c", "devices.c")) or "startup" in name]
    adapters = {Path(name).parts[2] for name in names if name.startswith("lib/platforms/")}
    assert adapters == ({platform.removeprefix("library-").replace("-", "_")} if platform != "library" else set())
    parts = {each["name"] for each in json.loads((folder / "sbom.cdx.json").read_text())["components"]}
    assert {"src_c/kernels", "src_c/device", "backends/soft_npu"} < parts
    assert set(read_manifest(folder).sources) == {name for name in names if name.endswith(".c")}


def test_a_core_with_a_data_cache_needs_its_macro(place: Path) -> None:
    assert dict(dense(place).manifest.defines) == {}
    board = next(name for name in ("mps2-an500", "mps3-an547") if load_board(name).cache_line_bytes)
    folder = generate(small_networks.dense(), platform="library", board=board, out=place / "cached").folder
    line = load_board(board).cache_line_bytes
    for name in ("CMakeLists.txt", "ferrule.mk", "README.md"):
        assert f"FERRULE_CACHE_LINE={line}u" in (folder / name).read_text()


def test_notes_state_what_is_missing_or_left_out(place: Path) -> None:
    (note,) = crossing(place, "library").notes
    assert "needs an adapter of its platform" in note
    (note,) = generate(small_networks.dense(), platform="library-cmsis", out=place / "core").notes
    assert "the adapter for cmsis is left out" in note


def test_ferrule_does_not_build_it(place: Path) -> None:
    project = dense(place)
    for build in (
        lambda: build_project(load_project(project.folder)),
        lambda: compile(small_networks.dense(), platform="library"),
    ):
        with pytest.raises(FerruleError, match="a library is no firmware"):
            build()
    assert not (project.folder / "build").exists()


ESP_IDF = """
cmake_minimum_required(VERSION 3.20)
project(app LANGUAGES C)
set(ESP_PLATFORM 1)
function(idf_component_register)
    cmake_parse_arguments(PARSE_ARGV 0 IT "" "" "SRCS;INCLUDE_DIRS;REQUIRES")
    file(WRITE ${CMAKE_BINARY_DIR}/requires ${IT_REQUIRES})
    add_library(component OBJECT ${IT_SRCS})
    target_include_directories(component PUBLIC ${IT_INCLUDE_DIRS} @FAKES@)
    target_compile_definitions(component PRIVATE ESP_PLATFORM)
    target_compile_options(component PRIVATE -Wall -Wextra -Werror)
    set(COMPONENT_LIB component PARENT_SCOPE)
endfunction()
add_subdirectory(@LIBRARY@ esp-idf)
"""
"""A project in which a function of ours stands for ESP-IDF's."""


@pytest.mark.cc
def test_a_library_for_freertos_is_a_component_of_esp_idf(place: Path, host_cc: tuple[str, ...]) -> None:
    cmake = require_program("cmake", "apt-get install cmake")
    folder = crossing(place, "library-freertos").folder
    manifest = cmsis_project.read_yaml(folder / "idf_component.yml")
    assert (manifest["version"], manifest["dependencies"]) == (VERSION, {"idf": ">=5.0"})
    app = place / "app"
    app.mkdir()
    fakes = " ".join(f'"{FAKES / name}"' for name in ("freertos", "host"))
    text = ESP_IDF.replace("@FAKES@", fakes).replace("@LIBRARY@", f'"{folder}"')
    (app / "CMakeLists.txt").write_text(text, encoding="utf-8")
    called([cmake, "-S", app, "-B", app / "build", f"-DCMAKE_C_COMPILER={host_cc[0]}"], app)
    called([cmake, "--build", app / "build"], app)
    assert (app / "build" / "requires").read_text() == "freertos"
    objects = {path.name.removesuffix(".o") for path in (app / "build").rglob("*.c.o")}
    listed = {Path(line).name for line in (folder / "sources.txt").read_text().splitlines()}
    assert objects == listed > {"freertos.c", "device.c", "ferrule_crossing.c"}
    other = crossing(place, "library-threadx", "other").folder
    assert not (other / "idf_component.yml").exists()
    assert "idf_component_register" not in (other / "CMakeLists.txt").read_text(encoding="utf-8")


def test_an_unknown_library_names_the_others(place: Path) -> None:
    with pytest.raises(FerruleError, match="there is no platform 'library-zephyr'"):
        generate(small_networks.dense(), platform="library-zephyr", out=place / "library")
    assert list(place.iterdir()) == []


def command(folder: Path, *options: str) -> tuple[int, str]:
    """Return exit code and output of the command, or the text of its error."""
    (folder / "dense.tflite").write_bytes(to_tflite(small_networks.dense()))
    argv = ["generate", str(folder / "dense.tflite"), "--library", "--out", str(folder / "made"), *options]
    done = CliRunner().invoke(cli, argv)
    return done.exit_code, done.output + str(done.exception or "")


def test_the_command_writes_a_library(place: Path) -> None:
    code, output = command(place)
    assert code == 0, output
    assert "find_package(dense)" in output
    assert (place / "made" / "dense-config.cmake").is_file()
    code, output = command(place, "--optimization", "Os")
    assert code == 0, output
    assert "set(FERRULE_OPTIMIZATION -Os)" in (place / "made" / "CMakeLists.txt").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--platform", "zephyr"), "there is no library with an adapter for zephyr"),
        (("--toolchain", "arm-none-eabi-gcc"), "--toolchain is not valid with --library"),
        (("--emit-renode", "renode"), "--emit-renode is not valid with --library"),
        (("--target", "arm-cpu-c++"), "--library is not valid with --target"),
    ],
)
def test_options_of_firmware_are_refused(options: tuple[str, ...], message: str, place: Path) -> None:
    code, output = command(place, *options)
    assert (code, message in output) == (1, True), output
    assert sorted(path.name for path in place.iterdir()) == ["dense.tflite"]


def test_a_folder_with_something_else_is_left_alone(place: Path) -> None:
    project = dense(place)
    (project.folder / "ferrule.mk").write_text("mine")
    with pytest.raises(FerruleError, match=r"changed by hand and would be lost: ferrule\.mk"):
        dense(place)
    with pytest.raises(FerruleError, match="holds a project for library"):
        generate(small_networks.dense(), out=project.folder)
    assert (project.folder / "ferrule.mk").read_text() == "mine"
