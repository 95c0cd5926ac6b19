# SPDX-License-Identifier: Apache-2.0
"""The C of the operators that move elements, compared with the numpy kernels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from layer_case import layer_network
from lowered_call import lower, run_lowered
from movement_cases import MOVEMENTS, info
from numpy.testing import assert_array_equal

from ferrule.graph import DataType, Descriptor, LayerType, Shape
from ferrule.network import Network
from ferrule.operators.movement.checks import MOVABLE
from ferrule.operators.movement.gather import DynamicUpdateSliceDescriptor, GatherDescriptor, GatherNdDescriptor
from ferrule.operators.movement.join import ConcatenationDescriptor
from ferrule.operators.movement.reshape import ReshapeDescriptor
from ferrule.operators.movement.slice import SliceDescriptor
from ferrule.operators.movement.transpose import TransposeDescriptor
from ferrule.testing.backends.comparison import random_inputs

pytestmark = pytest.mark.cc


def check(network: Network) -> None:
    inputs = random_inputs(network)
    for got, wanted in zip(run_lowered(network, inputs), network.run(inputs), strict=True):
        assert_array_equal(got, wanted, strict=True)


@pytest.mark.parametrize("type_", MOVEMENTS)
@settings(max_examples=9, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_result_is_the_numpy_kernels(type_: LayerType, data: st.DataObject) -> None:
    check(data.draw(MOVEMENTS[type_]))


@pytest.mark.parametrize(
    ("type_", "descriptor", "shapes", "position"),
    [
        (LayerType.GATHER, GatherDescriptor(axis=2, batch_dims=1), [(2, 3, 4, 2), (2, 5)], 1),
        (LayerType.GATHER_ND, GatherNdDescriptor(), [(3, 4, 5), (6, 2)], 1),
        (LayerType.DYNAMIC_UPDATE_SLICE, DynamicUpdateSliceDescriptor(), [(4, 5), (2, 3), (2,)], 2),
        (LayerType.SLICE, SliceDescriptor(begin=(), size=(2, 3, 2)), [(4, 3, 5), (3,)], 1),
    ],
)
def test_indices_of_any_value_stay_in_the_tensor(
    type_: LayerType, descriptor: Descriptor, shapes: list[Shape], position: int
) -> None:
    infos = [
        info(f"input_{i}", shape, DataType.INT32 if i == position else DataType.INT16) for i, shape in enumerate(shapes)
    ]
    network = layer_network(type_, descriptor, infos, infos[0].quantization)
    check(network)
    inputs = random_inputs(network)
    for low, high in ((-1, 2), (0, 6)):
        inputs[position] = np.random.default_rng(1).integers(low, high, shapes[position], np.int32)
        assert_array_equal(run_lowered(network, inputs)[0], network.run(inputs)[0])


@pytest.mark.parametrize("dtype", sorted(MOVABLE))
def test_a_reshaped_constant_is_copied(dtype: DataType) -> None:
    source = info("input", (2, 3), dtype)
    data = np.arange(6).reshape(2, 3).astype(dtype.numpy)
    network = layer_network(
        LayerType.RESHAPE, ReshapeDescriptor(shape=(6,)), [source], source.quantization, constants={0: data}
    )
    (result,) = run_lowered(network, [])
    assert_array_equal(result, data.reshape(6))


def test_a_reshaped_tensor_takes_no_code() -> None:
    op = lower(layer_network(LayerType.RESHAPE, ReshapeDescriptor(shape=(-1,)), [info("x", (2, 3), DataType.INT8)]))
    assert op.view_of == "x"
    assert not op.statements


def test_constants_can_be_joined() -> None:
    infos = [info("a", (2, 2), DataType.INT16), info("b", (2, 1), DataType.INT16)]
    network = layer_network(
        LayerType.CONCATENATION,
        ConcatenationDescriptor(axis=1),
        infos,
        infos[0].quantization,
        constants={1: np.array([[7], [8]], np.int16)},
    )
    check(network)


@pytest.mark.parametrize(
    ("permutation", "kernel"), [((1, 0, 2), "transpose_copy_runs"), ((0, 2, 1), "transpose_copy_16")]
)
def test_long_runs_are_copied_whole(permutation: tuple[int, ...], kernel: str) -> None:
    source = info("input", (3, 4, 16), DataType.INT16)
    network = layer_network(
        LayerType.TRANSPOSE, TransposeDescriptor(permutation=permutation), [source], source.quantization
    )
    assert lower(network).kernel == kernel
    check(network)


def test_a_slice_of_whole_rows_is_one_run() -> None:
    source = info("input", (9, 4, 16), DataType.INT8)
    descriptor = SliceDescriptor(begin=(2, 0, 0), size=(5, 4, 16))
    network = layer_network(LayerType.SLICE, descriptor, [source], source.quantization)
    op = lower(network)
    assert op.kernel == "slice_copy_runs"
    check(network)
