# SPDX-License-Identifier: Apache-2.0
"""Writes a graph as the bytes of a .tflite file."""

from __future__ import annotations

from ferrule.errors import FerruleError, UnsupportedError
from ferrule.formats.tflite.emitter import Emitter
from ferrule.formats.tflite.encoder import ModelContent, SubgraphContent, write_model
from ferrule.formats.tflite.operators import OPERATORS
from ferrule.formats.tflite.periods import without_periods
from ferrule.formats.tflite.states import WrittenStates
from ferrule.formats.tflite.unsigned import with_unsigned_convolutions
from ferrule.graph import Graph, Layer, LayerType, Rounding, SubgraphView
from ferrule.interface import either, option
from ferrule.network import Network
from ferrule.network.rounding import with_rounding

_MAX_BYTES = 2**31 - 1
"""Offsets in flatbuffers are limited to 31 bits."""
_SIGNATURE = "serving_default"
"""The key of a signature that TensorFlow gives, and that its tools look for first."""


def to_tflite(network: Graph | SubgraphView, *, rounding: Rounding | None = None, shared: bool = True) -> bytes:
    """Return the network as a TensorFlow Lite model; the same network always produces the same bytes.

    For a subgraph view, the model has only the layers of the view, and its inputs and outputs are those of the view.

    Padding that is neither SAME nor VALID becomes a PAD before the layer. Convolutions whose weights have a zero point
    are written in uint8, between two QUANTIZE. Tensor names are kept; the format cannot store layer names, nor the
    rules by which layers round: only those with the TFLM rule are written. With `rounding` TFLM, layers of other rules
    are given that one, which changes some of their results; `ferrule convert` counts them. The file has one signature:
    it has the name of the network's own, or else "serving_default", and its inputs and outputs have their own names.
    Constants of equal bytes are in the file once, unless `shared` is False, for programs that change one of them.

    Raises:
        UnsupportedError: TensorFlow Lite cannot express a part of the network, or its constants take 2 GiB or more.
    """
    if isinstance(network, SubgraphView):
        network = network.to_graph()
    if rounding is not None:
        if rounding is not Rounding.TFLM:
            raise FerruleError(f"the rule is '{rounding}', expected '{Rounding.TFLM}', the one that such files have")
        network = with_rounding(network, rounding)
    signature = _signature(network)
    network = without_periods(network)
    size_bytes = sum(tensor.data.nbytes for tensor in network.tensors if tensor.data is not None)
    if size_bytes > _MAX_BYTES:
        raise UnsupportedError(
            f"the constants of '{network.name}' take {size_bytes} bytes, expected at most {_MAX_BYTES}"
        )
    file = _File()
    file.write(network)
    content = ModelContent(
        description="Written by Ferrule.", subgraphs=file.subgraphs(), signature=signature, shared=shared
    )
    return write_model(content)


def _signature(network: Graph) -> str:
    """Return the key of a network's signature, by default that of TensorFlow."""
    names = network.signatures if isinstance(network, Network) else ()
    return names[0] if names else _SIGNATURE


class _File:
    """The subgraphs of one file; the first is the model."""

    def __init__(self) -> None:
        self._subgraphs: list[SubgraphContent | None] = []

    def subgraphs(self) -> tuple[SubgraphContent, ...]:
        """Return the subgraphs, all of which are written."""
        return tuple(each for each in self._subgraphs if each is not None)

    def write(self, graph: Graph) -> int:
        """Add a graph, its initialiser and those that it calls, and return its number."""
        graph, number = with_unsigned_convolutions(graph), len(self._subgraphs)
        self._subgraphs.append(None)
        states = WrittenStates(graph, OPERATORS)
        initialiser = states.initialiser()
        if initialiser is not None:
            self._subgraphs.append(initialiser)
        emitter = Emitter(graph, states.left_out, subgraph=self.write)
        for layer in graph.layers:
            row = OPERATORS.get(layer.type)
            if row is None:
                raise UnsupportedError(
                    f"layer '{layer.name}': {layer.type} cannot be expressed in TensorFlow Lite",
                    hint=f"{option('onnx_arithmetic', 'as-written')} reads it as layers of float32 that can"
                    if layer.type is LayerType.LAYER_NORMALIZATION
                    else None,
                )
            _refuse_other_rules(layer)
            row.write(emitter, layer)
        self._subgraphs[number] = SubgraphContent(
            name=graph.name,
            tensors=(
                *(each for each in graph.tensors if each.info.name not in states.left_out),
                *emitter.tensors.values(),
            ),
            operators=(*states.before(), *emitter.operators, *states.behind()),
            inputs=tuple(info.name for info in graph.inputs),
            outputs=tuple(info.name for info in graph.outputs),
            variables=states.variables,
            resources=states.resources,
        )
        return number


def _refuse_other_rules(layer: Layer) -> None:
    if layer.rounding is not Rounding.TFLM:
        raise UnsupportedError(
            f"layer '{layer.name}': {layer.type} rounds by {layer.rounding.phrase} ('{layer.rounding}'), which a "
            "TensorFlow Lite model cannot state: its readers round by their own rule",
            hint=either(
                "ferrule convert --rounding tflm changes the rule and counts the results that differ",
                "to_tflite(network, rounding=Rounding.TFLM) changes the rule",
            ),
        )
