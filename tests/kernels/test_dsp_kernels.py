# SPDX-License-Identifier: Apache-2.0
"""Kernels for cores with the DSP extension: in plain C on the host, in assembler on an emulated board."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from layer_case import layer_network
from lowered_call import lower, lowering_of, run_lowered
from merged import merged
from needs import require_module, require_program
from numpy.testing import assert_array_equal
from oracle import edge_inputs

from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Found, Row
from ferrule.backends.cpu_acc.lowering.kernels.depthwise_3x3 import LINES
from ferrule.backends.cpu_acc.lowering.kernels.depthwise_taps import PROVED_TAPS_ROW, TAPS_ROW
from ferrule.backends.cpu_acc.lowering.kernels.depthwise_window import PAIRS_ROW, WORDS_ROW
from ferrule.backends.cpu_acc.lowering.operators.convolution import WEIGHTED_ROWS
from ferrule.backends.firmware import LoweringContext
from ferrule.backends.target import CoreFeatures
from ferrule.graph import Array, DataType, LayerType, Quantization, Shape, TensorInfo
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.elementwise.binary import BinaryDescriptor
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.testing.backends.comparison import random_inputs

CORE = CoreFeatures(name="cortex-m4", dsp=True)
_DEAD = -(2**29)


def depthwise(
    image: tuple[int, int, int, int],
    strides: tuple[int, int],
    pads: tuple[int, int, int, int],
    *,
    dead: float = 0.0,
    bias: int = 3000,
    scale: float = 0.171,
) -> Network:
    """Return a DEPTHWISE_CONV_2D of 3x3; `pads` are top, bottom, left, right."""
    random = np.random.default_rng(sum(image) + 10 * strides[0] + pads[0])
    channels = image[3]
    infos = [
        TensorInfo("data", image, DataType.INT8, quantization=Quantization.of(2.0**-5, 7)),
        TensorInfo("weights", (1, 3, 3, channels), DataType.INT8, quantization=Quantization.of(2.0**-5)),
        TensorInfo("bias", (channels,), DataType.INT32, quantization=Quantization.of(2.0**-10)),
    ]
    biases = np.where(random.random(channels) < dead, _DEAD, random.integers(-bias, bias, channels))
    constants: dict[int, Array] = {
        1: random.integers(-128, 128, infos[1].shape, np.int8),
        2: biases.astype(np.int32),
    }
    descriptor = DepthwiseConv2dDescriptor(
        stride_h=strides[0],
        stride_w=strides[1],
        padding=Padding(top=pads[0], bottom=pads[1], left=pads[2], right=pads[3]),
        activation=Activation.RELU,
    )
    output = Quantization.of(scale, -128)
    return layer_network(LayerType.DEPTHWISE_CONV_2D, descriptor, infos, output, constants)


def windowed(
    image: tuple[int, int, int, int],
    kernel: tuple[int, int],
    *,
    zero_point: int = -128,
    dilation: int = 1,
    stride: int = 1,
    multiplier: int = 1,
    padded: bool = True,
    shift: int = 0,
    activation: Activation = Activation.NONE,
) -> Network:
    """Return a DEPTHWISE_CONV_2D with a window of any size; `shift` pixels are padded after the image, not before."""
    random, channels = np.random.default_rng(kernel[0] + 10 * kernel[1]), image[3] * multiplier
    infos = [
        TensorInfo("data", image, DataType.INT8, quantization=Quantization.of(2.0**-5, -3)),
        TensorInfo("weights", (1, *kernel, channels), DataType.INT8, quantization=Quantization.of(2.0**-5)),
        TensorInfo("bias", (channels,), DataType.INT32, quantization=Quantization.of(2.0**-10)),
    ]
    constants: dict[int, Array] = {
        1: random.integers(-128, 128, infos[1].shape, np.int8),
        2: random.integers(-900, 900, channels).astype(np.int32),
    }
    high, wide = ((extent - 1) * dilation * padded for extent in kernel)
    top, left = high // 2 - shift, wide // 2 - shift
    descriptor = DepthwiseConv2dDescriptor(
        stride_h=stride,
        stride_w=stride,
        dilation_h=dilation,
        dilation_w=dilation,
        depth_multiplier=multiplier,
        padding=Padding(top=top, bottom=high - top, left=left, right=wide - left),
        activation=activation,
    )
    return layer_network(LayerType.DEPTHWISE_CONV_2D, descriptor, infos, Quantization.of(0.4, zero_point), constants)


WINDOWED = {
    "5x5, one channel more": windowed((1, 6, 7, 5), (5, 5)),
    "lines that move in scratch": windowed((1, 31, 6, 4), (5, 5)),
    "1x7, linear": windowed((1, 3, 9, 8), (1, 7), zero_point=10),
    "7x1, stride 2": windowed((2, 9, 3, 3), (7, 1), stride=2),
    "4x4, stride 3": windowed((1, 11, 13, 5), (4, 4), stride=3),
    "stride 3 beyond the window": windowed((1, 11, 13, 4), (2, 2), stride=3),
    "3x9, stride 4, a row for each start": windowed((1, 7, 23, 4), (3, 9), stride=4),
    "5x5, dilated, linear": windowed((1, 8, 6, 6), (5, 5), zero_point=-20, dilation=2),
    "3x2, stride 2 of dilation 3": windowed((1, 10, 12, 4), (3, 2), dilation=3, stride=2),
    "2x2": windowed((1, 4, 5, 4), (2, 2)),
    "4x4, parts without pixels": windowed((1, 3, 4, 4), (4, 4), dilation=3, shift=3),
    "one pixel, limited": windowed((1, 5, 6, 4), (1, 1), zero_point=-20, activation=Activation.RELU6),
    "several outputs per input": windowed((1, 5, 6, 3), (3, 5), multiplier=3),
}
WHOLE = {
    "21x1": windowed((1, 21, 1, 6), (21, 1), padded=False),
    "2x4 at the border": windowed((1, 2, 3, 8), (2, 4), stride=3, zero_point=3),
    "7x1, whole fours": windowed((1, 7, 1, 12), (7, 1), padded=False, zero_point=20),
    "3x1 of 5 lines, dilated, two images": windowed((2, 5, 1, 9), (3, 1), dilation=2, padded=False),
    "5x1, clamped": windowed((1, 5, 1, 8), (5, 1), padded=False, activation=Activation.RELU6),
}
"""Windows of a single output."""
_MANY = 16
MANY = {
    "21x1 of sixteen channels": windowed((1, 21, 1, 16), (21, 1), padded=False),
    "2x4 at the border, three channels more": windowed((1, 2, 3, 19), (2, 4), stride=3),
    "1x1, two images": windowed((2, 1, 1, 17), (1, 1)),
    "3x1 of 5 lines, dilated, two images": windowed((2, 5, 1, 18), (3, 1), dilation=2, padded=False),
}
"""The same of at least so many channels, which the kernel for proved constants computes here."""
THREE = {
    "dilated 3x3": (windowed((1, 9, 11, 6), (3, 3), dilation=2), "by1"),
    "3x3 dilated by more than the image": (windowed((1, 3, 4, 4), (3, 3), dilation=5), "by1"),
    "3x3, parts without pixels": (windowed((1, 3, 4, 4), (3, 3), dilation=5, shift=3), "by1"),
    "3x3, stride 2 of dilation 3": (windowed((1, 11, 12, 5), (3, 3), dilation=3, stride=2), "by2"),
    "3x3, linear, odd steps": (windowed((1, 9, 7, 5), (3, 3), zero_point=-20), "by1_exact"),
    "3x3, linear, small factors": (windowed((1, 5, 1, 4), (3, 3), zero_point=60), "by1_exact"),
    "3x3, linear, stride 2": (windowed((2, 9, 11, 6), (3, 3), zero_point=-20, stride=2), "by2_exact"),
    "3x3, two outputs per input": (windowed((2, 6, 5, 5), (3, 3), multiplier=2), "by1"),
}


SAME = (1, 1, 1, 1)
DEPTHWISE: dict[str, tuple[Network, str]] = {
    "rows, all phases of the loop": (depthwise((1, 3, 9, 4), (1, 1), SAME), "by1"),
    "columns, odd steps": (depthwise((1, 25, 5, 8), (1, 1), SAME), "by1"),
    "one row": (depthwise((1, 1, 6, 5), (1, 1), SAME), "by1"),
    "one pixel": (depthwise((1, 1, 1, 3), (1, 1), SAME), "by1"),
    "no padding, five channels": (depthwise((1, 6, 7, 5), (1, 1), (0, 0, 0, 0)), "by1"),
    "two pixels before": (depthwise((1, 4, 5, 6), (1, 1), (2, 0, 2, 0)), "by1"),
    "two images, dead channels": (depthwise((2, 5, 4, 11), (1, 1), SAME, dead=0.5), "by1"),
    "very small factors": (depthwise((1, 5, 8, 12), (1, 1), SAME, bias=1 << 21, scale=80.0), "by1"),
    "very small factors, stride 2": (depthwise((1, 5, 8, 12), (2, 2), SAME, bias=1 << 21, scale=80.0), "by2"),
    "all channels dead": (depthwise((1, 4, 4, 5), (1, 1), SAME, dead=1.1), "by1"),
    "rows of two strides": (depthwise((1, 7, 8, 4), (3, 1), SAME), "by1"),
    "a band of one row out of three": (depthwise((1, 3, 10, 4), (1, 1), (0, 0, 1, 1)), "by1"),
    "stride 2, padded after": (depthwise((1, 8, 10, 8), (2, 2), (0, 1, 0, 1)), "by2"),
    "stride 2, padded on both sides": (depthwise((2, 9, 7, 7), (2, 2), SAME, dead=0.4), "by2"),
    "stride 2 without padding": (depthwise((1, 5, 13, 4), (2, 2), (0, 0, 0, 0)), "by2"),
    "stride 2 along columns": (depthwise((1, 20, 3, 4), (2, 3), SAME), "by2"),
    "stride 2, one pixel": (depthwise((1, 2, 2, 2), (2, 2), (0, 1, 0, 1)), "by2"),
}


@pytest.fixture(autouse=True)
def rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave one kernel for each layer, since others are better for very small images or have less scratch."""

    def pairs(context: LoweringContext) -> Found:
        found = PAIRS_ROW.candidate(context)
        if isinstance(found, str | Candidate):
            return found
        return replace(found[context.output.shape[1] % len(found)], instructions=10**9)  # with less or more scratch

    def taps(context: LoweringContext) -> Found:
        found = TAPS_ROW.candidate(context)
        several = context.output.shape[1:3] != (1, 1)
        return replace(found, instructions=10 ** (10 if several else 8)) if isinstance(found, Candidate) else found

    def proved(context: LoweringContext) -> Found:
        found = PROVED_TAPS_ROW.candidate(context)
        shape = context.output.shape
        chosen = shape[1:3] == (1, 1) and shape[3] >= _MANY
        return replace(found, instructions=10 ** (7 if chosen else 10)) if isinstance(found, Candidate) else found

    taps_rows = (replace(TAPS_ROW, candidate=taps), replace(PROVED_TAPS_ROW, candidate=proved))
    rows = (*LINES, *taps_rows, replace(PAIRS_ROW, candidate=pairs))
    monkeypatch.setitem(WEIGHTED_ROWS, LayerType.DEPTHWISE_CONV_2D, rows)


