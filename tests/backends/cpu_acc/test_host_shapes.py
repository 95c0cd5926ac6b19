# SPDX-License-Identifier: Apache-2.0
"""The vector kernels on shapes that fill, exceed or leave empty their tiles and vectors."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from host_cases import ACTIVATIONS, WEIGHTED, Case, halfway_sums, pools, ruled
from host_face import LoadedGraph
from host_library import library
from hypothesis import given, settings
from hypothesis import strategies as st
from layer_case import layer_network
from numpy.testing import assert_array_equal
from oracle import edge_inputs
from shape_cases import Case as ShapeCase
from weighted_cases import within_bound

from ferrule.backends.cpu_acc.host.instruction_set import available
from ferrule.backends.cpu_acc.host.lowering import conv2d
from ferrule.backends.cpu_acc.host.lowering.sum import linear_sum
from ferrule.backends.cpu_acc.host.options import HostOptions
from ferrule.backends.cpu_acc.host.workloads import CpuAccWorkloadFactory
from ferrule.graph import Array, DataType, Graph, LayerType, Quantization, Rounding, TensorInfo
from ferrule.network import Network, run_graph
from ferrule.operators.activation import Activation
from ferrule.operators.elementwise.binary import BinaryDescriptor
from ferrule.operators.elementwise.stored_binary import int8_results, sum_of
from ferrule.operators.operator import Operands
from ferrule.operators.weighted.products import WEIGHTED_RULES
from ferrule.testing.backends.comparison import random_inputs

pytestmark = pytest.mark.cc


RULES = sorted(WEIGHTED_RULES)


def check(case: Case, rule: Rounding = Rounding.TFLM) -> None:
    network = ruled(case.network, rule)
    inputs = [random_inputs(network), *edge_inputs(network).values()]
    wanted = [run_graph(network, given_inputs)[0] for given_inputs in inputs]
    for instructions in available(library()):
        factory = CpuAccWorkloadFactory(HostOptions(instructions=instructions.name), library=library())
        loaded = LoadedGraph(network, factory)
        if not case.portable:
            assert loaded.workloads[0].parts[0].kernel.endswith(f"_{instructions.suffix}")
        for given_inputs, other in zip(inputs, wanted, strict=True):
            (got,) = loaded.run(given_inputs)
            if case.dtype.is_float:
                assert within_bound(network, given_inputs, got)
            else:
                assert_array_equal(got, other, strict=True)


@pytest.mark.parametrize("dtype", [DataType.INT8, DataType.FLOAT32])
@pytest.mark.parametrize("family", WEIGHTED)
@settings(max_examples=50)
@given(data=st.data())
def test_weighted_layers(family: str, dtype: DataType, data: st.DataObject) -> None:
    check(data.draw(WEIGHTED[family](dtype)))


@pytest.mark.parametrize("family", WEIGHTED)
@settings(max_examples=30)
@given(data=st.data(), rule=st.sampled_from([Rounding.SINGLE, Rounding.ONNX]))
def test_weighted_layers_of_other_rules(family: str, data: st.DataObject, rule: Rounding) -> None:
    check(data.draw(WEIGHTED[family](DataType.INT8)), rule)


def check_exact(network: Graph, *more: list[Array]) -> None:
    for inputs in (random_inputs(network), *edge_inputs(network).values(), *more):
        wanted = run_graph(network, inputs)[0]
        for instructions in available(library()):
            loaded = LoadedGraph(
                network, CpuAccWorkloadFactory(HostOptions(instructions=instructions.name), library=library())
            )
            assert_array_equal(loaded.run(inputs)[0], wanted)


@pytest.mark.parametrize("stride", [1, 3, 30])
@pytest.mark.parametrize("type_", [LayerType.CONV_2D, LayerType.DEPTHWISE_CONV_2D])
def test_more_padding_than_window(type_: LayerType, stride: int) -> None:
    """Windows lie in the padding, on any side, or step over the image; the padding may be wider than the output."""
    outputs = 8 if type_ is LayerType.CONV_2D else 1
    for size, window, (before, after) in product((1, 4), (1, 3), ((4, 0), (0, 4), (25, 0), (25, 25))):
        if size + before + after < window:
            continue
        plain = ShapeCase(type=type_, dtype=DataType.INT8, seed=size, height=3, width=3, channels=16, outputs=outputs)
        wide = replace(plain, width=size, kernel_w=window, stride_w=stride, left=before, right=after)
        high = replace(plain, height=size, kernel_h=window, stride_h=stride, top=before, bottom=after)
        for case in (wide, high):
            check_exact(case.network())


@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("width", [7, 8, 15, 16, 17, 33, 40])
def test_rows_of_many_pixels(width: int, window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are divided into tiles, even small ones, and runs of elements into words of 4, of which a tile has 16."""
    for name in ("_LEAST_TILE_PIXELS", "_LEAST_TILE_WEIGHTS", "_LEAST_TILE_PRODUCTS"):
        monkeypatch.setattr(conv2d, name, 1)
    random = np.random.default_rng(width)
    for outputs in (3, 16, 20, 32, 48, 50, 64, 100):
        channels, stride = (int(random.choice(each)) for each in ((1, 3, 16, 21, 64, 68, 100), (1, 2)))
        size = {"height": window + int(random.integers(0, 2)), "width": stride * width, "channels": channels}
        shape = {"kernel_h": window, "kernel_w": window, "stride_w": stride, "left": 1, "outputs": outputs}
        plain = ShapeCase(type=LayerType.CONV_2D, dtype=DataType.INT8, seed=outputs)
        check_exact(replace(plain, **size, **shape).network())


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_halfway_sums_are_rounded_alike(rule: Rounding) -> None:
    check_exact(ruled(halfway_sums(), rule))


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize("zero_point", [-128, 5])
def test_sums_next_to_halves_and_beyond_24_bits_are_rounded_alike(
    rule: Rounding, depthwise: bool, zero_point: int
) -> None:
    """The bias of each channel brings its sums next to a half of a result, or to where float32 has gaps."""
    random = np.random.default_rng(zero_point + 200)
    channels = 300
    exponents = random.integers(-24, 3, channels)
    factors = np.where(
        random.random(channels) < 0.5, 2.0**exponents, 2.0**exponents * random.uniform(1.0, 1.999, channels)
    ).astype(np.float32)
    halves = np.rint((random.integers(-127, 127, channels) + 0.5) / factors.astype(np.float64))
    far = random.integers(-(2**31) + 2**17, 2**31 - 2**17, channels)
    bias = np.where((np.abs(halves) < 2**31 - 2**17) & (random.random(channels) < 0.8), halves, far).astype(np.int32)
    scales = {
        "bias": bias,
        "weights_quantization": Quantization(
            scales=tuple(map(float, factors)), zero_points=(0,) * channels, axis=3 if depthwise else 0
        ),
        "quantization": Quantization.of(1.0, zero_point),
    }
    network = Network("case")
    info = TensorInfo("x", (9, 1), DataType.INT8, quantization=Quantization.of(1.0, 1))
    if depthwise:
        network.add_input(replace(info, shape=(9, 1, 1, channels)))
        network.add_depthwise_conv2d_layer("x", np.ones((1, 1, 1, channels), np.int8), **scales)
    else:
        network.add_input(info)
        network.add_fully_connected_layer("x", np.ones((channels, 1), np.int8), **scales)
    network.set_outputs([network.layers[-1].outputs[0]])
    column = np.arange(-3, 6, dtype=np.int8).reshape(9, *[1] * (len(network.inputs[0].shape) - 1))
    near = [np.ascontiguousarray(np.broadcast_to(column, network.inputs[0].shape))]
    check_exact(ruled(network, rule), near)
    assert rule is Rounding.TFLM or (run_graph(ruled(network, rule), near)[0] != network.run(near)[0]).any()


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("shift", [-31, -30, -8, 0, 3, 12, 30])
def test_every_shift_is_rounded_alike(shift: int, rule: Rounding) -> None:
    random = np.random.default_rng(shift + 100)
    network = Network("case")
    network.add_input(TensorInfo("x", (1, 64), DataType.INT8, quantization=Quantization.of(2.0**-8, 3)))
    channels = 70
    factors = 2.0 ** (shift - 1) * random.uniform(1.0, 1.999, channels)
    network.add_fully_connected_layer(
        "x",
        random.integers(-128, 128, (channels, 64), dtype=np.int8),
        random.integers(-(2**28), 2**28, channels, dtype=np.int32),
        weights_quantization=Quantization(
            scales=tuple(float(np.float32(factor * 2.0**8)) for factor in factors), zero_points=(0,) * channels, axis=0
        ),
        quantization=Quantization.of(1.0, -7),
    )
    network.set_outputs([network.layers[-1].outputs[0]])
    check_exact(ruled(network, rule))


