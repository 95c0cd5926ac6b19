# SPDX-License-Identifier: Apache-2.0
"""The editor, which rewrites graphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ferrule.errors import ModelError
from ferrule.graph.assembly import assemble
from ferrule.graph.graph import Graph
from ferrule.graph.layer import Layer
from ferrule.graph.lookup import Lookup
from ferrule.graph.names import UniqueNames
from ferrule.graph.tensor import Array, Tensor, renamed


class GraphEditor(Lookup):
    """An editable copy of a graph's layers and tensors; `finish` returns the resulting graph.

    The graph's inputs, outputs and states keep their names and their order. Layers keep their positions, except that
    `finish` moves a layer after those whose outputs it reads. The time of an edit is proportional to the number of
    inputs and outputs of the layers that it touches. Between edits, a tensor may lack a writer; `finish` checks the
    whole graph.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph.name)
        self._inputs = tuple(info.name for info in graph.inputs)
        self._outputs = tuple(info.name for info in graph.outputs)
        self._states = graph.states
        self._handed_out = frozenset(info.name for info in graph.results)
        self._tensors = {tensor.info.name: tensor for tensor in graph.tensors}
        self._names = UniqueNames(self._tensors)
        self._consumers: dict[str, dict[str, int]] = {}
        """By tensor and layer: the number of the layer's inputs that are this tensor."""
        self._next: dict[str | None, str | None] = {None: None}
        self._previous: dict[str | None, str | None] = {None: None}
        """The layers in order, as a ring closed by None."""
        for layer in graph.layers:
            self.add_layer(layer)
        self._unchanged = graph if graph.is_assembled else None
        """The graph, until an edit: `finish` would make an equal one."""

    def layers(self) -> Iterator[Layer]:
        """Yield the layers present at the time of the call, in order, except those removed during the iteration."""
        names = []
        name = self._next[None]
        while name is not None:
            names.append(name)
            name = self._next[name]
        for one in names:
            layer = self._layers.get(one)
            if layer is not None:
                yield layer

    def consumers(self, tensor: str) -> tuple[Layer, ...]:
        """Return the layers that read a tensor, each once, in no particular order."""
        return tuple(self._layers[name] for name in self._consumers.get(tensor, ()))

    def only_consumer(self, tensor: str) -> Layer | None:
        """Return the only layer that reads a tensor, as one input; None for more uses or if it is a result."""
        readers = self._consumers.get(tensor, {})
        if self.is_output(tensor) or list(readers.values()) != [1]:
            return None
        return self._layers[next(iter(readers))]

    def is_output(self, tensor: str) -> bool:
        """Return whether a tensor is a result of the graph: an output or the new value of a state."""
        return tensor in self._handed_out

    def fresh(self, wanted: str) -> str:
        """Reserve and return `wanted`, or `wanted_2`, `wanted_3`... if a tensor or layer has or had that name."""
        return self._names.take(wanted)

    def set_tensor(self, tensor: Tensor) -> None:
        """Add a tensor, or replace the tensor of that name."""
        self._unchanged = None
        self._tensors[tensor.info.name] = tensor
        self._names.add(tensor.info.name)

    def add_tensor(self, tensor: Tensor) -> str:
        """Add a tensor by its name, or by one like it if that is taken, as `fresh`; return the name."""
        name = self.fresh(tensor.info.name)
        self.set_tensor(renamed(tensor, name))
        return name

    def initial(self, source: str) -> Array:
        """Return the value after a reset of the state whose old value is a tensor; StopIteration if there is none."""
        return next(state.initial for state in self._states if state.source == source)

    def set_state(self, tensor: Tensor, initial: Array) -> None:
        """Replace the tensor with the old value of a state, and the value after a reset, of its shape and type."""
        self.set_tensor(tensor)
        self._states = tuple(
            replace(state, initial=initial) if state.source == tensor.info.name else state for state in self._states
        )

    def add_layer(self, layer: Layer, *, before: str | None = None, behind: str | None = None) -> None:
        """Add a layer before or after another one, by default at the end; ModelError if its name is taken."""
        self._insert(layer, self._previous[before] if behind is None else behind)

    def replace_layer(self, layer: Layer) -> None:
        """Replace a layer by another one with the same name."""
        self._detach(self.layer(layer.name))
        self._attach(layer)

    def replace_layers(self, names: Iterable[str], layers: Iterable[Layer]) -> None:
        """Remove the layers `names` and insert others at the position of the first; ModelError if a name is taken."""
        gone = dict.fromkeys(names)
        place = self._previous[next(iter(gone))]
        while place in gone:
            place = self._previous[place]
        for name in gone:
            self.remove_layer(name)
        for layer in layers:
            self._insert(layer, place)
            place = layer.name

    def remove_layer(self, name: str) -> None:
        """Remove a layer; its outputs then have no writer."""
        self._detach(self.layer(name))
        del self._layers[name]
        before, behind = self._previous.pop(name), self._next.pop(name)
        self._next[before], self._previous[behind] = behind, before

    def rename(self, names: Mapping[str, str]) -> None:
        """Replace tensors, mapped old name to new name, wherever a layer reads or writes them."""
        for writer in dict.fromkeys(self._producers[old] for old in names if old in self._producers):
            layer = self._layers[writer]
            self.replace_layer(replace(layer, outputs=tuple(names.get(name, name) for name in layer.outputs)))
        self.redirect(names)

    def redirect(self, names: Mapping[str, str], readers: Iterable[str] | None = None) -> None:
        """Replace tensors, mapped old name to new name, in the inputs of `readers`, by default of all layers."""
        found = (reader for old in names for reader in self._consumers.get(old, ())) if readers is None else readers
        for reader in dict.fromkeys(found):
            layer = self._layers[reader]
            inputs = tuple(None if name is None else names.get(name, name) for name in layer.inputs)
            self.replace_layer(replace(layer, inputs=inputs))

    def bypass(self, layer: Layer, source: str) -> bool:
        """Remove a layer whose only output equals `source`; return False and change nothing if that is not possible.

        Readers of the output read `source` instead. If the output is a graph output, `source` takes over its name; this
        is possible only if a layer writes `source` and `source` is not a graph output itself.
        """
        target = layer.outputs[0]
        if self.is_output(target):
            if self.producer(source) is None or self.is_output(source):
                return False
            if replace(self.info(source), name=target) != self.info(target):
                return False
            source, target = target, source
        self.remove_layer(layer.name)
        self.rename({target: source})
        return True

    def finish(self) -> Graph:
        """Return the graph, without tensors that are neither written nor read.

        If nothing was edited, and the graph comes from another editor, it is that graph itself.

        Raises:
            ModelError: the layers form a cycle, read a tensor without a writer, or write a tensor twice.
        """
        if self._unchanged is not None:
            return self._unchanged
        return assemble(
            self.name,
            inputs=self._inputs,
            outputs=self._outputs,
            states=self._states,
            layers=self.layers(),
            tensors=self._tensors,
        )

    def _insert(self, layer: Layer, behind: str | None) -> None:
        if not layer.name or layer.name in self._layers:
            raise ModelError(f"graph '{self.name}' has a layer '{layer.name}' already, expected a new name")
        self._attach(layer)
        self._names.add(layer.name)
        following = self._next[behind]
        self._next[behind] = self._previous[following] = layer.name
        self._previous[layer.name], self._next[layer.name] = behind, following

    def _attach(self, layer: Layer) -> None:
        self._unchanged = None
        self._layers[layer.name] = layer
        for tensor in layer.outputs:
            self._producers[tensor] = layer.name
        for tensor in layer.present_inputs:
            readers = self._consumers.setdefault(tensor, {})
            readers[layer.name] = readers.get(layer.name, 0) + 1

    def _detach(self, layer: Layer) -> None:
        self._unchanged = None
        for tensor in layer.outputs:
            if self._producers.get(tensor) == layer.name:
                del self._producers[tensor]
        for tensor in layer.present_inputs:
            self._consumers[tensor].pop(layer.name, None)
