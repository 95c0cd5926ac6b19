# SPDX-License-Identifier: Apache-2.0
"""Takes layers out of a float network that the library does not know, and puts them back between its integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ferrule.formats.tflite.operators import CUSTOM
from ferrule.graph import Graph, Layer, LayerType, Tensor
from ferrule.graph.assembly import assemble
from ferrule.graph.names import UniqueNames
from ferrule.graph.tensor import renamed
from ferrule.network import Network
from ferrule.network.copying import network_of
from ferrule.operators.elementwise.quantize import DequantizeDescriptor

_CUSTOM = frozenset(CUSTOM.values())


def is_foreign(layer: Layer) -> bool:
    """Return whether a layer is a custom operator of TensorFlow Lite, which the library cannot prepare."""
    return layer.type in _CUSTOM


def foreign_layers(network: Graph) -> tuple[Layer, ...]:
    """Return the layers that the library cannot prepare."""
    return tuple(filter(is_foreign, network.layers))


def without_layers(network: Graph, foreign: Sequence[Layer]) -> Network:
    """Return a network of the other layers: what it lacks are further inputs, and what the layers read are outputs.

    What a layer of it reads is no output: the library would let that layer read float32. If nothing is left to be an
    output, all are.
    """
    gone = {layer.name for layer in foreign}
    rest = [layer for layer in network.layers if layer.name not in gone]
    read = {name for layer in rest for name in layer.present_inputs} | {state.result for state in network.states}
    written = dict.fromkeys(name for layer in foreign for name in layer.outputs)
    made = {name for layer in rest for name in layer.outputs}
    wanted = [info.name for info in network.outputs] + [name for layer in foreign for name in layer.present_inputs]
    outputs = [name for name in dict.fromkeys(wanted) if name in made]
    return network_of(
        assemble(
            network.name,
            inputs=[*(info.name for info in network.inputs), *(name for name in written if name in read)],
            outputs=[name for name in outputs if name not in read] or outputs,
            layers=rest,
            tensors={each.info.name: each for each in network.tensors},
            states=network.states,
        )
    )


def with_layers(result: Graph, rest: Graph, network: Graph, foreign: Sequence[Layer]) -> Network:
    """Return a quantised form of the rest of a network with the layers that were taken out, with ends in float32."""
    return network_of(_Joined(result, rest, network).with_layers(foreign))


class _Joined:
    """The quantised rest while layers are added to it."""

    def __init__(self, result: Graph, rest: Graph, network: Graph) -> None:
        self._result, self._network = result, network
        self._tensors: dict[str, Tensor] = {each.info.name: each for each in result.tensors}
        self._layers = list(result.layers)
        self._names = UniqueNames([*self._tensors, *(layer.name for layer in self._layers)])
        self._known = {
            theirs.name: own.name
            for before, behind in ((rest.sources, result.sources), (rest.results, result.results))
            for theirs, own in zip(before, behind, strict=True)
        }
        """The tensors of the result in float32 by their names in the network."""

    def with_layers(self, foreign: Sequence[Layer]) -> Graph:
        """Return the whole graph."""
        for layer in foreign:
            for name in layer.outputs:
                if name not in self._known:
                    self._add(name)
        for layer in foreign:
            inputs = tuple(None if name is None else self._real(name) for name in layer.inputs)
            outputs = tuple(self._known[name] for name in layer.outputs)
            self._layers.append(replace(layer, name=self._names.take(layer.name), inputs=inputs, outputs=outputs))
        return assemble(
            self._network.name,
            inputs=[self._known[info.name] for info in self._network.inputs],
            outputs=[self._real(info.name) for info in self._network.outputs],
            layers=self._layers,
            tensors=self._tensors,
            states=self._result.states,
        )

    def _real(self, name: str) -> str:
        """Return the name of a tensor as the network has it, which is computed if the result has its integers alone."""
        if name not in self._known:
            within = self._tensors.get(name) if self._network.producer(name) is not None else None
            if within is None:
                self._add(name)
            elif within.info.quantization is None:
                self._known[name] = name
            else:
                self._add(name)
                descriptor, layer = DequantizeDescriptor(), self._names.take(f"{name}_dequantized")
                self._layers.append(Layer(layer, LayerType.DEQUANTIZE, descriptor, (name,), (self._known[name],)))
        return self._known[name]

    def _add(self, name: str) -> None:
        """Add a tensor of the network that the result does not have."""
        self._known[name] = known = self._names.take(name)
        self._tensors[known] = renamed(self._network.tensor(name), known)
