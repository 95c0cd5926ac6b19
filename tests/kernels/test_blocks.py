# SPDX-License-Identifier: Apache-2.0
"""The kernels that walk two inputs in blocks: each with each broadcast, as plain C here and on emulated cores."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, product
from typing import Literal

import numpy as np
import pytest
from ckernels import NativeNetwork
from layer_case import layer_network, tensor
from lowered_call import lower, run_lowered
from merged import merged
from needs import require_module, require_program
from numpy.testing import assert_array_equal
from oracle import edge_inputs

import ferrule
from ferrule.backends.cpu_acc.lowering import table
from ferrule.backends.cpu_acc.lowering.operators.binary import SUM_ROWS
from ferrule.backends.target import CoreFeatures
from ferrule.graph import Array, DataType, Descriptor, LayerType, Quantization, Rounding, Shape
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.elementwise.binary import BinaryDescriptor
from ferrule.operators.elementwise.functions_of_two import ExtremumDescriptor
from ferrule.operators.elementwise.rectify import PreluDescriptor
from ferrule.testing.backends.comparison import random_inputs

pytestmark = pytest.mark.cc
M4 = CoreFeatures(name="cortex-m4", dsp=True)
M3, M0 = CoreFeatures(name="cortex-m3"), CoreFeatures(name="cortex-m0plus")
SHAPES: dict[str, tuple[Shape, Shape]] = {
    "same": ((3, 7, 5), (3, 7, 5)),
    "one element": ((1,), (1,)),
    "channels": ((2, 9, 11, 6), (6,)),
    "many channels": ((5, 70), (1, 70)),
    "more channels than a block": ((3, 301), (301,)),
    "channels of each image": ((3, 4, 4, 5), (3, 1, 1, 5)),
    "rows": ((4, 9, 33), (4, 9, 1)),
    "long rows": ((3, 300), (3, 1)),
    "a scalar": ((5, 67), (1,)),
    "a scalar of each column": ((2, 3, 130), (2, 1, 130)),
    "both repeated": ((1, 7, 1, 5), (2, 1, 6, 5)),
    "both repeated, long rows": ((4, 1), (1, 150)),
}
ZERO_POINTS = [(-128, -128, -128), (5, -3, 10), (127, -128, -7), (-128, 127, 127)]
ACTIVATIONS = [Activation.NONE, Activation.RELU, Activation.RELU6, Activation.RELU_N1_TO_1]
KERNELS = {
    (LayerType.ADD, Rounding.TFLM): "sum_s8",
    (LayerType.SUB, Rounding.TFLM): "sum_s8",
    (LayerType.MUL, Rounding.TFLM): "product_s8",
    (LayerType.MUL, Rounding.ONNX): "scaled_product_s8",
    (LayerType.PRELU, Rounding.TFLM): "prelu_table_s8",
    (LayerType.MAXIMUM, Rounding.TFLM): "maximum_s8",
    (LayerType.MINIMUM, Rounding.TFLM): "minimum_s8",
}


def pair(
    type_: LayerType,
    shapes: Sequence[Shape],
    number: int,
    scale: float | None = None,
    rounding: Rounding = Rounding.TFLM,
) -> Network:
    """Return a layer of two inputs; the number chooses zero points, the activation and which input is repeated."""
    zero_points = ZERO_POINTS[number % len(ZERO_POINTS)]
    activation = ACTIVATIONS[number // 2 % len(ACTIVATIONS)] if type_ is LayerType.MUL else Activation.NONE
    first, second = shapes[::-1] if type_ is not LayerType.PRELU and number % 3 == 1 else shapes
    descriptor: Descriptor = BinaryDescriptor(activation=activation)
    infos = [
        tensor("a", first, DataType.INT8, 0.0312, zero_points[0]),
        tensor("b", second, DataType.INT8, 0.0547, zero_points[1]),
    ]
    output = Quantization.of(
        scale or {LayerType.MUL: 0.0312, LayerType.PRELU: 0.035}.get(type_, 0.0731), zero_points[2]
    )
    if type_ in {LayerType.MAXIMUM, LayerType.MINIMUM}:
        descriptor, output = ExtremumDescriptor(), Quantization.of(0.0312, zero_points[0])
        infos[1] = tensor("b", second, DataType.INT8, 0.0312, zero_points[0])
    if type_ is LayerType.PRELU:
        descriptor = PreluDescriptor()
    return layer_network(type_, descriptor, infos, output, rounding=rounding)


NUMBERS = count()
CASES = {
    f"{kernel}, {type_}, {name}": (pair(type_, shapes, next(NUMBERS), rounding=rounding), kernel)
    for name, shapes in SHAPES.items()
    for (type_, rounding), kernel in KERNELS.items()
    if type_ is not LayerType.PRELU or "both" not in name
}


def any_sum(
    type_: LayerType,
    scales: tuple[float, float, float],
    number: int = 0,
    shapes: Sequence[Shape] = ((256, 1), (1, 256)),
) -> Network:
    """Return an ADD or SUB whose limits no kernel with constants takes; by default of all pairs of stored values."""
    zero_points = ZERO_POINTS[number % len(ZERO_POINTS)]
    infos = [tensor(*each) for each in zip("ab", shapes, [DataType.INT8] * 2, scales, zero_points, strict=False)]
    limited = BinaryDescriptor(activation=Activation.RELU_N1_TO_1 if number % 2 else Activation.NONE)
    return layer_network(type_, limited, infos, Quantization.of(scales[2], zero_points[2]))


SCALES = {
    "the first scale is larger": (0.03, 0.02, 0.04),
    "the second scale is larger": (0.05, 0.06, 0.06),
    "a scale is tiny": (3e-5, 0.11, 0.09),
    "equal scales": (0.1, 0.1, 0.03),
    "results are 15 bits shifted": (0.5, 0.4, 0.04),
    "results are less shifted": (0.5, 0.4, 0.01),
    "results are 22 bits shifted": (0.01, 0.02, 0.1),
    "results are more shifted": (0.01, 0.02, 0.4),
    "results are not shifted": (0.1, 0.07, 2.5e-7),
}
TYPES = (LayerType.ADD, LayerType.SUB)
SUMS = {
    f"rescaled_sum_s8, {type_}, {name}": any_sum(type_, scales, number)
    for number, ((name, scales), type_) in enumerate(product(SCALES.items(), TYPES))
} | {
    f"rescaled_sum_s8, {type_}, {name}, {which}": any_sum(type_, SCALES[which], number, shapes)
    for number, ((name, shapes), type_, which) in enumerate(product(SHAPES.items(), TYPES, list(SCALES)[:2]))
}


@pytest.fixture
def only_rescaled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the kernel for any scales as the only one of sums."""
    monkeypatch.setattr(table, "SUM_ROWS", tuple(row for row in SUM_ROWS if row.kernel == "rescaled_sum_s8"))


