# SPDX-License-Identifier: Apache-2.0
"""The bounds of layers are those of the best kernels: no shape of the corpus takes less, and some take little more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from corpus_shapes import KINDS, corpus
from corpus_table import CORES, TOOLCHAINS, read

import ferrule
from ferrule.backends.cpu_acc.lowering.bounds import bound_of
from ferrule.backends.device import BackendId
from ferrule.backends.firmware import LoweringContext
from ferrule.backends.target import CoreFeatures, Face, default_target
from ferrule.boards import load_board
from ferrule.graph import DataType, LayerType, Quantization, TensorInfo
from ferrule.network import Network
from ferrule.operators.activation import Activation

NEAR = 1.4
"""A bound is near if the best shape of its kind takes at most this many times as much."""


def bounds(core: str, kind: str) -> dict[str, tuple[LayerType, int | None]]:
    """Return the type and the bound of each shape."""
    network, features = corpus(kind), load_board(CORES[core]).cpu.features
    target = replace(default_target(BackendId("CpuAcc"), Face.FIRMWARE), core=features)
    contexts = (
        LoweringContext(graph=network, layer=each, target=target, prefix="", pointers={}) for each in network.layers
    )
    return {each.layer.name: (each.layer.type, bound_of(each)) for each in contexts}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("core", CORES)
def test_bounds_are_those_of_the_best_kernels(core: str, kind: str) -> None:
    table = read()
    least: dict[LayerType, float] = {}
    for name, (type_, bound) in bounds(core, kind).items():
        row = f"{core} {kind} {name}"
        if bound is None or row not in table["work"]:
            continue
        ratio = min(table[toolchain][row] for toolchain in TOOLCHAINS) / bound
        assert ratio >= 1, f"{row} takes {ratio:.2f} times its bound"
        least[type_] = min(ratio, least.get(type_, ratio))
    assert least
    assert {type_: ratio for type_, ratio in least.items() if ratio > NEAR} == {}


def test_no_bound_without_a_measurement() -> None:
    network = corpus("int8", ["mul"])
    (layer,) = (each for each in network.layers if each.name == "mul")
    for core in (None, CoreFeatures(name="cortex-m0plus")):
        target = replace(default_target(BackendId("CpuAcc"), Face.FIRMWARE), core=core)
        assert bound_of(LoweringContext(graph=network, layer=layer, target=target, prefix="", pointers={})) is None


BOARD = "mps2-an386"


def convolution(inputs: int, outputs: int, window: int, stride: int) -> Network:
    network = Network("convolution")
    source = TensorInfo(name="x", shape=(1, 10, 10, inputs), dtype=DataType.INT8, quantization=Quantization.of(0.02))
    weights = np.resize(np.arange(-60, 61, dtype=np.int8), (outputs, window, window, inputs))
    output = network.add_conv2d_layer(
        network.add_input(source),
        weights,
        np.zeros(outputs, np.int32),
        strides=(stride, stride),
        padding="same",
        activation=Activation.RELU,
        weights_quantization=Quantization.of(0.01),
        quantization=Quantization.of(0.5, -128),
    )
    network.set_outputs([output])
    return network


@pytest.mark.parametrize(
    ("inputs", "outputs", "window", "stride"),
    [(256, 16, 1, 1), (32, 16, 3, 2), (12, 32, 5, 1), (16, 16, 3, 1)],
)
def test_the_best_kernel_is_not_costly(inputs: int, outputs: int, window: int, stride: int) -> None:
    report = ferrule.inspect(convolution(inputs, outputs, window, stride), board=BOARD, goal="speed", kernels=True)
    assert report.kernels is not None
    (layer,) = report.kernels
    assert layer.bound is not None
    assert layer.advice == ""
