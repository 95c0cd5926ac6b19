# SPDX-License-Identifier: Apache-2.0
"""Slices of the campaign of random networks over all operators. tests/networks.py runs whole campaigns."""

from __future__ import annotations

import numpy as np
import pytest
from composed_campaign import Case, Report, Setting, check, run_campaign
from composed_checks import difference, observed
from composed_networks import composed_network, coverage_count, types_of
from gpu_face import require_opencl
from host_library import library
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import require_module, require_program

from ferrule.graph import LayerType

SEED = 1
HOST = Setting(hosts=(("CpuAcc", "CpuRef"),), board="", oracle=False)


def refusals(report: Report) -> set[str]:
    """Return why networks did not run, except TensorFlow Lite Micro's reasons and a known one of files."""
    known = "TensorFlow Lite's CIRCULAR_BUFFER ends a run"
    return {reason for reason in report.refusals if not reason.startswith("TFLM: ") and known not in reason}


@pytest.mark.cc
def test_networks_of_all_operators_on_the_host_and_in_files() -> None:
    library()
    report = run_campaign(HOST, seed=SEED, first=0, count=coverage_count(), batch=coverage_count(), kinds=[False])
    assert report.failures == []
    assert report.absent == set()
    assert refusals(report) == set()
    assert report.compared["CpuAcc"] == report.compared["file"] + report.refusals.total() == coverage_count()


@pytest.mark.cc
@settings(max_examples=2)
@given(st.integers(0, 2**32), st.integers(0, 1000), st.booleans())
def test_any_network_on_the_host_and_in_a_file(seed: int, index: int, integers: bool) -> None:
    library()
    report = Report()
    check([Case(seed=seed, index=index, integers=integers)], HOST, report)
    assert report.failures == []
    assert refusals(report) == set()


@pytest.mark.emu
@pytest.mark.parametrize(
    ("board", "count"),
    [
        ("mps2-an386", 1),
        *(pytest.param(board, 24, marks=pytest.mark.nightly) for board in ("mps2-an386", "mps2-an385", "mps2-an505")),
    ],
)
def test_networks_in_firmware_on_a_gpu_and_in_tensorflow(board: str, count: int) -> None:
    require_program("arm-none-eabi-gcc", "apt install gcc-arm-none-eabi")
    require_module("unicorn", "pip install ferrule[run]")
    require_module("tflite_micro", "pip install --pre tflite-micro")
    require_opencl()
    for first in range(40, 40 + 10 * count, count):
        report = run_campaign(Setting(board=board), seed=SEED, first=first, count=count, batch=12, kinds=[False, True])
        assert report.failures == []
        assert refusals(report) == set()
        assert report.compared["GpuAcc"] == report.compared[board] == 2 * count
        if report.compared["TFLM"] and report.on["GpuAcc first: GpuAcc"]:
            return
    pytest.fail("TensorFlow Lite Micro, or the GPU, ran no network")


def test_a_difference_names_the_run_and_the_layer() -> None:
    network = observed(composed_network(SEED, 3, integers=True), private=True)
    inputs = Case(seed=SEED, index=3, integers=True).inputs(network)
    state = network.initial_state()
    outputs = [network.run(each, state=state) for each in inputs]
    assert difference(network, inputs, outputs) == ""
    wrong = np.array(outputs[2][5])
    wrong.flat[0] ^= 1
    outputs[2][5] = wrong
    (writer,) = (layer for layer in network.layers if network.outputs[5].name in layer.outputs)
    assert difference(network, inputs, outputs).startswith(f"run 2, layer '{writer.name}' {writer.type}")


def test_networks_without_floats_have_none() -> None:
    for index in range(3):
        network = composed_network(SEED, index, integers=True)
        assert not any(tensor.info.dtype.is_float for tensor in network.tensors)
        assert LayerType.DEQUANTIZE not in types_of(network)
