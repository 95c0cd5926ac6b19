# SPDX-License-Identifier: Apache-2.0
"""LAYER_NORMALIZATION in numpy, compared with real numbers, and in C, compared with numpy bit for bit."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any, Literal

import numpy as np
import pytest
from ckernels import NativeNetwork
from hypothesis import given, settings
from hypothesis import strategies as st
from layer_case import tensor
from lowered_call import run_lowered
from merged import merged
from needs import require_module, require_program
from numpy.testing import assert_array_equal

import ferrule
from ferrule.backends.target import CoreFeatures
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, LayerType, Quantization
from ferrule.network import Network
from ferrule.operators.operator import Operands
from ferrule.operators.reductions.layer_normalization import (
    LAYER_NORMALIZATION,
    LayerNormalizationDescriptor,
    normalization_of,
)

IN, OUT = Quantization.of(0.03, 3), Quantization.of(0.04, -7)
NEAR = 1 / 128
"""How far a real result may be from a half, in steps, for its rounding to be another."""


def network_of(
    gamma: Array,
    beta: Array,
    *,
    rows: int = 4,
    epsilon: float = 1e-5,
    source: Quantization = IN,
    output: Quantization = OUT,
) -> Network:
    network = Network("normalised")
    network.add_input(replace(tensor("x", (rows, gamma.size), DataType.INT8), quantization=source))
    network.set_outputs([network.add_layer_normalization_layer("x", gamma, beta, epsilon=epsilon, quantization=output)])
    return network


def real_results(
    stored: Array, gamma: Array, beta: Array, epsilon: float, source: Quantization, output: Quantization
) -> Array:
    """Return the results before they are rounded, in steps of the output."""
    values = stored.astype(np.float64) * source.scales[0]
    centred = values - values.mean(axis=-1, keepdims=True)
    with np.errstate(all="ignore"):
        normal = centred / np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + epsilon)
    normal[(stored == stored[:, :1]).all(axis=-1)] = 0
    real = normal * gamma.astype(np.float64) + beta.astype(np.float64)
    return np.asarray(real / output.scales[0] + output.zero_points[0])


def parameters(depth: int, seed: int = 0) -> tuple[Array, Array]:
    generator = np.random.default_rng(seed)
    return generator.normal(1, 0.4, depth).astype(np.float32), generator.normal(0, 0.4, depth).astype(np.float32)


def rows_of(depth: int, count: int, seed: int = 0) -> Array:
    """Return rows of many widths, of one value, of two values, and with both ends of the range."""
    generator = np.random.default_rng(seed)
    rows = generator.normal(generator.integers(-128, 128, (count, 1)), generator.integers(1, 90, (count, 1)))
    found = np.clip(np.rint(rows + 0 * np.zeros(depth)), -128, 127) if depth == 1 else None
    if found is None:
        found = np.clip(np.rint(generator.normal(rows, 30, (count, depth))), -128, 127)
    found[:4] = np.array([-128, 127, 0, 0])[: len(found), np.newaxis]
    if count > 3:
        found[2], found[3] = generator.integers(0, 2, depth), generator.choice([-128, 127], depth)
    return found.astype(np.int8)


@given(
    depth=st.sampled_from([1, 2, 3, 5, 16, 64, 65, 257, 1024]),
    scale=st.sampled_from([0.03, 0.5, 1e-3, 4.0]),
    zero_point=st.sampled_from([-128, 0, 127]),
    output=st.sampled_from([(0.04, -128), (0.02, 0), (0.1, 127)]),
    epsilon=st.sampled_from([0.0, 1e-12, 1e-5, 0.1]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=60, deadline=None)
def test_results_are_those_of_real_numbers(
    depth: int, scale: float, zero_point: int, output: tuple[float, int], epsilon: float, seed: int
) -> None:
    source, result = Quantization.of(scale, zero_point), Quantization.of(*output)
    gamma, beta = parameters(depth, seed)
    network = network_of(gamma, beta, rows=8, epsilon=epsilon, source=source, output=result)
    stored = rows_of(depth, 8, seed)
    real = real_results(stored, gamma, beta, epsilon, source, result)
    (got,) = network.run([stored])
    beyond = np.abs(got - real.clip(-128, 127))
    assert beyond.max() <= 0.5 + NEAR
    far = np.abs(real - np.floor(real) - 0.5) > NEAR
    assert_array_equal(got[far], np.clip(np.floor(real + 0.5), -128, 127)[far])


def test_rows_of_one_value_become_beta() -> None:
    gamma, beta = parameters(7)
    for epsilon in (0.0, 1e-5):
        (got,) = network_of(gamma, beta, rows=3, epsilon=epsilon).run(
            [np.array([[-128], [0], [127]], np.int8) + np.zeros((3, 7), np.int8)]
        )
        wanted = np.floor(beta / np.float64(np.float32(0.04)) - 7 + 0.5)
        assert_array_equal(got, np.broadcast_to(wanted, (3, 7)))


CASES: dict[str, Network] = {
    f"{depth} values, {name}": network_of(*parameters(depth, depth), rows=6, **choices)
    for depth, (name, choices) in product(
        (1, 2, 4, 7, 17, 64, 130),
        {
            "usual": {},
            "without epsilon": {"epsilon": 0.0},
            "the lowest zero points": {"source": Quantization.of(0.5, -128), "output": Quantization.of(0.02, -128)},
            "the highest zero points": {"source": Quantization.of(1e-3, 127), "output": Quantization.of(0.1, 127)},
        }.items(),
    )
} | {
    "no gamma": network_of(np.ones(20, np.float32), parameters(20)[1]),
    "no beta": network_of(parameters(20)[0], np.zeros(20, np.float32)),
    "a gamma of 0": network_of(np.zeros(20, np.float32), parameters(20)[1]),
    "large gains": network_of(30 * parameters(20)[0], 30 * parameters(20)[1]),
    "a long row": network_of(*parameters(2050), rows=2),
    "a large epsilon": network_of(*parameters(24), epsilon=1e6),
}


def drawn(network: Network, seed: int) -> list[Array]:
    return [rows_of(info.shape[1], info.shape[0], seed + index) for index, info in enumerate(network.inputs)]


@pytest.mark.cc
@pytest.mark.parametrize("case", CASES)
def test_the_plain_c(case: str) -> None:
    for seed in range(3):
        inputs = drawn(CASES[case], seed)
        assert_array_equal(run_lowered(CASES[case], inputs)[0], CASES[case].run(inputs)[0])


@pytest.mark.cc
def test_the_plain_c_without_long_multiplication() -> None:
    network = merged(list(CASES.values()))
    native = NativeNetwork(network, core=CoreFeatures(name="cortex-m0plus"), defines=("FERRULE_SHORT_MULTIPLY=1",))
    inputs = drawn(network, 5)
    for case, got, wanted in zip(CASES, native.run(inputs), network.run(inputs), strict=True):
        assert_array_equal(got, wanted, err_msg=case)


@pytest.mark.emu
@pytest.mark.parametrize(("board", "engine"), [("microbit", "qemu"), ("mps2-an386", "unicorn"), ("mps3-an547", "qemu")])
def test_the_boards(board: str, engine: Literal["unicorn", "qemu"]) -> None:
    require_module("unicorn", "pip install ferrule[run]")
    require_program("arm-none-eabi-gcc", "apt install gcc-arm-none-eabi")
    require_program("qemu-system-arm", "apt-get install qemu-system-arm")
    cases = {case: network for case, network in CASES.items() if board != "microbit" or "long" not in case}
    network = merged(list(cases.values()))
    inputs = drawn(network, 9)
    report = ferrule.compile(network, board=board, toolchain="arm-none-eabi-gcc").run(inputs, engine=engine)
    assert {layer.kernel for layer in report.layers} == {"layer_normalization_s8"}
    for case, got, wanted in zip(cases, report.outputs, network.run(inputs), strict=True):
        assert_array_equal(got, wanted, err_msg=case)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gamma": np.ones(5, np.float32)}, "do not have the length of a row of 'x', 4"),
        ({"beta": np.ones((1, 4), np.float32)}, "do not have the length"),
        ({"gamma": np.array([1, 2, np.nan, 1], np.float32)}, "not finite"),
        ({"beta": np.array([1, 2, np.inf, 1], np.float32)}, "not finite"),
        ({"epsilon": -1e-5}, "negative"),
        ({"epsilon": float("nan")}, "negative, not finite"),
        ({"gamma": np.full(4, 1e6, np.float32)}, "too large for the scale of 'y'"),
        ({"beta": np.full(4, 1e6, np.float32)}, "too large for the scale of 'y'"),
    ],
)
def test_refuses_numbers(changes: dict[str, Any], message: str) -> None:
    given = {"gamma": np.ones(4, np.float32), "beta": np.zeros(4, np.float32), "epsilon": 1e-5} | changes
    ends = tensor("x", (2, 4), DataType.INT8, 0.03, 3), tensor("y", (2, 4), DataType.INT8, 0.04, 0)
    with pytest.raises(UnsupportedError, match=message):
        normalization_of(given["gamma"], given["beta"], given["epsilon"], *ends)


USUAL = normalization_of(
    *parameters(4), 1e-5, tensor("x", (2, 4), DataType.INT8, 0.03), tensor("y", (2, 4), DataType.INT8, 0.04)
)


@pytest.mark.parametrize(
    ("descriptor", "source", "message"),
    [
        (USUAL, ((2, 4), DataType.INT16, 0.03), "int16"),
        (USUAL, ((2, 5), DataType.INT8, 0.03), "there are 4 gains and 4 offsets"),
        (USUAL, ((), DataType.INT8, 0.03), "has shape"),
        (replace(USUAL, offsets=USUAL.offsets[1:]), ((2, 4), DataType.INT8, 0.03), "3 offsets"),
        (replace(USUAL, shift=0), ((2, 4), DataType.INT8, 0.03), "out of range"),
        (replace(USUAL, shift=25), ((2, 4), DataType.INT8, 0.03), "out of range"),
        (replace(USUAL, epsilon=-1), ((2, 4), DataType.INT8, 0.03), "out of range"),
        (
            replace(USUAL, epsilon=(1 << 31) - 1, epsilon_shift=31),
            ((2, 4), DataType.INT8, 0.03),
            "epsilon is too large",
        ),
        (replace(USUAL, epsilon_shift=-1), ((2, 4), DataType.INT8, 0.03), "epsilon is too large"),
        (replace(USUAL, gains=(1 << 31, 0, 0, 0)), ((2, 4), DataType.INT8, 0.03), "32 bits"),
        (replace(USUAL, offsets=((1 << 31) - 2, 0, 0, 0)), ((2, 4), DataType.INT8, 0.03), "32 bits"),
    ],
)
def test_refuses_layers(descriptor: LayerNormalizationDescriptor, source: tuple[Any, ...], message: str) -> None:
    info = tensor("x", *source)
    with pytest.raises(UnsupportedError, match=message):
        LAYER_NORMALIZATION.accept(descriptor, Operands((info,), (replace(info, name="y"),)))


def test_the_largest_numbers_that_are_accepted_do_not_wrap() -> None:
    """All intermediate values of the rule then fit into the widths that the C has."""
    network = network_of(np.full(4, 1e3, np.float32), np.full(4, -1e3, np.float32), rows=6)
    assert network.layers[0].type is LayerType.LAYER_NORMALIZATION
    for seed in range(5):
        stored = rows_of(4, 6, seed)
        real = real_results(stored, np.full(4, 1e3), np.full(4, -1e3), 1e-5, IN, OUT)
        assert_array_equal(network.run([stored])[0], np.clip(np.floor(real + 0.5), -128, 127))
