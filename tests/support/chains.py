# SPDX-License-Identifier: Apache-2.0
"""Graphs with tensors and layers but no real arithmetic, and the MLPerf Tiny models in this form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ferrule.graph import DataType, Descriptor, Graph, Layer, LayerType, TensorInfo


def info(name: str, size_bytes: int) -> TensorInfo:
    """Return an int8 tensor of `size_bytes` bytes."""
    return TensorInfo(name, (size_bytes,), DataType.INT8)


def build(
    inputs: Sequence[tuple[str, int]],
    layers: Iterable[tuple[Sequence[str], Sequence[tuple[str, int]]]],
    outputs: Sequence[str],
    *,
    views: Iterable[str] = (),
) -> Graph:
    """Return a graph of layers l0, l1... of these inputs and sized outputs; `views` names outputs made by a RESHAPE."""
    graph = Graph("chain")
    renamed = set(views)
    for name, size in inputs:
        graph.add_input(info(name, size))
    for number, (reads, writes) in enumerate(layers):
        names = tuple(name for name, _ in writes)
        layer = Layer(
            f"l{number}",
            LayerType.RESHAPE if renamed.intersection(names) else LayerType.ADD,
            Descriptor(),
            inputs=tuple(reads),
            outputs=names,
        )
        graph.add_layer(layer, [info(name, size) for name, size in writes])
    graph.set_outputs(outputs)
    return graph


def chain(sizes: Sequence[int], *, views: Iterable[int] = ()) -> Graph:
    """Return a chain of layers over tensors t0, t1... of these sizes; `views` numbers the tensors made by a RESHAPE."""
    layers = [([f"t{n - 1}"], [(f"t{n}", size)]) for n, size in enumerate(sizes) if n]
    return build([("t0", sizes[0])], layers, [f"t{len(sizes) - 1}"], views=[f"t{n}" for n in views])


def _vww_sizes() -> list[int]:
    sizes = [96 * 96 * 3, 48 * 48 * 8]
    for side, depthwise, pointwise in (
        [(48, 8, 16), (24, 16, 32), (24, 32, 32), (12, 32, 64), (12, 64, 64), (6, 64, 128)]
        + [(6, 128, 128)] * 5
        + [(3, 128, 256), (3, 256, 256)]
    ):
        sizes += [side * side * depthwise, side * side * pointwise]
    return [*sizes, 256, 256, 2, 2]


def _resnet() -> Graph:
    big, middle, small = 32 * 32 * 16, 16 * 16 * 32, 8 * 8 * 64
    return build(
        [("image", 32 * 32 * 3)],
        [
            (["image"], [("a", big)]),
            (["a"], [("b", big)]),
            (["b"], [("c", big)]),
            (["a", "c"], [("d", big)]),
            (["d"], [("e", middle)]),
            (["e"], [("f", middle)]),
            (["d"], [("g", middle)]),
            (["g", "f"], [("h", middle)]),
            (["h"], [("i", small)]),
            (["i"], [("j", small)]),
            (["h"], [("k", small)]),
            (["k", "j"], [("m", small)]),
            (["m"], [("pooled", 64)]),
            (["pooled"], [("flat", 64)]),
            (["flat"], [("dense", 10)]),
            (["dense"], [("softmax", 10)]),
        ],
        ["softmax"],
        views=["flat"],
    )


def mlperf_tiny() -> dict[str, tuple[Graph, int]]:
    """Return, by file name, an int8 model's graph and its proven smallest arena without overlap, in bytes."""
    vww = _vww_sizes()
    return {
        "ad01_int8.tflite": (chain([640, 128, 128, 128, 128, 8, 128, 128, 128, 128, 640]), 768),
        "kws_ref_model.tflite": (chain([490, *[8_000] * 9, 64, 64, 12, 12], views=[11]), 16_000),
        "pretrainedResnet_quant.tflite": (_resnet(), 49_152),
        "vww_96_int8.tflite": (chain(vww, views=[len(vww) - 3]), 55_296),
    }
