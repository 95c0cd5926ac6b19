# SPDX-License-Identifier: Apache-2.0
"""The C by ONNX's rule, compared with the rule written out for one element."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from gate import every
from layer_case import layer_network, tensor
from lowered_call import lower, lowering_of, run_lowered
from numpy.testing import assert_array_equal
from onnx_layers import CASES, PAIRS, every_pair, pairs_network

from ferrule.backends.cpu_acc.backend import CpuAccSupport
from ferrule.backends.cpu_acc.lowering.kernels.choice import explain
from ferrule.backends.cpu_acc.lowering.operators.onnx_binary import ONNX_PRODUCT_ROWS, ONNX_SUM_ROWS
from ferrule.backends.device import BackendId
from ferrule.backends.target import CoreFeatures, Face, default_target
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, LayerType, Quantization, Rounding
from ferrule.operators.activation import Activation
from ferrule.operators.elementwise.binary import BinaryDescriptor
from ferrule.operators.elementwise.quantize import QuantizeDescriptor

pytestmark = pytest.mark.cc
WITHOUT_DSP = CoreFeatures(name="cortex-m3")
BASELINE = CoreFeatures(name="cortex-m0")
TARGET = default_target(BackendId("CpuAcc"), Face.FIRMWARE)


@pytest.mark.parametrize("core", [None, WITHOUT_DSP], ids=["dsp", "plain"])
@pytest.mark.parametrize("name", CASES)
def test_the_c_computes_the_rule(name: str, core: CoreFeatures | None) -> None:
    dice = random.Random(name)
    for _ in range(2):
        case = CASES[name](dice)
        assert CpuAccSupport().supports(case.network, case.network.layers[0], TARGET).reason == ""
        (got,) = run_lowered(case.network, list(case.inputs), core)
        assert_array_equal(got, case.wanted, strict=True)


@pytest.mark.parametrize("core", [None, WITHOUT_DSP, BASELINE], ids=["dsp", "plain", "baseline"])
@pytest.mark.parametrize(("type_", "rule"), PAIRS, ids=str)
@pytest.mark.parametrize("seed", every(3, range(3)))
def test_every_kernel_computes_the_rule_for_all_pairs(
    type_: LayerType, rule: Rounding, seed: int, core: CoreFeatures | None
) -> None:
    network = pairs_network(type_, rule, random.Random(seed), [Activation.NONE, Activation.RELU][seed == 2])
    assert CpuAccSupport().supports(network, network.layers[0], TARGET).reason == ""
    (wanted,) = network.run(every_pair())
    context = lowering_of(network, core)
    rows = ONNX_PRODUCT_ROWS if type_ is LayerType.MUL else ONNX_SUM_ROWS
    candidates = [each.candidate for each in explain(context, rows) if each.candidate is not None]
    assert candidates
    for candidate in candidates:
        (got,) = run_lowered(network, every_pair(), op=candidate.lowered(context))
        assert_array_equal(got, wanted, strict=True, err_msg=candidate.kernel)


@pytest.mark.parametrize(("type_", "rule"), PAIRS, ids=str)
@pytest.mark.parametrize("powers", [False, True], ids=["any", "powers of two"])
def test_most_layers_of_two_inputs_need_no_float32(type_: LayerType, rule: Rounding, *, powers: bool) -> None:
    found: Counter[str] = Counter()
    for seed in range(12):
        dice = random.Random(seed)
        scales = [2.0 ** dice.randint(-8, 0) if powers else float(np.float32(10 ** dice.uniform(-3, 0))) for _ in "ab"]
        step = scales[0] * scales[1] if type_ is LayerType.MUL else max(scales)
        step *= 2.0 ** dice.randint(0, 6) if powers else dice.uniform(1, 2) * (60 if type_ is LayerType.MUL else 1)
        infos = [tensor(name, (4096,), DataType.INT8, own, -3) for name, own in zip("ab", scales, strict=True)]
        output = Quantization.of(float(np.float32(step)), 7)
        network = layer_network(type_, BinaryDescriptor(), infos, output, rounding=rule)
        found[lower(network, WITHOUT_DSP).kernel] += 1
    assert sum(count for kernel, count in found.items() if "f" not in kernel) >= (12 if powers else 11), found


def test_scales_that_are_too_far_apart_are_refused() -> None:
    for scales, message in (((1e-30, 1.0), "'a' over that of 'output_0' is 1e-30"), ((1.0, 1e20), "'b' over that")):
        infos = [tensor(name, (2,), DataType.INT8, own) for name, own in zip("ab", scales, strict=True)]
        network = layer_network(LayerType.ADD, BinaryDescriptor(), infos, Quantization.of(1.0), rounding=Rounding.ONNX)
        with pytest.raises(UnsupportedError, match=message):
            network.validate()


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
            assert_array_equal(got, wanted, strict=True)


def test_what_has_no_c_is_refused_by_name() -> None:
    network = layer_network(
        LayerType.QUANTIZE,
        QuantizeDescriptor(),
        [tensor("x", (2,), DataType.INT8, 0.5)],
        Quantization.of(0.25),
        rounding=Rounding.SINGLE,
    )
    assert "('single')" in CpuAccSupport().supports(network, network.layers[0], TARGET).reason
