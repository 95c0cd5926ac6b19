# SPDX-License-Identifier: Apache-2.0
"""Chains of layers that run row by row: the same bits as the reference, in less memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from bands import Sketch, chained
from ckernels import NativeNetwork
from needs import require_module, require_program
from numpy.testing import assert_array_equal

import ferrule
from ferrule import DataType, Network, Quantization
from ferrule.backends.cpu_acc.backend import CpuAcc
from ferrule.backends.cpu_acc.streaming import selection
from ferrule.backends.cpu_acc.streaming.chain import Chain, refusal
from ferrule.backends.cpu_acc.streaming.timeline import timeline
from ferrule.backends.optimization_views import OptimizationViews
from ferrule.backends.target import Face, Goal, default_target
from ferrule.errors import FerruleError
from ferrule.firmware import emit
from ferrule.graph import Array, Graph, SubgraphView
from ferrule.operators.arithmetic.window import Padding


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


def doubled() -> Network:
    """Return a chain that adds a tensor to itself."""
    sketch = Sketch.of(3, 5, 4, 3)
    first = sketch.conv("x", 4)
    return sketch.finish(sketch.conv(sketch.add(first, first), 2))


def samples(network: Network) -> list[list[Array]]:
    random = np.random.default_rng(7)
    return [[random.integers(-128, 128, info.shape, dtype=np.int8) for info in network.inputs] for _ in range(2)]


@pytest.mark.cc
@pytest.mark.parametrize(("make", "rows"), [(depthwise_blocks, 1), (residual, 2), (windows, 3), (doubled, 2)])
def test_a_chain_computes_the_same_bits(make: Callable[[], Network], rows: int) -> None:
    network = make()
    graph = chained(network, network.layers, rows)
    native = NativeNetwork(network, graph=graph)
    assert native.kernels == ["stream"]
    for inputs in samples(network):
        assert_array_equal(native.run(inputs), network.run(inputs))


@pytest.mark.cc
def test_a_chain_in_the_middle_overlaps_its_input() -> None:
    network = depthwise_blocks()
    graph = chained(network, network.layers[1:4], 1)
    native = NativeNetwork(network, graph=graph)
    stated = {overlap.output for overlap in native.artifact.storage.overlaps}
    assert network.layers[3].outputs[0] in stated
    for inputs in samples(network):
        assert_array_equal(native.run(inputs), network.run(inputs))


@pytest.mark.cc
def test_rows_of_the_input_are_taken_as_they_arrive() -> None:
    network = residual()
    graph = chained(network, network.layers[:5], 1, fed=True)
    native = NativeNetwork(network, graph=graph)
    for (image,) in samples(network):
        expected = network.run([image])
        for pieces in ([(0, 9)], [(row, 1) for row in range(9)], [(0, 4), (0, 2), (2, 0), (2, 6), (8, 1)]):
            statuses, outputs = native.run_rows(image, pieces)
            assert set(statuses) == {0}
            assert_array_equal(outputs, expected)
        assert_array_equal(native.run([image]), expected)
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
        assert sum(part.output_rows for part in stage.each) == chain.height(stage.output)
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


def answer(graph: Graph, names: Sequence[str]) -> OptimizationViews:
    target = replace(default_target(CpuAcc.id, Face.FIRMWARE), goal=Goal.MEMORY)
    return CpuAcc().optimize_subgraph(SubgraphView.of(graph, names), target)


def test_chains_are_chosen_where_they_lower_the_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    sketch = Sketch.of(4, 24, 24, 2)
    at = sketch.conv(sketch.conv("x", 16), 16)
    network = sketch.finish(sketch.conv(at, 4, strides=(2, 2)))
    names = tuple(layer.name for layer in network.layers)
    (chain,) = answer(network, names).substitutions
    assert chain.replaced.names == names
    small = Sketch.of(5, 4, 4, 2)
    network = small.finish(small.conv(small.conv("x", 2), 2))
    left = network.layers[1].name
    graph = chained(network, network.layers[:1], 1)
    monkeypatch.setattr(selection, "timeline", None)  # no chain is examined that cannot lower the peak
    views = answer(graph, [left])
    assert views.substitutions == ()
    assert [view.names for view in views.untouched] == [(left,)]


def test_an_input_that_cannot_arrive_row_by_row_is_refused() -> None:
    sketch = Sketch.of(1, 8)
    network = sketch.finish(sketch.network.add_softmax_layer("x"))
    with pytest.raises(FerruleError, match="layer 'softmax_0' cannot take the input 'x' row by row: SOFTMAX does not"):
        emit(network, ferrule.Job(goal="memory", input_rows=True))
    for make in (lambda sketch: sketch.conv("x", 4), lambda sketch: sketch.depthwise("x")):
        whole = Sketch.of(7, 8, 8, 2)
        network = whole.finish(make(whole))
        reason = "no chain of layers can take the input 'x' row by row and leave an output"
        with pytest.raises(FerruleError, match=reason):
            emit(network, ferrule.Job(goal="memory", input_rows=True))
    with pytest.raises(FerruleError, match="input_rows with goal 'balanced' and arena 'separate', expected the goal"):
        ferrule.Job(input_rows=True)


def test_layers_that_cannot_run_row_by_row_are_refused() -> None:
    sketch = Sketch.of(8, 4, 4, 2)
    network, (info,) = sketch.network, sketch.network.inputs
    network.add_input(replace(info, name="batch", shape=(2, 4, 4, 2)))
    network.add_input(replace(info, name="wide", dtype=DataType.INT16, quantization=Quantization.of(0.1)))
    for name in ("x", "batch", "wide"):
        network.add_max_pool2d_layer(name, (2, 2))
    sketch.add("x", network.add_constant_array("ones", np.ones(info.shape, np.int8), info.quantization))
    network.add_reshape_layer("x", (1, 32))
    images = "its inputs are not one int8 image each"
    reasons = [refusal(network, layer) for layer in network.layers]
    assert reasons == ["", images, images, images, "RESHAPE does not run row by row"]


def padded_on_all_sides() -> Network:
    """Return layers some of whose bands lie in the padding, above, below, or both."""
    sketch = Sketch.of(9, 9, 6, 2)
    at = sketch.conv("x", 5, kernel=(1, 1), padding=Padding(top=2, bottom=1, left=1))
    at = sketch.depthwise(at, kernel=(2, 3), padding=Padding(top=3, bottom=4, right=5))
    at = sketch.conv(at, 4, kernel=(3, 3), strides=(3, 1), padding=Padding(top=1, bottom=8), dilations=(2, 1))
    return sketch.finish(sketch.network.add_max_pool2d_layer(at, (2, 2), strides=(1, 1), padding="same"))


@pytest.mark.cc
@pytest.mark.parametrize("fed", [False, True])
def test_bands_that_lie_in_the_padding_read_no_row(*, fed: bool) -> None:
    network = padded_on_all_sides()
    parts = [stage.parts for stage in Chain.of(network, 1).stages]
    assert [some[0].input_rows == 0 for some in parts] == [True, True, False, False]
    assert [some[-1].input_rows == 0 for some in parts] == [True, True, True, False]
    graph = chained(network, network.layers[: 3 if fed else 4], 1, fed=fed)
    native = NativeNetwork(network, graph=graph)
    for (image,) in samples(network):
        assert_array_equal(native.run([image]), network.run([image]))
        if fed:
            statuses, outputs = native.run_rows(image, [(row, 1) for row in range(9)])
            assert set(statuses) == {0}
            assert_array_equal(outputs, network.run([image]))


def test_rows_beyond_16_bits_are_refused() -> None:
    """The order of the bands counts rows, padding included, and steps in 16 bits."""
    for height, strides, padding in (
        (40_000, (1, 1), Padding()),
        (8, (1, 1), Padding(top=40_000)),
        (8, (1, 1), Padding(bottom=40_000)),
        (8, (40_000, 1), Padding()),
    ):
        sketch = Sketch.of(1, height, 1, 1)
        network = sketch.finish(sketch.conv("x", 1, kernel=(1, 1), strides=strides, padding=padding))
        assert refusal(network, network.layers[0]).startswith(f"its window moves over {height} rows"), padding
    sketch = Sketch.of(1, 40_000, 1, 1)
    network = sketch.finish(sketch.add("x", "x"))
    assert refusal(network, network.layers[0])
    sketch = Sketch.of(1, 30_000, 1, 1)
    network = sketch.finish(sketch.add("x", sketch.conv("x", 1, kernel=(1, 1))))
    assert [refusal(network, layer) for layer in network.layers] == ["", ""]


@pytest.mark.emu
@pytest.mark.parametrize("price", [{}, {"flash": 0}], ids=["usual", "of-free-flash"])
def test_the_goal_memory_streams_on_a_board(price: dict[str, float]) -> None:
    """With free flash, the convolution in the middle is Winograd's, whose scratch is aligned to 16."""
    require_module("unicorn", "pip install ferrule[run]")
    require_program("arm-none-eabi-gcc", "apt install gcc-arm-none-eabi")
    sketch = Sketch.of(6, 24, 24, 2)
    at = sketch.conv(sketch.conv("x", 16), 16)
    network = sketch.finish(sketch.conv(at, 4, kernel=(1, 1), strides=(2, 2)))
    job = ferrule.Job(board="mps2-an386", toolchain="arm-none-eabi-gcc", goal="memory", price=price)
    firmware = ferrule.compile(network, job)
    report = firmware.run(engine="unicorn")
    assert report.verdict == "exact"
    assert [layer.kernel for layer in report.layers] == ["stream"]
    plain = 24 * 24 * (2 + 16)
    assert report.memory.arena.activation_bytes < plain / 2
