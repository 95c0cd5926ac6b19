# SPDX-License-Identifier: Apache-2.0
"""C++ classes over the Arm Compute Library, and models with int8 weights alone, on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from flatbuffer_tree import one_operator_model, quantization, table, tensor, write

from ferrule import DataType, Network, TensorInfo, formats
from ferrule.cli.options import ACL_VERSIONS, TARGETS
from ferrule.codegen import acl
from ferrule.formats import to_tflite
from ferrule.graph import LayerType
from ferrule.report.inspection import Inspection

Ferrule = Callable[..., Any]
GPU, CPU = TARGETS


@pytest.fixture
def partly(tmp_path: Path) -> Path:
    """A model file with a layer for which the library has no function."""
    network = Network("partly")
    x = network.add_input(TensorInfo("x", (2, 3), DataType.FLOAT32))
    rounded = network.add_elementwise_unary_layer(LayerType.COS, x, name="rounded")
    network.set_outputs([network.add_relu_layer(rounded, name="y")])
    path = tmp_path / "partly.tflite"
    path.write_bytes(to_tflite(network))
    return path


@pytest.fixture
def hybrid(tmp_path: Path) -> Path:
    """A model file with float32 activations and int8 weights."""
    tensors = [
        tensor("x", (1, 3)),
        tensor("weights", (2, 3), "INT8", buffer=1, quantization=quantization([0.5], [0])),
        tensor("y", (1, 2)),
    ]
    stored = np.arange(6, dtype=np.int8).tobytes()
    options = table("FullyConnectedOptions")
    path = tmp_path / "hybrid.tflite"
    path.write_bytes(write(one_operator_model("FULLY_CONNECTED", tensors, [0, 1], [2], options, buffers=(stored,))))
    return path


def test_the_targets_and_versions_are_those_of_the_generator() -> None:
    assert tuple(acl.TARGETS) == TARGETS
    assert acl.VERSIONS == ACL_VERSIONS
    assert ACL_VERSIONS[0] == acl.DEFAULT_VERSION


@pytest.mark.parametrize(("target", "function"), [(GPU, "CLFullyConnectedLayer"), (CPU, "NEFullyConnectedLayer")])
def test_inspect_names_the_functions(ferrule: Ferrule, dense: Path, target: str, function: str) -> None:
    plain, outcome = ferrule("inspect", dense), ferrule("inspect", dense, "--target", target)
    assert (outcome.code, outcome.err) == (0, "")
    added = outcome.out.removeprefix(plain.out)
    assert f"{target}: Arm Compute Library 20.08 or later" in added
    assert function in added
    assert added.endswith(" layers are possible\n")


def test_inspect_has_the_reasons(ferrule: Ferrule, partly: Path) -> None:
    outcome = ferrule("inspect", partly, "--target", GPU, "--acl-version", "24.11", "--float16")
    assert (outcome.code, outcome.err) == (0, "")
    assert "Arm Compute Library 24.11 or later, in float16" in outcome.out
    assert "the library has no function for it" in outcome.out
    assert outcome.out.endswith("1 of 2 layers are possible\n")


def test_inspect_names_outputs_that_are_not_possible(ferrule: Ferrule, tmp_path: Path) -> None:
    network = Network("through")
    network.add_input(TensorInfo("x", (2,), DataType.FLOAT32))
    network.set_outputs([network.add_relu_layer("x", name="y"), "x"])
    path = tmp_path / "through.tflite"
    path.write_bytes(to_tflite(network))
    outcome = ferrule("inspect", path, "--target", GPU)
    assert outcome.out.endswith(
        "1 of 1 layers are possible\nnot possible: output 'x': it is an input, and no layer writes it\n"
    )


def test_inspect_as_json_has_the_class(ferrule: Ferrule, partly: Path) -> None:
    without = msgspec.json.decode(ferrule("inspect", partly, "--json").out, type=Inspection)
    assert without.artifact is None
    part = msgspec.json.decode(ferrule("inspect", partly, "--target", CPU, "--json").out, type=Inspection).artifact
    assert part is not None
    assert (part.target, part.acl_version, part.float16) == (CPU, "20.08", False)
    refused, taken = part.layers
    assert (refused.functions, refused.reason) == ((), "the library has no function for it")
    assert (taken.functions, taken.reason) == (("NEActivationLayer",), "")


@pytest.mark.parametrize("command", ["inspect", "generate"])
@pytest.mark.parametrize(
    ("option", "value", "found"), [("--target", "arm-npu-c++", "arm-gpu-c++"), ("--acl-version", "19.02", "20.08")]
)
def test_unknown_values_are_refused_with_those_there_are(
    ferrule: Ferrule, dense: Path, tmp_path: Path, command: str, option: str, value: str, found: str
) -> None:
    out = ("--out", tmp_path / "out") if command == "generate" else ()
    outcome = ferrule(command, dense, option, value, *out)
    assert outcome.code == 2
    assert value in outcome.err
    assert found in outcome.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("command", "given"),
    [
        ("inspect", ["--acl-version", "24.11"]),
        ("inspect", ["--float16"]),
        ("generate", ["--acl-version", "20.08"]),
        ("generate", ["--float16"]),
    ],
)
def test_options_of_classes_need_a_target(
    ferrule: Ferrule, dense: Path, tmp_path: Path, command: str, given: list[str]
) -> None:
    out = ("--out", tmp_path / "out") if command == "generate" else ()
    outcome = ferrule(command, dense, *given, *out)
    assert outcome.code == 2
    assert "--acl-version and --float16 are only valid with --target" in outcome.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "given",
    [
        ["--platform", "zephyr"],
        ["--board", "mps2-an386"],
        ["--backends", "CpuAcc"],
        ["--toolchain", "zig"],
        ["--optimization", "O2"],
        ["--no-fallback"],
        ["--hint", "y=CpuAcc"],
        ["--device", "a=Woofles"],
        ["--backend-option", "CpuAcc.num_threads=1"],
        ["--config", "ferrule.toml"],
        ["--emit-renode", "renode"],
    ],
    ids=lambda given: given[0],
)
def test_options_of_firmware_are_refused(ferrule: Ferrule, dense: Path, tmp_path: Path, given: list[str]) -> None:
    """Values that equal the defaults are refused too: they would have no effect."""
    outcome = ferrule("generate", dense, "--target", CPU, "--out", tmp_path / "out", *given)
    assert outcome.code == 2
    assert f"error: {given[0]} is not valid with --target, which makes no firmware\n" in outcome.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("target", TARGETS)
def test_generate_writes_the_class(ferrule: Ferrule, dense: Path, tmp_path: Path, target: str) -> None:
    out = tmp_path / "out"
    outcome = ferrule("generate", dense, "--target", target, "--out", out)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(f"{out}: ")
    assert outcome.out.endswith(f" files; build and compare it with: ferrule artifact run {out}\n")
    expected = acl.generate_class(formats.load(dense), target=target)
    for file, data in expected.files.items():
        assert (out / file).read_bytes() == data
    assert {"CMakeLists.txt", "README.md", "main.cpp"} <= {path.name for path in out.iterdir()}


def test_generate_with_options(ferrule: Ferrule, partly: Path, dense: Path, hybrid: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    named = ("--target", CPU, "--name", "Mine", "--acl-version", "24.11", "--out", out)
    assert ferrule("generate", hybrid, "--dequantize-weights", "--float16", *named).code == 0
    record = acl.read_record((out / "Mine.par.json").read_bytes())
    assert (record.artifact, record.target, record.acl, record.float16) == ("Mine", CPU, "24.11", True)
    again = ferrule("generate", hybrid, "--dequantize-weights", *named)
    assert (again.code, again.err) == (0, "")
    assert not acl.read_record((out / "Mine.par.json").read_bytes()).float16


@pytest.mark.parametrize("name", ["main", "Inference", "a b"])
def test_generate_refuses_names(ferrule: Ferrule, dense: Path, tmp_path: Path, name: str) -> None:
    outcome = ferrule("generate", dense, "--target", CPU, "--name", name, "--out", tmp_path / "out")
    assert (outcome.code, outcome.out) == (2, "")
    assert f"error: the class cannot be named '{name}'\nhint: " in outcome.err
    assert not (tmp_path / "out").exists()


def test_generate_lists_refused_layers_and_writes_nothing(ferrule: Ferrule, partly: Path, tmp_path: Path) -> None:
    outcome = ferrule("generate", partly, "--target", GPU, "--out", tmp_path / "out")
    assert (outcome.code, outcome.out) == (2, "")
    first, second, hint = outcome.err.splitlines()
    assert first == "error: 'partly' cannot become a class over the Arm Compute Library:"
    assert second.startswith("  layer '")
    assert second.endswith("(COS): the library has no function for it")
    assert hint.startswith("hint: `ferrule inspect MODEL --target TARGET` shows every layer")
    assert not (tmp_path / "out").exists()


def test_a_class_keeps_what_was_edited(ferrule: Ferrule, dense: Path, tmp_path: Path) -> None:
    generate = ("generate", dense, "--target", GPU, "--out", tmp_path / "out")
    assert ferrule(*generate).code == 0
    with (tmp_path / "out" / "main.cpp").open("a") as file:
        file.write("/* mine */\n")
    assert ferrule(*generate).out.endswith("main.cpp: edited by you, left unchanged\n")
    with (tmp_path / "out" / "AclArtifact.cpp").open("a") as file:
        file.write("/* mine */\n")
    refusal = ferrule(*generate)
    assert (refusal.code, "AclArtifact.cpp" in refusal.err) == (2, True)
    assert "AclArtifact.cpp: edited by you, renamed to AclArtifact.cpp.orig\n" in ferrule(*generate, "--force").out


def test_a_class_replaces_no_firmware(ferrule: Ferrule, dense: Path, tmp_path: Path) -> None:
    """One command's folder is not another's, in either order."""
    firmware, class_ = tmp_path / "firmware", tmp_path / "class"
    assert ferrule("generate", dense, "--out", firmware).code == 0
    assert ferrule("generate", dense, "--target", CPU, "--out", class_).code == 0
    before = {folder: sorted(path.name for path in folder.rglob("*")) for folder in (firmware, class_)}
    first = ferrule("generate", dense, "--target", CPU, "--out", firmware)
    assert (first.code, f"holds a project for bare-metal, which cannot become one for {CPU}" in first.err) == (2, True)
    second = ferrule("generate", dense, "--out", class_)
    assert (second.code, "cannot become one for bare-metal" in second.err) == (2, True)
    assert before == {folder: sorted(path.name for path in folder.rglob("*")) for folder in (firmware, class_)}


@pytest.mark.parametrize("command", ["inspect", "generate"])
def test_hybrid_models_are_refused_or_computed_in_float32(
    ferrule: Ferrule, hybrid: Path, tmp_path: Path, command: str
) -> None:
    out = ("--out", tmp_path / "out") if command == "generate" else ()
    refused = ferrule(command, hybrid, *out)
    assert refused.code == 2
    assert "it is hybrid: float32 activations ('x') with int8 weights ('weights')" in refused.err
    assert "--dequantize-weights" in refused.err
    outcome = ferrule(command, hybrid, "--dequantize-weights", *out)
    assert (outcome.code, outcome.err) == (0, "")


@pytest.mark.cc
@pytest.mark.emu
def test_a_hybrid_model_runs_in_float32_and_is_verified(
    ferrule: Ferrule, hybrid: Path, zig: None, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    refused = ferrule("run", hybrid, "--keep", project)
    assert (refused.code, "it is hybrid" in refused.err) == (2, True)
    np.save(tmp_path / "x.npy", np.array([[1, 2, 4]], np.float32))
    outcome = ferrule(
        *("run", hybrid, "--dequantize-weights", "--keep", project, "-q"),
        *("--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy"),
    )
    assert (outcome.code, outcome.err) == (0, "")
    assert np.load(tmp_path / "y.npy").tolist() == [[5.0, 15.5]]
    elf = project / "build" / "firmware.elf"
    assert ferrule("verify", elf, hybrid, "--dequantize-weights").code == 0
    other = ferrule("verify", elf, hybrid)
    assert (other.code, "it is hybrid" in other.err) == (2, True)
