# SPDX-License-Identifier: Apache-2.0
"""CONV_2D by Winograd's algorithm, native in plain C and emulated in assembler, compared with the numpy kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from ckernels import NativeNetwork
from compare import assert_arrays_equal
from layer_case import layer_network, tensor
from lowered_call import lower, lowering_of, run_overlapping
from merged import merged, sample_outputs
from needs import require_module
from numpy.testing import assert_array_equal
from oracle import edge_inputs

from ferrule.backends.cpu_acc.lowering.kernels import winograd
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Found, Row
from ferrule.backends.cpu_acc.lowering.operators.convolution import WEIGHTED_ROWS
from ferrule.backends.firmware import LoweringContext
from ferrule.backends.target import CoreFeatures
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, LayerType, Quantization, Shape, TensorInfo
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import NO_PADDING, Padding
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.testing.backends.comparison import random_inputs

CORTEX_M4 = CoreFeatures(name="cortex-m4", fpu=True, dsp=True)
SAME = Padding(top=1, bottom=1, left=1, right=1)
TRANSFORMED, TRANSFORMING = winograd.WINOGRAD_ROWS
ROWS = pytest.mark.parametrize("row", [TRANSFORMED, TRANSFORMING], ids=["build time", "run time"])


def convolution(
    image: Shape,
    channels: int,
    padding: Padding = SAME,
    activation: Activation = Activation.RELU,
    zero_point: int = -128,
    stride: int = 1,
) -> Network:
    """Return a CONV_2D with a window of 3x3 pixels, random weights and outputs over most of their range."""
    random = np.random.default_rng(image[3] + channels)
    shape = (channels, 3, 3, image[3])
    scales = tuple(float(np.float32(scale)) for scale in random.uniform(0.02, 0.06, channels))
    quantization = Quantization(scales=scales, zero_points=(0,) * channels, axis=0)
    infos = [
        tensor("data", image, DataType.INT8, 0.03, -7),
        TensorInfo("weights", shape, DataType.INT8, quantization=quantization),
        tensor("bias", (channels,), DataType.INT32, 0.001),
    ]
    constants = {1: random.integers(-127, 128, shape, np.int8), 2: random.integers(-9000, 9000, channels, np.int32)}
    descriptor = Conv2dDescriptor(padding=padding, activation=activation, stride_h=stride, stride_w=stride)
    output = Quantization.of(float(np.float32(0.09 * image[3] ** 0.5)), zero_point)
    return layer_network(LayerType.CONV_2D, descriptor, infos, output, constants)


CASES = [
    convolution((1, 4, 4, 16), 4),
    convolution((1, 5, 7, 4), 8, activation=Activation.NONE, zero_point=3),
    convolution((2, 3, 6, 20), 4, activation=Activation.RELU6),
    convolution((1, 7, 9, 32), 4, padding=NO_PADDING, activation=Activation.NONE, zero_point=-20),
    convolution((1, 1, 1, 16), 4),
    convolution((1, 6, 2, 12), 4, padding=Padding(bottom=1, left=1), activation=Activation.RELU6, zero_point=-100),
    convolution((1, 3, 13, 8), 4, padding=Padding(top=1, right=1), activation=Activation.NONE, zero_point=127),
]


def use(monkeypatch: pytest.MonkeyPatch, row: Row, scratch_bytes: int = 1024) -> None:
    """Let CONV_2D have this kernel only, with so much scratch or the least."""

    def fitting(context: LoweringContext) -> Found:
        found = row.candidate(context)
        if isinstance(found, str):
            return found
        assert isinstance(found, Sequence)
        return [each for each in found if each.scratch_bytes <= scratch_bytes][-1:] or found[:1]

    only = replace(row, candidate=fitting)
    monkeypatch.setitem(WEIGHTED_ROWS, LayerType.CONV_2D, (only,))  # type: ignore[arg-type]


def outputs_of(networks: Sequence[Network], native: NativeNetwork, which: int) -> None:
    """Compare a native run of the merged networks with numpy's run of each."""
    inputs = [[random_inputs(network), *edge_inputs(network).values()][which] for network in networks]
    results = native.run([array for some in inputs for array in some])
    for network, some, got in zip(networks, inputs, results, strict=True):
        assert_array_equal(got, network.run(some)[0])


