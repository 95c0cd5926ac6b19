# SPDX-License-Identifier: Apache-2.0
"""Files of operators whose indices, begins, conditions and weights are computed at run time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from flatbuffer_tree import Table, one_operator_model, operator, quantization, table, tensor
from flatbuffer_tree import write as bytes_of

from ferrule.graph import Array


def constant(name: str, data: Array, scale: Table | None = None) -> Table:
    """Return a Tensor table whose buffer is the data itself; `write` makes a buffer of it."""
    made = tensor(name, data.shape, data.dtype.name.upper(), quantization=scale)
    made["Buffer"] = data.tobytes()
    return made


def operator_model(type_: str, tensors: list[Table], inputs: list[int], outputs: list[int], options: Table) -> Table:
    """Return a model of one operator; the tensors that it reads are inputs, unless they are constants."""
    given = [index for index in inputs if not isinstance(tensors[index]["Buffer"], bytes)]
    return one_operator_model(type_, tensors, inputs, outputs, options, graph_inputs=given)


def append(model: Table, type_: str, inputs: list[int], outputs: list[int], options: Table | None = None) -> None:
    """Append an operator to the first subgraph."""
    import tflite

    code = getattr(tflite.BuiltinOperator, type_)
    entry = table("OperatorCode", DeprecatedBuiltinCode=min(code, 127), Version=1, BuiltinCode=code)
    model["OperatorCodes"].append(entry)
    model["Subgraphs"][0]["Operators"].append(operator(inputs, outputs, options, code=len(model["OperatorCodes"]) - 1))


def write(model: Table) -> bytes:
    """Return the bytes of the file."""
    for each in model["Subgraphs"][0]["Tensors"]:
        if isinstance(each["Buffer"], bytes):
            model["Buffers"].append(table("Buffer", Data=each["Buffer"]))
            each["Buffer"] = len(model["Buffers"]) - 1
    return bytes_of(model)


def select(condition: tuple[int, ...], shape: tuple[int, ...], dtype: str = "FLOAT32") -> Table:
    """Return a SELECT of quantised or other tensors."""
    scale = quantization([0.5], [0]) if dtype in {"INT8", "INT16"} else None
    tensors = [
        tensor("c", condition, "BOOL"),
        tensor("a", shape, dtype, quantization=scale),
        tensor("b", shape, dtype, quantization=scale),
        tensor("y", shape, dtype, quantization=scale),
    ]
    return operator_model("SELECT", tensors, [0, 1, 2], [3], table("SelectOptions"))


def strided(
    shape: tuple[int, ...],
    output: tuple[int, ...],
    begin: Sequence[int] | int,
    end: Sequence[int] | int,
    strides: Sequence[int] | None = None,
    **masks: int | bool,
) -> Table:
    """Return a STRIDED_SLICE; a begin or an end that is a number is an input with so many elements."""
    count = begin if isinstance(begin, int) else len(begin)
    vectors = [
        tensor(name, (given,), "INT32") if isinstance(given, int) else constant(name, np.array(given, np.int32))
        for name, given in (("begin", begin), ("end", end))
    ]
    tensors = [tensor("x", shape), *vectors, constant("strides", np.array(strides or [1] * count, np.int32))]
    tensors.append(tensor("y", output))
    return operator_model("STRIDED_SLICE", tensors, [0, 1, 2, 3], [4], table("StridedSliceOptions", **masks))


def fully_connected(dtype: str, activation: int = 0, *, channels: int = 1, zero_point: int = 0) -> Table:
    """Return FULLY_CONNECTED with weights from run time."""
    scales = [0.01 * (index + 1) for index in range(channels)]
    tensors = [
        tensor("x", (2, 8), dtype, quantization=quantization([0.1], [3 if dtype == "INT8" else 0])),
        tensor("w", (3, 8), "INT8", quantization=quantization(scales, [zero_point] * channels)),
        tensor("y", (2, 3), dtype, quantization=quantization([0.05], [1 if dtype == "INT8" else 0])),
    ]
    options = table("FullyConnectedOptions", FusedActivationFunction=activation)
    return operator_model("FULLY_CONNECTED", tensors, [0, 1], [2], options)


def gather(indices: str = "INT64", dtype: str = "FLOAT32") -> Table:
    """Return a GATHER of rows."""
    tensors = [tensor("x", (5, 3), dtype), tensor("i", (4,), indices), tensor("y", (4, 3), dtype)]
    return operator_model("GATHER", tensors, [0, 1], [2], table("GatherOptions", Axis=0))


def slice_from_int64() -> Table:
    """Return a SLICE whose begin is an input of int64."""
    size = constant("size", np.array([2, 2], np.int64))
    tensors = [tensor("x", (5, 3)), tensor("b", (2,), "INT64"), size, tensor("y", (2, 2))]
    return operator_model("SLICE", tensors, [0, 1, 2], [3], table("SliceOptions"))


def arg_select(type_: str, dtype: str) -> Table:
    """Return an ARG_MAX or ARG_MIN to int64 along axis 1."""
    scale = quantization([0.1], [3]) if dtype == "INT8" else None
    tensors = [tensor("x", (2, 3, 4), dtype, quantization=scale), tensor("y", (2, 4), "INT64")]
    tensors.append(constant("axis", np.array(1, np.int32)))
    options = table("ArgMaxOptions" if type_ == "ARG_MAX" else "ArgMinOptions", OutputType=4)
    return operator_model(type_, tensors, [0, 2], [1], options)


def transpose(permutation: tuple[int, ...], dtype: str = "FLOAT32") -> Table:
    """Return a TRANSPOSE of 6 axes."""
    shape = (2, 3, 1, 2, 3, 2)
    output = tuple(shape[axis] for axis in permutation)
    tensors = [tensor("x", shape, dtype), constant("p", np.array(permutation, np.int32)), tensor("y", output, dtype)]
    return operator_model("TRANSPOSE", tensors, [0, 1], [2], table("TransposeOptions"))


def models() -> list[bytes]:
    """Return one file of each kind, of integers or of tensors that are only moved."""
    return [
        write(model)
        for model in (
            gather(),
            slice_from_int64(),
            arg_select("ARG_MAX", "INT8"),
            arg_select("ARG_MIN", "INT8"),
            select((3,), (3, 2), "INT8"),
            select((3, 2), (3, 2), "INT16"),
            strided((5, 3, 4), (3, 4), 1, 1, ShrinkAxisMask=1),
            strided((5, 3, 4), (5, 3), 2, 2, EllipsisMask=1, ShrinkAxisMask=2),
            strided((5, 3), (2, 3), 1, 1),
            transpose((5, 4, 3, 2, 1, 0), "INT8"),
            transpose((3, 0, 5, 1, 4, 2), "INT32"),
            fully_connected("INT8"),
            fully_connected("INT8", 3, zero_point=5),
            fully_connected("INT8", channels=3),
            fully_connected("INT16"),
        )
    ]
