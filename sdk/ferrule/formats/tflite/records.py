# SPDX-License-Identifier: Apache-2.0
"""The records of a .tflite file: its operators and tensors as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import ModelError, place
from ferrule.formats.limits import printable
from ferrule.formats.tflite.flatbuffer import read
from ferrule.formats.tflite.schema import MODEL, SCHEMA_VERSION
from ferrule.graph import Array
from ferrule.graph.names import UniqueNames


@frozen
class QuantizationRecord:
    """The quantisation of a tensor; the tuples are empty if it has none."""

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int
    custom: bool


@frozen
class TensorRecord:
    """A tensor as stored in the file; only its offsets are checked."""

    index: int
    name: str
    """Unique, not empty and printable."""
    type: int
    """A value of the schema's enum TensorType."""
    shape: tuple[int, ...]
    shape_signature: tuple[int, ...]
    buffer: int
    quantization: QuantizationRecord
    is_variable: bool
    is_sparse: bool


@frozen
class OperatorRecord:
    """An operator as stored in the file."""

    index: int
    type: str
    """A name in the schema's enum BuiltinOperator, or "number" and a code that the schema does not define."""
    custom_code: str
    inputs: tuple[int, ...]
    """Tensor indices; -1 stands for an absent optional input."""
    outputs: tuple[int, ...]
    options_kind: int
    """The type number in the schema's union BuiltinOptions; 0 for no options."""
    options: Any
    """The options, with the fields of their table as attributes; None if there are none or their kind is not read."""
    custom_options: bytes


@frozen
class SubgraphRecord:
    """One subgraph of a file."""

    name: str
    signatures: tuple[str, ...]
    """The keys of the signatures that run this subgraph."""
    buffers: tuple[Array | None, ...]
    """Contents of the buffers of the whole file as uint8, read-only views; None for an empty buffer."""
    tensors: tuple[TensorRecord, ...]
    operators: tuple[OperatorRecord, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def read_model(data: bytes) -> tuple[SubgraphRecord, ...]:
    """Return the subgraphs of a file; the first is the model, which calls the others.

    Raises:
        ModelError: an offset or an index is out of range; the message names it.
    """
    model = read(data, MODEL)
    if model.version != SCHEMA_VERSION:
        raise ModelError(f"the schema version is {model.version}, expected {SCHEMA_VERSION}")
    if not model.subgraphs:
        raise ModelError("the model has no subgraph, expected one")
    codes = [_code(code) for code in model.operator_codes]
    buffers = tuple(_buffer(data, buffer, index) for index, buffer in enumerate(model.buffers))
    keys: dict[int, list[str]] = {}
    for each in model.signature_defs:
        keys.setdefault(each.subgraph_index, []).append(text_of(each.signature_key))
    return tuple(
        SubgraphRecord(
            name=text_of(graph.name),
            signatures=tuple(keys.get(index, ())),
            buffers=buffers,
            tensors=_tensors(graph.tensors),
            operators=tuple(_operator(operator, index, codes) for index, operator in enumerate(graph.operators)),
            inputs=_numbers(graph.inputs),
            outputs=_numbers(graph.outputs),
        )
        for index, graph in enumerate(model.subgraphs)
    )


def _code(code: Any) -> tuple[str, str]:  # noqa: ANN401
    """Return the name of an operator and the name of its custom code, which is "" for built-in operators."""
    # The schema's rule since version 3a: the larger of the two fields is valid.
    number = max(code.builtin_code, code.deprecated_builtin_code)
    return _builtin_names().get(number, f"number {number}"), text_of(code.custom_code)


@cache
def _builtin_names() -> Mapping[int, str]:
    """Return the names of operators by number, without the package's import, which reads its 160 other modules."""
    package = find_spec("tflite")
    assert package is not None
    assert package.origin is not None
    spec = spec_from_file_location("tflite.BuiltinOperator", Path(package.origin).with_name("BuiltinOperator.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return {value: name for name, value in vars(module.BuiltinOperator).items() if isinstance(value, int)}


def _buffer(file: bytes, buffer: Any, index: int) -> Array | None:  # noqa: ANN401
    """Return a buffer's bytes, which the schema lets lie behind the flatbuffer, as ai-edge-quantizer writes large ones.

    An offset or a size of 1 marks a buffer whose place was not known yet.
    """
    if buffer.offset > 1 or buffer.size > 1:
        end = buffer.offset + buffer.size
        if buffer.offset <= 1 or end > len(file):
            raise ModelError(
                f"buffer {index} has {buffer.size} B at {buffer.offset} of the file, which has {len(file)} B"
            )
        return np.frombuffer(file, np.uint8, buffer.size, buffer.offset) if buffer.size else None
    data: Array = buffer.data
    return data if data.size else None


def _tensors(tensors: Sequence[Any]) -> tuple[TensorRecord, ...]:
    names = _unique(text_of(tensor.name) for tensor in tensors)
    return tuple(
        TensorRecord(
            index=index,
            name=name,
            type=tensor.type,
            shape=_numbers(tensor.shape),
            shape_signature=_numbers(tensor.shape_signature),
            buffer=tensor.buffer,
            quantization=_quantization(tensor.quantization),
            is_variable=tensor.is_variable,
            is_sparse=tensor.sparsity is not None,
        )
        for index, (tensor, name) in enumerate(zip(tensors, names, strict=True))
    )


def _quantization(parameters: Any) -> QuantizationRecord:  # noqa: ANN401
    if parameters is None:
        return QuantizationRecord(scales=(), zero_points=(), axis=0, custom=False)
    return QuantizationRecord(
        scales=_numbers(parameters.scale),
        zero_points=_numbers(parameters.zero_point),
        axis=parameters.quantized_dimension,
        custom=parameters.details_type != 0,
    )


def _operator(operator: Any, index: int, codes: Sequence[tuple[str, str]]) -> OperatorRecord:  # noqa: ANN401
    with place(f"operator {index}"):
        code = operator.opcode_index
        if code >= len(codes):
            raise ModelError(f"its operator code is number {code}, but the model has {len(codes)}")
    type_, custom_code = codes[code]
    return OperatorRecord(
        index=index,
        type=type_,
        custom_code=custom_code,
        inputs=_numbers(operator.inputs),
        outputs=_numbers(operator.outputs),
        options_kind=operator.builtin_options_type,
        options=operator.builtin_options,
        custom_options=operator.custom_options.tobytes(),
    )


def _numbers(vector: Array) -> tuple[Any, ...]:
    return tuple(vector.tolist())


def text_of(raw: Array) -> str:
    """Return a text of the file."""
    return printable(raw.tobytes())


def _unique(names: Iterable[str]) -> list[str]:
    """Return unique names: empty and repeated ones are numbered, and the first of equal names stays unchanged."""
    wanted = [name or f"tensor_{index}" for index, name in enumerate(names)]
    taken, seen = UniqueNames(wanted), set[str]()
    result = []
    for name in wanted:
        result.append(taken.take(name) if name in seen else name)
        seen.add(name)
    return result
