# SPDX-License-Identifier: Apache-2.0
"""The reference backend's convolution behind the C interface, set up in the steps of Arm NN's guide."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ferrule.backends.context import CreationOptions
from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.device import BackendId
from ferrule.backends.dynamic import Reason, load_dynamic_backends
from ferrule.backends.dynamic.backend import DynamicBackend
from ferrule.backends.origin import OriginKind
from ferrule.backends.registry import BackendRegistry
from ferrule.backends.target import default_target
from ferrule.graph import DataType, Quantization, TensorInfo
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding
from ferrule.optimizer import optimize
from ferrule.runtime import Runtime
from ferrule.testing.backends.comparison import graph_difference

TARGET = default_target(BackendId("CpuRef"))

pytestmark = pytest.mark.cc


@pytest.fixture
def folder(examples: Path) -> Path:
    return examples / "cpu_ref"


@pytest.fixture
def registry(folder: Path) -> BackendRegistry:
    made = BackendRegistry()
    (row,) = load_dynamic_backends(made, folder)
    assert row.accepted, row
    return made


def convolution(dtype: DataType, seed: int = 1) -> Network:
    dice = np.random.default_rng(seed)
    network = Network("convolution")
    if dtype is DataType.INT8:
        scale = Quantization.of(0.04, int(dice.integers(-128, 128)))
        network.add_input(TensorInfo("image", (2, 9, 7, 3), dtype, quantization=scale))
        weights = dice.integers(-127, 128, (5, 3, 2, 3), dtype=np.int8)
        bias = dice.integers(-2000, 2000, 5, dtype=np.int32)
        channels = tuple(float(np.float32(value)) for value in dice.uniform(0.001, 0.03, 5))
        quantization = Quantization.of(0.1, int(dice.integers(-128, 128)))
        weights_quantization = Quantization(scales=channels, zero_points=(0,) * 5)
    else:
        network.add_input(TensorInfo("image", (2, 9, 7, 3), dtype))
        weights = dice.normal(0, 1, (5, 3, 2, 3)).astype(np.float32)
        bias = dice.normal(0, 1, 5).astype(np.float32)
        quantization = weights_quantization = None
    network.add_conv2d_layer(
        "image",
        weights,
        bias if seed % 2 else None,
        strides=(1 + seed % 2, 1 + seed % 3),
        dilations=(1 + seed % 2, 1),
        padding=Padding(top=seed % 3, bottom=1, left=1, right=seed % 2),
        activation=list(Activation)[seed % 4],
        weights_quantization=weights_quantization,
        quantization=quantization,
        name="y",
    )
    network.set_outputs(["y"])
    return network


def image(network: Network, seed: int) -> np.ndarray:
    dice = np.random.default_rng(seed)
    (info,) = network.inputs
    if info.dtype is DataType.INT8:
        return dice.integers(-128, 128, info.shape, dtype=np.int8)
    return dice.normal(0, 1, info.shape).astype(np.float32)


def test_it_is_registered_and_can_be_made(registry: BackendRegistry) -> None:
    assert registry.ids() == ("CpuRef",)
    backend = registry.create("CpuRef")
    assert isinstance(backend, DynamicBackend)
    assert backend.id == CpuRef.id


@pytest.mark.parametrize("dtype", [DataType.FLOAT32, DataType.INT8])
def test_it_supports_convolutions(registry: BackendRegistry, dtype: DataType) -> None:
    network = convolution(dtype)
    assert registry.create("CpuRef").layer_support().supports(network, network.layer("y"), TARGET)


def test_it_says_what_it_does_not_support(registry: BackendRegistry) -> None:
    network = convolution(DataType.FLOAT32)
    network.add_relu_layer("y", name="relu")
    answer = registry.create("CpuRef").layer_support().supports(network, network.layer("relu"), TARGET)
    assert answer.reason == "this build of CpuRef runs CONV_2D, not layer type 21"


@pytest.mark.parametrize(
    ("dtype", "seed"), [*product([DataType.INT8], range(12)), *product([DataType.FLOAT32], range(4))]
)
def test_workloads_equal_the_reference_but_for_the_rounding_of_floats(
    registry: BackendRegistry, dtype: DataType, seed: int
) -> None:
    network = convolution(dtype, seed)
    x = image(network, seed)
    with Runtime(None, registry) as runtime:
        number = runtime.load_network(optimize(network, ["CpuRef"], runtime.registry))
        assert not graph_difference(network, [x], runtime.enqueue_workload(number, [x]))


def test_beside_the_shipped_one_it_is_refused(folder: Path) -> None:
    with Runtime(CreationOptions(dynamic_backends_path=folder)) as runtime:
        (row,) = runtime.dynamic_report
        assert row.reason is Reason.DUPLICATE_ID
        assert runtime.registry.origin("CpuRef").kind is OriginKind.SHIPPED


def test_two_runtimes_have_it_one_after_the_other_goes(folder: Path) -> None:
    network = convolution(DataType.INT8)
    x = image(network, 1)
    options = CreationOptions(dynamic_backends_path=folder)
    first, second = Runtime(options, BackendRegistry()), Runtime(options, BackendRegistry())
    try:
        assert all(row.accepted for runtime in (first, second) for row in runtime.dynamic_report)
        number = second.load_network(optimize(network, ["CpuRef"], second.registry))
        first.close()
        for _ in range(2):
            assert_array_equal(second.enqueue_workload(number, [x])[0], network.run([x])[0])
            second.load_network(optimize(network, ["CpuRef"], second.registry))
    finally:
        first.close()
        second.close()


def test_runtimes_made_in_a_loop_have_it_each_time(folder: Path) -> None:
    """Arm NN's Python users lost their backend in the second iteration."""
    for _ in range(3):
        runtime = Runtime(CreationOptions(dynamic_backends_path=folder), BackendRegistry())
        assert "CpuRef" in runtime.registry
    runtime.close()


def test_a_runtime_lives_with_bad_plug_ins(tmp_path: Path) -> None:
    (tmp_path / "Bad_Text_backend.so").write_text("text")
    with Runtime(CreationOptions(dynamic_backends_path=tmp_path)) as runtime:
        (row,) = runtime.dynamic_report
        assert row.reason is Reason.NOT_LOADABLE
        assert "CpuRef" in runtime.registry
    with Runtime(CreationOptions(dynamic_backends_path=tmp_path / "nothing")) as runtime:
        assert [row.reason for row in runtime.dynamic_report] == [Reason.PATH_MISSING]