@pytest.mark.cc
@pytest.mark.parametrize(("row", "scratch_bytes"), [(TRANSFORMED, 0), (TRANSFORMING, 0), (TRANSFORMING, 9000)])
def test_plain_c_is_exact(monkeypatch: pytest.MonkeyPatch, row: Row, scratch_bytes: int) -> None:
    use(monkeypatch, row, scratch_bytes)
    native = NativeNetwork(merged(CASES), core=CORTEX_M4)
    assert set(native.kernels) == {row.kernel}
    for which in range(4):
        outputs_of(CASES, native, which)


@pytest.mark.cc
@pytest.mark.parametrize(("row", "scratch_bytes"), [(TRANSFORMED, 0), (TRANSFORMING, 9000)])
def test_the_output_may_overlap_the_input_at_the_least_distance(
    monkeypatch: pytest.MonkeyPatch, row: Row, scratch_bytes: int
) -> None:
    use(monkeypatch, row, scratch_bytes)
    for network in CASES:
        op = lower(network, CORTEX_M4)
        (overlap,) = op.overlaps
        assert overlap.distance_bytes is not None
        inputs = random_inputs(network)
        got = run_overlapping(network, inputs, overlap, overlap.distance_bytes, op)
        assert_array_equal(got, network.run(inputs)[0])


@pytest.mark.emu
@ROWS
def test_assembler_is_exact(monkeypatch: pytest.MonkeyPatch, row: Row) -> None:
    require_module("unicorn", "pip install ferrule[run]")
    require_module("ziglang", "pip install ferrule[run]")
    import ferrule

    use(monkeypatch, row, 9000)
    network = merged(CASES)
    samples = [random_inputs(network), *edge_inputs(network).values()]
    results = sample_outputs(ferrule.compile(network, board="mps2-an386"), samples)
    for inputs, outputs in zip(samples, results, strict=True):
        assert_arrays_equal(outputs, network.run(inputs))


REFUSED = {
    "the window is not 3x3": convolution((1, 5, 5, 4), 4, stride=2),
    "the padding is more than 1": convolution((1, 5, 5, 4), 4, padding=Padding(top=2, bottom=1, left=1, right=1)),
    "not a multiple of 4": convolution((1, 5, 5, 4), 6),
}


@ROWS
@pytest.mark.parametrize("reason", REFUSED)
def test_other_convolutions_are_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch, row: Row, reason: str) -> None:
    use(monkeypatch, row)
    with pytest.raises(UnsupportedError, match=reason):
        lower(REFUSED[reason], CORTEX_M4)


def candidates(monkeypatch: pytest.MonkeyPatch, network: Network, row: Row, scratch_bytes: int = 1024) -> Candidate:
    """Return the row's candidate for a network of one layer, with so much scratch or the least."""
    use(monkeypatch, row, scratch_bytes)
    (only,) = WEIGHTED_ROWS[LayerType.CONV_2D]
    (found,) = only.candidate(lowering_of(network))
    assert isinstance(found, Candidate)
    return found


@ROWS
@pytest.mark.parametrize("image", [(1, 8, 8, 16), (1, 8, 8, 20)])
def test_costs_are_those_of_the_lowered_layer(monkeypatch: pytest.MonkeyPatch, row: Row, image: Shape) -> None:
    network = convolution(image, 8)
    candidate = candidates(monkeypatch, network, row)
    op = candidate.lowered(lowering_of(network))
    assert op.scratch_bytes == candidate.scratch_bytes
    assert sum(blob.data.nbytes for blob in op.blobs) == candidate.weight_bytes


def test_more_scratch_transforms_the_weights_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    network = convolution((1, 8, 8, 32), 8)
    little = candidates(monkeypatch, network, TRANSFORMING, 1024)
    much = candidates(monkeypatch, network, TRANSFORMING, 12000)
    assert little.scratch_bytes == 2048 + 2048 + 512
    assert little.scratch_bytes < much.scratch_bytes <= 12000
    assert much.instructions < little.instructions
