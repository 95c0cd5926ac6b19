# SPDX-License-Identifier: Apache-2.0
"""The parameters of the kernels: the structs of kernels/parameters.cl, and the codes of types."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ferrule.graph import Array, DataType, LayerType
from ferrule.nativelib import structs

FOLDER = Path(__file__).parent / "kernels"
ITEMS = 0
"""The place of the number of work items in all parameters."""


@cache
def _structs() -> Mapping[str, Any]:
    return structs(FOLDER / "parameters.cl")


def parameters(struct: str, **members: int | tuple[int, ...]) -> Array:
    """Return the contents of a struct as int32, with 0 for other members; values that exceed 32 bits are clamped."""
    kind, limits = _structs()[struct], np.iinfo(np.int32)
    packed = np.zeros(ctypes.sizeof(kind) // 4, np.int32)
    for name, value in members.items():
        member = getattr(kind, name)
        packed[member.offset // 4 :][: member.size // 4] = np.clip(value, limits.min, limits.max)
    return packed


CODES: Mapping[DataType | LayerType, int] = {each: code for code, each in enumerate((*DataType, *LayerType))}
"""The numbers by which kernels know element types and layer types."""


def float_bits(value: float) -> int:
    """Return the bits of a float32 as an int32, as which structs hold it."""
    return int(np.float32(value).view(np.int32))


def definitions() -> str:
    """Return the codes in OpenCL C: TYPE_INT8, LAYER_ABS and so on."""
    return "".join(
        f"#define {'TYPE' if isinstance(each, DataType) else 'LAYER'}_{each.name} {code}\n"
        for each, code in CODES.items()
    )
