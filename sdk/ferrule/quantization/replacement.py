# SPDX-License-Identifier: Apache-2.0
"""The layers that take the place of one of a float network."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.graph import Array, DataType, Descriptor, GraphEditor, Layer, LayerType, Shape, Tensor, TensorInfo
from ferrule.graph.tensor import constant
from ferrule.operators.table import OPERATORS


class Replacement:
    """Float layers that replace one, in the order in which they are added; new names come from those of that layer."""

    def __init__(self, editor: GraphEditor, layer: Layer) -> None:
        self.editor, self.layer, self.layers = editor, layer, list[Layer]()

    def constant(self, role: str, data: Array) -> str:
        """Add a constant of float32 and return its name."""
        info = TensorInfo(f"{self.layer.outputs[0]}_{role}", data.shape, DataType.FLOAT32)
        return self.editor.add_tensor(constant(info, data))

    def tensor(self, shape: Shape) -> str:
        """Add a tensor for what a layer computes and return its name."""
        return self.editor.add_tensor(Tensor(TensorInfo(f"{self.layer.outputs[0]}_part", shape, DataType.FLOAT32)))

    def add(
        self, type_: LayerType, inputs: Sequence[str], outputs: Sequence[str], descriptor: Descriptor | None = None
    ) -> None:
        """Add a layer, by default with its type's default descriptor."""
        name = self.editor.fresh(f"{self.layer.name}_{len(self.layers)}")
        chosen = OPERATORS[type_].descriptor() if descriptor is None else descriptor
        self.layers.append(Layer(name, type_, chosen, tuple(inputs), tuple(outputs)))

    def place(self) -> None:
        """Put the layers where the one was."""
        self.editor.replace_layers([self.layer.name], self.layers)
