# SPDX-License-Identifier: Apache-2.0
"""The graph of layers and tensors, which all other packages use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from ferrule._typing import override
from ferrule.errors import ModelError
from ferrule.graph.layer import Layer
from ferrule.graph.lookup import Lookup
from ferrule.graph.names import UniqueNames
from ferrule.graph.rounding import Rounding
from ferrule.graph.state import State, reset_value
from ferrule.graph.tensor import Array, Tensor, TensorInfo, brief, read_only

_LISTED = 4


class Graph(Lookup):
    """Layers in an order that can be executed, and the tensors between them.

    Tensor and layer names are unique. Every tensor has exactly one source: it is an input of the graph, the old value
    of a state, a constant, or the output of one layer. A layer is added after the layers that produce its inputs, so
    the order of addition is topological.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._inputs: list[str] = []
        self._outputs: list[str] = []
        self._states: dict[str, State] = {}
        self._consumers: dict[str, list[str]] = {}
        self._positions: dict[str, int] = {}
        self._ranks: dict[str, int] = {}
        self._names = UniqueNames()
        self._layer_tuple: tuple[Layer, ...] | None = None
        self._tensor_tuple: tuple[Tensor, ...] | None = None
        self._frozen = False
        self._assembled = False

    @override
    def __repr__(self) -> str:
        inputs, outputs = _listed(self.inputs), _listed(self.outputs)
        rules = sorted({layer.rounding for layer in self.layers} - {Rounding.TFLM})
        rounding = f", rounding by {' and '.join(rules)}" if rules else ""
        return (
            f"<{type(self).__name__} {brief(self.name)}: {len(self._layers)} layers, {inputs} to {outputs}{rounding}>"
        )

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers, in an order that can be executed."""
        if self._layer_tuple is None:
            self._layer_tuple = tuple(self._layers.values())
        return self._layer_tuple

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """The inputs of the graph, in order."""
        return tuple(self.info(name) for name in self._inputs)

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """The outputs of the graph, in order; a tensor may occur more than once."""
        return tuple(self.info(name) for name in self._outputs)

    @property
    def states(self) -> tuple[State, ...]:
        """The values that live from one run to the next, in the order of addition."""
        return tuple(self._states.values())

    @property
    def sources(self) -> tuple[TensorInfo, ...]:
        """The tensors that have a value when a run begins: the inputs, then the states' old values."""
        return (*self.inputs, *(self.info(state.source) for state in self.states))

    @property
    def results(self) -> tuple[TensorInfo, ...]:
        """The tensors that must have a value when a run ends: the outputs, then the states' new values."""
        return (*self.outputs, *(self.info(state.result) for state in self.states))

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All tensors, in the order of addition."""
        if self._tensor_tuple is None:
            self._tensor_tuple = tuple(self._tensors.values())
        return self._tensor_tuple

    def has_tensor(self, name: str) -> bool:
        """Return whether there is a tensor of that name."""
        return name in self._tensors

    def consumers(self, tensor: str) -> tuple[Layer, ...]:
        """Return the layers that read a tensor, in order."""
        return tuple(self._layers[name] for name in self._consumers.get(tensor, ()))

    def position(self, layer: str) -> int:
        """Return the index of a layer in `layers`; ModelError if there is no layer of that name."""
        self.layer(layer)
        return self._positions[layer]

    def in_order(self, tensors: Iterable[str]) -> list[str]:
        """Return the given tensor names without repeats, in the order in which the tensors were added to the graph."""
        return sorted(set(tensors), key=self._ranks.__getitem__)

    def add_input(self, info: TensorInfo) -> str:
        """Add an input of the graph and return its name; ModelError if the name is taken."""
        self._add_tensor(Tensor(info))
        self._inputs.append(info.name)
        return info.name

    def add_state(self, info: TensorInfo, initial: Array, *, name: str | None = None) -> str:
        """Add a state and return the name of the tensor with its old value, which is that of `info`.

        The new value is the old one until `set_state` declares another tensor. `name` defaults to the tensor's name.

        Raises:
            ModelError: a name is taken, or the shape or dtype of `initial` differs from `info`.
        """
        name = info.name if name is None else name
        if name in self._states:
            raise ModelError(f"graph '{self.name}' has a state '{name}' already, expected a new name")
        data = _constant_data(info, initial, "state")
        self._add_tensor(Tensor(info))
        self._states[name] = State(name=name, source=info.name, result=info.name, initial=data)
        return info.name

    def set_state(self, name: str, result: str) -> None:
        """Declare the tensor that has a state's new value.

        Raises:
            ModelError: there is no such state or tensor, or the tensor has another shape or dtype than the old value.
        """
        self._check_open()
        if name not in self._states:
            raise ModelError(f"graph '{self.name}' has no state '{name}'")
        state = self._states[name]
        old, new = self.info(state.source), self.info(result)
        if (old.shape, old.dtype) != (new.shape, new.dtype):
            raise ModelError(
                f"state '{name}' gets tensor '{result}' {new.dtype}{list(new.shape)}, "
                f"expected {old.dtype}{list(old.shape)}"
            )
        self._states[name] = replace(state, result=result)

    def keep_output(self, output: str, source: str) -> None:
        """Make an output the new value of a state, whose old value is an input; a reset makes it 0.

        For models that hand their state to the caller, who gives it back with the next run. Neither remains in the
        interface; an output that is also another one remains there.

        Raises:
            ModelError: there is no such input or output, their shapes or types differ, or no output would remain.
        """
        self._check_open()
        for name, names, what in ((source, self._inputs, "input"), (output, self._outputs, "output")):
            if name not in names:
                raise ModelError(f"graph '{self.name}' has no {what} '{name}'", hint=f"its {what}s: {', '.join(names)}")
        if len(self._outputs) == 1:
            raise ModelError(f"graph '{self.name}' has no output besides '{output}', expected another one")
        info = self.info(source)
        self._states[source] = State(name=source, source=source, result=source, initial=reset_value(info))
        try:
            self.set_state(source, output)
        except ModelError:
            del self._states[source]
            raise
        self._inputs.remove(source)
        self._outputs.remove(output)

    def add_constant(self, info: TensorInfo, data: Array) -> str:
        """Add a constant and return its name.

        The data is copied unless it is already read-only and contiguous.

        Raises:
            ModelError: the name is taken, or the shape or dtype of the data differs from `info`.
        """
        self._add_tensor(Tensor(info, _constant_data(info, data, "constant")))
        return info.name

    def add_layer(self, layer: Layer, outputs: Sequence[TensorInfo]) -> tuple[str, ...]:
        """Add a layer with the tensors that it produces, and return the names of these tensors.

        Raises:
            ModelError: a name is taken, an input is unknown, or `outputs` does not match the layer's outputs.
        """
        if not layer.name or layer.name in self._layers:
            raise ModelError(f"graph '{self.name}' has a layer '{layer.name}' already, expected a new name")
        for name in layer.present_inputs:
            if name not in self._tensors:
                raise ModelError(f"layer '{layer.name}' reads tensor '{name}', which nothing before it writes")
        if tuple(info.name for info in outputs) != layer.outputs:
            raise ModelError(f"layer '{layer.name}' lists outputs {list(layer.outputs)}, got others")
        if len(set(layer.outputs)) != len(layer.outputs):
            raise ModelError(f"layer '{layer.name}' writes a tensor twice: {list(layer.outputs)}")
        for info in outputs:
            self._check_new(info.name)
        for info in outputs:
            self._add_tensor(Tensor(info))
            self._producers[info.name] = layer.name
        for name in dict.fromkeys(layer.present_inputs):
            self._consumers.setdefault(name, []).append(layer.name)
        self._positions[layer.name] = len(self._layers)
        self._layers[layer.name] = layer
        self._names.add(layer.name)
        self._layer_tuple = None
        return layer.outputs

    def set_outputs(self, names: Iterable[str]) -> None:
        """Declare the outputs of the graph, in order; ModelError if a tensor does not exist."""
        wanted = list(names)
        self._check_open()
        for name in wanted:
            self.tensor(name)
        self._outputs = wanted

    def unique_name(self, wanted: str) -> str:
        """Return `wanted`, or `wanted_2`, `wanted_3`... if a tensor or layer has that name."""
        return self._names.free(wanted)

    def freeze(self, *, assembled: bool = False) -> None:
        """Refuse all changes from now on; `assembled` graphs have what `assemble` gives them, in its order."""
        self._frozen = True
        self._assembled |= assembled

    @property
    def is_frozen(self) -> bool:
        """Whether all changes are refused."""
        return self._frozen

    @property
    def is_assembled(self) -> bool:
        """Whether `assemble` would return an equal graph for the layers and tensors of this one."""
        return self._assembled

    def _check_open(self) -> None:
        if self._frozen:
            raise ModelError(f"graph '{self.name}' is finished, expected changes through a GraphEditor")

    def _add_tensor(self, tensor: Tensor) -> None:
        self._check_new(tensor.info.name)
        self._ranks[tensor.info.name] = len(self._tensors)
        self._tensors[tensor.info.name] = tensor
        self._names.add(tensor.info.name)
        self._tensor_tuple = None

    def _check_new(self, name: str) -> None:
        self._check_open()
        if not name:
            raise ModelError(f"graph '{self.name}' got a tensor without a name")
        if name in self._tensors:
            raise ModelError(f"graph '{self.name}' has a tensor '{name}' already, expected a new name")


def _constant_data(info: TensorInfo, data: Array, what: str) -> Array:
    """Return the data, read-only and contiguous, after comparing its shape and dtype with those of `info`."""
    if data.shape != info.shape or data.dtype != info.dtype.numpy:
        raise ModelError(
            f"{what} '{info.name}' has data {data.dtype}{list(data.shape)}, expected {info.dtype}{list(info.shape)}"
        )
    if data.flags.writeable or not data.flags.c_contiguous:
        return read_only(np.array(data, order="C"))
    return data


def _listed(infos: Sequence[TensorInfo]) -> str:
    """Return the types of the tensors as text; of many tensors, the first few and the number of the others."""
    texts = [f"{info.dtype}{list(info.shape)}" for info in infos[:_LISTED]]
    if len(infos) > _LISTED:
        texts.append(f"{len(infos) - _LISTED} more")
    return ", ".join(texts) or "nothing"
