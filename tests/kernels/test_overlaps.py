# SPDX-License-Identifier: Apache-2.0
"""Overlaps that lowerings state: the C runs at the least distance, and the distances follow from the order of steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import product
from typing import Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from lowered_call import lower, lowering_of, run_overlapping
from merged import merged
from needs import require_program
from numpy.testing import assert_array_equal
from recurrent_case import with_given_states
from shape_cases import draw
from weighted_cases import FAMILY, within_bound

import ferrule
from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.lowering.kernels.block import CONV_2D_BLOCK
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Row, choose
from ferrule.backends.cpu_acc.lowering.overlap import Reads, pixel_overlaps, plane_overlaps
from ferrule.backends.cpu_acc.lowering.table import ROWS, rows_of
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.backends.target import CoreFeatures
from ferrule.graph import Array, DataType, Quantization, Shape, TensorInfo
from ferrule.memory.request import Overlap
from ferrule.network import Network
from ferrule.operators.arithmetic.window import Window
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor
from ferrule.testing.backends.comparison import random_inputs


def shifts(overlap: Overlap, network: Network) -> Iterator[int]:
    """Yield (offset of the input - offset of the output) at the least distances, and in place if that is allowed."""
    info = network.info(overlap.input)
    step = int(np.lcm(overlap.step_bytes, info.dtype.size_bytes))
    if overlap.distance_bytes is not None:
        yield -(-overlap.distance_bytes // step) * step
    if overlap.distance_bytes is not None and overlap.distance_bytes <= 0:
        yield 0


def kernels_of(network: Network) -> Iterator[LoweredOp]:
    """Yield the layer lowered to each kernel that can run it, whatever the core and the goal."""
    (layer,) = network.layers
    if layer.type not in ROWS:
        yield lower(network)
        return
    for _, context, candidate in candidates_of(network, None):
        yield candidate.lowered(context)


def candidates_of(network: Network, core: CoreFeatures | None) -> Iterator[tuple[Row, LoweringContext, Candidate]]:
    """Yield the candidates of each row of the table for the layer, whatever instructions the row needs."""
    context, rows = rows_of(lowering_of(network, core))
    for row in rows:
        found = row.candidate(context)
        for each in [found] if isinstance(found, Candidate) else [] if isinstance(found, str) else found:
            yield row, context, each


def check(network: Network, kernels: Iterable[LoweredOp]) -> None:
    """Compare the C at each of the least distances with numpy."""
    inputs = random_inputs(network)
    results = dict(zip((info.name for info in network.outputs), network.run(inputs), strict=True))
    for op in kernels:
        for overlap in op.overlaps:
            wanted = results[overlap.output]
            for shift in shifts(overlap, network):
                got = run_overlapping(network, inputs, overlap, shift, op)
                if wanted.dtype == np.float32:
                    assert within_bound(network, inputs, got), (op.kernel, overlap, shift)
                else:
                    assert_array_equal(got, wanted, err_msg=f"{op.kernel}: {overlap} at {shift}")


@pytest.mark.cc
@pytest.mark.parametrize("family", FAMILY)
@settings(max_examples=15, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate])
@given(data=st.data())
def test_a_kernel_may_run_at_its_least_distance(family: str, data: st.DataObject) -> None:
    network = data.draw(FAMILY[family](DataType.INT8))
    check(network, [lower(network)])


@pytest.mark.nightly
@pytest.mark.cc
@pytest.mark.parametrize("family", FAMILY)
@pytest.mark.parametrize("dtype", [DataType.INT8, DataType.INT16, DataType.FLOAT32])
@settings(max_examples=400, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate])
@given(data=st.data())
def test_each_kernel_may_run_at_its_least_distance(family: str, dtype: DataType, data: st.DataObject) -> None:
    network = data.draw(FAMILY[family](dtype))
    check(network, kernels_of(network))


DRAWN = 700
"""Random layers, as campaigns of shapes draw them, among which each row of the tables has candidates."""
CORES = {
    "cortex-m4": None,
    "cortex-m4f": CoreFeatures(name="cortex-m4", fpu=True, dsp=True),
    "cortex-m0plus": CoreFeatures(name="cortex-m0plus"),
}


@cache
def drawn_networks() -> tuple[Network, ...]:
    """Return layers whose operator has a table; the states of recurrent ones are inputs and outputs."""
    networks = (draw(5, index).network() for index in range(DRAWN))
    return tuple(
        with_given_states(network) if network.states else network
        for network in networks
        if network.layers[0].type in ROWS
    )


def test_each_row_of_the_tables_has_candidates_among_the_layers_that_are_drawn() -> None:
    """So that a new kernel is among those whose overlaps are run below."""
    known, found = set(), set()
    for network, core in product(drawn_networks(), CORES.values()):
        context, rows = rows_of(lowering_of(network, core))
        known |= {row.kernel for row in rows}
        found |= {row.kernel for row in rows if not isinstance(row.candidate(context), str)}
    assert known - found == set()
    assert len(known) > 60


@pytest.mark.nightly
@pytest.mark.cc
def test_each_row_that_states_an_overlap_runs_at_its_least_distance() -> None:
    """The kernels follow from the tables; each runs a layer of each type of data, and may write its output only."""
    seen: set[tuple[str, str]] = set()
    for network, core in product(drawn_networks(), CORES.values()):
        for row, context, candidate in candidates_of(network, core):
            if candidate.overlaps() and (row.kernel, candidate.kernel) not in seen:
                seen.add((row.kernel, candidate.kernel))
                check(network, [candidate.lowered(context)])
    assert len(seen) > 60


RANDOM = np.random.default_rng(3)
IN, OUT = Quantization.of(2.0**-5, 3), Quantization.of(2.0**-1, -128)
WEIGHTS = Quantization.of(2.0**-5)


def weights_of(*shape: int) -> Array:
    return RANDOM.integers(-127, 128, shape, np.int8)


def layer_of(name: str, shape: Shape, add: Callable[[Network], str]) -> Network:
    """Return an int8 network of one layer, which `add` adds; its input is `x`."""
    network = Network(name)
    network.add_input(TensorInfo("x", shape, DataType.INT8, quantization=IN))
    network.set_outputs([add(network)])
    return network


def conv2d_of(name: str, shape: Shape, kernel: Shape, strides: tuple[int, int] = (1, 1)) -> Network:
    weights = weights_of(*kernel)
    return layer_of(
        name,
        shape,
        lambda network: network.add_conv2d_layer(
            "x", weights, strides=strides, padding="same", weights_quantization=WEIGHTS, quantization=OUT
        ),
    )


def depthwise_of(name: str, shape: Shape, strides: tuple[int, int] = (1, 1)) -> Network:
    weights = weights_of(1, 3, 3, shape[3])
    return layer_of(
        name,
        shape,
        lambda network: network.add_depthwise_conv2d_layer(
            "x", weights, strides=strides, padding="same", weights_quantization=WEIGHTS, quantization=OUT
        ),
    )


SINGLE = [
    conv2d_of("square", (1, 9, 7, 8), (8, 3, 3, 8)),
    conv2d_of("wider", (1, 9, 5, 8), (24, 1, 1, 8)),
    conv2d_of("first", (1, 20, 18, 3), (8, 3, 3, 3), (2, 2)),
    depthwise_of("rows", (1, 6, 13, 8)),
    depthwise_of("halves", (1, 12, 14, 16), (2, 2)),
    layer_of("average", (1, 9, 9, 8), lambda network: network.add_average_pool2d_layer("x", (2, 2), strides=(1, 1))),
]
"""Networks of one layer, whose input and output overlap as far as they can."""


@pytest.mark.emu
def test_single_layers_run_on_a_board_at_their_least_distance() -> None:
    require_program("arm-none-eabi-gcc", "apt-get install gcc-arm-none-eabi")
    for firmware in ferrule.compile(SINGLE, board="mps2-an386", toolchain="arm-none-eabi-gcc"):
        storage = firmware.artifact.storage
        overlap = only(storage.overlaps)
        size = {name: firmware.network.info(name).size_bytes for name in (overlap.input, overlap.output)}
        assert storage.plan.region(storage.regions[0].name).activation_peak_bytes < sum(size.values())
        report = firmware.run(random_inputs(firmware.network))
        assert report.verdict is ferrule.Verdict.EXACT, firmware.network.name


@pytest.mark.cc
@pytest.mark.parametrize("name", ["square", "wider", "rows"])
def test_a_convolution_fails_a_pixel_below_its_least_distance(name: str) -> None:
    """The distances of the convolutions that set the peaks of models are not larger than the kernels need."""
    (network,) = (each for each in SINGLE if each.name == name)
    inputs = random_inputs(network)
    (wanted,) = network.run(inputs)
    op = choose(lowering_of(network), CONV_2D_BLOCK[:1]) if name == "square" else lower(network)  # not by lines
    overlap = only(op.overlaps)
    assert overlap.distance_bytes is not None
    shift = overlap.distance_bytes - max(overlap.step_bytes, network.inputs[0].shape[3])
    assert not np.array_equal(run_overlapping(network, inputs, overlap, shift, op), wanted)


def normalised_of(name: str, shape: Shape) -> Network:
    gamma, beta = RANDOM.normal(1, 0.4, shape[-1]), RANDOM.normal(0, 0.4, shape[-1])
    return layer_of(
        name,
        shape,
        lambda network: network.add_layer_normalization_layer("x", gamma, beta, quantization=Quantization.of(0.03, -7)),
    )


def sum_of(name: str, shape: Shape, other: Shape, larger: int) -> Network:
    """Return the difference of two inputs, of which one has the larger scale, that no table or two factors make."""
    network = Network(name)
    scales = (0.06, 0.05) if larger == 0 else (0.05, 0.06)
    for each, extents, scale in zip("xy", (shape, other), scales, strict=True):
        network.add_input(TensorInfo(each, extents, DataType.INT8, quantization=Quantization.of(scale, -7)))
    network.set_outputs([network.add_sub_layer("x", "y", quantization=Quantization.of(0.06, 5))])
    return network


IN_PLACE = [
    *(
        normalised_of(f"rows {index}", shape)
        for index, shape in enumerate([(5, 1), (6, 4), (3, 17), (2, 67), (1, 130)])
    ),
    *(sum_of(f"sum {larger}", (3, 67), (3, 67), larger) for larger in (0, 1)),
    sum_of("line", (5, 19), (1, 19), 0),
    sum_of("lines", (1, 19), (5, 19), 1),
    sum_of("columns", (5, 19), (5, 1), 1),
]
"""Networks of one layer, whose output may lie where an input is."""
LAYERS_IN_PLACE = ("layer_normalization_s8", "rescaled_sum_s8")


@pytest.mark.cc
@pytest.mark.parametrize("network", IN_PLACE, ids=lambda network: str(network.name))
def test_layers_of_rows_and_sums_of_any_scales_run_at_their_least_distance(network: Network) -> None:
    kernels = [op for op in kernels_of(network) if op.kernel in LAYERS_IN_PLACE]
    assert [len(op.overlaps) for op in kernels] >= [1]
    check(network, kernels)


@pytest.mark.emu
@pytest.mark.parametrize(("board", "engine"), [("mps2-an386", "unicorn"), ("mps3-an547", "qemu")])
def test_layers_of_rows_and_sums_of_any_scales_run_in_place_on_a_board(
    board: str, engine: Literal["unicorn", "qemu"]
) -> None:
    """Each stands between tensors that are used later, which would show what it writes outside of its output."""
    require_program("arm-none-eabi-gcc", "apt-get install gcc-arm-none-eabi")
    require_program("qemu-system-arm", "apt-get install qemu-system-arm")
    network = merged(IN_PLACE)
    firmware = ferrule.compile(network, board=board, toolchain="arm-none-eabi-gcc")
    storage = firmware.artifact.storage
    peak = storage.plan.region(storage.regions[0].name).activation_peak_bytes
    assert peak < sum(info.size_bytes for info in (*network.inputs, *network.outputs)) * 2 // 3
    report = firmware.run(random_inputs(network), engine=engine)
    assert {layer.kernel for layer in report.layers} == set(LAYERS_IN_PLACE)
    assert report.verdict is ferrule.Verdict.EXACT


@frozen
class Step:
    """The elements that a kernel reads, and those that it writes after that, as indices in their tensors."""

    reads: Sequence[int] = ()
    writes: Sequence[int] = ()


def is_safe(steps: Sequence[Step], shift: int) -> bool:
    """Return whether no element is overwritten before it is read, with the input `shift` elements above the output."""
    lost: set[int] = set()
    for step in steps:
        if lost.intersection(step.reads):
            return False
        lost.update(place - shift for place in step.writes)
    return True


@frozen
class Order:
    """The order of a kernel's steps over a network's only layer."""

    network: Network
    window: Window

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return self.network.inputs[0].shape, self.network.outputs[0].shape

    def under(self, batch: int, row: int, column: int) -> list[int]:
        """Return the pixels of the image under the window of one output pixel."""
        (_, height, width, _), _ = self.shapes
        found = []
        for i in range(self.window.height):
            for j in range(self.window.width):
                y = row * self.window.stride_h - self.window.padding.top + i * self.window.dilation_h
                x = column * self.window.stride_w - self.window.padding.left + j * self.window.dilation_w
                if 0 <= y < height and 0 <= x < width:
                    found.append((batch * height + y) * width + x)
        return found

    def of_tiles(self, rows: int, columns: int) -> list[Step]:
        """Return the steps of a kernel that reads the windows of a tile, then writes its pixels."""
        (_, _, _, input_c), (batches, height, width, output_c) = self.shapes
        steps = []
        for b in range(batches):
            for top in range(0, height, rows):
                for left in range(0, width, columns):
                    tile = [
                        (b, y, x)
                        for y in range(top, min(top + rows, height))
                        for x in range(left, min(left + columns, width))
                    ]
                    steps.append(self._step(tile, input_c, output_c))
        return steps

    def of_runs(self, pixels: int) -> list[Step]:
        """Return the steps of a kernel that reads the windows of consecutive pixels, then writes them."""
        (_, _, _, input_c), (batches, height, width, output_c) = self.shapes
        order = [(b, y, x) for b in range(batches) for y in range(height) for x in range(width)]
        return [self._step(order[n : n + pixels], input_c, output_c) for n in range(0, len(order), pixels)]

    def _step(self, tile: Sequence[tuple[int, int, int]], input_c: int, output_c: int) -> Step:
        _, (_, height, width, _) = self.shapes
        reads = [pixel * input_c + c for place in tile for pixel in self.under(*place) for c in range(input_c)]
        writes = [((b * height + y) * width + x) * output_c + c for b, y, x in tile for c in range(output_c)]
        return Step(reads=reads, writes=writes)

    def of_elements(self, *, whole: bool) -> list[Step]:
        """Return the steps of a kernel that reads the window, or one channel of it, for each element that it writes."""
        (_, _, _, input_c), (batches, height, width, output_c) = self.shapes
        steps = []
        for b, y, x in np.ndindex(batches, height, width):
            for c in range(output_c):
                channels = range(input_c) if whole else [c * input_c // output_c]
                reads = [pixel * input_c + each for pixel in self.under(b, y, x) for each in channels]
                steps.append(Step(reads=reads, writes=[((b * height + y) * width + x) * output_c + c]))
        return steps

    def of_planes(self, *, transposed: bool) -> list[Step]:
        """Return the steps of a kernel that copies the lines of one channel ahead of the line that it writes."""
        (_, input_h, input_w, channels), (batches, height, width, _) = self.shapes
        window = self.window
        steps = []
        for b, c, line in np.ndindex(batches, channels, width if transposed else height):
            top = line * (window.stride_w if transposed else window.stride_h)
            top -= window.padding.left if transposed else window.padding.top
            reach = (window.width - 1) * window.dilation_w if transposed else (window.height - 1) * window.dilation_h
            before = top - (window.stride_w if transposed else window.stride_h) + reach + 1 if line else top
            lines = [n for n in range(max(before, top, 0), top + reach + 1) if n < (input_w if transposed else input_h)]
            if transposed:
                reads = [(b * input_h + y) * input_w + x for y in range(input_h) for x in lines]
                writes = [(b * height + y) * width + line for y in range(height)]
            else:
                reads = [(b * input_h + y) * input_w + x for y in lines for x in range(input_w)]
                writes = [(b * height + line) * width + x for x in range(width)]
            steps.append(Step(reads=[n * channels + c for n in reads], writes=[n * channels + c for n in writes]))
        return steps


def only(overlaps: Sequence[Overlap]) -> Overlap:
    (found,) = overlaps
    return found


conv2d = FAMILY["conv2d"](DataType.INT8)
depthwise = FAMILY["depthwise_conv2d"](DataType.INT8)


def order_of(network: Network) -> Order:
    (layer,) = network.layers
    assert isinstance(layer.descriptor, Conv2dDescriptor | DepthwiseConv2dDescriptor)
    return Order(network=network, window=layer.descriptor.window(network.info(layer.inputs[1] or "")))


@settings(max_examples=40)
@given(conv2d, st.integers(1, 3), st.none() | st.tuples(st.integers(1, 3), st.integers(1, 3)))
def test_the_distances_of_pixels_are_the_least(network: Network, pixels: int, tile: tuple[int, int] | None) -> None:
    order, context = order_of(network), lowering_of(network)
    image, output = network.inputs[0], network.outputs[0]
    found = only(pixel_overlaps(context, order.window, image, output, pixels=pixels, tile=tile))
    steps = order.of_runs(pixels) if tile is None else order.of_tiles(*tile)
    least = found.distance_bytes
    assert least is not None
    assert is_safe(steps, least)
    assert is_safe(steps, least + 1)
    assert least == -image.size_bytes or not is_safe(steps, least - 1)


@settings(max_examples=25)
@given(conv2d)
def test_a_window_that_is_read_for_each_element_stays(network: Network) -> None:
    order, context = order_of(network), lowering_of(network)
    found = only(pixel_overlaps(context, order.window, network.inputs[0], network.outputs[0], reads=Reads.PER_ELEMENT))
    assert is_safe(order.of_elements(whole=True), found.distance_bytes or 0)


@settings(max_examples=40)
@given(depthwise)
def test_a_channel_of_a_window_stays_until_it_is_read(network: Network) -> None:
    order, context = order_of(network), lowering_of(network)
    found = only(pixel_overlaps(context, order.window, network.inputs[0], network.outputs[0], reads=Reads.PER_CHANNEL))
    assert is_safe(order.of_elements(whole=False), found.distance_bytes or 0)


@settings(max_examples=40)
@given(depthwise.filter(lambda network: network.inputs[0].shape[3] == network.outputs[0].shape[3]), st.booleans())
def test_planes_that_keep_the_distance_of_lines_are_safe(network: Network, transposed: bool) -> None:
    order, context = order_of(network), lowering_of(network)
    steps = order.of_planes(transposed=transposed)
    overlaps = plane_overlaps(context, order.window, transposed=transposed)
    for overlap in overlaps:
        assert overlap.distance_bytes is not None
        first = -(-overlap.distance_bytes // overlap.step_bytes)
        for multiple in range(first, first + 3):
            assert is_safe(steps, multiple * overlap.step_bytes), (overlap, multiple)
    if not overlaps and order.window.stride_w == 1 and network.inputs[0].shape[0] == 1:
        assert not is_safe(steps, 0)
