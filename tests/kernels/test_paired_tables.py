# SPDX-License-Identifier: Apache-2.0
"""The tables and the scratch of paired convolutions have the sizes that their kernels expect."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from children import ran
from layer_case import layer_network
from lowered_call import address_sanitizer_environment, lowering_of, run_lowered
from numpy.testing import assert_array_equal

from ferrule.backends.cpu_acc.lowering.kernels.channel_pairs import CONV_2D_PAIRED
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate
from ferrule.backends.firmware import LoweredOp
from ferrule.graph import DataType, LayerType, Quantization, TensorInfo
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.testing.backends.comparison import random_inputs

CHANNEL_WORDS = 3
"""The value of FERRULE_CHANNEL_WORDS."""


def convolution(input_c: int, live: int, dead: int, kernel: int) -> Network:
    """Return a CONV_2D with `live` channels with weights, and `dead` channels that store a single value."""
    random = np.random.default_rng(input_c + live)
    shape = (live + dead, kernel, kernel, input_c)
    infos = [
        TensorInfo("data", (1, 5, 4, input_c), DataType.INT8, quantization=Quantization.of(2.0**-5, 5)),
        TensorInfo("weights", shape, DataType.INT8, quantization=Quantization.of(2.0**-5)),
        TensorInfo("bias", shape[:1], DataType.INT32, quantization=Quantization.of(2.0**-10)),
    ]
    bias = np.where(np.arange(live + dead) < live, 1000, -(2**29)).astype(np.int32)
    constants = {1: random.integers(-127, 128, shape, np.int8), 2: bias}
    descriptor = Conv2dDescriptor(activation=Activation.RELU)
    return layer_network(LayerType.CONV_2D, descriptor, infos, Quantization.of(1.0, -128), constants)


def paired(network: Network) -> LoweredOp:
    """Return the only layer lowered to the paired kernel, which is not the best one for every core."""
    context = lowering_of(network)
    candidate = CONV_2D_PAIRED.candidate(context)
    assert isinstance(candidate, Candidate)
    return candidate.lowered(context)


CASES = {
    f"{input_c} inputs, {live} live, {dead} dead, {kernel}x{kernel}": (input_c, live, dead, kernel)
    for input_c, live, dead, kernel in [
        *((8, live, dead, 1) for live in (1, 2, 3, 4, 5) for dead in (0, 2)),
        *((input_c, 3, 1, kernel) for input_c in (3, 6, 8) for kernel in (1, 2, 3)),
        (8, 0, 3, 1),
    ]
}


@pytest.mark.parametrize("case", CASES)
def test_tables_are_rounded_up_to_pairs_of_channels(case: str) -> None:
    input_c, live, _, kernel = CASES[case]
    op = paired(convolution(*CASES[case]))
    sizes = {blob.name.rsplit("_", 1)[-1]: blob.data.size for blob in op.blobs}
    pairs = max((live + 1) // 2, 1)
    groups = -(-kernel * kernel * input_c // 4)
    if live == 0 and kernel == 1:
        groups = 1  # no weight remains
    assert sizes["channels"] == 2 * pairs * CHANNEL_WORDS
    assert sizes["weights"] == 2 * pairs * groups
    assert sizes["positions"] == max(live, 1)


@pytest.mark.parametrize("case", CASES)
def test_scratch_holds_two_widened_patches_and_the_bytes_of_one(case: str) -> None:
    input_c, live, _, kernel = CASES[case]
    groups = -(-kernel * kernel * input_c // 4) if live else 1
    listed = live == 0
    bytes_per_group = 16 if input_c % 4 == 0 or listed else 20
    assert paired(convolution(*CASES[case])).scratch_bytes == groups * bytes_per_group


@pytest.mark.cc
@pytest.mark.parametrize("case", CASES)
def test_pairs_are_exact(case: str) -> None:
    network = convolution(*CASES[case])
    inputs = random_inputs(network)
    (got,) = run_lowered(network, inputs, op=paired(network))
    assert_array_equal(got, network.run(inputs)[0])


@pytest.mark.cc
@pytest.mark.nightly
def test_no_pair_reads_or_writes_outside_its_tables() -> None:
    """The same calls under the address sanitizer, with each table and the scratch in memory of exactly its size."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", "exact"]
    done = ran(command, env=address_sanitizer_environment(), timeout=600)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
