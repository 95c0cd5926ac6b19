# SPDX-License-Identifier: Apache-2.0
"""The precision of layers: a scheme for all of them, and what is kept otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase

from ferrule._frozen import frozen
from ferrule.errors import FerruleError, unknown_name
from ferrule.graph import DataType, Graph, Layer, LayerType
from ferrule.interface import name_of


class Precision(StrEnum):
    """What the activations of a layer are stored as; weights are int8 beside integers."""

    FLOAT = "float"
    INT8 = "int8"
    INT16 = "int16"

    @property
    def bits(self) -> int:
        """The bits of an activation."""
        return 8 * self.dtype.size_bytes

    @property
    def dtype(self) -> DataType:
        """The type of an activation."""
        return DataType.FLOAT32 if self is Precision.FLOAT else DataType(self.value)

    @property
    def symmetric(self) -> bool:
        """Whether the zero point is 0, as TensorFlow Lite prescribes it for int16 (its quantisation specification)."""
        return self is Precision.INT16


SCHEMES = (Precision.INT8, Precision.INT16)
"""What all layers can be quantised to."""


@frozen
class Keep:
    """Layers with a precision of their own."""

    pattern: str
    """The name of a layer, a layer type such as "SOFTMAX", or a pattern of names with `*` and `?`."""
    precision: Precision

    @classmethod
    def parse(cls, text: str) -> Keep:
        """Return the rule that NAME or NAME=PRECISION states; NAME alone keeps a layer in float."""
        pattern, separator, precision = text.rpartition("=")
        if not separator:
            return cls(pattern=text, precision=Precision.FLOAT)
        if precision not in set(Precision):  # a layer's name may have an equals sign
            raise FerruleError(
                f"{name_of('keep')} is '{text}', expected NAME, or NAME=PRECISION with {', '.join(Precision)}"
            )
        return cls(pattern=pattern, precision=Precision(precision))

    def matches(self, layer: Layer, names: Iterable[str]) -> bool:
        """Return whether the rule is for a layer of a network with layers of these names."""
        if self.pattern in names:
            return layer.name == self.pattern
        if self.pattern.upper() in set(LayerType):
            return layer.type == self.pattern.upper()
        return fnmatchcase(layer.name, self.pattern)


def precisions(graph: Graph, scheme: Precision, keep: Sequence[Keep]) -> dict[str, Precision]:
    """Return the precision of each layer by name; of several rules for a layer, the last one counts.

    Raises:
        FerruleError: a rule is for no layer.
    """
    names = {layer.name for layer in graph.layers}
    found = dict.fromkeys((layer.name for layer in graph.layers), scheme)
    for rule in keep:
        chosen = [layer.name for layer in graph.layers if rule.matches(layer, names)]
        if not chosen:
            raise unknown_name("layer", rule.pattern, sorted(names), where=f"in '{graph.name}'")
        found |= dict.fromkeys(chosen, rule.precision)
    return found


def rewritten(graph: Graph, given: Mapping[str, Precision], other: Graph) -> dict[str, Precision]:
    """Return the precisions of a graph after passes: of a layer that has kept its name, or which writes the tensor."""
    found = {}
    for layer in other.layers:
        writer = graph.producer(layer.outputs[0])
        behind = Precision.FLOAT if writer is None else given[writer.name]
        found[layer.name] = given.get(layer.name, behind)
    return found


def carried_over(graph: Graph, given: Mapping[str, Precision], other: Graph) -> dict[str, Precision]:
    """Return the precisions of another form of a graph: of the layers that write the same tensors.

    A layer that the other form alone has gets that of the layer that reads what it writes.
    """
    by_tensor = {name: given[layer.name] for layer in graph.layers for name in layer.outputs}
    found: dict[str, Precision] = {}
    for layer in reversed(other.layers):
        own = [by_tensor[name] for name in layer.outputs if name in by_tensor]
        found[layer.name] = own[0] if own else Precision.FLOAT
        for name in layer.present_inputs:
            by_tensor.setdefault(name, found[layer.name])
    return found
