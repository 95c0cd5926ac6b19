# SPDX-License-Identifier: Apache-2.0
"""The results of Woofles against the project's operators, through registers, a command and DMA."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
import weighted_cases
from elementwise_cases import SCALES, info
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from layer_case import layer_network

from ferrule.backends.device import BackendId
from ferrule.backends.target import default_target
from ferrule.backends.woofles import arithmetic
from ferrule.backends.woofles.backend import Woofles
from ferrule.backends.woofles.command import Command, Operation, ShapeError
from ferrule.backends.woofles.host import Operated
from ferrule.backends.woofles.registers import ErrorCode
from ferrule.backends.woofles.translation import translate_in
from ferrule.errors import FerruleError, UnsupportedError
from ferrule.graph import Array, DataType, LayerType, Quantization
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.operators.elementwise.binary import BinaryDescriptor

TARGET = default_target(BackendId("Woofles"))

RELAXED = settings(max_examples=60)


def on_the_model(network: Network, inputs: list[Array]) -> Array:
    """Run the only layer of a network on the device model."""
    (layer,) = network.layers
    work = translate_in(network, layer)
    device = Operated()
    output = np.full(network.outputs[0].shape, 77, np.int8)
    addresses = [device.place(np.ascontiguousarray(array)) for array in inputs]
    names = {"second": work.weights, "bias": work.bias, "multipliers": work.multipliers, "shifts": work.shifts}
    places = {name: device.place(data) for name, data in names.items() if data is not None}
    if work.weights is None:
        places["second"] = addresses[1]
    device.run(replace(work.command, input=addresses[0], output=device.place(output), **places))
    return output


def check(network: Network, seed: int) -> None:
    """Compare on random data and on the extremes of int8."""
    try:
        network.validate()
    except UnsupportedError:
        assume(False)  # a layer that is never run
    (layer,) = network.layers
    assert Woofles().layer_support().supports(network, layer, TARGET).reason == ""
    random = np.random.default_rng(seed)
    shapes = [each.shape for each in network.inputs]
    for values in (None, [-128], [127], [-128, 127]):
        inputs = [
            random.integers(-128, 128, shape, np.int8)
            if values is None
            else random.choice(values, shape).astype(np.int8)
            for shape in shapes
        ]
        assert on_the_model(network, inputs).tolist() == network.run(inputs)[0].tolist()


@given(weighted_cases.conv2d(DataType.INT8), st.integers(0, 2**32 - 1))
@RELAXED
def test_conv_2d(network: Network, seed: int) -> None:
    check(network, seed)


@given(weighted_cases.fully_connected(DataType.INT8), st.integers(0, 2**32 - 1))
@RELAXED
def test_fully_connected(network: Network, seed: int) -> None:
    check(network, seed)


@st.composite
def elementwise(draw: st.DrawFn) -> Network:
    type_ = draw(st.sampled_from([LayerType.ADD, LayerType.MUL]))
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    points = st.sampled_from([-128, 127, 0, -5, 17])
    quantizations = [Quantization.of(draw(SCALES), draw(points)) for _ in range(3)]
    inputs = [info(f"input_{i}", shape, DataType.INT8, quantizations[i]) for i in range(2)]
    descriptor = BinaryDescriptor(activation=draw(st.sampled_from(Activation)))
    return layer_network(type_, descriptor, inputs, quantizations[2])


@given(elementwise(), st.integers(0, 2**32 - 1))
@RELAXED
def test_add_and_mul(network: Network, seed: int) -> None:
    check(network, seed)


CONV = Command(operation=Operation.CONV_2D)
ADD = Command(operation=Operation.ADD, count=4)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (replace(ADD, count=0), "count is 0"),
        (replace(ADD, count=(1 << 26) + 1), "count is 67108865"),
        (replace(ADD, left_shift=21), "left_shift is 21"),
        (replace(ADD, left_shift=-1), "left_shift is -1"),
        (replace(ADD, input_shift=31), "input_shift is 31"),
        (replace(ADD, second_shift=-32), "second_shift is -32"),
        (replace(ADD, output_shift=99), "output_shift is 99"),
        (replace(ADD, input_zero_point=128), "input_zero_point is 128"),
        (replace(ADD, activation_min=-129), "activation_min is -129"),
        (replace(ADD, activation_min=5, activation_max=4), "activation_min is 5, above activation_max 4"),
        (replace(ADD, padding_top=-1), "padding_top is -1"),
        (replace(ADD, padding_left=1 << 15), "padding_left is 32768"),
        (replace(CONV, stride_height=0), "stride_height is 0"),
        (replace(CONV, dilation_width=-1), "dilation_width is -1"),
        (replace(CONV, kernel_height=(1 << 15) + 1), "kernel_height is 32769"),
        (replace(CONV, input_height=1 << 14, input_width=1 << 14), "a tensor has 268435456 elements"),
        (replace(CONV, kernel_height=1 << 12, output_height=1 << 15), "a convolution gathers 134217728 elements"),
        (replace(CONV, output_channels=0), "output_channels is 0"),
    ],
)
def test_sizes_that_make_no_sense(command: Command, reason: str) -> None:
    with pytest.raises(ShapeError, match=f"^{reason}$"):
        arithmetic.check(command)


@pytest.mark.parametrize("shift", [-32, 31])
def test_shifts_in_memory_are_checked(shift: int) -> None:
    data, shifts = np.zeros(1, np.int8), np.array([shift], np.int32)
    with pytest.raises(ShapeError, match="the shifts are"):
        arithmetic.weighted(CONV, data, data, None, np.array([1 << 30], np.int32), shifts)


WILD = st.one_of(st.integers(-3, 6), st.sampled_from([-128, 127, -(2**31), 2**31 - 1, 1 << 15]))
WILD_MEMBERS = (
    *("count", "input_zero_point", "activation_min", "left_shift", "input_multiplier", "input_shift"),
    *("output_multiplier", "output_shift", "input_height", "input_width", "input_channels"),
    *("output_height", "output_width", "output_channels", "kernel_height", "kernel_width"),
    *("stride_height", "stride_width", "dilation_height", "padding_top", "padding_left"),
)


@given(st.sampled_from(Operation), st.fixed_dictionaries({}, optional=dict.fromkeys(WILD_MEMBERS, WILD)))
@settings(max_examples=300)
def test_no_sealed_command_upsets_the_model(operation: Operation, members: dict[str, int]) -> None:
    """A sealed command either completes or ends with an error of the device."""
    device = Operated()
    places = {name: device.place(np.zeros(4096, np.int8)) for name in ("input", "second", "output", "bias")}
    places |= {name: device.place(np.ones(1024, np.int32)) for name in ("multipliers", "shifts")}
    with suppress(FerruleError):
        device.run(Command(operation=operation, **{**members, **places}))
    codes = {ErrorCode.SHAPE, ErrorCode.BUS} if device.model.field("STATUS", "ERROR") else {ErrorCode.NONE}
    assert device.model.field("STATUS", "CODE") in codes
    assert not device.model.field("STATUS", "BUSY")
