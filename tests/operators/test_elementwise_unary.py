# SPDX-License-Identifier: Apache-2.0
"""Every function of one value: numpy against TensorFlow Lite's kernels, and C against numpy.

Most functions of float32 are compared bit by bit.
"""

from __future__ import annotations

import numpy as np
import pytest
from elementwise_cases import STORED
from hypothesis import given, settings
from hypothesis import strategies as st
from layer_case import layer_network, tensor
from lowered_call import run_lowered, run_overlapping
from numpy.testing import assert_array_equal, assert_array_max_ulp
from oracle import interpreter, tflm

from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, LayerType, Quantization, TensorInfo
from ferrule.memory.request import Overlap
from ferrule.network import Network
from ferrule.operators.elementwise.functions import ELEMENTWISE_UNARY, ElementwiseUnaryDescriptor
from ferrule.operators.operator import Operands, Operator

SPECIAL = [0.0, -0.0, 0.5, -0.5, 0.49999997, 1.0, -1.0, 1.5, -1.5, 2.5, -2.5, 1e-45, -1e-45, 1.17549435e-38]
SPECIAL += [8388607.5, -8388607.5, 8388608.0, -8388608.0, 2147483648.0, -2147483648.0, 3.4028235e38, -3.4028235e38]
SPECIAL += [np.inf, -np.inf, np.nan]

ROUNDED = {LayerType.COS, LayerType.ELU, LayerType.EXP, LayerType.LOG, LayerType.SIN}
"""The functions whose float32 results are within 2 ULP of float64, instead of bit for bit."""
FUNCTIONS = [row for row in ELEMENTWISE_UNARY if row.type is not LayerType.LOGICAL_NOT]

functions = pytest.mark.parametrize("row", FUNCTIONS, ids=lambda row: row.type)
bit_patterns = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=64)


def network_of(row: Operator, values: Array) -> Network:
    return layer_network(row.type, row.descriptor(), [tensor("x", values.shape, DataType.FLOAT32)])


def assert_same(got: Array, wanted: Array, row: Operator) -> None:
    """Assert that all bits are equal, except that any NaN equals any other, and that some functions may round."""
    assert got.dtype == wanted.dtype == np.float32
    numbers = ~np.isnan(wanted)
    assert_array_equal(np.isnan(got), ~numbers)
    if row.type in ROUNDED:
        assert_array_equal(np.isinf(got), np.isinf(wanted))
        assert_array_max_ulp(got[numbers], wanted[numbers], 2)
        return
    assert_array_equal(got[numbers].view(np.uint32), wanted[numbers].view(np.uint32))


def values_of(patterns: list[int]) -> Array:
    """Return floats of any magnitude, floats with a fractional part, and special values."""
    drawn = np.array(patterns, np.uint32)
    small = (drawn.astype(np.int64) - 2**31).astype(np.float32) / np.float32(2**26)
    return np.concatenate([drawn.view(np.float32), small, np.array(SPECIAL, np.float32)])[None]


@functions
@settings(deadline=None, max_examples=40)
@given(patterns=bit_patterns)
def test_numpy_equals_its_oracle(row: Operator, patterns: list[int]) -> None:
    values = values_of(patterns)
    network = network_of(row, values)
    assert_same(network.run([values])[0], interpreter(network, [values])[0], row)


@pytest.mark.cc
@functions
@settings(deadline=None, max_examples=25)
@given(patterns=bit_patterns)
def test_c_equals_numpy(row: Operator, patterns: list[int]) -> None:
    values = values_of(patterns)
    network = network_of(row, values)
    assert_same(run_lowered(network, [values])[0], network.run([values])[0], row)


@pytest.mark.cc
@functions
def test_the_output_may_lie_over_the_input(row: Operator) -> None:
    values = values_of([0x40490FDB])
    network = network_of(row, values)
    overlap = Overlap(input="x", output=network.outputs[0].name, distance_bytes=0)
    assert_same(run_overlapping(network, [values], overlap, 0), network.run([values])[0], row)


@functions
@pytest.mark.parametrize("dtype", [DataType.INT8, DataType.INT16, DataType.INT32])
def test_integers_without_a_kernel_are_refused(row: Operator, dtype: DataType) -> None:
    quantization = None if dtype is DataType.INT32 else Quantization.of(0.5)
    infos = [TensorInfo(name, (2,), dtype, quantization=quantization) for name in "xy"]
    operands = Operands((infos[0],), (infos[1],))
    if dtype in STORED.get(row.type, ()):
        row.check(row.descriptor(), operands)
        return
    with pytest.raises(UnsupportedError, match=f"tensor 'x' is {dtype}, expected float32"):
        row.check(row.descriptor(), operands)


def test_the_negation_of_truth_values() -> None:
    values = np.array([[True, False, False]])
    network = layer_network(
        LayerType.LOGICAL_NOT, ElementwiseUnaryDescriptor(), [tensor("x", values.shape, DataType.BOOL)]
    )
    for got in (network.run([values]), tflm(network, [values]), run_lowered(network, [values])):
        assert_array_equal(got[0], ~values, strict=True)
    constant = layer_network(
        LayerType.LOGICAL_NOT,
        ElementwiseUnaryDescriptor(),
        [tensor("x", values.shape, DataType.BOOL)],
        constants={0: values},
    )
    assert_array_equal(run_lowered(constant, [])[0], ~values, strict=True)


def test_scales_too_far_apart_are_refused() -> None:
    for type_, scale in ((LayerType.ABS, 1e-20), (LayerType.RSQRT, 1e5), (LayerType.ELU, 1e-20)):
        infos = [tensor("x", (2,), DataType.INT8, 0.5)]
        with pytest.raises(UnsupportedError, match="tensors 'x' and 'output_0' have scales"):
            layer_network(type_, ElementwiseUnaryDescriptor(), infos, Quantization.of(scale)).validate()
