# SPDX-License-Identifier: Apache-2.0
"""Layers in bands of rows compute the bits of the whole image's kernel, whatever lies in the padding.

All small heights, windows, strides, dilations, paddings and bands are run natively; widths, channels, values and the
kernel among those that can run a layer alternate. The gate runs a part of them.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from bands import Program, Sketch, results
from numpy.testing import assert_array_equal
from shape_campaign import Turns, taking
from shape_cases import Case

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.streaming.chain import Chain
from ferrule.backends.target import CoreFeatures
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, LayerType
from ferrule.network import Network
from ferrule.operators.arithmetic.window import Padding

CORES = (
    CoreFeatures(name="cortex-m0plus"),
    CoreFeatures(name="cortex-m3"),
    CoreFeatures(name="cortex-m4", dsp=True),
    CoreFeatures(name="cortex-m55", fpu=True, dsp=True, mve=True),
)
CONVOLUTIONS = (LayerType.CONV_2D, LayerType.DEPTHWISE_CONV_2D)
POOLS = (LayerType.AVERAGE_POOL_2D, LayerType.MAX_POOL_2D)
HEIGHTS, WINDOWS, STRIDES, DILATIONS, ROWS = range(1, 6), range(1, 4), range(1, 4), range(1, 3), (1, 2, 4)
MOST_PADDING = 4
COLUMNS = (
    {"width": 5, "kernel_w": 1},
    {"width": 4, "kernel_w": 3, "left": 1, "right": 1},
    {"width": 3, "kernel_w": 3, "stride_w": 2, "left": 4},
    {"width": 3, "kernel_w": 1, "left": 2, "right": 2},
    {"width": 6, "kernel_w": 3, "dilation_w": 2, "left": 2, "right": 5},
    {"width": 1, "kernel_w": 2, "right": 3},
    {"width": 4, "kernel_w": 3, "right": 4},
    {"width": 8, "kernel_w": 3, "stride_w": 2, "right": 1},
)
POOL_COLUMNS = (
    {"width": 5, "kernel_w": 1},
    {"width": 4, "kernel_w": 3, "left": 2, "right": 2},
    {"width": 7, "kernel_w": 2, "stride_w": 3, "right": 1},
)
CHANNELS = ((3, 5), (4, 8), (8, 4), (1, 2), (16, 6))
TURNS = 4
"""Kernels that take turns where a layer has several."""
GATE = 40
"""Layers of each type that the gate runs."""
PARTS = 16
"""Tests into which all layers of a type, and all chains, are divided."""
GATE_CHAINS = 16


@frozen
class Banded:
    """A layer and the way in which it is run."""

    case: Case
    rows: int
    turn: int
    core: CoreFeatures


def banded(type_: LayerType) -> Iterator[Banded]:
    """Yield all layers of a type, in a fixed order."""
    pool = type_ in POOLS
    number = 0
    for height, window, stride, dilation in product(HEIGHTS, WINDOWS, STRIDES, DILATIONS):
        taps = (window - 1) * dilation + 1
        if dilation > 1 and (pool or window == 1):
            continue
        most = window - 1 if pool else MOST_PADDING
        for top, bottom, rows in product(range(most + 1), range(most + 1), ROWS):
            count = (height + top + bottom - taps) // stride + 1
            if count < 1 or (rows > 1 and rows > count):
                continue
            numbers = random.Random(f"{type_} {number}")
            channels, outputs = numbers.choice(CHANNELS)
            if type_ is LayerType.DEPTHWISE_CONV_2D:
                outputs = numbers.choice((1, 1, 1, 2))
            case = Case(
                type=type_,
                dtype=DataType.INT8,
                seed=numbers.randrange(1 << 32),
                height=height,
                kernel_h=window,
                stride_h=stride,
                dilation_h=dilation,
                top=top,
                bottom=bottom,
                channels=channels,
                outputs=outputs,
                weights=numbers.choice(("any", "any", "small", "rows")),
                **numbers.choice(POOL_COLUMNS if pool else COLUMNS),
            )
            yield Banded(case=case, rows=rows, turn=numbers.randrange(TURNS), core=CORES[number % len(CORES)])
            number += 1


def check(each: Banded) -> str:
    """Compare the whole image's kernel and all ways to run its bands with numpy, and return the kernel."""
    network = each.case.network()
    (image,) = each.case.arrays(network)
    wanted = network.run([image])[0]
    with taking(Turns(turn=each.turn)):
        whole = Program(network, each.core)
        assert_array_equal(whole.run(image), wanted, err_msg=f"whole: {each}")
        for way, got in results(network, image, each.rows, each.core):
            assert_array_equal(got, wanted, err_msg=f"{way}: {each}")
    return whole.op.kernel


