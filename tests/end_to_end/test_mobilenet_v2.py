# SPDX-License-Identifier: Apache-2.0
"""MobileNetV2 whose image arrives row by row, in less memory than a board of 192 KiB has."""

from __future__ import annotations

import numpy as np
import pytest
from mobilenet_v2 import mobilenet_v2
from needs import require_module, require_program

import ferrule
from ferrule import Network
from ferrule.graph import Array

MCUNET_V2_BYTES = 172 * 1024
"""The activations of MobileNetV2 in MCUNetV2 (arXiv 2110.15352, figure 1), at 224 x 224."""


def activations(network: Network, *, input_rows: bool) -> int:
    """Return the bytes of activations of a run that is bit-exact."""
    require_module("unicorn", "pip install ferrule[run]")
    require_program("arm-none-eabi-gcc", "apt install gcc-arm-none-eabi")
    job = ferrule.Job(board="mps2-an386", toolchain="arm-none-eabi-gcc", goal="memory", input_rows=input_rows)
    firmware = ferrule.compile(network, job)
    image = np.random.default_rng(5).integers(-128, 128, network.inputs[0].shape, dtype=np.int8)
    report = firmware.run([image], engine="unicorn", timeout_s=300)
    assert report.verdict == "exact"
    assert "stream" in {layer.kernel for layer in report.layers}
    return report.memory.arena.activation_bytes


@pytest.mark.emu
def test_a_small_one_takes_rows() -> None:
    network = mobilenet_v2(32, 0.35, classes=10, blocks=4)
    assert activations(network, input_rows=True) < 16 * 16 * 48 / 2, "half of the largest tensor alone"


@pytest.mark.emu
@pytest.mark.nightly
def test_the_whole_one_fits_where_mcunet_v2_fits() -> None:
    network = mobilenet_v2()
    assert activations(network, input_rows=True) <= MCUNET_V2_BYTES
    assert activations(network, input_rows=False) < 2 * MCUNET_V2_BYTES, "with the whole image in memory"


@pytest.mark.nightly
def test_its_activations_do_not_saturate() -> None:
    network = mobilenet_v2(96, 0.35)
    image = np.random.default_rng(6).integers(-128, 128, network.inputs[0].shape, dtype=np.int8)
    made: dict[str, Array] = {}
    network.run([image], observe=lambda layer, outputs: made.update({layer.name: outputs[0]}))
    for name, values in made.items():
        if name.startswith(("conv", "depthwise", "add")):
            assert np.mean(values == 127) < 0.1, name
            assert len(np.unique(values)) > 16, name
