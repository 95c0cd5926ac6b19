# SPDX-License-Identifier: Apache-2.0
"""`ferrule artifact run` builds, runs and compares a generated class."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from needs import require_acl

from ferrule import DataType, Network, TensorInfo
from ferrule.acl import write_project
from ferrule.acl.toolchain import AclToolchain
from ferrule.cli import main
from ferrule.codegen.acl import AclOptions, generate_class


def network() -> Network:
    made = Network("small")
    for name in ("a", "b"):
        made.add_input(TensorInfo(name, dtype=DataType.FLOAT32, shape=(1, 3)))
    total = made.add_add_layer("a", "b", name="total")
    made.set_outputs([made.add_fully_connected_layer(total, np.full((2, 3), 0.3, np.float32), name="out")])
    return made


@pytest.fixture
def project(tmp_path: Path) -> Path:
    graph = network()
    write_project(generate_class(graph, target="arm-cpu-c++", name="Net"), tmp_path / "net", graph)
    return tmp_path / "net"


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as end:
        main(["artifact", "run", *map(str, arguments)])
    assert isinstance(end.value.code, int)
    return end.value.code


def test_a_class_is_compared_with_the_reference(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_acl()
    arrays = [np.array([[1, 2, third]], np.float32) for third in (3, 4.5)]
    for name, array in zip("ab", arrays, strict=True):
        np.save(tmp_path / f"{name}.npy", array)
    inputs = [f"--input={name}={tmp_path / name}.npy" for name in "ab"]
    assert run(project, *inputs, "--chained", "--json", tmp_path / "report.json") == 0
    printed = capfd.readouterr().out
    assert "verdict: " in printed
    assert "ran: NEON" in printed
    report = json.loads((tmp_path / "report.json").read_bytes())
    assert [tensor["tensor"] for tensor in report["tensors"]] == ["total", "out"]
    assert report["verdict"] != "different"
    assert report["stepwise"] is False

    # another source of the same class: its first layer subtracts
    source = project / "Net.cpp"
    for file in (source, project / "Net.h"):
        file.write_text(file.read_text().replace("NEArithmeticAddition", "NEArithmeticSubtraction"))
    assert run(project, *inputs, "--json", "-") == 1
    changed = json.loads(capfd.readouterr().out)
    assert changed["first_difference"]["tensor"] == "total"
    assert [tensor["verdict"] for tensor in changed["tensors"]][1] != "different", "the layer has exact inputs"
    (project / "Net.par").write_bytes(b"short")
    assert run(project) == 2
    assert "has 5 bytes, expected" in capfd.readouterr().err
    source.write_text("#error wrong\n")
    assert run(project) == 2
    assert "#error wrong" in capfd.readouterr().err


def test_a_profile_by_emulation_is_refused(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    require_acl()
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert run(project, "--profile") == 2
    assert "cannot be measured by emulation" in capfd.readouterr().err


def test_a_class_for_a_newer_library_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = network()
    options = AclOptions(version="24.11")
    write_project(generate_class(graph, target="arm-cpu-c++", name="Net", options=options), tmp_path / "net", graph)
    old = AclToolchain(
        compiler=("false",), compile_flags=(), link_flags=(), launcher=(), version="20.08", emulated=False, opencl=False
    )
    monkeypatch.setattr("ferrule.acl.run.find_toolchain", lambda _: old)
    assert run(tmp_path / "net") == 2
    assert "is for version 24.11 of the Arm Compute Library, and 20.08 was found" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seed", "1", "--input", "x.npy"], "exclude each other"),
        (["--input", "x.npy"], "names no input"),
        (["--sysroot", "/nowhere"], "the sysroot /nowhere is not a folder"),
        (["--json", "/nowhere/report.json"], "there is no folder /nowhere"),
    ],
)
def test_wrong_options_are_refused(
    project: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(project, *arguments) == 2
    assert message in capfd.readouterr().err


def test_a_folder_without_a_class_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path) == 2
    assert "is not a generated project" in capfd.readouterr().err
