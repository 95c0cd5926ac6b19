# SPDX-License-Identifier: Apache-2.0
"""Layers without weights by ONNX's rule on emulated boards: with a fused multiply-add, without an FPU, and Armv6-M."""

from __future__ import annotations

import random

import numpy as np
import pytest
from layer_case import layer_network, tensor
from merged import merged
from needs import require_module
from onnx_layers import CASES, PAIRS, pairs_network

import ferrule
from ferrule.graph import Array, DataType
from ferrule.network import Network
from ferrule.report import Verdict

pytestmark = pytest.mark.emu
BOARDS = [
    "mps2-an386",
    *(pytest.param(board, marks=pytest.mark.nightly) for board in ("mps2-an385", "mps2-an505", "stm32g0b1")),
]


def layers(*, everything: bool) -> tuple[Network, list[Array]]:
    """Return layers merged into one network, and its inputs; without `everything`, those of two inputs only."""
    found = [CASES[name](random.Random(name)) for name in CASES] if everything else []
    networks, inputs = [case.network for case in found], [data for case in found for data in case.inputs]
    generator = np.random.default_rng(0)
    for type_, rule in PAIRS:
        drawn = pairs_network(type_, rule, random.Random(1))
        infos = [tensor(info.name, (500,), DataType.INT8, info.scale, info.zero_point) for info in drawn.inputs]
        output = drawn.outputs[0].quantization
        networks.append(layer_network(type_, drawn.layers[0].descriptor, infos, output, rounding=rule))
        inputs += [generator.integers(-128, 127, 500, dtype=np.int8, endpoint=True) for _ in infos]
    return merged(networks), inputs


@pytest.mark.parametrize("board", BOARDS)
def test_the_firmware_computes_the_rule(board: str, request: pytest.FixtureRequest) -> None:
    require_module("unicorn", "pip install 'ferrule[run]'")
    require_module("ziglang", "pip install 'ferrule[run]'")
    everything = request.node.get_closest_marker("nightly") is not None
    network, inputs = layers(everything=everything)
    report = ferrule.compile(network, board=board).run(inputs)
    assert report.verdict is Verdict.EXACT
    assert "fused_sum_s8" in {layer.kernel for layer in report.layers}
