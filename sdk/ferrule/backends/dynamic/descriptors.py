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
from dataclasses import dataclass
from functools import cache
from typing import Any

from ferrule.backends.dynamic.codes import ACTIVATION_CODES
from ferrule.graph import Descriptor, Graph, LayerType
from ferrule.operators.activation import Activation
from ferrule.operators.table import OPERATORS
from ferrule.operators.window import Padding


class CPadding(ctypes.Structure):
    """struct ferrule_padding."""

    _fields_ = (
        ("top", ctypes.c_int32),
        ("bottom", ctypes.c_int32),
        ("left", ctypes.c_int32),
        ("right", ctypes.c_int32),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """The conversion of one Python type to C."""

    c_type: str
    ctype: Any
    convert: Callable[[Any], Any]


def _convert_int(value: int) -> int:
    """Return the value; OverflowError if it does not fit in 32 bits, because ctypes would truncate it."""
    if not -(1 << 31) <= value < 1 << 31:
        raise OverflowError(f"{value} does not fit in 32 bits")
    return int(value)


def _convert_padding(value: Padding) -> CPadding:
    return CPadding(*map(_convert_int, (value.top, value.bottom, value.left, value.right)))


_KINDS: Mapping[object, _Kind] = {
    bool: _Kind(c_type="bool", ctype=ctypes.c_bool, convert=bool),
    int: _Kind(c_type="int32_t", ctype=ctypes.c_int32, convert=_convert_int),
    float: _Kind(c_type="double", ctype=ctypes.c_double, convert=float),
    int | float: _Kind(c_type="double", ctype=ctypes.c_double, convert=float),
    str: _Kind(c_type="const char *", ctype=ctypes.c_char_p, convert=str.encode),
    Activation: _Kind(c_type="int32_t", ctype=ctypes.c_int32, convert=ACTIVATION_CODES.__getitem__),
    Padding: _Kind(c_type="struct ferrule_padding", ctype=CPadding, convert=_convert_padding),
}
_INTEGERS = tuple[int, ...]
"""Passed as a pointer and a count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StructField:
    """One field of a dataclass in C; a tuple becomes two members."""

    name: str
    doc: str
    kind: _Kind | None
    """None for a tuple of integers."""

    def members(self) -> Iterator[tuple[str, str, Any]]:
        """Yield the C type, name and ctypes type of each member."""
        if self.kind is not None:
            yield self.kind.c_type, self.name, self.kind.ctype
        else:
            yield "const int32_t *", self.name, ctypes.POINTER(ctypes.c_int32)
            yield "uint32_t", f"{self.name}_count", ctypes.c_uint32


@dataclass(frozen=True, slots=True, kw_only=True)
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
            if field.kind is not None:
                setattr(filled, field.name, field.kind.convert(value))
                continue
            setattr(filled, field.name, (ctypes.c_int32 * len(value))(*map(_convert_int, value)))
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
        if hint != _INTEGERS and hint not in _KINDS:
            raise TypeError(f"{descriptor.__name__}.{field.name} is {hint}, which has no counterpart in C")
        fields.append(StructField(name=field.name, doc=docs.get(field.name, ""), kind=_KINDS.get(hint)))
    members = tuple((name, ctype) for field in fields for _, name, ctype in field.members())
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
