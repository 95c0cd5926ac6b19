# SPDX-License-Identifier: Apache-2.0
"""One job, created once, serves every step; models are accepted in every form in which users have them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import small_networks

import ferrule
from ferrule.backends import BackendId, Device
from ferrule.boards import load_board
from ferrule.errors import FerruleError, ModelError
from ferrule.firmware import emit
from ferrule.formats import to_tflite
from ferrule.graph import Graph
from ferrule.report.inspection import Inspection

JOB = ferrule.Job(board="mps2-an500", backends=["Woofles", "CpuAcc"], optimization="O2")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A model file."""
    path = tmp_path / "small.tflite"
    path.write_bytes(to_tflite(small_networks.dense()))
    return path


def test_a_job_keeps_what_it_is_given() -> None:
    device = Device(name="npu0", backend=BackendId("Woofles"))
    hints = {"y": "Woofles/npu0"}
    job = ferrule.Job(backends=["Woofles"], devices=[device], hints=hints)
    hints["y"] = "CpuAcc"
    assert (job.backends, job.devices, job.hints) == (("Woofles",), (device,), {"y": "Woofles/npu0"})
    assert replace(job, board="mps2-an500").hints == job.hints
    assert job.load_board().name == "mps2-an386"
    board = load_board("mps3-an547")
    assert ferrule.Job(board=board).load_board() is board


@pytest.mark.parametrize(("field", "value"), [("backends", "CpuAcc"), ("devices", Device(name="a", backend="B"))])  # type: ignore[arg-type]
def test_one_where_a_list_belongs(field: str, value: object) -> None:
    with pytest.raises(FerruleError, match=f"^{field} is .*, expected a list$") as caught:
        ferrule.Job(**{field: value})  # type: ignore[arg-type]
    assert str(caught.value.hint).startswith(f"write {field}=[")


@pytest.mark.parametrize("call", [ferrule.compile, ferrule.generate, ferrule.inspect])
def test_a_job_or_keywords(call: object, tmp_path: Path) -> None:
    assert callable(call)
    network = small_networks.dense()
    with pytest.raises(FerruleError, match="both a job and keywords are given: board, out") as caught:
        call(network, JOB, board="mps2-an386", out=tmp_path / "project")
    assert "dataclasses.replace" in str(caught.value.hint)
    with pytest.raises(FerruleError, match="there is no field 'bord' in a Job") as caught:
        call(network, bord="mps2-an386")
    assert caught.value.hint == "did you mean board?"
    with pytest.raises(FerruleError, match=r"the job is of type str, expected a ferrule\.Job") as caught:
        call(network, "mps2-an386")
    assert caught.value.hint == 'give keywords, such as board="mps2-an386"'
    assert not (tmp_path / "project").exists()


def test_keywords_and_the_job_that_they_make_give_the_same_project(tmp_path: Path) -> None:
    network = small_networks.dense()
    by_job = ferrule.generate(network, replace(JOB, out=tmp_path / "job"))
    by_keywords = ferrule.generate(
        network, board="mps2-an500", backends=["Woofles", "CpuAcc"], optimization="O2", out=str(tmp_path / "keywords")
    )
    assert by_job.manifest == by_keywords.manifest
    assert (by_job.manifest.board, by_job.manifest.optimization) == ("board/mps2-an500", "O2")
    assert emit(network, JOB).digest == by_job.manifest.digest


def test_the_level_is_the_best_of_the_toolchain() -> None:
    assert ferrule.Job(toolchain="zig").level == "Os"
    assert ferrule.Job(toolchain="arm-none-eabi-gcc").level == "O3"
    assert replace(ferrule.Job(toolchain="zig"), toolchain="arm-none-eabi-gcc").level == "O3"
    assert ferrule.Job(toolchain="zig", optimization="O2").level == "O2"
    assert ferrule.Job(toolchain="zig", platform="cmsis").level == "O3"  # zig does not compile it


