# SPDX-License-Identifier: Apache-2.0
"""C of third parties, not written for Ferrule's own warnings, in each kind of project."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import cmsis_project
import pytest
from children import ran
from needs import require_cc, require_program

from ferrule import DataType, Network, Quantization, TensorInfo
from ferrule.backends import BackendId, Face, default_target
from ferrule.backends.contribution import Contribution, Warnings
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.backends.manifest import read_manifest
from ferrule.codegen import Artifact, Plan, generate
from ferrule.dom import Call, Evaluate, Identifier, Integer
from ferrule.firmware import BuildError, Job, Project, Toolchain, build_project, write_project

STAND_IN = Path(__file__).parents[1] / "support" / "zephyr_cmake"
MANIFEST = """
id = "Vendor"
factory = "nothing:Nothing"

[[firmware]]
sources = ["src/*.c"]
include_dirs = ["include"]
licence = "Apache-2.0"

[[firmware]]
sources = ["vendor/*.c"]
include_dirs = ["vendor/include"]
licence = "BSD-3-Clause"
warnings = "third-party"
defines = { VENDOR_MODE = "2", VENDOR_PLAIN = "" }
"""
GLUE_H = """
#pragma once
#include <stdint.h>
void glue_maximum(const int8_t *first, const int8_t *second, int8_t *output, int32_t elements);
"""
GLUE_C = """
#include "glue.h"
#include "vendor_hal.h"
void glue_maximum(const int8_t *first, const int8_t *second, int8_t *output, int32_t elements)
{
    vendor_maximum(first, second, output, elements);
    vendor_seen = vendor_byte(elements);
}
"""
VENDOR_H = """
#ifndef VENDOR_PLAIN
#error "configure the HAL"
#endif
extern char vendor_seen;
static inline char vendor_byte(long value, ...) { int unused; return value + VENDOR_MODE; }
extern void vendor_maximum(const void *a, const void *b, void *c, int n);
"""
VENDOR_C = """
#include "vendor_hal.h"
#include "vendor_private.h"
char vendor_seen;
void vendor_maximum(const void *a, const void *b, void *c, int n)
{
    const signed char *x = a, *y = b;
    unsigned int i, unused;
    for (i = 0; i < n; i++) {
        int i_ = VENDOR_PICK(x[i], y[i]);
        ((signed char *)c)[i] = i_;
    }
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A backend's folder with the backend's glue code and a vendor's HAL."""
    contents = {
        "backend.toml": MANIFEST,
        "include/glue.h": GLUE_H,
        "src/glue.c": GLUE_C,
        "vendor/include/vendor_hal.h": VENDOR_H,
        "vendor/vendor_hal.c": VENDOR_C,
        "vendor/vendor_private.h": "#define VENDOR_PICK(a, b) a > b ? a : b\n",
    }
    for name, text in contents.items():
        path = tmp_path / "acme" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "acme"


class VendorTarget:
    """Lowers MAXIMUM to a call of the vendor's HAL."""

    def __init__(self, contributions: tuple[Contribution, ...]) -> None:
        self._contributions = contributions

    def lower(self, context: LoweringContext) -> LoweredOp:
        operands = (context.input_pointer(0), context.input_pointer(1), context.output_pointer())
        call = Call(Identifier("glue_maximum"), (*operands, Integer(context.operands.output.elements)))
        return LoweredOp(
            kernel="glue", statements=(Evaluate(call),), headers=("glue.h",), contributions=self._contributions
        )


def artifact(folder: Path, *, strict: bool = False) -> Artifact:
    """Return a model with one layer by the vendor's HAL; `strict` compiles the HAL with Ferrule's own warnings."""
    network = Network("vendor")
    for name in ("x", "y"):
        network.add_input(TensorInfo(name, (1, 6), DataType.INT8, quantization=Quantization.of(0.5)))
    network.set_outputs([network.add_maximum_layer("x", "y", name="z")])
    parts = read_manifest(folder).contributions()
    if strict:
        parts = tuple(replace(part, warnings=Warnings.OWN, licence="Apache-2.0") for part in parts)
    return generate(
        Plan(
            graph=network,
            firmware={"z": VendorTarget(parts)},
            targets={"z": default_target(BackendId("Vendor"), Face.FIRMWARE)},
            workspace_bytes=4096,
        )
    )


def written(model: Artifact, folder: Path, platform: str, toolchain: str = "arm-none-eabi-gcc") -> Project:
    job = Job(board="mps2-an386", toolchain=toolchain, optimization="O2", platform=platform, out=folder)
    return write_project(model, job)


def run(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    return ran(argv, cwd=folder)


def succeeds(folder: Path, *argv: str) -> None:
    done = run(folder, *argv)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_artifact_lists_both_parts(folder: Path) -> None:
    parts = [part for part in artifact(folder).contributions if part.name == "backends/acme"]
    assert [(part.licence, part.warnings) for part in parts] == [
        ("Apache-2.0", Warnings.OWN),
        ("BSD-3-Clause", Warnings.THIRD_PARTY),
    ]


@pytest.mark.cc
@pytest.mark.parametrize(
    "any_toolchain", [pytest.param("zig", marks=pytest.mark.nightly), "arm-none-eabi-gcc"], indirect=True
)
def test_bare_metal_by_ferrule_make_and_cmake(folder: Path, any_toolchain: Toolchain, tmp_path: Path) -> None:
    make, cmake = (require_program(name, f"apt-get install {name}") for name in ("make", "cmake"))
    project = written(artifact(folder), tmp_path / "project", "bare-metal", any_toolchain.name)
    home = "lib/backends/acme"
    assert project.manifest.third_party == (f"{home}/vendor/vendor_hal.c",)
    assert project.manifest.system_include_dirs == (f"{home}/vendor/include",)
    assert (project.folder / home / "vendor" / "vendor_private.h").is_file()
    build_project(project)
    succeeds(project.folder, make, f"PYTHON={sys.executable}", "clean", "build/firmware.elf")
    options = ("--toolchain", "toolchain.cmake", f"-DFERRULE_PYTHON={sys.executable}")
    succeeds(project.folder, cmake, "-S", ".", "-B", "cmake", *options)
    succeeds(project.folder, cmake, "--build", "cmake")


@pytest.mark.cc
def test_it_would_not_build_as_ones_own(folder: Path, any_toolchain: Toolchain, tmp_path: Path) -> None:
    project = written(artifact(folder, strict=True), tmp_path / "project", "bare-metal", any_toolchain.name)
    with pytest.raises(BuildError, match=r"vendor_hal\.[ch]"):
        build_project(project)


@pytest.mark.cc
@pytest.mark.parametrize("strict", [False, True])
def test_zephyr(folder: Path, strict: bool, tmp_path: Path) -> None:
    cmake = require_program("cmake", "apt-get install cmake")
    require_cc()
    project = written(artifact(folder, strict=strict), tmp_path / "project", "zephyr").folder
    options = (f"-DZephyr_DIR={STAND_IN}", "-DCONFIG_FERRULE=y", "-DCONFIG_FERRULE_MODEL_VENDOR=y")
    succeeds(project, cmake, "-S", ".", "-B", "build", *options)
    done = run(project, cmake, "--build", "build", "--target", "ferrule_vendor")
    assert (done.returncode == 0) is not strict, done.stdout + done.stderr


@pytest.mark.cc
@pytest.mark.parametrize("strict", [False, True])
def test_cmsis_by_cmake(folder: Path, strict: bool, tmp_path: Path) -> None:
    """CMakeLists.txt compiles only the backend's files; the others need CMSIS and a C library."""
    cmake = require_program("cmake", "apt-get install cmake")
    require_program("arm-none-eabi-gcc", "apt-get install gcc-arm-none-eabi")
    project = written(artifact(folder, strict=strict), tmp_path / "project", "cmsis").folder
    text = (project / "CMakeLists.txt").read_text(encoding="utf-8")
    begin, end = text.index("foreach(name CMSIS_PATH"), text.index("include(ferrule.cmake)")
    text = text[:begin] + text[end:]
    begin, end = text.index("add_library(cmsis"), text.index("add_executable")
    text = text[:begin] + 'list(FILTER FERRULE_SOURCES INCLUDE REGEX "^lib/backends/")\n' + text[end:]
    text = text.replace("add_executable(firmware.elf\n    main.c", "add_library(firmware.elf STATIC")
    begin, end = text.index("target_link_options"), len(text)
    (project / "CMakeLists.txt").write_text(text[:begin] + text[end:], encoding="utf-8")
    succeeds(project, cmake, "-S", ".", "-B", "build", "--toolchain", "toolchain.cmake")
    done = run(project, cmake, "--build", "build")
    assert (done.returncode == 0) is not strict, done.stdout + done.stderr


def test_cmsis_by_csolution(folder: Path, tmp_path: Path) -> None:
    project = written(artifact(folder), tmp_path / "project", "cmsis").folder
    layer = cmsis_project.read_yaml(project / "vendor.clayer.yml")["layer"]
    groups = {group["group"]: group for group in layer["groups"]}
    third = groups["Third party"]
    assert [file["file"] for file in third["files"]] == ["./lib/backends/acme/vendor/vendor_hal.c"]
    assert third["warnings"] == "off"
    assert all("warnings" not in group for name, group in groups.items() if name != "Third party")
    assert "./lib/backends/acme/vendor/include" in layer["add-path"]
    assert layer["define"] == [{"VENDOR_MODE": 2}, "VENDOR_PLAIN"]
