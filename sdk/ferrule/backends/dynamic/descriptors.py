# SPDX-License-Identifier: Apache-2.0
"""The operators' descriptors as C structs, generated from the dataclasses so that the two cannot differ."""

from __future__ import annotations

import ast
import ctypes
import dataclasses
import inspect
import itertools
import re
import textwrap
import typing
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from ferrule._frozen import frozen
from ferrule.backends.dynamic.codes import ACTIVATION_CODES
from ferrule.graph import Descriptor, Graph, LayerType
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding
from ferrule.operators.table import OPERATORS


class CPadding(ctypes.Structure):
    """struct ferrule_padding."""

    _fields_ = tuple((field.name, ctypes.c_int32) for field in dataclasses.fields(Padding))


def _convert_int(value: int) -> int:
    """Return the value; OverflowError if it does not fit in 32 bits, because ctypes would truncate it."""
    if not -(1 << 31) <= value < 1 << 31:
        raise OverflowError(f"{value} does not fit in 32 bits")
    return int(value)


def _convert_padding(value: Padding) -> CPadding:
    return CPadding(*map(_convert_int, dataclasses.astuple(value)))


def _convert_integers(value: tuple[int, ...]) -> ctypes.Array[ctypes.c_int32]:
    return (ctypes.c_int32 * len(value))(*map(_convert_int, value))


INTEGERS = ctypes.POINTER(ctypes.c_int32)
"""The type of a member that points to integers, which is followed by a member with their number."""
_KINDS: Mapping[object, tuple[Any, Callable[[Any], Any]]] = {
    bool: (ctypes.c_bool, bool),
    int: (ctypes.c_int32, _convert_int),
    float: (ctypes.c_double, float),
    int | float: (ctypes.c_double, float),
    str: (ctypes.c_char_p, str.encode),
    Activation: (ctypes.c_int32, ACTIVATION_CODES.__getitem__),
    Padding: (CPadding, _convert_padding),
    tuple[int, ...]: (INTEGERS, _convert_integers),
}
"""The type for ctypes of each Python type, and the conversion of its values."""


@frozen
class StructField:
    """One field of a dataclass in C; a tuple becomes two members."""

    name: str
    doc: str
    ctype: Any
    convert: Callable[[Any], Any]

    def members(self) -> Iterator[tuple[str, Any]]:
        """Yield the name and type of each member."""
        yield self.name, self.ctype
        if self.ctype is INTEGERS:
            yield f"{self.name}_count", ctypes.c_uint32


@frozen
class DescriptorStruct:
    """The C struct of one descriptor class."""

    descriptor: type[Descriptor]
    doc: str
    layers: tuple[LayerType, ...]
    """The layer types with this descriptor."""
    fields: tuple[StructField, ...]
    """Empty for operators without parameters, which have no struct."""
    ctype: type[ctypes.Structure]

    @property
    def c_name(self) -> str:
        """The tag, such as ferrule_conv2d_descriptor."""
        return "ferrule_" + re.sub(r"(?<!^)(?=[A-Z])", "_", self.descriptor.__name__).lower()

    def pack(self, descriptor: Descriptor) -> ctypes.Structure:
        """Return the filled struct; OverflowError if a number is too large."""
        filled = self.ctype()
        for field in self.fields:
            value = getattr(descriptor, field.name)
            setattr(filled, field.name, field.convert(value))
            if field.ctype is INTEGERS:
                setattr(filled, f"{field.name}_count", len(value))
        return filled


@cache
def descriptor_structs() -> Mapping[type[Descriptor], DescriptorStruct]:
    """Return the struct of each descriptor class of the operator table, in the order of the layer types' numbers.

    Descriptors with graphs have none: the C interface has no counterpart.
    """
    users: dict[type[Descriptor], list[LayerType]] = {}
    for layer_type in sorted(LayerType, key=lambda type_: type_.code):
        if layer_type in OPERATORS and not _has_graphs(OPERATORS[layer_type].descriptor):
            users.setdefault(OPERATORS[layer_type].descriptor, []).append(layer_type)
    return {descriptor: _make_struct(descriptor, tuple(layers)) for descriptor, layers in users.items()}


def _has_graphs(descriptor: type[Descriptor]) -> bool:
    return Graph in typing.get_type_hints(descriptor).values()


def _make_struct(descriptor: type[Descriptor], layers: tuple[LayerType, ...]) -> DescriptorStruct:
    hints = typing.get_type_hints(descriptor)
    docs = _field_docs(descriptor)
    fields = []
    for field in dataclasses.fields(descriptor):
        hint = hints[field.name]
        if hint not in _KINDS:
            raise TypeError(f"{descriptor.__name__}.{field.name} is {hint}, which has no counterpart in C")
        ctype, convert = _KINDS[hint]
        fields.append(StructField(name=field.name, doc=docs.get(field.name, ""), ctype=ctype, convert=convert))
    members = tuple(member for field in fields for member in field.members())
    return DescriptorStruct(
        descriptor=descriptor,
        doc=" ".join((inspect.getdoc(descriptor) or "").split()),
        layers=layers,
        fields=tuple(fields),
        ctype=type(descriptor.__name__, (ctypes.Structure,), {"_fields_": members}),
    )


def _field_docs(descriptor: type[Descriptor]) -> dict[str, str]:
    """Return the strings under the fields of a class."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(descriptor)))
    body = typing.cast("ast.ClassDef", tree.body[0]).body
    docs = {}
    for before, node in itertools.pairwise(body):
        if (
            isinstance(before, ast.AnnAssign)
            and isinstance(before.target, ast.Name)
            and isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
        ):
            docs[before.target.id] = " ".join(str(node.value.value).split())
    return docs