@pytest.mark.usefixtures("only_rescaled")
@pytest.mark.parametrize("defines", [(), ("FERRULE_SHORT_MULTIPLY=1",)])
def test_sums_of_any_scales_in_plain_c(defines: tuple[str, ...]) -> None:
    network = merged(list(SUMS.values()))
    for inputs in [random_inputs(network), _every_pair(network)]:
        native = NativeNetwork(network, core=M0 if defines else M4, defines=defines)
        for case, got, wanted in zip(SUMS, native.run(inputs), network.run(inputs), strict=True):
            assert_array_equal(got, wanted, err_msg=case)


@pytest.mark.emu
@pytest.mark.usefixtures("only_rescaled")
@pytest.mark.parametrize(("board", "engine"), [("mps2-an386", "unicorn"), ("mps3-an547", "qemu")])
def test_sums_of_any_scales_in_assembler(board: str, engine: Literal["unicorn", "qemu"]) -> None:
    require_module("unicorn", "pip install ferrule[run]")
    require_program("arm-none-eabi-gcc", "apt install gcc-arm-none-eabi")
    require_program("qemu-system-arm", "apt-get install qemu-system-arm")
    network = merged(list(SUMS.values()))
    inputs = _every_pair(network)
    report = ferrule.compile(network, board=board, toolchain="arm-none-eabi-gcc").run(inputs, engine=engine)
    assert {layer.kernel for layer in report.layers} == {"rescaled_sum_s8"}
    for case, got, wanted in zip(SUMS, report.outputs, network.run(inputs), strict=True):
        assert_array_equal(got, wanted, err_msg=case)


