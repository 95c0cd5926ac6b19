# SPDX-License-Identifier: Apache-2.0
"""Layers of one input whose kernels have instructions of some cores: on emulated ones, and as plain C here."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from layer_case import layer_network
from lowered_call import run_lowered
from merged import merged
from needs import require_module, require_program
from numpy.testing import assert_array_equal
from oracle import edge_inputs

import ferrule
from ferrule.graph import Array, DataType, LayerType, Quantization, Shape, TensorInfo
from ferrule.network import Network
from ferrule.operators.reductions.softmax import SoftmaxDescriptor
from ferrule.testing.backends.comparison import random_inputs

pytestmark = pytest.mark.cc
STORED = Quantization.of(0.11, -5)


def layer(shape: Shape, add: Callable[[Network, str], str], dtype: DataType = DataType.INT8) -> Network:
    """Return a network of the layer that `add` adds for an input."""
    network = Network("layer")
    source = network.add_input(TensorInfo("x", shape, dtype, quantization=STORED if dtype is DataType.INT8 else None))
    network.set_outputs([add(network, source)])
    return network


def softmax(*shape: int, beta: float = 1.0) -> Network:
    return layer(shape, lambda network, source: network.add_softmax_layer(source, beta=beta))


def wide_softmax(*shape: int) -> Network:
    """Return a SOFTMAX to int16, which only files have."""
    output = Quantization.of(2.0**-16, -32768)
    infos = [TensorInfo("x", shape, DataType.INT8, quantization=STORED)]
    return layer_network(LayerType.SOFTMAX, SoftmaxDescriptor(), infos, output, output_dtype=DataType.INT16)


def resize(channels: int, *, half: bool = False, corners: bool = False) -> Network:
    return layer(
        (2, 3, 5, channels),
        lambda network, source: network.add_resize_bilinear_layer(
            source, (7, 8), half_pixel_centers=half, align_corners=corners
        ),
    )


def transpose(shape: Shape, *axes: int) -> Network:
    return layer(shape, lambda network, source: network.add_transpose_layer(source, axes))


def quantize(scale: float, zero_point: int, dtype: DataType = DataType.INT8) -> Network:
    quantization = Quantization.of(scale, zero_point)
    return layer(
        (61,), lambda network, source: network.add_quantize_layer(source, dtype, quantization), DataType.FLOAT32
    )


CASES = {
    "softmax, rows of 32": softmax(3, 32),
    "softmax, odd rows": softmax(4, 17),
    "softmax, short rows": softmax(5, 3),
    "softmax, single elements": softmax(3, 1),
    "softmax to int16": wide_softmax(3, 9),
    "softmax, few exponentials": softmax(2, 70, beta=40.0),
    "softmax, equal exponentials": softmax(2, 70, beta=2.0**-10),
    "table of one element": layer((1,), lambda network, source: network.add_tanh_layer(source)),
    "table of 37 elements": layer((37,), lambda network, source: network.add_logistic_layer(source)),
    "resize, one channel": resize(1),
    "resize, five channels": resize(5, half=True),
    "resize, eight channels": resize(8, corners=True),
    "transpose": transpose((5, 7, 3), 2, 0, 1),
    "transpose to rows of one column": transpose((40, 3), 1, 0),
    "reverse": layer((3, 50), lambda network, source: network.add_reverse_v2_layer(source, (1,))),
    "quantize": quantize(0.25, -128),
    "quantize, any scale": quantize(0.0137, 127),
    "quantize to int16": quantize(0.25, 0, DataType.INT16),
    "dequantize": layer((19,), lambda network, source: network.add_dequantize_layer(source)),
}


def inputs_of(network: Network) -> Array:
    """Return random numbers; of float32, halves and their neighbours, infinities and a NaN."""
    (info,) = network.inputs
    if info.dtype is not DataType.FLOAT32:
        return random_inputs(network)[0]
    (output,) = network.outputs
    steps = np.array([0.5, 1.5, 2.5, 31.5, 126.5, 127.5, 255.5, 32767.5, 2.0**24, 2.0**40], np.float32)
    near = np.concatenate([np.nextafter(steps, np.float32(0)), steps, np.nextafter(steps, np.float32(np.inf))])
    scale = np.float32(output.scale)
    return np.concatenate([near, -near, [np.nan]]).astype(np.float32) * scale


def test_the_plain_c() -> None:
    for case, network in CASES.items():
        for inputs in [[inputs_of(network)], *edge_inputs(network).values()]:
            assert_array_equal(run_lowered(network, inputs)[0], network.run(inputs)[0], err_msg=case)


@pytest.mark.emu
@pytest.mark.parametrize(("board", "engine"), [("mps2-an386", "unicorn"), ("mps3-an547", "qemu")])
def test_the_assembler(board: str, engine: str) -> None:
    require_module("unicorn", "pip install ferrule[run]")
    require_program("arm-none-eabi-gcc", "apt install gcc-arm-none-eabi")
    require_program("qemu-system-arm", "apt-get install qemu-system-arm")
    # results in float32 are compared with those of this machine, whose library takes long to compile
    cases = {case: each for case, each in CASES.items() if not each.outputs[0].dtype.is_float}
    network = merged(list(cases.values()))
    inputs = [inputs_of(each) for each in cases.values()]
    firmware = ferrule.compile(network, board=board, toolchain="arm-none-eabi-gcc", goal="speed")
    report = firmware.run(inputs, engine=engine)
    for case, got, wanted in zip(cases, report.outputs, network.run(inputs), strict=True):
        assert_array_equal(got, wanted, err_msg=case)