def addition(type_: LayerType, shape: Shape, other: Shape) -> Network:
    """Return an ADD or SUB of two inputs."""
    infos = [
        TensorInfo(name, each, DataType.INT8, quantization=Quantization.of(scale, zero_point))
        for name, each, scale, zero_point in [("a", shape, 0.0312, -7), ("b", other, 0.0547, 11)]
    ]
    return layer_network(type_, BinaryDescriptor(), infos, Quantization.of(0.0731, 5))


SUMS = {
    "sum of 37 elements": addition(LayerType.ADD, (37,), (37,)),
    "difference of 256 elements": addition(LayerType.SUB, (16, 16), (16, 16)),
    "sum of repeated rows": addition(LayerType.ADD, (4, 9), (1, 9)),
}
CASES = {
    **{
        f"depthwise, {case}": (each, f"depthwise_conv2d_3x3_{by}_s8")
        for case, (each, by) in (DEPTHWISE | THREE).items()
    },
    **{f"depthwise, {case}": (each, "depthwise_conv2d_pairs_s8") for case, each in WINDOWED.items()},
    **{f"depthwise, {case}": (each, "depthwise_conv2d_taps_s8") for case, each in WHOLE.items()},
    **{f"depthwise, many, {case}": (each, "depthwise_conv2d_taps_proved_s8") for case, each in MANY.items()},
    **{case: (each, "sum_s8") for case, each in SUMS.items()},
}
"""Networks of one layer, and their kernels."""


