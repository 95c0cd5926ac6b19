# SPDX-License-Identifier: Apache-2.0
"""Random graphs of one layer of any type, element type and rule of rounding, from the samples of the operators."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from ferrule.errors import FerruleError
from ferrule.graph import DataType, Descriptor, Graph, Layer, LayerType, Quantization, Rounding, Shape, TensorInfo
from ferrule.operators.sample import LayerSample
from ferrule.operators.table import OPERATORS
from ferrule.testing.backends.comparison import random_values

_ALL_CHOICES = 4
_WEIGHTS_ZERO_POINT = 45
LAYER_TYPES: tuple[LayerType, ...] = tuple(type_ for type_, row in OPERATORS.items() if row.sample is not None)
"""The layer types that a backend can support; the runtime itself runs DEBUG, MEM_COPY and MEM_IMPORT."""


def layer_case(type_: LayerType, dtype: DataType, seed: int, rounding: Rounding = Rounding.TFLM) -> Graph:
    """Return a graph of one layer, 'layer', the same for the same arguments.

    The first input has the element type `dtype`. If the operator does not support that type, or the rule, the graph is
    invalid, and no backend may support the layer. With other rules than TFLM's, all scales are powers of two, so that
    many results lie halfway between stored values, where the rules differ.
    """
    sample = LayerSample(dice=random.Random(f"{type_} {dtype} {seed}"), dtype=dtype)  # noqa: S311 - no secret
    draw = OPERATORS[type_].sample
    assert draw is not None, f"{type_} has no sample"
    descriptor = draw(sample)
    if rounding is not Rounding.TFLM:
        sample.inputs = [replace(info, quantization=_by_powers_of_two(info.quantization)) for info in sample.inputs]
        sample.output = _by_powers_of_two(sample.output)
    rule = "" if rounding is Rounding.TFLM else f"_{rounding.name.lower()}"
    graph = Graph(f"{type_.lower()}_{dtype}_{seed}{rule}")
    for index, info in enumerate(sample.inputs):
        if index in sample.constants:
            graph.add_constant(info, sample.constants[index])
        else:
            graph.add_input(info)
    present = iter(sample.inputs)
    count = len(sample.inputs) + len(sample.absent)
    positioned = [None if index in sample.absent else next(present) for index in range(count)]
    shapes = _shapes(type_, descriptor, positioned)
    first = (sample.output_type or dtype, sample.output)
    kinds = [first, *(sample.further or [first] * (len(shapes) - 1))]
    outputs = [
        TensorInfo(f"output_{i}", shape, kind, quantization=quantization)
        for i, (shape, (kind, quantization)) in enumerate(zip(shapes, kinds, strict=False))
    ]
    layer = Layer(
        "layer",
        type_,
        descriptor,
        inputs=tuple(None if info is None else info.name for info in positioned),
        outputs=tuple(info.name for info in outputs),
        rounding=rounding,
    )
    graph.add_layer(layer, outputs)
    graph.set_outputs(layer.outputs)
    return graph


def _by_powers_of_two(quantization: Quantization | None) -> Quantization | None:
    if quantization is None:
        return None
    return replace(quantization, scales=tuple(2.0 ** round(math.log2(scale)) for scale in quantization.scales))


def add_case(graph: Graph, case: Graph, infos: Mapping[str, TensorInfo], name: str = "layer") -> tuple[str, ...]:
    """Add the inputs, the constants and the layer of a graph of `layer_case`; return the layer's outputs.

    `infos` describes tensors anew, by their name in the case; those that the graph already has are used as they are.
    """
    new = {tensor.info.name: infos.get(tensor.info.name, tensor.info) for tensor in case.tensors}
    for tensor in case.tensors:
        info = new[tensor.info.name]
        if graph.has_tensor(info.name):
            continue
        if tensor.data is not None:
            graph.add_constant(info, tensor.data)
        elif tensor.info in case.inputs:
            graph.add_input(info)
    (layer,) = case.layers
    outputs = [new[each] for each in layer.outputs]
    inputs = tuple(None if each is None else new[each].name for each in layer.inputs)
    return graph.add_layer(
        replace(layer, name=name, inputs=inputs, outputs=tuple(info.name for info in outputs)), outputs
    )


def renamed(case: Graph, prefix: str) -> dict[str, TensorInfo]:
    """Return the description of each tensor of a case, by name, with a prefix before its name."""
    return {each.info.name: replace(each.info, name=f"{prefix}_{each.info.name}") for each in case.tensors}


def placed(graph: Graph, constants: Collection[str] = ()) -> Graph:
    """Return a copy of a graph of `layer_case` in which exactly these inputs of the layer are constants.

    Those that are none in the graph get random values.
    """
    (layer,) = graph.layers
    names = tuple(dict.fromkeys(layer.present_inputs))
    marks = "".join("c" if name in constants else "r" for name in names)
    result, generator = Graph(f"{graph.name}_{marks}"), np.random.default_rng(len(names))
    for name in names:
        info, data = graph.info(name), graph.tensor(name).data
        if name in constants:
            result.add_constant(info, random_values(generator, info) if data is None else data)
        else:
            result.add_input(info)
    result.set_outputs(add_case(result, graph, {}))
    return result


def offset_weights(graph: Graph) -> Graph | None:
    """Return a copy of a graph of `layer_case` whose int8 weights have one scale and a zero point other than 0.

    None if the layer has no constant int8 weights. The operator may refuse the copy.
    """
    (layer,) = graph.layers
    names = [name for name in layer.present_inputs if graph.tensor(name).is_constant]
    if "weights" not in names or graph.info("weights").dtype is not DataType.INT8:
        return None
    weights = graph.info("weights").quantization
    if weights is None:
        return None
    source = graph.info(layer.present_inputs[0]).quantization
    scale = weights.scales[0]
    changed = {
        "weights": Quantization.of(scale, _WEIGHTS_ZERO_POINT),
        "bias": Quantization.of(float(np.float32((1.0 if source is None else source.scales[0]) * scale))),
    }
    result = Graph(f"{graph.name}_offset")
    infos = {name: replace(graph.info(name), quantization=changed[name]) for name in names if name in changed}
    result.set_outputs(add_case(result, graph, infos))
    return result


def placements(graph: Graph) -> Iterator[Graph]:
    """Yield a graph of `layer_case` with every choice of which of its layer's inputs are constants.

    With more than four inputs: none, all, and each of these with one other than the rest.
    """
    names = tuple(dict.fromkeys(graph.layers[0].present_inputs))
    if len(names) <= _ALL_CHOICES:
        counts = range(len(names) + 1)
        chosen = [frozenset(each) for count in counts for each in combinations(names, count)]
    else:
        whole = frozenset(names)
        own = frozenset(name for name in names if graph.tensor(name).is_constant)
        single = [frozenset({name}) for name in names]
        chosen = [
            frozenset(),
            own,
            whole,
            *single,
            *(whole - each for each in single),
            *(own - each for each in single),
        ]
    for constants in dict.fromkeys(chosen):
        yield placed(graph, constants)


def _shapes(type_: LayerType, descriptor: Descriptor, inputs: Sequence[TensorInfo | None]) -> Sequence[Shape]:
    try:
        return OPERATORS[type_].infer(descriptor, inputs)
    except FerruleError:  # the operator rejects these inputs, so any shape will do
        return [info.shape for info in inputs[:1] if info is not None]
