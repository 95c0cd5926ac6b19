# SPDX-License-Identifier: Apache-2.0
"""A float16 layer computes in float32 and rounds once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ferrule.backends.cpu_acc import CpuAcc
from ferrule.backends.device import BackendId
from ferrule.backends.target import default_target
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, LayerType, TensorInfo
from ferrule.network import Network
from ferrule.operators.operator import Operands
from ferrule.operators.reductions.softmax import SoftmaxDescriptor
from ferrule.operators.table import OPERATORS
from ferrule.testing.backends.random_networks import random_network

TARGET = default_target(BackendId("CpuAcc"))


def half(info: TensorInfo | None) -> TensorInfo | None:
    return None if info is None else replace(info, dtype=DataType.FLOAT16)


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_every_layer_rounds_its_float32_result(seed: int) -> None:
    network = random_network(seed, 6, DataType.FLOAT32)
    generator = np.random.default_rng(seed)
    for layer in network.layers:
        wide = Operands(network.input_infos(layer), network.output_infos(layer))
        narrow = Operands(
            tuple(map(half, wide.inputs)),
            tuple(replace(o, dtype=DataType.FLOAT16) for o in wide.outputs),
        )
        arrays = [
            None if info is None else generator.normal(0, 2, info.shape).astype(np.float16) for info in wide.inputs
        ]
        operator = OPERATORS[layer.type]
        operator.check(layer.descriptor, narrow)
        results = operator.kernel(layer.descriptor, narrow, arrays)
        truth = operator.kernel(layer.descriptor, wide, [None if a is None else a.astype(np.float32) for a in arrays])
        for result, expected in zip(results, truth, strict=True):
            assert result.dtype == np.float16
            with np.errstate(over="ignore"):
                assert_array_equal(result, expected.astype(np.float16))


def test_types_are_not_mixed() -> None:
    wide = TensorInfo("x", (1, 4), DataType.FLOAT32)
    narrow = TensorInfo("y", (1, 4), DataType.FLOAT16)
    with pytest.raises(UnsupportedError, match="'x' is float32 but other tensors are float16"):
        OPERATORS[LayerType.SOFTMAX].check(SoftmaxDescriptor(), Operands((wide,), (narrow,)))


def test_no_c_kernel_takes_it() -> None:
    network = Network("half")
    network.add_input(TensorInfo("x", (1, 4), DataType.FLOAT16))
    network.set_outputs([network.add_softmax_layer("x")])
    support = CpuAcc().layer_support().supports(network, network.layers[0], TARGET)
    assert "float16" in support.reason
