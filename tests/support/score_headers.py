# SPDX-License-Identifier: Apache-2.0
"""Reads the data sets of CMSIS-NN's unit tests, which are C headers, with a C preprocessor and a C parser."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from children import ran
from needs import require_cc
from pycparser import c_ast, c_parser
from score_cases import Run

from ferrule._frozen import positional
from ferrule.graph import Array
from ferrule.network import Network
from ferrule.operators.arithmetic.window import Padding

_TYPES = {f"int{bits}_t": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)} | {"float32_t": np.dtype("float32")}
_TYPEDEFS = "".join(
    f"typedef long {name};\n" for name in (*_TYPES, "float16_t", "uint8_t", "uint16_t", "uint32_t", "bool")
)
Translated = tuple[Network, list[Run]]
"""A case, and what it expects."""


@positional
class DataSet:
    """The macros and arrays of a data set's headers, by their names without the name of the data set."""

    name: str
    macros: Mapping[str, str]
    arrays: Mapping[str, Array]

    def number(self, *names: str) -> int:
        """Return the value of the first of the macros that is defined."""
        return int(next(self.macros[name] for name in names if name in self.macros), 0)

    def real(self, name: str) -> float:
        """Return the value of a macro that is a float32."""
        return float(self.macros[name].strip("()fF "))

    def numbers(self, name: str) -> tuple[int, ...]:
        """Return the values of a macro that is a list in braces."""
        return tuple(int(each, 0) for each in self.macros[name].strip("{}, ").split(","))

    def extents(self, prefix: str, axes: str = "NHWC") -> tuple[int, ...]:
        """Return the values of the macros whose names are the prefix and an axis."""
        return tuple(self.number(prefix + axis) for axis in axes)

    def matrices(self) -> list[tuple[int, ...]]:
        """Return the shapes of the two inputs of a batched product."""
        axes = ("BATCH", "HEIGHT", "ROWS", "COLS")
        return [tuple(self.number(f"{side}_{axis}") for axis in axes) for side in ("LHS", "RHS")]

    def array(self, *names: str) -> Array:
        """Return the first of the arrays that is defined."""
        return next(self.arrays[name] for name in names if name in self.arrays)


def read(folder: Path) -> DataSet:
    """Return the macros and arrays of a data set's headers."""
    with tempfile.TemporaryDirectory() as empty:
        for name in ("stdint.h", "stdbool.h", "stddef.h"):
            (Path(empty) / name).touch()
        words = [*require_cc(), "-E", "-P", "-dD", "-undef", "-nostdinc", "-I", empty, str(folder / "test_data.h")]
        text = ran(words, check=True, timeout=60).stdout
    lines = text.splitlines()
    upper, lower = f"{folder.name.upper()}_", f"{folder.name}_"
    defined = [line.split(None, 2) for line in lines if line.startswith("#define ")]
    macros = {words[1].removeprefix(upper): words[2] if len(words) > 2 else "" for words in defined}
    code = _TYPEDEFS + "\n".join(line for line in lines if not line.startswith("#"))
    arrays: dict[str, Array] = {}
    for node in c_parser.CParser().parse(code).ext:
        if not isinstance(node, c_ast.Decl):
            continue
        name = node.name.removeprefix(lower)
        if isinstance(node.init, c_ast.InitList):
            dtype = _TYPES[node.type.type.type.names[0]]
            arrays[name] = _array(node.init.exprs, dtype)
        elif isinstance(node.init, c_ast.ID) and node.init.name == "NULL":
            arrays[name] = np.empty(0, _TYPES[node.type.type.type.names[0]])
        elif isinstance(node.init, c_ast.ID) and (alias := node.init.name.removeprefix(lower)) in arrays:
            arrays[name] = arrays[alias]
    return DataSet(folder.name, macros, arrays)


def _array(nodes: Sequence[c_ast.Node], dtype: np.dtype[Any]) -> Array:
    if dtype.kind == "f":
        return np.array([_real(each) for each in nodes], np.float64).astype(dtype)
    return np.array([_value(each) for each in nodes], np.int64).astype(dtype)


def _real(node: c_ast.Node) -> float:
    return -_real(node.expr) if isinstance(node, c_ast.UnaryOp) else float(node.value.rstrip("fF"))


def _value(node: c_ast.Node) -> int:
    if isinstance(node, c_ast.UnaryOp):
        return -_value(node.expr)
    if isinstance(node, c_ast.BinaryOp):  # the lowest int32 and int64, which C cannot write as one constant
        return _value(node.left) - _value(node.right)
    return int(node.value.rstrip("uUlL"), 0)


def padding_of(data: DataSet, kernel: tuple[int, int], pads: tuple[int, int]) -> Padding:
    """Return the padding of a window: the given pixels before, and after as many as the output needs."""
    after = []
    for axis, size, before in zip("HW", kernel, pads, strict=True):
        stride = data.number(f"STRIDE_{'Y' if axis == 'H' else 'X'}", f"STRIDE_{axis}")
        covered = (data.number(f"OUTPUT_{axis}") - 1) * stride + size
        after.append(max(0, covered - data.number(f"INPUT_{axis}") - before))
    return Padding(top=pads[0], bottom=after[0], left=pads[1], right=after[1])
