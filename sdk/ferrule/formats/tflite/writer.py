# SPDX-License-Identifier: Apache-2.0
"""From a graph to the bytes of a .tflite file."""

from __future__ import annotations

from ferrule.errors import UnsupportedError
from ferrule.formats.tflite.emitter import Emitter
from ferrule.formats.tflite.encoder import ModelContent, write_model
from ferrule.formats.tflite.operators import OPERATORS
from ferrule.graph import Graph, SubgraphView

_MAX_BYTES = 2**31 - 1
"""Flatbuffers count in 31 bits."""


def to_tflite(network: Graph | SubgraphView) -> bytes:
    """Return the network as a TensorFlow Lite model; the same network gives the same bytes.

    A view of a part gives the model of that part: its inputs and outputs are the tensors of the view's border.

    Padding that is neither SAME nor VALID becomes a PAD before the layer. Names of tensors are kept, those of
    layers have no place in the format.

    Raises:
        UnsupportedError: the network does something that TensorFlow Lite cannot say, or is larger than 2 GiB.
    """
    if isinstance(network, SubgraphView):
        network = network.to_graph()
    size_bytes = sum(tensor.data.nbytes for tensor in network.tensors if tensor.data is not None)
    if size_bytes > _MAX_BYTES:
        raise UnsupportedError(
            f"the constants of '{network.name}' take {size_bytes} bytes, expected at most {_MAX_BYTES}"
        )
    emitter = Emitter(network, {type_: row.version for type_, row in OPERATORS.items()})
    for layer in network.layers:
        row = OPERATORS.get(layer.type)
        if row is None:
            raise UnsupportedError(f"layer '{layer.name}': {layer.type} has no form in TensorFlow Lite")
        row.write(emitter, layer, layer.descriptor)
    content = ModelContent(
        name=network.name,
        description="Written by Ferrule.",
        tensors=(*network.tensors, *emitter.tensors),
        operators=tuple(emitter.operators),
        inputs=tuple(info.name for info in network.inputs),
        outputs=tuple(info.name for info in network.outputs),
    )
    return write_model(content)
