# SPDX-License-Identifier: Apache-2.0
"""The operators' descriptors as the C structs of include/ferrule/layers.h, which is made of their dataclasses."""

from __future__ import annotations

import ctypes
import dataclasses
import re
from functools import cache
from typing import Any

from ferrule.backends.dynamic import abi
from ferrule.backends.dynamic.codes import ACTIVATION_CODES
from ferrule.graph import Descriptor
from ferrule.operators.activation import Activation
from ferrule.operators.arithmetic.window import Padding


def struct_tag(descriptor: type[Descriptor]) -> str:
    """Return the tag of a descriptor's struct, such as ferrule_conv2d_descriptor."""
    return "ferrule_" + re.sub(r"(?<!^)(?=[A-Z])", "_", descriptor.__name__).lower()


def has_struct(descriptor: Descriptor) -> bool:
    """Return whether the C interface has a struct for a descriptor."""
    return struct_tag(type(descriptor)) in _structs()


def pack(descriptor: Descriptor) -> ctypes.Structure:
    """Return the filled struct of a descriptor; OverflowError if a number is too large."""
    kind = _structs()[struct_tag(type(descriptor))]
    types = dict(kind._fields_)
    filled: ctypes.Structure = kind()
    for field in dataclasses.fields(descriptor):
        value = getattr(descriptor, field.name)
        if isinstance(value, tuple):
            setattr(filled, f"{field.name}_count", len(value))
        setattr(filled, field.name, _converted(value, types[field.name]))
    return filled


@cache
def _structs() -> dict[str, Any]:
    return abi.read_header("layers.h")


def _converted(value: Any, kind: Any) -> Any:  # noqa: ANN401 - types of ctypes
    match value:
        case Activation():
            return ACTIVATION_CODES[value]
        case Padding():
            return tuple(map(_checked, dataclasses.astuple(value)))
        case tuple():
            return (kind._type_ * len(value))(*map(_checked, value))
        case str():
            return value.encode()
    return _checked(value) if kind is ctypes.c_int32 else value


def _checked(value: int) -> int:
    """Return the value; OverflowError if it does not fit in 32 bits, because ctypes would truncate it."""
    if not -(1 << 31) <= value < 1 << 31:
        raise OverflowError(f"{value} does not fit in 32 bits")
    return int(value)
