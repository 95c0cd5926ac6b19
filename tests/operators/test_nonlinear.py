# SPDX-License-Identifier: Apache-2.0
"""LOGISTIC, TANH and HARD_SWISH in numpy, compared with TensorFlow Lite Micro's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layer_case import layer_network, tensor
from numpy.testing import assert_allclose
from oracle import tflm
from unary_cases import SIGMOIDAL, hard_swish_cases, sigmoidal_cases

from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType
from ferrule.operators.elementwise.nonlinear import HardSwishDescriptor, LogisticDescriptor, TanhDescriptor
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS

FLOATS = np.concatenate(
    [np.linspace(-120, 120, 4001), [0.0, -0.0, 1e-40, -1e-40, 1e-6, 1e30, -1e30, 3.0, -3.0, np.inf, -np.inf, np.nan]]
).astype(np.float32)[None]


@pytest.mark.parametrize("cell", SIGMOIDAL, ids=lambda cell: f"{cell[0]}-{cell[1]}")
@given(drawn=st.data())
@settings(max_examples=50)
def test_sigmoidal_equals_tflm(cell: tuple[LayerType, DataType], drawn: st.DataObject) -> None:
    network, values = drawn.draw(sigmoidal_cases(*cell))
    assert np.array_equal(network.run([values])[0], tflm(network, [values])[0])


@given(case=hard_swish_cases())
@settings(max_examples=150)
def test_hard_swish_equals_tflm(case) -> None:  # noqa: ANN001
    network, values = case
    assert np.array_equal(network.run([values])[0], tflm(network, [values])[0])


@pytest.mark.parametrize(
    ("type_", "descriptor", "formula"),
    [
        (LayerType.LOGISTIC, LogisticDescriptor(), lambda x: 1 / (1 + np.exp(-x))),
        (LayerType.TANH, TanhDescriptor(), np.tanh),
        (LayerType.HARD_SWISH, HardSwishDescriptor(), lambda x: x * np.clip(x + 3, 0, 6) / 6),
    ],
)
def test_float_is_within_tolerance_of_float64(
    type_: LayerType, descriptor: Descriptor, formula: Callable[[Array], Array]
) -> None:
    network = layer_network(type_, descriptor, [tensor("x", FLOATS.shape, DataType.FLOAT32)])
    with np.errstate(all="ignore"):
        wanted = formula(FLOATS.astype(np.float64))
    ours = network.run([FLOATS])[0]
    assert_allclose(ours, wanted, rtol=1e-6, atol=1e-38)
    # TensorFlow Lite Micro uses exp(x) for its logistic below -9, with an error of 1.3e-4
    assert_allclose(tflm(network, [FLOATS])[0], wanted, rtol=2e-4, atol=1e-38)


@pytest.mark.parametrize(
    ("type_", "source", "output", "message"),
    [
        ("LOGISTIC", (DataType.INT8, 0.1), (DataType.INT8, 0.1, -128), "'y' has sc"),
        ("TANH", (DataType.INT8, 0.1), (DataType.INT8, 1 / 128, 1), "zero point 1"),
        ("TANH", (DataType.INT16, 0.1, 1), (DataType.INT16, 2**-15), "zero point 1"),
        ("TANH", (DataType.INT16, 0.1), (DataType.INT16, 2**-14), "2.-15"),
        ("LOGISTIC", (DataType.INT16, 3), (DataType.INT16, 2**-15), "less than 8/3"),
        ("LOGISTIC", (DataType.INT8, 1e-9), (DataType.INT8, 2**-8, -128), "2.-28"),
        ("HARD_SWISH", (DataType.INT16, 1), (DataType.INT16, 1), "of int16 to int16"),
        ("HARD_SWISH", (DataType.INT8, 1), (DataType.INT8, 1e-3), "cannot convert"),
        ("HARD_SWISH", (DataType.INT8,), (DataType.INT8, 1), "without quantisation"),
        ("TANH", (DataType.INT8, 1), (DataType.FLOAT32,), "int8 to float32"),
    ],
)
def test_refuses(type_: str, source: tuple[Any, ...], output: tuple[Any, ...], message: str) -> None:
    operator = OPERATORS[LayerType(type_)]
    operands = Operands((tensor("x", (2,), *source),), (tensor("y", (2,), *output),))
    with pytest.raises(UnsupportedError, match=message):
        operator.check(operator.descriptor(), operands)
