# SPDX-License-Identifier: Apache-2.0
"""TensorFlow Lite files written field by field, so that tests can also write invalid files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Table:
    """A table of the schema, with fields by their camel-case names.

    A field is a number, a str, bytes, an array, a Table, or a list of Tables.
    """

    name: str
    fields: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401
        return self.fields[key]

    def __setitem__(self, key: str, value: Any) -> None:  # noqa: ANN401
        self.fields[key] = value


def table(name: str, **fields: Any) -> Table:  # noqa: ANN401
    """Return a table of any type."""
    return Table(name, dict(fields))


def tensor(
    name: str, shape: tuple[int, ...], type_: str = "FLOAT32", buffer: int = 0, quantization: Table | None = None
) -> Table:
    """Return a Tensor table."""
    import tflite

    fields: dict[str, Any] = {"Shape": np.array(shape, np.int32), "Type": getattr(tflite.TensorType, type_)}
    fields |= {"Buffer": buffer, "Name": name}
    if quantization is not None:
        fields["Quantization"] = quantization
    return Table("Tensor", fields)


def quantization(scales: list[float], zero_points: list[int], axis: int = 0) -> Table:
    """Return a QuantizationParameters table."""
    return table(
        "QuantizationParameters",
        Scale=np.array(scales, np.float32),
        ZeroPoint=np.array(zero_points, np.int64),
        QuantizedDimension=axis,
    )


def operator(
    inputs: list[int], outputs: list[int], options: Table | None = None, *, code: int = 0, kind: int | None = None
) -> Table:
    """Return an Operator table; `kind` overrides the union number of the options."""
    import tflite

    fields: dict[str, Any] = {"OpcodeIndex": code}
    fields |= {"Inputs": np.array(inputs, np.int32), "Outputs": np.array(outputs, np.int32)}
    if options is not None:
        fields |= {
            "BuiltinOptionsType": getattr(tflite.BuiltinOptions, options.name) if kind is None else kind,
            "BuiltinOptions": options,
        }
    return Table("Operator", fields)


def one_operator_model(
    type_: str,
    tensors: list[Table],
    inputs: list[int],
    outputs: list[int],
    options: Table | None = None,
    *,
    graph_inputs: list[int] | None = None,
    buffers: tuple[bytes, ...] = (),
) -> Table:
    """Return a Model table with one operator; buffer 0 is empty, and `buffers` follow it."""
    import tflite

    code = getattr(tflite.BuiltinOperator, type_)
    subgraph = table(
        "SubGraph",
        Tensors=tensors,
        Inputs=np.array(inputs[:1] if graph_inputs is None else graph_inputs, np.int32),
        Outputs=np.array(outputs, np.int32),
        Operators=[operator(inputs, outputs, options)],
        Name="main",
    )
    return table(
        "Model",
        Version=3,
        OperatorCodes=[table("OperatorCode", DeprecatedBuiltinCode=min(code, 127), Version=1, BuiltinCode=code)],
        Subgraphs=[subgraph],
        Buffers=[table("Buffer"), *(table("Buffer", Data=data) for data in buffers)],
    )


def write(model: Table) -> bytes:
    """Return the bytes of the file for a Model table."""
    import flatbuffers

    builder = flatbuffers.Builder(256)
    builder.Finish(_write(builder, model), b"TFL3")
    return bytes(builder.Output())


def _write(builder: Any, node: Table) -> int:  # noqa: ANN401
    import tflite

    values = {name: _value(builder, value) for name, value in node.fields.items()}
    getattr(tflite, f"{node.name}Start")(builder)
    for name, value in values.items():
        getattr(tflite, f"{node.name}Add{name}")(builder, value)
    return int(getattr(tflite, f"{node.name}End")(builder))


def _value(builder: Any, value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, Table):
        return _write(builder, value)
    if isinstance(value, str):
        return builder.CreateString(value)
    if isinstance(value, bytes):
        return builder.CreateByteVector(value)
    if isinstance(value, np.ndarray):
        return builder.CreateNumpyVector(value)
    if isinstance(value, list):
        offsets = [_write(builder, element) for element in value]
        builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            builder.PrependUOffsetTRelative(offset)
        return builder.EndVector()
    return value