def _every_pair(network: Network) -> list[Array]:
    """Return every stored value for inputs of 256 elements, and random ones for others."""
    every = np.arange(-128, 128, dtype=np.int8)
    pairs = zip(network.inputs, random_inputs(network), strict=True)
    return [every.reshape(info.shape) if info.elements == every.size else data for info, data in pairs]


@pytest.mark.parametrize("name", SHAPES)
def test_the_plain_c(name: str) -> None:
    for case, (network, kernel) in CASES.items():
        if not case.endswith(f", {name}"):
            continue
        op = lower(network, M4)
        assert op.kernel == kernel or network.outputs[0].elements == 1, case
        for inputs in [random_inputs(network), *edge_inputs(network).values()]:
            assert_array_equal(run_lowered(network, inputs, op=op)[0], network.run(inputs)[0], err_msg=case)


def test_all_pairs_are_exact_without_long_multiplication() -> None:
    """The high product is then made of products of 32 bits."""
    every = np.arange(-128, 128, dtype=np.int8)
    scales = [0.0009, 0.00352, 0.02, 0.31, 5.0, 4e3]
    rules = [(LayerType.MUL, Rounding.TFLM), (LayerType.MUL, Rounding.ONNX), (LayerType.PRELU, Rounding.TFLM)]
    networks = [
        pair(
            type_, ((256, 256), (1, 256)) if type_ is LayerType.PRELU else ((256, 1), (1, 256)), number, scale, rounding
        )
        for number, (scale, (type_, rounding)) in enumerate(product(scales, rules))
    ]
    shaped: dict[Shape, Array] = {(256, 1): every.reshape(256, 1), (1, 256): every.reshape(1, 256)}
    shaped[256, 256] = np.repeat(shaped[256, 1], 256, axis=1)
    inputs = [shaped[info.shape] for network in networks for info in network.inputs]
    native = NativeNetwork(merged(networks), core=M0, defines=("FERRULE_SHORT_MULTIPLY=1",))
    for got, wanted in zip(native.run(inputs), native.network.run(inputs), strict=True):
        assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("scale", "wanted"), [(0.00342, "product_s8"), (0.0034, "mul_s8"), (1.4e4, "product_s8"), (1.5e4, "mul_s8")]
)
def test_factors_beyond_one_half_and_tiny_ones_have_another_kernel(scale: float, wanted: str) -> None:
    network = pair(LayerType.MUL, ((5, 9), (5, 9)), 0, scale)
    for core in (M4, M3, M0):
        assert lower(network, core).kernel == wanted
    inputs = random_inputs(network)
    assert_array_equal(run_lowered(network, inputs)[0], network.run(inputs)[0])


GENERIC = {
    "product_s8, MUL, one element": "mul_s8",
    "scaled_product_s8, MUL, one element": "float_product_s8",
    "prelu_table_s8, PRELU, one element": "prelu_s8",
}
"""One element by the loop of a generic kernel takes half of what the set-up of the other one takes: 153 instructions
instead of 312, 127 instead of 300 and 165 instead of 294 on a Cortex-M4."""
BOARDS = {
    "mps2-an386": ("unicorn", list(CASES)),
    # runs with QEMU take longer; each shape is there, and each kernel with vectors that are not whole
    "mps3-an547": ("qemu", sorted({*list(CASES)[::5], *(case for case in CASES if case.endswith("same"))})),
}


@pytest.mark.emu
@pytest.mark.parametrize("board", BOARDS)
def test_the_assembler(board: str) -> None:
    require_module("unicorn", "pip install ferrule[run]")
    require_program("arm-none-eabi-gcc", "apt install gcc-arm-none-eabi")
    require_program("qemu-system-arm", "apt-get install qemu-system-arm")
    engine, cases = BOARDS[board]
    network = merged([CASES[case][0] for case in cases])
    inputs = random_inputs(network)
    firmware = ferrule.compile(network, board=board, toolchain="arm-none-eabi-gcc", goal="speed")
    assert firmware.image.stack.size_bytes is not None, firmware.image.stack.reason
    report = firmware.run(inputs, engine=engine)
    chosen = {cases[int(layer.name.partition("_")[0].removeprefix("n"))]: layer.kernel for layer in report.layers}
    assert chosen == {case: GENERIC.get(case, CASES[case][1]) for case in cases}
    for case, got, wanted in zip(cases, report.outputs, network.run(inputs), strict=True):
        assert_array_equal(got, wanted, err_msg=case)
