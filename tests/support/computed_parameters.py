# SPDX-License-Identifier: Apache-2.0
"""Files with tensors that are computed when a file is read, because they depend on constants and shapes only."""

from __future__ import annotations

from typing import Any

import numpy as np
from flatbuffer_tree import Table, operator, table, tensor, write

from ferrule.graph import Array

Tensors = dict[str, Any]
"""Tensors by name: a shape (float32), a shape and a type, or a constant's data."""
Step = tuple[str, list[str], list[str], Table | None]


def model_of(
    tensors: Tensors,
    steps: list[Step],
    inputs: str = "x",
    outputs: str = "y",
) -> bytes:
    """Return a file with one subgraph; `inputs` are names with spaces between them."""
    import tflite

    names, tables, buffers = list(tensors), [], [table("Buffer")]
    for name, value in tensors.items():
        if isinstance(value, np.ndarray):
            buffers.append(table("Buffer", Data=value.tobytes()))
            tables.append(tensor(name, value.shape, str(value.dtype).upper(), len(buffers) - 1))
        elif value and isinstance(value[-1], str):
            tables.append(tensor(name, *value))
        else:
            tables.append(tensor(name, value))
    types = sorted({step[0] for step in steps})
    codes = [getattr(tflite.BuiltinOperator, type_) for type_ in types]
    operators = [
        operator([names.index(each) for each in reads], [names.index(each) for each in writes], options)
        for _, reads, writes, options in steps
    ]
    for built, (type_, *_) in zip(operators, steps, strict=True):
        built["OpcodeIndex"] = types.index(type_)
    subgraph = table(
        "SubGraph",
        Tensors=tables,
        Inputs=np.array([names.index(each) for each in inputs.split()], np.int32),
        Outputs=np.array([names.index(outputs)], np.int32),
        Operators=operators,
        Name="main",
    )
    return write(
        table(
            "Model",
            Version=3,
            OperatorCodes=[
                table("OperatorCode", DeprecatedBuiltinCode=min(code, 127), Version=1, BuiltinCode=code)
                for code in codes
            ],
            Subgraphs=[subgraph],
            Buffers=buffers,
        )
    )


def int32s(*values: int) -> Array:
    return np.array(values, np.int32)


def reshape_to_a_computed_shape() -> bytes:
    """Return the layers that converters write for reshape(x, (x.shape[0], -1))."""
    slices = table("StridedSliceOptions", ShrinkAxisMask=1)
    return model_of(
        {
            "x": (2, 3, 4),
            "shape": ((3,), "INT32"),
            "zero": int32s(0),
            "one": int32s(1),
            "rows": ((), "INT32"),
            "rest": np.array(-1, np.int32),
            "new": ((2,), "INT32"),
            "y": (2, 12),
        },
        [
            ("SHAPE", ["x"], ["shape"], None),
            ("STRIDED_SLICE", ["shape", "zero", "one", "one"], ["rows"], slices),
            ("PACK", ["rows", "rest"], ["new"], table("PackOptions", ValuesCount=2)),
            ("RESHAPE", ["x", "new"], ["y"], None),
        ],
    )


def models_with_computed_parameters() -> list[bytes]:
    """Return small files with parameters that are computed, by one operator or by several."""
    packed = table("PackOptions", ValuesCount=2)
    ends: Tensors = {
        "x": (2, 3, 4),
        "s": ((3,), "INT32"),
        "begin": int32s(0, 1, 0),
        "size": ((3,), "INT32"),
        "y": (2, 2, 4),
    }
    rows: Tensors = {"x": (4, 2), "two": np.array(2, np.int32), "n": ((), "INT32"), "new": ((2,), "INT32"), "y": (2, 4)}
    wide: Tensors = {"x": (6,), "a": int32s(2, 1), "b": int32s(3), "s": ((2,), "INT32"), "y": (2, 3)}
    chain: Tensors = {
        "x": (2, 3),
        "a": np.array([[3, 2]], np.int32),
        "b": ((2,), "INT32"),
        "s": ((2,), "INT32"),
        "y": (3, 2),
    }
    like: Tensors = {"x": (2, 3), "s": ((2,), "INT32"), "one": np.array(1, np.float32), "ones": (2, 3), "y": (2, 3)}
    return [
        reshape_to_a_computed_shape(),
        model_of(
            {**ends, "less": int32s(0, 1, 0)},
            [
                ("SHAPE", ["x"], ["s"], None),
                ("SUB", ["s", "less"], ["size"], table("SubOptions")),
                ("SLICE", ["x", "begin", "size"], ["y"], None),
            ],
        ),
        model_of(
            rows,
            [
                ("MUL", ["two", "two"], ["n"], table("MulOptions")),
                ("PACK", ["two", "n"], ["new"], packed),
                ("RESHAPE", ["x", "new"], ["y"], None),
            ],
        ),
        model_of(wide, [("BROADCAST_ARGS", ["a", "b"], ["s"], None), ("RESHAPE", ["x", "s"], ["y"], None)]),
        model_of(
            chain,
            [
                ("SQUEEZE", ["a"], ["b"], None),
                ("MAXIMUM", ["b", "b"], ["s"], None),
                ("RESHAPE", ["x", "s"], ["y"], None),
            ],
        ),
        model_of(
            like,
            [
                ("SHAPE", ["x"], ["s"], None),
                ("FILL", ["s", "one"], ["ones"], None),
                ("ADD", ["x", "ones"], ["y"], table("AddOptions")),
            ],
        ),
    ]