def check_all(some: list[Banded]) -> Counter[str]:
    """Check layers, and return how often each kernel computed a whole image."""
    return Counter(map(check, some))


@pytest.mark.cc
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("type_", [*CONVOLUTIONS, *POOLS])
def test_some_layers_in_bands(type_: LayerType, part: int) -> None:
    whole = list(banded(type_))
    some = whole[:: len(whole) // GATE | 1]
    assert {each.core for each in some} == set(CORES)
    assert check_all(some[part::4])


@pytest.mark.cc
@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("type_", [*CONVOLUTIONS, *POOLS])
def test_all_layers_in_bands(type_: LayerType, part: int) -> None:
    assert check_all(list(banded(type_))[part::PARTS])


def draw_chain(seed: int) -> Network:
    """Return a chain of random layers, each with a padding of its own."""
    dice = random.Random(f"chain {seed}")
    while True:
        sketch = Sketch.of(dice.randrange(1 << 32), dice.randint(1, 9), dice.randint(1, 5), dice.choice((1, 3, 4)))
        tensors = ["x"]
        try:
            for _ in range(dice.randint(2, 5)):
                tensors.append(draw_layer(dice, sketch, tensors))
        except UnsupportedError:
            continue
        if all(sketch.network.consumers(name) for name in tensors[:-1]):
            return sketch.finish(tensors[-1])


def draw_layer(dice: random.Random, sketch: Sketch, tensors: list[str]) -> str:
    """Add a layer that reads the last tensor; two of its shape may be added up."""
    source, network = tensors[-1], sketch.network
    window = dice.randint(1, 3), dice.randint(1, 3)
    strides = dice.choice((1, 1, 2, 3)), dice.choice((1, 1, 2))
    kind = dice.choice(("conv", "conv", "depthwise", "depthwise", "max", "average", "add"))
    if kind == "add":
        return sketch.add(source, dice.choice([each for each in tensors if same_shape(network, each, source)]))
    most = [size - 1 for size in window] if kind in {"max", "average"} else [4, 4]
    vertical, horizontal = ([dice.choice((0, dice.randint(0, limit))) for _ in range(2)] for limit in most)
    padding = Padding(top=vertical[0], bottom=vertical[1], left=horizontal[0], right=horizontal[1])
    match kind:
        case "conv":
            dilations = dice.choice((1, 1, 2)), 1
            channels = dice.choice((2, 4, 5))
            return sketch.conv(source, channels, kernel=window, strides=strides, padding=padding, dilations=dilations)
        case "depthwise":
            return sketch.depthwise(source, strides=strides, kernel=window, padding=padding)
        case "max":
            return network.add_max_pool2d_layer(source, window, strides=strides, padding=padding)
        case _:
            return network.add_average_pool2d_layer(source, window, strides=strides, padding=padding)


def same_shape(network: Network, one: str, other: str) -> bool:
    return network.info(one).shape == network.info(other).shape


def check_chain(seed: int) -> None:
    core = CORES[seed // 4 % len(CORES)]  # each core has all numbers of rows
    network = draw_chain(seed)
    (info,) = network.inputs
    image = np.random.default_rng(seed).integers(-128, 128, info.shape, dtype=np.int8)
    wanted = network.run([image])[0]
    rows = 1 + seed % 4
    with taking(Turns(turn=seed % TURNS)):
        for way, got in results(network, image, rows, core):
            assert_array_equal(got, wanted, err_msg=f"{core.name}, {way}, {rows} rows: chain {seed}")


@pytest.mark.cc
def test_some_chains_of_padded_layers() -> None:
    for seed in range(GATE_CHAINS):
        check_chain(seed)


@pytest.mark.cc
@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
def test_many_chains_of_padded_layers(part: int) -> None:
    for seed in range(part, 4000, PARTS):
        check_chain(seed)


def test_chains_have_bands_in_the_padding() -> None:
    """The slice of the gate has bands without input above and below the image, in stages that read line buffers."""
    found: Counter[str] = Counter()
    for seed in range(GATE_CHAINS):
        chain = Chain.of(draw_chain(seed), 1 + seed % 4)
        for stage in chain.stages:
            empty = [part.input_rows == 0 for part in stage.parts]
            found.update({"above": empty[0], "below": empty[-1], "stages": 1})
            found["inside"] += any(empty) and stage.inputs[0].tensor > 0
    assert min(found[each] for each in ("above", "below", "inside")) > 1, found