def test_the_same_job_is_inspected() -> None:
    network = small_networks.dense()
    alone = ferrule.inspect(network)
    assert (alone.division, alone.schedule) == (None, None)
    divided = ferrule.inspect(network, JOB, schedule=True)
    assert divided.division is not None
    assert [part.id for part in divided.division.backends] == ["Woofles", "CpuAcc"]
    assert divided.schedule is not None
    assert "Woofles open" in divided.schedule[0].calls
    assert ferrule.inspect(network, backends=["CpuAcc"]).schedule is None


def test_the_kernels_of_the_same_job_are_inspected() -> None:
    network = small_networks.dense()
    job = ferrule.Job(board="mps2-an386", goal="size")
    assert ferrule.inspect(network, job).kernels is None
    inspected = ferrule.inspect(network, job, kernels=True).kernels
    assert inspected is not None
    emitted = emit(network, job).operators
    assert [part.layer for part in inspected] == [record.layer for record in emitted]
    for part, record in zip(inspected, emitted, strict=True):
        (chosen,) = (kernel for kernel in part.kernels if kernel.chosen)
        assert chosen.scratch_bytes is not None
        assert record.kernel.startswith(chosen.kernel)
    several = next(part for part in inspected if len(part.kernels) > 1)
    assert {kernel.reason for kernel in several.kernels if kernel.chosen} == {"best for size"}
    assert all(kernel.reason for kernel in several.kernels)
    assert any(kernel.instructions for kernel in several.kernels)


@pytest.mark.cc
@pytest.mark.emu
def test_a_firmware_knows_its_job(zig: str, file: Path, tmp_path: Path) -> None:
    job = ferrule.Job(toolchain=zig, out=tmp_path / "project", optimization="O2")
    firmware = ferrule.compile(file, job)
    assert firmware.job is job
    assert firmware.project.manifest.optimization == "O2"
    x = np.zeros((1, 6), np.int8)
    assert firmware.run([x]).outputs[0].tolist() == ferrule.load(file).run([x])[0].tolist()


def test_a_project_needs_a_folder() -> None:
    with pytest.raises(FerruleError, match="the job names no folder for the project"):
        ferrule.generate(small_networks.dense(), JOB)


def described(given: Inspection) -> tuple[int, int, tuple[tuple[int, ...], ...]]:
    return given.macs, given.constant_bytes, tuple(tensor.shape for tensor in given.tensors)


def test_models_are_loaded(file: Path) -> None:
    wanted = described(ferrule.inspect(ferrule.load(file)))
    data = file.read_bytes()
    for model in (file, str(file), data, bytearray(data), memoryview(data)):
        assert described(ferrule.inspect(model)) == wanted  # type: ignore[arg-type]
    assert (ferrule.load(file).name, ferrule.load(data).name) == ("small", "model")
    network = small_networks.dense()
    assert ferrule.inspect(network).name == network.name


@pytest.mark.parametrize("call", [ferrule.compile, ferrule.generate, ferrule.inspect])
@pytest.mark.parametrize(
    "model", [None, 3, Graph("g"), {"dense": small_networks.dense()}], ids=lambda model: type(model).__name__
)
def test_models_of_a_wrong_type(call: object, model: object) -> None:
    assert callable(call)
    kind = type(model).__name__
    with pytest.raises(
        FerruleError, match=rf"^the model is of type {kind}, expected a ferrule\.Network, a path or"
    ) as e:
        call(model)
    assert "ferrule.load" in str(e.value.hint)


def test_what_cannot_be_loaded(tmp_path: Path) -> None:
    with pytest.raises(FerruleError, match="a model of type Network cannot be loaded"):
        ferrule.load(small_networks.dense())  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=" is a folder, expected a file") as caught:
        ferrule.compile(tmp_path)
    assert caught.value.hint == "known formats: TensorFlow Lite (.tflite), ONNX (.onnx), PyTorch (.pt2)"
    with pytest.raises(ModelError, match=r"none\.tflite"):
        ferrule.compile(str(tmp_path / "none.tflite"))
    with pytest.raises(ModelError, match=r"^model: "):
        ferrule.compile(b"no model")