@pytest.mark.cc
@pytest.mark.parametrize("case", CASES)
def test_the_plain_c(case: str) -> None:
    network = CASES[case][0]
    assert lower(network, CORE).kernel == CASES[case][1]
    for inputs in [random_inputs(network), *edge_inputs(network).values()]:
        assert_array_equal(run_lowered(network, inputs, CORE)[0], network.run(inputs)[0])


def test_numbers_beyond_16_bits_are_refused() -> None:
    channels = lowering_of(depthwise((1, 1, 1, (1 << 15) + 1), (1, 1), (1, 1, 1, 1)))
    taps = lowering_of(windowed((1, 128, 256, 1), (128, 256), stride=2, padded=False))
    for row in (LINES[0], PAIRS_ROW, WORDS_ROW):
        assert isinstance(row.candidate(channels), str)
        assert isinstance(row.candidate(taps), str)


@pytest.mark.parametrize("row", [PAIRS_ROW, WORDS_ROW])
def test_the_second_kernel_has_less_scratch(row: Row) -> None:
    found = row.candidate(lowering_of(windowed((1, 1, 1600, 4), (1, 800), padded=False)))
    assert not isinstance(found, str | Candidate)
    large, small = found
    assert small.scratch_bytes <= large.scratch_bytes


@pytest.mark.emu
def test_the_assembler() -> None:
    require_module("unicorn", "pip install ferrule[run]")
    require_program("arm-none-eabi-gcc", "apt install gcc-arm-none-eabi")
    import ferrule

    network = merged([each for each, _ in CASES.values()])
    inputs = random_inputs(network)
    firmware = ferrule.compile(network, board="mps2-an386", toolchain="arm-none-eabi-gcc", goal="speed")
    report = firmware.run(inputs, engine="unicorn")
    assert sorted(layer.kernel for layer in report.layers) == sorted(kernel for _, kernel in CASES.values())
    for case, got, wanted in zip(CASES, report.outputs, network.run(inputs), strict=True):
        assert_array_equal(got, wanted, err_msg=case)
