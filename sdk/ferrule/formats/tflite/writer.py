# SPDX-License-Identifier: Apache-2.0
"""Writes a graph as the bytes of a .tflite file."""

from __future__ import annotations

from ferrule.errors import UnsupportedError
from ferrule.formats.tflite.emitter import Emitter
from ferrule.formats.tflite.encoder import ModelContent, SubgraphContent, write_model
from ferrule.formats.tflite.operators import OPERATORS
from ferrule.formats.tflite.states import WrittenStates
from ferrule.graph import Graph, SubgraphView

_MAX_BYTES = 2**31 - 1
"""Offsets in flatbuffers are limited to 31 bits."""


def to_tflite(network: Graph | SubgraphView) -> bytes:
    """Return the network as a TensorFlow Lite model; the same network always produces the same bytes.

    For a subgraph view, the model has only the layers of the view, and its inputs and outputs are those of the view.

    Padding that is neither SAME nor VALID becomes a PAD before the layer. Tensor names are kept; the format cannot
    store layer names.

    Raises:
        UnsupportedError: TensorFlow Lite cannot express a part of the network, or its constants take 2 GiB or more.
    """
    if isinstance(network, SubgraphView):
        network = network.to_graph()
    size_bytes = sum(tensor.data.nbytes for tensor in network.tensors if tensor.data is not None)
    if size_bytes > _MAX_BYTES:
        raise UnsupportedError(
            f"the constants of '{network.name}' take {size_bytes} bytes, expected at most {_MAX_BYTES}"
        )
    states = WrittenStates(network, OPERATORS)
    emitter = Emitter(network, {type_: row.version for type_, row in OPERATORS.items()}, states.outputs)
    for layer in network.layers:
        row = OPERATORS.get(layer.type)
        if row is None:
            raise UnsupportedError(f"layer '{layer.name}': {layer.type} cannot be expressed in TensorFlow Lite")
        row.write(emitter, layer, layer.descriptor)
    main = SubgraphContent(
        name=network.name,
        tensors=(*(each for each in network.tensors if each.info.name not in states.left_out), *emitter.tensors),
        operators=(*states.before(), *emitter.operators, *states.behind()),
        inputs=tuple(info.name for info in network.inputs),
        outputs=tuple(info.name for info in network.outputs),
        variables=states.variables,
        resources=states.resources,
    )
    initialiser = states.initialiser()
    called = () if initialiser is None else (initialiser,)
    return write_model(ModelContent(description="Written by Ferrule.", subgraphs=(main, *called)))
