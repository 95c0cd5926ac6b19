# SPDX-License-Identifier: Apache-2.0
"""A device works beside the core on an emulated board: the run takes as long as the longer branch of the network."""

from __future__ import annotations

import numpy as np
import pytest
from needs import require_module
from small_networks import SCALE, int8_input

import ferrule
from ferrule import Network, Quantization

pytestmark = [pytest.mark.cc, pytest.mark.emu]

COMMON, NPU, CORE = ("common", "join"), ("npu0", "npu1", "npu2"), ("core0", "core1")
HINTS = dict.fromkeys((*COMMON, *CORE), "CpuAcc") | dict.fromkeys(NPU, "Woofles")


def two_branches() -> Network:
    """Return a network with a branch for the device and one for the core, which take about the same time."""
    generator = np.random.default_rng(3)
    network = Network("branches")
    network.add_input(int8_input("x", 1, 12, 12, 8))
    network.add_relu_layer("x", name="common")

    def convolution(source: str, name: str, size: int) -> str:
        channels = network.info(source).shape[3]
        return network.add_conv2d_layer(
            source,
            generator.integers(-127, 128, (8, size, size, channels), dtype=np.int8),
            generator.integers(-300, 300, 8, dtype=np.int32),
            weights_quantization=Quantization.of(0.02, 0),
            quantization=SCALE,
            padding="same",
            name=name,
        )

    device = convolution(convolution(convolution("common", "npu0", 5), "npu1", 5), "npu2", 3)
    core = network.add_tanh_layer(convolution("common", "core0", 1), name="core1")
    network.add_add_layer(device, core, quantization=SCALE, name="join")
    network.set_outputs(["join"])
    return network


def test_a_run_takes_as_long_as_its_longer_branch() -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    network = two_branches()
    serial = ferrule.compile(network, backends=["Woofles", "CpuAcc"], hints=HINTS, overlap="off").run()
    beside = ferrule.compile(network, backends=["Woofles", "CpuAcc"], hints=HINTS)
    report = beside.run(check_ownership=True, trace_devices=True)
    assert serial.verdict is report.verdict is ferrule.Verdict.EXACT

    counts = {layer.name: layer.count for layer in serial.layers}
    common, device, core = (sum(counts[name] for name in names) for names in (COMMON, NPU, CORE))
    assert min(device, core) > 0.5 * max(device, core)  # so that the overlap matters
    assert serial.count_per_inference >= common + device + core
    assert report.count_per_inference <= 1.1 * (common + max(device, core))

    assert {name for layer in report.layers for name in layer.beside} == set(NPU)
    assert all(layer.beside == () for layer in serial.layers)
    trace = report.document.device_trace
    assert trace is not None
    assert trace.as_planned
    assert [call.layer for call in trace.calls if call.call == "finish"] == list(NPU)

    inspection = ferrule.inspect(network, beside.job, schedule=True)
    assert inspection.schedule is not None
    calls = [call for part in inspection.schedule for call in part.calls if "finish" in call]
    assert calls == [f"Woofles finish {name}" for name in NPU]
    assert [part.beside for part in inspection.schedule] == [layer.beside for layer in report.layers]
