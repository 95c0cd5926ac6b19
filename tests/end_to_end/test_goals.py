# SPDX-License-Identifier: Apache-2.0
"""What each goal is for: the firmware for `balanced` does not have less of it, counted on emulated boards."""

from __future__ import annotations

import numpy as np
import pytest
from layer_case import layer_network
from merged import merged
from needs import require_module

import ferrule
from ferrule.backends.target import Goal
from ferrule.graph import DataType, LayerType, Quantization, Shape, TensorInfo
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.operator import Descriptor
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor

AROUND = Padding(top=1, bottom=1, left=1, right=1)
RELU = Activation.RELU


def layer(type_: LayerType, descriptor: Descriptor, image: Shape, weights: Shape, channels: int) -> Network:
    random = np.random.default_rng(channels)
    infos = [
        TensorInfo("data", image, DataType.INT8, quantization=Quantization.of(2.0**-5, 5)),
        TensorInfo("weights", weights, DataType.INT8, quantization=Quantization.of(2.0**-6)),
        TensorInfo("bias", (channels,), DataType.INT32, quantization=Quantization.of(2.0**-11)),
    ]
    constants = {1: random.integers(-127, 128, weights, np.int8), 2: random.integers(-500, 500, channels, np.int32)}
    return layer_network(type_, descriptor, infos, Quantization.of(0.5, -128), constants)


NETWORK = merged(
    [
        layer(LayerType.CONV_2D, Conv2dDescriptor(padding=AROUND, activation=RELU), (1, 9, 9, 8), (16, 3, 3, 8), 16),
        layer(LayerType.CONV_2D, Conv2dDescriptor(activation=RELU), (1, 9, 9, 16), (24, 1, 1, 16), 24),
        layer(
            LayerType.DEPTHWISE_CONV_2D,
            DepthwiseConv2dDescriptor(padding=AROUND, activation=RELU),
            (1, 9, 9, 20),
            (1, 3, 3, 20),
            20,
        ),
        # two outputs fill no block of channels
        layer(LayerType.FULLY_CONNECTED, FullyConnectedDescriptor(), (1, 256), (2, 256), 2),
    ]
)


@pytest.mark.emu
@pytest.mark.parametrize("board", ["mps2-an386", "mps2-an385", pytest.param("stm32g0b1", marks=pytest.mark.nightly)])
def test_a_goal_takes_less_of_what_it_is_for_than_balanced(board: str) -> None:
    require_module("unicorn", "pip install ferrule[run]")
    instructions, flash, workspace = {}, {}, {}
    for goal in Goal:
        report = ferrule.compile(NETWORK, board=board, toolchain="zig", goal=goal.value).run(engine="unicorn")
        assert report.verdict == "exact"
        assert report.memory.flash is not None
        instructions[goal] = report.count.per_inference
        flash[goal] = report.memory.flash.total
        workspace[goal] = report.memory.arena.size_bytes
    assert instructions[Goal.SPEED] <= instructions[Goal.BALANCED]
    assert flash[Goal.SIZE] <= flash[Goal.BALANCED]
    assert workspace[Goal.MEMORY] <= workspace[Goal.BALANCED]
    assert instructions[Goal.SPEED] < instructions[Goal.SIZE]
    # the order of these layers leaves room for scratch, which both goals find
    assert instructions[Goal.MEMORY] <= 1.15 * instructions[Goal.BALANCED]