def check_everywhere(network: Network, inputs: list[Array], kernel: str | None) -> None:
    """Compare the outputs with the numpy kernels' outputs; `kernel` is the expected kernel without its set's suffix."""
    wanted = network.run(inputs)
    for instructions in available(library()):
        factory = CpuAccWorkloadFactory(HostOptions(instructions=instructions.name), library=library())
        loaded = LoadedGraph(network, factory)
        if kernel is not None:
            assert loaded.workloads[0].parts[0].kernel == f"{kernel}_{instructions.suffix}"
        for got, other in zip(loaded.run(inputs), wanted, strict=True):
            assert_array_equal(got, other, strict=True)


@pytest.mark.parametrize("type_", [LayerType.ADD, LayerType.SUB])
@pytest.mark.parametrize("zero_points", [(0, 0, 0), (-128, 127, -128), (-7, 11, 5)])
@pytest.mark.parametrize(
    ("scales", "kernel"),
    [((0.0312, 0.0547, 0.0731), "host_sum_s8"), ((0.05, 0.05, 0.05), "host_sum_s8"), ((0.3, 0.1, 0.2), None)],
)
def test_sums_of_all_pairs(
    type_: LayerType, zero_points: tuple[int, int, int], scales: tuple[float, float, float], kernel: str | None
) -> None:
    every = np.arange(-128, 128, dtype=np.int8)
    first, second = (np.ascontiguousarray(grid) for grid in np.meshgrid(every, every, indexing="ij"))
    infos = [
        TensorInfo(name, first.shape, DataType.INT8, quantization=Quantization.of(scale, zero_point))
        for name, scale, zero_point in zip("ab", scales[:2], zero_points[:2], strict=True)
    ]
    network = layer_network(type_, BinaryDescriptor(), infos, Quantization.of(scales[2], zero_points[2]))
    check_everywhere(network, [first, second], kernel)


