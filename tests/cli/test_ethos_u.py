# SPDX-License-Identifier: Apache-2.0
"""`ferrule ethos-u`: streams shown and executed, and the errors of files and arrays that do not fit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from needs import require_module
from numpy.testing import assert_array_equal
from vela_campaign import compile_in_process
from vela_cases import vela_case

from ferrule.formats import to_tflite
from ferrule.network import Network
from ferrule.testing.backends.comparison import random_inputs

Ferrule = Callable[..., Any]


@pytest.fixture(scope="module")
def network() -> Network:
    """Two inputs and one output."""
    return vela_case("add", 1)


@pytest.fixture(scope="module")
def stream(network: Network, tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_module("ethosu", "pip install 'ferrule[ethos-u]'")
    path = tmp_path_factory.mktemp("streams") / "add_vela.npz"
    path.write_bytes(compile_in_process(to_tflite(network), "ethos-u55-64"))
    return path


@pytest.fixture
def inputs(network: Network, tmp_path: Path) -> list[str]:
    """The options for two inputs."""
    options = []
    for index, array in enumerate(random_inputs(network)):
        np.save(tmp_path / f"x{index}.npy", array)
        options += ["--input", f"input{index}={tmp_path / f'x{index}.npy'}"]
    return options


def test_show_prints_configuration_memory_tensors_and_operations(ferrule: Ferrule, stream: Path) -> None:
    outcome = ferrule("ethos-u", "show", stream)
    assert outcome.code == 0
    for text in ("ethos-u55-64, digest ", "scratch", "input0", "input1", "output0", "ELEMENTWISE ADD", "STOP"):
        assert text in outcome.out
    assert "operations, 0 MACs" in outcome.out


def test_show_as_json_has_the_same(ferrule: Ferrule, stream: Path, network: Network) -> None:
    document = json.loads(ferrule("ethos-u", "show", stream, "--json").out)
    assert document["configuration"] == "ethos-u55-64"
    assert [each["name"] for each in document["inputs"]] == ["input0", "input1"]
    (output,) = document["outputs"]
    assert (output["dtype"], output["bytes"]) == ("int8", network.outputs[0].elements)
    assert document["operations"][-1]["operation"] == "STOP"


def test_run_writes_the_outputs_of_the_network(
    ferrule: Ferrule, stream: Path, network: Network, inputs: list[str], tmp_path: Path
) -> None:
    outcome = ferrule("ethos-u", "run", stream, *inputs, "--output", tmp_path / "y.npy", "--check-hazards", "--trace")
    assert (outcome.code, outcome.err) == (0, "")
    (wanted,) = network.run(random_inputs(network))
    assert_array_equal(np.load(tmp_path / "y.npy"), wanted)
    assert f"written to {tmp_path / 'y.npy'}" in outcome.out
    assert "ELEMENTWISE ADD" in outcome.out


def test_run_as_json_has_all_elements(ferrule: Ferrule, stream: Path, network: Network, inputs: list[str]) -> None:
    document = json.loads(ferrule("ethos-u", "run", stream, *inputs, "--json").out)
    (wanted,) = network.run(random_inputs(network))
    assert_array_equal(np.array(document["outputs"]["output0"]), wanted)
    assert document["hazards"] == []


def test_run_begins_with_the_given_states(ferrule: Ferrule, tmp_path: Path) -> None:
    require_module("ethosu", "pip install 'ferrule[ethos-u]'")
    network = vela_case("lstm", 2)
    path = tmp_path / "lstm_vela.npz"
    path.write_bytes(compile_in_process(to_tflite(network), "ethos-u55-64"))
    np.save(tmp_path / "x.npy", random_inputs(network)[0])
    options = []
    for index, state in enumerate(network.states):
        np.save(tmp_path / f"s{index}.npy", state.initial)
        options += ["--state", f"state{index}={tmp_path / f's{index}.npy'}"]
    outcome = ferrule("ethos-u", "run", path, "--input", tmp_path / "x.npy", *options, "--json")
    (wanted,) = network.run(random_inputs(network))
    found = np.array(json.loads(outcome.out)["outputs"]["output0"])
    assert_array_equal(found.reshape(wanted.shape), wanted)


def test_without_inputs_the_options_are_said(ferrule: Ferrule, stream: Path) -> None:
    outcome = ferrule("ethos-u", "run", stream)
    assert (outcome.code, outcome.out) == (2, "")
    assert "error: no input is given" in outcome.err
    assert "hint: --input input0=input0.npy --input input1=input1.npy" in outcome.err


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((3, 3, 3), np.int8), "'input0' has the shape [3, 3, 3], expected [1, "),
        (np.zeros(1, np.float32), "'input0' is float32, expected int8"),
    ],
)
def test_an_array_that_does_not_fit_is_named(
    ferrule: Ferrule, stream: Path, inputs: list[str], tmp_path: Path, array: np.ndarray, message: str
) -> None:
    np.save(tmp_path / "x0.npy", array)
    outcome = ferrule("ethos-u", "run", stream, *inputs, "--output", tmp_path / "y.npy")
    assert outcome.code == 2
    assert message in outcome.err
    assert not (tmp_path / "y.npy").exists()


def test_one_of_two_inputs_is_missing(ferrule: Ferrule, stream: Path, inputs: list[str]) -> None:
    outcome = ferrule("ethos-u", "run", stream, *inputs[:2])
    assert outcome.code == 2
    assert "input 'input1' is missing" in outcome.err


def test_a_state_that_is_not_there_is_named(ferrule: Ferrule, stream: Path, inputs: list[str]) -> None:
    outcome = ferrule("ethos-u", "run", stream, *inputs, "--state", f"state0={inputs[1].partition('=')[2]}")
    assert outcome.code == 2
    assert f"--state state0={inputs[1].partition('=')[2]} names no state, expected name=file" in outcome.err
    assert "the model's states: none" in outcome.err


@pytest.mark.parametrize("contents", [b"", b"PK\x03\x04 no archive", b"TFL3"])
@pytest.mark.parametrize("action", ["show", "run"])
def test_other_files_are_refused(ferrule: Ferrule, tmp_path: Path, contents: bytes, action: str) -> None:
    path = tmp_path / "other.npz"
    path.write_bytes(contents)
    outcome = ferrule("ethos-u", action, path)
    assert outcome.code == 2
    assert f"{path}: is damaged, or no .npz file" in outcome.err
    assert "vela --output-format raw" in outcome.err


def test_a_file_for_another_npu_is_refused(ferrule: Ferrule, stream: Path, tmp_path: Path) -> None:
    with np.load(stream) as archive:
        arrays = {name: archive[name] for name in archive.files if "quantization" not in name}
    payload = bytearray(arrays["cmd_data"].tobytes())
    payload[11] = 0x20  # the product in CONFIG: Ethos-U85
    arrays["cmd_data"] = np.frombuffer(bytes(payload), f"S{len(payload)}")[0]
    np.savez(tmp_path / "u85.npz", **arrays)
    outcome = ferrule("ethos-u", "show", tmp_path / "u85.npz")
    assert outcome.code == 2
    assert "no configuration of Ethos-U55 or Ethos-U65 has CONFIG 0x2" in outcome.err


def test_a_file_that_is_not_there_is_named(ferrule: Ferrule, tmp_path: Path) -> None:
    outcome = ferrule("ethos-u", "show", tmp_path / "absent.npz")
    assert outcome.code == 2
    assert "absent.npz" in outcome.err
