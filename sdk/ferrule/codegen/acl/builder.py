# SPDX-License-Identifier: Apache-2.0
"""Builds the class: its tensors and functions, and the statements that configure, allocate, load and run them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from ferrule._frozen import frozen
from ferrule.codegen.acl.layouts import (
    PIXELS_TO_PLANES,
    PLANES_TO_PIXELS,
    dimensions,
    is_moved,
    pixels,
    stored,
)
from ferrule.codegen.acl.parameters import ParameterFile
from ferrule.codegen.acl.targets import AclTarget, acl, acl_name, method
from ferrule.dom import (
    AddressOf,
    Aggregate,
    Attribute,
    Call,
    ClassType,
    Comment,
    Const,
    Construct,
    Declare,
    Dereference,
    Evaluate,
    Expression,
    Float,
    Identifier,
    Integer,
    Pointer,
    QualifiedName,
    Scalar,
    Statement,
    elements,
    unsigned,
)
from ferrule.graph import DataType, Graph, Quantization, Shape
from ferrule.graph.names import UniqueNames

_TYPES = {
    DataType.FLOAT32: "F32",
    DataType.FLOAT16: "F16",
    DataType.INT8: "QASYMM8_SIGNED",
    DataType.INT32: "S32",
}


@frozen
class AclTensor:
    """A tensor of the class: its attribute, and what it contains."""

    member: str
    shape: Shape
    """Extents in the network's order."""
    dtype: DataType
    quantization: Quantization | None = None

    @property
    def pointer(self) -> Expression:
        """The tensor as an argument of a function."""
        return AddressOf(Identifier(self.member))


def vector(element: Scalar | Pointer | ClassType, values: Sequence[Expression]) -> tuple[ClassType, Aggregate]:
    """Return the type std::vector<element>, and its initial value."""
    return ClassType("vector", ("std",), (element,)), elements(values)


def shape_of(extents: Sequence[int]) -> Expression:
    """Return a TensorShape."""
    return Construct(acl("TensorShape"), tuple(map(unsigned, extents)))


def coordinates(values: Sequence[int]) -> Expression:
    """Return Coordinates."""
    return Construct(acl("Coordinates"), tuple(map(Integer, values)))


