# SPDX-License-Identifier: Apache-2.0
"""A chain of layers as stages that compute bands of rows: the rows that each band reads and writes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, groupby

from ferrule._frozen import frozen
from ferrule.backends.optimization_views import PreCompiledDescriptor
from ferrule.graph import DataType, Graph, Layer, LayerType, Rounding, TensorInfo
from ferrule.operators.arithmetic.window import NO_PADDING, Window
from ferrule.operators.spatial.pool2d import Pool2dDescriptor
from ferrule.operators.weighted.conv2d import Conv2dDescriptor
from ferrule.operators.weighted.depthwise_conv2d import DepthwiseConv2dDescriptor

_LARGEST_COUNT = 1 << 15
"""Rows are counted in 16 bits, also beyond the end of a tensor."""
MOST_STAGES = 120
"""Of a chain, whose stages and tensors are numbered in 8 bits."""
_PIXEL = Window(height=1, width=1, stride_h=1, stride_w=1)
"""The window of a layer without one."""


@frozen
class Reach:
    """The rows of a tensor that a stage reads: band b needs `rows` rows from row `b * step - pad` on."""

    tensor: int
    """Index in `Chain.tensors`."""
    rows: int
    step: int
    pad: int

    def first(self, band: int) -> int:
        """Return the first row that a band needs; beyond the tensor's last one if it lies in the padding below."""
        return max(band * self.step - self.pad, 0)

    def end(self, band: int, height: int) -> int:
        """Return the end of the rows that a band needs of a tensor with so many rows.

        It is 0 or negative if the band lies in the padding above.
        """
        return min(band * self.step - self.pad + self.rows, height)


@frozen
class Part:
    """Bands of a stage that are computed alike: by the layer's kernel, on an image of a few rows."""

    input_rows: int
    """0 if the windows lie in the padding: each pixel that they compute is the same."""
    output_rows: int
    """0 if the band only adds to the sums of a global average pool."""
    top: int = 0
    """Rows of padding above the image."""
    bottom: int = 0
    first: bool = True
    """Whether it is the first band; told apart for a global average pool only."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Stage:
    """A layer of a chain."""

    layer: Layer
    inputs: tuple[Reach, ...]
    output: int
    """Index in `Chain.tensors`."""
    rows: int
    """Output rows per band; the last band may write fewer."""
    each: tuple[Part, ...]
    """The part of each band."""
    sums_bytes: int = 0
    """Size of the sums of a global average pool, which it adds up band by band."""

    @property
    def bands(self) -> int:
        """The number of bands."""
        return len(self.each)

    @cached_property
    def equal(self) -> range:
        """The longest run of equal bands."""
        lengths = [len(list(same)) for _, same in groupby(self.each)]
        ends = list(accumulate(lengths))
        return max(map(range, [0, *ends], ends), key=len)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts in the order of the bands: one of all equal bands, and one of each other band."""
        return (*self.each[: self.equal.start + 1], *self.each[self.equal.stop :])


@dataclass(frozen=True, kw_only=True, eq=False)
class Chain:
    """Layers with one input and one output tensor, in an order of execution."""

    graph: Graph
    """The layers, and nothing else."""
    tensors: tuple[TensorInfo, ...]
    """The chain's input first, then the outputs of the stages, in order."""
    stages: tuple[Stage, ...]

    @classmethod
    def of(cls, graph: Graph, rows: int) -> Chain:
        """Return the chain whose stages compute so many rows at once; `refusal` is "" for each of the layers."""
        layers = graph.layers
        tensors = (graph.inputs[0], *(graph.info(layer.outputs[0]) for layer in layers))
        index = {info.name: number for number, info in enumerate(tensors)}
        return cls(graph=graph, tensors=tensors, stages=tuple(_stage(graph, layer, index, rows) for layer in layers))

    @cached_property
    def readers(self) -> tuple[tuple[tuple[int, Reach], ...], ...]:
        """By tensor: the stages that read it, with what they need."""
        found: list[list[tuple[int, Reach]]] = [[] for _ in self.tensors]
        for number, stage in enumerate(self.stages):
            for reach in stage.inputs:
                found[reach.tensor].append((number, reach))
        return tuple(map(tuple, found))

    def last_reader(self, tensor: int) -> int:
        """Return the last stage that reads a tensor; the last stage for the chain's output."""
        return max((number for number, _ in self.readers[tensor]), default=len(self.stages) - 1)

    def height(self, tensor: int) -> int:
        """Return the number of rows of a tensor."""
        return self.tensors[tensor].shape[1]

    def row_bytes(self, tensor: int) -> int:
        """Return the size of a row of a tensor."""
        info = self.tensors[tensor]
        return info.size_bytes // info.shape[1]


