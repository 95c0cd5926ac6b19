# SPDX-License-Identifier: Apache-2.0
"""Layers and tensors by name, in a graph and in one that is being rewritten."""

from __future__ import annotations

from collections.abc import Iterable

from ferrule.errors import ModelError
from ferrule.graph.layer import Layer
from ferrule.graph.names import check_name
from ferrule.graph.tensor import Tensor, TensorInfo


class Lookup:
    """The layers and tensors of one graph, by name."""

    def __init__(self, name: str) -> None:
        check_name(name, "graph")
        self.name = name
        self._tensors: dict[str, Tensor] = {}
        self._layers: dict[str, Layer] = {}
        self._producers: dict[str, str] = {}

    def layer(self, name: str) -> Layer:
        """Return the layer of that name; ModelError if there is none."""
        try:
            return self._layers[name]
        except KeyError:
            raise ModelError(f"graph '{self.name}' has no layer '{name}'") from None

    def tensor(self, name: str) -> Tensor:
        """Return the tensor of that name; ModelError if there is none."""
        try:
            return self._tensors[name]
        except KeyError:
            raise ModelError(f"graph '{self.name}' has no tensor '{name}'") from None

    def info(self, name: str) -> TensorInfo:
        """Return the description of a tensor; ModelError if there is none."""
        return self.tensor(name).info

    def input_infos(self, layer: Layer) -> tuple[TensorInfo | None, ...]:
        """Return the tensor infos of a layer's inputs; None for an absent optional input."""
        return self.infos(layer.inputs)

    def infos(self, names: Iterable[str | None]) -> tuple[TensorInfo | None, ...]:
        """Return the tensor infos of inputs; None for an absent optional one."""
        return tuple(None if name is None else self.info(name) for name in names)

    def output_infos(self, layer: Layer) -> tuple[TensorInfo, ...]:
        """Return the tensor infos of a layer's outputs."""
        return tuple(self.info(name) for name in layer.outputs)

    def producer(self, tensor: str) -> Layer | None:
        """Return the layer that writes a tensor; None for inputs and constants."""
        name = self._producers.get(tensor)
        return None if name is None else self._layers[name]
