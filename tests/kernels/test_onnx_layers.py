# SPDX-License-Identifier: Apache-2.0
"""The C by ONNX's rule, compared with the rule written out for one element."""

from __future__ import annotations

import random

import numpy as np
import pytest
from layer_case import layer_network, tensor
from lowered_call import lower, run_lowered
from onnx_layers import CASES

from ferrule.backends.cpu_acc.backend import CpuAccSupport
from ferrule.backends.cpu_acc.lowering.table import RULES
from ferrule.backends.device import BackendId
from ferrule.backends.target import CoreFeatures, Face, default_target
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, LayerType, Quantization, Rounding
from ferrule.operators.quantize import QuantizeDescriptor
from ferrule.operators.table import OPERATORS

pytestmark = pytest.mark.cc
WITHOUT_DSP = CoreFeatures(name="cortex-m3")
TARGET = default_target(BackendId("CpuAcc"), Face.FIRMWARE)


@pytest.mark.parametrize("core", [None, WITHOUT_DSP], ids=["dsp", "plain"])
@pytest.mark.parametrize("name", CASES)
def test_the_c_computes_the_rule(name: str, core: CoreFeatures | None) -> None:
    case = CASES[name](random.Random(name))
    assert CpuAccSupport().supports(case.network, case.network.layers[0], TARGET).reason == ""
    (got,) = run_lowered(case.network, list(case.inputs), core)
    np.testing.assert_array_equal(got, case.wanted, strict=True)


def test_8_bits_of_either_sign_become_one_another() -> None:
    every = np.arange(-128, 128, dtype=np.int8)[None]
    for source, target in ((DataType.INT8, DataType.UINT8), (DataType.UINT8, DataType.INT8)):
        network = layer_network(
            LayerType.QUANTIZE,
            QuantizeDescriptor(),
            [tensor("x", every.shape, source, 0.5, 9)],
            Quantization.of(0.25, 100),
            output_dtype=target,
            rounding=Rounding.ONNX,
        )
        data = every.view(source.numpy)
        limits = np.iinfo(target.numpy)
        wanted = np.clip((data.astype(np.int64) - 9) * 2 + 100, limits.min, limits.max).astype(target.numpy)
        for got in (network.run([data])[0], run_lowered(network, [data])[0]):
            np.testing.assert_array_equal(got, wanted, strict=True)


def test_what_has_no_c_is_refused_by_name() -> None:
    for type_, rules in RULES.items():
        assert rules <= OPERATORS[type_].rules
    network = layer_network(
        LayerType.QUANTIZE,
        QuantizeDescriptor(),
        [tensor("x", (2,), DataType.INT8, 0.5)],
        Quantization.of(0.25),
        rounding=Rounding.SINGLE,
    )
    assert "('single')" in CpuAccSupport().supports(network, network.layers[0], TARGET).reason
    with pytest.raises(UnsupportedError, match=r"QUANTIZE by the rule of one rounding \('single'\)"):
        lower(network)
