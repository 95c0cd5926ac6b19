# SPDX-License-Identifier: Apache-2.0
"""A trained model divided between the example backend and the core, in one firmware and on the host."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from needs import require_module

import ferrule
from ferrule.backends.registry import registry_with
from ferrule.network.samples import pattern_sample
from ferrule.optimizer import optimize
from ferrule.runtime import Runtime

EXAMPLE = Path(__file__).parents[2] / "examples" / "custom_backend" / "my_custom"


@pytest.fixture
def network(models: Path) -> ferrule.Network:
    """The one of the four models that has additions."""
    return ferrule.load(models / "pretrainedResnet_quant.tflite")


@pytest.mark.cc
@pytest.mark.emu
def test_on_a_board(network: ferrule.Network) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    firmware = ferrule.compile(network, backends=["MyCustom", "CpuAcc"], registry=registry_with([EXAMPLE]))
    info = network.inputs[0]
    x = np.random.default_rng(0).integers(-128, 128, (2, *info.shape[1:])).astype(np.int8)
    report = firmware.run([x])
    assert report.verdict is ferrule.Verdict.EXACT
    assert [layer.backend for layer in report.layers if layer.type == "PRE_COMPILED"] == ["MyCustom"] * 3
    assert {layer.backend for layer in report.layers} == {"MyCustom", "CpuAcc"}


def test_on_the_host(network: ferrule.Network) -> None:
    sample = pattern_sample(network.inputs)
    with Runtime(registry=registry_with([EXAMPLE])) as runtime:
        number = runtime.load_network(optimize(network, ["MyCustom", "CpuRef"], runtime.registry))
        (output,) = runtime.enqueue_workload(number, sample)
    assert output.tobytes() == network.run(sample)[0].tobytes()