@settings(max_examples=30)
@given(
    scales=st.tuples(*[st.floats(0.01, 1.0)] * 2),
    ratio=st.floats(0.3, 1.5),
    zero_points=st.tuples(*[st.integers(-128, 127)] * 3),
    subtract=st.booleans(),
    activation=ACTIVATIONS,
)
def test_lines_of_sums_are_exact(
    scales: tuple[float, float],
    ratio: float,
    zero_points: tuple[int, int, int],
    subtract: bool,
    activation: Activation,
) -> None:
    infos = [
        TensorInfo(name, (1,), DataType.INT8, quantization=Quantization.of(scale, zero_point))
        for name, scale, zero_point in zip("abc", (*scales, max(scales) * ratio), zero_points, strict=True)
    ]
    total = sum_of(Operands(tuple(infos[:2]), (infos[2],)), activation, subtract=subtract)
    line = linear_sum(total)
    if line is None:
        return
    stored = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.int64)
    products = stored[:, np.newaxis] * line.first, stored[np.newaxis] * line.second
    for number in (*products, products[0] + products[1], products[0] + products[1] + line.offset):
        assert np.abs(number).max() < 2**31
    values = np.clip((products[0] + products[1] + line.offset) >> line.shift, total.result.low, total.result.high)
    assert_array_equal(values.reshape(-1), int8_results(total))


@pytest.mark.parametrize("kind", ["average", "max"])
@settings(max_examples=40)
@given(data=st.data())
def test_pools(kind: str, data: st.DataObject) -> None:
    network = data.draw(pools(kind))
    for inputs in (random_inputs(network), *edge_inputs(network).values()):
        check_everywhere(network, inputs, f"host_{kind}_pool2d_s8")
