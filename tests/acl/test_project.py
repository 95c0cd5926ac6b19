# SPDX-License-Identifier: Apache-2.0
"""The projects of generated classes: what is in them, how they are updated, and which are refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ferrule import DataType, FerruleError, Network, TensorInfo
from ferrule.acl import load_artifact, write_project
from ferrule.acl.project import ArtifactProject
from ferrule.codegen.acl import generate_class


def network(name: str = "small", *, scale: float = 1.0) -> Network:
    made = Network(name)
    made.add_input(TensorInfo("x", dtype=DataType.FLOAT32, shape=(1, 4)))
    weights = scale * np.arange(12, dtype=np.float32).reshape(3, 4)
    made.set_outputs([made.add_fully_connected_layer("x", weights, name="a;b/c: `d`")])
    return made


def written(folder: Path, target: str = "arm-gpu-c++", *, name: str = "Net", scale: float = 1.0) -> ArtifactProject:
    graph = network(scale=scale)
    return write_project(generate_class(graph, target=target, name=name), folder, graph)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_project_is_complete(tmp_path: Path) -> None:
    project = written(tmp_path / "gpu")
    assert set(project.files) | {"ferrule-project.json"} == set(contents(tmp_path / "gpu"))
    assert set(project.files) >= {"Net.h", "Net.cpp", "Net.par", "Net.par.json", "Net.tflite", "main.cpp"}
    assert "cl_on_neon.h" not in written(tmp_path / "cpu", "arm-cpu-c++").files
    loaded = load_artifact(tmp_path / "gpu")
    assert loaded.record == project.record
    inputs = [np.ones((1, 4), np.float32)]
    assert np.array_equal(loaded.network().run(inputs)[0], network().run(inputs)[0])


def test_an_update_keeps_edited_starters_and_refuses_edited_sources(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "main.cpp").write_text("int main() {}\n")
    (tmp_path / "notes.txt").write_text("mine")
    project = written(tmp_path, scale=2.0)
    assert [kept.name for kept in project.kept] == ["main.cpp"]
    assert (tmp_path / "main.cpp").read_text() == "int main() {}\n"
    assert (tmp_path / "notes.txt").read_text() == "mine"
    (tmp_path / "Net.cpp").write_text("edited")
    before = contents(tmp_path)
    with pytest.raises(FerruleError, match=r"Net\.cpp"):
        written(tmp_path)
    assert contents(tmp_path) == before


def test_another_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FerruleError, match="holds no generated project"):
        written(tmp_path)
    assert set(contents(tmp_path)) == {"notes.txt"}
    (tmp_path / "other").mkdir()
    written(tmp_path / "other", "arm-cpu-c++")
    with pytest.raises(FerruleError, match=r"holds a project for arm-cpu-c\+\+"):
        written(tmp_path / "other")


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file" / "out", Path("/proc/out")):  # root can write in most other folders
        with pytest.raises(FerruleError, match="cannot be written"):
            written(folder)


@pytest.mark.parametrize("name", ["Main", "Trace"])
def test_a_class_cannot_have_the_name_of_another_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(FerruleError, match=f"cannot have the name '{name}'"):
        written(tmp_path / "out", name=name)
    assert not (tmp_path / "out").exists()


def test_names_of_tensors_cannot_break_files(tmp_path: Path) -> None:
    written(tmp_path)
    assert '{"a;b/c: `d`", {"' in (tmp_path / "trace.cpp").read_text()
    assert "| a;b/c: \\`d\\` | output |" in (tmp_path / "README.md").read_text()


def test_a_damaged_project_is_refused(tmp_path: Path) -> None:
    project = written(tmp_path)
    description = tmp_path / "Net.par.json"
    good = description.read_bytes()
    description.write_text("{")
    with pytest.raises(FerruleError, match=r"Net\.par\.json"):
        load_artifact(tmp_path)
    description.write_text(json.dumps({**json.loads(good), "artifact": "Other"}))
    with pytest.raises(FerruleError, match="another than the project's"):
        load_artifact(tmp_path)
    description.unlink()
    with pytest.raises(FerruleError, match=r"Net\.par\.json cannot be read"):
        load_artifact(tmp_path)
    other = tmp_path / "other"
    written(other, scale=3.0)
    (tmp_path / "Net.tflite").write_bytes((other / "Net.tflite").read_bytes())
    with pytest.raises(FerruleError, match="is not the network from which the class was generated"):
        project.network()
    with pytest.raises(FerruleError, match="is not a generated project"):
        load_artifact(tmp_path / "nowhere")
