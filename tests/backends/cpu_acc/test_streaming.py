# SPDX-License-Identifier: Apache-2.0
"""Chains of layers that run row by row: the same bits as the reference, in less memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pytest
from ckernels import NativeNetwork
from needs import require_module, require_program

import ferrule
from ferrule import DataType, Network, Quantization, TensorInfo
from ferrule.backends.cpu_acc.backend import CpuAcc
from ferrule.backends.cpu_acc.streaming.chain import Chain, refusal
from ferrule.backends.cpu_acc.streaming.selection import substitution
from ferrule.backends.cpu_acc.streaming.timeline import timeline
from ferrule.backends.optimization_views import OptimizationViews
from ferrule.backends.target import Face, Goal, default_target
from ferrule.errors import FerruleError
from ferrule.firmware import emit
from ferrule.graph import Array, Graph, SubgraphView
from ferrule.operators.activation import Activation
from ferrule.optimizer.substitution import Answer, apply_answers

WEIGHTS = Quantization.of(0.02, 0)


@dataclass
class Sketch:
    """A network under construction with random weights."""

    network: Network
    random: np.random.Generator

    @classmethod
    def of(cls, seed: int, *shape: int) -> Sketch:
        network = Network(f"sketch_{seed}")
        info = TensorInfo(name="x", shape=(1, *shape), dtype=DataType.INT8, quantization=Quantization.of(0.05, 3))
        network.add_input(info)
        return cls(network, np.random.default_rng(seed))

    def quantization(self) -> Quantization:
        return Quantization.of(float(self.random.uniform(0.1, 0.3)), int(self.random.integers(-128, 20)))

    def conv(
        self,
        source: str,
        channels: int,
        kernel: tuple[int, int] = (3, 3),
        strides: tuple[int, int] = (1, 1),
        padding: Literal["same", "valid"] = "same",
        dilations: tuple[int, int] = (1, 1),
    ) -> str:
        inside = self.network.info(source).shape[3]
        return self.network.add_conv2d_layer(
            source,
            self.random.integers(-127, 128, (channels, *kernel, inside), dtype=np.int8),
            self.random.integers(-900, 900, channels, dtype=np.int32),
            strides=strides,
            dilations=dilations,
            padding=padding,
            activation=Activation.RELU,
            weights_quantization=WEIGHTS,
            quantization=self.quantization(),
        )

    def depthwise(self, source: str, strides: tuple[int, int] = (1, 1), kernel: tuple[int, int] = (3, 3)) -> str:
        channels = self.network.info(source).shape[3]
        return self.network.add_depthwise_conv2d_layer(
            source,
            self.random.integers(-127, 128, (1, *kernel, channels), dtype=np.int8),
            self.random.integers(-900, 900, channels, dtype=np.int32),
            strides=strides,
            padding="same",
            weights_quantization=WEIGHTS,
            quantization=self.quantization(),
        )

    def add(self, left: str, right: str) -> str:
        return self.network.add_add_layer(left, right, quantization=self.quantization())

    def finish(self, output: str) -> Network:
        self.network.set_outputs([output])
        return self.network


def depthwise_blocks() -> Network:
    sketch = Sketch.of(1, 11, 7, 3)
    at = sketch.conv("x", 8, kernel=(4, 3), strides=(2, 1))
    at = sketch.depthwise(at)
    at = sketch.conv(at, 6, kernel=(1, 1))
    at = sketch.depthwise(at, strides=(2, 2))
    height, width = sketch.network.info(at).shape[1:3]
    return sketch.finish(sketch.network.add_average_pool2d_layer(at, (height, width)))


def residual() -> Network:
    sketch = Sketch.of(2, 9, 6, 4)
    start = sketch.conv("x", 4)
    wide = sketch.conv(start, 8, kernel=(1, 1))
    narrow = sketch.conv(sketch.depthwise(wide), 4, kernel=(1, 1))
    first = sketch.add(start, narrow)
    left = sketch.conv(sketch.conv(first, 4, strides=(2, 2)), 4)
    right = sketch.conv(first, 4, kernel=(1, 1), strides=(2, 2))
    return sketch.finish(sketch.add(left, right))


def windows() -> Network:
    sketch = Sketch.of(3, 17, 5, 2)
    at = sketch.conv("x", 4, kernel=(3, 1), dilations=(2, 1))
    at = sketch.network.add_max_pool2d_layer(at, (3, 2), strides=(2, 1), padding="same")
    at = sketch.conv(at, 5, kernel=(4, 2), padding="valid")
    at = sketch.depthwise(at, kernel=(5, 1))
    at = sketch.network.add_average_pool2d_layer(at, (2, 2), strides=(1, 1), padding="same")
    return sketch.finish(at)


def chained(network: Network, names: Sequence[str], rows: int, *, fed: bool = False) -> Graph:
    """Return the network with the named layers as a chain."""
    view = SubgraphView.of(network, names)
    views = OptimizationViews(substitutions=(substitution(view, rows, fed=fed),))
    return apply_answers(network, [Answer(backend=CpuAcc.id, offered=view, views=views)]).graph


def samples(network: Network) -> list[list[Array]]:
    random = np.random.default_rng(7)
    return [[random.integers(-128, 128, info.shape, dtype=np.int8) for info in network.inputs] for _ in range(2)]


@pytest.mark.cc
@pytest.mark.parametrize(("make", "rows"), [(depthwise_blocks, 1), (residual, 2), (windows, 3)])
def test_a_chain_computes_the_same_bits(make: Callable[[], Network], rows: int) -> None:
    network = make()
    graph = chained(network, [layer.name for layer in network.layers], rows)
    native = NativeNetwork(network, graph=graph)
    assert native.kernels == ["stream"]
    for inputs in samples(network):
        np.testing.assert_array_equal(native.run(inputs), network.run(inputs))


@pytest.mark.cc
def test_a_chain_in_the_middle_overlaps_its_input() -> None:
    network = depthwise_blocks()
    graph = chained(network, [layer.name for layer in network.layers[1:4]], 1)
    native = NativeNetwork(network, graph=graph)
    stated = {overlap.output for overlap in native.artifact.storage.overlaps}
    assert network.layers[3].outputs[0] in stated
    for inputs in samples(network):
        np.testing.assert_array_equal(native.run(inputs), network.run(inputs))


@pytest.mark.cc
def test_rows_of_the_input_are_taken_as_they_arrive() -> None:
    network = residual()
    graph = chained(network, [layer.name for layer in network.layers[:5]], 1, fed=True)
    native = NativeNetwork(network, graph=graph)
    for (image,) in samples(network):
        expected = network.run([image])
        for pieces in ([(0, 9)], [(row, 1) for row in range(9)], [(0, 4), (0, 2), (2, 0), (2, 6), (8, 1)]):
            statuses, outputs = native.run_rows(image, pieces)
            assert set(statuses) == {0}
            np.testing.assert_array_equal(outputs, expected)
        np.testing.assert_array_equal(native.run([image]), expected)
    argument, state = -1, -7
    assert native.run_rows(image, [])[0] == [state], "no inference has begun"
    assert native.run_rows(image, [(0, 8)])[0] == [0, state], "a row is missing"
    assert native.run_rows(image, [(1, 2)])[0] == [state, state]
    assert native.run_rows(image, [(0, 2), (3, 1)])[0] == [0, state, state], "row 2 was lost"
    assert native.run_rows(image, [(0, 9), (9, 1)])[0][:2] == [0, argument]


def test_bands_cover_the_rows_once_and_know_their_borders() -> None:
    network = windows()
    chain = Chain.of(network, 2)
    for stage in chain.stages:
        rows = sum(stage.written(band, chain.height(stage.output)) for band in range(stage.bands))
        assert rows == chain.height(stage.output)
        assert stage.top + stage.middle <= stage.bands
    dilated = chain.stages[0].parts
    assert (dilated[0].top, dilated[0].input_rows) == (2, 4)
    assert (dilated[-1].bottom, dilated[-1].output_rows) == (2, 1)


def test_line_buffers_hold_the_rows_of_a_window_and_share_their_bytes() -> None:
    network = depthwise_blocks()
    times = timeline(Chain.of(network, 1))
    heights = [None if buffer is None else buffer.rows for buffer in times.buffers]
    assert heights == [None, 3, 1, 3, 1, None]
    sizes = sum(buffer.size_bytes for buffer in (*times.buffers, *times.sums) if buffer is not None)
    assert times.lines_bytes < sizes, "no two buffers share their bytes"
    pushed = timeline(Chain.of(network, 1), pushed=True)
    assert pushed.buffers[0] is not None
    assert pushed.buffers[0].rows == 4


def test_the_skipped_rows_of_a_residual_wait_for_their_sum() -> None:
    chain = Chain.of(residual(), 1)
    times = timeline(chain)
    first = times.buffers[1]
    assert first is not None
    assert first.rows == 2, "the sum reads a row when the depthwise layer has the next one"


def answer(network: Network) -> OptimizationViews:
    target = replace(default_target(CpuAcc.id, Face.FIRMWARE), goal=Goal.MEMORY)
    return CpuAcc().optimize_subgraph(SubgraphView.of(network, [layer.name for layer in network.layers]), target)


def test_chains_are_chosen_where_they_lower_the_peak() -> None:
    sketch = Sketch.of(4, 24, 24, 2)
    at = sketch.conv(sketch.conv("x", 16), 16)
    network = sketch.finish(sketch.conv(at, 4, strides=(2, 2)))
    views = answer(network)
    (chain,) = views.substitutions
    assert chain.replaced.names == tuple(layer.name for layer in network.layers)
    small = Sketch.of(5, 4, 4, 2)
    network = small.finish(small.conv("x", 2))
    views = answer(network)
    assert views.substitutions == ()
    assert [view.names for view in views.untouched] == [(network.layers[0].name,)]


def test_an_input_that_cannot_arrive_row_by_row_is_refused() -> None:
    network = Network("no_image")
    info = TensorInfo(name="x", shape=(1, 8), dtype=DataType.INT8, quantization=Quantization.of(0.1, 0))
    network.add_input(info)
    network.set_outputs([network.add_softmax_layer("x")])
    with pytest.raises(FerruleError, match="layer 'softmax_0' cannot take the input 'x' row by row: SOFTMAX does not"):
        emit(network, ferrule.Job(goal="memory", input_rows=True))
    whole = Sketch.of(7, 8, 8, 2)
    network = whole.finish(whole.conv("x", 4))
    with pytest.raises(FerruleError, match="no chain of layers can take the input 'x' row by row and leave an output"):
        emit(network, ferrule.Job(goal="memory", input_rows=True))
    with pytest.raises(FerruleError, match="input_rows with goal 'balanced' and arena 'separate', expected the goal"):
        ferrule.Job(input_rows=True)


def test_layers_that_cannot_run_row_by_row_are_refused() -> None:
    network = Network("no_image")
    info = TensorInfo(name="x", shape=(1, 4, 4, 2), dtype=DataType.INT8, quantization=Quantization.of(0.1, 0))
    network.add_input(info)
    network.add_reshape_layer("x", (1, 32))
    network.add_max_pool2d_layer("x", (2, 2))
    reshape, pool = network.layers
    assert refusal(network, reshape) == "RESHAPE does not run row by row"
    assert refusal(network, pool) == ""


@pytest.mark.emu
def test_the_goal_memory_streams_on_a_board() -> None:
    require_module("unicorn", "pip install ferrule[run]")
    require_program("arm-none-eabi-gcc", "apt install gcc-arm-none-eabi")
    sketch = Sketch.of(6, 24, 24, 2)
    at = sketch.conv(sketch.conv("x", 16), 16)
    network = sketch.finish(sketch.conv(at, 4, kernel=(1, 1), strides=(2, 2)))
    job = ferrule.Job(board="mps2-an386", toolchain="arm-none-eabi-gcc", goal="memory")
    firmware = ferrule.compile(network, job)
    report = firmware.run(engine="unicorn")
    assert report.verdict == "exact"
    assert [layer.kernel for layer in report.layers] == ["stream"]
    plain = 24 * 24 * (2 + 16)
    assert report.memory.ram.activations < plain / 2
