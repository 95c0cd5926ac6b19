# SPDX-License-Identifier: Apache-2.0
"""The int8 pools and means: in plain C on the host, in assembler on emulated cores, and the division by a product."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from layer_case import layer_network
from lowered_call import lower, run_lowered
from merged import merged, sample_outputs
from needs import require_module
from numpy.testing import assert_array_equal
from oracle import edge_inputs

import ferrule
from ferrule.backends.target import CoreFeatures
from ferrule.graph import Array, DataType, LayerType, Quantization, Shape, TensorInfo
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.reductions.reduce import ReduceDescriptor
from ferrule.operators.spatial.pool2d import Pool2dDescriptor
from ferrule.testing.backends.comparison import random_inputs

CORE = CoreFeatures(name="cortex-m4", dsp=True)
ACROSS = Padding(top=1, bottom=1, left=1, right=1)
MOST_PIXELS = 185
"""Of an average without a division."""


def pool(type_: LayerType, image: Shape, zero_point: int, descriptor: Pool2dDescriptor) -> Network:
    quantization = Quantization.of(0.05, zero_point)
    data = TensorInfo("data", image, DataType.INT8, quantization=quantization)
    return layer_network(type_, descriptor, [data], quantization, {})


def window(height: int, width: int, stride: int = 1, padding: Padding = ACROSS, **options: object) -> Pool2dDescriptor:
    return Pool2dDescriptor(
        pool_h=height,
        pool_w=width,
        stride_h=stride,
        stride_w=stride,
        padding=padding,
        **options,  # type: ignore[arg-type]
    )


NO = Padding()
RELU6 = Activation.RELU6
WINDOWS: dict[str, tuple[Shape, int, Pool2dDescriptor]] = {
    "2x2": ((1, 6, 8, 16), 11, window(2, 2, 2, NO)),
    "2x2 over the border": ((2, 3, 5, 17), 0, window(2, 2)),
    "2x2 of a column": ((1, 7, 1, 3), -128, window(2, 1, 2, NO)),
    "3x3": ((1, 7, 9, 36), 11, window(3, 3)),
    "3x3 with limits": ((1, 5, 6, 24), -20, window(3, 3, 2, activation=RELU6)),
    "windows that reach over the border": ((2, 5, 4, 9), -100, window(3, 3, 2, activation=Activation.RELU)),
    "2x2 of two columns": ((1, 6, 2, 20), 3, window(2, 2, 2, NO)),
    "3x3 of the whole image": ((2, 3, 3, 19), 3, window(3, 3, 1, NO, activation=RELU6)),
    "wide, few channels": ((1, 4, 20, 2), 127, window(1, 7, 3, Padding(left=6, right=6))),
    "high": ((1, 9, 5, 12), 5, window(5, 2, 1, NO, activation=RELU6)),
    "one channel": ((1, 4, 4, 1), 1, window(2, 2, 2, NO)),
    "one pixel": ((1, 3, 3, 18), 1, window(1, 1, 2, NO)),
    "whole rows": ((1, 6, 5, 7), 1, window(3, 5, 1, NO)),
    "the whole image": ((2, 7, 7, 22), 1, window(7, 7, 1, NO)),
    "all of 185 pixels": ((1, 37, 5, 16), 1, window(37, 5, 1, NO)),
    "all of 300 pixels": ((1, 20, 15, 21), 1, window(20, 15, 1, NO, activation=RELU6)),
    "300 pixels, cut": ((1, 20, 15, 18), 1, window(20, 15, 9, Padding(top=9, bottom=9, left=14, right=14))),
    "a part of 420 pixels": ((1, 15, 30, 5), 1, window(14, 30, 1, NO)),
    "a row of 600 pixels": ((1, 2, 601, 5), 1, window(1, 600, 1, NO)),
}
NETWORKS = {
    f"{kind}, {case}": pool(type_, *parts)
    for case, parts in WINDOWS.items()
    for kind, type_ in [("average", LayerType.AVERAGE_POOL_2D), ("max", LayerType.MAX_POOL_2D)]
}


def reduction(shape: Shape, *axes: int, type_: LayerType = LayerType.MEAN) -> Network:
    data = TensorInfo("data", shape, DataType.INT8, quantization=Quantization.of(0.05, -9))
    output = Quantization.of(0.04 if type_ is LayerType.MEAN else 2.0, 3)
    return layer_network(type_, ReduceDescriptor(axes=axes), [data], output, {})


NETWORKS |= {
    f"reduce, {name}": network
    for name, network in {
        "height and width": reduction((2, 9, 7, 16), 1, 2),
        "300 pixels of 21 channels": reduction((1, 20, 15, 21), 1, 2),
        "one channel": reduction((1, 20, 15, 1), 1, 2),
        "the last axis": reduction((3, 5, 33), 2),
        "a row of 1100": reduction((1, 1100), 1),
        "rows of 1100": reduction((2, 3, 1100), 0, 2),
        "height": reduction((2, 6, 3, 5), 1),
        "width and batch": reduction((3, 2, 300, 7), 0, 2),
        "height and channels": reduction((2, 4, 5, 6), 1, 3),
        "a sum": reduction((2, 4, 5, 9), 1, type_=LayerType.SUM),
        "a sum of all": reduction((2, 4, 5, 9), 0, 1, 2, 3, type_=LayerType.SUM),
    }.items()
}


@pytest.mark.cc
@pytest.mark.parametrize("case", NETWORKS)
def test_the_plain_c(case: str) -> None:
    network = NETWORKS[case]
    kind = case.split(",", maxsplit=1)[0]
    assert lower(network, CORE).kernel == ("reduce_s8" if kind == "reduce" else f"{kind}_pool2d_s8")
    for inputs in [random_inputs(network), *edge_inputs(network).values()]:
        assert_array_equal(run_lowered(network, inputs, CORE)[0], network.run(inputs)[0])


@pytest.mark.parametrize(
    ("case", "functions"),
    [
        ("2x2", "2x2"),
        ("2x2 over the border", "2x2 any"),
        ("2x2 of two columns", "2x2"),
        ("3x3 with limits", "3x3 any"),
        ("3x3 of the whole image", "3x3"),
        ("high", "any"),
        ("all of 185 pixels", "any"),
        ("300 pixels, cut", "many"),
        ("all of 300 pixels", "many"),
    ],
)
def test_a_model_names_the_functions_that_it_needs(case: str, functions: str) -> None:
    for kind in "average", "max":
        table = str(lower(NETWORKS[f"{kind}, {case}"], CORE).declarations)
        named = {size for size in ("2x2", "3x3", "any", "many") if f"ferrule_{kind}_pool2d_{size}_s8" in table}
        assert named == {size if kind == "average" or size != "many" else "any" for size in functions.split()}


@pytest.mark.emu
@pytest.mark.parametrize(("board", "engine"), [("mps2-an386", "unicorn"), ("mps3-an547", "qemu")])
def test_the_assembler(board: str, engine: str, qemu: str, arm_gcc: str) -> None:
    require_module("unicorn", "pip install ferrule[run]")
    runs = [[random_inputs(each), *edge_inputs(each).values()] for each in NETWORKS.values()]
    samples = [[array for some in chosen for array in some] for chosen in zip(*runs, strict=True)]
    network = merged(list(NETWORKS.values()))
    firmware = ferrule.compile(network, board=board, toolchain="arm-none-eabi-gcc", goal="speed")
    assert firmware.image.stack.size_bytes is not None, firmware.image.stack.reason
    for inputs, outputs in zip(samples, sample_outputs(firmware, samples, engine), strict=True):
        for case, got, wanted in zip(NETWORKS, outputs, network.run(inputs), strict=True):
            assert_array_equal(got, wanted, err_msg=case)


def by_high_product(sums: Array, count: int) -> Array:
    """Return the means as with MVE and in plain C."""
    shift = next(shift for shift in range(16) if count <= 2 << shift)
    factor = ((65536 << shift) + count - 1) // count
    shifted = sums + 128 * count + count // 2 + ((sums >> 31) & -(1 - count % 2))
    assert factor < 1 << 16
    assert shifted.min() >= 0
    assert shifted.max() < 1 << 16
    return (shifted * factor >> 16 + shift) - 128


def by_smlaw(sums: Array, count: int) -> Array:
    """Return the means as with the DSP extension."""
    factor = (2**32 - 1) // count + 2
    assert factor < 1 << 31
    return ((sums * factor >> 16) + 0x8000) >> 16


@pytest.mark.parametrize(("divide", "least"), [(by_high_product, 2), (by_smlaw, 3)])
def test_the_division_is_exact(divide: Callable[[Array, int], Array], least: int) -> None:
    """All sums of up to the most pixels."""
    for count in range(least, MOST_PIXELS + 1):
        sums = np.arange(-128 * count, 127 * count + 1)
        wanted = np.sign(sums) * ((np.abs(sums) + count // 2) // count)
        assert_array_equal(divide(sums, count), wanted, err_msg=str(count))


def test_the_division_is_not_exact_for_more_pixels() -> None:
    sums = np.arange(-128 * 186, 127 * 186 + 1)
    assert (by_high_product(sums, 186) != np.sign(sums) * ((np.abs(sums) + 93) // 186)).any()
