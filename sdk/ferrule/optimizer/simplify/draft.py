# SPDX-License-Identifier: Apache-2.0
"""A graph that a pass changes, and the few changes that all passes are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ferrule.graph import Graph, Layer, Tensor, TensorInfo, assemble


class Draft:
    """The layers and tensors of a graph, to be changed and assembled again.

    Inputs and outputs of the graph keep their names, their order and what is known of them.
    """

    def __init__(self, graph: Graph) -> None:
        self._name = graph.name
        self._inputs = [info.name for info in graph.inputs]
        self._outputs = [info.name for info in graph.outputs]
        self._layers = {layer.name: layer for layer in graph.layers}
        self._tensors = {tensor.info.name: tensor for tensor in graph.tensors}
        self._writers = {name: layer.name for layer in graph.layers for name in layer.outputs}
        self._readers: dict[str, list[str]] = {name: [] for name in self._tensors}
        for layer in graph.layers:
            for tensor in layer.present_inputs:
                self._readers[tensor].append(layer.name)

    def layers(self) -> Iterator[Layer]:
        """Yield the layers that are there now, each once; changes meanwhile are allowed."""
        for name in list(self._layers):
            layer = self._layers.get(name)
            if layer is not None:
                yield layer

    def tensor(self, name: str) -> Tensor:
        """Return a tensor."""
        return self._tensors[name]

    def info(self, name: str) -> TensorInfo:
        """Return what is known of a tensor."""
        return self._tensors[name].info

    def writer(self, tensor: str) -> Layer | None:
        """Return the layer that writes a tensor; None for inputs and constants."""
        name = self._writers.get(tensor)
        return None if name is None else self._layers[name]

    def readers(self, tensor: str) -> list[Layer]:
        """Return the layers that read a tensor, each once."""
        return [self._layers[name] for name in dict.fromkeys(self._readers[tensor])]

    def is_output(self, tensor: str) -> bool:
        """Whether the graph hands a tensor out."""
        return tensor in self._outputs

    def only_reader(self, tensor: str) -> Layer | None:
        """Return the one layer that reads a tensor that nobody else sees, once; else None."""
        if self.is_output(tensor) or len(self._readers[tensor]) != 1:
            return None
        return self._layers[self._readers[tensor][0]]

    def fresh(self, wanted: str) -> str:
        """Return a name that no tensor has."""
        name, number = wanted, 1
        while name in self._tensors:
            number += 1
            name = f"{wanted}_{number}"
        return name

    def add_tensor(self, tensor: Tensor) -> str:
        """Add a tensor and return its name, which must be new."""
        self._tensors[tensor.info.name] = tensor
        self._readers[tensor.info.name] = []
        return tensor.info.name

    def make_constant(self, tensor: Tensor) -> None:
        """Give a tensor, whose writer is gone, its value."""
        self._tensors[tensor.info.name] = tensor

    def replace_layer(self, layer: Layer) -> None:
        """Put another layer of the same name in a layer's place."""
        self._detach(self._layers[layer.name])
        self._layers[layer.name] = layer  # in its old place, so that the order stays
        for tensor in layer.outputs:
            self._writers[tensor] = layer.name
        for tensor in layer.present_inputs:
            self._readers[tensor].append(layer.name)

    def remove_layer(self, name: str) -> None:
        """Take a layer out; its outputs have no writer then."""
        self._detach(self._layers.pop(name))

    def _detach(self, layer: Layer) -> None:
        for tensor in layer.outputs:
            self._writers.pop(tensor, None)
        for tensor in layer.present_inputs:
            self._readers[tensor].remove(layer.name)

    def bypass(self, layer: Layer, source: str) -> bool:
        """Remove a layer whose only output equals `source`; False if that is not possible.

        Readers of the output read `source` instead. Where the graph hands the output out, `source` takes its name
        if it can: if a layer writes it and the graph does not hand it out itself.
        """
        target = layer.outputs[0]
        if self.is_output(target):
            return self._rename_writer(layer, source, target)
        self.remove_layer(layer.name)
        self._redirect(target, source)
        return True

    def _redirect(self, old: str, new: str) -> None:
        for reader in self.readers(old):
            inputs = tuple(new if name == old else name for name in reader.inputs)
            self.replace_layer(replace(reader, inputs=inputs))

    def _rename_writer(self, layer: Layer, source: str, target: str) -> bool:
        writer = self.writer(source)
        if writer is None or self.is_output(source):
            return False
        if replace(self.info(source), name=target) != self.info(target):
            return False
        self.remove_layer(layer.name)
        self.replace_layer(
            replace(writer, outputs=tuple(target if name == source else name for name in writer.outputs))
        )
        self._redirect(source, target)
        return True

    def graph(self) -> Graph:
        """Return the graph, without tensors that nothing writes or reads."""
        return assemble(
            self._name,
            inputs=self._inputs,
            outputs=self._outputs,
            layers=self._layers.values(),
            tensors=self._tensors,
        )
