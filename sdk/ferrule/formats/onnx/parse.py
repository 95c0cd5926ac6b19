# SPDX-License-Identifier: Apache-2.0
"""Parses the bytes of an ONNX file into records; the only module that uses the package `onnx`."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ferrule.budget import Resource, afford, held, hold
from ferrule.errors import MissingToolError, ModelError, UnsupportedError, place
from ferrule.formats.limits import MAX_RANK, printable
from ferrule.formats.onnx.node import MICROSOFT, Attribute, GraphRecord, Node, ValueRecord
from ferrule.formats.onnx.size import afford_fields
from ferrule.graph import Array, DataType
from ferrule.graph.tensor import read_only
from ferrule.reading import open_file

_OLD_IR = 3
"""The version of the format that brought operator sets: older models have set 1, and state none."""
_DEEPEST = 8
"""The most graphs inside of one another."""

REMEDY = "pip install 'ferrule[onnx]'"

TYPES: Mapping[int, DataType] = {
    1: DataType.FLOAT32,
    2: DataType.UINT8,
    3: DataType.INT8,
    5: DataType.INT16,
    6: DataType.INT32,
    7: DataType.INT64,
    9: DataType.BOOL,
    10: DataType.FLOAT16,
    12: DataType.UINT32,
    13: DataType.UINT64,
}
"""The types that networks have, by their number in the enum TensorProto.DataType."""
NUMPY_TYPES: Mapping[int, str] = {number: dtype.value for number, dtype in TYPES.items()} | {4: "uint16", 11: "float64"}
"""Those that constants have until they become part of a network."""
_WIDENED: Mapping[int, str] = {16: "float32", 21: "uint8", 22: "int8", 25: "uint8", 26: "int8"}
"""Types of constants that are read as wider ones: bfloat16, uint4, int4, uint2, int2."""


_NAMES: Mapping[int, str] = {
    8: "string",
    14: "complex64",
    15: "complex128",
    16: "bfloat16",
    21: "uint4",
    22: "int4",
    25: "uint2",
    26: "int2",
}
DATA_TYPES: Mapping[int, str] = {**NUMPY_TYPES, **_NAMES}
"""The names of the numbers of the enum TensorProto.DataType, such as float64."""


def type_name(number: int) -> str:
    """Return the name of a number of the enum TensorProto.DataType, such as float64."""
    return DATA_TYPES.get(number, f"the type number {number}")


def parse(data: bytes, folder: Path | None) -> GraphRecord:
    """Return the graph of a model; `folder` is that of the file, None if the model is not from a file.

    Raises:
        ModelError: the file is malformed.
        BudgetError: the model takes more memory than the present budget has.
        UnsupportedError: the model has an operator set, or data outside of the folder, that is not supported.
        MissingToolError: the package `onnx` is not installed.
    """
    try:
        import onnx
    except ImportError as error:
        raise MissingToolError("the Python package onnx is missing, which ONNX models need", hint=REMEDY) from error
    from google.protobuf.message import DecodeError

    with held(len(data), "the file's messages"):
        afford_fields(data, onnx.ModelProto.DESCRIPTOR)
        try:
            model = onnx.ModelProto.FromString(data)
        except (DecodeError, RecursionError, ValueError) as error:
            raise ModelError(f"the file is no ONNX model: {str(error).partition(chr(10))[0]}") from error
        if not model.HasField("graph"):
            raise ModelError("the file is no ONNX model: it has no graph")
        return _Parser(_opsets(model, onnx.defs.onnx_opset_version()), folder).graph(model.graph, 0)


def _opsets(model: Any, newest: int) -> dict[str, int]:  # noqa: ANN401
    """Return the opsets that the model imports, by domain; UnsupportedError for one of ONNX that is not known."""
    found: dict[str, int] = {}
    for each in model.opset_import:
        found["" if each.domain == "ai.onnx" else printable(each.domain)] = each.version
    if not found and model.ir_version < _OLD_IR:
        found[""] = 1
    version = found.get("")
    if version is None and MICROSOFT not in found:
        raise ModelError("the model imports no operator set of ONNX, expected one")
    if version is not None and not 1 <= version <= newest:
        raise UnsupportedError(
            f"the model has opset {version}, expected 1 to {newest}",
            hint="export the model with another opset_version, or convert it: "
            f"onnx.version_converter.convert_version(model, {newest})",
        )
    return found


class _Parser:
    """Converts the messages of one file into records."""

    def __init__(self, opsets: Mapping[str, int], folder: Path | None) -> None:
        self._opsets = opsets
        self._folder = folder

    def graph(self, graph: Any, depth: int) -> GraphRecord:  # noqa: ANN401
        if depth > _DEEPEST:
            raise UnsupportedError(f"more than {_DEEPEST} graphs lie inside of one another")
        if graph.sparse_initializer:
            raise UnsupportedError("it has sparse initialisers, expected dense ones", hint="store the weights densely")
        constants: dict[str, Array] = {}
        for tensor in graph.initializer:
            name = printable(tensor.name)
            with place(f"initialiser '{name}'"):
                if name in constants:
                    raise ModelError("there is another one of this name already")
                constants[name] = self.array(tensor)
        inputs, outputs = tuple(map(_value, graph.input)), tuple(map(_value, graph.output))
        return GraphRecord(
            name=printable(graph.name),
            inputs=inputs,
            outputs=outputs,
            values={value.name: value for value in (*map(_value, graph.value_info), *outputs, *inputs)},
            constants=constants,
            nodes=tuple(self.node(node, index, depth) for index, node in enumerate(graph.node)),
            narrow=frozenset(_narrow(graph)),
        )

    def node(self, node: Any, index: int, depth: int) -> Node:  # noqa: ANN401
        domain = "" if node.domain == "ai.onnx" else printable(node.domain)
        attributes: dict[str, Attribute] = {}
        graphs: dict[str, GraphRecord] = {}
        op = printable(node.op_type)
        with place(f"node {index} {op}", op):
            for attribute in node.attribute:
                name = printable(attribute.name)
                with place(f"attribute '{name}'"):
                    if attribute.ref_attr_name:
                        raise ModelError(f"it refers to '{printable(attribute.ref_attr_name)}', expected a value")
                    if attribute.type == _GRAPH:
                        graphs[name] = self.graph(attribute.g, depth + 1)
                    else:
                        attributes[name] = self.attribute(attribute)
        return Node(
            index=index,
            name=printable(node.name),
            op=op,
            domain=domain,
            version=self._opsets.get(domain, 0),
            inputs=tuple(map(printable, node.input)),
            outputs=tuple(map(printable, node.output)),
            attributes=attributes,
            graphs=graphs,
        )

    def attribute(self, attribute: Any) -> Attribute:  # noqa: ANN401
        from onnx.helper import get_attribute_value

        if attribute.type not in _READ:
            raise UnsupportedError(f"its kind is number {attribute.type}, expected numbers, texts, a tensor or a graph")
        value = get_attribute_value(attribute)
        if attribute.type == _TENSOR:
            return self.array(value)
        result: Attribute = tuple(map(_plain, value)) if isinstance(value, list) else _plain(value)
        return result

    def array(self, tensor: Any) -> Array:  # noqa: ANN401
        """Return the read-only elements of a tensor."""
        number, shape = tensor.data_type, tuple(tensor.dims)
        if number not in NUMPY_TYPES and number not in _WIDENED:
            raise UnsupportedError(f"it is {type_name(number)}, expected numbers of at most 64 bits")
        if len(shape) > MAX_RANK or min(shape, default=0) < 0:
            raise UnsupportedError(f"its shape is {list(shape)}, expected at most {MAX_RANK} axes")
        dtype = np.dtype(_WIDENED.get(number) or NUMPY_TYPES[number])
        expected = math.prod(shape) * dtype.itemsize
        hold(expected, f"a tensor of the shape {list(shape)}")
        raw: bytes | None = tensor.raw_data if tensor.HasField("raw_data") else None
        if tensor.data_location == _EXTERNAL:
            raw = self._external(tensor)
        if raw is None or number in _WIDENED:
            result = _converted(tensor, raw)
        else:
            if len(raw) != expected:
                raise ModelError(f"it has {len(raw)} bytes, expected {expected} for {dtype}{list(shape)}")
            result = np.frombuffer(raw, dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(shape)
        if result.dtype == bool:
            result = result.view(np.uint8) != 0
        if number in _WIDENED:
            result = result.astype(dtype)
        return read_only(result)

    def _external(self, tensor: Any) -> bytes:  # noqa: ANN401
        """Return the bytes of a tensor from a file beside the model."""
        entries = {each.key: each.value for each in tensor.external_data}
        location = printable(entries.get("location", ""))
        if self._folder is None:
            raise UnsupportedError(
                f"its data is in the file '{location}', but the model has no folder",
                hint="load the model by its path, or store its data inside: onnx.save(model, path)",
            )
        folder = self._folder.resolve()
        try:
            offset, length = int(entries.get("offset", 0)), int(entries.get("length", -1))
            path = (folder / location).resolve()
            if not path.is_relative_to(folder):
                raise UnsupportedError(
                    f"its data is in the file '{location}', outside of the model's folder",
                    hint="put the file into the folder of the model",
                )
            with open_file(path) as file:
                size = os.fstat(file.fileno()).st_size
                length = size - offset if length < 0 else length
                if not 0 <= offset <= offset + length <= size:
                    raise ModelError(
                        f"its data is at bytes {offset} to {offset + length} of '{location}', which has {size}"
                    )
                afford(Resource.BYTES, length, f"its data in the file '{location}'")
                file.seek(offset)
                return file.read(length)
        except OSError as error:
            raise ModelError(f"its data, the file '{location}', cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise ModelError(f"its place in the file '{location}' is malformed: {error}") from error


_TENSOR, _GRAPH, _READ = 4, 5, frozenset({1, 2, 3, 4, 6, 7, 8})
"""AttributeProto.TENSOR, GRAPH, and the kinds of attributes that are numbers, texts or a tensor."""
_EXTERNAL = 1
"""TensorProto.EXTERNAL."""


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Return a number as it is, and bytes as a text."""
    return printable(value) if isinstance(value, bytes) else value


