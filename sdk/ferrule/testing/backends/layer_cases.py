# SPDX-License-Identifier: Apache-2.0
"""One layer of any type in any element type, at random: the samples of the operators as graphs."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ferrule.errors import FerruleError
from ferrule.graph import DataType, Descriptor, Graph, Layer, LayerType, Shape, TensorInfo
from ferrule.operators.sample import LayerSample
from ferrule.operators.table import OPERATORS

LAYER_TYPES: tuple[LayerType, ...] = tuple(type_ for type_, row in OPERATORS.items() if row.sample is not None)
"""All that a backend can be asked for; DEBUG, MEM_COPY and MEM_IMPORT are run by the runtime itself."""


def layer_case(type_: LayerType, dtype: DataType, seed: int) -> Graph:
    """Return a graph of one layer, 'layer', the same for the same arguments.

    The first input is of type `dtype`; where the operator does not take that type, the graph is not a valid one, and
    no backend may take the layer.
    """
    sample = LayerSample(dice=random.Random(f"{type_} {dtype} {seed}"), dtype=dtype)  # noqa: S311 - no secret
    draw = OPERATORS[type_].sample
    assert draw is not None, f"{type_} has no sample"
    draw(sample)
    assert sample.descriptor is not None
    graph = Graph(f"{type_.lower()}_{dtype}_{seed}")
    for index, info in enumerate(sample.inputs):
        if index in sample.constants:
            graph.add_constant(info, sample.constants[index])
        else:
            graph.add_input(info)
    outputs = [
        TensorInfo(name=f"output_{i}", shape=shape, dtype=sample.output_type or dtype, quantization=sample.output)
        for i, shape in enumerate(_shapes(type_, sample.descriptor, sample.inputs))
    ]
    layer = Layer(
        name="layer",
        type=type_,
        descriptor=sample.descriptor,
        inputs=tuple(info.name for info in sample.inputs),
        outputs=tuple(info.name for info in outputs),
    )
    graph.add_layer(layer, outputs)
    graph.set_outputs(layer.outputs)
    return graph


def computed_weights(graph: Graph) -> Graph:
    """Return a graph like that of `layer_case` whose constants are inputs of the network."""
    result = Graph(f"{graph.name}_computed")
    (layer,) = graph.layers
    for name in layer.present_inputs:
        result.add_input(graph.info(name))
    result.add_layer(layer, graph.output_infos(layer))
    result.set_outputs(layer.outputs)
    return result


def _shapes(type_: LayerType, descriptor: Descriptor, inputs: Sequence[TensorInfo]) -> Sequence[Shape]:
    try:
        return OPERATORS[type_].infer(descriptor, inputs)
    except FerruleError:  # the operator does not have such inputs: any shape will do for a layer that nobody takes
        return [inputs[0].shape]
