# SPDX-License-Identifier: Apache-2.0
"""Files whose weights the reader unpacks: int4, float16 before DEQUANTIZE, uint8, and those of TFLM_DECODE."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from flatbuffer_tree import Table, one_operator_model, operator, quantization, table, tensor, write

from ferrule.formats import to_tflite
from ferrule.formats.tflite.tflm_decode import TFLM_DECODE
from ferrule.graph import Array, DataType, Graph, LayerType, Quantization, TensorInfo
from ferrule.testing.backends.layer_cases import layer_case

OPTIONS = {
    "CONV_2D": table("Conv2DOptions", StrideW=1, StrideH=1, DilationWFactor=1, DilationHFactor=1),
    "DEPTHWISE_CONV_2D": table(
        "DepthwiseConv2DOptions", StrideW=1, StrideH=1, DepthMultiplier=1, DilationWFactor=1, DilationHFactor=1
    ),
    "FULLY_CONNECTED": table("FullyConnectedOptions"),
}
SHAPES = {
    "CONV_2D": ((1, 5, 5, 3), (5, 3, 3, 3), (1, 5, 5, 5)),
    "DEPTHWISE_CONV_2D": ((1, 5, 5, 3), (1, 3, 3, 3), (1, 5, 5, 3)),
    "FULLY_CONNECTED": ((1, 9), (3, 9), (1, 3)),
}


SHAPE = (4, 3, 5)

WEIGHTED = (LayerType.CONV_2D, LayerType.DEPTHWISE_CONV_2D, LayerType.FULLY_CONNECTED)


def halves(values: Array) -> bytes:
    """Return int4 elements, two in a byte, the first in the low half."""
    flat = np.append(values.reshape(-1), [0] * (values.size % 2)).astype(np.uint8) & 15
    return bytes(flat[0::2] | flat[1::2] << 4)


def with_weights(
    type_: str,
    weights: Array,
    *,
    stored: str = "INT8",
    data: bytes | None = None,
    scales: Sequence[float] | None = None,
) -> bytes:
    """Return an int8 model of one layer whose weights are stored in a type and as bytes.

    Without `scales`, FULLY_CONNECTED has one scale, and the others have one per channel.
    """
    image, _, output = SHAPES[type_]
    if scales is None:
        scales = [0.5] if type_ == "FULLY_CONNECTED" else [0.5 + 0.1 * index for index in range(output[-1])]
    axis = 3 if type_ == "DEPTHWISE_CONV_2D" else 0
    bias = np.arange(output[-1], dtype=np.int32) * 40 - 60
    tensors = [
        tensor("x", image, "INT8", 0, quantization([0.5], [3])),
        tensor("weights", weights.shape, stored, 1, quantization(list(scales), [0] * len(scales), axis)),
        tensor("bias", bias.shape, "INT32", 2, quantization([0.5 * s for s in scales], [0] * len(scales))),
        tensor("y", output, "INT8", 0, quantization([4.0], [-7])),
    ]
    buffers = (weights.tobytes() if data is None else data, bias.tobytes())
    return write(one_operator_model(type_, tensors, [0, 1, 2], [3], OPTIONS[type_], buffers=buffers))


def dequantize_before(model: Table, *pairs: tuple[int, int]) -> bytes:
    """Return the file of a model with a DEQUANTIZE of each pair of tensors (input, output) before its operator."""
    import tflite

    model["OperatorCodes"].append(table("OperatorCode", DeprecatedBuiltinCode=tflite.BuiltinOperator.DEQUANTIZE))
    operators = model["Subgraphs"][0]["Operators"]
    operators[:0] = [operator([source], [target], code=1) for source, target in pairs]
    return write(model)


def header(method: int, *parameters: int, version: int = 1, method_version: int = 1) -> bytes:
    """Return the 16 bytes in front of the tables."""
    return bytes([method, version, 0, 0, method_version, *parameters]).ljust(16, b"\0")


def packed(bits: Sequence[int] | Array) -> bytes:
    """Return bits as bytes, the highest first, in whole words."""
    data = np.packbits(np.array(bits, np.uint8)).tobytes()
    return data.ljust(-(-len(data) // 8) * 8, b"\0")


def bits_of(values: Array, width: int) -> Array:
    return (values.reshape(-1, 1) >> np.arange(width - 1, -1, -1) & 1).reshape(-1)


def decode_model(
    encoded: bytes, ancillary: bytes, type_: str, scale: Table | None = None, *, dense: bool = False
) -> bytes:
    """Return a file that decodes a constant, which is its output or the weights of an int8 FULLY_CONNECTED."""
    import tflite

    shape, activations = ((4, 15) if dense else SHAPE), quantization([0.5], [3])
    tensors = [
        tensor("x", (1, 15), "INT8", 0, activations),
        tensor("encoded", (len(encoded),), "UINT8", 1),
        tensor("ancillary", (len(ancillary),), "UINT8", 2),
        tensor("decoded", shape, type_, 0, scale),
        tensor("y", (1, 4), "INT8", 0, activations),
    ]
    codes = [
        table("OperatorCode", DeprecatedBuiltinCode=32, BuiltinCode=32, CustomCode=TFLM_DECODE, Version=1),
        table("OperatorCode", DeprecatedBuiltinCode=tflite.BuiltinOperator.FULLY_CONNECTED, Version=4),
    ]
    consumers = [operator([0, 3], [4], table("FullyConnectedOptions"), code=1)] if dense else []
    graph = table(
        "SubGraph",
        Tensors=tensors,
        Inputs=np.array([0], np.int32),
        Outputs=np.array([4 if dense else 3], np.int32),
        Operators=[operator([1, 2], [3]), *consumers],
        Name="main",
    )
    buffers = [table("Buffer"), table("Buffer", Data=encoded), table("Buffer", Data=ancillary)]
    return write(table("Model", Version=3, OperatorCodes=codes, Subgraphs=[graph], Buffers=buffers))


def code_words(symbols: Sequence[int]) -> dict[int, str]:
    """Return a Huffman code for the symbols."""
    heap = [(count, number, {symbol: ""}) for number, (symbol, count) in enumerate(sorted(Counter(symbols).items()))]
    heapq.heapify(heap)
    number = len(heap)
    while len(heap) > 1:
        (first, _, left), (second, _, right) = heapq.heappop(heap), heapq.heappop(heap)
        both = {key: "0" + word for key, word in left.items()} | {key: "1" + word for key, word in right.items()}
        heapq.heappush(heap, (first + second, number, both))
        number += 1
    return {symbol: word or "0" for symbol, word in heap[0][2].items()}


def huffman_tables(words: dict[int, str], first: int, wide: bool) -> bytes:
    """Return chained tables; each continuation reads the rest of the longest word behind its prefix."""
    shift, found, mask = (27, 1 << 31, 0xFFFF) if wide else (11, 1 << 15, 0xFF)
    entries = [0] * (1 << first)
    pending: dict[str, dict[int, str]] = {}
    for symbol, word in words.items():
        if len(word) <= first:
            for rest in range(1 << first - len(word)):
                entries[(int(word, 2) << first - len(word)) + rest] = found | len(word) << shift | symbol & mask
        else:
            pending.setdefault(word[:first], {})[symbol] = word[first:]
    for prefix, rests in pending.items():
        width, here = max(map(len, rests.values())), int(prefix, 2)
        entries[here] = width - 1 << shift | len(entries) - here
        start = len(entries)
        entries += [0] * (1 << width)
        for symbol, word in rests.items():
            for rest in range(1 << width - len(word)):
                place = start + (int(word, 2) << width - len(word)) + rest
                entries[place] = found | len(word) << shift | symbol & mask
    return np.array(entries, "<u4" if wide else "<u2").tobytes()


def unsigned(info: TensorInfo) -> TensorInfo:
    """Return a quantised int8 tensor as the uint8 tensor with the same real values, and others as they are."""
    if info.dtype is not DataType.INT8 or info.quantization is None:
        return info
    return replace(info, dtype=DataType.UINT8, quantization=Quantization.of(info.scale, info.zero_point + 128))


def unsigned_model(graph: Graph, weights_zero_point: int) -> bytes:
    """Return the file of a one-layer network in uint8; the weights of products have a zero point of their own."""
    result = Graph("unsigned")
    (layer,) = graph.layers
    for info in graph.inputs:
        result.add_input(unsigned(info))
    for index, name in enumerate(layer.present_inputs):
        stored = graph.tensor(name)
        if stored.data is None:
            continue
        info, data = unsigned(stored.info), stored.data
        if info.dtype is DataType.UINT8:
            data = data.view(np.uint8) ^ np.uint8(128)
            if index == 1 and layer.type in WEIGHTED:
                info = replace(info, quantization=Quantization.of(info.scale, weights_zero_point))
        result.add_constant(info, data)
    result.add_layer(layer, [unsigned(info) for info in graph.output_infos(layer)])
    result.set_outputs(layer.outputs)
    return to_tflite(result)


def models_with_stored_weights() -> list[bytes]:
    """Return small files of each form."""
    random = np.random.default_rng(1)
    found = []
    for type_, (_, shape, _) in SHAPES.items():
        weights = random.integers(-8, 8, shape).astype(np.int8)
        found.append(with_weights(type_, weights, stored="INT4", data=halves(weights)))
    half = random.normal(size=(1, 4)).astype(np.float16)
    tensors = [tensor("x", (1, 4)), tensor("half", (1, 4), "FLOAT16", 1), tensor("f", (1, 4)), tensor("y", (1, 4))]
    layer = one_operator_model("ADD", tensors, [0, 2], [3], table("AddOptions"), buffers=(half.tobytes(),))
    found.append(dequantize_before(layer, (1, 2)))
    for type_ in (*WEIGHTED, LayerType.AVERAGE_POOL_2D, LayerType.ADD, LayerType.SOFTMAX):
        graphs = (layer_case(type_, DataType.INT8, seed) for seed in range(9))
        single = (graph for graph in graphs if not any(_per_channel(each.info) for each in graph.tensors))
        found.append(unsigned_model(next(single), 140))
    scale = quantization([0.5], [0])
    symbols = random.integers(-3, 3, 60)
    words = code_words(symbols.tolist())
    stream = packed([int(bit) for symbol in symbols.tolist() for bit in words[symbol]])
    for ancillary, encoded in (
        (header(0, 4, 16) + bytes(range(16)), packed(random.integers(0, 2, 240))),
        (header(2) + bytes(range(60)), packed(random.integers(0, 2, 60))),
        (header(1, 0x20) + huffman_tables(words, 3, wide=False), stream),
        (header(1, 0x11) + huffman_tables(words, 2, wide=True), stream),
    ):
        found.append(decode_model(encoded, ancillary, "INT8", scale, dense=True))
    return found


def _per_channel(info: TensorInfo) -> bool:
    return info.quantization is not None and info.quantization.per_channel
