# SPDX-License-Identifier: Apache-2.0
"""The C kernels of convolutions, FULLY_CONNECTED and pools, native and emulated, compared with the numpy kernels."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import numpy as np
import pytest
from children import ran
from ckernels import ADDRESS, NativeNetwork
from compare import assert_arrays_equal
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from layer_case import layer_network
from merged import merged
from needs import require_module, require_sanitizers
from numpy.testing import assert_array_equal
from oracle import edge_inputs
from weighted_cases import FAMILY, OF_FLOATS, WITH_ZERO_POINT, weights_with_a_zero_point, within_bound

from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, LayerType, Quantization, Shape, TensorInfo
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.spatial.pool2d import Pool2dDescriptor
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.operators.weighted.fully_connected import FullyConnectedDescriptor
from ferrule.testing.backends.comparison import random_inputs

pytestmark = pytest.mark.cc


def all_inputs(network: Network) -> list[list[Array]]:
    return [random_inputs(network), *edge_inputs(network).values()]


def check(networks: Sequence[Network], native: NativeNetwork) -> None:
    """Compare the native run of the merged networks with the numpy run of each network."""
    for which in range(4):
        inputs = [all_inputs(network)[which] for network in networks]
        results = iter(native.run([array for some in inputs for array in some]))
        for network, some in zip(networks, inputs, strict=True):
            for wanted in network.run(some):
                check_output(network, some, next(results), wanted)


def check_output(network: Network, inputs: Sequence[Array], got: Array, wanted: Array) -> None:
    if wanted.dtype == np.float32:
        assert within_bound(network, inputs, got)
    else:
        assert_array_equal(got, wanted)


# Each example compiles a network, so there is no time for shrinking.
@pytest.mark.parametrize(
    "dtype", [pytest.param(DataType.INT8, marks=pytest.mark.sentinel), DataType.INT16, DataType.FLOAT32]
)
@settings(max_examples=3, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate])
@given(data=st.data())
def test_kernels_are_the_numpy_ones(dtype: DataType, data: st.DataObject) -> None:
    family = OF_FLOATS if dtype.is_float else FAMILY
    networks = [data.draw(strategy(dtype)) for strategy in family.values() for _ in range(2)]
    if dtype is DataType.INT8:
        networks += [data.draw(weights_with_a_zero_point(operator)) for operator in WITH_ZERO_POINT]
    check(networks, NativeNetwork(merged(networks)))


def info(name: str, shape: Shape, dtype: DataType, scale: float | None, zero_point: int = 0) -> TensorInfo:
    quantization = None if scale is None else Quantization.of(scale, zero_point)
    return TensorInfo(name, shape, dtype, quantization=quantization)


def int8_conv2d(
    image: Shape,
    weights: Array,
    *,
    bias: int = 0,
    output_scale: float = 1.0,
    zero_point: int = -128,
    descriptor: Conv2dDescriptor | None = None,
) -> Network:
    """Return a CONV_2D whose data and weights have the scale 2**-5."""
    infos = [
        info("data", image, DataType.INT8, 2.0**-5, 5),
        info("weights", weights.shape, DataType.INT8, 2.0**-5),
        info("bias", weights.shape[:1], DataType.INT32, 2.0**-10),
    ]
    constants = {1: weights, 2: np.full(weights.shape[0], bias, np.int32)}
    output = Quantization.of(output_scale, zero_point)
    return layer_network(LayerType.CONV_2D, descriptor or Conv2dDescriptor(), infos, output, constants)


RANDOM = np.random.default_rng(7)


def weights_of(*shape: int, lowest: int = -127) -> Array:
    return RANDOM.integers(lowest, 128, shape, np.int8)


SPECIAL: dict[str, tuple[Network, str]] = {
    "one pixel": (int8_conv2d((1, 5, 3, 8), weights_of(5, 1, 1, 8)), "conv2d_1x1_paired_s8"),
    "channels not in fours": (int8_conv2d((1, 5, 3, 6), weights_of(5, 1, 1, 6)), "conv2d_paired_s8"),
    "a zero point inside the range": (
        int8_conv2d((1, 5, 3, 8), weights_of(5, 1, 1, 8), zero_point=3),
        "conv2d_1x1_paired_s8",
    ),
    "a left shift": (int8_conv2d((1, 3, 3, 4), weights_of(3, 2, 2, 4), output_scale=2.0**-11), "conv2d_s8"),
    "no shift": (int8_conv2d((1, 3, 3, 4), weights_of(3, 2, 2, 4), output_scale=2.0**-10), "conv2d_s8"),
    "no shift, cut off at zero": (
        int8_conv2d((1, 3, 3, 4), weights_of(3, 2, 2, 4), output_scale=2.0**-10 * 1.5),
        "conv2d_paired_s8",
    ),
    "the lowest weight in the second channel": (
        int8_conv2d((1, 12, 12, 4), np.full((4, 1, 1, 4), -128, np.int8)),
        "conv2d_quad_s8",
    ),
    "sums too large for pairs": (
        int8_conv2d((1, 1, 2, 1024), np.full((2, 1, 1, 1024), 127, np.int8), output_scale=2.0**7),
        "conv2d_s8",
    ),
    "a dead channel": (int8_conv2d((1, 3, 3, 4), weights_of(4, 1, 1, 4), bias=2**30), "conv2d_quad_s8"),
    "a window larger than the image": (
        int8_conv2d(
            (2, 2, 3, 4),
            weights_of(3, 5, 5, 4),
            descriptor=Conv2dDescriptor(padding=Padding(top=2, bottom=2, left=2, right=2), dilation_w=1),
        ),
        "conv2d_paired_s8",
    ),
    "columns that lie outside": (
        int8_conv2d(
            (1, 3, 2, 4),
            weights_of(3, 2, 1, 4),
            descriptor=Conv2dDescriptor(padding=Padding(left=3, right=3)),
        ),
        "conv2d_paired_s8",
    ),
}


@pytest.mark.parametrize("case", SPECIAL)
def test_each_kernel_is_chosen_where_it_is_exact(case: str) -> None:
    network, kernel = SPECIAL[case]
    native = NativeNetwork(network)
    assert native.kernels == [kernel]
    check([network], native)


def test_sums_that_may_overflow_are_refused() -> None:
    network = int8_conv2d((1, 3, 3, 4), weights_of(4, 1, 1, 4), bias=2**31 - 1)
    with pytest.raises(UnsupportedError, match=r"may reach \d+, expected less than 2\*\*31"):
        network.validate()


def sampler(dtype: DataType) -> list[Network]:
    """Return networks with every operator of the family, in shapes that reach every path of the kernels."""
    scale = None if dtype.is_float else 2.0**-5
    networks = []
    images = [(1, 5, 5, 4), (2, 4, 7, 3), (1, 9, 2, 8), (1, 1, 1, 5)]
    for image in images:
        same = Padding(top=1, bottom=1, left=1, right=1)
        data = info("data", image, dtype, scale, 4 if dtype is DataType.INT8 else 0)
        output = None if scale is None else Quantization.of(0.7, -128 if dtype is DataType.INT8 else 0)
        channels = image[3]
        for stride in (1, 2, 3):
            constants = _constants(dtype, (6, 3, 3, channels))
            descriptor = Conv2dDescriptor(stride_h=stride, stride_w=stride, padding=same, activation=Activation.RELU)
            networks.append(_weighted(LayerType.CONV_2D, descriptor, data, constants, output))
            constants = _constants(dtype, (1, 3, 3, channels))
            deep = DepthwiseConv2dDescriptor(stride_h=stride, stride_w=stride, padding=same)
            networks.append(_weighted(LayerType.DEPTHWISE_CONV_2D, deep, data, constants, output))
        constants = _constants(dtype, (7, 1, 1, channels))
        networks.append(_weighted(LayerType.CONV_2D, Conv2dDescriptor(), data, constants, output))
        constants = _constants(dtype, (7, channels))
        networks.append(_weighted(LayerType.FULLY_CONNECTED, FullyConnectedDescriptor(), data, constants, output))
        for type_ in (LayerType.AVERAGE_POOL_2D, LayerType.MAX_POOL_2D):
            pool = Pool2dDescriptor(pool_h=2, pool_w=2, stride_h=2, padding=Padding(bottom=1, right=1))
            networks.append(layer_network(type_, pool, [data], data.quantization))
    return networks


def _constants(dtype: DataType, shape: Shape) -> list[tuple[TensorInfo, Array]]:
    if dtype.is_float:
        return [(info("weights", shape, dtype, None), RANDOM.normal(size=shape).astype(np.float32))]
    return [(info("weights", shape, DataType.INT8, 2.0**-4), weights_of(*shape))]


def _weighted(
    type_: LayerType,
    descriptor: Conv2dDescriptor | DepthwiseConv2dDescriptor | FullyConnectedDescriptor,
    data: TensorInfo,
    constants: list[tuple[TensorInfo, Array]],
    output: Quantization | None,
) -> Network:
    infos = [data, *(known for known, _ in constants)]
    arrays = {number: array for number, (_, array) in enumerate(constants, start=1)}
    return layer_network(type_, descriptor, infos, output, arrays)


@pytest.mark.parametrize("dtype", [DataType.INT16, DataType.FLOAT32])
def test_the_sampler_runs_native(dtype: DataType) -> None:
    """The next test covers int8, with one more sanitizer."""
    networks = sampler(dtype)
    check(networks, NativeNetwork(merged(networks)))


@pytest.mark.parametrize(
    "dtype",
    [
        DataType.INT8,
        pytest.param(DataType.INT16, marks=pytest.mark.nightly),
        pytest.param(DataType.FLOAT32, marks=pytest.mark.nightly),
    ],
)
def test_no_kernel_reads_or_writes_outside_its_buffers(dtype: DataType) -> None:
    """The sampler runs again, with every buffer under the address sanitizer."""
    environment = require_sanitizers("address") | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = ran([sys.executable, __file__, dtype], env=environment, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.split() == ["exact"]


@pytest.mark.emu
@pytest.mark.parametrize(
    ("board", "dtype"),
    [
        pytest.param("mps2-an385", DataType.INT8, marks=pytest.mark.nightly),
        pytest.param("mps2-an385", DataType.INT16, marks=pytest.mark.nightly),
        ("mps2-an386", DataType.INT8),
        pytest.param("mps2-an386", DataType.INT16, marks=pytest.mark.nightly),
        ("stm32g0b1", DataType.INT8),
        pytest.param("stm32g0b1", DataType.INT16, marks=pytest.mark.nightly),
    ],
)
def test_the_sampler_is_exact_on_cores_with_and_without_the_dsp_extension(board: str, dtype: DataType) -> None:
    require_module("unicorn", "pip install ferrule[run]")
    require_module("ziglang", "pip install ferrule[run]")
    import ferrule

    network = merged(sampler(dtype))
    inputs = random_inputs(network)
    report = ferrule.compile(network, board=board).run(inputs, engine="unicorn")
    assert_arrays_equal(report.outputs, network.run(inputs))


def main() -> None:
    """Run the sampler natively, in a process that has preloaded the address sanitizer's library."""
    networks = sampler(DataType(sys.argv[1]))
    check(networks, NativeNetwork(merged(networks), sanitizers=ADDRESS))
    sys.stdout.write("exact\n")


if __name__ == "__main__":
    main()
