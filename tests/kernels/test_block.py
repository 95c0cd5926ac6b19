# SPDX-License-Identifier: Apache-2.0
"""Convolutions and FULLY_CONNECTED in blocks of four channels: the plain C on the host, the assembler on a board."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest
from children import ran
from layer_case import layer_network
from lowered_call import address_sanitizer_environment, lower, lowering_of, run_lowered
from merged import merged, sample_outputs
from needs import require_module
from numpy.testing import assert_array_equal
from oracle import edge_inputs

from ferrule.backends.cpu_acc.lowering.kernels.block import CONV_2D_BLOCK, FULLY_CONNECTED_BLOCK
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, choose
from ferrule.backends.firmware import LoweredOp
from ferrule.backends.target import CoreFeatures, Goal
from ferrule.graph import Array, DataType, LayerType, Quantization, Shape, TensorInfo
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.testing.backends.comparison import random_inputs

CORE = CoreFeatures(name="cortex-m4", fpu=True, dsp=True)
PROVED_WORDS, EXACT_WORDS = 2, 4
"""Constants of a channel in the two forms."""


def convolution(
    image: Shape,
    kernel: tuple[int, int],
    channels: int,
    *,
    dead: int = 0,
    unused: int = 0,
    zero_point: int = -128,
    scale: float = 1.0,
    least: int = -127,
    descriptor: Conv2dDescriptor | None = None,
) -> Network:
    """Return a CONV_2D; the last `dead` channels store a single value, the first `unused` inputs have no weights."""
    random = np.random.default_rng(sum(image) + channels)
    shape = (channels, *kernel, image[3])
    infos = [
        TensorInfo("data", image, DataType.INT8, quantization=Quantization.of(2.0**-5, 5)),
        TensorInfo("weights", shape, DataType.INT8, quantization=Quantization.of(2.0**-5)),
        TensorInfo("bias", shape[:1], DataType.INT32, quantization=Quantization.of(2.0**-10)),
    ]
    bias = np.where(np.arange(channels) < channels - dead, 300, -(2**29)).astype(np.int32)
    weights = random.integers(least, 128, shape, np.int8)
    weights[..., :unused] = 0
    output = Quantization.of(scale, zero_point)
    constants = {1: weights, 2: bias}
    return layer_network(LayerType.CONV_2D, descriptor or Conv2dDescriptor(), infos, output, constants)


def fully_connected(
    rows: int,
    inputs: int,
    channels: int,
    *,
    dead: int = 0,
    zero_point: int = -128,
    least: int = -127,
    scale: float = 1.0,
) -> Network:
    """Return a FULLY_CONNECTED with weights from `least` to 127; the last `dead` channels store a single value."""
    random = np.random.default_rng(inputs + channels)
    shape = (channels, inputs)
    infos = [
        TensorInfo("data", (rows, inputs), DataType.INT8, quantization=Quantization.of(2.0**-5, 5)),
        TensorInfo("weights", shape, DataType.INT8, quantization=Quantization.of(2.0**-5)),
        TensorInfo("bias", shape[:1], DataType.INT32, quantization=Quantization.of(2.0**-10)),
    ]
    bias = np.where(np.arange(channels) < channels - dead, 300, -(2**29)).astype(np.int32)
    constants = {1: random.integers(least, 128, shape, np.int8), 2: bias}
    descriptor = FullyConnectedDescriptor()
    return layer_network(LayerType.FULLY_CONNECTED, descriptor, infos, Quantization.of(scale, zero_point), constants)


def same(stride: int = 1, dilation: int = 1) -> Conv2dDescriptor:
    return Conv2dDescriptor(
        padding=Padding(top=1, bottom=2, left=2, right=1),
        stride_h=stride,
        stride_w=stride,
        dilation_h=dilation,
        dilation_w=dilation,
        activation=Activation.RELU,
    )


CASES = {
    "1x1": convolution((1, 5, 4, 8), (1, 1), 8),
    "1x1, odd pixels, one word": convolution((1, 3, 3, 4), (1, 1), 4),
    "1x1, two pixels": convolution((1, 1, 2, 12), (1, 1), 4),
    "1x1, batches": convolution((3, 1, 3, 16), (1, 1), 12),
    "1x1, long": convolution((1, 2, 2, 76), (1, 1), 8, scale=4.0),
    "1x1, channels not in fours": convolution((1, 3, 3, 8), (1, 1), 6),
    "1x1, one channel": convolution((1, 12, 11, 8), (1, 1), 1),
    "1x1, dead channels": convolution((1, 3, 3, 20), (1, 1), 11, dead=5),
    "1x1, only dead channels": convolution((1, 3, 3, 8), (1, 1), 5, dead=5),
    "1x1, unused inputs": convolution((1, 3, 3, 17), (1, 1), 8, unused=8),
    "1x1, linear": convolution((1, 3, 3, 8), (1, 1), 8, zero_point=3),
    "1x1, linear, channels not in fours": convolution((1, 3, 3, 48), (1, 1), 7, zero_point=-9),
    "1x1, inputs not in fours": convolution((1, 3, 3, 6), (1, 1), 5),
    "3x3": convolution((1, 6, 5, 4), (3, 3), 8, descriptor=same()),
    "3x3, stride 2, batches": convolution((2, 6, 7, 8), (3, 3), 5, descriptor=same(2)),
    "3x3, dilated": convolution((1, 6, 7, 4), (3, 3), 4, descriptor=same(dilation=2)),
    "3x3, linear": convolution((1, 4, 4, 8), (3, 3), 4, zero_point=17, descriptor=Conv2dDescriptor()),
    "3x3, three inputs": convolution((2, 7, 6, 3), (3, 3), 8, descriptor=same()),
    "3x3, three inputs, stride 2": convolution((1, 7, 8, 3), (3, 3), 8, descriptor=same(2)),
    "3x2, one input": convolution((1, 5, 7, 1), (3, 2), 10, descriptor=same(2)),
    "10x4, one input": convolution((1, 12, 5, 1), (10, 4), 8, descriptor=same(2)),
    "1x5, dilated, three inputs": convolution((2, 1, 19, 3), (1, 5), 5, descriptor=Conv2dDescriptor(dilation_w=4)),
    "3x3, dilated, five inputs": convolution((1, 7, 8, 5), (3, 3), 6, descriptor=same(dilation=2)),
    "1x4, dilated, eight inputs": convolution((1, 1, 15, 8), (1, 4), 5, descriptor=Conv2dDescriptor(dilation_w=3)),
    "1 row of 3": convolution((1, 1, 9, 3), (3, 3), 4, descriptor=same(2)),
    "a window larger than the image": convolution((2, 2, 2, 6), (4, 4), 4, descriptor=same()),
    "1x1, in pieces": convolution((1, 1, 5, 1040), (1, 1), 8, zero_point=4, scale=64.0),
    "1x1, long, in pieces of one word": convolution((1, 1, 2, 1028), (1, 1), 4, zero_point=4, scale=64.0, least=90),
    "5x2, in pieces": convolution((1, 5, 3, 128), (5, 2), 5, scale=64.0, descriptor=Conv2dDescriptor()),
    "5x5, two inputs": convolution((1, 6, 6, 2), (5, 5), 9, dead=1, descriptor=same()),
}


ROWS = {
    f"FULLY_CONNECTED {name}": network
    for name, network in {
        "8 to 4": fully_connected(1, 8, 4),
        "16 to 8, rows": fully_connected(3, 16, 8),
        "40 to 7": fully_connected(1, 40, 7),
        "56 to 12, linear": fully_connected(2, 56, 12, zero_point=5),
        "29 to 6, linear": fully_connected(2, 29, 6, zero_point=-3),
        "37 to 10, dead channels": fully_connected(1, 37, 10, dead=3),
        "16 to 1": fully_connected(2, 16, 1),
        "24 to 2, linear": fully_connected(1, 24, 2, zero_point=-1),
        "1100 to 5, in pieces": fully_connected(1, 1100, 5, zero_point=5),
        "1024 to 6, in pieces": fully_connected(1, 1024, 6, least=127, scale=128.0),
        "1032 to 3, in pieces": fully_connected(1, 1032, 3, least=90, zero_point=0, scale=64.0),
    }.items()
}
CASES |= ROWS


SMALL = {
    "1x1, inputs not in fours",
    "3x2, one input",
    "1 row of 3",
    "3x3, linear",
    "a window larger than the image",
    "1x5, dilated, three inputs",
}
"""Cases for which the scratch for rows costs more than it saves, but for speed."""


def wide(network: Network) -> Candidate | str:
    """Return the only layer, a CONV_2D, with weights of 16 bits; the reason as a string if that is not possible."""
    return CONV_2D_BLOCK[1].candidate(lowering_of(network, CORE))


WIDE = {case: found for case in CASES if case not in ROWS and isinstance(found := wide(CASES[case]), Candidate)}


def lowered(case: str) -> LoweredOp:
    """Return the only layer, lowered; a FULLY_CONNECTED of several rows as such, not as a CONV_2D."""
    if case in ROWS:
        return choose(lowering_of(CASES[case], CORE), FULLY_CONNECTED_BLOCK)
    if "in pieces" in case:  # with more scratch than some goals allow
        return choose(lowering_of(CASES[case], CORE), CONV_2D_BLOCK)
    return lower(CASES[case], CORE, Goal.SPEED if case in SMALL else Goal.BALANCED)


def direct(network: Network) -> LoweredOp:
    """Return the only layer, a FULLY_CONNECTED, lowered to the kernel without scratch."""
    op = choose(lowering_of(network, CORE), FULLY_CONNECTED_BLOCK[1:])
    assert op.scratch_bytes == 0
    return op


def inputs_of(network: Network) -> list[list[Array]]:
    return [random_inputs(network), *edge_inputs(network).values()]


@pytest.mark.cc
@pytest.mark.parametrize("case", CASES)
def test_plain_c_on_the_host_is_the_reference(case: str) -> None:
    network = CASES[case]
    for inputs in inputs_of(network):
        (got,) = run_lowered(network, inputs, op=lowered(case))
        assert_array_equal(got, network.run(inputs)[0])


@pytest.mark.cc
@pytest.mark.parametrize(
    "case", [case for case in ROWS if any(f"{inputs} to" in case for inputs in (8, 16, 24, 56, 1024, 1032))]
)
def test_plain_c_on_the_host_is_the_reference_without_scratch(case: str) -> None:
    network = CASES[case]
    for inputs in inputs_of(network):
        (got,) = run_lowered(network, inputs, op=direct(network))
        assert_array_equal(got, network.run(inputs)[0])


@pytest.mark.cc
@pytest.mark.parametrize("case", WIDE)
def test_plain_c_on_the_host_is_the_reference_with_weights_of_16_bits(case: str) -> None:
    network = CASES[case]
    for inputs in inputs_of(network):
        (got,) = run_lowered(network, inputs, op=WIDE[case].lowered(lowering_of(network, CORE)))
        assert_array_equal(got, network.run(inputs)[0])


def test_weights_of_16_bits_are_for_few_products_and_whole_blocks() -> None:
    assert {"1x1", "3x3, three inputs", "1x1, odd pixels, one word"} <= set(WIDE)
    reasons = {case: wide(CASES[case]) for case in ("1x1, long", "1x1, linear", "1x1, channels not in fours")}
    assert reasons == {
        "1x1, long": "more than 32 products: loading weights of 16 bits takes more cycles than it saves",
        "1x1, linear": "an output needs two roundings",
        "1x1, channels not in fours": "the channels do not fill blocks of four",
    }


@pytest.mark.parametrize("case", CASES)
def test_a_core_with_the_dsp_extension_gets_blocks(case: str) -> None:
    op = lowered(case)
    # neighbouring pixels fill the blocks of one channel
    one_pixel = case.startswith("1x1") and case not in {"1x1, inputs not in fours", "1x1, one channel"}
    if case in ROWS:
        assert op.kernel in {"fully_connected_block_s8", "fully_connected_direct_block_s8"}
    elif case == "1x1, only dead channels":
        assert "block" not in op.kernel  # a quarter of the weights
    else:
        assert op.kernel == ("conv2d_1x1_block_s8" if one_pixel else "conv2d_block_s8")


def test_a_table_names_the_parts_of_the_kernel_that_its_rows_need() -> None:
    parts = {"ferrule_conv2d_block_lines", "ferrule_conv2d_block_image"}
    names = {case: set(re.findall(r"ferrule_\w+", str(lowered(case).declarations))) for case in CASES}
    named = {case: parts & names[case] for case in CASES}
    assert all(("ferrule_block_gather" in names[case]) == bool(named[case]) for case in CASES)
    assert all(not named[case] for case in CASES if case in ROWS or lowered(case).kernel == "conv2d_1x1_block_s8")
    assert {frozenset(each) for each in named.values()} == {frozenset(), *(frozenset({part}) for part in parts)}


def test_weights_and_constants_are_interleaved() -> None:
    sizes = {}
    for case in ("1x1", "1x1, linear"):
        op = lower(CASES[case], CORE)
        (sizes[case],) = (blob.data.size for blob in op.blobs)
    blocks, words = 2, 2
    assert sizes == {
        "1x1": blocks * (4 * words + 4 * PROVED_WORDS),
        "1x1, linear": blocks * (4 * words + 4 * EXACT_WORDS),
    }


@pytest.mark.cc
@pytest.mark.nightly
def test_no_block_reads_or_writes_outside_its_tables() -> None:
    """The same calls under the address sanitizer, with each table and the scratch in memory of exactly its size."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", "on_the_host"]
    done = ran(command, env=address_sanitizer_environment(), timeout=600)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.parametrize(
    ("toolchain", "goal"),
    [
        ("zig", Goal.MEMORY),
        ("zig", Goal.SPEED),
        pytest.param("arm-none-eabi-gcc", Goal.MEMORY, marks=pytest.mark.nightly),
        pytest.param("arm-none-eabi-gcc", Goal.SPEED, marks=pytest.mark.nightly),
    ],
)
def test_assembler_is_exact(toolchain: str, goal: Goal) -> None:
    require_module("unicorn", "pip install ferrule[run]")
    require_module("ziglang", "pip install ferrule[run]")
    import ferrule

    network = merged(list(CASES.values()))
    built = ferrule.compile(network, board="mps2-an386", toolchain=toolchain, goal=goal)
    samples = list(inputs_of(network))
    for inputs, outputs in zip(samples, sample_outputs(built, samples), strict=True):
        for case, got, wanted in zip(CASES, outputs, network.run(inputs), strict=True):
            assert_array_equal(got, wanted, err_msg=case)