@dataclass(kw_only=True)
class ClassBuilder:
    """Collects the parts of the class while rows add their layers."""

    target: AclTarget
    graph: Graph
    float16: bool = False
    names: UniqueNames = field(default_factory=lambda: UniqueNames(("_parIn",)))
    attributes: list[Attribute] = field(default_factory=list)
    configuration: list[Statement] = field(default_factory=list)
    allocation: list[Statement] = field(default_factory=list)
    loading: list[Statement] = field(default_factory=list)
    inference: list[Statement] = field(default_factory=list)
    parameters: ParameterFile = field(default_factory=ParameterFile)
    tensors: dict[str, AclTensor] = field(default_factory=dict)
    """The tensors of the network that the class has, by name."""
    functions: list[str] = field(default_factory=list)
    """The classes of the functions of the present layer."""

    def dtype(self, dtype: DataType) -> DataType:
        """Return the type in which the class computes values of a type."""
        return DataType.FLOAT16 if self.float16 and dtype is DataType.FLOAT32 else dtype

    def named(self, name: str, member: str) -> AclTensor:
        """Add a tensor of the network under a free attribute."""
        info = self.graph.info(name)
        tensor = self._declare(member, info.shape, dimensions(info.shape), self.dtype(info.dtype), info.quantization)
        self.tensors[name] = tensor
        return tensor

    def scratch(self, wanted: str, like: AclTensor, shape: Shape, extents: Sequence[int] | None = None) -> AclTensor:
        """Add a tensor between two functions of a layer, with the type of another one."""
        member = self.names.take(wanted)
        return self._declare(
            member, shape, dimensions(shape) if extents is None else extents, like.dtype, like.quantization
        )

    def constant(
        self,
        wanted: str,
        tensor: str,
        values: NDArray[Any] | None = None,
        *,
        shape: Shape | None = None,
        weights: bool = False,
    ) -> AclTensor:
        """Add a constant of the network, described with `shape` instead of its own if given.

        `values` are its elements in the order of the library if that is not the one of tensors in general; their
        shape is then outermost first. `weights` describes values by one scale per channel if they have several.
        """
        source = self.graph.tensor(tensor)
        assert source.data is not None
        described = source.info.shape if shape is None else shape
        if values is None:
            values = stored(source.data.reshape(described))
        dtype = self.dtype(source.info.dtype)
        values = values.astype(dtype.numpy)
        quantization = source.info.quantization
        member = self.names.take(wanted)
        constant = self._declare(
            member, described, tuple(reversed(values.shape)) or (1,), dtype, quantization, weights=weights
        )
        self.parameters.add(member, tensor, values)
        read = Evaluate(Call(QualifiedName(("acl_parameters",), "read"), (Identifier("_parIn"), Identifier(member))))
        self.loading += self.target.mapped_access(Identifier(member), read)
        return constant

    def _declare(
        self,
        member: str,
        shape: Shape,
        extents: Sequence[int],
        dtype: DataType,
        quantization: Quantization | None,
        *,
        weights: bool = False,
    ) -> AclTensor:
        quantized = quantization if dtype is DataType.INT8 else None
        kind = _TYPES[dtype]
        if weights and quantized is not None and quantized.per_channel:
            kind = "QSYMM8_PER_CHANNEL"
        arguments = (
            shape_of(extents),
            Integer(1),
            acl_name("DataType", kind),
            *(() if quantized is None else (_quantization(quantized),)),
        )
        self.attributes.append(Attribute(member, self.target.tensor))
        self.configuration.append(
            Evaluate(method(self._allocator(member), "init", Construct(acl("TensorInfo"), arguments)))
        )
        self.allocation.append(Evaluate(method(self._allocator(member), "allocate")))
        return AclTensor(member=member, shape=shape, dtype=dtype, quantization=quantization)

    @staticmethod
    def _allocator(member: str) -> Expression:
        return Dereference(method(Identifier(member), "allocator"))

    def function(self, wanted: str, kind: str, *arguments: Expression | AclTensor) -> None:
        """Add a function of the library, with the arguments of its configuration; it runs after those before it."""
        values = (each.pointer if isinstance(each, AclTensor) else each for each in arguments)
        member = self.names.take(wanted)
        type_ = self.target.function(kind)
        self.functions.append(type_.name)
        self.attributes.append(Attribute(member, type_))
        self.configuration.append(Evaluate(method(Identifier(member), "configure", *values)))
        self.inference.append(Evaluate(method(Identifier(member), "run")))

    def local(self, wanted: str, type_: ClassType, value: Expression | None = None) -> Identifier:
        """Add a variable to the constructor, in front of the next configuration."""
        name = self.names.take(f"of_{wanted}" if wanted[0].isdigit() else wanted)
        self.configuration.append(Declare(name, type_, value))
        return Identifier(name)

    def pointers(self, wanted: str, tensors: Sequence[AclTensor], *, constant: bool) -> Identifier:
        """Add a vector of pointers to tensors to the constructor."""
        base = self.target.tensor_base
        type_, values = vector(Pointer(Const(base) if constant else base), [tensor.pointer for tensor in tensors])
        return self.local(wanted, type_, values)

    def remark(self, text: str) -> None:
        """Add a comment to configuration and inference."""
        self.configuration.append(Comment(text))
        self.inference.append(Comment(text))

    def viewed(self, source: AclTensor, shape: Shape, wanted: str) -> AclTensor:
        """Return the elements of a tensor with another shape, in the network's order; copies if needed."""
        if source.shape == shape or (dimensions(source.shape) == dimensions(shape) and not _moves(source.shape, shape)):
            return source
        target = self.scratch(wanted, source, shape)
        self.reshape(source, target, wanted)
        return target

    def reshape(self, source: AclTensor, target: AclTensor, wanted: str) -> None:
        """Add the functions that give a tensor's elements another shape, in the network's order.

        Images are planes in the library, so elements move to the order of the network first, and back afterwards.
        """
        if not _moves(source.shape, target.shape):
            self.function(f"{wanted}_reshape", "ReshapeLayer", source, target)
            return
        current, extents = source, dimensions(source.shape)
        if is_moved(source.shape):
            extents = pixels(source.shape)
            last = extents == dimensions(target.shape) and not is_moved(target.shape)
            after = target if last else self.scratch(f"{wanted}_pixels", source, source.shape, extents)
            self.permute(f"{wanted}_permute", current, after, PLANES_TO_PIXELS)
            current = after
        if current is target:
            return
        wanted_extents = pixels(target.shape)
        if extents != wanted_extents or not is_moved(target.shape):
            after = (
                self.scratch(f"{wanted}_reshaped", target, target.shape, wanted_extents)
                if is_moved(target.shape)
                else target
            )
            self.function(f"{wanted}_reshape", "ReshapeLayer", current, after)
            current = after
        if is_moved(target.shape):
            self.permute(f"{wanted}_planes", current, target, PIXELS_TO_PLANES)

    def permute(self, wanted: str, source: AclTensor, target: AclTensor, vector_: Sequence[int]) -> None:
        """Add a function that moves the dimensions: dimension i of the target is dimension `vector_[i]`.

        NEPermute of version 20.08 refuses vectors of two dimensions, so there are at least three.
        """
        complete = (*vector_, *range(len(vector_), 3))
        arguments = Construct(acl("PermutationVector"), tuple(map(unsigned, complete)))
        self.function(wanted, "Permute", source, target, arguments)


def _moves(source: Shape, target: Shape) -> bool:
    return source != target and (is_moved(source) or is_moved(target))


def _quantization(quantization: Quantization) -> Expression:
    if quantization.per_channel:
        type_, values = vector(Scalar.FLOAT32, [Float(scale) for scale in quantization.scales])
        scales = Construct(type_, (values,))
        return Construct(acl("QuantizationInfo"), (scales,))
    return Construct(acl("QuantizationInfo"), (Float(quantization.scale), Integer(quantization.zero_point)))