@frozen(eq=False)
class Streamed:
    """The payload of the layer that stands for a chain."""

    layers: Graph
    """The chain's layers; see `LayeredPayload`."""
    rows: int
    """Rows that the stages compute at once."""
    fed: bool = False
    """Whether the rows of the input are given one by one."""

    def chain(self) -> Chain:
        """Return the stages."""
        return Chain.of(self.layers, self.rows)


def streamed(layer: Layer) -> Streamed | None:
    """Return the payload of a layer that stands for a chain; None for other layers."""
    payload = layer.descriptor.payload if isinstance(layer.descriptor, PreCompiledDescriptor) else None
    return payload if isinstance(payload, Streamed) else None


def refusal(graph: Graph, layer: Layer) -> str:
    """Return the reason why a layer cannot be a stage of any chain; "" if it can."""
    infos = [graph.info(name) for name in data_inputs(graph, layer)]
    window = window_of(graph, layer) or (_PIXEL if layer.type is LayerType.ADD else None)
    if window is None:
        return f"{layer.type} does not run row by row"
    if layer.type is LayerType.AVERAGE_POOL_2D and layer.rounding is not Rounding.TFLM:
        return f"rows are not averaged by {layer.rounding.phrase}"
    if len(infos) != (2 if layer.type is LayerType.ADD else 1) or not all(map(_is_image, infos)):
        return "its inputs are not one int8 image each"
    if not _is_image(graph.info(layer.outputs[0])):
        return "its output is not one int8 image"
    if layer.type is LayerType.ADD and any(info.shape != graph.info(layer.outputs[0]).shape for info in infos):
        return "an input is broadcast"
    rows = (window.height - 1) * window.dilation_h + window.padding.top + infos[0].shape[1] + window.padding.bottom
    if max(rows, window.stride_h) >= _LARGEST_COUNT:
        return f"its window moves over {infos[0].shape[1]} rows and their padding in steps of {window.stride_h}"
    return ""


def _is_image(info: TensorInfo) -> bool:
    return info.dtype is DataType.INT8 and len(info.shape) == 4 and info.shape[0] == 1


def data_inputs(graph: Graph, layer: Layer) -> tuple[str, ...]:
    """Return the inputs of a layer that are not constants."""
    return tuple(name for name in layer.present_inputs if not graph.tensor(name).is_constant)


def window_of(graph: Graph, layer: Layer) -> Window | None:
    """Return the window of a layer that has one."""
    match layer.descriptor:
        case Conv2dDescriptor() | DepthwiseConv2dDescriptor():
            weights = layer.inputs[1]
            if weights is None or not graph.tensor(weights).is_constant:
                return None
            return layer.descriptor.window(graph.info(weights))
        case Pool2dDescriptor():
            return layer.descriptor.window
        case _:
            return None


def _stage(graph: Graph, layer: Layer, index: dict[str, int], rows: int) -> Stage:
    window = window_of(graph, layer) or _PIXEL
    names = tuple(dict.fromkeys(data_inputs(graph, layer)))
    source, result = graph.info(names[0]), graph.info(layer.outputs[0])
    height, count = source.shape[1], result.shape[1]
    whole = (window.height, window.width) == source.shape[1:3] and window.padding == NO_PADDING
    is_mean = layer.type is LayerType.AVERAGE_POOL_2D and result.shape[1:3] == (1, 1) and whole
    parts = []
    if is_mean:
        written, reach, step = 1, rows, rows
        for start in range(0, height, rows):
            end = min(start + rows, height)
            parts.append(Part(input_rows=end - start, output_rows=int(end == height), first=start == 0))
    else:
        written, taps = min(rows, count), (window.height - 1) * window.dilation_h + 1
        reach, step = (written - 1) * window.stride_h + taps, written * window.stride_h
        for start in range(0, count, written):
            made = min(written, count - start)
            low = start * window.stride_h - window.padding.top
            high = low + (made - 1) * window.stride_h + taps
            inside = min(high, height) - max(low, 0)
            if inside > 0:
                parts.append(Part(input_rows=inside, output_rows=made, top=max(-low, 0), bottom=max(high - height, 0)))
            else:
                parts.append(Part(input_rows=0, output_rows=made))
    return Stage(
        layer=layer,
        inputs=tuple(Reach(tensor=index[name], rows=reach, step=step, pad=window.padding.top) for name in names),
        output=index[layer.outputs[0]],
        rows=written,
        each=tuple(parts),
        sums_bytes=4 * source.shape[3] if is_mean else 0,
    )
