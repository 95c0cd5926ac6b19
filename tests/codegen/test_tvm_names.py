# SPDX-License-Identifier: Apache-2.0
"""tvmgen_<model>.h: the program of the merged RFC, completed where it was lacking, runs a model on two devices."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from device_bench import WARNINGS
from device_networks import NPU0, artifact, crossing, sample
from needs import require_cxx

from ferrule.backends import BackendId, Device
from ferrule.codegen import Artifact, Program
from ferrule.codegen.tvm_names import camel_case
from ferrule.resources import root

PROGRAM = """
#include "tvm/platform/bare_metal.h"
#include "tvmgen_crossing.h"

#include <stdio.h>

@CONTEXTS@
static tvm_device_npu0_t first; /* the model gets pointers to the handles */
static tvm_device_npu1_t second;
static int8_t x[144];
static int8_t h[144];
static int8_t late[5];

static int run(void)
{
    struct tvmgen_crossing_inputs inputs = {.x = x};
    struct tvmgen_crossing_outputs outputs = {.h = h, .late = late};
    struct tvmgen_crossing_devices devices = {.host = NULL, .npu0 = &first, .npu1 = &second};

    if (tvmgen_crossing_run(&inputs, &outputs, NULL) != FERRULE_ERR_ARGUMENT) {
        return 1;
    }
    if (fread(x, 1, sizeof x, stdin) != sizeof x) {
        return 2;
    }
    if (tvmgen_crossing_run(&inputs, &outputs, &devices) != FERRULE_OK) {
        return 3;
    }
    (void)fwrite(h, 1, sizeof h, stdout);
    (void)fwrite(late, 1, sizeof late, stdout);
    return 0;
}

int main(void)
{
    int result = 10;

    if (TVMDeviceNpu0Init(&first, NULL, NULL, &npu0_context) != 0 ||
        TVMDeviceNpu1Init(&second, NULL, NULL, &npu1_context) != 0) {
        return 11;
    }
    /* the user may keep a device powered over many runs, and use it between them */
    if (TVMDeviceNpu0Activate(&first) == 0) {
        result = TVMDeviceNpu0Open(&first) == 0 && TVMDeviceNpu0Close(&first) == 0 ? run() : 12;
        if (TVMDeviceNpu0Deactivate(&first) != 0) {
            result = 13;
        }
    }
    if (TVMDeviceNpu0Destroy(&first) != 0 || TVMDeviceNpu1Destroy(&second) != 0) {
        result = 14;
    }
    return result;
}
"""


def write(model: Artifact, folder: Path) -> list[str]:
    """Write the generated files, and return the include options."""
    for name, text in model.files.items():
        (folder / name).write_text(text)
    includes = (
        *(folder, root() / "platforms/bare_metal/include"),
        *(path for part in model.contributions for path in part.include_paths),
    )
    return [f"-I{path}" for path in includes]


@pytest.mark.cc
def test_the_program_runs(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    model = artifact()
    includes = write(model, tmp_path)
    contexts = "\n".join(Program(artifacts=(model,)).device_c(use.name) for use in model.devices)
    (tmp_path / "main.c").write_text(PROGRAM.replace("@CONTEXTS@", contexts))
    sources = (
        *(
            tmp_path / name
            for name in ("main.c", "ferrule_crossing.c", "ferrule_crossing_weights.c", "tvmgen_crossing.c")
        ),
        *(path for part in model.contributions for path in part.source_paths),
        root() / "platforms/bare_metal/src/bare_metal.c",
    )
    command = [*host_cc, "-std=c11", "-O1", *WARNINGS, *includes, *map(str, sources), "-o", str(tmp_path / "program")]
    subprocess.run(command, check=True, timeout=120)
    x = sample()
    done = subprocess.run([tmp_path / "program"], input=x.tobytes(), capture_output=True, check=True, timeout=60)
    assert done.stdout == b"".join(output.tobytes() for output in crossing().run([x]))


@pytest.mark.cc
@pytest.mark.parametrize("platform", ["", '#include "tvm/platform/bare_metal.h"\n'])
def test_the_header_compiles_in_cpp(tmp_path: Path, platform: str) -> None:
    compiler = require_cxx()
    includes = write(artifact(), tmp_path)
    (tmp_path / "main.cpp").write_text(f'{platform}#include "tvmgen_crossing.h"\nint main() {{ return 0; }}\n')
    flags = ("-std=c++11", "-Wall", "-Wextra", "-Werror", "-c")
    argv = [*compiler, *flags, *includes, "-o", str(tmp_path / "main.o"), str(tmp_path / "main.cpp")]
    subprocess.run(argv, check=True, timeout=120)


def test_a_model_on_the_core_has_no_such_header() -> None:
    assert "tvmgen_crossing.h" not in artifact(hints={}, devices=()).files


def test_a_device_may_be_called_host_and_names_stay_apart() -> None:
    devices = (replace(NPU0, name="host"), replace(NPU0, name="a1"), replace(NPU0, name="a_1"))
    hints = {"a": "SoftNpu/host", "d": "SoftNpu/a1", "h": "SoftNpu/a_1"}
    text = artifact(hints=hints, devices=devices).files["tvmgen_crossing.h"]
    assert text.count(" *host;") == 1
    assert "TVM_DEVICE_NAMES(Host, host)" in text
    assert "TVM_DEVICE_NAMES(A1, a1)" in text
    assert "TVM_DEVICE_NAMES(A1_2, a_1)" in text


def test_camel_case() -> None:
    names = ("npu0", "soft_npu", "woofles", "a__b", "SoftNpu", "my-npu", "µ")
    assert [camel_case(name) for name in names] == ["Npu0", "SoftNpu", "Woofles", "AB", "SoftNpu", "MyNpu", ""]


def test_names_of_a_device_are_those_of_its_backend() -> None:
    """A device without a name of its own has its backend's, and a member in lower case."""
    text = artifact(hints={"a": "SoftNpu", "d": "SoftNpu"}, devices=()).files["tvmgen_crossing.h"]
    assert "TVM_DEVICE_NAMES(SoftNpu, softnpu)" in text
    assert "struct soft_npu *\ntvmgen_crossing_softnpu_context(void);" in text


def test_a_device_behind_a_serial_line_has_no_context_here() -> None:
    """The context needs a transport, which only the platform's code has."""
    far = Device(name="far", backend=BackendId("UartWoofles"), binding={"uart": "uart2"})
    files = artifact(hints={"d": "UartWoofles/far"}, devices=(far,)).files
    assert "far_context" not in files["tvmgen_crossing.c"]
    assert (
        " * far is behind a serial line: the program binds it with driver and context.\n"
        in (files["tvmgen_crossing.h"])
    )