def _converted(tensor: Any, raw: bytes | None) -> Array:  # noqa: ANN401
    """Return elements that are stored in the field of their type, or packed."""
    from onnx import TensorProto, numpy_helper

    if raw is not None and tensor.data_location == _EXTERNAL:
        tensor = TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=raw)
    try:
        result: Array = np.array(numpy_helper.to_array(tensor))
    except (ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
        raise ModelError(f"its data does not fit its shape {list(tensor.dims)}") from error
    return result


def _narrow(graph: Any) -> Iterator[str]:  # noqa: ANN401
    """Yield the names of constants that are read as wider types."""
    for tensor in graph.initializer:
        if tensor.data_type in _WIDENED:
            yield printable(tensor.name)
    for node in graph.node:
        if node.op_type == "Constant" and any(each.t.data_type in _WIDENED for each in node.attribute):
            yield from map(printable, node.output)


def _value(record: Any) -> ValueRecord:  # noqa: ANN401
    """Return what a file states about a tensor; the type is 0 for what is no tensor."""
    kind = record.type.WhichOneof("value")
    tensor = record.type.tensor_type
    if kind != "tensor_type":
        return ValueRecord(name=printable(record.name))
    shape = None
    if tensor.HasField("shape"):
        extents: list[int | str] = []
        for dim in tensor.shape.dim:
            known = dim.WhichOneof("value") == "dim_value" and dim.dim_value >= 0
            extents.append(dim.dim_value if known else printable(dim.dim_param) or "?")
        shape = tuple(extents)
    return ValueRecord(name=printable(record.name), type=tensor.elem_type, shape=shape)
