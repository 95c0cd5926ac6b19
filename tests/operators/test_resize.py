# SPDX-License-Identifier: Apache-2.0
"""RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR: numpy against TensorFlow Lite Micro's kernels, and C against numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layer_case import layer_network, tensor
from lowered_call import run_lowered
from numpy.testing import assert_array_equal
from oracle import tflm

from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, LayerType, Quantization
from ferrule.network import Network
from ferrule.operators.operator import OTHER_CODE, OWN_CODE, Arithmetic
from ferrule.operators.spatial.resize import ResizeDescriptor
from ferrule.testing.backends.comparison import graph_difference, random_inputs

NEAREST, BILINEAR = LayerType.RESIZE_NEAREST_NEIGHBOR, LayerType.RESIZE_BILINEAR
CASES = [
    *((NEAREST, dtype) for dtype in (DataType.INT8, DataType.INT16, DataType.FLOAT32)),
    *((BILINEAR, dtype) for dtype in (DataType.INT8, DataType.FLOAT32)),
]
CORNERS = [(False, False), (True, False), (False, True)]

each_case = pytest.mark.parametrize(("type_", "dtype"), CASES)


def network_of(type_: LayerType, dtype: DataType, shape: tuple[int, ...], descriptor: ResizeDescriptor) -> Network:
    scale = None if dtype.is_float else 0.25
    return layer_network(
        type_,
        descriptor,
        [tensor("x", shape, dtype, scale, -3 if dtype is DataType.INT8 else 0)],
        None if scale is None else Quantization.of(scale, -3 if dtype is DataType.INT8 else 0),
    )


@st.composite
def networks(draw: st.DrawFn, type_: LayerType, dtype: DataType) -> Network:
    extents = st.integers(1, 9) | st.sampled_from([17, 33])
    shape = (draw(st.integers(1, 2)), draw(extents), draw(extents), draw(st.integers(1, 3)))
    aligned, centred = draw(st.sampled_from([*CORNERS, (True, True)] if type_ is NEAREST else CORNERS))
    descriptor = ResizeDescriptor(
        height=draw(extents), width=draw(extents), align_corners=aligned, half_pixel_centers=centred
    )
    return network_of(type_, dtype, shape, descriptor)


def assert_same(network: Network, inputs: Sequence[Array], got: Array, arithmetic: Arithmetic = OTHER_CODE) -> None:
    """Assert that what others compute is what numpy does; floats may be off as the bound of each element says."""
    assert not graph_difference(network, inputs, [got.reshape(network.outputs[0].shape)], arithmetic)


@each_case
@settings(max_examples=30)
@given(drawn=st.data())
def test_numpy_equals_tflm(type_: LayerType, dtype: DataType, drawn: st.DataObject) -> None:
    network = drawn.draw(networks(type_, dtype))
    inputs = random_inputs(network, drawn.draw(st.integers(0, 99)))
    assert_same(network, inputs, tflm(network, inputs)[0])


@pytest.mark.cc
@each_case
@settings(max_examples=30)
@given(drawn=st.data())
def test_c_equals_numpy(type_: LayerType, dtype: DataType, drawn: st.DataObject) -> None:
    network = drawn.draw(networks(type_, dtype))
    inputs = random_inputs(network, drawn.draw(st.integers(0, 99)))
    assert_same(network, inputs, run_lowered(network, inputs)[0], OWN_CODE)


def test_halves_are_rounded_away_from_zero() -> None:
    network = network_of(BILINEAR, DataType.INT8, (1, 1, 2, 4), ResizeDescriptor(height=1, width=4))
    values = np.array([[[[-3, -2, 2, 3], [-4, -3, 3, 4]]]], np.int8)
    (result,) = network.run([values])
    assert_array_equal(result[0, 0, 1], [-4, -3, 3, 4])
    assert_array_equal(result, tflm(network, [values])[0])


@pytest.mark.parametrize("corners", CORNERS)
def test_a_large_image_keeps_its_positions(corners: tuple[bool, bool]) -> None:
    """Float32 positions are not exact there, and integer positions far from the exact ones."""
    descriptor = ResizeDescriptor(height=1, width=1021, align_corners=corners[0], half_pixel_centers=corners[1])
    for type_, dtype in CASES:
        network = network_of(type_, dtype, (1, 1, 997, 1), descriptor)
        inputs = random_inputs(network)
        assert_same(network, inputs, tflm(network, inputs)[0])


@pytest.mark.parametrize(
    ("type_", "dtype", "shape", "fields", "message"),
    [
        (NEAREST, DataType.INT8, (1, 3, 3), {}, "expected NHWC"),
        (NEAREST, DataType.INT8, (1, 3, 3, 1), {"height": 0}, r"\[0, 2\], expected two numbers"),
        (NEAREST, DataType.INT32, (1, 3, 3, 1), {}, "no reference kernel"),
        (BILINEAR, DataType.INT16, (1, 3, 3, 1), {}, "no reference kernel"),
        (BILINEAR, DataType.INT8, (1, 3, 3, 1), {"align_corners": True, "half_pixel_centers": True}, "at most one"),
        (BILINEAR, DataType.INT8, (1, 3, 3, 1), {"width": 4096}, "3 to 4096 pixels is too large"),
        (BILINEAR, DataType.INT8, (1, 2**21, 1, 1), {}, "2097152 to 2 pixels is too large"),
    ],
)
def test_refuses(
    type_: LayerType, dtype: DataType, shape: tuple[int, ...], fields: dict[str, Any], message: str
) -> None:
    descriptor = ResizeDescriptor(**{"height": 2, "width": 2} | fields)
    with pytest.raises(UnsupportedError, match=message):
        network_of(type_, dtype, shape, descriptor).validate()


@each_case
def test_integers_need_no_quantisation(type_: LayerType, dtype: DataType) -> None:
    network = layer_network(type_, ResizeDescriptor(height=5, width=2), [tensor("x", (1, 3, 3, 2), dtype)], None)
    inputs = random_inputs(network)
    assert_same(network, inputs, tflm(network, inputs)[0])


def test_refuses_another_quantisation() -> None:
    infos = [tensor("x", (1, 3, 3, 1), DataType.INT8, 0.5)]
    network = layer_network(NEAREST, ResizeDescriptor(height=2, width=2), infos, Quantization.of(0.25))
    with pytest.raises(UnsupportedError, match="differ in quantisation"):
        network.validate()
