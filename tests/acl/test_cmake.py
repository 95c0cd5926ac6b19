# SPDX-License-Identifier: Apache-2.0
"""The CMake list of a project builds its programs, and `main.cpp` runs the class on HDF5 files."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from children import ran
from needs import require_acl, require_program

from ferrule import DataType, Network, TensorInfo
from ferrule.acl import write_project
from ferrule.codegen.acl import generate_class
from ferrule.formats.hdf5 import read_tensors, write_tensors


def network() -> Network:
    made = Network("two")
    for name in ("a", "b"):
        made.add_input(TensorInfo(name, dtype=DataType.FLOAT32, shape=(1, 2, 3, 5)))
    made.set_outputs([made.add_add_layer("a", "b", name="sum"), made.add_sub_layer("a", "b", name="difference")])
    return made


@pytest.mark.cc
def test_main_computes_all_outputs_from_all_inputs(tmp_path: Path) -> None:
    toolchain = require_acl()
    cmake = require_program("cmake", "apt-get install cmake")
    graph, project, build = network(), tmp_path / "project", tmp_path / "build"
    write_project(generate_class(graph, target="arm-gpu-c++", name="Net"), project, graph)
    environment = {**os.environ, **toolchain.environment}
    settings = {"CMAKE_CXX_COMPILER": toolchain.compiler[0], "ACL_ON_NEON": "ON"}
    if toolchain.emulated:
        root = next(flag for flag in toolchain.compile_flags if flag.startswith("--sysroot="))
        settings |= {
            "CMAKE_SYSTEM_NAME": "Linux",
            "CMAKE_SYSTEM_PROCESSOR": "aarch64",
            "CMAKE_SYSROOT": root.removeprefix("--sysroot="),
            "CMAKE_FIND_ROOT_PATH_MODE_INCLUDE": "ONLY",
            "CMAKE_FIND_ROOT_PATH_MODE_LIBRARY": "ONLY",
        }
    for argv in (
        [cmake, "-S", project, "-B", build, *(f"-D{name}={value}" for name, value in settings.items())],
        [cmake, "--build", build, "--target", "Net_main"],
    ):
        done = ran(argv, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "warning" not in done.stderr

    inputs = {name: np.random.default_rng(index).standard_normal((1, 2, 3, 5)) for index, name in enumerate("ab")}
    inputs = {name: array.astype(np.float32) for name, array in inputs.items()}
    write_tensors(tmp_path / "in.h5", inputs)
    program = [*toolchain.launcher, build / "Net_main"]
    parameters = project / "Net.par"
    done = ran([*program, tmp_path / "in.h5", tmp_path / "out.h5", parameters])
    assert (done.returncode, done.stderr) == (0, "")
    expected = dict(zip(("sum", "difference"), graph.run(inputs), strict=True))
    found = read_tensors(tmp_path / "out.h5", dict.fromkeys(expected, (DataType.FLOAT32, (1, 2, 3, 5))))
    assert all(np.array_equal(found[name], expected[name]) for name in expected)

    write_tensors(tmp_path / "in.h5", {"a": inputs["a"]})
    (tmp_path / "out.h5").unlink()
    done = ran([*program, tmp_path / "in.h5", tmp_path / "out.h5", parameters])
    assert done.returncode == 1
    assert "has no dataset 'b'" in done.stderr
    assert not list(tmp_path.glob("out.h5*")), "nothing half-written"
