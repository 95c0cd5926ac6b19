# SPDX-License-Identifier: Apache-2.0
"""The kernels for cores without the DSP extension: their plain C on this machine, and products of 64 bits in pieces."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
from ckernels import NativeNetwork
from layer_case import layer_network
from lowered_call import lower, run_overlapping
from merged import merged
from numpy.testing import assert_array_equal
from oracle import edge_inputs

from ferrule.backends.contribution import KERNELS
from ferrule.backends.target import CoreFeatures
from ferrule.graph import DataType, LayerType, Quantization, Shape, TensorInfo
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.testing.backends.comparison import random_inputs

pytestmark = pytest.mark.cc
SAME = Padding(top=1, bottom=1, left=1, right=1)
CORES = {
    "cortex-m3": ("conv2d_quad_s8", "fully_connected_octet_s8", "depthwise_conv2d_words_s8"),
    "cortex-m0plus": ("conv2d_duo_s8", "fully_connected_octet_s8", "depthwise_conv2d_words_s8"),
}
RANDOM = np.random.default_rng(11)


def layer(
    type_: LayerType,
    image: Shape,
    weights: Shape,
    descriptor: Conv2dDescriptor | DepthwiseConv2dDescriptor | FullyConnectedDescriptor,
    *,
    zero_point: int = -128,
    lowest: int = -127,
    dead: int = 0,
    weight: int | None = None,
) -> Network:
    """Return a layer with random weights, or all equal to `weight`; its last `dead` channels store a single value."""
    channels = weights[3] if type_ is LayerType.DEPTHWISE_CONV_2D else weights[0]
    infos = [
        TensorInfo("data", image, DataType.INT8, quantization=Quantization.of(2.0**-5, 5)),
        TensorInfo("weights", weights, DataType.INT8, quantization=Quantization.of(2.0**-5)),
        TensorInfo("bias", (channels,), DataType.INT32, quantization=Quantization.of(2.0**-10)),
    ]
    bias = np.where(np.arange(channels) < channels - dead, RANDOM.integers(-3000, 3000, channels), -(2**29))
    numbers = RANDOM.integers(lowest, 128, weights, np.int8) if weight is None else np.full(weights, weight, np.int8)
    constants = {1: numbers, 2: bias.astype(np.int32)}
    return layer_network(type_, descriptor, infos, Quantization.of(0.7, zero_point), constants)


def networks() -> list[Network]:
    """Return layers that reach every path of the kernels."""
    deep = DepthwiseConv2dDescriptor
    relu6 = Activation.RELU6
    conv, fc, depthwise = LayerType.CONV_2D, LayerType.FULLY_CONNECTED, LayerType.DEPTHWISE_CONV_2D
    return [
        layer(conv, (1, 5, 3, 8), (7, 1, 1, 8), Conv2dDescriptor()),
        layer(conv, (1, 1, 1, 5), (7, 1, 1, 5), Conv2dDescriptor(), zero_point=3),
        layer(conv, (1, 5, 4, 8), (6, 1, 1, 8), Conv2dDescriptor(activation=Activation.RELU), dead=2),
        layer(conv, (1, 3, 3, 4), (3, 1, 1, 4), Conv2dDescriptor(activation=Activation.RELU), dead=3),
        layer(conv, (1, 5, 5, 3), (5, 3, 3, 3), Conv2dDescriptor(padding=SAME), lowest=-100),
        layer(conv, (2, 4, 7, 3), (4, 3, 3, 3), Conv2dDescriptor(stride_h=2, stride_w=2, padding=SAME), zero_point=-7),
        layer(conv, (1, 7, 7, 2), (4, 3, 2, 2), Conv2dDescriptor(dilation_h=2, dilation_w=2, activation=relu6)),
        layer(conv, (1, 3, 2, 4), (3, 2, 1, 4), Conv2dDescriptor(padding=Padding(left=3, right=3))),
        layer(fc, (1, 33), (19, 33), FullyConnectedDescriptor(), lowest=-128),
        layer(fc, (3, 5), (8, 5), FullyConnectedDescriptor(), zero_point=9),
        layer(depthwise, (1, 5, 6, 3), (1, 3, 3, 3), deep(padding=SAME), lowest=-128),
        layer(depthwise, (2, 9, 8, 3), (1, 3, 3, 3), deep(stride_h=2, stride_w=2, padding=SAME), zero_point=1),
        layer(depthwise, (1, 6, 9, 2), (1, 3, 3, 2), deep(stride_h=2, stride_w=2, padding=Padding(bottom=1, right=1))),
        layer(depthwise, (1, 9, 5, 4), (1, 3, 3, 4), deep(activation=Activation.RELU), dead=2),
        layer(depthwise, (1, 9, 7, 2), (1, 3, 3, 2), deep(stride_h=3, padding=SAME), zero_point=0),
        layer(depthwise, (1, 20, 5, 2), (1, 5, 4, 4), deep(depth_multiplier=2, padding=SAME)),
        layer(depthwise, (1, 4, 31, 2), (1, 2, 9, 2), deep(stride_w=2, dilation_w=2, activation=relu6), zero_point=2),
    ]


@pytest.mark.parametrize("core", CORES)
def test_plain_c_has_the_results_of_the_reference(core: str) -> None:
    cases = networks()
    short = "1" if core == "cortex-m0plus" else "0"
    native = NativeNetwork(merged(cases), core=CoreFeatures(name=core), defines=(f"FERRULE_SHORT_MULTIPLY={short}",))
    assert set(native.kernels) == set(CORES[core])
    for which in range(4):
        inputs = [[random_inputs(case), *edge_inputs(case).values()][which] for case in cases]
        results = iter(native.run([array for some in inputs for array in some]))
        for case, some in zip(cases, inputs, strict=True):
            for wanted in case.run(some):
                assert_array_equal(next(results), wanted)


@pytest.mark.parametrize("core", CORES)
def test_kernels_run_at_the_least_distance_that_they_state(core: str) -> None:
    features, stated = CoreFeatures(name=core), 0
    for case in networks():
        inputs = random_inputs(case)
        op = lower(case, features)
        for overlap in op.overlaps:
            assert overlap.distance_bytes is not None
            least = -(-overlap.distance_bytes // overlap.step_bytes) * overlap.step_bytes
            for shift in {least, 0} if overlap.distance_bytes <= 0 else {least}:
                got = run_overlapping(case, inputs, overlap, shift, op)
                assert_array_equal(got, case.run(inputs)[0], err_msg=f"{overlap} at {shift}")
                stated += 1
    assert stated > len(CORES)


@pytest.mark.parametrize(("weight", "kernel"), [(-127, "conv2d_duo_s8"), (-128, "conv2d_s8")])
def test_two_weights_of_minus_128_side_by_side_are_too_large_for_one_multiplication(weight: int, kernel: str) -> None:
    lowest = layer(LayerType.CONV_2D, (1, 12, 12, 4), (2, 1, 1, 4), Conv2dDescriptor(), weight=weight)
    native = NativeNetwork(lowest, core=CoreFeatures(name="cortex-m0"))
    assert native.kernels == [kernel]
    inputs = edge_inputs(lowest)
    for some in inputs.values():
        assert_array_equal(native.run(some)[0], lowest.run(some)[0])


HARNESS = """
#define FERRULE_SHORT_MULTIPLY 1
#include "ferrule/kernels/high_product.h"
void multiply(int32_t count, const int32_t *a, const int32_t *b, int32_t *high, int32_t *doubled)
{
    for (int32_t i = 0; i < count; ++i) {
        high[i] = ferrule_high_product_rounded(a[i], b[i]);
        doubled[i] = ferrule_doubled_high_product(a[i], b[i]);
    }
}
"""


def test_products_in_pieces_of_16_bits_are_exact(host_cc: tuple[str, ...], tmp_path: Path) -> None:
    library = tmp_path / "products.so"
    includes = [f"-I{path}" for path in KERNELS.include_paths]
    command = [*host_cc, "-std=c11", "-O1", "-fwrapv", "-shared", "-fPIC", *includes]
    subprocess.run([*command, "-x", "c", "-", "-o", str(library)], input=HARNESS, text=True, check=True)
    edges = [0, 1, 2**15, 2**16 - 1, 2**16, 2**30, 2**31 - 1]
    signed = [*edges, *(-edge for edge in edges), -(2**31)]
    a = np.concatenate([np.repeat(signed, len(signed)), RANDOM.integers(-(2**31), 2**31, 50_000)]).astype(np.int64)
    b = np.concatenate([np.tile(signed, len(signed)), RANDOM.integers(-(2**31), 2**31, 50_000)]).astype(np.int64)
    fits = (a != -(2**31)) | (b != -(2**31))  # the product divided by 2**31 has 33 bits
    a, b = a[fits], b[fits]
    given = [each.astype(np.int32) for each in (a, b)]
    results = [np.zeros(a.size, np.int32) for _ in range(2)]
    pointers = [ctypes.c_void_p(each.ctypes.data) for each in (*given, *results)]
    ctypes.CDLL(str(library)).multiply(a.size, *pointers)
    assert_array_equal(results[0], (a * b + (1 << 31)) >> 32)
    assert_array_equal(results[1], (a * b + (1 << 30)) >> 31)
