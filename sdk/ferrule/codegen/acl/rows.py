# SPDX-License-Identifier: Apache-2.0
"""What a row of the table of operators is made of: a layer with its tensors, and the pieces that rows share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ferrule._frozen import frozen, positional
from ferrule.codegen.acl.builder import AclTensor, ClassBuilder
from ferrule.codegen.acl.targets import acl, acl_name
from ferrule.dom import (
    Construct,
    Expression,
    Float,
    unsigned,
)
from ferrule.graph import DataType, Descriptor, Graph, Layer, Shape, Tensor, TensorInfo
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.operator import OTHER_CODE

D = TypeVar("D", bound=Descriptor)
FLOATS = frozenset({DataType.FLOAT32, DataType.FLOAT16})
QUANTIZED = FLOATS | {DataType.INT8}


DEFAULT_VERSION = "20.08"
"""Classes for it run on later versions, too."""


@frozen
class AclOptions:
    """What the class must run on."""

    version: str = DEFAULT_VERSION
    """The oldest version of the library: "20.08" or "24.11"."""
    float16: bool = False
    """Whether float32 is computed in float16."""


@frozen
class LayerView:
    """A layer of the network, of which a row tells whether it can be part of the class."""

    layer: Layer
    graph: Graph
    options: AclOptions

    def descriptor(self, kind: type[D]) -> D:
        """Return the layer's descriptor."""
        assert isinstance(self.layer.descriptor, kind)
        return self.layer.descriptor

    def tensor(self, index: int) -> Tensor:
        """Return an input, which is there."""
        name = self.layer.inputs[index]
        assert name is not None
        return self.graph.tensor(name)

    def info(self, index: int) -> TensorInfo:
        """Return what is known of an input, which is there."""
        return self.tensor(index).info

    @property
    def output_info(self) -> TensorInfo:
        """What is known of the first output."""
        return self.graph.info(self.layer.outputs[0])

    def has(self, index: int) -> bool:
        """Return whether an optional input is there."""
        return index < len(self.layer.inputs) and self.layer.inputs[index] is not None

    def is_constant(self, index: int) -> bool:
        """Return whether an input is a constant."""
        return self.tensor(index).is_constant


@frozen
class LayerParts(LayerView):
    """A layer that a row adds to the class."""

    builder: ClassBuilder

    @property
    def stem(self) -> str:
        """What the attributes of the layer begin with: its first output's attribute."""
        return self.output(0).member

    def output(self, index: int) -> AclTensor:
        """Return an output."""
        return self.builder.tensors[self.layer.outputs[index]]

    def input(self, index: int, shape: Shape | None = None) -> AclTensor:
        """Return an input, with another shape if given; a constant becomes a tensor of the class."""
        name, wanted = self.info(index).name, self.info(index).shape if shape is None else shape
        if self.is_constant(index):
            return self.builder.constant(self.name(f"input{index}"), name, shape=wanted)
        return self.builder.viewed(self.builder.tensors[name], wanted, self.name(f"input{index}"))

    @property
    def kind(self) -> str:
        """The type of the layer as part of a name."""
        return self.layer.type.value.lower()

    def name(self, suffix: str = "layer") -> str:
        """Return the wanted name of an attribute of the layer, such as _y_conv_2d_layer."""
        return f"{self.stem}_{self.kind}_{suffix}"

    def function(self, kind: str, *arguments: Expression | AclTensor, suffix: str = "layer") -> None:
        """Add a function of the library."""
        self.builder.function(self.name(suffix), kind, *arguments)

    def activate(self, source: AclTensor, target: AclTensor, activation: Activation) -> None:
        """Add an activation as a function of its own."""
        self.function("ActivationLayer", source, target, activation_info(activation), suffix="activation")

    def before_activation(self, activation: Activation) -> AclTensor:
        """Return the tensor in front of an activation that the library does not fuse: the output if there is none."""
        if activation is Activation.NONE:
            return self.output(0)
        return self.builder.scratch(self.name("result"), self.output(0), self.output(0).shape)

    def finish_activation(self, result: AclTensor, activation: Activation) -> None:
        """Add the activation behind what `before_activation` returned, if there is one."""
        if result is not self.output(0):
            self.activate(result, self.output(0), activation)

    def aligned(self, index: int) -> AclTensor:
        """Return an input with as many axes as the output, the first ones of extent 1, as broadcasting counts them."""
        shape = self.info(index).shape
        return self.input(index, (1,) * (len(self.output_info.shape) - len(shape)) + shape)

    def result(self, shape: Shape) -> AclTensor:
        """Return the output, or a tensor of this shape with its elements if it has another one; see `finish`."""
        output = self.output(0)
        return output if output.shape == shape else self.builder.scratch(self.name("result"), output, shape)

    def finish(self, result: AclTensor) -> None:
        """Give the elements of what `result` returned the shape of the output."""
        if result is not self.output(0):
            self.builder.reshape(result, self.output(0), self.stem)


@frozen
class Accuracy:
    """How far an element of what the library's functions make may be off, given exact inputs."""

    spare: float = OTHER_CODE.spare
    """Floats: units in the last place beyond the error of Ferrule's own C."""
    absolute: float = 0.0
    """Floats: what comes to that, whatever the size of the element."""
    steps: int = 1
    """int8: steps of its quantisation."""


MOVED = Accuracy(steps=0)
"""That of functions that only move or select elements."""
Check = Callable[[LayerView], str]
Add = Callable[[LayerParts], None]


def not_constant(part: LayerView) -> str:
    """Return the reason why a layer of a constant is not possible."""
    return "its input is a constant" if part.is_constant(0) else ""


@positional
class Row:
    """How layers of a type become functions of the library."""

    add: Add
    types: frozenset[DataType] = QUANTIZED
    """The element types of inputs and outputs that are not weights or biases."""
    check: Check = lambda _: ""
    """Returns why a layer is not possible; "" if it is."""
    accuracy: Accuracy | Callable[[Graph, Layer], Accuracy] = Accuracy()
    """That of each layer, or a function that returns that of one."""


def activation_info(activation: Activation) -> Expression:
    """Return the ActivationLayerInfo of a fused activation."""
    match activation:
        case Activation.NONE:
            return Construct(acl("ActivationLayerInfo"))
        case Activation.RELU:
            return activation_of("RELU")
        case Activation.RELU6:
            return activation_of("LU_BOUNDED_RELU", 6.0, 0.0)
        case Activation.RELU_N1_TO_1:
            return activation_of("LU_BOUNDED_RELU", 1.0, -1.0)


def activation_of(function: str, *parameters: float) -> Expression:
    """Return an ActivationLayerInfo."""
    return Construct(
        acl("ActivationLayerInfo"),
        (acl_name("ActivationLayerInfo", "ActivationFunction", function), *map(Float, parameters)),
    )


def pad_stride(padding: Padding, stride_h: int, stride_w: int) -> Expression:
    """Return the PadStrideInfo of a window."""
    values = (stride_w, stride_h, padding.left, padding.right, padding.top, padding.bottom)
    return Construct(acl("PadStrideInfo"), (*map(unsigned, values), acl_name("DimensionRoundingType", "FLOOR")))


def size(width: int, height: int) -> Expression:
    """Return a Size2D."""
    return Construct(acl("Size2D"), (unsigned(width), unsigned(height)))
