# SPDX-License-Identifier: Apache-2.0
"""The headers compile alone, in C and C++, for host and microcontrollers, and their values match those in the tests."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from fake_device import DEVICE_C, FOLDER, Event
from needs import require_cc, require_cxx, require_module, require_program

from ferrule import resources
from ferrule.link.protocol import Status

ROOT = resources.root()
BARE_METAL = ROOT / "platforms" / "bare_metal"
SOURCES = (DEVICE_C, BARE_METAL / "src" / "bare_metal.c")
INCLUDES = (f"-I{ROOT / 'include'}", f"-I{BARE_METAL / 'include'}")
HEADERS = (
    *("ferrule/status.h", "ferrule/driver.h", "ferrule/device.h", "ferrule/platform.h", "ferrule/transport.h"),
    *("ferrule/port.h", "ferrule/platform/bare_metal.h", "tvm/runtime/device.h", "tvm/platform/bare_metal.h"),
)
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror")
CORES = ("cortex-m0", "cortex-m4", "cortex-m33")
PROGRAM = """\
#include "tvm/platform/bare_metal.h"

static const ferrule_driver driver = [] {
    ferrule_driver made{}; made.name = "none"; made.is_passive = true; return made;
}();
TVM_DEVICE_NAMES(Woofles, woofles)
TVM_DEVICE_INIT(Woofles, woofles, driver)

int main()
{
    ferrule_device_t dev = {};
    void *context = &dev;
    bool fine = ferrule_device_init(&dev) == FERRULE_OK &&
                ferrule_device_bind(&dev, nullptr, nullptr, &driver, &driver_context) == FERRULE_OK &&
                TVMDeviceOpen(&dev) == FERRULE_OK &&
                ferrule_device_context(&dev, &driver, &context) == FERRULE_OK &&
                context == &driver_context && TVMDeviceClose(&dev) == FERRULE_OK &&
                TVMDeviceWooflesDestroy(&dev) == FERRULE_OK;
    return fine && TVMDeviceWooflesInit(&dev, nullptr, nullptr, nullptr) == FERRULE_OK ? 0 : 1;
}
""".replace("int main()", "static int driver_context;\n\nint main()")


def numbers(path: Path, prefix: str) -> dict[str, str]:
    return dict(re.findall(rf"{prefix}(\w+) = (-?\d+)", path.read_text(encoding="utf-8")))


def test_the_statuses_are_those_of_the_header() -> None:
    header = ROOT / "include" / "ferrule" / "status.h"
    ours = {status.name: str(int(status)) for status in Status if status is not Status.OK}
    assert numbers(header, "FERRULE_ERR_") == ours


def test_the_events_are_those_of_the_fake() -> None:
    text = (FOLDER / "fake_platform.h").read_text(encoding="utf-8")
    names = re.findall(r"^    FAKE_(\w+),", text, re.MULTILINE)
    assert names == [*(event.name for event in Event), "EVENTS"]


@pytest.mark.cc
@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("language", ["c", "c++"])
def test_a_header_needs_no_other(header: str, language: str, tmp_path: Path) -> None:
    compiler, standard = {"c": (require_cc, "-std=c11"), "c++": (require_cxx, "-std=c++17")}[language]
    source = tmp_path / f"one.{language}"
    source.write_text(f'#include "{header}"\n#include "{header}"\n', encoding="utf-8")
    argv = [*compiler(), standard, *WARNINGS, *INCLUDES]
    subprocess.run([*argv, "-x", language, "-c", "-o", str(tmp_path / "one.o"), str(source)], check=True, timeout=60)


@pytest.mark.cc
def test_cxx_programs_use_devices(tmp_path: Path) -> None:
    cxx, cc = require_program("g++", "apt-get install g++"), require_cc()
    objects = [tmp_path / f"{source.stem}.o" for source in SOURCES]
    for source, target in zip(SOURCES, objects, strict=True):
        subprocess.run([*cc, "-std=c11", *WARNINGS, *INCLUDES, "-c", "-o", target, source], check=True, timeout=60)
    program = tmp_path / "program.cpp"
    program.write_text(PROGRAM, encoding="utf-8")
    argv = [cxx, "-std=c++17", *WARNINGS, *INCLUDES, "-o", tmp_path / "program", program, *objects]
    subprocess.run(argv, check=True, timeout=60)
    subprocess.run([tmp_path / "program"], check=True, timeout=60)


@pytest.mark.cc
@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_the_sources_compile_for_a_microcontroller(core: str, source: Path, tmp_path: Path) -> None:
    compiler = require_program("arm-none-eabi-gcc", "apt-get install gcc-arm-none-eabi")
    argv = [compiler, f"-mcpu={core}", "-mthumb", "-std=c11", "-ffreestanding", "-Os", *WARNINGS, *INCLUDES]
    subprocess.run([*argv, "-c", "-o", tmp_path / "one.o", source], check=True, timeout=60)


@pytest.mark.cc
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_the_sources_compile_with_clang(source: Path, tmp_path: Path) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    argv = [sys.executable, "-m", "ziglang", "cc", "-target", "thumb-freestanding-eabi", "-mcpu=cortex_m4"]
    flags = ["-std=c11", "-ffreestanding", "-Os", *WARNINGS, *INCLUDES]
    subprocess.run([*argv, *flags, "-c", "-o", tmp_path / "one.o", source], check=True, timeout=120)


@pytest.mark.cc
@pytest.mark.parametrize("core", CORES)
def test_the_port_masks_interrupts_and_sees_them(core: str, tmp_path: Path) -> None:
    compiler = require_program("arm-none-eabi-gcc", "apt-get install gcc-arm-none-eabi")
    argv = [compiler, f"-mcpu={core}", "-mthumb", "-std=c11", "-Os", *INCLUDES, "-S", "-o", tmp_path / "one.s"]
    subprocess.run([*argv, SOURCES[1]], check=True, timeout=60)
    assembly = (tmp_path / "one.s").read_text(encoding="utf-8").lower()
    for instruction in (r"mrs\s+\w+, ipsr", r"mrs\s+\w+, primask", r"cpsid\s+i", r"msr\s+primask, \w+"):
        assert re.search(instruction, assembly), instruction
